// Distributions that fill a tensor in place.
#include "operators/random.h"

#include <cmath>
#include <limits>

#include "kernels/random.h"
#include "operators/complex.h"
#include "operators/random_fill.h"
#include "operators/view.h"

namespace rushlight {

/// embedding: Python's UserWarning.
void warn(const std::string& message);

namespace {

/// The C++ name by which PyTorch's messages call a type.
const char* type_text(DType d) {
  switch (d) {
    case DType::Bool:
      return "bool";
    case DType::UInt8:
      return "unsigned char";
    case DType::Int8:
      return "signed char";
    case DType::Int16:
      return "short int";
    case DType::Int32:
      return "int";
    case DType::Int64:
      return "long int";
    case DType::Float16:
      return "c10::Half";
    case DType::BFloat16:
      return "c10::BFloat16";
    case DType::Float32:
      return "float";
    case DType::Float64:
      return "double";
    case DType::Complex64:
      return "c10::complex<float>";
    case DType::Complex128:
      return "c10::complex<double>";
  }
  return "unknown";
}

/// The largest finite number of a floating type.
double largest(DType d) {
  switch (d) {
    case DType::Float16:
      return 65504.0;
    case DType::BFloat16:
      return 0x1.fep127;
    case DType::Float32:
      return double(std::numeric_limits<float>::max());
    default:
      return std::numeric_limits<double>::max();
  }
}

/// The digits of a floating type's mantissa: whole numbers up to 2^digits are exact.
int mantissa_digits(DType d) {
  switch (d) {
    case DType::Float16:
      return 11;
    case DType::BFloat16:
      return 8;
    case DType::Float32:
      return 24;
    default:
      return 53;
  }
}

/// The largest and the smallest number of a whole type.
std::int64_t largest_integer(DType d) {
  return d == DType::Bool ? 1 : d == DType::UInt8 ? 255 : std::int64_t(~std::uint64_t(0) >> (65 - 8 * item_size(d)));
}
std::int64_t smallest_integer(DType d) { return d == DType::Bool || d == DType::UInt8 ? 0 : -largest_integer(d) - 1; }

void check_floating(DType d, const char* distribution, const char* text) {
  check(is_floating(d), distribution,
        " distribution is a continuous probability distribution. dtype must be a floating point but you specified ",
        text);
}

/// A complex tensor as the real one with a last dimension of two parts.
TensorRef parts_of(const Tensor& t) {
  RealWindow parts(true, t.sizes(), t.strides(), t.offset);
  return make_tensor(Ref<Storage>(t.storage), real_of(t.dtype), parts.sizes, parts.strides, parts.offset);
}

/// Refuses, or for floating types comments on, a bound that the type does not hold.
void check_bound(const char* what, std::int64_t bound, DType d) {
  if (!is_floating(d)) {
    check(bound >= smallest_integer(d) && bound <= largest_integer(d), what, " is out of bounds for ", type_text(d));
    return;
  }
  check(std::fabs(double(bound)) <= largest(d), what, " is out of bounds for ", type_text(d));
  std::int64_t exact = std::int64_t(1) << mantissa_digits(d);
  if (bound < -exact || bound > exact)
    warn(concat(what, " is out of bounds [-(2^", mantissa_digits(d), "), 2^", mantissa_digits(d),
                "]. Due to precision limitations ", type_text(d),
                " can support discrete uniform distribution only within this range. This warning will become an error "
                "in later versions of PyTorch."));
}

}  // namespace

void draw_uniform(Tensor& t, double from, double to, MersenneTwister& generator) {
  if (is_complex(t.dtype)) return draw_uniform(*parts_of(t), from, to, generator);
  visit_floating(t.dtype, "check_uniform_bounds", [&]<class T>() {
    double most = largest(t.dtype);
    check(std::fabs(from) <= most, "from is out of bounds for ", type_text(t.dtype));
    check(std::fabs(to) <= most, "to is out of bounds for ", type_text(t.dtype));
    check(from <= to, "uniform_ expects to return a [from, to) range, but found from=", from, " > to=", to);
    check(to - from <= most, "uniform_ expects to-from <= std::numeric_limits<", info(t.dtype).scalar_name,
          ">::max(), but found to=", to, " and from=", from, " which result in to-from to exceed the limit");
    fill_memory<T>(t, [&](T* out, std::int64_t n) { fill_uniform(generator, out, n, from, to); });
  });
}

void draw_normal(Tensor& t, double mean, double std, MersenneTwister& generator) {
  check(std >= 0, "normal expects std >= 0.0, but found std ", std);
  if (is_complex(t.dtype)) return draw_normal(*parts_of(t), mean, std / std::sqrt(2.0), generator);
  visit_floating(t.dtype, "normal_kernel_cpu", [&]<class T>() {
    bool blocks = t.is_contiguous();
    fill_memory<T>(t, [&](T* out, std::int64_t n) {
      if (blocks)
        fill_normal(generator, out, n, mean, std);
      else
        fill_normal_serial(generator, out, n, mean, std);
    });
  });
}

void draw_bernoulli(Tensor& t, double p, MersenneTwister& generator) {
  check(p >= 0 && p <= 1, "bernoulli_ expects p to be in [0, 1], but got p=", p);
  visit_not_complex(t.dtype, "bernoulli_scalar_cpu_", [&]<class T>() {
    fill_memory<T>(t, [&](T* out, std::int64_t n) { fill_bernoulli(generator, out, n, p); });
  });
}

void draw_integers(Tensor& t, std::int64_t from, std::int64_t to, MersenneTwister& generator) {
  check(from < to, "random_ expects 'from' to be less than 'to', but got from=", from, " >= to=", to);
  check(!is_complex(t.dtype), "check_random_bounds handles only integral, floating-point and boolean types");
  visit_not_complex(t.dtype, "random_from_to", [&]<class T>() {
    auto bounds = representable_bounds<T>(from, to);
    check_bound("from", from, t.dtype);
    check_bound("to - 1", to - 1, t.dtype);
    std::uint64_t range = std::uint64_t(bounds.to) - std::uint64_t(bounds.from);
    fill_memory<T>(t, [&](T* out, std::int64_t n) { fill_random_range(generator, out, n, bounds.from, range); });
  });
}

namespace {

TensorRef uniform_(Tensor& t, double from, double to, GeneratorArg g) {
  return redraw<"UniformBackward0">(t, "uniform_", [&] { draw_uniform(t, from, to, generator_of(g)); });
}

TensorRef normal_(Tensor& t, double mean, double std, GeneratorArg g) {
  return redraw<"NormalBackward0">(t, "normal_", [&] { draw_normal(t, mean, std, generator_of(g)); });
}

TensorRef random_(Tensor& t, GeneratorArg g) {
  return redraw<"RandomBackward2">(t, "random_", [&] {
    visit_not_complex(t.dtype, "random_kernel_cpu", [&]<class T>() {
      fill_memory<T>(t, [&](T* out, std::int64_t n) { fill_random(generator_of(g), out, n); });
    });
  });
}

TensorRef random_below(Tensor& t, std::int64_t to, GeneratorArg g) {
  return redraw<"RandomBackward1">(t, "random_", [&] { draw_integers(t, 0, to, generator_of(g)); });
}

TensorRef random_between(Tensor& t, std::int64_t from, std::optional<std::int64_t> to, GeneratorArg g) {
  return redraw<"RandomBackward0">(t, "random_", [&] {
    if (to) return draw_integers(t, from, *to, generator_of(g));
    // up to the type's largest number; all of int64 where that is asked for
    visit_not_complex(t.dtype, "random_from_to", [&]<class T>() {
      std::int64_t last = is_floating(t.dtype) ? std::int64_t(1) << mantissa_digits(t.dtype) : largest_integer(t.dtype);
      check(from <= last, "random_ expects 'from' to be less than or equal to 'to_inc', but got from=", from,
            " > to_inc=", last);
      if (!is_floating(t.dtype)) check_bound("from", from, t.dtype);
      std::uint64_t range = std::uint64_t(last) - std::uint64_t(from) + 1;
      // all of int64: the bits as they are drawn
      fill_memory<T>(
          t, [&](T* out, std::int64_t n) { fill_random_range(generator_of(g), out, n, range ? from : 0, range); });
    });
  });
}

TensorRef exponential_(Tensor& t, double rate, GeneratorArg g) {
  return redraw<"ExponentialBackward0">(t, "exponential_", [&] {
    check_floating(t.dtype, "Exponential", info(t.dtype).scalar_name);
    check(rate > 0, "exponential_ expects lambda > 0.0, but found lambda=", rate);
    visit_floating(t.dtype, "exponential_cpu", [&]<class T>() {
      fill_memory<T>(t, [&](T* out, std::int64_t n) { fill_exponential(generator_of(g), out, n, rate); });
    });
  });
}

TensorRef geometric_(Tensor& t, double p, GeneratorArg g) {
  return redraw<"GeometricBackward0">(t, "geometric_", [&] {
    check(p > 0 && p < 1, "geometric_ expects p to be in (0, 1), but got p=", p);
    visit_not_complex(t.dtype, "geometric_cpu", [&]<class T>() {
      if constexpr (std::is_same_v<T, bool>)
        fail(ErrorKind::NotImplemented, "\"geometric_cpu\" not implemented for 'Bool'");
      else
        fill_memory<T>(t, [&](T* out, std::int64_t n) { fill_geometric(generator_of(g), out, n, p); });
    });
  });
}

TensorRef log_normal_(Tensor& t, double mean, double std, GeneratorArg g) {
  return redraw<"LogNormalBackward0">(t, "log_normal_", [&] {
    check(std > 0, "log_normal_ expects std > 0.0, but found std=", std);
    visit_floating(t.dtype, "log_normal_cpu", [&]<class T>() {
      fill_memory<T>(t, [&](T* out, std::int64_t n) { fill_log_normal(generator_of(g), out, n, mean, std); });
    });
  });
}

TensorRef cauchy_(Tensor& t, double median, double sigma, GeneratorArg g) {
  return redraw<"CauchyBackward0">(t, "cauchy_", [&] {
    check(sigma > 0, "cauchy_ expects sigma > 0.0, but found sigma=", sigma);
    check_floating(t.dtype, "Cauchy", type_text(t.dtype));
    visit_floating(t.dtype, "cauchy_cpu", [&]<class T>() {
      fill_memory<T>(t, [&](T* out, std::int64_t n) { fill_cauchy(generator_of(g), out, n, median, sigma); });
    });
  });
}

#define RUSHLIGHT_GENERATOR "*, generator generator=None)"

const Define fills[] = {
    {"uniform_(Tensor self, float from=0, float to=1, " RUSHLIGHT_GENERATOR, &uniform_, Method,
     "Fills with numbers uniform in [from, to)."},
    {"normal_(Tensor self, float mean=0, float std=1, " RUSHLIGHT_GENERATOR, &normal_, Method,
     "Fills with normal numbers."},
    {"random_(Tensor self, " RUSHLIGHT_GENERATOR, &random_, Method,
     "Fills with whole numbers: of [from, to), or all that the type holds from 0 on."},
    {"random_(Tensor self, int from, int? to, " RUSHLIGHT_GENERATOR, &random_between, Method},
    {"random_(Tensor self, int to, " RUSHLIGHT_GENERATOR, &random_below, Method},
    {"exponential_(Tensor self, float lambd=1, " RUSHLIGHT_GENERATOR, &exponential_, Method,
     "Fills with exponential numbers of rate lambd."},
    {"geometric_(Tensor self, float p, " RUSHLIGHT_GENERATOR, &geometric_, Method,
     "Fills with the number of trials of probability p until the first success."},
    {"log_normal_(Tensor self, float mean=1, float std=2, " RUSHLIGHT_GENERATOR, &log_normal_, Method,
     "Fills with exp of normal numbers."},
    {"cauchy_(Tensor self, float median=0, float sigma=1, " RUSHLIGHT_GENERATOR, &cauchy_, Method,
     "Fills with Cauchy numbers."},
};

}  // namespace

}  // namespace rushlight
