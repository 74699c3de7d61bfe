// Tensors from nested Python data, and back.
#include <cmath>
#include <cstring>

#include "python/python.h"

namespace rushlight::python {
namespace {

/// The shape of nested sequences, and the widest kind of number among the leaves.
struct Survey {
  Dims sizes;
  int kind = -1;  ///< Scalar::Kind, -1: no leaf yet
  bool typed = false;
  DType dtype = DType::Float32;  ///< of tensor and array leaves
};

bool is_nested(PyObject* o) {
  return PyTuple_Check(o) || PyList_Check(o) ||
         (!is_tensor(o) && !is_array(o) && !PyUnicode_Check(o) && PySequence_Check(o));
}

void survey(PyObject* o, int depth, Survey& s) {
  check_value(depth < 128, "too many dimensions in nested data");
  if (is_nested(o)) {
    Owned fast(checked(PySequence_Fast(o, "not a sequence")));
    Py_ssize_t n = PySequence_Fast_GET_SIZE(fast.get());
    if (depth == s.sizes.size()) s.sizes.push_back(n);
    check_value(s.sizes[depth] == n, "expected sequence of length ", s.sizes[depth], " at dim ", depth, " (got ", n,
                ")");
    for (Py_ssize_t i = 0; i < n; ++i) survey(PySequence_Fast_GET_ITEM(fast.get(), i), depth + 1, s);
    return;
  }
  if (is_tensor(o)) {
    Tensor& t = *tensor_of(o);
    check_value(t.numel == 1, "only one element tensors can be converted to Python scalars");
    s.dtype = s.typed ? promote(s.dtype, t.dtype) : t.dtype;
    s.typed = true;
    return;
  }
  Scalar v;
  if (PyUnicode_Check(o)) fail(ErrorKind::Type, "new(): invalid data type 'str'");
  check_type(try_scalar(o, v), "Could not infer dtype of ", Py_TYPE(o)->tp_name);
  if (is_array(o)) {  // a NumPy scalar keeps its type
    TensorRef t = tensor_from_array(o, true);
    s.dtype = s.typed ? promote(s.dtype, t->dtype) : t->dtype;
    s.typed = true;
    return;
  }
  s.kind = std::max<int>(s.kind, v.kind);
}

void fill(PyObject* o, int depth, const Dims& sizes, DType dtype, std::byte*& to) {
  if (depth < sizes.size()) {
    check_value(is_nested(o), "expected a sequence of length ", sizes[depth], " at dim ", depth, " (got ",
                Py_TYPE(o)->tp_name, ")");
    Owned fast(checked(PySequence_Fast(o, "not a sequence")));
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast.get()); ++i)
      fill(PySequence_Fast_GET_ITEM(fast.get(), i), depth + 1, sizes, dtype, to);
    return;
  }
  check_value(!is_nested(o), "expected a number at dim ", depth, " (got a sequence)");
  if (PyFloat_CheckExact(o) && dtype == DType::Float32) {
    auto v = float(PyFloat_AS_DOUBLE(o));
    std::memcpy(to, &v, sizeof v);
  } else {
    Scalar v = is_tensor(o) ? item(*tensor_of(o)) : as_scalar(o, "an element");
    check_type(v.kind != Scalar::Complex || is_complex(dtype) || dtype == DType::Bool,
               "must be real number, not complex");
    if (category(dtype) == 1 && v.kind == Scalar::Float)
      check_value(std::isfinite(v.real), "cannot convert float ", v.real, " to integer");
    if (category(dtype) == 1 && v.is_integral() && item_size(dtype) < 8) {
      std::int64_t low = dtype == DType::UInt8 ? 0 : -(std::int64_t(1) << (item_size(dtype) * 8 - 1));
      std::int64_t high = dtype == DType::UInt8 ? 255 : (std::int64_t(1) << (item_size(dtype) * 8 - 1)) - 1;
      check(v.integer >= low && v.integer <= high, "value cannot be converted to type ", name(dtype),
            " without overflow");
    }
    v.store(dtype, to);
  }
  to += item_size(dtype);
}

PyObject* list_of(const Tensor& t, int dim, const std::byte* at) {
  if (dim == t.ndim) return checked(number_to_python(Scalar::load(t.dtype, at)));
  std::int64_t n = t.size(dim), step = t.stride(dim) * t.item_size();
  Owned list(checked(PyList_New(Py_ssize_t(n))));
  for (std::int64_t i = 0; i < n; ++i) PyList_SET_ITEM(list.get(), Py_ssize_t(i), list_of(t, dim + 1, at + i * step));
  return list.detach();
}

/// _tensor_from_data(data, dtype | None, copy, device)
PyObject* from_data(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guarded([&]() -> PyObject* {
    check_type(nargs == 4, "_tensor_from_data takes 4 arguments");
    std::optional<DType> dtype;
    DType d;
    if (args[1] != Py_None) {
      check_type(try_dtype(args[1], d), "tensor(): argument 'dtype' must be torch.dtype, not ",
                 Py_TYPE(args[1])->tp_name);
      dtype = d;
    }
    check_device(args[3]);
    return wrap(tensor_from_data(args[0], dtype, args[2] == Py_True));
  });
}

PyMethodDef methods[] = {
    {"_tensor_from_data", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(from_data)), METH_FASTCALL,
     "A tensor of nested numbers, an array or a tensor."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void init_data(PyObject* module) { checked(PyModule_AddFunctions(module, methods)); }

TensorRef tensor_from_data(PyObject* data, std::optional<DType> dtype, bool copy) {
  if (is_tensor(data)) {
    Tensor& t = *tensor_of(data);
    GradScope off(false);
    return convert(t, dtype.value_or(t.dtype), copy);
  }
  if (is_array(data)) {
    TensorRef t = tensor_from_array(data, copy);
    return dtype ? cast(*t, *dtype) : t;
  }
  Scalar number;
  if (PyFloat_CheckExact(data) || PyLong_CheckExact(data) || PyBool_Check(data)) {
    try_scalar(data, number);
    if (!dtype || *dtype != DType::Int64) {
      DType d = dtype.value_or(number.dtype());
      if (category(d) >= 2 || d == DType::Bool || d == number.dtype()) return scalar_tensor(number, d);
    }
  }
  Survey s;
  survey(data, 0, s);
  DType d;
  if (dtype)
    d = *dtype;
  else if (s.typed)
    d = s.kind < 0                         ? s.dtype
        : int(category(s.dtype)) >= s.kind ? s.dtype
        : s.kind == Scalar::Float          ? default_dtype
        : s.kind == Scalar::Int            ? DType::Int64
                                           : complex_of(default_dtype);
  else
    d = s.kind < 0 || s.kind == Scalar::Float ? default_dtype
        : s.kind == Scalar::Bool              ? DType::Bool
        : s.kind == Scalar::Int               ? DType::Int64
                                              : complex_of(default_dtype);
  TensorRef out = empty(s.sizes, d);
  std::byte* to = out->write();
  if (out->numel) fill(data, 0, s.sizes, d, to);
  return out;
}

PyObject* tensor_to_list(const Tensor& t) { return list_of(t, 0, t.read()); }

}  // namespace rushlight::python
