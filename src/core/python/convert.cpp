// Between Python's numbers, tuples and names and the core's.
#include "python/python.h"

namespace rushlight::python {

PyObject* intern(const char* text) { return PyUnicode_InternFromString(text); }

std::string text_of(PyObject* o) {
  Py_ssize_t n;
  const char* text = PyUnicode_AsUTF8AndSize(o, &n);
  if (!text) throw PythonError();
  return std::string(text, std::size_t(n));
}

bool try_scalar(PyObject* o, Scalar& out) {
  if (PyFloat_CheckExact(o)) {
    out = Scalar(PyFloat_AS_DOUBLE(o));
    return true;
  }
  if (PyBool_Check(o)) {
    out = Scalar(o == Py_True);
    return true;
  }
  if (PyLong_Check(o)) {
    int overflow;
    std::int64_t v = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (overflow)
      fail(ErrorKind::Overflow, "Overflow when unpacking long long: ", text_of(Owned(checked(PyObject_Str(o)))),
           " does not fit into 64 bits");
    out = Scalar(v);
    return true;
  }
  if (PyFloat_Check(o)) {
    out = Scalar(PyFloat_AsDouble(o));
    return true;
  }
  if (PyComplex_Check(o)) {
    Py_complex c = PyComplex_AsCComplex(o);
    out = Scalar(std::complex<double>(c.real, c.imag));
    return true;
  }
  PyNumberMethods* number = Py_TYPE(o)->tp_as_number;
  if (!number || is_tensor(o) || PySequence_Check(o)) return false;
  if (is_array(o)) {  // a NumPy scalar: its kind decides
    Owned plain(PyObject_CallMethod(o, "item", nullptr));
    if (!plain) throw PythonError();
    return !is_array(plain) && try_scalar(plain, out);
  }
  if (number->nb_index) {
    Owned index(PyNumber_Index(o));
    if (!index) throw PythonError();
    return try_scalar(index, out);
  }
  if (number->nb_float) {
    double v = PyFloat_AsDouble(o);
    if (v == -1 && PyErr_Occurred()) throw PythonError();
    out = Scalar(v);
    return true;
  }
  return false;
}

Scalar as_scalar(PyObject* o, const char* what) {
  Scalar s;
  if (is_tensor(o)) return item(*tensor_of(o));
  if (!try_scalar(o, s)) fail(ErrorKind::Type, what, " must be a number, not ", Py_TYPE(o)->tp_name);
  return s;
}

PyObject* number_to_python(const Scalar& s) {
  switch (s.kind) {
    case Scalar::Bool:
      return PyBool_FromLong(long(s.integer));
    case Scalar::Int:
      return PyLong_FromLongLong(s.integer);
    case Scalar::Float:
      return PyFloat_FromDouble(s.real);
    default:
      return PyComplex_FromDoubles(s.real, s.imag);
  }
}

bool try_int(PyObject* o, std::int64_t& out) {
  if (PyLong_Check(o)) {
    if (PyBool_Check(o)) return false;
    int overflow;
    out = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (overflow) fail(ErrorKind::Runtime, "Overflow when unpacking long long");
    return true;
  }
  if (is_tensor(o)) {
    Tensor* t = tensor_of(o);
    if (t->numel != 1 || category(t->dtype) != 1 || t->requires_grad()) return false;
    out = item(*t).to_int();
    return true;
  }
  if (PyFloat_Check(o) || !PyIndex_Check(o)) return false;
  Owned index(PyNumber_Index(o));
  if (!index) {
    PyErr_Clear();
    return false;
  }
  return try_int(index, out);
}

bool try_ints(PyObject* o, Dims& out) {
  if (!PyTuple_Check(o) && !PyList_Check(o)) {
    if (is_tensor(o) || PyUnicode_Check(o) || !PySequence_Check(o)) return false;
    Owned list(PySequence_List(o));
    if (!list) {
      PyErr_Clear();
      return false;
    }
    return try_ints(list, out);
  }
  Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
  out = Dims();
  for (Py_ssize_t i = 0; i < n; ++i) {
    std::int64_t v;
    if (!try_int(PySequence_Fast_GET_ITEM(o, i), v)) return false;
    out.push_back(v);
  }
  return true;
}

PyObject* wrap_tuple(TensorList list) {
  PyObject* out = checked(PyTuple_New(Py_ssize_t(list.size())));
  for (std::size_t i = 0; i < list.size(); ++i) PyTuple_SET_ITEM(out, Py_ssize_t(i), wrap(std::move(list[i])));
  return out;
}

PyObject* wrap_list(TensorList list) {
  PyObject* out = checked(PyList_New(Py_ssize_t(list.size())));
  for (std::size_t i = 0; i < list.size(); ++i) PyList_SET_ITEM(out, Py_ssize_t(i), wrap(std::move(list[i])));
  return out;
}

}  // namespace rushlight::python
