// Memory and lifetime of tensors and nodes as Python objects, and the interpreter lock, for the core.
#include <thread>
#include <vector>

#include "python/batched.h"

namespace rushlight {

using namespace python;

void object_dispose(Object* o) noexcept {
  o->refcount = 0;
  _Py_Dealloc(object_of(o));
}

void object_track(Object* o) noexcept { PyObject_GC_Track(object_of(o)); }

void* lock_release() noexcept { return PyEval_SaveThread(); }
void lock_acquire(void* state) noexcept { PyEval_RestoreThread(static_cast<PyThreadState*>(state)); }

void breathe() {
  if (PyErr_CheckSignals() < 0) throw PythonError();
  // let a waiting thread run, as the interpreter's own loop does between instructions
  PyThreadState* state = PyEval_SaveThread();
  PyEval_RestoreThread(state);
}

void run_on_fresh_stack(void (*f)(void*), void* argument) {
  struct Call {
    void (*f)(void*);
    void* argument;
    Modes modes;
    Batching batching;
    PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
    std::exception_ptr error;
  } call{f, argument, modes, batching, nullptr, nullptr, nullptr, nullptr};
  {
    Unlocked unlocked;
    std::thread thread([&call] {
      PyGILState_STATE state = PyGILState_Ensure();
      modes = call.modes;
      batching = call.batching;
      try {
        call.f(call.argument);
      } catch (PythonError&) {
        PyErr_Fetch(&call.type, &call.value, &call.trace);
      } catch (...) {
        call.error = std::current_exception();
      }
      PyGILState_Release(state);
    });
    thread.join();
  }
  if (call.type) {
    PyErr_Restore(call.type, call.value, call.trace);
    throw PythonError();
  }
  if (call.error) std::rethrow_exception(call.error);
}

void warn(const std::string& message) {
  if (PyErr_WarnEx(PyExc_UserWarning, message.c_str(), 1) < 0) throw PythonError();
}

// Dead tensors and nodes keep their memory for the next ones: both are made and dropped once per operation.

namespace {
constexpr std::size_t keep = sanitized ? 0 : 512;
std::vector<PyObject*> free_tensors;
constexpr std::size_t node_step = 32;
constexpr std::size_t node_classes = 24;
std::vector<PyObject*> free_nodes[node_classes];
std::size_t free_node_bytes = 0;

/// A large graph is followed by another one: its nodes are kept up to a part of what the cache of memory may hold. They
/// come without the page faults and the runs of the garbage collector that fresh objects bring.
bool keeps_node(std::size_t size_class) {
  if (size_class >= node_classes || sanitized) return false;
  return free_nodes[size_class].size() < keep ||
         std::int64_t(free_node_bytes + size_class * node_step) <= memory_stats().limit / 32;
}
}  // namespace

Tensor* tensor_allocate() {
  Tensor* t;
  if (!free_tensors.empty()) {
    t = tensor_of(free_tensors.back());
    free_tensors.pop_back();
    t->refcount = 1;
  } else {
    t = PyObject_GC_New(Tensor, tensor_type);
    if (!t) fail(ErrorKind::OutOfMemory, "not enough memory for a tensor object");
  }
  t->dict = nullptr;
  t->weakrefs = nullptr;
  return t;
}

namespace python {

void tensor_dealloc(PyObject* self) {
  Tensor* t = tensor_of(self);
  PyObject_GC_UnTrack(self);
  if (t->weakrefs) PyObject_ClearWeakRefs(self);
  if (t->dict) Py_CLEAR(reinterpret_cast<PyObject*&>(t->dict));
  tensor_clear(t);
  PyTypeObject* type = Py_TYPE(self);
  if (type == tensor_type && free_tensors.size() < keep) {
    free_tensors.push_back(self);
    return;
  }
  type->tp_free(self);
  Py_DECREF(type);
}

static std::size_t node_class(std::size_t items) { return (sizeof(Node) + items * 8 + node_step - 1) / node_step; }

void* allocate_node(PyTypeObject* type, std::size_t bytes) {
  std::size_t c = (bytes + node_step - 1) / node_step;
  auto items = Py_ssize_t((c * node_step - sizeof(Node) + 7) / 8);
  Node* node;
  if (c < node_classes && !free_nodes[c].empty()) {
    PyObject* memory = free_nodes[c].back();
    free_nodes[c].pop_back();
    free_node_bytes -= c * node_step;
    Py_INCREF(type);
    Py_SET_TYPE(memory, type);
    Py_SET_REFCNT(memory, 1);
    node = node_of(memory);
    node->item_count = items;
  } else {
    node = PyObject_GC_NewVar(Node, type, items);
    if (!node) fail(ErrorKind::OutOfMemory, "not enough memory for a graph node");
  }
  node->dict = nullptr;
  node->weakrefs = nullptr;
  return node;
}

void node_dealloc(PyObject* self) {
  Node* node = node_of(self);
  PyObject_GC_UnTrack(self);
  if (node->weakrefs) PyObject_ClearWeakRefs(self);
  node_clear(node);
  if (node->dict) Py_CLEAR(reinterpret_cast<PyObject*&>(node->dict));
  PyTypeObject* type = Py_TYPE(self);
  std::size_t c = node_class(std::size_t(node->item_count));
  if (keeps_node(c)) {
    free_nodes[c].push_back(self);
    free_node_bytes += c * node_step;
  } else {
    type->tp_free(self);
  }
  Py_DECREF(type);
}

void free_kept_nodes() {
  for (auto& list : free_nodes) {
    for (PyObject* memory : list) PyObject_GC_Del(memory);
    list = {};
  }
  free_node_bytes = 0;
}

}  // namespace python
}  // namespace rushlight
