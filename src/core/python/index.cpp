// x[...] and x[...] = v with Python's index expressions.
#include "python/batched.h"

namespace rushlight::python {
namespace {

std::int64_t bound(PyObject* o, std::int64_t missing) {
  if (o == Py_None) return missing;
  std::int64_t v;
  check_type(try_int(o, v), "slice indices must be integers or None or have an __index__ method");
  return v;
}

/// The index as a tensor where it is one, a nested sequence or an array.
TensorRef index_tensor(PyObject* o) {
  if (is_tensor(o)) return TensorRef(tensor_of(o));
  if (is_array(o)) return tensor_from_array(o, true);
  TensorRef t = tensor_from_data(o, std::nullopt, true);
  if (t->numel == 0 && is_floating(t->dtype)) t = cast(*t, DType::Int64);
  return t;
}

/// A view by the basic parts of an expression, and the tensors of its advanced parts.
struct Selection {
  TensorRef view;
  TensorList indices;  ///< empty: basic indexing alone
};

bool is_sequence_of_indices(PyObject* o) {
  // x[[0, 1]] is one index tensor; x[[slice, ...]] stands for a tuple
  if (!PyList_Check(o)) return false;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(o); ++i) {
    PyObject* part = PyList_GET_ITEM(o, i);
    if (PySlice_Check(part) || part == Py_Ellipsis || part == Py_None) return true;
  }
  return false;
}

int dims_taken(PyObject* o) {
  if (o == Py_None || o == Py_Ellipsis || PyBool_Check(o)) return 0;
  if (is_tensor(o)) {
    Tensor* t = tensor_of(o);
    return t->dtype == DType::Bool || t->dtype == DType::UInt8 ? t->ndim : 1;
  }
  return 1;
}

Selection select_parts(Tensor& self, PyObject* const* parts, Py_ssize_t n) {
  Selection s;
  s.view = TensorRef(&self);
  int taken = 0;
  bool ellipsis = false;
  for (Py_ssize_t i = 0; i < n; ++i) {
    taken += dims_taken(parts[i]);
    if (parts[i] == Py_Ellipsis) {
      check_index(!ellipsis, "an index can only have a single ellipsis ('...')");
      ellipsis = true;
    }
  }
  check_index(taken <= self.ndim, "too many indices for tensor of dimension ", int(self.ndim));
  int dim = 0;
  TensorList indices;  // for the view's dimensions [0, covered); a mask covers as many as it has
  int covered = 0;
  bool advanced = false;
  auto pad = [&] {
    for (; covered < dim; ++covered) indices.push_back(nullptr);
  };
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* o = parts[i];
    std::int64_t at;
    if (o == Py_Ellipsis) {
      dim += self.ndim - taken;
    } else if (o == Py_None) {
      s.view = unsqueeze(*s.view, dim++);
    } else if (PySlice_Check(o)) {
      auto* slice_object = reinterpret_cast<PySliceObject*>(o);
      std::int64_t step = bound(slice_object->step, 1);
      check_value(step > 0, "step must be greater than zero");
      s.view = slice(*s.view, dim, bound(slice_object->start, 0),
                     bound(slice_object->stop, std::numeric_limits<std::int64_t>::max()), step);
      ++dim;
    } else if (PyBool_Check(o)) {
      s.view = unsqueeze(*s.view, dim);
      pad();
      indices.push_back(full(Dims{1}, Scalar(o == Py_True), DType::Bool));
      advanced = true;
      covered = ++dim;
    } else if (!is_tensor(o) && try_int(o, at)) {
      std::int64_t size = s.view->size(dim);
      check_index(at >= -size && at < size, "index ", at, " is out of bounds for dimension ", i, " with size ", size);
      s.view = select(*s.view, dim, at);
    } else if (is_tensor(o) && tensor_of(o)->ndim == 0 && category(tensor_of(o)->dtype) == 1 &&
               tensor_of(o)->dtype != DType::UInt8) {
      at = item(*tensor_of(o)).to_int();
      std::int64_t size = s.view->size(dim);
      check_index(at >= -size && at < size, "index ", at, " is out of bounds for dimension ", i, " with size ", size);
      s.view = select(*s.view, dim, at);
    } else {
      check_index(
          is_tensor(o) || is_array(o) || PySequence_Check(o),
          "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got ",
          Py_TYPE(o)->tp_name, ")");
      TensorRef t = index_tensor(o);
      bool mask = t->dtype == DType::Bool || t->dtype == DType::UInt8;
      if (mask && t->ndim == 0) {
        s.view = unsqueeze(*s.view, dim);
        t = unsqueeze(*t, 0);
      }
      pad();
      covered = dim += mask ? t->ndim : 1;
      indices.push_back(std::move(t));
      advanced = true;
    }
  }
  if (advanced) s.indices = std::move(indices);
  return s;
}

Selection select_all(PyObject* self, PyObject* index) {
  Tensor& t = *tensor_of(self);
  if (PyTuple_Check(index)) return select_parts(t, &PyTuple_GET_ITEM(index, 0), PyTuple_GET_SIZE(index));
  if (is_sequence_of_indices(index)) {
    Owned tuple(checked(PySequence_Tuple(index)));
    return select_parts(t, &PyTuple_GET_ITEM(tuple.get(), 0), PyTuple_GET_SIZE(tuple.get()));
  }
  return select_parts(t, &index, 1);
}

}  // namespace

namespace {
bool batched_access(PyObject* self, PyObject* key, PyObject* value) {
  return batching.levels && (is_batched(self) || any_batched(&key, 1) || (value && is_batched(value)));
}
}  // namespace

PyObject* get_item(PyObject* self, PyObject* key) {
  PyObject* item = guarded([&]() -> PyObject* {
    if (batched_access(self, key, nullptr)) [[unlikely]]
      return PyObject_CallFunctionObjArgs(batched_entry(BatchedEntry::GetItem), self, key, nullptr);
    Tensor& t = *tensor_of(self);
    // the common cases first
    if (PyLong_CheckExact(key)) {
      std::int64_t at = PyLong_AsLongLong(key);
      if (at == -1 && PyErr_Occurred()) throw PythonError();
      check_index(t.ndim > 0,
                  "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to "
                  "convert a 0-dim tensor to a number");
      check_index(at >= -t.size(0) && at < t.size(0), "index ", at, " is out of bounds for dimension 0 with size ",
                  t.size(0));
      return wrap(select(t, 0, at));
    }
    Selection s = select_all(self, key);
    if (s.indices.empty()) return wrap(s.view.get() == &t ? alias_view(t) : s.view);
    return wrap(rushlight::index(*s.view, s.indices));
  });
  if (item) [[likely]]
    return item;
  PyObject* args[] = {self, key};
  return left_to_arguments("__getitem__", args, 2);
}

int set_item(PyObject* self, PyObject* key, PyObject* value) {
  int status = guarded_int([&] {
    check_type(value, "Tensor does not support deleting items");
    if (batched_access(self, key, value)) [[unlikely]] {
      Owned none(
          checked(PyObject_CallFunctionObjArgs(batched_entry(BatchedEntry::SetItem), self, key, value, nullptr)));
      return;
    }
    Tensor& t = *tensor_of(self);
    Scalar number;
    TensorRef v;
    if (is_tensor(value)) {
      v = TensorRef(tensor_of(value));
    } else if (try_scalar(value, number)) {
      if (number.kind == Scalar::Complex) check_fits(number, t.dtype);
      v = scalar_tensor(number, t.dtype);
    } else if (is_array(value)) {
      v = tensor_from_array(value, true);
    } else {
      fail(ErrorKind::Type, "can't assign a ", Py_TYPE(value)->tp_name, " to a torch.", info(t.dtype).legacy);
    }
    Selection s = select_all(self, key);  // an index that does not fit is the first thing to say
    check_inplace(t, wants_gradients(t, *v));
    // leading ones of the value are dropped, as in NumPy
    int least = s.indices.empty() ? s.view->ndim : 1;
    while (v->ndim > least && v->size(0) == 1) v = squeeze(*v, 0);
    if (!s.indices.empty()) {
      if (v->dtype != t.dtype && v->ndim == 0) v = cast(*v, t.dtype);
      TensorRef target = s.view;
      return index_put_inplace(*target, s.indices, *v, false);
    }
    if (s.view.get() == &t) s.view = alias_view(t);
    copy_into(*s.view, *v);
  });
  if (status == 0 || !value) return status;
  PyObject* args[] = {self, key, value};
  Owned done(left_to_arguments("__setitem__", args, 3));
  return done ? 0 : -1;
}

}  // namespace rushlight::python
