// The type of operators: names, forms, parameters, and texts that the package makes when somebody looks.
#include "python/operator.h"

namespace rushlight::python {

PyTypeObject* operator_type;

std::vector<OperatorObject*>& all_operator_objects() {
  static auto* objects = new std::vector<OperatorObject*>;
  return *objects;
}

OperatorObject* new_operator(vectorcallfunc call, const std::string& name) {
  auto* o = PyObject_New(OperatorObject, operator_type);
  if (!o) throw PythonError();
  o->plain = call;
  offer_calls(o);
  o->op = nullptr;
  o->pointwise = nullptr;
  o->inplace = false;
  o->name = PyUnicode_InternFromString(name.c_str());
  o->doc = o->signature = o->overloads = o->rule = nullptr;
  o->draws = o->whole = false;
  o->overload = -1;
  all_operator_objects().push_back(o);
  Py_INCREF(o);  // operators live as long as the process
  return o;
}

const char* type_text(const Param& p) {
  switch (p.type) {
    case ArgType::Tensor:
      return "Tensor";
    case ArgType::Tensors:
      return "tuple of Tensors";
    case ArgType::Scalar:
      return "Number";
    case ArgType::Int:
      return "int";
    case ArgType::Ints:
      return "tuple of ints";
    case ArgType::Bool:
      return "bool";
    case ArgType::Float:
      return "float";
    case ArgType::DType:
      return "torch.dtype";
    case ArgType::String:
      return "str";
    case ArgType::Device:
      return "torch.device";
    case ArgType::Layout:
      return "torch.layout";
    case ArgType::MemoryFormat:
      return "torch.memory_format";
    case ArgType::Generator:
      return "torch.Generator";
    case ArgType::Object:
      return "object";
  }
  return "object";
}

namespace {

// ---- what an operator says of itself

Owned text(const std::string& s) { return Owned(checked(PyUnicode_FromString(s.c_str()))); }

void append(PyObject* list, Owned item) { checked(PyList_Append(list, item)); }

/// (name, type, may be None, by keyword only, default as Python writes it | None)
Owned describe(const Param& p) {
  std::string value = p.default_text;
  if (p.type == ArgType::String && !p.default_none) value = "'" + value + "'";
  Owned given = p.has_default ? text(value) : Owned::borrow(Py_None);
  return Owned(checked(Py_BuildValue("ssNNN", p.name.c_str(), type_text(p), PyBool_FromLong(p.optional),
                                     PyBool_FromLong(p.keyword_only), given.detach())));
}

/// (signature, what it returns, names of the result's parts, parameters)
Owned describe(const Overload& o) {
  Owned fields(checked(PyList_New(0))), params(checked(PyList_New(0)));
  for (auto& field : o.fields) append(fields, text(field));
  for (auto& p : o.params) append(params, describe(p));
  return Owned(
      checked(Py_BuildValue("ssNN", o.signature.c_str(), o.returns.c_str(), fields.detach(), params.detach())));
}

/// The same of a declared operator: tensors or numbers, and the keywords that choose a form.
Owned describe(const PointwiseOp& op) {
  Owned params(checked(PyList_New(0)));
  std::string signature = op.name + "(";
  auto add = [&](const std::string& name, const char* type, bool optional, bool keyword_only,
                 const std::string& value) {
    Owned given = value.empty() ? Owned::borrow(Py_None) : text(value);
    append(params, Owned(checked(Py_BuildValue("ssNNN", name.c_str(), type, PyBool_FromLong(optional),
                                               PyBool_FromLong(keyword_only), given.detach()))));
    if (signature.back() != '(') signature += ", ";
    if (keyword_only && signature.find('*') == signature.npos) signature += "*, ";
    signature += concat(type, optional ? "? " : " ", name, value.empty() ? "" : "=", value);
  };
  for (int i = 0; i < op.n_in; ++i) {
    std::string value;
    if (op.has_default[i]) {
      Owned number(checked(number_to_python(op.defaults[i])));
      value = text_of(Owned(checked(PyObject_Repr(number))));
    }
    add(op.params[i], op.takes[i] == 't' ? "Tensor" : op.takes[i] == 'n' ? "Number" : "Operand", false, false, value);
  }
  if (op.scaled) add("alpha", "Number", false, true, "1");
  if (op.floored) add("rounding_mode", "str", true, true, "None");
  signature += ")";
  return Owned(checked(Py_BuildValue("ssNN", signature.c_str(), "Tensor", checked(PyList_New(0)), params.detach())));
}

PyObject* overloads_get(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    auto* o = operator_of(self);
    Owned list(checked(PyList_New(0)));
    if (o->op && o->overload >= 0)
      append(list, describe(o->op->overloads[std::size_t(o->overload)]));
    else if (o->op)
      for (auto& overload : o->op->overloads) append(list, describe(overload));
    else
      append(list, describe(*o->pointwise));
    return list.detach();
  });
}
PyObject* signatures_get(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    Owned overloads(checked(overloads_get(self, nullptr))), list(checked(PyList_New(0)));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(overloads.get()); ++i)
      checked(PyList_Append(list, PyTuple_GET_ITEM(PyList_GET_ITEM(overloads.get(), i), 0)));
    return list.detach();
  });
}
PyObject* summary_get(PyObject* self, void*) {
  auto* o = operator_of(self);
  return PyUnicode_FromString(o->op ? o->op->doc.c_str() : "");
}
PyObject* forms_get(PyObject* self, void*) {
  auto* o = operator_of(self);
  return PyLong_FromLong(o->op ? long(o->op->forms) : 0);
}
PyObject* inplace_get(PyObject* self, void*) { return PyBool_FromLong(operator_of(self)->inplace); }
PyObject* pointwise_get(PyObject* self, void*) { return PyBool_FromLong(operator_of(self)->pointwise != nullptr); }
PyObject* differentiable_get(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    auto* o = operator_of(self);
    if (o->op) return PyBool_FromLong(!(o->op->forms & NoGradient));
    PointwiseOp& op = *o->pointwise;
    bool any = false;
    if (op.differentiable) {
      const Derivatives& derivatives = op.derivatives(DType::Float32);
      for (int i = 0; i < op.n_in; ++i) any = any || derivatives.has[i];
    }
    return PyBool_FromLong(any);
  });
}

PyObject* operator_get(PyObject* self, PyObject* instance, PyObject*) {
  return instance ? PyMethod_New(self, instance) : Py_NewRef(self);
}
PyObject* operator_repr(PyObject* self) {
  return PyUnicode_FromFormat("<built-in method %U of rushlight>", operator_of(self)->name);
}
/// Part of (module, name in it): src/rushlight/operators/place.py.
PyObject* place_part(PyObject* module, PyObject* self, Py_ssize_t part) {
  Owned place(PyObject_CallMethod(module, "place_of", "O", self));
  return place ? PySequence_GetItem(place, part) : nullptr;
}
PyObject* operator_reduce(PyObject* self, PyObject*) {
  Owned module(PyImport_ImportModule("rushlight.operators.place"));
  return module ? place_part(module, self, 1) : nullptr;
}
PyObject* name_get(PyObject* self, void*) { return Py_NewRef(operator_of(self)->name); }
/// Exactly where somebody pickles operators.
PyObject* module_get(PyObject* self, void*) {
  static PyObject* name = intern("rushlight.operators.place");
  Owned module(PyImport_GetModule(name));
  if (module) return place_part(module, self, 0);
  return PyErr_Occurred() ? nullptr : PyUnicode_FromString("rushlight");
}

// ---- texts: made by the package (src/rushlight/operators/text.py) when first looked at

PyObject* made(PyObject* self, PyObject*& slot, const char* maker) {
  if (!slot) {
    Owned module(PyImport_ImportModule("rushlight.operators.text"));
    if (!module) return nullptr;
    slot = PyObject_CallMethod(module, maker, "O", self);
    if (!slot) return nullptr;
  }
  return Py_NewRef(slot);
}
PyObject* doc_get(PyObject* self, void*) { return made(self, operator_of(self)->doc, "doc_of"); }
PyObject* signature_get(PyObject* self, void*) { return made(self, operator_of(self)->signature, "signature_of"); }
int doc_set(PyObject* self, PyObject* value, void*) {
  Py_XSETREF(operator_of(self)->doc, Py_XNewRef(value));
  return 0;
}

PyGetSetDef operator_getset[] = {
    {"__name__", name_get, nullptr, nullptr, nullptr},
    {"__qualname__", name_get, nullptr, nullptr, nullptr},
    {"__module__", module_get, nullptr, nullptr, nullptr},
    {"__doc__", doc_get, doc_set, nullptr, nullptr},
    {"__signature__", signature_get, nullptr, nullptr, nullptr},
    {"signatures", signatures_get, nullptr, "The declared signatures, one per overload.", nullptr},
    {"overloads", overloads_get, nullptr,
     "Per overload: its signature, what it returns, the names of the result's parts, and its parameters as (name, "
     "type, "
     "may be None, by keyword only, default).",
     nullptr},
    {"summary", summary_get, nullptr, "The sentence that the registry gives; '' for declared operators.", nullptr},
    {"forms", forms_get, nullptr,
     "Bits: 1 function, 2 method, 4 in-place form, 8 out= form, 16 of nn; 0 for declared operators.", nullptr},
    {"inplace", inplace_get, nullptr, "Does it change its first argument?", nullptr},
    {"pointwise", pointwise_get, nullptr, "Is it declared in Python (rushlight.operators.pointwise)?", nullptr},
    {"differentiable", differentiable_get, nullptr, "Has it a derivative with respect to some argument?", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMethodDef operator_methods[] = {{"__reduce__", operator_reduce, METH_NOARGS, nullptr},
                                  {nullptr, nullptr, 0, nullptr}};

}  // namespace

void init_operator_type(PyObject* module) {
  PyMemberDef* members =
      new PyMemberDef[2]{{"__vectorcalloffset__", T_PYSSIZET, offsetof(OperatorObject, vectorcall), READONLY, nullptr},
                         {nullptr, 0, 0, 0, nullptr}};
  PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                         {Py_tp_descr_get, reinterpret_cast<void*>(operator_get)},
                         {Py_tp_repr, reinterpret_cast<void*>(operator_repr)},
                         {Py_tp_getset, operator_getset},
                         {Py_tp_methods, operator_methods},
                         {Py_tp_members, members},
                         {0, nullptr}};
  PyType_Spec spec{"rushlight.operator", sizeof(OperatorObject), 0,
                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR |
                       Py_TPFLAGS_DISALLOW_INSTANTIATION,
                   slots};
  operator_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)));
  checked(PyModule_AddObjectRef(module, "Operator", reinterpret_cast<PyObject*>(operator_type)));
}

}  // namespace rushlight::python
