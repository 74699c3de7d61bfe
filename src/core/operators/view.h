// Views: other shapes, orders and windows of the same numbers.
#pragma once

#include "tensor/tensor.h"

namespace rushlight {

/// Strides with which `t` is read over `sizes` (0 along broadcast dimensions).
Dims broadcast_strides(const Tensor& t, IntSpan sizes);

/// A bit for each named dimension; refuses repeated ones.
std::uint64_t dim_mask(IntSpan dims, int ndim);
/// Sizes with one -1 filled in.
Dims infer_size(IntSpan wanted, std::int64_t numel);

TensorRef expand(const Tensor& t, IntSpan sizes);
TensorRef view(const Tensor& t, IntSpan sizes);
TensorRef reshape(const Tensor& t, IntSpan sizes);
TensorRef permute(const Tensor& t, IntSpan dims);
TensorRef transpose(const Tensor& t, std::int64_t a, std::int64_t b);
TensorRef select(const Tensor& t, std::int64_t dim, std::int64_t index);
TensorRef slice(const Tensor& t, std::int64_t dim, std::int64_t start, std::int64_t end, std::int64_t step);
TensorRef narrow(const Tensor& t, std::int64_t dim, std::int64_t start, std::int64_t length);
TensorRef squeeze(const Tensor& t, std::int64_t dim);
TensorRef unsqueeze(const Tensor& t, std::int64_t dim);
TensorRef as_strided(const Tensor& t, IntSpan sizes, IntSpan strides, std::int64_t offset);
TensorRef detach(const Tensor& t);
/// A view of the whole tensor, in the graph.
TensorRef alias_view(const Tensor& t);
TensorRef diagonal(const Tensor& t, std::int64_t offset, std::int64_t dim1, std::int64_t dim2);
/// Windows of `size` elements every `step` along a dimension, shown along a new last one.
TensorRef unfold(const Tensor& t, std::int64_t dim, std::int64_t size, std::int64_t step);
TensorList unbind(const Tensor& t, std::int64_t dim);
/// Consecutive parts of these lengths.
TensorList split_with_sizes(const Tensor& t, const Dims& lengths, std::int64_t dim);
TensorList split(const Tensor& t, std::int64_t length, std::int64_t dim);
TensorList chunk(const Tensor& t, std::int64_t chunks, std::int64_t dim);

/// Zeros with the last dimension of `t` on a diagonal of two dimensions.
TensorRef diag_embed(const Tensor& t, std::int64_t offset, std::int64_t dim1, std::int64_t dim2);

// derivatives of views, differentiable themselves

/// Sums over broadcast dimensions until the shape is `sizes`; where `has_rows`, for each index of the first dimension.
TensorRef sum_to_size(const Tensor& t, IntSpan sizes, bool has_rows = false);
/// Zeros of `sizes` with `g` at an index or window.
TensorRef select_backward(const Tensor& g, IntSpan sizes, int dim, std::int64_t index);
TensorRef slice_backward(const Tensor& g, IntSpan sizes, int dim, std::int64_t start, std::int64_t end,
                         std::int64_t step);
TensorRef diagonal_backward(const Tensor& g, IntSpan sizes, std::int64_t offset, int dim1, int dim2);
TensorRef unfold_backward(const Tensor& g, IntSpan sizes, int dim, std::int64_t size, std::int64_t step);
/// What as_strided(x) of geometry (sizes, strides, offset) sends back to x of geometry (x_sizes, x_strides, x_offset).
TensorRef as_strided_backward(const Tensor& g, IntSpan x_sizes, IntSpan x_strides, std::int64_t x_offset, IntSpan sizes,
                              IntSpan strides, std::int64_t offset);
/// A copy of `t` with `window` written at the geometry.
TensorRef as_strided_scatter(const Tensor& t, const Tensor& window, IntSpan sizes, IntSpan strides,
                             std::int64_t offset);
/// The numbers of `t` laid out with exactly these strides.
TensorRef to_geometry(const Tensor& t, IntSpan sizes, IntSpan strides);

}  // namespace rushlight
