// What the files of this room share: the Python side of tensors, nodes, operators and errors.
//
// Tensors and nodes are Python objects themselves (tensor/object.h), so wrapping is a cast. The types are made by hand
// with CPython's own interface, because they are the hot path; the rest of the module is bound with nanobind.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include <optional>
#include <string>

#include "autograd/engine.h"
#include "autograd/record.h"
#include "operators/operators.h"
#include "operators/registry.h"

namespace rushlight::python {

/// Thrown where a Python exception is set; carries it across C++ frames (and threads' ends) and back.
struct PythonError {
  PythonError() = default;
};

/// Sets the Python exception that belongs to the C++ exception in flight.
void set_error() noexcept;

/// Runs f, turning C++ exceptions into Python ones.
template <class F>
PyObject* guarded(F&& f) noexcept {
  try {
    return f();
  } catch (...) {
    set_error();
    return nullptr;
  }
}
template <class F>
int guarded_int(F&& f) noexcept {
  try {
    f();
    return 0;
  } catch (...) {
    set_error();
    return -1;
  }
}

/// An owned reference to a Python object.
class Owned {
 public:
  Owned() = default;
  explicit Owned(PyObject* p) : p_(p) {}  ///< takes over
  Owned(Owned&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  Owned& operator=(Owned&& o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~Owned() { Py_XDECREF(p_); }
  static Owned borrow(PyObject* p) {
    Py_XINCREF(p);
    return Owned(p);
  }
  PyObject* get() const { return p_; }
  PyObject* detach() { return std::exchange(p_, nullptr); }
  explicit operator bool() const { return p_; }
  operator PyObject*() const { return p_; }

 private:
  PyObject* p_ = nullptr;
};

/// Throws PythonError where a call failed.
inline PyObject* checked(PyObject* p) {
  if (!p) throw PythonError();
  return p;
}
inline void checked(int status) {
  if (status < 0) throw PythonError();
}

// the types
extern PyTypeObject* tensor_type;
extern PyTypeObject* node_type;
extern PyTypeObject* operator_type;
extern PyTypeObject* size_type;
extern PyTypeObject* dtype_type;
extern PyTypeObject* generator_type;
void init_named_types(PyObject* module);
void init_tensor_type(PyObject* module);
void init_node_type(PyObject* module);
void init_function_type(PyObject* module);
void init_operator_type(PyObject* module);
void init_engine(PyObject* module);
void init_tangents(PyObject* module);
void init_overrides(PyObject* module);
void init_offered_type(PyObject* module);
void init_pointwise(PyObject* module);
void init_numpy(PyObject* module);
void init_data(PyObject* module);
void init_promotion(PyObject* module);
void init_optimizer(PyObject* module);
void init_storage_type(PyObject* module);
void init_nn_module_type(PyObject* module);
void init_generator_type(PyObject* module);
void init_foreach(PyObject* module);

inline bool is_tensor(PyObject* o) { return Py_TYPE(o) == tensor_type || PyObject_TypeCheck(o, tensor_type); }
inline Tensor* tensor_of(PyObject* o) { return reinterpret_cast<Tensor*>(o); }
inline PyObject* object_of(Object* o) { return reinterpret_cast<PyObject*>(o); }
inline bool is_generator(PyObject* o) { return PyObject_TypeCheck(o, generator_type); }
inline bool is_node(PyObject* o) { return PyObject_TypeCheck(o, node_type); }
inline Node* node_of(PyObject* o) { return reinterpret_cast<Node*>(o); }
/// Gives the tensor to Python (None for null).
inline PyObject* wrap(TensorRef t) {
  if (!t) Py_RETURN_NONE;
  return object_of(t.detach());
}
inline PyObject* wrap(Node* n) {
  if (!n) Py_RETURN_NONE;
  return Py_NewRef(object_of(n));
}
/// A tuple or list of tensors.
PyObject* wrap_tuple(TensorList list);
PyObject* wrap_list(TensorList list);
PyObject* wrap_result(Result result, const Overload& overload);

// conversions (convert.cpp); "as_" throw TypeError, "try_" give false
bool try_scalar(PyObject* o, Scalar& out);
Scalar as_scalar(PyObject* o, const char* what);
PyObject* number_to_python(const Scalar& s);
bool try_int(PyObject* o, std::int64_t& out);
/// Integers of a tuple, list, Size or 1-d integer tensor.
bool try_ints(PyObject* o, Dims& out);
inline bool try_operand(PyObject* o, Operand& out) {
  if (is_tensor(o)) {
    out.tensor = tensor_of(o);
    return true;
  }
  return try_scalar(o, out.number);
}
PyObject* make_size(IntSpan sizes);
PyObject* dtype_object(DType d);
bool try_dtype(PyObject* o, DType& out);
bool is_layout(PyObject* o);
PyObject* strided_layout();
bool try_memory_format(PyObject* o, MemoryFormat& out);
/// Refuses devices other than the CPU; accepts None, strings, ints and device objects.
void check_device(PyObject* o);
bool is_device(PyObject* o);
PyObject* cpu_device();
std::string text_of(PyObject* o);

/// Calls the operator of the registry with Python arguments (operator.cpp).
PyObject* call_operator(const Operator& op, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames, bool inplace);
/// The callable object of an operator.
PyObject* operator_object(const Operator& op, bool inplace);
PyObject* pointwise_object(PointwiseOp& op, bool inplace);

/// Indexing with Python's index expressions (index.cpp).
PyObject* get_item(PyObject* self, PyObject* index);
int set_item(PyObject* self, PyObject* index, PyObject* value);

/// A tensor from nested Python numbers, sequences or an array (data.cpp).
TensorRef tensor_from_data(PyObject* data, std::optional<DType> dtype, bool copy);
PyObject* tensor_to_list(const Tensor& t);

/// True where `o` is a NumPy array or scalar.
bool is_array(PyObject* o);
TensorRef tensor_from_array(PyObject* array, bool copy);

PyObject* intern(const char* text);

}  // namespace rushlight::python
