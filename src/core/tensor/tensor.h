// The tensor: a strided window on a storage, and what autograd knows of it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tensor/dims.h"
#include "tensor/dtype.h"
#include "tensor/object.h"
#include "tensor/scalar.h"
#include "tensor/storage.h"

namespace rushlight {

struct Node;  // autograd/node.h
struct AutogradMeta;

enum class MemoryFormat : std::uint8_t { Absent, Contiguous, Preserve, ChannelsLast, ChannelsLast3d };

enum TensorFlag : std::uint16_t {
  RequiresGrad = 1,   ///< set by the user; a tensor with a grad_fn requires grad without it
  Contiguous = 2,     ///< strides are those of row-major order (kept true by set_geometry)
  WrappedNumber = 4,  ///< a Python number in tensor's clothes: it takes part in promotion as a number
  Inference = 8,      ///< made under inference_mode
  Volatile = 16,      ///< Variable(volatile=True): nothing computed from it is recorded
  RetainsGrad = 32,
  IsParameter = 64,
};

struct Tensor : Object {
  void* dict;           ///< Python's attributes of this tensor
  void* weakrefs;       ///< Python's weak references to it
  Storage* storage;     ///< owned; never null
  std::int64_t offset;  ///< in elements
  std::int64_t numel;
  std::int64_t* dims;       ///< sizes, then strides: inline_dims or a heap array
  AutogradMeta* meta;       ///< owned; null until needed
  Node* grad_fn_;           ///< owned; through grad_fn() where the tensor may be a view
  std::uint32_t output_nr;  ///< which output of grad_fn this is
  DType dtype;
  std::uint8_t ndim;
  std::uint16_t flags;
  std::int64_t inline_dims[8];

  IntSpan sizes() const { return {dims, ndim}; }
  IntSpan strides() const { return {dims + ndim, ndim}; }
  std::int64_t size(int i) const { return dims[i]; }
  std::int64_t stride(int i) const { return dims[ndim + i]; }
  bool has(TensorFlag f) const { return flags & f; }
  void set(TensorFlag f, bool on) { flags = std::uint16_t(on ? flags | f : flags & ~f); }
  bool is_contiguous() const { return flags & Contiguous; }
  std::int64_t item_size() const { return rushlight::item_size(dtype); }

  /// The first element, for reading; for writing (in-place operators also bump the version).
  const std::byte* read() const { return storage->read() + offset * item_size(); }
  std::byte* write() const { return storage->write() + offset * item_size(); }
  std::byte* expose() const { return storage->expose() + offset * item_size(); }
  template <class T>
  const T* read_as() const {
    return reinterpret_cast<const T*>(read());
  }
  template <class T>
  T* write_as() const {
    return reinterpret_cast<T*>(write());
  }

  std::uint32_t version() const { return storage->version; }
  void bump_version() { ++storage->version; }

  // autograd (autograd/variable.cpp where not inline)
  bool requires_grad() const { return (flags & RequiresGrad) || (meta ? slow_requires_grad() : grad_fn_ != nullptr); }
  Node* grad_fn() const { return meta ? slow_grad_fn() : grad_fn_; }
  bool is_leaf() const { return grad_fn() == nullptr; }
  bool slow_requires_grad() const;  ///< a view does where its base does
  Node* slow_grad_fn() const;       ///< brings the history of a view up to date with its base
};

/// Equal shapes: a loop, since a call of memcmp costs more than two or three sizes.
inline bool same_sizes(const Tensor& a, const Tensor& b) {
  if (a.ndim != b.ndim) return false;
  for (int i = 0; i < a.ndim; ++i)
    if (a.dims[i] != b.dims[i]) return false;
  return true;
}

using TensorRef = Ref<Tensor>;
using TensorList = std::vector<TensorRef>;

/// embedding: memory for a tensor, count 1, with header, dict and weakrefs ready and the rest unset; not yet visible to
/// the collector. track() makes it so.
Tensor* tensor_allocate();
void object_track(Object* object) noexcept;

/// Frees what a tensor owns (called by the embedding before it frees the memory).
void tensor_clear(Tensor* t) noexcept;
int tensor_visit(Tensor* t, Visitor visit);

/// Gives the tensor sizes and strides, and recomputes numel and Contiguous.
void set_geometry(Tensor* t, IntSpan sizes, IntSpan strides);

/// A tensor over the storage, without history.
TensorRef make_tensor(Ref<Storage> storage, DType dtype, IntSpan sizes, IntSpan strides, std::int64_t offset);
/// Uninitialised, row-major.
TensorRef empty(IntSpan sizes, DType dtype);
TensorRef empty_strided(IntSpan sizes, IntSpan strides, DType dtype);
/// Uninitialised with the memory order of `like` where that is dense (what an operator's result gets).
TensorRef empty_like(const Tensor& like, DType dtype);
/// The same numbers and geometry, no history: shares the version counter.
TensorRef alias(const Tensor& t);

/// True where distinct indices reach distinct memory and no gap lies between (some permutation of row-major).
bool is_dense(const Tensor& t);
/// True where the memory order is the format's (channels_last: N, H, W, C).
bool is_contiguous_in(const Tensor& t, MemoryFormat format);
/// True where two indices of one tensor reach the same memory (expanded tensors).
bool has_internal_overlap(const Tensor& t);
enum class Overlap { None, Full, Partial };
Overlap memory_overlap(const Tensor& a, const Tensor& b);

}  // namespace rushlight
