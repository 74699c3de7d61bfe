// Running sums, products and extremes along a dimension.
//
// Their derivatives run the other way: that of a running sum is a running sum from the end; those of a running product
// and of logcumsumexp are linear recurrences s(k) = g(k) + a(k) s(k + 1), which divide by nothing and are thereby right
// where an input is zero.
#include "kernels/scan.h"

#include "operators/along.h"
#include "operators/line.h"
#include "operators/matmul.h"
#include "operators/registry.h"
#include "operators/scan.h"
#include "operators/softmax.h"

namespace rushlight {
namespace {

/// Runs f(lines in, lines out, n, count) over the lines of `t` along `dim`, from the end if `reverse`.
template <class T, class F>
void scan_lines(const Tensor& t, Tensor& out, int dim, bool reverse, F&& f) {
  if (t.numel == 0) return;
  TensorRef x = packed(t);
  Block b = block_of(*x, dim);
  auto* from = x->read_as<T>();
  auto* to = out.write_as<T>();
  parallel_for(b.outer, std::max<std::int64_t>(1, (1 << 14) / (b.n * b.inner)),
               [&](std::int64_t begin, std::int64_t end) {
                 if (b.inner == 1) {  // lines one behind the other
                   std::int64_t at = begin * b.n + (reverse ? b.n - 1 : 0), step = reverse ? -1 : 1;
                   return f(Lines<const T>{from + at, step, b.n}, Lines<T>{to + at, step, b.n}, b.n, end - begin);
                 }
                 for (std::int64_t o = begin; o < end; ++o) {
                   std::int64_t at = o * b.n * b.inner + (reverse ? (b.n - 1) * b.inner : 0),
                                step = reverse ? -b.inner : b.inner;
                   f(Lines<const T>{from + at, step, 1}, Lines<T>{to + at, step, 1}, b.n, b.inner);
                 }
               });
}

/// The types of running sums and products: everything but bool.
template <class F>
void visit_summable(DType d, F&& f) {
  visit_dtype(d, [&]<class T>() {
    if constexpr (!std::is_same_v<T, bool>) f.template operator()<T>();
  });
}

/// What a running sum or product of a type gives: bool and integers int64, or what is asked for.
TensorRef scannable(const Tensor& t, const std::optional<DType>& dtype) {
  return cast(t, dtype ? *dtype : category(t.dtype) < 2 ? DType::Int64 : t.dtype);
}

/// `t` moved by one place along `dim` (forward: towards greater indices); `fill` comes in.
TensorRef shifted(const Tensor& t, int dim, bool forward, double fill) {
  Dims one(t.sizes());
  one[dim] = 1;
  TensorRef edge = full(one, fill, t.dtype), rest = narrow(t, dim, forward ? 0 : 1, t.size(dim) - 1);
  return forward ? cat({edge.get(), rest.get()}, dim) : cat({rest.get(), edge.get()}, dim);
}

/// A line of one, whose scan it is itself.
bool trivial(const Tensor& t) { return t.ndim == 0 || t.numel == 0; }

TensorRef running_sum(const Tensor& t, int dim, bool reverse) {
  check(t.dtype != DType::Bool, "\"cumsum\" not implemented for 'Bool'");
  TensorRef out = empty(t.sizes(), t.dtype);
  visit_summable(t.dtype, [&]<class T>() {
    scan_lines<T>(t, *out, dim, reverse,
                  [](auto in, auto to, std::int64_t n, std::int64_t count) { cumsum_lines<T>(in, to, n, count); });
  });
  return record("CumsumBackward0", std::move(out), {&t}, {}, by_rows([dim, reverse, one = t.ndim == 0](Vjp& v) {
                  v.set(0, one ? v.grad() : running_sum(*v.grad(), v.dim(dim), !reverse));
                }));
}

constexpr auto differentiable = []<class T>() { return is_differentiable(dtype_of<T>); };

/// s(k) = g(k) + a(k) s(k - 1), or from the end s(k) = g(k) + a(k) s(k + 1); halves in float.
TensorRef recurrence(const Tensor& g, const Tensor& a, int dim, bool reverse) {
  TensorRef out = empty(g.sizes(), g.dtype), coefficients = packed(a);
  visit_only<differentiable>(g.dtype, "recurrence", [&]<class T>() {
    using Wide = std::conditional_t<is_half_type<T>, float, T>;
    auto* base = coefficients->read_as<T>();
    auto* origin = out->write_as<T>();
    scan_lines<T>(g, *out, dim, reverse, [&](auto in, auto to, std::int64_t n, std::int64_t count) {
      Lines<const T> by{base + (to.data - origin), in.stride, in.gap};
      auto step = [&](std::int64_t j, std::int64_t i) {
        to.at(j, i) = i ? T(Wide(in.at(j, i)) + Wide(by.at(j, i)) * Wide(to.at(j, i - 1))) : in.at(j, i);
      };
      if (in.gap == 1) {  // lines side by side
        for (std::int64_t i = 0; i < n; ++i)
          for (std::int64_t j = 0; j < count; ++j) step(j, i);
      } else {
        for (std::int64_t j = 0; j < count; ++j)
          for (std::int64_t i = 0; i < n; ++i) step(j, i);
      }
    });
  });
  return record("RecurrenceBackward0", out, {&g, &a}, {save_in(a, 1), save_out(out)}, [dim, reverse](Vjp& v) {
    TensorRef dg = recurrence(*v.grad(), *conjugate(*shifted(*v.saved(0), dim, reverse, 0)), dim, !reverse);
    if (v.needs(0)) v.set(0, dg);
    if (v.needs(1)) v.set(1, mul(dg, conjugate(*shifted(*v.saved(1), dim, !reverse, 0))));
  });
}

TensorRef running_product(const Tensor& t, int dim, bool reverse) {
  check(t.dtype != DType::Bool, "\"cumprod\" not implemented for 'Bool'");
  TensorRef out = empty(t.sizes(), t.dtype);
  visit_summable(t.dtype, [&]<class T>() {
    scan_lines<T>(t, *out, dim, reverse,
                  [](auto in, auto to, std::int64_t n, std::int64_t count) { cumprod_lines<T>(in, to, n, count); });
  });
  return record("CumprodBackward0", std::move(out), {&t}, {save_in(t, 0)}, [dim, reverse](Vjp& v) {
    TensorRef x = v.saved(0);
    if (trivial(*x)) return v.set(0, v.grad());
    TensorRef after = recurrence(*v.grad(), *conjugate(*shifted(*x, dim, reverse, 0)), dim, !reverse);
    v.set(0, mul(conjugate(*exclusive_products(*x, dim, reverse)), after));
  });
}

TensorRef logcumsumexp(const Tensor& t, std::int64_t dim_) {
  int dim = wrap_dim(dim_, t.ndim);
  TensorRef out = empty(t.sizes(), t.dtype);
  visit_only<differentiable>(t.dtype, "logcumsumexp", [&]<class T>() {
    scan_lines<T>(t, *out, dim, false, [](auto in, auto to, std::int64_t n, std::int64_t count) {
      logcumsumexp_lines<T>(in, to, n, count);
    });
  });
  return record("LogcumsumexpBackward0", out, {&t}, {save_in(t, 0), save_out(out)}, [dim](Vjp& v) {
    TensorRef x = v.saved(0), y = v.saved(1);
    if (trivial(*x)) return v.set(0, v.grad());
    TensorRef decay = exponential(sub(y, shifted(*y, dim, false, 0)));  // never over 1: y rises
    v.set(0, mul(conjugate(*exponential(sub(x, y))), recurrence(*v.grad(), *conjugate(*decay), dim, true)));
  });
}

using Pair = std::array<TensorRef, 2>;

Pair running_extreme(const char* node, const Tensor& t, std::int64_t dim_, bool largest) {
  int dim = wrap_dim(dim_, t.ndim);
  Pair out{empty(t.sizes(), t.dtype), empty(t.sizes(), DType::Int64)};
  auto* places = out[1]->write_as<std::int64_t>();
  visit_not_complex(t.dtype, largest ? "cummax" : "cummin", [&]<class T>() {
    auto* origin = out[0]->write_as<T>();
    scan_lines<T>(t, *out[0], dim, false, [&](auto in, auto to, std::int64_t n, std::int64_t count) {
      Lines<std::int64_t> index{places + (to.data - origin), to.stride, to.gap};
      largest ? cummax_lines<T>(in, to, index, n, count) : cummin_lines<T>(in, to, index, n, count);
    });
  });
  const Tensor* inputs[] = {&t};
  Save saves[] = {save_other(out[1])};
  record_many(node, out, inputs, saves, by_rows([dim, from = Dims(t.sizes())](Vjp& v) {
                v.set(0, scatter_along(v, *v.grad(), from, dim, *v.saved(0)));
              }));
  return out;
}

// ---- the operators

TensorRef cumsum(const Tensor& t, std::int64_t dim, std::optional<DType> dtype) {
  return running_sum(*scannable(t, dtype), wrap_dim(dim, t.ndim), false);
}
}  // namespace

TensorRef cumprod(const Tensor& t, std::int64_t dim, std::optional<DType> dtype) {
  return running_product(*scannable(t, dtype), wrap_dim(dim, t.ndim), false);
}

namespace {

Pair cummax(const Tensor& t, std::int64_t dim) { return running_extreme("CummaxBackward0", t, dim, true); }
Pair cummin(const Tensor& t, std::int64_t dim) { return running_extreme("CumminBackward0", t, dim, false); }

TensorRef diff(const Tensor& t, std::int64_t n, std::int64_t dim_, const Tensor* prepend, const Tensor* append) {
  check(n >= 0, "order must be non-negative but got ", n);
  check(t.ndim >= 1, "diff expects input to be at least one-dimensional");
  int dim = wrap_dim(dim_, t.ndim);
  for (const Tensor* more : {prepend, append})
    check(!more || more->ndim == t.ndim, "diff expects prepend or append to be the same dimension as input");
  if (n == 0) return clone(t);
  TensorRef x(const_cast<Tensor*>(&t));
  if (prepend) x = cat({prepend, x.get()}, dim);
  if (append) x = cat({x.get(), append}, dim);
  static PointwiseOp& differ = pointwise_op("logical_xor");
  for (n = std::min(n, x->size(dim)); n > 0; --n) {  // nothing is left after as many differences as elements
    std::int64_t left = std::max<std::int64_t>(x->size(dim) - 1, 0);
    TensorRef later = narrow(*x, dim, x->size(dim) - left, left), earlier = narrow(*x, dim, 0, left);
    x = x->dtype == DType::Bool ? pointwise(differ, {later, earlier}) : sub(later, earlier);
  }
  return x;
}

const std::vector<std::string> values_indices{"values", "indices"};

const Define scans[] = {
    {"cumsum(Tensor self, int dim, *, dtype? dtype=None)", &cumsum, Both | Inplace | Out,
     "Running sums along a dimension."},
    {"cumprod(Tensor self, int dim, *, dtype? dtype=None)", &cumprod, Both | Inplace | Out,
     "Running products along a dimension."},
    {"logcumsumexp(Tensor self, int dim)", &logcumsumexp, Both | Out,
     "log of the running sums of exp, without overflow."},
    {"cummax(Tensor self, int dim)", &cummax, Both | Out, "Running maxima along a dimension, and their last places.",
     values_indices},
    {"cummin(Tensor self, int dim)", &cummin, Both | Out, "Running minima along a dimension, and their last places.",
     values_indices},
    {"diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None)", &diff, Both | Out,
     "Differences of neighbours along a dimension, n times."},
};

}  // namespace

TensorRef exclusive_products(const Tensor& t, int dim, bool reverse) {
  return shifted(*running_product(t, dim, reverse), dim, !reverse, 1);
}

}  // namespace rushlight
