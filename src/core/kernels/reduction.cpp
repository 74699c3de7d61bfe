#include "kernels/reduction.h"

#include <array>
#include <cstring>
#include <vector>

#include "kernels/cpu.h"
#include "kernels/nest.h"
#include "kernels/parallel.h"

namespace rushlight {

#define RUSHLIGHT_DECLARE(isa)                                                                              \
  namespace isa {                                                                                           \
  bool fold_sums(FoldKind, DType, Fold&);                                                                   \
  bool fold_choices(FoldKind, DType, Fold&);                                                                \
  void find_line(DType, const char*, std::int64_t, std::int64_t, const char*, std::int64_t*);               \
  void find_rows(DType, const char*, std::int64_t, std::int64_t, const char*, std::int64_t, std::int64_t*); \
  }
RUSHLIGHT_FOR_EACH_ISA(RUSHLIGHT_DECLARE)

namespace {

constexpr std::int64_t row_block = 128;     // rows joined into one partial row
constexpr std::int64_t column_block = 512;  // columns that stay in the cache meanwhile
constexpr std::int64_t chunk = 1 << 16;     // elements of a long fold that one thread takes at a time
constexpr std::int64_t few = 16;            // elements of a line that are not worth a fold of their own
constexpr std::int64_t grain = 1 << 15;     // elements below which one thread works alone

void fill_states(char* states, const Fold& f, std::int64_t n) {
  visit_width(item_size(f.state), [&]<class W>() {
    W identity;
    std::memcpy(&identity, f.identity, sizeof identity);
    std::fill_n(reinterpret_cast<W*>(states), n, identity);
  });
}

/// Where numbers come from: memory, ...
struct Stored {
  static constexpr bool keeps_lock = false;
  const char* get(const char* p, std::int64_t) const { return p; }
};

/// ... or somebody who makes them when they are wanted. Addresses count from `origin` then.
struct Made {
  static constexpr bool keeps_lock = true;
  const Maker& maker;
  std::int64_t item;
  static char* origin() { return reinterpret_cast<char*>(std::uintptr_t(1) << 12); }
  const char* get(const char* p, std::int64_t n) const { return maker.make(maker.state, (p - origin()) / item, n); }
};

/// The fold of a whole nest of one operand, by lines and blocks, partial results joined pairwise.
template <class Source>
void fold_nest(const Fold& f, const Source& source, const Nest& nest, char* base, const char* centre, char* out) {
  if (nest.ndim <= 1 && nest.numel <= line_block)
    return f.line(source.get(base, nest.numel), nest.numel, nest.steps[0][0], centre, out);
  std::int64_t item = item_size(f.state);
  alignas(16) char stack[66 * 16];  // partial results of 2^k blocks
  std::uint64_t blocks = 0;
  alignas(16) char partial[16];
  auto push = [&] {
    int level = 0;
    for (std::uint64_t b = blocks; b & 1; b >>= 1, ++level) f.merge(partial, stack + level * item, 1);
    std::memcpy(stack + level * item, partial, std::size_t(item));
    ++blocks;
  };
  char* bases[1] = {base};
  nest.run(bases, 0, nest.numel, [&](char** p, std::int64_t n, const std::int64_t* steps) {
    for (std::int64_t at = 0; at < n; at += line_block) {
      std::int64_t count = std::min(line_block, n - at);
      f.line(source.get(p[0] + at * steps[0], count), count, steps[0], centre, partial);
      push();
    }
  });
  std::memcpy(out, f.identity, std::size_t(item));
  for (int level = 0; blocks >> level; ++level)
    if ((blocks >> level) & 1) f.merge(out, stack + level * item, 1);
}

/// One long fold: fixed chunks in parallel, their results joined in order.
template <class Source>
void fold_all(const Fold& f, const Source& source, const Nest& nest, char* base, const char* centre, char* out) {
  std::int64_t parts = (nest.numel + chunk - 1) / chunk, item = item_size(f.state);
  if (parts <= 1 || nest.ndim > 1) return fold_nest(f, source, nest, base, centre, out);
  std::vector<std::array<std::byte, 16>> results(std::size_t(parts), std::array<std::byte, 16>{});
  auto fold_parts = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t k = begin; k < end; ++k) {
      Nest part = nest;
      part.numel = part.sizes[0] = std::min(chunk, nest.numel - k * chunk);
      fold_nest(f, source, part, base + k * chunk * nest.steps[0][0], centre,
                reinterpret_cast<char*>(results[std::size_t(k)].data()));
    }
  };
  parallel_for(parts, 1, fold_parts, Source::keeps_lock);
  std::memcpy(out, f.identity, std::size_t(item));
  for (auto& r : results) f.merge(out, reinterpret_cast<const char*>(r.data()), 1);
}

/// A tensor's memory as two nests: over the kept dimensions (the input, then `others` row-major operands) and over
/// those that go (the input).
struct Split {
  Nest kept, gone;
  std::int64_t item;
  Split(const Tensor& t, std::uint64_t reduced, const std::int64_t* items, int others)
      : Split(t.sizes(), t.strides(), t.item_size(), reduced, items, others) {}
  Split(IntSpan sizes, IntSpan steps, std::int64_t bytes, std::uint64_t reduced, const std::int64_t* items, int others)
      : item(bytes) {
    Dims kept_sizes, kept_strides, gone_sizes, gone_strides;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      bool goes = (reduced >> i) & 1;
      (goes ? gone_sizes : kept_sizes).push_back(sizes[i]);
      (goes ? gone_strides : kept_strides).push_back(steps[i]);
    }
    const std::int64_t* strides[3] = {gone_strides.data()};
    gone = Nest(gone_sizes, strides, &item, 1);
    Dims row_major = contiguous_strides(kept_sizes);
    strides[0] = kept_strides.data();
    strides[1] = strides[2] = row_major.data();
    std::int64_t all[3] = {item, items[0], items[1]};
    kept = Nest(kept_sizes, strides, all, 1 + others);
  }
  /// True where the kept dimensions' innermost run is nearer in memory than what is folded, or where little is folded:
  /// whole rows are joined then.
  bool by_rows(std::int64_t out_item) const {
    return kept.ndim && kept.steps[0][1] == out_item && kept.sizes[0] >= 8 &&
           (std::abs(kept.steps[0][0]) < std::abs(gone.steps[0][0]) ||
            (gone.numel <= few && kept.sizes[0] >= column_block / 8));
  }
  /// Many rows of few columns, one behind the other.
  bool is_narrow(std::int64_t out_item) const {
    return kept.ndim && kept.steps[0][1] == out_item && kept.sizes[0] <= column_block / 8 && kept.steps[0][0] == item &&
           gone.ndim == 1 && gone.steps[0][0] == kept.sizes[0] * item && gone.numel >= 2 * column_block / kept.sizes[0];
  }
  /// Calls f(pointers, n) over the runs of kept indices in blocks of columns, in parallel.
  template <class F>
  void for_columns(char* const* base, F&& f, bool keep_lock = false) const {
    std::int64_t run = kept.sizes[0], lines = kept.numel / run, blocks = (run + column_block - 1) / column_block;
    std::int64_t work = gone.numel * std::min(run, column_block);
    auto some = [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t k = begin; k < end; ++k) {
        std::int64_t column = k % blocks * column_block, rest = k / blocks;
        char* address[3];
        for (int o = 0; o < kept.n_operands; ++o) address[o] = base[o] + column * kept.steps[0][o];
        for (int d = 1; d < kept.ndim; ++d) {
          for (int o = 0; o < kept.n_operands; ++o) address[o] += rest % kept.sizes[d] * kept.steps[d][o];
          rest /= kept.sizes[d];
        }
        f(address, std::min(column_block, run - column));
      }
    };
    parallel_for(lines * blocks, std::max<std::int64_t>(1, grain / std::max<std::int64_t>(1, work)), some, keep_lock);
  }
};

/// Whole rows joined into partial rows, those into the result. operands: input, states, centres.
template <class Source>
void fold_columns(const Fold& f, const Source& source, const Split& s, char* const* base, bool centred) {
  auto fold_some = [&](char** address, std::int64_t n) {
    alignas(64) char partial[column_block * 16];
    std::int64_t in_partial = 0;
    fill_states(address[1], f, n);
    s.gone.run(address, 0, s.gone.numel, [&](char** p, std::int64_t count, const std::int64_t* steps) {
      for (std::int64_t i = 0; i < count; ++i) {
        if (in_partial == 0) fill_states(partial, f, n);
        const char* row = source.get(p[0] + i * steps[0], n);
        f.rows(partial, row, n, s.kept.steps[0][0], centred ? address[2] : nullptr);
        if (++in_partial == row_block) {
          f.merge(address[1], partial, n);
          in_partial = 0;
        }
      }
    });
    if (in_partial) f.merge(address[1], partial, n);
  };
  s.for_columns(base, fold_some, Source::keeps_lock);
}

/// Rows of few columns, one behind the other in memory: many of them are folded as one, and what comes of that by
/// columns. Chunks of rows in parallel, their results joined in order.
template <class Source>
void fold_narrow(const Fold& f, const Source& source, const Split& s, char* const* base, bool centred) {
  std::int64_t columns = s.kept.sizes[0], together = column_block / columns, width = together * columns;
  std::int64_t rows = s.gone.numel, in_chunk = row_block * together, chunks = (rows + in_chunk - 1) / in_chunk;
  std::int64_t item = s.kept.steps[0][0], state = item_size(f.state), outer = s.kept.numel / columns;
  std::vector<std::array<std::byte, 16>> results(std::size_t(chunks > 1 ? outer * chunks * columns : 0));
  auto address_of_outer = [&](std::int64_t k, int operand) {
    char* p = base[operand];
    for (int d = 1; d < s.kept.ndim; ++d) {
      p += k % s.kept.sizes[d] * s.kept.steps[d][operand];
      k /= s.kept.sizes[d];
    }
    return p;
  };
  auto fold_chunk = [&](std::int64_t k) {
    alignas(64) char partial[column_block * 16];
    alignas(64) char centres[column_block * 16];
    fill_states(partial, f, width);
    if (centred)
      for (std::int64_t i = 0; i < together; ++i)
        std::memcpy(centres + i * columns * state, address_of_outer(k / chunks, 2), std::size_t(columns * state));
    std::int64_t first = k % chunks * in_chunk, last = std::min(rows, first + in_chunk);
    char* from = address_of_outer(k / chunks, 0) + first * columns * item;
    for (std::int64_t row = first; row < last; row += together, from += width * item) {
      std::int64_t n = std::min(together, last - row) * columns;
      f.rows(partial, source.get(from, n), n, item, centred ? centres : nullptr);
    }
    for (std::int64_t i = 1; i < together; ++i) f.merge(partial, partial + i * columns * state, columns);
    char* to = chunks > 1 ? reinterpret_cast<char*>(results.data() + k * columns) : address_of_outer(k, 1);
    std::memcpy(to, partial, std::size_t(columns * state));
  };
  auto fold_some = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t k = begin; k < end; ++k) fold_chunk(k);
  };
  std::int64_t work = std::min(rows, in_chunk) * columns;
  parallel_for(outer * chunks, std::max<std::int64_t>(1, grain / work), fold_some, Source::keeps_lock);
  for (std::int64_t k = 0; k < outer && chunks > 1; ++k) {
    char* out = address_of_outer(k, 1);
    fill_states(out, f, columns);
    for (std::int64_t i = 0; i < chunks; ++i)
      f.merge(out, reinterpret_cast<char*>(results.data() + (k * chunks + i) * columns), columns);
  }
}

/// base: the numbers, the results, and centres or null.
template <class Source>
void reduce_from(const Fold& f, const Source& source, const Split& s, char* const* base) {
  char *out = base[1], *centres = base[2];
  if (s.kept.numel == 0) return;
  if (s.gone.numel == 0) return fill_states(out, f, s.kept.numel);
  if (s.kept.numel == 1) return fold_all(f, source, s.gone, base[0], centres, out);
  if (s.is_narrow(item_size(f.state))) return fold_narrow(f, source, s, base, centres);
  if (s.by_rows(item_size(f.state))) return fold_columns(f, source, s, base, centres);
  auto lines = [&](std::int64_t begin, std::int64_t end) {
    s.kept.run(base, begin, end, [&](char** p, std::int64_t n, const std::int64_t* steps) {
      for (std::int64_t i = 0; i < n; ++i)
        fold_nest(f, source, s.gone, p[0] + i * steps[0], centres ? p[2] + i * steps[2] : nullptr, p[1] + i * steps[1]);
    });
  };
  parallel_for(s.kept.numel, std::max<std::int64_t>(1, grain / s.gone.numel), lines, Source::keeps_lock);
}

char* address_of(const Tensor& t) { return const_cast<char*>(reinterpret_cast<const char*>(t.read())); }

}  // namespace

const Fold& fold(FoldKind kind, DType type, const char* operation) {
  struct Table {
    Fold folds[fold_kinds][dtype_count];
    Table() {
      for (int k = 0; k < fold_kinds; ++k)
        for (int d = 0; d < dtype_count; ++d) {
          Fold& f = folds[k][d];
          if (!RUSHLIGHT_BEST(fold_sums(FoldKind(k), DType(d), f)))
            RUSHLIGHT_BEST(fold_choices(FoldKind(k), DType(d), f));
        }
    }
  };
  static const Table table;
  const Fold& f = table.folds[int(kind)][int(type)];
  if (!f.line) [[unlikely]]
    fail(ErrorKind::NotImplemented, '"', operation, "\" not implemented for '", info(type).scalar_name, "'");
  return f;
}

void reduce(const Fold& f, const Tensor& t, std::uint64_t reduced, std::byte* out_, const std::byte* centres_) {
  char *out = reinterpret_cast<char*>(out_), *centres = const_cast<char*>(reinterpret_cast<const char*>(centres_));
  std::int64_t item = item_size(f.state), items[2] = {item, item};
  Split s(t, reduced, items, centres ? 2 : 1);
  char* base[3] = {s.kept.numel && s.gone.numel ? address_of(t) : nullptr, out, centres};
  reduce_from(f, Stored(), s, base);
}

namespace {
Split split_made(const Fold& f, IntSpan sizes, std::int64_t item, std::uint64_t reduced) {
  std::int64_t states[2] = {item_size(f.state), item_size(f.state)};
  return Split(sizes, contiguous_strides(sizes), item, reduced, states, 1);
}
}  // namespace

MadeOrder order_made(const Fold& f, IntSpan sizes, std::int64_t item, std::uint64_t reduced, std::int64_t least) {
  Split s = split_made(f, sizes, item, reduced);
  bool by_columns = s.kept.numel != 1 && s.by_rows(item_size(f.state));
  const Nest& inner = by_columns ? s.kept : s.gone;
  if (!s.kept.numel || !s.gone.numel || inner.steps[0][0] != item || inner.sizes[0] < least) return MadeOrder::None;
  return by_columns ? MadeOrder::ByColumns : MadeOrder::AsTheyLie;
}

void reduce_made(const Fold& f, const Maker& maker, IntSpan sizes, std::int64_t item, std::uint64_t reduced,
                 std::byte* out) {
  char* base[3] = {Made::origin(), reinterpret_cast<char*>(out), nullptr};
  reduce_from(f, Made{maker, item}, split_made(f, sizes, item, reduced), base);
}

void find_first(const Tensor& t, int dim, const std::byte* values, std::int64_t* places) {
  std::int64_t items[2] = {sizeof(std::int64_t), t.item_size()};
  Split s(t, t.ndim ? std::uint64_t(1) << dim : 0, items, 2);
  if (s.kept.numel == 0) return;
  char* base[3] = {address_of(t), reinterpret_cast<char*>(places),
                   const_cast<char*>(reinterpret_cast<const char*>(values))};
  std::int64_t length = s.gone.numel, step = s.gone.steps[0][0];
  if (s.by_rows(items[0])) {
    s.for_columns(base, [&](char** p, std::int64_t n) {
      auto* place = reinterpret_cast<std::int64_t*>(p[1]);
      std::fill_n(place, n, std::int64_t(-1));
      for (std::int64_t row = 0; row < length; ++row)
        RUSHLIGHT_BEST(find_rows(t.dtype, p[0] + row * step, n, s.kept.steps[0][0], p[2], row, place));
    });
    return;
  }
  parallel_for(s.kept.numel, std::max<std::int64_t>(1, grain / length), [&](std::int64_t begin, std::int64_t end) {
    s.kept.run(base, begin, end, [&](char** p, std::int64_t n, const std::int64_t* steps) {
      for (std::int64_t i = 0; i < n; ++i)
        RUSHLIGHT_BEST(find_line(t.dtype, p[0] + i * steps[0], length, step, p[2] + i * steps[2],
                                 reinterpret_cast<std::int64_t*>(p[1] + i * steps[1])));
    });
  });
}

}  // namespace rushlight
