// Where operations were recorded: the calls that led to a node or to an in-place change, for the errors of backward.
//
// Taken for every operation while anomaly mode or locations are on, hence only what costs little: the code objects of
// the frames and the positions in them. The package makes text of it (autograd/_location.py) when an error asks.
#include "python/place.h"

#include <unordered_map>

namespace rushlight {
using namespace python;

namespace python {

PyObject* capture_place() {
  std::vector<Owned> codes;
  std::vector<std::int32_t> positions;
  Owned frame(reinterpret_cast<PyObject*>(PyThreadState_GetFrame(PyThreadState_Get())));
  while (frame) {
    auto* f = reinterpret_cast<PyFrameObject*>(frame.get());
    codes.emplace_back(reinterpret_cast<PyObject*>(PyFrame_GetCode(f)));
    positions.push_back(PyFrame_GetLasti(f));
    frame = Owned(reinterpret_cast<PyObject*>(PyFrame_GetBack(f)));
  }
  Owned tuple(checked(PyTuple_New(Py_ssize_t(codes.size()) + 1)));
  PyTuple_SET_ITEM(tuple.get(), 0,
                   checked(PyBytes_FromStringAndSize(reinterpret_cast<const char*>(positions.data()),
                                                     Py_ssize_t(positions.size() * sizeof(std::int32_t)))));
  for (std::size_t i = 0; i < codes.size(); ++i) PyTuple_SET_ITEM(tuple.get(), Py_ssize_t(i) + 1, codes[i].detach());
  return tuple.detach();
}

PyObject* place_text(PyObject* place, bool whole) {
  Owned module(checked(PyImport_ImportModule("rushlight.autograd._location")));
  return checked(PyObject_CallMethod(module, whole ? "stack_of" : "line_of", "(O)", place));
}

}  // namespace python

namespace {

struct Change {
  std::uint32_t version;
  Owned place;
  std::string operation;
};

std::unordered_map<const Storage*, Change>& changes() {
  static auto* map = new std::unordered_map<const Storage*, Change>;
  return *map;
}

}  // namespace

std::string name_of(const Node* node) {
  if (!node->kind->name.empty()) return node->kind->name;
  return Py_TYPE(reinterpret_cast<const PyObject*>(node))->tp_name;  // a Function's
}

void trace_node(Node* node) { node->extras().trace = reinterpret_cast<Object*>(capture_place()); }

void trace_change(Tensor* t, const char* operation) {
  if (changes().size() > 4096) changes().clear();  // places of storages long gone
  changes()[t->storage] = {t->version() + 1, Owned(capture_place()), operation};
}

std::string describe_change(const Tensor* t) {
  auto it = changes().find(t->storage);
  if (it == changes().end() || it->second.version != t->version()) return "";
  return concat(text_of(Owned(place_text(it->second.place, false))), " (", it->second.operation, ")");
}

std::string describe_node(const Node* node) {
  if (!node->extra || !node->extra->trace) return "";
  return text_of(Owned(place_text(object_of(node->extra->trace), diagnosis.anomaly)));
}

void explain_failure(Node* node) {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);  // a Python error may be in flight
  std::string where;
  try {
    where = describe_node(node);
  } catch (const PythonError&) {
    PyErr_Clear();  // the error in flight matters more
  }
  std::string text = concat(
      "Error detected in ", name_of(node), ". ",
      where.empty()
          ? "No forward pass information available. Enable detect anomaly during forward pass for more information."
          : "Traceback of forward call that caused the error:\n" + where);
  if (PyErr_WarnEx(PyExc_UserWarning, text.c_str(), 1) < 0) PyErr_Clear();
  PyErr_Restore(type, value, trace);
}

void report_not_finite(Node* node, int output, bool nan, const TensorRef* grads) {
  Owned module(checked(PyImport_ImportModule("rushlight.autograd.anomaly_mode")));
  Owned inputs(wrap_tuple(TensorList(grads, grads + node->n_outputs)));
  Owned place =
      node->extra && node->extra->trace ? Owned::borrow(object_of(node->extra->trace)) : Owned::borrow(Py_None);
  Owned message(checked(PyObject_CallMethod(module, "_backward_message", "siOOO", name_of(node).c_str(), output,
                                            nan ? Py_True : Py_False, inputs.get(), place.get())));
  fail(text_of(message));
}

}  // namespace rushlight
