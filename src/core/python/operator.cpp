// Operators of the registry as Python callables: parsing of arguments, results, and the derived in-place and out=
// forms.
#include "python/operator.h"

#include <cctype>
#include <map>
#include <memory>
#include <sstream>

#include "operators/deferred.h"
#include "python/batched.h"

namespace rushlight::python {
namespace {

// ---- parsing

bool is_plain_int(PyObject* o) {
  std::int64_t v;
  return !PyBool_Check(o) && !PyFloat_Check(o) && try_int(o, v);
}

/// Reads one argument; false where it does not fit.
bool read(const Param& p, PyObject* o, Value& v) {
  if (o == Py_None && (p.optional || p.type == ArgType::Generator || p.type == ArgType::Device ||
                       p.type == ArgType::Layout || p.type == ArgType::MemoryFormat)) {
    v.given = false;
    return true;
  }
  v.given = true;
  switch (p.type) {
    case ArgType::Tensor:
      if (!is_tensor(o)) return false;
      v.tensor = tensor_of(o);
      return true;
    case ArgType::Tensors: {
      if (!PyTuple_Check(o) && !PyList_Check(o)) return false;
      Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
      v.tensors.resize(std::size_t(n));
      for (Py_ssize_t i = 0; i < n; ++i) {
        PyObject* part = PySequence_Fast_GET_ITEM(o, i);
        if (!is_tensor(part)) return false;
        v.tensors[std::size_t(i)] = tensor_of(part);
      }
      return true;
    }
    case ArgType::Scalar:
      if (is_tensor(o)) {
        Tensor* t = tensor_of(o);
        if (t->ndim || needs_record(*t) || t->requires_grad() || is_batched(o)) return false;
        v.number = item(*t);
        return true;
      }
      return try_scalar(o, v.number);
    case ArgType::Int: {
      std::int64_t i;
      if (!try_int(o, i)) return false;
      v.number = Scalar(i);
      return true;
    }
    case ArgType::Ints: {
      std::int64_t i;
      if (!PyTuple_Check(o) && !PyList_Check(o) && try_int(o, i)) {
        v.ints = Dims(std::max(p.expand, 1), i);
        return true;
      }
      if (!try_ints(o, v.ints)) return false;
      if (p.expand > 1 && v.ints.size() == 1) v.ints = Dims(p.expand, v.ints[0]);
      return true;
    }
    case ArgType::Bool:
      if (PyBool_Check(o)) {
        v.number = Scalar(o == Py_True);
        return true;
      }
      if (is_array(o)) {
        Scalar s;
        if (!try_scalar(o, s) || s.kind != Scalar::Bool) return false;
        v.number = s;
        return true;
      }
      return false;
    case ArgType::Float:
      if (is_tensor(o)) {
        Tensor* t = tensor_of(o);
        if (t->numel != 1 || needs_record(*t) || t->requires_grad() || is_batched(o)) return false;
        v.number = Scalar(item(*t).to_double());
        return true;
      }
      if (!try_scalar(o, v.number) || v.number.kind == Scalar::Complex) return false;
      return true;
    case ArgType::DType:
      return try_dtype(o, v.dtype);
    case ArgType::String:
      if (!PyUnicode_Check(o)) return false;
      v.text = text_of(o);
      return true;
    case ArgType::Device:
      if (!is_device(o) && !PyUnicode_Check(o) && !PyLong_Check(o)) return false;
      check_device(o);
      return true;
    case ArgType::Layout:
      return is_layout(o);
    case ArgType::MemoryFormat:
      return try_memory_format(o, v.format);
    case ArgType::Generator:
      if (!is_generator(o)) return false;
      v.object = o;
      return true;
    case ArgType::Object:
      v.object = o;
      return true;
  }
  return false;
}

void take_default(const Param& p, Value& v) {
  v.given = !p.default_none;
  if (p.default_none) return;
  v.number = p.default_number;
  if (p.type == ArgType::Ints) v.ints = p.default_ints;
  if (p.type == ArgType::String) v.text = p.default_text;
}

/// NumPy's and older names of arguments.
bool same_name(PyObject* key, const Param& p, bool first) {
  if (PyUnicode_CompareWithASCIIString(key, p.name.c_str()) == 0) return true;
  auto is = [&](const char* text) { return PyUnicode_CompareWithASCIIString(key, text) == 0; };
  if (first && p.name == "self") return is("input") || is("x") || is("a") || is("tensor");
  if (p.name == "dim") return is("axis");
  if (p.name == "keepdim") return is("keepdims");
  if (p.name == "other") return is("x2");
  if (p.name == "split_size") return is("split_size_or_sections");
  return false;
}

struct Arguments {
  PyObject* const* args;
  Py_ssize_t nargs;
  PyObject* kwnames;
  Py_ssize_t nkw() const { return kwnames ? PyTuple_GET_SIZE(kwnames) : 0; }
};

/// Fills `values`; where it does not fit, false and the reason.
bool parse(const Operator& op, const Overload& o, const Arguments& a, Value* values, std::string* why) {
  std::size_t n = o.params.size();
  std::size_t positional = 0;
  while (positional < n && !o.params[positional].keyword_only) ++positional;
  std::size_t seen = 0;
  std::uint64_t filled = 0;
  Py_ssize_t at = 0;
  auto reason = [&](auto... parts) {
    if (why) *why = concat(op.name, "(): ", parts...);
    return false;
  };
  auto misfit = [&](std::size_t i, PyObject* got) {
    return reason("argument '", o.params[i].name == "self" ? "input" : o.params[i].name, "' (position ", i + 1,
                  ") must be ", type_text(o.params[i]), ", not ", Py_TYPE(got)->tp_name);
  };
  bool lone_ints = positional > 0 && o.params[positional - 1].type == ArgType::Ints &&
                   !o.params[positional - 1].optional &&
                   (positional == 1 || (positional == 2 && o.params[0].type == ArgType::Tensor));
  for (; at < a.nargs; ++at, ++seen) {
    if (lone_ints && seen == positional - 1 && (a.nargs - at != 1 || is_plain_int(a.args[at]))) {
      Dims& ints = values[seen].ints;
      ints = Dims();
      for (; at < a.nargs; ++at) {
        std::int64_t v;
        if (PyBool_Check(a.args[at]) || !try_int(a.args[at], v)) return misfit(seen, a.args[at]);
        ints.push_back(v);
      }
      values[seen].given = true;
      filled |= std::uint64_t(1) << seen;
      ++seen;
      break;
    }
    if (seen >= positional) return reason("takes ", positional, " positional arguments but ", a.nargs, " were given");
    if (!read(o.params[seen], a.args[at], values[seen])) return misfit(seen, a.args[at]);
    filled |= std::uint64_t(1) << seen;
  }
  for (Py_ssize_t k = 0; k < a.nkw(); ++k) {
    PyObject* key = PyTuple_GET_ITEM(a.kwnames, k);
    std::size_t i = 0;
    while (i < n && !same_name(key, o.params[i], i == 0)) ++i;
    if (i == n) return reason("got an unexpected keyword argument '", text_of(key), "'");
    if ((filled >> i) & 1) return reason("got multiple values for argument '", text_of(key), "'");
    if (!read(o.params[i], a.args[a.nargs + k], values[i])) return misfit(i, a.args[a.nargs + k]);
    filled |= std::uint64_t(1) << i;
  }
  for (std::size_t i = 0; i < n; ++i)
    if (!((filled >> i) & 1)) {
      if (!o.params[i].has_default)
        return reason("missing 1 required positional arguments: \"",
                      o.params[i].name == "self" ? "input" : o.params[i].name, "\"");
      take_default(o.params[i], values[i]);
    }
  return true;
}

std::string describe_argument(PyObject* o) {
  if (PyTuple_Check(o) || PyList_Check(o)) {
    std::string inside;
    for (Py_ssize_t i = 0; i < std::min<Py_ssize_t>(PySequence_Fast_GET_SIZE(o), 8); ++i)
      inside += (i ? ", " : "") + std::string(Py_TYPE(PySequence_Fast_GET_ITEM(o, i))->tp_name);
    return std::string(PyTuple_Check(o) ? "tuple" : "list") + " of (" + inside + ")";
  }
  std::string name = Py_TYPE(o)->tp_name;
  auto dot = name.rfind('.');
  return dot == name.npos ? name : name.substr(dot + 1);
}

[[noreturn]] void fail_parse(const Operator& op, const Arguments& a, const std::string& only_reason) {
  if (op.overloads.size() == 1) fail(ErrorKind::Type, only_reason);
  std::string got;
  for (Py_ssize_t i = 0; i < a.nargs; ++i) got += (i ? ", " : "") + describe_argument(a.args[i]);
  for (Py_ssize_t k = 0; k < a.nkw(); ++k)
    got += (got.empty() ? "" : ", ") + text_of(PyTuple_GET_ITEM(a.kwnames, k)) + "=" +
           describe_argument(a.args[a.nargs + k]);
  std::string expected;
  for (auto& o : op.overloads) expected += "\n * " + o.signature;
  fail(ErrorKind::Type, op.name, "() received an invalid combination of arguments - got (", got,
       "), but expected one of:", expected);
}

// ---- results

PyTypeObject* fields_type(const std::string& name, const std::vector<std::string>& fields) {
  static auto* types = new std::map<std::string, PyTypeObject*>;
  std::string key = name;
  for (auto& f : fields) key += "," + f;
  auto& type = (*types)[key];
  if (!type) {
    auto* members = new std::vector<PyStructSequence_Field>;  // lives as long as the type
    for (auto& f : fields) members->push_back({(new std::string(f))->c_str(), nullptr});
    members->push_back({nullptr, nullptr});
    PyStructSequence_Desc desc{(new std::string("torch.return_types." + name))->c_str(), nullptr, members->data(),
                               int(fields.size())};
    type = PyStructSequence_NewType(&desc);
    if (!type) throw PythonError();
  }
  return type;
}

}  // namespace

PyObject* wrap_result(Result r, const Overload& o) {
  switch (r.kind) {
    case Result::None:
      Py_RETURN_NONE;
    case Result::One:
      return wrap(std::move(r.one));
    case Result::Number:
      return number_to_python(r.number);
    case Result::List:
      return wrap_tuple(std::move(r.many));
    case Result::Tuple:
      break;
  }
  if (o.fields.empty()) return wrap_tuple(std::move(r.many));
  std::string name = o.signature.substr(0, o.signature.find('('));
  PyObject* out = checked(PyStructSequence_New(fields_type(name, o.fields)));
  for (std::size_t i = 0; i < r.many.size(); ++i)
    PyStructSequence_SET_ITEM(out, Py_ssize_t(i), wrap(std::move(r.many[i])));
  return out;
}

namespace {

/// What a factory makes is of out's type.
void take_type_of_out(const Overload& o, Value* values, DType dtype) {
  for (std::size_t i = 0; i < o.params.size(); ++i) {
    if (o.params[i].type != ArgType::DType) continue;
    check(!values[i].given || values[i].dtype == dtype, "dtype ", info(values[i].dtype).scalar_name,
          " does not match dtype of out parameter (", info(dtype).scalar_name, ")");
    values[i].given = true;
    values[i].dtype = dtype;
  }
}

/// out=: the result, computed without history, goes into the given tensor.
PyObject* into_out(const Operator& op, const Overload& o, Value* values, PyObject* out) {
  std::vector<Operand> operands;
  for (std::size_t i = 0; i < o.params.size(); ++i) {
    if (values[i].given && values[i].tensor) operands.emplace_back(*values[i].tensor);
    for (const Tensor* t : values[i].tensors) operands.emplace_back(*t);
  }
  if (operands.empty() && is_tensor(out)) take_type_of_out(o, values, tensor_of(out)->dtype);
  auto store = [&](Tensor& to, const Tensor& from) {
    if (modes.dual) refuse_tangents(op.name, to, operands.data(), int(operands.size()));
    check_out(to, from.dtype, operands.data(), int(operands.size()), op.name.c_str());
    resize_out(to, from.sizes());
    refuse_overlapping_write(to);
    copy_numbers(to, from);
    finish_inplace(to, nullptr, op.name.c_str());
  };
  Result r;
  bool record = modes.grad;
  for (auto& operand : operands)
    check(!record || !operand.tensor->requires_grad(), op.name,
          "(): functions with out=... arguments don't support automatic differentiation, but one of the arguments "
          "requires grad.");
  {
    GradScope off(false);
    r = o.call(o, values);
  }
  if (r.kind == Result::One) {
    check_type(is_tensor(out), op.name, "(): argument 'out' must be Tensor, not ", Py_TYPE(out)->tp_name);
    store(*tensor_of(out), *r.one);
    return Py_NewRef(out);
  }
  check_type((PyTuple_Check(out) || PyList_Check(out)) && std::size_t(PySequence_Fast_GET_SIZE(out)) == r.many.size(),
             op.name, "(): argument 'out' must be tuple of ", r.many.size(), " Tensors, not ", Py_TYPE(out)->tp_name);
  for (std::size_t i = 0; i < r.many.size(); ++i) {
    PyObject* part = PySequence_Fast_GET_ITEM(out, Py_ssize_t(i));
    check_type(is_tensor(part), op.name, "(): argument 'out' must be tuple of Tensors, but found element of type ",
               Py_TYPE(part)->tp_name);
    store(*tensor_of(part), *r.many[i]);
    r.many[i] = TensorRef(tensor_of(part));
  }
  return wrap_result(std::move(r), o);
}

/// name_: the operator applied to the old numbers, written over them.
PyObject* in_place(const Operator& op, const Overload& o, Value* values) {
  Tensor& self = *const_cast<Tensor*>(values[0].tensor);
  std::vector<const Tensor*> inputs;
  for (std::size_t i = 0; i < o.params.size(); ++i) {
    if (values[i].given && values[i].tensor) inputs.push_back(values[i].tensor);
    for (const Tensor* t : values[i].tensors) inputs.push_back(t);
  }
  bool records = any_needs_record(inputs);
  check_inplace(self, any_wants_gradients(inputs));
  refuse_overlapping_write(self);
  TensorRef old(&self);
  if (records) {  // the derivative may need the old numbers
    old = old_numbers(self);
    values[0].tensor = old.get();
  }
  Result r = o.call(o, values);
  check(r.kind == Result::One, op.name, "_() cannot change its input in place");
  Tensor& result = *r.one;
  check(equal(result.sizes(), self.sizes()), "output with shape ", to_string(self.sizes()),
        " doesn't match the broadcast shape ", to_string(result.sizes()));
  check(can_cast(result.dtype, self.dtype), "result type ", info(result.dtype).scalar_name,
        " can't be cast to the desired output type ", info(self.dtype).scalar_name);
  std::string text = op.name + "_";
  overwrite(self, *old, result, records, text.c_str());
  return Py_NewRef(object_of(&self));
}

/// As many parsed arguments as the overload has parameters, on the stack.
class Values {
 public:
  explicit Values(std::size_t n) : n_(n) {
    check(n <= capacity, "an operator has more than ", capacity, " parameters");
    for (std::size_t i = 0; i < n; ++i) new (data() + i) Value;
  }
  Values(const Values&) = delete;
  ~Values() {
    for (std::size_t i = 0; i < n_; ++i) data()[i].~Value();
  }
  Value* data() { return reinterpret_cast<Value*>(memory_); }

 private:
  static constexpr std::size_t capacity = 24;
  std::size_t n_;
  alignas(Value) std::byte memory_[capacity * sizeof(Value)];
};

/// The arguments without out=.
class Keywords {
 public:
  /// What is given as out= (null: nothing or None), which leaves the arguments.
  PyObject* take_out(Arguments& a) {
    for (Py_ssize_t k = 0; k < a.nkw(); ++k) {
      if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(a.kwnames, k), "out") != 0) continue;
      PyObject* out = a.args[a.nargs + k];
      values_.assign(a.args, a.args + a.nargs);
      names_ = Owned(checked(PyTuple_New(a.nkw() - 1)));
      for (Py_ssize_t j = 0, w = 0; j < a.nkw(); ++j)
        if (j != k) {
          values_.push_back(a.args[a.nargs + j]);
          PyTuple_SET_ITEM(names_.get(), w++, Py_NewRef(PyTuple_GET_ITEM(a.kwnames, j)));
        }
      a = {values_.data(), a.nargs, names_};
      return out == Py_None ? nullptr : out;
    }
    return nullptr;
  }

 private:
  Owned names_;
  std::vector<PyObject*> values_;
};

/// The word `name` in `text`, not as a part of another.
bool has_word(const std::string& text, const std::string& name) {
  auto inside = [&](std::size_t i) { return i < text.size() && (std::isalnum(text[i]) || text[i] == '_'); };
  for (auto at = text.find(name); at != text.npos; at = text.find(name, at + 1))
    if (!(at && inside(at - 1)) && !inside(at + name.size())) return true;
  return false;
}

/// What an error of a layer's function adds to PyTorch's words: the function, and the operands that it found.
std::string place_of(const Operator& op, const Overload& o, const Value* values) {
  std::string text = "\nin " + op.name + "()", before = ", found ";
  for (std::size_t i = 0; i < o.params.size(); ++i) {
    if (!values[i].given || !values[i].tensor) continue;
    const Tensor& t = *values[i].tensor;
    text += before + std::string(to_string(t.sizes()).str()) + " of " + info(t.dtype).name;
    before = " and ";
  }
  return text;
}

/// Calls an overload. What a layer calls is named in its errors.
Result call_named(const Operator& op, const Overload& o, Value* values) {
  try {
    return o.call(o, values);
  } catch (Error& e) {
    if (op.forms & (NnFunction | Layer) && !has_word(e.message, op.name)) e.message += place_of(op, o, values);
    throw;
  }
}

}  // namespace

PyObject* call_operator(const Operator& op, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames, bool inplace) {
  return guarded([&]() -> PyObject* {
    Arguments a{args, nargs, kwnames};
    Keywords rest;
    PyObject* out = op.forms & Out ? rest.take_out(a) : nullptr;
    std::string why;
    bool last_only = op.overloads.size() == 1;
    for (auto& o : op.overloads) {
      Values values(o.params.size());
      if (!parse(op, o, a, values.data(), last_only ? &why : nullptr)) continue;
      CallersOperand first(o.params.empty() ? nullptr : values.data()[0].tensor);
      if (inplace) return in_place(op, o, values.data());
      if (out) return into_out(op, o, values.data(), out);
      return wrap_result(call_named(op, o, values.data()), o);
    }
    fail_parse(op, a, why);
  });
}

PyObject* call_overload(OperatorObject* self, PyObject* const* args, Py_ssize_t n) {
  const Operator& op = *self->op;
  const Overload& o = op.overloads[std::size_t(self->overload)];
  check_type(n == Py_ssize_t(o.params.size()), op.name, "(): an overload's object takes all ", o.params.size(),
             " parameters, got ", n);
  if (batching.levels && any_batched(args, n)) return call_rule(self, args, n);
  Values values(o.params.size());
  for (std::size_t i = 0; i < o.params.size(); ++i) {
    const Param& p = o.params[i];
    if (args[i] == Py_None && !p.optional && p.has_default)
      take_default(p, values.data()[i]);
    else
      check_type(read(p, args[i], values.data()[i]), op.name, "(): argument '", p.name, "' (position ", i + 1,
                 ") must be ", type_text(p), ", not ", Py_TYPE(args[i])->tp_name);
  }
  if (self->inplace) return in_place(op, o, values.data());
  return wrap_result(o.call(o, values.data()), o);
}

namespace {

/// A parsed argument as Python has it; formats of memory are dropped, since values have one dimension more.
Owned python_value(const Param& p, const Value& v) {
  if (p.type == ArgType::Tensors) {
    Owned list(checked(PyList_New(0)));
    for (const Tensor* t : v.tensors) checked(PyList_Append(list, object_of(const_cast<Tensor*>(t))));
    return list;
  }
  if (!v.given) return Owned::borrow(Py_None);
  switch (p.type) {
    case ArgType::Tensor:
      return Owned::borrow(object_of(const_cast<Tensor*>(v.tensor)));
    case ArgType::Scalar:
    case ArgType::Int:
    case ArgType::Float:
      return Owned(checked(number_to_python(v.number)));
    case ArgType::Bool:
      return Owned(PyBool_FromLong(v.number.integer != 0));
    case ArgType::Ints: {
      Owned tuple(checked(PyTuple_New(v.ints.size())));
      for (int i = 0; i < v.ints.size(); ++i) PyTuple_SET_ITEM(tuple.get(), i, PyLong_FromLongLong(v.ints[i]));
      return tuple;
    }
    case ArgType::DType:
      return Owned(dtype_object(v.dtype));
    case ArgType::String:
      return Owned(checked(PyUnicode_FromString(v.text.c_str())));
    case ArgType::Generator:
    case ArgType::Object:
      return Owned::borrow(static_cast<PyObject*>(v.object));
    default:
      return Owned::borrow(Py_None);
  }
}

/// A call under vmap: the overload that fits is found as ever, and its batching rule is called.
PyObject* call_batched(OperatorObject* self, Arguments a) {
  const Operator& op = *self->op;
  Keywords rest;
  check(!(op.forms & Out) || !rest.take_out(a), "vmap: ", op.name, "(out=) is not possible on batched tensors; use ",
        op.name, "() without out=");
  std::string why;
  for (std::size_t which = 0; which < op.overloads.size(); ++which) {
    const Overload& o = op.overloads[which];
    Values values(o.params.size());
    if (!parse(op, o, a, values.data(), op.overloads.size() == 1 ? &why : nullptr)) continue;
    std::vector<Owned> owned;
    std::vector<PyObject*> args;
    for (std::size_t i = 0; i < o.params.size(); ++i) {
      owned.push_back(python_value(o.params[i], values.data()[i]));
      args.push_back(owned.back().get());
    }
    return call_rule(operator_of(overload_object(self, which)), args.data(), Py_ssize_t(args.size()));
  }
  fail_parse(op, a, why);
}

PyObject* registry_call(PyObject* self, PyObject* const* args, std::size_t nargsf, PyObject* kwnames) {
  auto* o = operator_of(self);
  Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
  if (batching.levels) [[unlikely]] {
    Arguments a{args, nargs, kwnames};
    if (o->draws || any_batched(args, nargs + a.nkw())) return guarded([&] { return call_batched(o, a); });
  }
  return call_operator(*o->op, args, nargs, kwnames, o->inplace);
}

/// What a call of a pointwise operator gives: operands by position or name, and the keywords that choose a form.
struct PointwiseArguments {
  PointwiseOp* op;
  Operand in[4];
  bool have[4] = {};
  Tensor* out = nullptr;

  PointwiseArguments(PointwiseOp& chosen, bool inplace, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames)
      : op(&chosen) {
    check_type(nargs <= op->n_in, op->name, "() takes ", op->n_in, " positional argument", op->n_in == 1 ? "" : "s",
               " but ", nargs, nargs == 1 ? " was" : " were", " given");
    for (Py_ssize_t i = 0; i < nargs; ++i) take(int(i), args[i]);
    if (kwnames)
      for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(kwnames); ++k)
        keyword(PyTuple_GET_ITEM(kwnames, k), args[nargs + k], inplace);
    bool any = false;
    for (int i = 0; i < op->n_in; ++i) {
      if (!have[i]) {
        check_type(op->has_default[i], op->name, "() missing 1 required positional arguments: \"", op->params[i], "\"");
        in[i] = Operand(op->defaults[i]);
      }
      any = any || in[i].tensor;
    }
    check_type(any, op->name, "(): argument '", op->params[0], "' (position 1) must be Tensor, not ",
               nargs ? Py_TYPE(args[0])->tp_name : "nothing");
  }

 private:
  void take(int i, PyObject* v) {
    bool fits = try_operand(v, in[i]);
    char takes = op->takes[i];
    if (takes != 'e' && fits && (takes == 't') != (in[i].tensor != nullptr)) fits = takes == 'n' && as_number(in[i]);
    check_type(fits, op->name, "(): argument '", op->params[i], "' (position ", i + 1, ") must be ",
               takes == 'n' ? "Number" : "Tensor", ", not ", Py_TYPE(v)->tp_name);
    have[i] = true;
  }

  /// A single element without history stands for its number.
  static bool as_number(Operand& operand) {
    const Tensor& t = *operand.tensor;
    if (t.ndim || needs_record(t) || t.requires_grad()) return false;
    operand = Operand(item(t));
    return true;
  }

  void keyword(PyObject* key, PyObject* v, bool inplace) {
    auto is = [&](const char* text) { return PyUnicode_CompareWithASCIIString(key, text) == 0; };
    if (is("out") && !inplace) {
      if (v == Py_None) return;
      check_type(is_tensor(v), op->name, "(): argument 'out' must be Tensor, not ", Py_TYPE(v)->tp_name);
      out = tensor_of(v);
      return;
    }
    if (is("alpha") && op->scaled) {
      Scalar alpha = as_scalar(v, "alpha");
      if (alpha.is(1)) return;
      op = op->scaled;
      in[2] = Operand(alpha);
      have[2] = true;
      return;
    }
    if (is("rounding_mode") && op->floored) {
      if (v == Py_None) return;
      check_type(PyUnicode_Check(v), op->name, "(): argument 'rounding_mode' must be str, not ", Py_TYPE(v)->tp_name);
      std::string mode = text_of(v);
      check(mode == "floor" || mode == "trunc",
            "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '", mode, "'");
      op = mode == "floor" ? op->floored : op->truncated;
      return;
    }
    int i = 0;
    while (i < op->n_in && !is(op->params[i].c_str())) ++i;
    if (i == op->n_in && (is("self") || is("x"))) i = 0;
    check_type(i < op->n_in && !have[i], op->name, "() got an unexpected keyword argument '", text_of(key), "'");
    take(i, v);
  }
};

PyObject* batched_pointwise(PointwiseArguments& a, bool inplace) {
  PointwiseOp& op = *a.op;
  BatchValues values(op, a.in, op.n_in);
  check(!a.out, "vmap: ", op.name, "(out=) is not possible on batched tensors; use ", op.name, "() without out=");
  if (!inplace) return values.wrap(op.is_power ? power(values.in()[0], values.in()[1]) : pointwise(op, values.in()));
  check_type(a.in[0].tensor, op.name, "_() changes its first argument, which must be a Tensor");
  std::string text = op.name + "_";
  Tensor& target = values.target(text.c_str());
  if (op.is_power)
    power_inplace(target, values.in()[1]);
  else
    pointwise_inplace(op, target, values.in(), text.c_str());
  return Py_NewRef(object_of(const_cast<Tensor*>(a.in[0].tensor)));
}

/// exp(x), mul(x, y, out=z), add(x, y, alpha=2), x.exp_()
PyObject* pointwise_call(PyObject* self, PyObject* const* args, std::size_t nargsf, PyObject* kwnames) {
  return guarded([&]() -> PyObject* {
    auto* o = operator_of(self);
    PointwiseArguments a(*o->pointwise, o->inplace, args, PyVectorcall_NARGS(nargsf), kwnames);
    if (batching.levels && any_batched(a.in, a.op->n_in)) [[unlikely]]
      return batched_pointwise(a, o->inplace);
    if (o->inplace) {
      check_type(a.in[0].tensor, a.op->name, "_() changes its first argument, which must be a Tensor");
      Tensor& target = *const_cast<Tensor*>(a.in[0].tensor);
      std::string text = a.op->name + "_";
      if (a.op->is_power)
        power_inplace(target, a.in[1]);
      else
        pointwise_inplace(*a.op, target, a.in, text.c_str());
      return Py_NewRef(object_of(&target));
    }
    return wrap(a.op->is_power ? power(a.in[0], a.in[1], a.out) : pointwise(*a.op, a.in, a.out));
  });
}

}  // namespace

PyObject* operator_object(const Operator& op, bool inplace) {
  auto* o = new_operator(&registry_call, inplace ? op.name + "_" : op.name);
  o->op = &op;
  o->inplace = inplace;
  o->draws = op.name.find("dropout") != op.name.npos;
  for (auto& overload : op.overloads)
    for (auto& p : overload.params) o->draws = o->draws || p.type == ArgType::Generator || p.name == "dropout_p";
  return reinterpret_cast<PyObject*>(o);
}

PyObject* pointwise_object(PointwiseOp& op, bool inplace) {
  auto* o = new_operator(&pointwise_call, inplace ? op.name + "_" : op.name);
  o->pointwise = &op;
  o->inplace = inplace;
  return reinterpret_cast<PyObject*>(o);
}

}  // namespace rushlight::python
