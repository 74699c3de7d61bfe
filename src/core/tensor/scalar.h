// A Python number: bool, int, float or complex, with its kind.
#pragma once

#include <complex>
#include <cstdint>

#include "tensor/dtype.h"

namespace rushlight {

struct Scalar {
  enum Kind : std::uint8_t { Bool, Int, Float, Complex };  ///< in the order of dtype categories
  Kind kind = Int;
  std::int64_t integer = 0;   ///< Bool and Int
  double real = 0, imag = 0;  ///< Float and Complex

  Scalar() = default;
  Scalar(bool v) : kind(Bool), integer(v) {}
  Scalar(int v) : integer(v) {}
  Scalar(std::int64_t v) : integer(v) {}
  Scalar(float v) : kind(Float), real(v) {}
  Scalar(double v) : kind(Float), real(v) {}
  Scalar(std::complex<double> v) : kind(Complex), real(v.real()), imag(v.imag()) {}

  bool is_integral() const { return kind <= Int; }
  double to_double() const { return is_integral() ? double(integer) : real; }
  std::int64_t to_int() const { return is_integral() ? integer : std::int64_t(real); }
  bool is(double v) const { return kind != Complex ? to_double() == v : real == v && imag == 0; }

  template <class T>
  T to() const {
    if constexpr (is_complex_type<T>)
      return T(typename T::value_type(to_double()), typename T::value_type(imag));
    else if constexpr (std::is_same_v<T, bool>)
      return is_integral() ? integer != 0 : real != 0 || imag != 0;
    else if constexpr (std::is_integral_v<T>)
      return is_integral() ? T(integer) : T(std::int64_t(real));
    else
      return T(float_like<T>());
  }

  /// Writes the number as one element of dtype `d`.
  void store(DType d, void* to_) const {
    visit_dtype(d, [&]<class T>() {
      T v = to<T>();
      std::memcpy(to_, &v, sizeof v);
    });
  }
  static Scalar load(DType d, const void* from) {
    return visit_dtype(d, [&]<class T>() -> Scalar {
      T v;
      std::memcpy(&v, from, sizeof v);
      if constexpr (std::is_same_v<T, bool>)
        return Scalar(v);
      else if constexpr (std::is_integral_v<T>)
        return Scalar(std::int64_t(v));
      else if constexpr (is_complex_type<T>)
        return Scalar(std::complex<double>(v));
      else
        return Scalar(double(v));
    });
  }
  /// The dtype that the number has by itself: bool, int64, the default floating or complex type.
  DType dtype() const {
    return kind == Bool    ? DType::Bool
           : kind == Int   ? DType::Int64
           : kind == Float ? default_dtype
                           : complex_of(default_dtype);
  }

 private:
  template <class T>
  auto float_like() const {
    if constexpr (std::is_same_v<T, double>)
      return to_double();
    else
      return float(to_double());
  }
};

}  // namespace rushlight
