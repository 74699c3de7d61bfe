// The profiler's record: events of operators, nodes of backward and named ranges, nested, on all threads.
#include <chrono>
#include <thread>

#include "operators/deferred.h"
#include "python/place.h"
#include "python/watch.h"

namespace rushlight::python {

bool profiling = false;

namespace {

enum class EventKind : std::uint8_t { Operator, Node, Range, Pass };

struct Event {
  Owned name, shapes, stack, result;  ///< result: the shape of an operator's (first) tensor
  EventKind kind = EventKind::Operator;
  std::int64_t begin = 0, end = -1;  ///< in ns
  std::int64_t allocated = 0;        ///< bytes: until the event ends, what was in use at its begin; then the difference
  std::size_t thread = 0;
  std::int64_t parent = -1;
  std::uint64_t sequence = 0;  ///< of the node that ran, or that an operator recorded
  std::int64_t identity = 0;   ///< its id()
};

std::vector<Event> events;
bool with_shapes = false, with_stacks = false;
std::int64_t session = 0;

/// The events that are open on this thread, in one session.
struct Open {
  std::int64_t session = -1;
  std::vector<std::size_t> events;
};
thread_local Open open;

std::int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Event& begin(Owned name, EventKind kind) {
  if (open.session != session) open = {session, {}};
  Event e;
  e.name = std::move(name);
  e.kind = kind;
  e.allocated = memory_stats().allocated;
  e.thread = std::hash<std::thread::id>()(std::this_thread::get_id());
  e.parent = open.events.empty() ? -1 : std::int64_t(open.events.back());
  open.events.push_back(events.size());
  events.push_back(std::move(e));
  return events.back();
}

/// Closes what was opened last, or nothing where that was another session's.
Event* end() {
  if (!profiling || open.session != session || open.events.empty()) return nullptr;
  Event& e = events[open.events.back()];
  open.events.pop_back();
  e.end = now();
  e.allocated = memory_stats().allocated - e.allocated;
  return &e;
}

PyObject* shapes_of(PyObject* const* args, Py_ssize_t n) {
  Owned list(checked(PyList_New(0)));
  for (Py_ssize_t i = 0; i < n; ++i) {
    Owned size(is_tensor(args[i]) ? make_size(tensor_of(args[i])->sizes()) : PyList_New(0));
    checked(PyList_Append(list, size));
  }
  return list.detach();
}

void name_node(Event& e, const Node* node) {
  e.sequence = node->sequence;
  e.identity = std::int64_t(reinterpret_cast<std::intptr_t>(node));
}

void pass_event(bool begins) {
  if (begins)
    begin(Owned(checked(PyUnicode_FromString("rushlight::fused_pass"))), EventKind::Pass).begin = now();
  else
    end();
}

void set_profiling(bool on) {
  if (on == profiling) return;
  watch_calls(on);
  profiling = on;
  node_watch.profile = on;
  watch_pass = on ? &pass_event : nullptr;
}

PyObject* start(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    int shapes, stacks;
    if (!PyArg_ParseTuple(args, "pp", &shapes, &stacks)) return nullptr;
    check(!profiling, "Profiler is already enabled on this thread");
    events.clear();
    ++session;
    with_shapes = shapes;
    with_stacks = stacks;
    set_profiling(true);
    Py_RETURN_NONE;
  });
}

Owned event_tuple(const Event& e) {
  auto or_none = [](const Owned& o) { return o ? o.get() : Py_None; };
  return Owned(checked(Py_BuildValue("OiLLLnLKLOOO", e.name.get(), int(e.kind), static_cast<long long>(e.begin),
                                     static_cast<long long>(e.end), static_cast<long long>(e.allocated),
                                     Py_ssize_t(e.thread >> 1), static_cast<long long>(e.parent),
                                     static_cast<unsigned long long>(e.sequence), static_cast<long long>(e.identity),
                                     or_none(e.shapes), or_none(e.stack), or_none(e.result))));
}

PyObject* stop(PyObject*, PyObject*) {
  return guarded([&] {
    check(profiling, "Can't disable Kineto profiler when it's not running");
    set_profiling(false);
    std::int64_t last = now();
    std::vector<Event> taken = std::move(events);
    events.clear();
    ++session;
    Owned list(checked(PyList_New(0)));
    for (Event& e : taken) {
      if (e.end < 0) {  // still open
        e.end = last;
        e.allocated = 0;
      }
      checked(PyList_Append(list, event_tuple(e)));
    }
    return list.detach();
  });
}

PyObject* enter(PyObject*, PyObject* name) {
  return guarded([&]() -> PyObject* {
    if (profiling) {
      Owned stack(with_stacks ? capture_place() : nullptr);
      Event& e = begin(Owned::borrow(name), EventKind::Range);
      e.stack = std::move(stack);
      e.begin = now();
    }
    Py_RETURN_NONE;
  });
}
PyObject* leave(PyObject*, PyObject*) {
  end();
  Py_RETURN_NONE;
}
PyObject* enabled(PyObject*, PyObject*) { return PyBool_FromLong(profiling); }
PyObject* place(PyObject*, PyObject*) {
  return guarded([] { return capture_place(); });
}
PyObject* clock_ns(PyObject*, PyObject*) { return PyLong_FromLongLong(now()); }

PyMethodDef methods[] = {
    {"_profiler_start", start, METH_VARARGS, "_profiler_start(record_shapes, with_stack): begins to record events."},
    {"_profiler_stop", stop, METH_NOARGS,
     "Ends it: [(name, kind, begin, end, bytes, thread, parent, sequence, id of the node, shapes, stack, shape of the "
     "result), ...]; kinds: "
     "0 operator, 1 node, 2 range, 3 pass over memory that computed deferred results."},
    {"_profiler_enter", enter, METH_O, "Opens a range of this name, if events are recorded."},
    {"_profiler_exit", leave, METH_NOARGS, "Closes the range, or whatever was opened last."},
    {"_profiler_enabled", enabled, METH_NOARGS, "Are events recorded?"},
    {"_capture_place", place, METH_NOARGS, "The calls that led here, as autograd._location reads them."},
    {"_profiler_clock", clock_ns, METH_NOARGS, "The clock of the events, in ns."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void event_begin(PyObject* name, PyObject* const* args, Py_ssize_t nargs) {
  Owned shapes(with_shapes ? shapes_of(args, nargs) : nullptr), stack(with_stacks ? capture_place() : nullptr);
  Event& e = begin(Owned::borrow(name), EventKind::Operator);
  e.shapes = std::move(shapes);
  e.stack = std::move(stack);
  e.begin = now();
}

void event_end(PyObject* result) {
  Event* e = end();
  if (!e || !result) return;
  PyObject* first = PyTuple_Check(result) && PyTuple_GET_SIZE(result) ? PyTuple_GET_ITEM(result, 0) : result;
  if (!is_tensor(first)) return;
  const Tensor& t = *tensor_of(first);
  if (t.grad_fn_) name_node(*e, t.grad_fn_);
  if (with_shapes) e->result = Owned(make_size(t.sizes()));
}

void init_profile(PyObject* module) { checked(PyModule_AddFunctions(module, methods)); }

}  // namespace rushlight::python

namespace rushlight {

void profile_node(Node* node) {
  using namespace python;
  Event& e = begin(Owned(checked(PyUnicode_FromString(name_of(node).c_str()))), EventKind::Node);
  name_node(e, node);
  e.begin = now();
}

void profile_end() {
  if (python::profiling) python::end();
}

}  // namespace rushlight
