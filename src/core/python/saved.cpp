// What a node keeps: node._saved_self, _saved_other, _saved_result, ..., and the slots they are in (_raw_saved_self).
//
// Names are those of the operator's parameters and of its results. A slot knows which input or output it holds; what is
// neither, such as an index, is told by the order of the parameters that have no edge.
#include "python/saved.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "operators/expression.h"
#include "python/hook.h"

namespace rushlight::python {
namespace {

PyTypeObject* saved_type;

/// The operator of which a node is the derivative, by its name: LogSoftmaxBackward0 is log_softmax's.
const Operator* operator_of_node(const Node* node) {
  static const auto* operators = [] {
    auto* made = new std::map<std::string, const Operator*>;
    for (const Operator* op : all_operators()) {
      std::string compact;
      for (char c : op->name)
        if (c != '_') compact += c;
      made->emplace(compact, op);
    }
    return made;
  }();
  std::string name = operation_of(node);
  for (char& c : name) c = char(std::tolower(c));
  auto it = operators->find(name);
  return it == operators->end() ? nullptr : it->second;
}

/// Its overload that gives as many results: of max(self) and max(self, dim), one gives two.
const Overload* overload_of_node(const Node* node) {
  const Operator* op = operator_of_node(node);
  if (!op) return nullptr;
  for (auto& overload : op->overloads)
    if (std::max<std::size_t>(overload.fields.size(), 1) == std::size_t(std::max(node->n_outputs, 1))) return &overload;
  return nullptr;
}

/// The first slot that fits, or -1.
template <class F>
int find_slot(const Node* node, F&& fits) {
  for (int i = 0; i < node->n_saved; ++i)
    if (fits(node->saved[i])) return i;
  return -1;
}

/// Parameters without a gradient, to which no edge leads.
bool chooses(std::string_view parameter) {
  for (std::string_view name : {"index", "indices", "mask", "condition", "target"})
    if (name == parameter) return true;
  return false;
}

struct Named {
  std::string name;
  int slot;
};

/// Slots of neither an input nor an output, for the names that are left: those of parameters, or else of results.
void name_others(const Node* node, const std::vector<std::string>& parameters, const std::vector<std::string>& results,
                 std::vector<Named>& out) {
  std::vector<int> slots;
  for (int i = 0; i < node->n_saved; ++i)
    if (node->saved[i].input < 0 && node->saved[i].output < 0) slots.push_back(i);
  const auto& names = parameters.empty() ? results : parameters;
  if (slots.size() != names.size()) return;
  for (std::size_t i = 0; i < slots.size(); ++i) out.push_back({names[i], slots[i]});
}

/// The names of what a node of the registry keeps.
std::vector<Named> registry_names(const Node* node) {
  std::vector<Named> out;
  std::vector<std::string> parameters, results;
  const Overload* overload = overload_of_node(node);
  if (overload) {
    int input = 0;
    for (auto& p : overload->params) {
      if (p.type != ArgType::Tensor) continue;
      int slot = find_slot(node, [&](const SavedTensor& s) { return s.input == input; });
      if (chooses(p.name) || input >= node->n_edges) {
        parameters.push_back(p.name);
        continue;
      }
      if (slot >= 0) out.push_back({p.name, slot});
      ++input;
    }
  }
  if (overload) {
    auto& fields = overload->fields;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      int slot = find_slot(node, [&](const SavedTensor& s) { return s.output == int(i); });
      if (slot >= 0)
        out.push_back({fields[i], slot});
      else if (i)
        results.push_back(fields[i]);
    }
  }
  if (int slot = find_slot(node, [](const SavedTensor& s) { return s.output == 0; }); slot >= 0)
    out.push_back({"result", slot});
  name_others(node, parameters, results, out);
  return out;
}

/// The slots that have names, and (slot -1) the numbers.
std::vector<Named> names_of(const Node* node) {
  std::vector<std::string> operands = operand_names(node);
  if (operands.empty()) return registry_names(node);
  std::vector<Named> out;
  for (auto& name : operands)
    if (int slot = saved_slot(node, name); slot >= 0 || saved_number(node, name)) out.push_back({name, slot});
  return out;
}

// ---- one slot, as an object

struct SavedObject {
  PyObject_HEAD PyObject* node;
  int slot;
};

PyObject* make_saved(PyObject* node, int slot) {
  auto* made = PyObject_New(SavedObject, saved_type);
  if (!made) throw PythonError();
  made->node = Py_NewRef(node);
  made->slot = slot;
  return reinterpret_cast<PyObject*>(made);
}

void saved_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  Py_DECREF(reinterpret_cast<SavedObject*>(self)->node);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* saved_new(PyTypeObject*, PyObject*, PyObject*) {
  PyErr_SetString(PyExc_RuntimeError, "Trying to create a SavedTensor object from Python is forbidden.");
  return nullptr;
}

PyObject* register_hooks(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *pack, *unpack;
    if (!PyArg_ParseTuple(args, "OO", &pack, &unpack)) return nullptr;
    auto* object = reinterpret_cast<SavedObject*>(self);
    Node* node = node_of(object->node);
    check(
        !node->released,
        "Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values of the graph are "
        "freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward through "
        "the graph a second time or if you need to access saved variables after calling backward.");
    SavedTensor& s = node->saved[object->slot];
    check(!s.hook,
          "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of hooks is "
          "allowed at a time.");
    check(s.tensor, "Calling register_hooks on a saved tensor with value None is forbidden");
    SavedHook* hook = pack_with(*s.tensor, pack, unpack);
    s.hook = hook;
    if (Tensor* t = std::exchange(s.tensor, nullptr)) release(static_cast<Object*>(t));
    Py_RETURN_NONE;
  });
}

PyMethodDef saved_methods[] = {
    {"register_hooks", register_hooks, METH_VARARGS,
     "register_hooks(pack_hook, unpack_hook): keep pack_hook(tensor) in place of the tensor."},
    {nullptr, nullptr, 0, nullptr},
};

PyObject* value_of(PyObject* self, const Named& found) {
  Node* node = node_of(self);
  if (found.slot < 0) return number_to_python(*saved_number(node, found.name));
  return guarded([&] {
    if (node->released) fail_released(node);
    return wrap(unpack(node, found.slot));
  });
}

}  // namespace

PyObject* node_attribute(PyObject* self, PyObject* attribute) {
  if (PyObject* found = PyObject_GenericGetAttr(self, attribute)) return found;
  if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return nullptr;
  const char* text = PyUnicode_AsUTF8(attribute);
  if (!text || text[0] != '_') return nullptr;
  std::string_view name(text);
  bool raw = name.starts_with("_raw_saved_");
  if (!raw && !name.starts_with("_saved_")) return nullptr;
  name.remove_prefix(raw ? 11 : 7);
  for (const Named& found : names_of(node_of(self))) {
    if (found.name != name || (raw && found.slot < 0)) continue;
    PyErr_Clear();
    return raw ? guarded([&] { return make_saved(self, found.slot); }) : value_of(self, found);
  }
  return nullptr;
}

PyObject* node_dir(PyObject* self, PyObject*) {
  return guarded([&] {
    Owned list(checked(PyObject_CallMethod(reinterpret_cast<PyObject*>(&PyBaseObject_Type), "__dir__", "O", self)));
    for (const Named& found : names_of(node_of(self)))
      for (const char* prefix : {"_saved_", "_raw_saved_"}) {
        if (found.slot < 0 && prefix[1] == 'r') continue;
        Owned name(checked(PyUnicode_FromFormat("%s%s", prefix, found.name.c_str())));
        checked(PyList_Append(list, name));
      }
    return list.detach();
  });
}

void init_saved_type(PyObject* module) {
  PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(saved_dealloc)},
                         {Py_tp_new, reinterpret_cast<void*>(saved_new)},
                         {Py_tp_methods, saved_methods},
                         {0, nullptr}};
  PyType_Spec spec{"rushlight._C.SavedTensor", sizeof(SavedObject), 0, Py_TPFLAGS_DEFAULT, slots};
  saved_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)));
  checked(PyModule_AddObjectRef(module, "SavedTensor", reinterpret_cast<PyObject*>(saved_type)));
}

}  // namespace rushlight::python
