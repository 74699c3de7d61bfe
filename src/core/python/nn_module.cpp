// The base type of rushlight.nn.Module: the two things that every layer does on every step.
//
// Reading an attribute looks at the instance and then at the members of a module (parameters, buffers, submodules);
// in Python this second look is a failed search, an exception and a call of __getattr__. Calling a module checks for
// hooks and calls forward. Everything else is written in Python (rushlight/nn/modules).
#include "python/python.h"

namespace rushlight::python {
namespace {

enum Name {
  Parameters,
  Buffers,
  Modules,
  BackwardHooks,
  BackwardPreHooks,
  ForwardHooks,
  ForwardPreHooks,
  Forward,
  CallImpl,
  Explain,
  GetAttr,
  NameCount
};
const char* const name_texts[NameCount] = {
    "_parameters",        "_buffers", "_modules",   "_backward_hooks", "_backward_pre_hooks", "_forward_hooks",
    "_forward_pre_hooks", "forward",  "_call_impl", "_explain",        "__getattr__"};
PyObject* names[NameCount];
PyTypeObject* base_type;
PyObject* global_hooks;  // a tuple of dictionaries, or null

/// The instance's dictionary, borrowed; null where there is none.
PyObject* fields_of(PyObject* self) {
  PyObject** place = _PyObject_GetDictPtr(self);
  return place ? *place : nullptr;
}

/// The parameter, buffer or submodule of that name; null with or without an error set.
PyObject* find_member(PyObject* fields, PyObject* name) {
  for (Name kind : {Parameters, Buffers, Modules}) {
    PyObject* members = PyDict_GetItemWithError(fields, names[kind]);
    if (members && PyDict_Check(members)) {
      if (PyObject* value = PyDict_GetItemWithError(members, name)) return Py_NewRef(value);
    }
    if (PyErr_Occurred()) return nullptr;
  }
  return nullptr;
}

PyObject* no_attribute(PyObject* self, PyObject* name) {
  PyErr_Format(PyExc_AttributeError, "'%.100s' object has no attribute '%U'", Py_TYPE(self)->tp_name, name);
  return nullptr;
}

/// The last resort of attribute access, for subclasses whose own __getattr__ ends here.
PyObject* get_attr(PyObject* self, PyObject* name) {
  if (!PyUnicode_Check(name))
    return PyErr_Format(PyExc_TypeError, "attribute name must be string, not '%.200s'", Py_TYPE(name)->tp_name);
  PyObject* fields = fields_of(self);
  PyObject* member = fields ? find_member(fields, name) : nullptr;
  return member || PyErr_Occurred() ? member : no_attribute(self, name);
}

PyObject* get_attribute(PyObject* self, PyObject* name) {
  PyObject* fields = fields_of(self);
  if (fields && !_PyType_Lookup(Py_TYPE(self), name)) {
    if (PyObject* value = PyDict_GetItemWithError(fields, name)) return Py_NewRef(value);
    if (PyErr_Occurred()) return nullptr;
    PyObject* member = find_member(fields, name);
    if (member || PyErr_Occurred()) return member;
  }
  PyObject* value = PyObject_GenericGetAttr(self, name);
  if (value || !fields || !PyErr_ExceptionMatches(PyExc_AttributeError)) return value;
  // A property failed. It may stand for a member; otherwise its own error says more than ours.
  PyObject *type, *error, *trace;
  PyErr_Fetch(&type, &error, &trace);
  if (PyObject* member = find_member(fields, name)) {
    Py_XDECREF(type);
    Py_XDECREF(error);
    Py_XDECREF(trace);
    return member;
  }
  PyErr_Restore(type, error, trace);
  return nullptr;
}

/// __init_subclass__: lets the new class read attributes by get_attribute itself, where Python would go through its
/// own search and our __getattr__. A class that defines either method keeps Python's way.
PyObject* init_subclass(PyObject* cls, PyObject* args, PyObject* kwargs) {
  Owned super(PyObject_CallFunctionObjArgs(reinterpret_cast<PyObject*>(&PySuper_Type), base_type, cls, nullptr));
  if (!super) return nullptr;
  Owned next(PyObject_GetAttrString(super, "__init_subclass__"));
  if (!next) return nullptr;
  Owned done(PyObject_Call(next, args, kwargs));
  if (!done) return nullptr;
  auto* type = reinterpret_cast<PyTypeObject*>(cls);
  static PyObject* get_attribute_name = PyUnicode_InternFromString("__getattribute__");
  bool ours = _PyType_Lookup(type, names[GetAttr]) == _PyType_Lookup(base_type, names[GetAttr]) &&
              _PyType_Lookup(type, get_attribute_name) == _PyType_Lookup(base_type, get_attribute_name);
  if (ours) type->tp_getattro = get_attribute;
  Py_RETURN_NONE;
}

/// Calls the method of that name, without making a bound method where it is a plain function of the class.
PyObject* call_method(PyObject* self, PyObject* fields, PyObject* name, PyObject* args, PyObject* kwargs) {
  PyObject* function = _PyType_Lookup(Py_TYPE(self), name);
  Py_ssize_t n = PyTuple_GET_SIZE(args);
  PyObject* stack[8];
  if (!function || !PyFunction_Check(function) || n >= 8 || PyDict_GetItemWithError(fields, name)) {
    Owned method(PyObject_GetAttr(self, name));
    return method ? PyObject_Call(method, args, kwargs) : nullptr;
  }
  if (PyErr_Occurred()) return nullptr;
  stack[0] = self;
  for (Py_ssize_t i = 0; i < n; ++i) stack[i + 1] = PyTuple_GET_ITEM(args, i);
  Owned kept = Owned::borrow(function);
  return PyObject_VectorcallDict(function, stack, n + 1, kwargs);
}

/// Whether the module has hooks around its calls: 1, 0, or -1 with an error set.
int has_hooks(PyObject* self, PyObject* fields) {
  for (Name kind : {BackwardHooks, BackwardPreHooks, ForwardHooks, ForwardPreHooks}) {
    PyObject* hooks = PyDict_GetItemWithError(fields, names[kind]);
    if (!hooks) {  // Module.__init__ was not called
      if (!PyErr_Occurred()) no_attribute(self, names[kind]);
      return -1;
    }
    int some = PyDict_Check(hooks) ? PyDict_GET_SIZE(hooks) != 0 : PyObject_IsTrue(hooks);
    if (some) return some;
  }
  for (Py_ssize_t i = 0; global_hooks && i < PyTuple_GET_SIZE(global_hooks); ++i) {
    if (PyDict_GET_SIZE(PyTuple_GET_ITEM(global_hooks, i))) return 1;
  }
  return 0;
}

/// Lets the module add to an error about its input; the error stays the one in flight.
void explain_error(PyObject* self, PyObject* args) {
  if (!PyErr_ExceptionMatches(PyExc_RuntimeError) && !PyErr_ExceptionMatches(PyExc_ValueError) &&
      !PyErr_ExceptionMatches(PyExc_IndexError) && !PyErr_ExceptionMatches(PyExc_AssertionError))
    return;
  PyObject *type, *error, *trace;
  PyErr_Fetch(&type, &error, &trace);
  PyErr_NormalizeException(&type, &error, &trace);
  if (trace) PyException_SetTraceback(error, trace);
  Owned done(PyObject_CallMethodObjArgs(self, names[Explain], error, args, nullptr));
  if (!done) PyErr_Clear();
  PyErr_Restore(type, error, trace);
}

PyObject* call(PyObject* self, PyObject* args, PyObject* kwargs) {
  PyObject* fields = fields_of(self);
  if (!fields) return no_attribute(self, names[BackwardHooks]);
  int hooked = has_hooks(self, fields);
  if (hooked < 0) return nullptr;
  PyObject* result = call_method(self, fields, names[hooked ? CallImpl : Forward], args, kwargs);
  if (!result) explain_error(self, args);
  return result;
}

/// _set_global_module_hooks(hooks): the dictionaries of hooks that run around the calls of all modules.
PyObject* set_global_hooks(PyObject*, PyObject* hooks) {
  if (!PyTuple_Check(hooks)) return PyErr_Format(PyExc_TypeError, "expected a tuple of dictionaries");
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(hooks); ++i) {
    if (!PyDict_Check(PyTuple_GET_ITEM(hooks, i)))
      return PyErr_Format(PyExc_TypeError, "expected a tuple of dictionaries");
  }
  Py_XSETREF(global_hooks, Py_NewRef(hooks));
  Py_RETURN_NONE;
}

PyMethodDef methods[] = {
    {"__getattr__", get_attr, METH_O, "The parameter, buffer or submodule of that name."},
    {"__init_subclass__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(init_subclass)),
     METH_CLASS | METH_VARARGS | METH_KEYWORDS, nullptr},
    {nullptr, nullptr, 0, nullptr}};
PyMethodDef set_hooks_method{"_set_global_module_hooks", set_global_hooks, METH_O,
                             "Names the dictionaries of hooks that run around the calls of all modules."};

}  // namespace

void init_nn_module_type(PyObject* module) {
  for (int i = 0; i < NameCount; ++i) names[i] = checked(PyUnicode_InternFromString(name_texts[i]));
  PyType_Slot slots[] = {{Py_tp_getattro, reinterpret_cast<void*>(get_attribute)},
                         {Py_tp_call, reinterpret_cast<void*>(call)},
                         {Py_tp_methods, methods},
                         {0, nullptr}};
  PyType_Spec spec{"rushlight._C._ModuleBase", sizeof(PyObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  base_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)));
  checked(PyModule_AddObjectRef(module, "_ModuleBase", reinterpret_cast<PyObject*>(base_type)));
  Owned name(checked(PyModule_GetNameObject(module)));
  Owned function(checked(PyCFunction_NewEx(&set_hooks_method, nullptr, name)));
  checked(PyModule_AddObjectRef(module, set_hooks_method.ml_name, function));
}

}  // namespace rushlight::python
