#include "kernels/softmax.h"

#include <algorithm>

#include "kernels/cpu.h"
#include "kernels/parallel.h"

namespace rushlight {

#define RUSHLIGHT_DECLARE(isa)  \
  namespace isa {               \
  SoftmaxBuild softmax_build(); \
  }
RUSHLIGHT_FOR_EACH_ISA(RUSHLIGHT_DECLARE)

namespace {

const SoftmaxBuild& build() {
  static const SoftmaxBuild chosen = RUSHLIGHT_BEST(softmax_build());
  return chosen;
}

/// Calls f(offset, out, width) for every line, or strip of lines: where it begins in the tensor, and in the results
/// that have one element per line (both in elements).
template <class F>
void for_strips(const Block& b, F&& f) {
  std::int64_t strips = (b.inner + softmax_strip - 1) / softmax_strip, width = std::min(b.inner, softmax_strip);
  std::int64_t work = std::max<std::int64_t>(1, b.n * width);
  parallel_for(
      b.outer * strips, std::max<std::int64_t>(1, (1 << 13) / work), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t k = begin; k < end; ++k) {
          std::int64_t block = k / strips, column = k % strips * softmax_strip;
          f(block * b.n * b.inner + column, block * b.inner + column, std::min(softmax_strip, b.inner - column));
        }
      });
}

}  // namespace

void softmax(SoftmaxKind kind, DType dtype, const Block& b, const void* x, void* y) {
  std::int64_t item = item_size(dtype);
  for_strips(b, [&](std::int64_t at, std::int64_t, std::int64_t width) {
    build().forward(kind, dtype, static_cast<const char*>(x) + at * item, static_cast<char*>(y) + at * item, b.n,
                    b.inner, width);
  });
}

void softmax_vjp(SoftmaxKind kind, DType dtype, const Block& b, const void* y, const void* g, void* dx) {
  std::int64_t item = item_size(dtype);
  for_strips(b, [&](std::int64_t at, std::int64_t, std::int64_t width) {
    build().vjp(kind, dtype, static_cast<const char*>(y) + at * item, static_cast<const char*>(g) + at * item,
                static_cast<char*>(dx) + at * item, b.n, b.inner, width);
  });
}

void softmax_normalisers(DType dtype, const Block& b, const void* x, void* largest, void* log_sum, bool finite) {
  std::int64_t item = item_size(dtype);
  for_strips(b, [&](std::int64_t at, std::int64_t line, std::int64_t width) {
    build().normalisers(dtype, static_cast<const char*>(x) + at * item, static_cast<char*>(largest) + line * item,
                        static_cast<char*>(log_sum) + line * item, finite, b.n, b.inner, width);
  });
}

void cross_entropy_vjp(DType dtype, const Block& b, const CrossEntropyVjp& v) {
  for_strips(b, [&](std::int64_t at, std::int64_t line, std::int64_t width) {
    build().cross_entropy_vjp(dtype, v, at, line, b.n, b.inner, width);
  });
}

}  // namespace rushlight
