// Functions written in Python whose calls arguments may take over (__torch_function__), as they may those of operators.
//
// The object stands for the function everywhere: it has its attributes, compares equal to it, binds like it, is pickled
// by its name, and passes for a function. A call looks at the arguments' types, and is the function's then.
#include <cstring>

#include "python/watch.h"

namespace rushlight::python {
namespace {

PyTypeObject* offered_type;

struct OfferedFunction {
  PyObject_HEAD;
  vectorcallfunc vectorcall;
  PyObject* function;
  PyObject* weakrefs;
};

PyObject* function_in(PyObject* self) { return reinterpret_cast<OfferedFunction*>(self)->function; }
bool is_offered(PyObject* o) { return Py_TYPE(o) == offered_type; }

PyObject* call(PyObject* self, PyObject* const* args, std::size_t nargsf, PyObject* names) {
  try {
    if (function_handlers.load(std::memory_order_relaxed)) [[unlikely]]
      if (PyObject* result = handle_function(self, args, PyVectorcall_NARGS(nargsf), names)) return result;
    if (PyObject* result = take_over(self, args, nargsf, names)) return result;
  } catch (...) {
    set_error();
    return nullptr;
  }
  return PyObject_Vectorcall(function_in(self), args, nargsf, names);
}

PyObject* make(PyObject*, PyObject* function) {
  if (!PyFunction_Check(function)) {
    PyErr_Format(PyExc_TypeError, "expected a function written in Python, not %s", Py_TYPE(function)->tp_name);
    return nullptr;
  }
  auto* made = PyObject_New(OfferedFunction, offered_type);
  if (!made) return nullptr;
  made->vectorcall = &call;
  made->function = Py_NewRef(function);
  made->weakrefs = nullptr;
  return reinterpret_cast<PyObject*>(made);
}

void dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  if (reinterpret_cast<OfferedFunction*>(self)->weakrefs) PyObject_ClearWeakRefs(self);
  Py_DECREF(function_in(self));
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* get_attribute(PyObject* self, PyObject* name) {
  const char* text = PyUnicode_AsUTF8(name);
  if (!text) return nullptr;
  if (std::strcmp(text, "__wrapped__") == 0) return Py_NewRef(function_in(self));
  if (std::strncmp(text, "__reduce", 8) == 0 || std::strcmp(text, "__get__") == 0)
    return PyObject_GenericGetAttr(self, name);
  return PyObject_GetAttr(function_in(self), name);  // __class__ too: it passes for a function
}
int set_attribute(PyObject* self, PyObject* name, PyObject* value) {
  return PyObject_SetAttr(function_in(self), name, value);
}

PyObject* repr(PyObject* self) { return PyObject_Repr(function_in(self)); }
Py_hash_t hash(PyObject* self) { return PyObject_Hash(function_in(self)); }

PyObject* compare(PyObject* a, PyObject* b, int kind) {
  if (kind != Py_EQ && kind != Py_NE) Py_RETURN_NOTIMPLEMENTED;
  PyObject *left = is_offered(a) ? function_in(a) : a, *right = is_offered(b) ? function_in(b) : b;
  return PyBool_FromLong((left == right) == (kind == Py_EQ));
}

PyObject* bind(PyObject* self, PyObject* object, PyObject*) {
  return object && object != Py_None ? PyMethod_New(self, object) : Py_NewRef(self);
}

PyObject* reduce(PyObject* self, PyObject*) { return PyObject_GetAttrString(function_in(self), "__qualname__"); }

PyMethodDef methods[] = {
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {"__reduce_ex__", reduce, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyMemberDef members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(OfferedFunction, vectorcall), READONLY, nullptr},
                         {"__weaklistoffset__", T_PYSSIZET, offsetof(OfferedFunction, weakrefs), READONLY, nullptr},
                         {nullptr, 0, 0, 0, nullptr}};
PyMethodDef module_methods[] = {
    {"_offered", make, METH_O, "The function as an object whose calls arguments may take over (__torch_function__)."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void init_offered_type(PyObject* module) {
  PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
                         {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                         {Py_tp_getattro, reinterpret_cast<void*>(get_attribute)},
                         {Py_tp_setattro, reinterpret_cast<void*>(set_attribute)},
                         {Py_tp_repr, reinterpret_cast<void*>(repr)},
                         {Py_tp_hash, reinterpret_cast<void*>(hash)},
                         {Py_tp_richcompare, reinterpret_cast<void*>(compare)},
                         {Py_tp_descr_get, reinterpret_cast<void*>(bind)},
                         {Py_tp_methods, methods},
                         {Py_tp_members, members},
                         {0, nullptr}};
  PyType_Spec spec{"rushlight._C._OfferedFunction", sizeof(OfferedFunction), 0,
                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  offered_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)));
  checked(PyModule_AddObjectRef(module, "_OfferedFunction", reinterpret_cast<PyObject*>(offered_type)));
  checked(PyModule_AddFunctions(module, module_methods));
}

}  // namespace rushlight::python
