// Running sums, products and extremes along a dimension.
//
// Their derivatives run the other way: that of a running sum is a running sum from the end; that of a running product
// and of logcumsumexp a linear recurrence s(k) = g(k) + a(k) s(k + 1), which divides by nothing and is thereby right
// where an input is zero.
#include "kernels/scan.h"

#include "operators/along.h"
#include "operators/line.h"
#include "operators/registry.h"
#include "operators/scan.h"

namespace rushlight {
namespace {

/// The tensor as outer x n x inner, row-major.
struct Blocks {
  std::int64_t outer = 1, n = 1, inner = 1;
  Blocks(const Tensor& t, int dim) {
    for (int i = 0; i < t.ndim; ++i) (i < dim ? outer : i == dim ? n : inner) *= t.size(i);
  }
};

/// Runs f(lines in, lines out, n, count) over the lines of `t` along `dim`, from the end if `reverse`.
template <class T, class F>
void scan_lines(const Tensor& t, Tensor& out, int dim, bool reverse, F&& f) {
  TensorRef x = packed(t);
  Blocks b(*x, dim);
  auto* from = x->read_as<T>();
  auto* to = out.write_as<T>();
  if (x->numel == 0) return;
  parallel_for(b.outer, std::max<std::int64_t>(1, (1 << 14) / (b.n * b.inner)),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t o = begin; o < end; ++o) {
                   std::int64_t at = o * b.n * b.inner + (reverse ? (b.n - 1) * b.inner : 0),
                                step = reverse ? -b.inner : b.inner;
                   f(Lines<const T>{from + at, step, 1}, Lines<T>{to + at, step, 1}, b.n, b.inner);
                 }
               });
}

TensorRef running_sum(const Tensor& t, int dim, bool reverse) {
  TensorRef out = empty(t.sizes(), t.dtype);
  visit_dtype(t.dtype, [&]<class T>() {
    if constexpr (!std::is_same_v<T, bool>)
      scan_lines<T>(t, *out, dim, reverse,
                    [](auto in, auto to, std::int64_t n, std::int64_t count) { cumsum_lines<T>(in, to, n, count); });
  });
  return record("CumsumBackward0", std::move(out), {&t}, {},
                [dim, reverse](Vjp& v) { v.set(0, running_sum(*v.grad(), dim, !reverse)); });
}

/// `t` moved by one place along `dim` (forward: towards greater indices), zeros coming in.
TensorRef shifted(const Tensor& t, int dim, bool forward, double fill) {
  Dims one(t.sizes());
  one[dim] = 1;
  TensorRef edge = full(one, fill, t.dtype), rest = narrow(t, dim, forward ? 0 : 1, t.size(dim) - 1);
  return forward ? cat({edge.get(), rest.get()}, dim) : cat({rest.get(), edge.get()}, dim);
}

/// s(k) = g(k) + a(k) s(k - 1), or from the end s(k) = g(k) + a(k) s(k + 1).
TensorRef recurrence(const Tensor& g, const Tensor& a, int dim, bool reverse) {
  TensorRef out = empty(g.sizes(), g.dtype), coefficients = packed(a);
  visit_real(g.dtype, "recurrence", [&]<class T>() {
    auto* base = coefficients->read_as<T>();
    auto* origin = out->write_as<T>();
    scan_lines<T>(g, *out, dim, reverse, [&](auto in, auto to, std::int64_t n, std::int64_t count) {
      Lines<const T> by{base + (to.data - origin), in.stride, 1};
      for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t j = 0; j < count; ++j)
          to.at(j, i) = i ? T(in.at(j, i) + by.at(j, i) * to.at(j, i - 1)) : in.at(j, i);
    });
  });
  static PointwiseOp& times = pointwise_op("mul");
  return record("RecurrenceBackward0", out, {&g, &a}, {save_in(a, 1), save_out(out)}, [dim, reverse](Vjp& v) {
    TensorRef dg = recurrence(*v.grad(), *shifted(*v.saved(0), dim, reverse, 0), dim, !reverse);
    if (v.needs(0)) v.set(0, dg);
    if (v.needs(1)) v.set(1, pointwise(times, {Operand(dg), Operand(shifted(*v.saved(1), dim, !reverse, 0))}));
  });
}

DType scan_type(const Tensor& t, std::optional<DType> dtype) {
  return dtype ? *dtype : category(t.dtype) < 2 ? DType::Int64 : t.dtype;
}

/// A 0-d tensor is scanned as a line of one.
template <class F>
TensorRef as_line(const Tensor& t, int dim, F&& f) {
  if (t.ndim) return f(t, dim);
  return reshape(*f(*reshape(t, Dims{1}), 0), Dims{});
}

TensorRef cumsum(const Tensor& t, std::int64_t dim, std::optional<DType> dtype) {
  return as_line(*cast(t, scan_type(t, dtype)), wrap_dim(dim, t.ndim),
                 [](const Tensor& x, int d) { return running_sum(x, d, false); });
}

TensorRef running_product(const Tensor& t, int dim, bool reverse) {
  TensorRef out = empty(t.sizes(), t.dtype);
  visit_dtype(t.dtype, [&]<class T>() {
    if constexpr (!std::is_same_v<T, bool>)
      scan_lines<T>(t, *out, dim, reverse,
                    [](auto in, auto to, std::int64_t n, std::int64_t count) { cumprod_lines<T>(in, to, n, count); });
  });
  if (t.numel == 0) return record("CumprodBackward0", out, {&t}, {}, [](Vjp& v) { v.set(0, v.grad()); });
  static PointwiseOp& times = pointwise_op("mul");
  return record("CumprodBackward0", out, {&t}, {save_in(t, 0)}, [dim, reverse](Vjp& v) {
    TensorRef x = v.saved(0);
    TensorRef after = recurrence(*v.grad(), *shifted(*x, dim, reverse, 0), dim, !reverse);
    v.set(0, pointwise(times, {Operand(exclusive_products(*x, dim, reverse)), Operand(after)}));
  });
}

TensorRef cumprod(const Tensor& t, std::int64_t dim, std::optional<DType> dtype) {
  return as_line(*cast(t, scan_type(t, dtype)), wrap_dim(dim, t.ndim),
                 [](const Tensor& x, int d) { return running_product(x, d, false); });
}

TensorRef running_logsumexp(const Tensor& t, int dim) {
  check(is_floating(t.dtype), "logcumsumexp(): expected a floating point tensor, got ", name(t.dtype));
  TensorRef out = empty(t.sizes(), t.dtype);
  visit_dtype(t.dtype, [&]<class T>() {
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, Half> ||
                  std::is_same_v<T, BFloat16>)
      scan_lines<T>(t, *out, dim, false, [](auto in, auto to, std::int64_t n, std::int64_t count) {
        logcumsumexp_lines<T>(in, to, n, count);
      });
  });
  if (t.numel == 0) return record("LogcumsumexpBackward0", out, {&t}, {}, [](Vjp& v) { v.set(0, v.grad()); });
  static PointwiseOp &times = pointwise_op("mul"), &minus = pointwise_op("sub"), &exponential = pointwise_op("exp");
  return record("LogcumsumexpBackward0", out, {&t}, {save_in(t, 0), save_out(out)}, [dim](Vjp& v) {
    TensorRef x = v.saved(0), y = v.saved(1);
    auto ratio = [](const TensorRef& a, const TensorRef& b) {
      return pointwise(exponential, {Operand(pointwise(minus, {Operand(a), Operand(b)}))});
    };
    TensorRef decay = ratio(y, shifted(*y, dim, false, 0));  // never over 1: y rises
    TensorRef r = recurrence(*v.grad(), *decay, dim, true);
    v.set(0, pointwise(times, {Operand(ratio(x, y)), Operand(r)}));
  });
}

TensorRef logcumsumexp(const Tensor& t, std::int64_t dim) {
  return as_line(t, wrap_dim(dim, t.ndim), [](const Tensor& x, int d) { return running_logsumexp(x, d); });
}

std::tuple<TensorRef, TensorRef> running_extreme(const char* name, const Tensor& t, std::int64_t dim_, bool greatest) {
  int dim = wrap_dim(dim_, t.ndim);
  TensorRef values = empty(t.sizes(), t.dtype), places = empty(t.sizes(), DType::Int64);
  auto* at = places->write_as<std::int64_t>();
  visit_real(t.dtype, greatest ? "cummax" : "cummin", [&]<class T>() {
    auto* origin = values->write_as<T>();
    scan_lines<T>(t, *values, dim, false, [&](auto in, auto to, std::int64_t n, std::int64_t count) {
      Lines<std::int64_t> index{at + (to.data - origin), to.stride, 1};
      greatest ? cummax_lines<T>(in, to, index, n, count) : cummin_lines<T>(in, to, index, n, count);
    });
  });
  if (is_differentiable(t.dtype))
    values = record(name, std::move(values), {&t}, {save_other(places)}, [dim, from = Dims(t.sizes())](Vjp& v) {
      v.set(0, scatter_along(*v.grad(), from, dim, *v.saved(0)));
    });
  return {values, places};
}

std::tuple<TensorRef, TensorRef> cummax(const Tensor& t, std::int64_t dim) {
  return running_extreme("CummaxBackward0", t, dim, true);
}
std::tuple<TensorRef, TensorRef> cummin(const Tensor& t, std::int64_t dim) {
  return running_extreme("CumminBackward0", t, dim, false);
}

TensorRef diff(const Tensor& t, std::int64_t n, std::int64_t dim_, const Tensor* prepend, const Tensor* append) {
  check(n >= 0, "order must be non-negative but got ", n);
  check(t.ndim >= 1, "diff expects input to be at least one-dimensional");
  int dim = wrap_dim(dim_, t.ndim);
  TensorRef x(const_cast<Tensor*>(&t));
  if (prepend) x = cat({prepend, x.get()}, dim);
  if (append) x = cat({x.get(), append}, dim);
  static PointwiseOp &minus = pointwise_op("sub"), &differ = pointwise_op("logical_xor");
  for (; n > 0; --n) {
    std::int64_t left = std::max<std::int64_t>(x->size(dim) - 1, 0);
    TensorRef later = narrow(*x, dim, x->size(dim) - left, left), earlier = narrow(*x, dim, 0, left);
    x = pointwise(x->dtype == DType::Bool ? differ : minus, {Operand(later), Operand(earlier)});
  }
  return x;
}

const std::vector<std::string> fields = {"values", "indices"};

const Define scans[] = {
    {"cumsum(Tensor self, int dim, *, dtype? dtype=None)", &cumsum, Both | Inplace | Out,
     "Running sums along a dimension."},
    {"cumprod(Tensor self, int dim, *, dtype? dtype=None)", &cumprod, Both | Inplace | Out,
     "Running products along a dimension."},
    {"logcumsumexp(Tensor self, int dim)", &logcumsumexp, Both | Out,
     "log of the running sums of exp, without overflow."},
    {"cummax(Tensor self, int dim)", &cummax, Both | Out, "Running maxima along a dimension, and their places.",
     fields},
    {"cummin(Tensor self, int dim)", &cummin, Both | Out, "Running minima along a dimension, and their places.",
     fields},
    {"diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None)", &diff, Both | Out,
     "Differences of neighbours along a dimension, n times."},
};

}  // namespace

TensorRef exclusive_products(const Tensor& t, int dim, bool reverse) {
  return shifted(*running_product(t, dim, reverse), dim, !reverse, 1);
}

}  // namespace rushlight
