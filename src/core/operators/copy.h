// Moving numbers: between layouts, types and tensors.
#pragma once

#include "tensor/tensor.h"

namespace rushlight {

// without history, for kernels and derivatives

/// to = from, broadcast and converted.
void copy_numbers(Tensor& to, const Tensor& from);
/// to += from, of one shape.
void add_numbers(Tensor& to, const Tensor& from);
/// A copy with the same memory order where that is dense.
TensorRef copy_of(const Tensor& t);
/// Row-major: the tensor itself where it is, else a copy without history.
TensorRef packed(const Tensor& t);
Scalar item(const Tensor& t);

// recorded

TensorRef clone(const Tensor& t);
TensorRef contiguous(const Tensor& t);
/// The tensor in another type; itself where it has it already.
TensorRef cast(const Tensor& t, DType dtype);
/// A copy even where the type is the same.
TensorRef convert(const Tensor& t, DType dtype, bool copy);
/// self.copy_(from)
void copy_into(Tensor& self, const Tensor& from);
TensorRef add(const Tensor& a, const Tensor& b);
/// The numbers of `t`, which are about to be changed, with its history and tangents.
TensorRef old_numbers(const Tensor& t);
/// Changes `self` in place to what an operation made of its old numbers. `records`: so will be the change.
void overwrite(Tensor& self, const Tensor& old, const Tensor& result, bool records, const char* operation);

// the checks of out= arguments

struct Operand;
/// Refuses operands that carry tangents: forward mode has no out=.
void refuse_tangents(const std::string& operation, const Tensor& out, const Operand* in, int n);
void check_out(const Tensor& out, DType result, const Operand* in, int n, const char* operation);
/// Gives `out` the result's shape, with a warning where it held numbers of another shape.
void resize_out(Tensor& out, IntSpan sizes);
/// Gives `t` other sizes, in row-major order, growing its storage where need be; equal sizes leave it as it is.
void set_sizes(Tensor& t, IntSpan sizes);
void refuse_overlapping_write(const Tensor& t);
/// Refuses to read what is written over: some elements of both, but not the same ones in the same order, share memory.
[[noreturn]] void fail_shared_memory();

}  // namespace rushlight
