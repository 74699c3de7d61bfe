#include "kernels/reduction.h"

#include <cstring>
#include <vector>

#include "kernels/cpu.h"
#include "kernels/nest.h"
#include "kernels/parallel.h"

namespace rushlight {

#define RUSHLIGHT_DECLARE(isa) \
  namespace isa {              \
  ReductionBuild reduction_build(); \
  }
RUSHLIGHT_FOR_EACH_ISA(RUSHLIGHT_DECLARE)

namespace {

const ReductionBuild& build() {
  static const ReductionBuild chosen = RUSHLIGHT_BEST(reduction_build());
  return chosen;
}

constexpr std::int64_t line_block = 4096;   // elements of one partial sum
constexpr std::int64_t row_block = 128;     // rows added into one partial row
constexpr std::int64_t column_block = 512;  // columns that stay in the cache meanwhile

void add_one(DType d, char* to, const char* from) { build().add_line(d, to, from, 1, item_size(d)); }

/// The sum over a whole nest of one operand, by lines and blocks, partial sums added pairwise.
void sum_nest(const Nest& nest, char* base, DType dtype, char* out) {
  std::int64_t item = item_size(dtype);
  if (nest.ndim <= 1 && nest.numel <= line_block) return build().sum_line(dtype, base, nest.numel, nest.steps[0][0], out);
  alignas(16) char stack[66 * 16];  // partial sums of 2^k blocks
  std::uint64_t blocks = 0;
  alignas(16) char partial[16];
  auto push = [&] {
    int level = 0;
    for (std::uint64_t b = blocks; b & 1; b >>= 1, ++level) add_one(dtype, partial, stack + level * item);
    std::memcpy(stack + level * item, partial, std::size_t(item));
    ++blocks;
  };
  char* bases[1] = {base};
  nest.run(bases, 0, nest.numel, [&](char** p, std::int64_t n, const std::int64_t* steps) {
    for (std::int64_t at = 0; at < n; at += line_block) {
      build().sum_line(dtype, p[0] + at * steps[0], std::min(line_block, n - at), steps[0], partial);
      push();
    }
  });
  std::memset(out, 0, std::size_t(item));
  for (int level = 0; blocks >> level; ++level)
    if ((blocks >> level) & 1) add_one(dtype, out, stack + level * item);
}

/// One large sum: fixed chunks in parallel, their sums added in order.
void sum_all(const Nest& nest, char* base, DType dtype, char* out) {
  constexpr std::int64_t chunk = 1 << 16;
  std::int64_t parts = (nest.numel + chunk - 1) / chunk, item = item_size(dtype);
  if (parts <= 1 || nest.ndim > 1) return sum_nest(nest, base, dtype, out);
  std::vector<std::byte> sums(std::size_t(parts * item));
  parallel_for(parts, 2, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t k = begin; k < end; ++k) {
      Nest part = nest;
      part.numel = part.sizes[0] = std::min(chunk, nest.numel - k * chunk);
      sum_nest(part, base + k * chunk * nest.steps[0][0], dtype, reinterpret_cast<char*>(sums.data()) + k * item);
    }
  });
  build().sum_line(dtype, reinterpret_cast<char*>(sums.data()), parts, item, out);
}

struct Split {
  Dims kept_sizes, kept_strides, gone_sizes, gone_strides;
};

/// Rows of the kept dimensions' innermost run are added up; columns are taken in blocks.
void sum_columns(const Nest& kept, const Nest& gone, char* base, char* out, DType dtype) {
  std::int64_t item = item_size(dtype);
  std::int64_t run = kept.ndim ? kept.sizes[0] : 1, lines = kept.numel / run;
  std::int64_t blocks = (run + column_block - 1) / column_block;
  std::int64_t grain = std::max<std::int64_t>(1, (1 << 15) / std::max<std::int64_t>(1, gone.numel * std::min(run, column_block)));
  parallel_for(lines * blocks, grain, [&](std::int64_t begin, std::int64_t end) {
    alignas(64) char partial[column_block * 16];
    for (std::int64_t k = begin; k < end; ++k) {
      std::int64_t line = k / blocks, column = k % blocks * column_block, n = std::min(column_block, run - column);
      char* address[2] = {base, out};
      std::int64_t rest = line;
      for (int d = 1; d < kept.ndim; ++d) {
        for (int o = 0; o < 2; ++o) address[o] += rest % kept.sizes[d] * kept.steps[d][o];
        rest /= kept.sizes[d];
      }
      char* from = address[0] + column * kept.steps[0][0];
      char* to = address[1] + column * kept.steps[0][1];
      std::memset(to, 0, std::size_t(n * item));
      std::int64_t in_partial = 0;
      std::memset(partial, 0, std::size_t(n * item));
      gone.run(&from, 0, gone.numel, [&](char** p, std::int64_t count, const std::int64_t* steps) {
        for (std::int64_t i = 0; i < count; ++i) {
          build().add_line(dtype, partial, p[0] + i * steps[0], n, kept.steps[0][0]);
          if (++in_partial == row_block) {
            build().add_line(dtype, to, partial, n, item);
            std::memset(partial, 0, std::size_t(n * item));
            in_partial = 0;
          }
        }
      });
      if (in_partial) build().add_line(dtype, to, partial, n, item);
    }
  });
}

}  // namespace

void reduce_sum(const Tensor& t, std::uint64_t reduced, Tensor& out) {
  DType dtype = t.dtype;
  std::int64_t item = item_size(dtype);
  char* base = const_cast<char*>(reinterpret_cast<const char*>(t.read()));
  char* to = reinterpret_cast<char*>(out.write());
  if (out.numel == 0) return;
  if (t.numel == 0) {
    std::memset(to, 0, std::size_t(out.numel * item));
    return;
  }
  Split s;
  for (int i = 0; i < t.ndim; ++i) {
    bool gone = (reduced >> i) & 1;
    (gone ? s.gone_sizes : s.kept_sizes).push_back(t.size(i));
    (gone ? s.gone_strides : s.kept_strides).push_back(t.stride(i));
  }
  const std::int64_t* gone_strides[1] = {s.gone_strides.data()};
  Nest gone(s.gone_sizes, gone_strides, &item, 1);
  if (out.numel == 1) return sum_all(gone, base, dtype, to);
  Dims row_major = contiguous_strides(s.kept_sizes);
  const std::int64_t* kept_strides[2] = {s.kept_strides.data(), row_major.data()};
  std::int64_t items[2] = {item, item};
  Nest kept(s.kept_sizes, kept_strides, items, 2);
  bool columns = kept.ndim && kept.steps[0][1] == item && kept.sizes[0] >= 8 && std::abs(kept.steps[0][0]) < std::abs(gone.steps[0][0]);
  if (columns) return sum_columns(kept, gone, base, to, dtype);
  char* both[2] = {base, to};
  parallel_for(kept.numel, std::max<std::int64_t>(1, (1 << 15) / gone.numel), [&](std::int64_t begin, std::int64_t end) {
    kept.run(both, begin, end, [&](char** p, std::int64_t n, const std::int64_t* steps) {
      for (std::int64_t i = 0; i < n; ++i) sum_nest(gone, p[0] + i * steps[0], dtype, p[1] + i * steps[1]);
    });
  });
}

}  // namespace rushlight
