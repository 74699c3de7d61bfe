// Declaration of pointwise operators from Python (src/rushlight/operators), and the loops of NumPy's ufuncs.
#include "operators/pointwise.h"

#include <numpy/ndarrayobject.h>
#include <numpy/ufuncobject.h>

#include "python/python.h"

namespace rushlight::python {
namespace {

/// (constants, [(operator name, slots), ...], output slot) as the tracer gives it.
Expression read_expression(PyObject* tuple, int n_inputs) {
  Expression e;
  e.n_inputs = n_inputs;
  PyObject *constants, *code;
  int output;
  if (!PyArg_ParseTuple(tuple, "OOi", &constants, &code, &output)) throw PythonError();
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(constants); ++i)
    e.constants.push_back(as_scalar(PySequence_Fast_GET_ITEM(constants, i), "a constant"));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(code); ++i) {
    PyObject *name, *slots;
    if (!PyArg_ParseTuple(PySequence_Fast_GET_ITEM(code, i), "OO", &name, &slots)) throw PythonError();
    Expression::Call call{&pointwise_op(text_of(name)), std::uint8_t(PySequence_Fast_GET_SIZE(slots)), {}};
    check(call.n_in == call.op->n_in, "the operator ", call.op->name, " takes ", call.op->n_in,
          " operands, the expression gives ", int(call.n_in));
    for (int k = 0; k < call.n_in; ++k) {
      call.in[k] = std::uint16_t(PyLong_AsLong(PySequence_Fast_GET_ITEM(slots, k)));
      if (call.in[k] < n_inputs) e.uses |= 1u << call.in[k];
    }
    e.code.push_back(call);
  }
  e.output = std::uint16_t(output);
  if (output < n_inputs) e.uses |= 1u << output;
  return e;
}

/// Asks the package's tracer for the derivative of each input; None: there is none.
void derive(PointwiseOp& op, bool complex) {
  Derivatives& derivatives = complex ? op.of_complex : op.of_real;
  for (int i = 0; i < op.n_in; ++i) {
    Owned traced(PyObject_CallFunction(static_cast<PyObject*>(op.python), "iO", i, complex ? Py_True : Py_False));
    if (!traced) throw PythonError();
    derivatives.has[i] = traced.get() != Py_None;
    if (derivatives.has[i]) derivatives.of[i] = read_expression(traced, op.n_in + 2);
  }
  derivatives.derived = true;
}

/// (("input",), ("alpha", 1), ...): the operands' names, with defaults where they have one.
void read_params(PointwiseOp& op, PyObject* params, const std::string& takes) {
  check(PyTuple_GET_SIZE(params) == op.n_in && int(takes.size()) == op.n_in, "the operator '", op.name, "' takes ",
        op.n_in, " operands; name them all");
  for (int i = 0; i < op.n_in; ++i) {
    PyObject* p = PyTuple_GET_ITEM(params, i);
    op.params[i] = text_of(PyTuple_GET_ITEM(p, 0));
    op.takes[i] = takes[std::size_t(i)];
    if (op.takes[i] == 'n') op.numbers |= 1u << i;
    op.has_default[i] = PyTuple_GET_SIZE(p) > 1;
    if (op.has_default[i]) op.defaults[i] = as_scalar(PyTuple_GET_ITEM(p, 1), "a default");
  }
}

/// Per category of types: None where the operator takes it, else what it says; and what of any operand of bool.
void read_refusals(PointwiseOp& op, PyObject* texts) {
  check(PyTuple_GET_SIZE(texts) == 5, "the operator '", op.name, "' needs five refusals");
  if (PyObject* any = PyTuple_GET_ITEM(texts, 4); any != Py_None) op.bool_operand = text_of(any);
  for (int i = 0; i < 4; ++i) {
    PyObject* text = PyTuple_GET_ITEM(texts, i);
    if (text == Py_None) continue;
    op.refused |= 1u << i;
    op.refusals[i] = text_of(text);
  }
}

/// _pointwise(name, params, takes, float, refusals, node_name, loop | None, body | None, derive | None, promoted)
PyObject* pointwise_define(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    const char *name, *takes, *node_name;
    int floating;
    unsigned promoted;
    PyObject *params, *refusals, *loop_name, *body, *derivative;
    if (!PyArg_ParseTuple(args, "sO!spO!sOOOI", &name, &PyTuple_Type, &params, &takes, &floating, &PyTuple_Type,
                          &refusals, &node_name, &loop_name, &body, &derivative, &promoted))
      return nullptr;
    int n_in = int(PyTuple_GET_SIZE(params));
    Expression expression;
    if (body != Py_None) expression = read_expression(body, n_in);
    PointwiseOp& op = define_pointwise(name, n_in);
    op.rule = floating ? TypeRule::Float : TypeRule::Promote;
    read_refusals(op, refusals);
    op.promoted = promoted;
    op.kind.name = node_name;
    read_params(op, params, takes);
    if (loop_name != Py_None) op.loop = &loop(text_of(loop_name));
    op.body = std::move(expression);
    if (derivative != Py_None) {
      op.differentiable = true;
      op.python = Py_NewRef(derivative);
      op.derive = &derive;
    }
    return pointwise_object(op, false);
  });
}

PyObject* pointwise_inplace_object(PyObject*, PyObject* name) {
  return guarded([&] { return pointwise_object(pointwise_op(text_of(name)), true); });
}

/// _pointwise_forms(name, scaled=, floored=, truncated=, power=): the forms that keywords choose.
PyObject* pointwise_forms(PyObject*, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"name", "scaled", "floored", "truncated", "power", nullptr};
    const char *name, *scaled = nullptr, *floored = nullptr, *truncated = nullptr;
    int power = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "s|zzzp", const_cast<char**>(names), &name, &scaled, &floored,
                                     &truncated, &power))
      return nullptr;
    PointwiseOp& op = pointwise_op(name);
    if (scaled) op.scaled = &pointwise_op(scaled);
    if (floored) op.floored = &pointwise_op(floored);
    if (truncated) op.truncated = &pointwise_op(truncated);
    op.is_power = power;
    Py_RETURN_NONE;
  });
}

std::optional<DType> numpy_dtype(char type) {
  switch (type) {
    case NPY_BOOL:
      return DType::Bool;
    case NPY_UBYTE:
      return DType::UInt8;
    case NPY_BYTE:
      return DType::Int8;
    case NPY_SHORT:
      return DType::Int16;
    case NPY_INT:
      return DType::Int32;
    case NPY_LONG:
      return sizeof(long) == 8 ? DType::Int64 : DType::Int32;
    case NPY_LONGLONG:
      return sizeof(long) == 8 ? std::nullopt : std::optional(DType::Int64);
    case NPY_FLOAT:
      return DType::Float32;
    case NPY_DOUBLE:
      return DType::Float64;
    case NPY_CFLOAT:
      return DType::Complex64;
    case NPY_CDOUBLE:
      return DType::Complex128;
    default:
      return std::nullopt;
  }
}

/// _add_ufunc(name, ufunc): its loops for our types, behind those that are there already.
PyObject* add_ufunc(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    const char* name;
    PyObject* object;
    if (!PyArg_ParseTuple(args, "sO", &name, &object)) return nullptr;
    check_type(Py_TYPE(object)->tp_name == std::string("numpy.ufunc"), "expected a numpy.ufunc, got ",
               Py_TYPE(object)->tp_name);
    auto* ufunc = reinterpret_cast<PyUFuncObject*>(object);
    check(ufunc->nout == 1 && ufunc->nin <= 3, "the ufunc ", name, " has ", ufunc->nin, " inputs and ", ufunc->nout,
          " outputs; one output is needed");
    for (int i = 0; i < ufunc->ntypes; ++i) {
      LoopSignature s{};
      const char* types = ufunc->types + i * (ufunc->nin + 1);
      bool ours = ufunc->functions[i] != nullptr;
      for (int k = 0; k < ufunc->nin && ours; ++k) {
        auto d = numpy_dtype(types[k]);
        ours = d.has_value();
        if (ours) s.in[k] = *d;
      }
      auto d = numpy_dtype(types[ufunc->nin]);
      if (!ours || !d) continue;
      s.out = *d;
      s.function = reinterpret_cast<LoopFunction>(ufunc->functions[i]);
      s.data = const_cast<void*>(ufunc->data ? ufunc->data[i] : nullptr);
      add_loop(name, ufunc->nin, s);
    }
    Py_INCREF(object);  // its tables are used from now on
    Py_RETURN_NONE;
  });
}

PyMethodDef methods[] = {
    {"_pointwise", pointwise_define, METH_VARARGS, "Declares a pointwise operator."},
    {"_pointwise_inplace", pointwise_inplace_object, METH_O, "The in-place form of a declared pointwise operator."},
    {"_pointwise_forms", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(pointwise_forms)),
     METH_VARARGS | METH_KEYWORDS, "The forms of an operator that keywords choose."},
    {"_add_ufunc", add_ufunc, METH_VARARGS, "Offers the loops of a NumPy ufunc under a name."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void init_pointwise(PyObject* module) {
  register_loops();
  checked(PyModule_AddFunctions(module, methods));
}

}  // namespace rushlight::python
