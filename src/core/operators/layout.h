// Layouts: orders of numbers in memory that a library of convolutions likes, kept behind the door to raw memory.
//
// A tensor over a storage with a layout says that it is row-major, and whoever reads it finds it so: Storage::read()
// rearranges the numbers, once. Operators that understand a layout ask layout_of() first and work on read_laid(); their
// results have it too. Since another thread's read may move the numbers, such kernels keep the interpreter lock.
#pragma once

#include "tensor/tensor.h"

namespace rushlight {

/// The layout of a tensor that is the whole of its storage, with the sizes that the layout speaks of; else Rows: then
/// read() is to be used.
Arrangement layout_of(const Tensor& t);
/// What a whole tensor of these sizes would have in that order; Rows where there is no such order, or nothing to move.
Arrangement channels_last(IntSpan sizes, DType dtype);
Arrangement blocked(IntSpan sizes, DType dtype);

/// Uninitialised, row-major to all who look, with its numbers in `layout`.
TensorRef empty_laid(IntSpan sizes, DType dtype, const Arrangement& layout);
/// Brings the numbers of a storage into another order (from rows, or to rows).
void rearrange(Storage* storage, const Arrangement& layout);
/// Brings a row-major tensor into `layout` where nobody can tell; false where somebody could, and nothing is done.
bool try_rearrange(const Tensor& t, const Arrangement& layout);
/// A new tensor like `t` with its numbers in `layout`.
TensorRef laid_copy(const Tensor& t, const Arrangement& layout);

/// Operands (null ones aside) that share a storage are read in rows: one storage has one order.
void settle_shared(std::initializer_list<const Tensor*> operands);

template <class T>
const T* read_laid_as(const Tensor& t) {
  return reinterpret_cast<const T*>(t.storage->read_laid());
}
template <class T>
T* write_laid_as(const Tensor& t) {
  return reinterpret_cast<T*>(t.storage->write_laid());
}

/// For tests and measurements.
struct LayoutStats {
  std::int64_t laid = 0;        ///< results made in a layout
  std::int64_t rearranged = 0;  ///< storages brought from one order into another
  std::int64_t in_library = 0;  ///< arrays that oneDNN brought into another order for one call
};
extern LayoutStats layout_stats;

}  // namespace rushlight
