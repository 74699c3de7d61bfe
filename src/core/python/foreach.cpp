// torch._foreach_*: an operator applied to each tensor of a list.
//
// One mechanism serves them all: what is a list among the arguments is gone through, the rest is passed on as it is.
// The operators are those of Tensor, found at the first call, so that histories and refusals are theirs.
#include <map>
#include <string>
#include <vector>

#include "python/python.h"

namespace rushlight::python {
namespace {

/// A parameter beyond the first, by the names that its overloads give it. `passed_as`: the keyword of the operator that
/// takes it; empty: by position.
struct Parameter {
  std::vector<const char*> names;
  std::string passed_as;
  bool one_number = false;  ///< a tensor in place of a list must hold one number
};

struct Foreach {
  std::string name;  ///< "_foreach_add_"
  std::string operator_name;
  bool inplace = false;
  std::vector<Parameter> params;
  PyObject* function = nullptr;  ///< the operator, once it was found
};

PyObject* package;  // the extension module

PyObject* operator_of(Foreach& f) {
  if (f.function) return f.function;
  std::string name = f.operator_name + (f.inplace ? "_" : "");
  f.function = PyObject_GetAttrString(reinterpret_cast<PyObject*>(tensor_type), name.c_str());
  if (!f.function) {
    PyErr_Clear();
    f.function = PyObject_GetAttrString(package, name.c_str());
  }
  return checked(f.function);
}

bool is_list(PyObject* o) { return PyTuple_Check(o) || PyList_Check(o); }

/// One argument: an item for each tensor, or the same for all.
struct Argument {
  PyObject* whole;
  std::vector<Owned> items;
  PyObject* at(Py_ssize_t i) const { return items.empty() ? whole : items[std::size_t(i)].get(); }
};

/// A call's arguments, in the order of the operator's, keywords last.
struct Call {
  std::vector<Argument> args;
  std::vector<PyObject*> keywords;
  Py_ssize_t length = -1;

  Call(const Foreach& f, PyObject* const* given, Py_ssize_t n, PyObject* names) {
    const auto most = Py_ssize_t(f.params.size()) + 1;
    check_type(n <= most, f.name, "() takes ", most, " positional argument", most == 1 ? "" : "s", " but ", n,
               " were given");
    check_type(n >= 1, f.name, "() missing 1 required positional arguments: \"self\"");
    std::vector<PyObject*> bound(f.params.size(), nullptr);
    for (Py_ssize_t i = 1; i < n; ++i) bound[std::size_t(i - 1)] = given[i];
    std::vector<std::pair<PyObject*, PyObject*>> others;
    for (Py_ssize_t k = 0; names && k < PyTuple_GET_SIZE(names); ++k)
      keyword(f, bound, others, PyTuple_GET_ITEM(names, k), given[n + k]);
    take(f, given[0], nullptr);
    for (std::size_t i = 0; i < bound.size(); ++i)
      if (bound[i] && f.params[i].passed_as.empty()) take(f, bound[i], &f.params[i]);
    check_type(length >= 0, f.name, "(): argument 'self' (position 1) must be tuple of Tensors, not ",
               Py_TYPE(given[0])->tp_name);
    for (std::size_t i = 0; i < bound.size(); ++i)
      if (bound[i] && !f.params[i].passed_as.empty()) {
        take(f, bound[i], &f.params[i]);
        keywords.push_back(intern(f.params[i].passed_as.c_str()));
      }
    for (auto [key, value] : others) {
      take(f, value, nullptr);
      keywords.push_back(Py_NewRef(key));
    }
  }
  Call(const Call&) = delete;
  ~Call() {
    for (PyObject* key : keywords) Py_DECREF(key);
  }

 private:
  static void keyword(const Foreach& f, std::vector<PyObject*>& bound,
                      std::vector<std::pair<PyObject*, PyObject*>>& others, PyObject* key, PyObject* value) {
    for (std::size_t i = 0; i < f.params.size(); ++i)
      for (const char* name : f.params[i].names)
        if (PyUnicode_CompareWithASCIIString(key, name) == 0) {
          check_type(!bound[i], f.name, "() got multiple values for argument '", name, "'");
          bound[i] = value;
          return;
        }
    others.emplace_back(key, value);
  }

  void take(const Foreach& f, PyObject* o, const Parameter* param) {
    Argument argument{o, {}};
    if (is_list(o)) {
      const Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
      const bool tensors = n == 0 || is_tensor(PySequence_Fast_GET_ITEM(o, 0));
      check(n > 0 || length >= 0, "Tensor list must have at least one tensor.");
      for (Py_ssize_t i = 0; i < n; ++i) {
        PyObject* item = PySequence_Fast_GET_ITEM(o, i);
        check_type(is_tensor(item) == tensors && (tensors || length >= 0), f.name, "(): found an element of type ",
                   Py_TYPE(item)->tp_name, " at position ", i, " of a list");
        argument.items.push_back(Owned::borrow(item));
      }
      count(n, tensors);
    } else if (param && is_tensor(o)) {
      const Tensor& t = *tensor_of(o);
      if (param->one_number)
        check(t.ndim == 0, "scalar tensor expected to be 0 dim but it has ", int(t.ndim), " dimensions and ", t.numel,
              " elements.");
      else if (t.ndim == 1 && !param->passed_as.empty())
        spread(argument);
    }
    args.push_back(std::move(argument));
  }

  /// A vector of numbers, one for each tensor.
  void spread(Argument& argument) {
    Owned numbers(checked(PyObject_CallMethod(argument.whole, "tolist", nullptr)));
    const Py_ssize_t n = PyList_GET_SIZE(numbers.get());
    for (Py_ssize_t i = 0; i < n; ++i) argument.items.push_back(Owned::borrow(PyList_GET_ITEM(numbers.get(), i)));
    count(n, false);
  }

  void count(Py_ssize_t n, bool tensors) {
    if (length < 0) length = n;
    check(n == length || tensors, "Tensor list must have same number of elements as scalar list.");
    check(n == length, "Tensor lists must have the same number of tensors, got ", length, " and ", n);
  }
};

PyObject* call(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  return guarded([&]() -> PyObject* {
    Foreach& f = *static_cast<Foreach*>(PyCapsule_GetPointer(self, nullptr));
    Call call(f, args, nargs, kwnames);
    PyObject* function = operator_of(f);
    Owned names;
    if (!call.keywords.empty()) {
      names = Owned(checked(PyTuple_New(Py_ssize_t(call.keywords.size()))));
      for (std::size_t k = 0; k < call.keywords.size(); ++k)
        PyTuple_SET_ITEM(names.get(), Py_ssize_t(k), Py_NewRef(call.keywords[k]));
    }
    Owned out;
    if (!f.inplace) out = Owned(checked(PyTuple_New(call.length)));
    std::vector<PyObject*> row(call.args.size());
    for (Py_ssize_t i = 0; i < call.length; ++i) {
      for (std::size_t k = 0; k < row.size(); ++k) row[k] = call.args[k].at(i);
      PyObject* result = checked(PyObject_Vectorcall(function, row.data(), row.size() - call.keywords.size(), names));
      if (f.inplace)
        Py_DECREF(result);
      else
        PyTuple_SET_ITEM(out.get(), i, result);
    }
    return f.inplace ? Py_NewRef(args[0]) : out.detach();
  });
}

enum Forms { Plain = 1, Inplace = 2, Either = 3 };

void add(const std::string& name, const std::string& operator_name, std::vector<Parameter> params, int forms = Either) {
  for (int form : {Plain, Inplace}) {
    if (!(forms & form)) continue;
    auto* f = new Foreach{"_foreach_" + name + (form == Inplace ? "_" : ""), operator_name, form == Inplace,
                          params};  // lives as long as the module
    auto* text = new std::string(operator_name + (form == Inplace ? "_" : "") + " of each tensor of a list.");
    auto* method = new PyMethodDef{f->name.c_str(), reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&call)),
                                   METH_FASTCALL | METH_KEYWORDS, text->c_str()};
    Owned capsule(checked(PyCapsule_New(f, nullptr, nullptr)));
    Owned function(checked(PyCFunction_New(method, capsule)));
    checked(PyObject_SetAttrString(package, f->name.c_str(), function));
  }
}

}  // namespace

void init_foreach(PyObject* module) {
  package = module;
  for (const char* name :
       {"abs",   "acos",  "asin",    "atan",   "ceil", "cos",   "cosh",  "erf",  "erfc", "exp",
        "expm1", "floor", "frac",    "lgamma", "log",  "log10", "log1p", "log2", "neg",  "reciprocal",
        "round", "rsqrt", "sigmoid", "sign",   "sin",  "sinh",  "sqrt",  "tan",  "tanh", "trunc"})
    add(name, name, {});
  for (const char* name : {"add", "sub", "mul", "div"}) add(name, name, {{{"other", "scalar", "scalars"}, "", true}});
  add("clamp_min", "clamp_min", {{{"other", "scalar", "scalars"}, ""}});
  add("clamp_max", "clamp_max", {{{"other", "scalar", "scalars"}, ""}});
  add("maximum", "clamp_min", {{{"other", "scalar", "scalars"}, ""}});  // in place too, which maximum is not
  add("minimum", "clamp_max", {{{"other", "scalar", "scalars"}, ""}});
  add("pow", "pow", {{{"exponent"}, ""}});
  for (const char* name : {"addcmul", "addcdiv"})
    add(name, name, {{{"tensor1"}, ""}, {{"tensor2"}, ""}, {{"value", "scalars"}, "value"}});
  add("lerp", "lerp", {{{"tensors1"}, ""}, {{"weight", "weights"}, ""}});
  add("mm", "mm", {{{"mat2", "other"}, ""}}, Plain);
  add("norm", "linalg_vector_norm", {{{"ord"}, ""}, {{"dtype"}, "dtype"}}, Plain);
  add("max", "max", {}, Plain);
  add("clone", "clone", {}, Plain);
  add("copy", "copy", {{{"src"}, ""}, {{"non_blocking"}, ""}}, Inplace);
  add("zero", "zero", {}, Inplace);
}

}  // namespace rushlight::python
