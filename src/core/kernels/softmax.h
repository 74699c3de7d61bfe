// Softmax, its logarithm and its normaliser along a dimension, and their derivatives.
//
// The tensor is `outer` blocks of `n` rows of `inner` contiguous elements; lines run across the rows of a block, and
// are contiguous where inner is 1. float and double.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"

namespace rushlight {

enum class SoftmaxKind : std::uint8_t { Softmax, LogSoftmax };

struct Block {
  std::int64_t outer, n, inner;
};

/// y = softmax(x), or its logarithm.
void softmax(SoftmaxKind kind, DType dtype, const Block& shape, const void* x, void* y);
/// dx from y and the gradient g of y: y (g - sum(g y)), or g - exp(y) sum(g).
void softmax_vjp(SoftmaxKind kind, DType dtype, const Block& shape, const void* y, const void* g, void* dx);
/// What makes a line a softmax (outer x inner of each): its largest element and log(sum(exp(x - largest))). With
/// `finite` an infinite largest counts as 0, so that their sum is log(sum(exp(x))) there too.
void softmax_normalisers(DType dtype, const Block& shape, const void* x, void* largest, void* log_sum, bool finite);

/// The gradient of a cross entropy with respect to x: per line a * softmax(x) - d * weight (1 where null), or zeros
/// where both factors are 0. largest, log_sum, a, d: outer x inner each; weight: n.
struct CrossEntropyVjp {
  const void *x, *largest, *log_sum, *a, *d, *weight;
  void* dx;
};
void cross_entropy_vjp(DType dtype, const Block& shape, const CrossEntropyVjp& v);

/// One line or a strip of `width` lines: what each instruction set's build offers.
struct SoftmaxBuild {
  void (*forward)(SoftmaxKind kind, DType dtype, const char* x, char* y, std::int64_t n, std::int64_t inner,
                  std::int64_t width);
  void (*vjp)(SoftmaxKind kind, DType dtype, const char* y, const char* g, char* dx, std::int64_t n, std::int64_t inner,
              std::int64_t width);
  void (*normalisers)(DType dtype, const char* x, char* largest, char* log_sum, bool finite, std::int64_t n,
                      std::int64_t inner, std::int64_t width);
  void (*cross_entropy_vjp)(DType dtype, const CrossEntropyVjp& v, std::int64_t at, std::int64_t line, std::int64_t n,
                            std::int64_t inner, std::int64_t width);
};
/// Lines that a strip has at most.
constexpr std::int64_t softmax_strip = 64;

}  // namespace rushlight
