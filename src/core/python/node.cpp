// Graph nodes as Python sees them.
#include <algorithm>

#include "python/hook.h"
#include "python/place.h"
#include "python/python.h"
#include "python/saved.h"

namespace rushlight {
using namespace python;

namespace python {

PyTypeObject* node_type;
void* allocate_node(PyTypeObject* type, std::size_t bytes);
void node_dealloc(PyObject* self);

namespace {

int node_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Node* node = node_of(self);
  Py_VISIT(static_cast<PyObject*>(node->dict));
  return node_visit(node, Visitor{reinterpret_cast<int (*)(void*, void*)>(visit), arg});
}

int node_clear_cycles(PyObject* self) {
  Node* node = node_of(self);
  Py_CLEAR(reinterpret_cast<PyObject*&>(node->dict));
  release_saved(node);
  if (NodeExtra* extra = std::exchange(node->extra, nullptr)) delete extra;
  for (int i = 0; i < node->n_edges; ++i)
    if (Node* next = std::exchange(node->edges[i].node, nullptr)) drop(next);
  return 0;
}

PyObject* node_repr(PyObject* self) {
  std::string_view type = Py_TYPE(self)->tp_name;
  return PyUnicode_FromFormat("<%s object at %p>", type.data() + (type.rfind('.') + 1), self);
}

PyObject* name(PyObject* self, PyObject*) {
  Node* node = node_of(self);
  return PyUnicode_FromString(node->kind->name.empty() ? Py_TYPE(self)->tp_name : node->kind->name.c_str());
}

PyObject* next_functions(PyObject* self, void*) {
  return guarded([&] {
    Node* node = node_of(self);
    PyObject* out = checked(PyTuple_New(node->n_edges));
    for (int i = 0; i < node->n_edges; ++i) {
      const Edge& e = node->edges[i];
      PyTuple_SET_ITEM(out, i, Py_BuildValue("(OI)", e.node ? object_of(e.node) : Py_None, unsigned(e.output)));
    }
    return out;
  });
}

PyObject* metadata(PyObject* self, void*) {
  NodeExtra& extra = node_of(self)->extras();
  if (!extra.metadata) extra.metadata = reinterpret_cast<Object*>(PyDict_New());
  return Py_NewRef(object_of(extra.metadata));
}

PyObject* variable(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    Node* node = node_of(self);
    if (node->kind != &AccumulateGrad::kind) {
      PyErr_Format(PyExc_AttributeError, "'%s' object has no attribute 'variable'", Py_TYPE(self)->tp_name);
      return nullptr;
    }
    Tensor* t = static_cast<AccumulateGrad*>(node)->variable;
    return t ? Py_NewRef(object_of(t)) : Py_NewRef(Py_None);
  });
}

PyObject* requires_grad(PyObject*, void*) { Py_RETURN_TRUE; }
PyObject* sequence_nr(PyObject* self, PyObject*) { return PyLong_FromUnsignedLongLong(node_of(self)->sequence); }
PyObject* register_hook(PyObject* self, PyObject* hook) {
  return guarded([&] { return add_node_hook(node_of(self), hook); });
}
PyObject* register_prehook(PyObject* self, PyObject* hook) {
  return guarded([&] { return add_node_prehook(node_of(self), hook); });
}

PyObject* call(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    Node* node = node_of(self);
    check_type(!kwargs || PyDict_GET_SIZE(kwargs) == 0, "keyword arguments are not supported by a call of a node");
    check_type(PyTuple_GET_SIZE(args) == node->n_outputs, node->kind->name, " expected ", node->n_outputs,
               " arguments, got ", PyTuple_GET_SIZE(args), " instead");
    std::vector<TensorRef> grads(node->n_outputs), results(node->n_edges);
    for (int i = 0; i < node->n_outputs; ++i) {
      PyObject* g = PyTuple_GET_ITEM(args, i);
      check_type(g == Py_None || is_tensor(g), "expected a Tensor or None as argument ", i, ", got ",
                 Py_TYPE(g)->tp_name);
      if (g != Py_None) grads[std::size_t(i)] = TensorRef(tensor_of(g));
    }
    bool any = std::any_of(grads.begin(), grads.end(), [](const TensorRef& g) { return bool(g); });
    if (any || node->kind->runs_without_gradients) node->kind->apply(node, grads.data(), results.data());
    if (results.empty()) Py_RETURN_NONE;
    if (results.size() == 1) return wrap(std::move(results[0]));
    return wrap_tuple(std::move(results));
  });
}

PyObject* shapes(PyObject* self, PyObject*) {
  return guarded([&] {
    Node* node = node_of(self);
    int n = std::min<int>(node->ndim, 4);
    PyObject* shape = checked(PyTuple_New(n));
    for (int i = 0; i < n; ++i) PyTuple_SET_ITEM(shape, i, PyLong_FromLongLong(node->sizes[i]));
    Owned list(checked(Py_BuildValue("[N]", shape)));
    if (node->extra)
      for (auto& sizes : node->extra->more_sizes) {
        Owned next(checked(PyTuple_New(sizes.size())));
        for (int i = 0; i < sizes.size(); ++i) PyTuple_SET_ITEM(next.get(), i, PyLong_FromLongLong(sizes[i]));
        checked(PyList_Append(list, next));
      }
    return list.detach();
  });
}

PyObject* saved_info(PyObject* self, PyObject*) {
  return guarded([&] {
    Node* node = node_of(self);
    PyObject* list = checked(PyList_New(0));
    for (int i = 0; i < node->n_saved; ++i) {
      SavedTensor& s = node->saved[i];
      if (!s.tensor) continue;
      std::string label = s.output >= 0  ? "result"
                          : s.input >= 0 ? "input " + std::to_string(s.input)
                                         : "saved " + std::to_string(i);
      Owned entry(Py_BuildValue("(sNsL)", label.c_str(), make_size(s.tensor->sizes()), rushlight::name(s.tensor->dtype),
                                (long long)(s.tensor->numel * s.tensor->item_size())));
      checked(PyList_Append(list, entry));
    }
    return list;
  });
}

PyObject* location(PyObject* self, void*) {
  Node* node = node_of(self);
  if (!node->extra || !node->extra->trace) Py_RETURN_NONE;
  return guarded([&] { return place_text(object_of(node->extra->trace), diagnosis.anomaly); });
}

PyGetSetDef getset[] = {
    {"next_functions", next_functions, nullptr,
     "((node, output number), ...): the producers of the operation's inputs.", nullptr},
    {"metadata", metadata, nullptr, "A dict for anything that a program wants to keep with the node.", nullptr},
    {"variable", variable, nullptr, "Of AccumulateGrad: the leaf.", nullptr},
    {"requires_grad", requires_grad, nullptr, "True: only what requires grad is recorded.", nullptr},
    {"_location", location, nullptr, "Where the operation was recorded, if locations are recorded.", nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMethodDef methods[] = {
    {"name", name, METH_NOARGS, "The node's name, as in MulBackward0."},
    {"_sequence_nr", sequence_nr, METH_NOARGS, "The order of recording."},
    {"register_hook", register_hook, METH_O,
     "register_hook(hook): hook(grad_inputs, grad_outputs) runs after the node. Returns a handle."},
    {"register_prehook", register_prehook, METH_O,
     "register_prehook(hook): hook(grad_outputs) runs before the node. Returns a handle."},
    {"__dir__", node_dir, METH_NOARGS, nullptr},
    {"_input_shapes", shapes, METH_NOARGS, "The shapes of the operation's outputs (of the first, up to four sizes)."},
    {"_describe_saved", saved_info, METH_NOARGS, "[(label, shape, dtype, bytes), ...] of the saved tensors."},
    {nullptr, nullptr, 0, nullptr},
};

PyMemberDef members[] = {{"__dictoffset__", T_PYSSIZET, offsetof(Node, dict), READONLY, nullptr},
                         {"__weaklistoffset__", T_PYSSIZET, offsetof(Node, weakrefs), READONLY, nullptr},
                         {nullptr, 0, 0, 0, nullptr}};

/// The class of one kind of node: AddBackward0, ...
PyTypeObject* make_type(const std::string& full_name) {
  auto colon = full_name.rfind(':');
  auto* type_name =
      new std::string("rushlight.autograd." + (colon == full_name.npos ? full_name : full_name.substr(colon + 1)));
  PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(node_dealloc)},
                         {Py_tp_traverse, reinterpret_cast<void*>(node_traverse)},
                         {Py_tp_clear, reinterpret_cast<void*>(node_clear_cycles)},
                         {0, nullptr}};
  PyType_Spec spec{type_name->c_str(), sizeof(Node), 8,
                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  return reinterpret_cast<PyTypeObject*>(
      checked(PyType_FromSpecWithBases(&spec, reinterpret_cast<PyObject*>(node_type))));
}

}  // namespace

void init_node_type(PyObject* module) {
  PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(node_dealloc)},
                         {Py_tp_traverse, reinterpret_cast<void*>(node_traverse)},
                         {Py_tp_clear, reinterpret_cast<void*>(node_clear_cycles)},
                         {Py_tp_repr, reinterpret_cast<void*>(node_repr)},
                         {Py_tp_call, reinterpret_cast<void*>(call)},
                         {Py_tp_getattro, reinterpret_cast<void*>(node_attribute)},
                         {Py_tp_getset, getset},
                         {Py_tp_methods, methods},
                         {Py_tp_members, members},
                         {0, nullptr}};
  PyType_Spec spec{"rushlight._C._Node", sizeof(Node), 8,
                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                   slots};
  node_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)));
  checked(PyModule_AddObjectRef(module, "_Node", reinterpret_cast<PyObject*>(node_type)));
  init_saved_type(module);
}

}  // namespace python

void* node_allocate(NodeKind* kind, std::size_t bytes) {
  if (!kind->type) kind->type = make_type(kind->name);
  return allocate_node(static_cast<PyTypeObject*>(kind->type), bytes);
}

}  // namespace rushlight
