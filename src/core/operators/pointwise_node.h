// The nodes of pointwise operators: what is saved, and the derivative as one fused pass.
#pragma once

#include "operators/pointwise.h"

namespace rushlight {

/// The operator's node: saved tensors as the derivative expressions ask, numbers beside them.
struct PointwiseNode : Node {
  PointwiseOp* op;
  Derivatives* derivatives;  ///< of the operator, for the type of the computation
  DType compute;
  DType in_dtype[4];
  std::uint8_t n_in;
  std::int8_t slot[5];  ///< where input j (n_in: the result) is saved; -1: not
  Scalar numbers[4];    ///< operands that are numbers
  bool is_number[4];
  Dims* sizes_of[4];  ///< owned: sizes of an input that was broadcast, else null
};

void pointwise_destroy(Node* node) noexcept;
void pointwise_apply(Node* node, TensorRef* grads, TensorRef* results);
void pointwise_apply_rows(Node* node, TensorRef* grads, TensorRef* results, std::int64_t count);

/// The node of `out = op(in)`, before `out` is changed in place if it is an input. Null where nothing requires grad.
Ref<Node> make_node(PointwiseOp& op, const Operand* in, DType compute, const Tensor* out, IntSpan out_sizes);

/// The one layout of these tensors, each of the sizes of the first; Rows where they have none in common. Null ones and
/// single elements are left aside, and these are brought into rows now: later, they might move the others' numbers.
Arrangement common_layout(const Tensor* const* tensors, int n);
inline char* laid_address(const Tensor& t) { return reinterpret_cast<char*>(t.storage->read_laid()); }

/// Of a kernel for operands of these types.
inline std::uint64_t key_of(const DType* in, int n, DType compute, DType out) {
  std::uint64_t key = 1;
  for (int i = 0; i < n; ++i) key = key << 4 | std::uint64_t(in[i]);
  return (key << 4 | std::uint64_t(compute)) << 5 | std::uint64_t(out);
}

}  // namespace rushlight
