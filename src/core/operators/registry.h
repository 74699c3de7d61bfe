// The registry: every native operator's name, signatures, function and text, in one place each.
//
//     static const Define sum_{"sum(Tensor self, int[]? dim=None, bool keepdim=False, *, dtype? dtype=None)", &sum_op,
//     Doc{"..."}};
//
// From it the Python room derives the function, the method, the in-place and out= forms, argument parsing and error
// texts, docstrings, type stubs and the tests' table. A name defined several times has several overloads, tried in
// order.
//
// Types in signatures: Tensor Tensor? Tensor[] Scalar Scalar? int int? int[] int[]? bool bool? float float? dtype
// dtype? str str? device? layout? memory_format? generator? object. `int[]` also takes a single int; as the only
// positional parameter beside self it takes int... spread out. A C++ function takes them as: const Tensor&, const
// Tensor* (for ?), const Tensors&, Scalar, std::optional<Scalar>, std::int64_t, std::optional<std::int64_t>, const
// Dims&, std::optional<Dims>, bool, std::optional<bool>, double, std::optional<double>, DType, std::optional<DType>,
// std::string, std::optional<std::string>, Device, Layout, MemoryFormat, GeneratorArg. It gives: TensorRef, a
// std::tuple or std::array of TensorRef, TensorList, bool, std::int64_t, double, Scalar, void.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "tensor/tensor.h"

namespace rushlight {

using Tensors = std::vector<const Tensor*>;
struct Device {};  ///< always the CPU: checked while arguments are parsed
struct Layout {};  ///< always strided
struct GeneratorArg {
  void* object = nullptr;  ///< what generator_of (operators/random.h) turns into a generator; null: the default one
};

enum class ArgType : std::uint8_t {
  Tensor,
  Tensors,
  Scalar,
  Int,
  Ints,
  Bool,
  Float,
  DType,
  String,
  Device,
  Layout,
  MemoryFormat,
  Generator,
  Object
};

struct Param {
  std::string name;
  ArgType type;
  bool optional = false;  ///< None is accepted
  bool has_default = false;
  bool keyword_only = false;
  int expand = 0;  ///< int[n]: a single int stands for n of them
  std::string default_text;
  Scalar default_number;  ///< the default, parsed
  Dims default_ints;
  bool default_none = true;
};

/// One parsed argument.
struct Value {
  bool given = false;  ///< false: None or the default None
  const Tensor* tensor = nullptr;
  Scalar number;  ///< Scalar, int, bool and float
  Dims ints;
  Tensors tensors;
  TensorList temporaries;  ///< numbers that became tensors
  DType dtype = DType::Float32;
  std::string text;
  MemoryFormat format = MemoryFormat::Absent;
  void* object = nullptr;
};

struct Result {
  enum Kind : std::uint8_t { None, One, Tuple, List, Number } kind = None;
  TensorRef one;
  TensorList many;
  Scalar number;
};

struct Overload {
  std::vector<Param> params;
  std::string signature;
  Result (*call)(const Overload&, Value* args);
  void (*function)();
  std::vector<std::string> fields;  ///< names of a tuple result's parts
  std::string returns;              ///< Tensor, Tensor[], (Tensor, Tensor), bool, int, float, Scalar or None
};

/// NoGradient: no argument has a derivative (positions, comparisons, random numbers, factories). Layer: what a layer
/// calls; errors about its operands begin with its name, as they do for every NnFunction.
enum : unsigned {
  Function = 1,
  Method = 2,
  Inplace = 4,
  Out = 8,
  NnFunction = 16,
  NoGradient = 32,
  Layer = 64,
  Both = Function | Method
};

struct Operator {
  std::string name;
  std::vector<Overload> overloads;
  std::string doc;
  unsigned forms = Both;
};

struct Doc {
  const char* text;
};

/// The operator of that name, made where there is none.
Operator& define_operator(std::string_view signature, unsigned forms, const char* doc,
                          Result (*call)(const Overload&, Value*), void (*function)(), std::vector<std::string> fields,
                          std::string returns);
std::vector<Operator*> all_operators();

namespace detail {

template <class T>
struct From;
template <>
struct From<const Tensor&> {
  static const Tensor& get(Value& v) { return *v.tensor; }
};
template <>
struct From<Tensor&> {
  static Tensor& get(Value& v) { return *const_cast<Tensor*>(v.tensor); }
};
template <>
struct From<const Tensor*> {
  static const Tensor* get(Value& v) { return v.tensor; }
};
template <>
struct From<Tensor*> {
  static Tensor* get(Value& v) { return const_cast<Tensor*>(v.tensor); }
};
template <>
struct From<const Tensors&> {
  static const Tensors& get(Value& v) { return v.tensors; }
};
template <>
struct From<Scalar> {
  static Scalar get(Value& v) { return v.number; }
};
template <>
struct From<const Scalar&> {
  static const Scalar& get(Value& v) { return v.number; }
};
template <>
struct From<std::int64_t> {
  static std::int64_t get(Value& v) { return v.number.integer; }
};
template <>
struct From<bool> {
  static bool get(Value& v) { return v.number.integer != 0; }
};
template <>
struct From<double> {
  static double get(Value& v) { return v.number.to_double(); }
};
template <>
struct From<const Dims&> {
  static const Dims& get(Value& v) { return v.ints; }
};
template <>
struct From<IntSpan> {
  static IntSpan get(Value& v) { return v.ints; }
};
template <>
struct From<DType> {
  static DType get(Value& v) { return v.dtype; }
};
template <>
struct From<std::string> {
  static std::string get(Value& v) { return v.text; }
};
template <>
struct From<const std::string&> {
  static const std::string& get(Value& v) { return v.text; }
};
template <>
struct From<Device> {
  static Device get(Value&) { return {}; }
};
template <>
struct From<Layout> {
  static Layout get(Value&) { return {}; }
};
template <>
struct From<MemoryFormat> {
  static MemoryFormat get(Value& v) { return v.format; }
};
template <>
struct From<GeneratorArg> {
  static GeneratorArg get(Value& v) { return {v.object}; }
};
template <class T>
struct From<std::optional<T>> {
  static std::optional<T> get(Value& v) {
    if (!v.given) return std::nullopt;
    if constexpr (std::is_same_v<T, Dims>)
      return v.ints;
    else
      return From<T>::get(v);
  }
};
template <class T>
struct From<const std::optional<T>&> : From<std::optional<T>> {};

inline Result to_result(TensorRef t) {
  Result r;
  r.kind = Result::One;
  r.one = std::move(t);
  return r;
}
inline Result to_result(TensorList t) {
  Result r;
  r.kind = Result::List;
  r.many = std::move(t);
  return r;
}
template <std::size_t N>
Result to_result(std::array<TensorRef, N> t) {
  Result r;
  r.kind = Result::Tuple;
  r.many.assign(t.begin(), t.end());
  return r;
}
template <class... T>
Result to_result(std::tuple<T...> t) {
  Result r;
  r.kind = Result::Tuple;
  std::apply([&](auto&... part) { (r.many.push_back(std::move(part)), ...); }, t);
  return r;
}
inline Result to_result(Scalar s) {
  Result r;
  r.kind = Result::Number;
  r.number = s;
  return r;
}
inline Result to_result(Result r) { return r; }
inline Result to_result(bool b) { return to_result(Scalar(b)); }
inline Result to_result(std::int64_t i) { return to_result(Scalar(i)); }
inline Result to_result(double d) { return to_result(Scalar(d)); }

template <class R>
struct Returns;
template <>
struct Returns<void> {
  static std::string text() { return "None"; }
};
template <>
struct Returns<TensorRef> {
  static std::string text() { return "Tensor"; }
};
template <>
struct Returns<TensorList> {
  static std::string text() { return "Tensor[]"; }
};
template <>
struct Returns<Result> {
  static std::string text() { return "Tensor or Tensor[]"; }
};  // an argument chooses
template <>
struct Returns<bool> {
  static std::string text() { return "bool"; }
};
template <>
struct Returns<std::int64_t> {
  static std::string text() { return "int"; }
};
template <>
struct Returns<double> {
  static std::string text() { return "float"; }
};
template <>
struct Returns<Scalar> {
  static std::string text() { return "Scalar"; }
};
inline std::string tensors_text(std::size_t n) {
  std::string text = "(Tensor";
  for (std::size_t i = 1; i < n; ++i) text += ", Tensor";
  return text + ")";
}
template <std::size_t N>
struct Returns<std::array<TensorRef, N>> {
  static std::string text() { return tensors_text(N); }
};
template <class... T>
struct Returns<std::tuple<T...>> {
  static std::string text() { return tensors_text(sizeof...(T)); }
};

template <class R, class... A, std::size_t... I>
Result invoke(R (*f)(A...), Value* args, std::index_sequence<I...>) {
  if constexpr (std::is_void_v<R>) {
    f(From<A>::get(args[I])...);
    return {};
  } else {
    return to_result(f(From<A>::get(args[I])...));
  }
}

template <class R, class... A>
Result call_overload(const Overload& o, Value* args) {
  return invoke(reinterpret_cast<R (*)(A...)>(o.function), args, std::index_sequence_for<A...>{});
}

}  // namespace detail

/// Registers an overload while the library is loaded. `forms`: which of Function, Method, Inplace (derived `name_`),
/// Out (derived out=) exist; NnFunction: it stands in torch._C._nn instead of torch. `fields`: names of tuple results.
struct Define {
  template <class R, class... A>
  Define(const char* signature, R (*f)(A...), unsigned forms = Both, const char* doc = "",
         std::vector<std::string> fields = {}) {
    define_operator(signature, forms, doc, &detail::call_overload<R, A...>, reinterpret_cast<void (*)()>(f),
                    std::move(fields), detail::Returns<R>::text());
  }
};

}  // namespace rushlight
