// Tensors of vmap. A batched tensor shows the sizes of one sample and holds the numbers of all samples in another
// tensor, whose first dimension is the batch; that one may be batched itself, by an outer vmap.
//
// It has no numbers of its own: its storage refuses to be read, so what does not know of batches fails instead of
// computing with one sample. Operators meet it where arguments are read: while a vmap is open (`batching.levels`), each
// entry from Python looks for it. Pointwise operators are then broadcasting, done here; every other operator has a
// batching rule in Python (src/rushlight/_vmap), which is called with the operator's overload and the values of the
// highest level, and applies the operator to them. Derivatives are recorded on the values, so they need no rules.
#pragma once

#include "python/operator.h"

namespace rushlight::python {

struct Batched : Tensor {
  Tensor* value;  ///< owned; the batch is its first dimension
  std::int64_t level;
};

extern PyTypeObject* batched_type;
void init_batched_type(PyObject* module);

/// What is open on this thread.
struct Batching {
  int levels = 0;      ///< vmaps
  int transforms = 0;  ///< transforms of any kind
};
extern thread_local Batching batching __attribute__((tls_model("initial-exec")));

inline bool is_batched(PyObject* o) { return Py_TYPE(o) == batched_type; }
inline bool is_batched(const Tensor* t) { return t && t->type == batched_type; }
inline Batched* batched_of(PyObject* o) { return static_cast<Batched*>(tensor_of(o)); }

/// Is one of these batched, or a tensor in one that is a tuple or list?
bool any_batched(PyObject* const* objects, Py_ssize_t n);
/// Wraps the tensors of a result, a tensor or a sequence of them.
PyObject* wrap_batched(PyObject* result, std::int64_t level);

/// Operands of a pointwise operator without their batches: the values, with dimensions of one where a level or a
/// leading dimension is missing, so that they broadcast as the samples do.
class BatchValues {
 public:
  BatchValues(const PointwiseOp& op, const Operand* in, int n);
  const Operand* in() const { return in_; }
  /// The value of the first operand, to be changed in place: it must have every level of the others.
  Tensor& target(const char* operation) const;
  PyObject* wrap(TensorRef result) const;

 private:
  Operand in_[4];
  TensorRef kept_[4];
  Dims levels_;
  const Tensor* first_;
  int ndim_ = 0;
};

inline bool any_batched(const Operand* in, int n) {
  for (int i = 0; i < n; ++i)
    if (is_batched(in[i].tensor)) return true;
  return false;
}

/// An overload of an operator, as batching rules get it: called with every parameter in order.
PyObject* overload_object(OperatorObject* op, std::size_t overload);
/// Applies the overload's rule to its arguments, all parameters in order.
PyObject* call_rule(OperatorObject* overload, PyObject* const* args, Py_ssize_t n);

/// What the package does for entries that are no operators (src/rushlight/_vmap); names as in _set_batching.
enum class BatchedEntry { Choose, GetItem, SetItem, Function, Backward, Count };
PyObject* batched_entry(BatchedEntry entry);

}  // namespace rushlight::python
