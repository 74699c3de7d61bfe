#include "python/watch.h"

#include <array>

#include "operators/finite.h"
#include "python/batched.h"
#include "python/place.h"

namespace rushlight::python {
namespace {

/// A callable that stands in for operators: call(operator, args, kwargs).
struct Handler {
  PyObject* call;
  bool functions;  ///< and for functions written in Python (offered.cpp)
};
thread_local std::vector<Handler> handlers;  ///< of this thread, the innermost last
int watchers = 0;
bool checks_forward = false;

// ---- forward checks

/// The tensor with the numbers of all samples, where vmap gave this one.
Tensor* numbers_of(PyObject* o) {
  Tensor* t = tensor_of(o);
  while (is_batched(t)) t = static_cast<Batched*>(t)->value;
  return t;
}

Fault fault_of(PyObject* o) {
  if (is_tensor(o)) return fault_in(*numbers_of(o), diagnosis.check_nan, node_watch.infinities);
  if (!PyTuple_Check(o) && !PyList_Check(o)) return Fault::None;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i)
    if (Fault f = fault_of(PySequence_Fast_GET_ITEM(o, i)); f != Fault::None) return f;
  return Fault::None;
}

bool any_fault(PyObject* const* args, Py_ssize_t n) {
  for (Py_ssize_t i = 0; i < n; ++i)
    if (fault_of(args[i]) != Fault::None) return true;
  return false;
}

/// Raises where the result is the first that is not finite. An input that is not finite has been reported, or was given
/// so; one that was `changed` has been looked at before.
void refuse_fault(PyObject* name, PyObject* const* args, Py_ssize_t n, bool changed, PyObject* result) {
  Fault fault = fault_of(result);
  if (fault == Fault::None || (!changed && any_fault(args, n))) return;
  Owned inputs(checked(PyTuple_New(n)));
  for (Py_ssize_t i = 0; i < n; ++i)
    PyTuple_SET_ITEM(inputs.get(), i, Py_NewRef(is_tensor(args[i]) ? object_of(numbers_of(args[i])) : args[i]));
  if (is_tensor(result)) result = object_of(numbers_of(result));
  Owned module(checked(PyImport_ImportModule("rushlight.autograd.anomaly_mode")));
  Owned place(capture_place());
  Owned message(checked(PyObject_CallMethod(module, "_forward_message", "OOOOO", name, inputs.get(), result,
                                            fault == Fault::Nan ? Py_True : Py_False, place.get())));
  fail(text_of(message));
}

// ---- one watched call

/// The first handler steps aside while it runs: what it calls goes to the next.
PyObject* handle(PyObject* op, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  struct Aside {
    Handler handler = handlers.back();
    Aside() { handlers.pop_back(); }
    Aside(const Aside&) = delete;
    ~Aside() { handlers.push_back(handler); }
  } aside;
  Owned tuple(checked(PyTuple_New(nargs))), kwargs(checked(PyDict_New()));
  for (Py_ssize_t i = 0; i < nargs; ++i) PyTuple_SET_ITEM(tuple.get(), i, Py_NewRef(args[i]));
  if (kwnames)
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(kwnames); ++k)
      checked(PyDict_SetItem(kwargs, PyTuple_GET_ITEM(kwnames, k), args[nargs + k]));
  return checked(PyObject_CallFunctionObjArgs(aside.handler.call, op, tuple.get(), kwargs.get(), nullptr));
}

/// `f` with its event and the check of its result. `changes`: it writes over its first argument.
template <class F>
PyObject* observe(PyObject* name, PyObject* const* args, Py_ssize_t nargs, bool changes, F&& f) {
  bool recorded = profiling;
  bool check = checks_forward && !(changes && any_fault(args, nargs));
  if (recorded) event_begin(name, args, nargs);
  Owned result(f());
  if (recorded) event_end(result);
  if (!result || !check) return result.detach();
  return guarded([&] {
    refuse_fault(name, args, nargs, changes, result);
    return result.detach();
  });
}

PyObject* watched_operator(PyObject* self, PyObject* const* args, std::size_t nargsf, PyObject* kwnames) {
  auto* o = operator_of(self);
  Py_ssize_t n = PyVectorcall_NARGS(nargsf);
  if (!handlers.empty()) return guarded([&] { return handle(self, args, n, kwnames); });
  return observe(o->name, args, n, o->inplace, [&] { return o->call(self, args, nargsf, kwnames); });
}

// ---- Tensor's slots

/// A slot and the operator that it stands for.
struct Slot {
  std::size_t offset;  ///< in PyNumberMethods
  const char* name;
  bool commutes = false;  ///< number op tensor may be handled as tensor op number
  void* plain = nullptr;
  void* watched = nullptr;
  PyObject* op = nullptr;  ///< made when first watched
};

#define RUSHLIGHT_SLOT(member, ...) {offsetof(PyNumberMethods, member), __VA_ARGS__}
std::array binary_slots{
    Slot RUSHLIGHT_SLOT(nb_add, "add", true),
    Slot RUSHLIGHT_SLOT(nb_multiply, "mul", true),
    Slot RUSHLIGHT_SLOT(nb_subtract, "sub"),
    Slot RUSHLIGHT_SLOT(nb_true_divide, "div"),
    Slot RUSHLIGHT_SLOT(nb_floor_divide, "floor_divide"),
    Slot RUSHLIGHT_SLOT(nb_remainder, "remainder"),
    Slot RUSHLIGHT_SLOT(nb_matrix_multiply, "matmul"),
    Slot RUSHLIGHT_SLOT(nb_and, "bitwise_and", true),
    Slot RUSHLIGHT_SLOT(nb_or, "bitwise_or", true),
    Slot RUSHLIGHT_SLOT(nb_xor, "bitwise_xor", true),
    Slot RUSHLIGHT_SLOT(nb_lshift, "bitwise_left_shift"),
    Slot RUSHLIGHT_SLOT(nb_rshift, "bitwise_right_shift"),
    Slot RUSHLIGHT_SLOT(nb_inplace_add, "add_"),
    Slot RUSHLIGHT_SLOT(nb_inplace_multiply, "mul_"),
    Slot RUSHLIGHT_SLOT(nb_inplace_subtract, "sub_"),
    Slot RUSHLIGHT_SLOT(nb_inplace_true_divide, "div_"),
    Slot RUSHLIGHT_SLOT(nb_inplace_floor_divide, "floor_divide_"),
    Slot RUSHLIGHT_SLOT(nb_inplace_remainder, "remainder_"),
    Slot RUSHLIGHT_SLOT(nb_inplace_and, "bitwise_and_"),
    Slot RUSHLIGHT_SLOT(nb_inplace_or, "bitwise_or_"),
    Slot RUSHLIGHT_SLOT(nb_inplace_xor, "bitwise_xor_"),
    Slot RUSHLIGHT_SLOT(nb_inplace_lshift, "bitwise_left_shift_"),
    Slot RUSHLIGHT_SLOT(nb_inplace_rshift, "bitwise_right_shift_"),
};
std::array unary_slots{
    Slot RUSHLIGHT_SLOT(nb_negative, "neg"),
    Slot RUSHLIGHT_SLOT(nb_absolute, "abs"),
    Slot RUSHLIGHT_SLOT(nb_invert, "bitwise_not"),
};
std::array power_slots{
    Slot RUSHLIGHT_SLOT(nb_power, "pow"),
    Slot RUSHLIGHT_SLOT(nb_inplace_power, "pow_"),
};
#undef RUSHLIGHT_SLOT
const char* const comparisons[6] = {"lt", "le", "eq", "ne", "gt", "ge"};  // as Python numbers them
PyObject* comparison_ops[6];
richcmpfunc plain_compare;
binaryfunc plain_get_item;
objobjargproc plain_set_item;
PyObject *get_item_method, *set_item_method;

bool changes_first(const Slot& slot) { return slot.name[std::string_view(slot.name).size() - 1] == '_'; }

bool is_operand(PyObject* o) {
  Operand operand;
  return is_tensor(o) || try_operand(o, operand);
}

template <std::size_t I>
PyObject* watched_binary(PyObject* a, PyObject* b) {
  Slot& slot = binary_slots[I];
  auto plain = reinterpret_cast<binaryfunc>(slot.plain);
  if (!is_operand(a) || !is_operand(b)) return plain(a, b);
  bool swapped = !is_tensor(a);
  PyObject* args[2] = {swapped ? b : a, swapped ? a : b};
  if (!handlers.empty() && (!swapped || slot.commutes))
    return guarded([&] { return handle(slot.op, args, 2, nullptr); });
  PyObject* in_order[2] = {a, b};
  return observe(operator_of(slot.op)->name, in_order, 2, changes_first(slot), [&] { return plain(a, b); });
}

template <std::size_t I>
PyObject* watched_unary(PyObject* a) {
  Slot& slot = unary_slots[I];
  if (!handlers.empty()) return guarded([&] { return handle(slot.op, &a, 1, nullptr); });
  return observe(operator_of(slot.op)->name, &a, 1, false, [&] { return reinterpret_cast<unaryfunc>(slot.plain)(a); });
}

template <std::size_t I>
PyObject* watched_power(PyObject* a, PyObject* b, PyObject* modulus) {
  Slot& slot = power_slots[I];
  auto plain = reinterpret_cast<ternaryfunc>(slot.plain);
  if (modulus != Py_None || !is_operand(a) || !is_operand(b)) return plain(a, b, modulus);
  PyObject* args[2] = {a, b};
  if (!handlers.empty()) return guarded([&] { return handle(slot.op, args, 2, nullptr); });
  return observe(operator_of(slot.op)->name, args, 2, changes_first(slot), [&] { return plain(a, b, modulus); });
}

PyObject* watched_compare(PyObject* a, PyObject* b, int kind) {
  if (!is_operand(b)) return plain_compare(a, b, kind);
  PyObject* args[2] = {a, b};
  PyObject* op = comparison_ops[kind];
  if (!handlers.empty()) return guarded([&] { return handle(op, args, 2, nullptr); });
  return observe(operator_of(op)->name, args, 2, false, [&] { return plain_compare(a, b, kind); });
}

PyObject* watched_get_item(PyObject* self, PyObject* index) {
  PyObject* args[2] = {self, index};
  if (!handlers.empty()) return guarded([&] { return handle(get_item_method, args, 2, nullptr); });
  static PyObject* name = intern("__getitem__");
  return observe(name, args, 2, false, [&] { return plain_get_item(self, index); });
}

int watched_set_item(PyObject* self, PyObject* index, PyObject* value) {
  if (!value) return plain_set_item(self, index, value);
  PyObject* args[3] = {self, index, value};
  if (!handlers.empty()) return guarded_int([&] { Owned done(handle(set_item_method, args, 3, nullptr)); });
  static PyObject* name = intern("__setitem__");
  Owned done(observe(name, args, 3, true, [&]() -> PyObject* {
    return plain_set_item(self, index, value) < 0 ? nullptr : Py_NewRef(self);
  }));
  return done ? 0 : -1;
}

// ---- exchanging them

void*& slot_of(PyTypeObject* type, const Slot& slot) {
  return *reinterpret_cast<void**>(reinterpret_cast<char*>(type->tp_as_number) + slot.offset);
}

PyObject* operator_named(const char* name) {
  return checked(PyObject_GetAttrString(reinterpret_cast<PyObject*>(tensor_type), name));
}

template <std::size_t... B, std::size_t... U, std::size_t... P>
void prepare(std::index_sequence<B...>, std::index_sequence<U...>, std::index_sequence<P...>) {
  ((binary_slots[B].watched = reinterpret_cast<void*>(&watched_binary<B>)), ...);
  ((unary_slots[U].watched = reinterpret_cast<void*>(&watched_unary<U>)), ...);
  ((power_slots[P].watched = reinterpret_cast<void*>(&watched_power<P>)), ...);
  auto take = [](auto& slots) {
    for (Slot& slot : slots) {
      slot.plain = slot_of(tensor_type, slot);
      slot.op = operator_named(slot.name);
    }
  };
  take(binary_slots);
  take(unary_slots);
  take(power_slots);
  for (int i = 0; i < 6; ++i) comparison_ops[i] = operator_named(comparisons[i]);
  plain_compare = tensor_type->tp_richcompare;
  plain_get_item = tensor_type->tp_as_mapping->mp_subscript;
  plain_set_item = tensor_type->tp_as_mapping->mp_ass_subscript;
  Owned getter(operator_named("__getitem__")), setter(operator_named("__setitem__"));
  get_item_method = getter.detach();
  set_item_method = setter.detach();
}

template <class Function>
void exchange(Function& at, Function from, Function to) {
  if (at == from) at = to;  // a subclass may have a method of its own there
}

void exchange_slots(PyTypeObject* type, bool on) {
  auto all = [&](auto& slots) {
    for (Slot& slot : slots)
      exchange(slot_of(type, slot), on ? slot.plain : slot.watched, on ? slot.watched : slot.plain);
  };
  all(binary_slots);
  all(unary_slots);
  all(power_slots);
  exchange(type->tp_richcompare, on ? plain_compare : &watched_compare, on ? &watched_compare : plain_compare);
  exchange(type->tp_as_mapping->mp_subscript, on ? plain_get_item : &watched_get_item,
           on ? &watched_get_item : plain_get_item);
  exchange(type->tp_as_mapping->mp_ass_subscript, on ? plain_set_item : &watched_set_item,
           on ? &watched_set_item : plain_set_item);
  Owned subclasses(checked(PyObject_CallMethod(reinterpret_cast<PyObject*>(type), "__subclasses__", nullptr)));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(subclasses.get()); ++i)
    exchange_slots(reinterpret_cast<PyTypeObject*>(PyList_GET_ITEM(subclasses.get(), i)), on);
}

void exchange_all(bool on) {
  if (!get_item_method)
    prepare(std::make_index_sequence<binary_slots.size()>(), std::make_index_sequence<unary_slots.size()>(),
            std::make_index_sequence<power_slots.size()>());
  for (OperatorObject* o : all_operator_objects()) o->vectorcall = on ? &watched_operator : o->call;
  exchange_slots(tensor_type, on);
}

// ---- handlers

PyObject* push_handler(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* handler;
    int functions = 0;
    if (!PyArg_ParseTuple(args, "O|p", &handler, &functions)) return nullptr;
    check_type(PyCallable_Check(handler), "a handler of calls must be callable, but got ", Py_TYPE(handler)->tp_name);
    watch_calls(true);
    handlers.push_back({Py_NewRef(handler), functions != 0});
    function_handlers += functions;
    Py_RETURN_NONE;
  });
}

PyObject* pop_handler(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    check(!handlers.empty(), "there is no handler of calls to remove");
    Owned last(handlers.back().call);
    function_handlers -= handlers.back().functions;
    handlers.pop_back();
    watch_calls(false);
    Py_RETURN_NONE;
  });
}

PyMethodDef methods[] = {
    {"_push_call_handler", push_handler, METH_VARARGS,
     "handler(operator, args, kwargs) stands in for operators that this thread calls, until it is popped; what it "
     "calls itself goes to the handler below, or to the operator. _push_call_handler(handler, True): also for "
     "functions "
     "written in Python."},
    {"_pop_call_handler", pop_handler, METH_NOARGS, "Removes the handler that was pushed last."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

std::atomic<int> function_handlers{0};

PyObject* handle_function(PyObject* function, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  if (handlers.empty() || !handlers.back().functions) return nullptr;
  return handle(function, args, n, names);
}

void watch_calls(bool on) {
  if (on ? watchers == 0 : watchers == 1) exchange_all(on);
  watchers += on ? 1 : -1;
}

void check_calls(bool on) {
  if (on == checks_forward) return;
  watch_calls(on);
  checks_forward = on;
}

void init_watch(PyObject* module) { checked(PyModule_AddFunctions(module, methods)); }

}  // namespace rushlight::python
