// Levels and tangents of forward mode, for autograd.forward_ad and the transforms of func.
#include "autograd/tangent.h"

#include "python/python.h"

namespace rushlight::python {
namespace {

int level_of(PyObject* o) {
  std::int64_t level;
  check_type(try_int(o, level), "a level of forward mode is an int, not ", Py_TYPE(o)->tp_name);
  return int(level);
}

const Tensor& tensor_argument(const char* function, const char* name, int position, PyObject* o) {
  check_type(is_tensor(o), function, "(): argument '", name, "' (position ", position, ") must be Tensor, not ",
             Py_TYPE(o)->tp_name);
  return *tensor_of(o);
}

PyObject* enter_level(PyObject*, PyObject*) {
  return guarded([] { return PyLong_FromLong(enter_tangent_level()); });
}
PyObject* exit_level(PyObject*, PyObject* level) {
  return guarded([&]() -> PyObject* {
    exit_tangent_level(level_of(level));
    Py_RETURN_NONE;
  });
}
PyObject* open_levels(PyObject*, PyObject*) { return PyLong_FromLong(modes.levels); }

PyObject* make(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guarded([&] {
    check_type(nargs == 3, "_make_dual(tensor, tangent, level) takes 3 arguments, got ", nargs);
    const Tensor& primal = tensor_argument("_make_dual", "primal", 1, args[0]);
    const Tensor& tangent = tensor_argument("_make_dual", "tangent", 2, args[1]);
    return wrap(make_dual(primal, tangent, level_of(args[2])));
  });
}
PyObject* unpack(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guarded([&] {
    check_type(nargs == 2, "_unpack_dual(tensor, level) takes 2 arguments, got ", nargs);
    Dual dual = unpack_dual(tensor_argument("_unpack_dual", "dual", 1, args[0]), level_of(args[1]));
    Owned primal(wrap(std::move(dual.primal)));
    Owned tangent(dual.tangent ? wrap(std::move(dual.tangent)) : Py_NewRef(Py_None));
    return checked(PyTuple_Pack(2, primal.get(), tangent.get()));
  });
}

PyObject* set_enabled(PyObject*, PyObject* v) {
  int on = PyObject_IsTrue(v);
  if (on < 0) return nullptr;
  return PyBool_FromLong(set_forward_enabled(on));
}
PyObject* is_enabled(PyObject*, PyObject*) { return PyBool_FromLong(modes.forward); }

using FastFunction = PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t);
PyCFunction fast(FastFunction f) { return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f)); }

PyMethodDef methods[] = {
    {"_enter_tangent_level", enter_level, METH_NOARGS, "Opens a level of forward mode and returns its number."},
    {"_exit_tangent_level", exit_level, METH_O, "Closes the innermost level, which has to be this one."},
    {"_tangent_levels", open_levels, METH_NOARGS, "How many levels of forward mode are open."},
    {"_make_dual", fast(make), METH_FASTCALL, "_make_dual(tensor, tangent, level): an alias that carries the tangent."},
    {"_unpack_dual", fast(unpack), METH_FASTCALL,
     "_unpack_dual(tensor, level): (an alias without tangents from the level on, the tangent or None)."},
    {"_set_fwd_grad_enabled", set_enabled, METH_O, "Turns forward mode on or off; returns whether it was on."},
    {"_is_fwd_grad_enabled", is_enabled, METH_NOARGS, "Do operations carry tangents on this thread?"},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void init_tangents(PyObject* module) { checked(PyModule_AddFunctions(module, methods)); }

}  // namespace rushlight::python
