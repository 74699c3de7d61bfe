// The callable object of an operator: one for torch.exp and Tensor.exp, which takes self first and binds like a method.
#pragma once

#include "python/python.h"

namespace rushlight::python {

struct OperatorObject {
  PyObject_HEAD;
  vectorcallfunc vectorcall;  ///< what Python calls: `call`, or while calls are watched, watch.cpp's
  vectorcallfunc call;        ///< `offered` (override.cpp), which arguments may take over
  vectorcallfunc plain;       ///< the call itself
  const Operator* op;         ///< of the registry, or null
  PointwiseOp* pointwise;     ///< or null
  bool inplace;
  PyObject* name;
  PyObject* doc;        ///< null: the package's text is asked for when somebody looks
  PyObject* signature;  ///< the same
  bool draws;           ///< takes random numbers, of which vmap must know whatever the arguments are
  bool whole;           ///< the rule takes batched arguments as they are
  int overload;         ///< of an overload's object: which one
  PyObject* overloads;  ///< list of the overloads' objects, made when a vmap needs them, or null
  PyObject* rule;       ///< of an overload's object: its batching rule, or null until it is asked for
};

inline OperatorObject* operator_of(PyObject* o) { return reinterpret_cast<OperatorObject*>(o); }

/// The name of a parameter's type in messages.
const char* type_text(const Param& p);
/// Every operator object that was made.
std::vector<OperatorObject*>& all_operator_objects();
OperatorObject* new_operator(vectorcallfunc call, const std::string& name);
/// The call of an overload's object: every parameter in order, None where it is not given.
PyObject* call_overload(OperatorObject* overload, PyObject* const* args, Py_ssize_t n);
/// Lets arguments take over the operator's calls (__torch_function__).
void offer_calls(OperatorObject* o);
/// What a number slot of a tensor gives where the other operand is none: what that one's class makes of Tensor's method
/// (__torch_function__), or NotImplemented.
PyObject* left_to_other(const char* method, PyObject* tensor, PyObject* other);
/// What a method of Tensor gives that has failed: what an argument's class makes of it, or else null, the error as it
/// is.
PyObject* left_to_arguments(const char* method, PyObject* const* args, Py_ssize_t n);
/// What an argument's class makes of a function's call, or null where none takes it over.
PyObject* take_over(PyObject* function, PyObject* const* args, std::size_t nargsf, PyObject* names);

}  // namespace rushlight::python
