// Questions about element types: promote_types, result_type, can_cast.
#include "python/python.h"

namespace rushlight::python {
namespace {

DType type_argument(PyObject* o, const char* function, int position) {
  DType d;
  check_type(Py_TYPE(o) == dtype_type && try_dtype(o, d), function, "(): argument (position ", position,
             ") must be torch.dtype, not ", Py_TYPE(o)->tp_name);
  return d;
}

PyObject* promote_types(PyObject*, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"type1", "type2", nullptr};
    PyObject *a, *b;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO", const_cast<char**>(names), &a, &b)) return nullptr;
    return dtype_object(promote(type_argument(a, "promote_types", 1), type_argument(b, "promote_types", 2)));
  });
}

PyObject* result_type_of(PyObject*, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"tensor", "other", nullptr};
    PyObject* given[2];
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO", const_cast<char**>(names), &given[0], &given[1]))
      return nullptr;
    Operand operands[2];
    for (int i = 0; i < 2; ++i)
      check_type(try_operand(given[i], operands[i]), "result_type(): argument '", names[i], "' (position ", i + 1,
                 ") must be Tensor or Number, not ", Py_TYPE(given[i])->tp_name);
    return dtype_object(rushlight::result_type(operands, 2));
  });
}

PyObject* can_cast_types(PyObject*, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"from_", "to", nullptr};
    PyObject *from, *to;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO", const_cast<char**>(names), &from, &to)) return nullptr;
    return PyBool_FromLong(rushlight::can_cast(type_argument(from, "can_cast", 1), type_argument(to, "can_cast", 2)));
  });
}

template <class F>
PyCFunction with_keywords(F f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}

PyMethodDef methods[] = {
    {"promote_types", with_keywords(promote_types), METH_VARARGS | METH_KEYWORDS,
     "promote_types(type1, type2): the smallest type that holds both."},
    {"result_type", with_keywords(result_type_of), METH_VARARGS | METH_KEYWORDS,
     "result_type(tensor, other): the type of arithmetic on two tensors or numbers."},
    {"can_cast", with_keywords(can_cast_types), METH_VARARGS | METH_KEYWORDS,
     "can_cast(from_, to): may out= convert so?"},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void init_promotion(PyObject* module) { checked(PyModule_AddFunctions(module, methods)); }

}  // namespace rushlight::python
