// Element types: their sizes, categories, promotion and C++ counterparts.
#pragma once

#include <bit>
#include <complex>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "tensor/error.h"

namespace rushlight {

enum class DType : std::uint8_t {
  Bool,
  UInt8,
  Int8,
  Int16,
  Int32,
  Int64,
  Float16,
  BFloat16,
  Float32,
  Float64,
  Complex64,
  Complex128,
};
inline constexpr int dtype_count = 12;

/// IEEE binary16 in memory; arithmetic is done in float.
struct Half {
  std::uint16_t bits = 0;
  Half() = default;
  Half(float value) : bits(encode(value)) {}
  operator float() const { return decode(bits); }
  static std::uint16_t encode(float value);
  static float decode(std::uint16_t bits);
};

/// The upper half of a binary32 in memory; arithmetic is done in float.
struct BFloat16 {
  std::uint16_t bits = 0;
  BFloat16() = default;
  BFloat16(float value) : bits(encode(value)) {}
  operator float() const { return std::bit_cast<float>(std::uint32_t(bits) << 16); }
  static std::uint16_t encode(float value) {
    auto word = std::bit_cast<std::uint32_t>(value);
    if ((word & 0x7fffffffu) > 0x7f800000u) return std::uint16_t((word >> 16) | 0x40);  // a NaN stays one
    return std::uint16_t((word + 0x7fffu + ((word >> 16) & 1u)) >> 16);                 // round to nearest even
  }
};

inline std::uint16_t Half::encode(float value) {
  auto word = std::bit_cast<std::uint32_t>(value);
  std::uint32_t sign = (word >> 16) & 0x8000u, magnitude = word & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return std::uint16_t(sign | 0x7e00u);
  if (magnitude >= 0x47800000u) return std::uint16_t(sign | 0x7c00u);  // 65536 and more
  if (magnitude < 0x38800000u) {                                       // below 2^-14: a subnormal half
    float shifted = std::bit_cast<float>(magnitude) + 0.5f;            // the sum's last bits round to nearest even
    return std::uint16_t(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u));
  }
  std::uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return std::uint16_t(sign | ((rounded - 0x38000000u) >> 13));
}

inline float Half::decode(std::uint16_t bits) {
  std::uint32_t sign = std::uint32_t(bits & 0x8000u) << 16, rest = bits & 0x7fffu;
  if (rest >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | (rest << 13));
  if (rest >= 0x400u) return std::bit_cast<float>(sign | ((rest << 13) + 0x38000000u));
  float small = float(rest) * 0x1p-24f;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(small));
}

struct DTypeInfo {
  const char* name;         ///< as in `torch.float32`
  const char* legacy;       ///< as in `torch.FloatTensor`
  const char* scalar_name;  ///< as in messages: `Float`
  std::uint8_t size;
  std::uint8_t category;  ///< 0 bool, 1 integer, 2 floating, 3 complex
  char numpy_kind;
};

inline constexpr DTypeInfo dtype_table[dtype_count] = {
    {"bool", "BoolTensor", "Bool", 1, 0, 'b'},
    {"uint8", "ByteTensor", "Byte", 1, 1, 'u'},
    {"int8", "CharTensor", "Char", 1, 1, 'i'},
    {"int16", "ShortTensor", "Short", 2, 1, 'i'},
    {"int32", "IntTensor", "Int", 4, 1, 'i'},
    {"int64", "LongTensor", "Long", 8, 1, 'i'},
    {"float16", "HalfTensor", "Half", 2, 2, 'f'},
    {"bfloat16", "BFloat16Tensor", "BFloat16", 2, 2, 'V'},
    {"float32", "FloatTensor", "Float", 4, 2, 'f'},
    {"float64", "DoubleTensor", "Double", 8, 2, 'f'},
    {"complex64", "ComplexFloatTensor", "ComplexFloat", 8, 3, 'c'},
    {"complex128", "ComplexDoubleTensor", "ComplexDouble", 16, 3, 'c'},
};

constexpr const DTypeInfo& info(DType d) { return dtype_table[int(d)]; }
constexpr const char* name(DType d) { return info(d).name; }
constexpr std::int64_t item_size(DType d) { return info(d).size; }
constexpr int category(DType d) { return info(d).category; }
constexpr bool is_floating(DType d) { return category(d) == 2; }
constexpr bool is_complex(DType d) { return d >= DType::Complex64; }
constexpr bool is_integral(DType d) { return category(d) == 1; }
constexpr bool is_differentiable(DType d) { return category(d) >= 2; }
constexpr bool is_half(DType d) { return d == DType::Float16 || d == DType::BFloat16; }

/// The real type of a complex one (any other is returned as it is).
constexpr DType real_of(DType d) {
  return d == DType::Complex64 ? DType::Float32 : d == DType::Complex128 ? DType::Float64 : d;
}
constexpr DType complex_of(DType d) {
  return d == DType::Float64 || d == DType::Complex128 ? DType::Complex128 : DType::Complex64;
}

/// The smallest type that holds both, by PyTorch's lattice.
constexpr DType promote(DType a, DType b) {
  if (a == b) return a;
  if (category(a) > category(b)) std::swap(a, b);
  if (category(a) < category(b)) {
    if (is_complex(b) && a == DType::Float64) return DType::Complex128;
    return b;
  }
  if (category(a) == 1) {
    if (a > b) std::swap(a, b);
    if (a == DType::UInt8 && b == DType::Int8) return DType::Int16;
    return b;
  }
  if (is_half(a) && is_half(b)) return DType::Float32;
  return a > b ? a : b;
}

/// torch.get_default_dtype(); guarded by the interpreter lock.
inline DType default_dtype = DType::Float32;

template <class T>
struct dtype_of_type;
template <>
struct dtype_of_type<bool> {
  static constexpr DType value = DType::Bool;
};
template <>
struct dtype_of_type<std::uint8_t> {
  static constexpr DType value = DType::UInt8;
};
template <>
struct dtype_of_type<std::int8_t> {
  static constexpr DType value = DType::Int8;
};
template <>
struct dtype_of_type<std::int16_t> {
  static constexpr DType value = DType::Int16;
};
template <>
struct dtype_of_type<std::int32_t> {
  static constexpr DType value = DType::Int32;
};
template <>
struct dtype_of_type<std::int64_t> {
  static constexpr DType value = DType::Int64;
};
template <>
struct dtype_of_type<Half> {
  static constexpr DType value = DType::Float16;
};
template <>
struct dtype_of_type<BFloat16> {
  static constexpr DType value = DType::BFloat16;
};
template <>
struct dtype_of_type<float> {
  static constexpr DType value = DType::Float32;
};
template <>
struct dtype_of_type<double> {
  static constexpr DType value = DType::Float64;
};
template <>
struct dtype_of_type<std::complex<float>> {
  static constexpr DType value = DType::Complex64;
};
template <>
struct dtype_of_type<std::complex<double>> {
  static constexpr DType value = DType::Complex128;
};
template <class T>
inline constexpr DType dtype_of = dtype_of_type<T>::value;

template <class T>
inline constexpr bool is_complex_type =
    std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;

/// Calls `f.template operator()<T>()` with the C++ type of `d`.
template <class F>
decltype(auto) visit_dtype(DType d, F&& f) {
  switch (d) {
    case DType::Bool:
      return f.template operator()<bool>();
    case DType::UInt8:
      return f.template operator()<std::uint8_t>();
    case DType::Int8:
      return f.template operator()<std::int8_t>();
    case DType::Int16:
      return f.template operator()<std::int16_t>();
    case DType::Int32:
      return f.template operator()<std::int32_t>();
    case DType::Int64:
      return f.template operator()<std::int64_t>();
    case DType::Float16:
      return f.template operator()<Half>();
    case DType::BFloat16:
      return f.template operator()<BFloat16>();
    case DType::Float32:
      return f.template operator()<float>();
    case DType::Float64:
      return f.template operator()<double>();
    case DType::Complex64:
      return f.template operator()<std::complex<float>>();
    case DType::Complex128:
      return f.template operator()<std::complex<double>>();
  }
  fail("a tensor's dtype is out of range");
}

/// The same over the types that `accepts` takes: `accepts.template operator()<T>()`, float among them. The others are
/// refused in the name of `operation`.
template <auto accepts, class F>
decltype(auto) visit_only(DType d, const char* operation, F&& f) {
  using Result = decltype(f.template operator()<float>());
  return visit_dtype(d, [&]<class T>() -> Result {
    if constexpr (accepts.template operator()<T>())
      return f.template operator()<T>();
    else
      fail(ErrorKind::NotImplemented, '"', operation, "\" not implemented for '", info(d).scalar_name, "'");
  });
}

template <class T>
inline constexpr bool is_half_type = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

/// All types but the complex ones.
template <class F>
decltype(auto) visit_not_complex(DType d, const char* operation, F&& f) {
  return visit_only<[]<class T>() { return !is_complex_type<T>; }>(d, operation, f);
}
/// Whole and floating numbers: neither bool nor complex.
template <class F>
decltype(auto) visit_numbers(DType d, const char* operation, F&& f) {
  return visit_only<[]<class T>() { return !is_complex_type<T> && !std::is_same_v<T, bool>; }>(d, operation, f);
}
/// The real types that have ordinary arithmetic in C++: neither half nor complex.
template <class F>
decltype(auto) visit_real(DType d, const char* operation, F&& f) {
  return visit_only<[]<class T>() { return !is_complex_type<T> && !is_half_type<T>; }>(d, operation, f);
}
/// Floating types, the half ones among them.
template <class F>
decltype(auto) visit_floating(DType d, const char* operation, F&& f) {
  return visit_only<[]<class T>() { return is_half_type<T> || std::is_floating_point_v<T>; }>(d, operation, f);
}
/// float and double.
template <class F>
decltype(auto) visit_wide(DType d, const char* operation, F&& f) {
  return visit_only<[]<class T>() { return std::is_floating_point_v<T>; }>(d, operation, f);
}

/// Moves n elements by raw width: for kernels that copy numbers without looking at them.
template <class F>
decltype(auto) visit_width(std::int64_t bytes, F&& f) {
  switch (bytes) {
    case 1:
      return f.template operator()<std::uint8_t>();
    case 2:
      return f.template operator()<std::uint16_t>();
    case 4:
      return f.template operator()<std::uint32_t>();
    case 8:
      return f.template operator()<std::uint64_t>();
    default:
      return f.template operator()<std::complex<double>>();
  }
}

}  // namespace rushlight
