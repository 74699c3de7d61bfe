// Where operations were recorded: the calls that led to a node or to an in-place change, for the errors of backward.
//
// Taken for every operation while anomaly mode or locations are on, hence only what costs little: the code objects of
// the frames and the positions in them. The package makes text of it (autograd/_location.py) when an error asks.
#include "python/place.h"

#include <algorithm>
#include <unordered_map>

namespace rushlight {
using namespace python;

namespace python {

namespace {

/// The calls that led somewhere, innermost first. One allocation, not watched by the collector: code objects lead to no
/// tensors.
struct Place {
  PyObject_VAR_HEAD;
  struct Call {
    PyObject* code;
    int position;
  } calls[1];
};

void place_dealloc(PyObject* self) {
  auto* place = reinterpret_cast<Place*>(self);
  for (Py_ssize_t i = 0; i < Py_SIZE(self); ++i) Py_DECREF(place->calls[i].code);
  PyTypeObject* type = Py_TYPE(self);
  PyObject_Free(self);
  Py_DECREF(type);
}

/// [(code, position of the instruction in bytes), ...]
PyObject* place_calls(PyObject* self, PyObject*) {
  return guarded([&] {
    auto* place = reinterpret_cast<Place*>(self);
    Owned list(checked(PyList_New(Py_SIZE(self))));
    for (Py_ssize_t i = 0; i < Py_SIZE(self); ++i)
      PyList_SET_ITEM(list.get(), i, checked(Py_BuildValue("Oi", place->calls[i].code, place->calls[i].position)));
    return list.detach();
  });
}

PyTypeObject* place_type() {
  static PyTypeObject* type = nullptr;
  if (type) return type;
  static PyMethodDef methods[] = {{"calls", place_calls, METH_NOARGS, "[(code, position), ...], innermost call first."},
                                  {nullptr, nullptr, 0, nullptr}};
  PyType_Slot slots[] = {
      {Py_tp_dealloc, reinterpret_cast<void*>(place_dealloc)}, {Py_tp_methods, methods}, {0, nullptr}};
  PyType_Spec spec{"rushlight._C._Place", int(sizeof(Place) - sizeof(Place::Call)), int(sizeof(Place::Call)),
                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)));
  return type;
}

}  // namespace

PyObject* capture_place() {
  constexpr int deepest = 256;
  Place::Call calls[deepest];
  int n = 0;
  PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
  while (frame && n < deepest) {
    calls[n++] = {reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)), PyFrame_GetLasti(frame)};
    PyFrameObject* caller = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = caller;
  }
  Py_XDECREF(frame);
  auto* place = PyObject_NewVar(Place, place_type(), n);
  if (!place) throw PythonError();
  std::copy(calls, calls + n, place->calls);
  return reinterpret_cast<PyObject*>(place);
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
  std::size_t size;  ///< of the storage: another one may come to be where it was
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
  changes()[t->storage] = {t->version() + 1, Owned(capture_place()), operation, t->storage->size};
}

std::string describe_change(const Tensor* t) {
  auto it = changes().find(t->storage);
  if (it == changes().end() || it->second.version != t->version()) return "";
  if (it->second.size != t->storage->size) return "";
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

void report_not_finite(Node* node, int output, bool nan, const TensorRef* grads, const TensorRef& result) {
  Owned module(checked(PyImport_ImportModule("rushlight.autograd.anomaly_mode")));
  Owned inputs(wrap_tuple(TensorList(grads, grads + node->n_outputs)));
  PyObject* place = node->extra && node->extra->trace ? object_of(node->extra->trace) : Py_None;
  Owned message(checked(PyObject_CallMethod(module, "_backward_message", "siOOOO", name_of(node).c_str(), output,
                                            nan ? Py_True : Py_False, inputs.get(), object_of(result.get()), place)));
  fail(text_of(message));
}

}  // namespace rushlight
