// Calls that arguments take over: the protocol __torch_function__ (src/rushlight/overrides.py).
//
// Every operator's `call` is `offered`. It makes the call, and looks at the arguments only where a class that
// takes over calls is in use (`watched`), or where the call has refused them: they may be of a foreign type.
#include "python/operator.h"

namespace rushlight::python {
namespace {

bool watched = false;
thread_local int disabled = 0;   // contexts in which nothing is taken over
PyObject* dispatch = nullptr;    // (operator, args, kwargs): asks the arguments' types
PyObject* abstaining = nullptr;  // the __torch_function__ of classes that take over nothing

bool takes_over(PyTypeObject* type) {
  if (type == tensor_type || type == &PyLong_Type || type == &PyFloat_Type || type == &PyBool_Type) return false;
  static PyObject* name = intern("__torch_function__");
  PyObject* function = _PyType_Lookup(type, name);
  return function && function != abstaining;
}

bool takes_over(PyObject* o) {
  if (!PyTuple_CheckExact(o) && !PyList_CheckExact(o)) return takes_over(Py_TYPE(o));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i)
    if (takes_over(Py_TYPE(PySequence_Fast_GET_ITEM(o, i)))) return true;
  return false;
}

bool any_takes_over(PyObject* const* args, Py_ssize_t n) {
  for (Py_ssize_t i = 0; i < n; ++i)
    if (takes_over(args[i])) return true;
  return false;
}

PyObject* ask(PyObject* op, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  Owned positional(PyTuple_New(n)), keywords(PyDict_New());
  if (!positional || !keywords) return nullptr;
  for (Py_ssize_t i = 0; i < n; ++i) PyTuple_SET_ITEM(positional.get(), i, Py_NewRef(args[i]));
  for (Py_ssize_t k = 0; names && k < PyTuple_GET_SIZE(names); ++k)
    if (PyDict_SetItem(keywords, PyTuple_GET_ITEM(names, k), args[n + k]) < 0) return nullptr;
  return PyObject_CallFunctionObjArgs(dispatch, op, positional.get(), keywords.get(), nullptr);
}

/// The call has failed: is there an argument that may take it over? The error is cleared then.
bool refused(PyObject* const* args, Py_ssize_t n) {
  if (disabled) return false;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);  // looking up a name of a type would lose it
  if (!any_takes_over(args, n)) {
    PyErr_Restore(type, value, trace);
    return false;
  }
  Py_XDECREF(type), Py_XDECREF(value), Py_XDECREF(trace);
  return true;
}

PyObject* ask_method(const char* method, PyObject* const* args, Py_ssize_t n) {
  Owned function(PyObject_GetAttrString(reinterpret_cast<PyObject*>(tensor_type), method));
  return function ? ask(function.get(), args, n, nullptr) : nullptr;
}

PyObject* offered(PyObject* self, PyObject* const* args, std::size_t nargsf, PyObject* names) {
  Py_ssize_t n = PyVectorcall_NARGS(nargsf), all = n + (names ? PyTuple_GET_SIZE(names) : 0);
  if (watched && !disabled && any_takes_over(args, all)) [[unlikely]]
    return ask(self, args, n, names);
  PyObject* result = operator_of(self)->plain(self, args, nargsf, names);
  if (result) [[likely]]
    return result;
  if (!PyErr_ExceptionMatches(PyExc_TypeError) || !refused(args, all)) return nullptr;
  return ask(self, args, n, names);
}

/// _set_override_dispatch(dispatch, abstaining): what is asked, and what a class that takes over nothing has.
PyObject* set_dispatch(PyObject*, PyObject* args) {
  PyObject *function, *none;
  if (!PyArg_ParseTuple(args, "OO", &function, &none)) return nullptr;
  Py_XSETREF(dispatch, Py_NewRef(function));
  Py_XSETREF(abstaining, Py_NewRef(none));
  Py_RETURN_NONE;
}

PyObject* watch(PyObject*, PyObject*) {
  watched = true;
  Py_RETURN_NONE;
}

/// _override_depth(change): how many contexts of this thread let nothing be taken over, after the change.
PyObject* depth(PyObject*, PyObject* change) {
  long by = PyLong_AsLong(change);
  if (by == -1 && PyErr_Occurred()) return nullptr;
  return PyLong_FromLong(disabled += int(by));
}

PyMethodDef methods[] = {
    {"_set_override_dispatch", set_dispatch, METH_VARARGS, "What operators ask where an argument may take over."},
    {"_watch_overrides", watch, METH_NOARGS, "From now on the arguments of every operator are looked at."},
    {"_override_depth", depth, METH_O, "Changes, and gives, how many contexts let nothing be taken over."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void offer_calls(OperatorObject* o) { o->vectorcall = o->call = &offered; }

PyObject* left_to_other(const char* method, PyObject* tensor, PyObject* other) {
  if (disabled || !takes_over(other)) Py_RETURN_NOTIMPLEMENTED;
  PyObject* args[] = {tensor, other};
  return ask_method(method, args, 2);
}

PyObject* left_to_arguments(const char* method, PyObject* const* args, Py_ssize_t n) {
  return refused(args, n) ? ask_method(method, args, n) : nullptr;
}

PyObject* take_over(PyObject* function, PyObject* const* args, std::size_t nargsf, PyObject* names) {
  Py_ssize_t n = PyVectorcall_NARGS(nargsf);
  if (disabled || !any_takes_over(args, n + (names ? PyTuple_GET_SIZE(names) : 0))) return nullptr;
  PyObject* result = ask(function, args, n, names);
  if (!result) throw PythonError();
  return result;
}

void init_overrides(PyObject* module) { checked(PyModule_AddFunctions(module, methods)); }

}  // namespace rushlight::python
