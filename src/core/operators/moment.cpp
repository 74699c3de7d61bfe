// Variances and standard deviations.
#include <cmath>

#include "operators/deferred.h"
#include "operators/operators.h"
#include "operators/registry.h"

namespace rushlight {
namespace {

/// Means and variances in double, over the same dimensions, without history: two passes, as numbers far from zero need.
struct Moments {
  TensorRef mean, variance;
  Moments(const Tensor& t, const Reduced& r, bool keepdim, double correction, const char* operation) {
    check(is_differentiable(t.dtype), std::string_view(operation).ends_with("_mean") ? operation : "std and var",
          " only support floating point and complex dtypes");
    double freedom = double(r.count) - correction;
    if (freedom <= 0)
      warn(concat(operation,
                  "(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor (input "
                  "numel divided by output numel)."));
    GradScope off(false);
    Scalar divisor(std::fmax(freedom, 0.0));
    if (is_complex(t.dtype)) {
      TensorRef x = real_part(t), y = imaginary_part(t), x_mean, y_mean;
      variance = add(*of_real(*x, r, keepdim, divisor, operation, x_mean),
                     *of_real(*y, r, keepdim, divisor, operation, y_mean));
      mean = complex_of_parts(*x_mean, *y_mean);
    } else {
      variance = of_real(t, r, keepdim, divisor, operation, mean);
    }
  }

 private:
  static TensorRef of_real(const Tensor& t, const Reduced& r, bool keepdim, const Scalar& divisor,
                           const char* operation, TensorRef& mean) {
    CallersOperand none(nullptr);  // it is read twice
    mean = div(folded(FoldKind::WideSum, t, r, keepdim, operation), Scalar(double(r.count)));
    return div(folded(FoldKind::Deviation, t, r, keepdim, operation, mean.get()), divisor);
  }
};

/// The gradient of a variance: g * 2 (x - mean) / (n - correction); without degrees of freedom over all elements,
/// infinity, and NaN for an element that is the mean.
TensorRef variance_vjp(Vjp& v, const Tensor& g, const Tensor& x, const Reduced& r, double correction) {
  if (r.dims.size() == x.ndim && double(r.count) <= correction) {
    TensorRef at_mean = eq(x, mean(*detach(x), {}));
    return mul(restored(g, v.shape(r.kept_sizes)), where(at_mean, Scalar(NAN), full({}, Scalar(INFINITY), x.dtype)));
  }
  TensorRef scaled = mul(restored(g, v.shape(r.kept_sizes)), Scalar(2.0 / (double(r.count) - correction)));
  return mul(scaled, sub(x, mean(x, r.dims, true)));
}

/// The gradient of a root in terms of that of what is under it; 0 where the root is 0.
TensorRef root_vjp(const Tensor& g, const Tensor& root) {
  return where(eq(root, Scalar(0)), Scalar(0.0), div(g, mul(root, Scalar(2))));
}

TensorRef variance(const Tensor& t, IntSpan dims, double correction, bool keepdim) {
  Reduced r(t, dims);
  TensorRef out = Moments(t, r, keepdim, correction, "var").variance;
  out = cast(*out, real_of(t.dtype));
  return record("VarBackward0", std::move(out), {&t}, {save_in(t, 0)},
                by_rows([r, correction](Vjp& v) { v.set(0, variance_vjp(v, *v.grad(), *v.saved(0), r, correction)); }));
}

TensorRef deviation(const Tensor& t, IntSpan dims, double correction, bool keepdim) {
  Reduced r(t, dims);
  TensorRef out;
  {
    GradScope off(false);
    out = cast(*square_root(Moments(t, r, keepdim, correction, "std").variance), real_of(t.dtype));
  }
  return record("StdBackward0", out, {&t}, {save_in(t, 0), save_out(out)}, by_rows([r, correction](Vjp& v) {
                  v.set(0, variance_vjp(v, *root_vjp(*v.grad(), *v.saved(1)), *v.saved(0), r, correction));
                }));
}

using Pair = std::array<TensorRef, 2>;

/// What reaches the input from a mean and from a variance, either of which may be absent.
TensorRef moments_vjp(Vjp& v, const TensorRef& g_variance, const TensorRef& g_mean, const Tensor& x, const Reduced& r,
                      double correction) {
  TensorRef out;
  if (g_variance) out = variance_vjp(v, *g_variance, x, r, correction);
  if (g_mean) {
    TensorRef part = div(restored(*g_mean, v.shape(r.kept_sizes)), Scalar(double(r.count)));
    part = expand(*part, v.shape(x.sizes()));
    out = out ? add(*out, *part) : part;
  }
  return out;
}

Pair variance_and_mean(const Tensor& t, IntSpan dims, double correction, bool keepdim) {
  Reduced r(t, dims);
  Moments m(t, r, keepdim, correction, "var_mean");
  Pair out{cast(*m.variance, real_of(t.dtype)), cast(*m.mean, t.dtype)};
  const Tensor* inputs[] = {&t};
  Save saves[] = {save_in(t, 0)};
  record_many("VarMeanBackward0", out, inputs, saves, by_rows([r, correction](Vjp& v) {
                v.set(0, moments_vjp(v, v.grad(0), v.grad(1), *v.saved(0), r, correction));
              }));
  return out;
}

Pair deviation_and_mean(const Tensor& t, IntSpan dims, double correction, bool keepdim) {
  Reduced r(t, dims);
  Moments m(t, r, keepdim, correction, "std_mean");
  Pair out;
  {
    GradScope off(false);
    out = {cast(*square_root(m.variance), real_of(t.dtype)), cast(*m.mean, t.dtype)};
  }
  const Tensor* inputs[] = {&t};
  Save saves[] = {save_in(t, 0), save_out(out[0], 0)};
  record_many("StdMeanBackward0", out, inputs, saves, by_rows([r, correction](Vjp& v) {
                TensorRef g = v.grad(0) ? root_vjp(*v.grad(0), *v.saved(1)) : nullptr;
                v.set(0, moments_vjp(v, g, v.grad(1), *v.saved(0), r, correction));
              }));
  return out;
}

// ---- the operators: each over all elements, over dimensions, or with a correction

template <class R, R (*f)(const Tensor&, IntSpan, double, bool)>
struct Forms {
  static R all(const Tensor& t, bool unbiased) { return f(t, {}, unbiased, false); }
  static R over(const Tensor& t, const std::optional<Dims>& dim, bool unbiased, bool keepdim) {
    return f(t, dims_of(dim), unbiased, keepdim);
  }
  static R corrected(const Tensor& t, const std::optional<Dims>& dim, std::optional<Scalar> correction, bool keepdim) {
    return f(t, dims_of(dim), correction ? correction->to_double() : 1.0, keepdim);
  }
};
using Var = Forms<TensorRef, &variance>;
using Std = Forms<TensorRef, &deviation>;
using VarMean = Forms<Pair, &variance_and_mean>;
using StdMean = Forms<Pair, &deviation_and_mean>;

const Define moments[] = {
    {"var(Tensor self, bool unbiased=True)", &Var::all, Both | Out,
     "The variance of all elements, or over dimensions: the mean square distance from the mean, divided by n - "
     "correction."},
    {"var(Tensor self, int[]? dim, bool unbiased=True, bool keepdim=False)", &Var::over, Both | Out},
    {"var(Tensor self, int[]? dim=None, *, Scalar? correction=None, bool keepdim=False)", &Var::corrected, Both | Out},
    {"std(Tensor self, bool unbiased=True)", &Std::all, Both | Out,
     "The standard deviation: the root of the variance."},
    {"std(Tensor self, int[]? dim, bool unbiased=True, bool keepdim=False)", &Std::over, Both | Out},
    {"std(Tensor self, int[]? dim=None, *, Scalar? correction=None, bool keepdim=False)", &Std::corrected, Both | Out},
    {"var_mean(Tensor self, bool unbiased=True)", &VarMean::all, Function, "Variance and mean."},
    {"var_mean(Tensor self, int[]? dim, bool unbiased=True, bool keepdim=False)", &VarMean::over, Function},
    {"var_mean(Tensor self, int[]? dim=None, *, Scalar? correction=None, bool keepdim=False)", &VarMean::corrected,
     Function},
    {"std_mean(Tensor self, bool unbiased=True)", &StdMean::all, Function, "Standard deviation and mean."},
    {"std_mean(Tensor self, int[]? dim, bool unbiased=True, bool keepdim=False)", &StdMean::over, Function},
    {"std_mean(Tensor self, int[]? dim=None, *, Scalar? correction=None, bool keepdim=False)", &StdMean::corrected,
     Function},
};

}  // namespace
}  // namespace rushlight
