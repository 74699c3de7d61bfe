// Losses of classes: negative log-likelihood, and cross entropy fused from the logits.
#include "operators/operators.h"
#include "operators/registry.h"

namespace rushlight {
namespace {

enum Reduction : std::int64_t { None = 0, Mean = 1, Sum = 2 };

/// The dimension of classes of an input (C,) or (N, C, *d).
int class_dim(const Tensor& x) { return x.ndim == 1 ? 0 : 1; }

void check_shapes(const Tensor& x, const Tensor& target, const Tensor* weight) {
  check_value(x.ndim > 0, "Expected 1 or more dimensions (got 0)");
  std::int64_t batch = target.ndim ? target.size(0) : 0;
  if (x.ndim == 1)
    check_value(target.ndim != 1 || batch == 1,
                "For 1D input, 1D target must have size 1, but got target size: ", batch);
  else
    check_value(x.size(0) == batch, "Expected input batch_size (", x.size(0), ") to match target batch_size (", batch,
                ").");
  if (x.ndim <= 2) {
    check(target.ndim <= 1, "0D or 1D target tensor expected, multi-target not supported");
  } else {
    Dims wanted(x.sizes());
    wanted.erase(1);
    bool fits = equal(wanted, target.sizes());
    check(fits || x.ndim == 4, "Expected target size ", to_string(wanted), ", got ", to_string(target.sizes()));
    check(fits, "size mismatch (got input: ", to_string(x.sizes()), " , target: ", to_string(target.sizes()), ")");
  }
  check(target.dtype == DType::Int64 || target.dtype == DType::UInt8,
        "expected target dtype to be Long or Byte, but got ", info(target.dtype).scalar_name);
  if (!weight) return;
  std::int64_t classes = x.size(class_dim(x));
  check(weight->ndim == 1 && weight->numel == classes, "weight tensor should be defined either for all ", classes,
        " classes or no classes but got weight tensor of shape: ", to_string(weight->sizes()));
  check(weight->dtype == x.dtype, "expected scalar type ", info(x.dtype).scalar_name, " but found ",
        info(weight->dtype).scalar_name);
  check(!weight->requires_grad(),
        "the function 'nll_loss' is not differentiable with respect to argument 'weight'. This input cannot have "
        "requires_grad True.");
}

/// Per line (an input's row of classes): the class, -1 where it is ignored, and how much it counts.
struct Targets {
  Block block;
  std::int64_t lines;
  TensorRef classes, counts;  ///< int64; the kernel's type
  double total = 0;           ///< of the counts

  Targets(const Tensor& x, const Tensor& target, const Tensor* weight, std::int64_t ignore_index)
      : block(block_of(x, class_dim(x))), lines(target.numel) {
    TensorRef in = packed(*cast(target, DType::Int64)), w = weight ? softmax_operand(*weight) : nullptr;
    classes = empty(target.sizes(), DType::Int64);
    counts = empty(target.sizes(), is_half(x.dtype) ? DType::Float32 : x.dtype);
    auto* from = in->read_as<std::int64_t>();
    auto* to = classes->write_as<std::int64_t>();
    visit_wide(counts->dtype, "cross_entropy", [&]<class T>() {
      auto* count = counts->write_as<T>();
      auto* weights = w ? w->read_as<T>() : nullptr;
      for (std::int64_t i = 0; i < lines; ++i) {
        bool counted = from[i] != ignore_index;
        check_index(!counted || (from[i] >= 0 && from[i] < block.n), "Target ", from[i], " is out of bounds.");
        to[i] = counted ? from[i] : -1;
        count[i] = !counted ? T(0) : weights ? weights[from[i]] : T(1);
        total += double(count[i]);
      }
    });
  }
};

/// Calls f(line, place): the element of the input (C-contiguous blocks) that is the line's class; ignored lines are
/// left out.
template <class F>
void for_places(const Block& b, const Tensor& classes, F&& f) {
  auto* c = classes.read_as<std::int64_t>();
  for (std::int64_t i = 0; i < classes.numel; ++i)
    if (c[i] >= 0) f(i, (i / b.inner * b.n + c[i]) * b.inner + i % b.inner);
}

TensorRef place(const Tensor& g, IntSpan sizes, const Block& b, const Tensor& classes);

/// The element of each line's class, 0 where it is ignored.
TensorRef pick(const Tensor& x, const Block& b, const Tensor& classes) {
  TensorRef in = packed(x), out = zeros(classes.sizes(), x.dtype);
  visit_width(x.item_size(), [&]<class T>() {
    auto* from = in->read_as<T>();
    auto* to = out->write_as<T>();
    for_places(b, classes, [=](std::int64_t i, std::int64_t at) { to[i] = from[at]; });
  });
  return record("NllLossBackwardBackward0", std::move(out), {&x}, {save_other(classes)},
                [b, sizes = Dims(x.sizes())](Vjp& v) { v.set(0, place(*v.grad(), sizes, b, *v.saved(0))); });
}

/// Zeros with each line's number at its class: the derivative of pick.
TensorRef place(const Tensor& g, IntSpan sizes, const Block& b, const Tensor& classes) {
  TensorRef in = packed(g), out = zeros(sizes, g.dtype);
  visit_width(g.item_size(), [&]<class T>() {
    auto* from = in->read_as<T>();
    auto* to = out->write_as<T>();
    for_places(b, classes, [=](std::int64_t i, std::int64_t at) { to[at] = from[i]; });
  });
  return record("NllLossBackwardBackward0", std::move(out), {&g}, {save_other(classes)},
                [b](Vjp& v) { v.set(0, pick(*v.grad(), b, *v.saved(0))); });
}

/// What lines lose, brought to the input's type: themselves, their sum, or that divided by how much all count.
TensorRef reduced_loss(const TensorRef& losses, std::int64_t reduction, double total, DType dtype) {
  GradScope off(false);
  if (reduction == None) return cast(*losses, dtype);
  TensorRef out = sum(*losses, {});
  return cast(reduction == Mean ? *div(out, Scalar(total)) : *out, dtype);
}

/// The gradient of each line's loss from that of the result: one per line, or one for all.
TensorRef line_gradient(const Tensor& g, std::int64_t reduction, double total) {
  return reduction == Mean ? div(g, Scalar(total)) : TensorRef(const_cast<Tensor*>(&g));
}

/// Per line, `factor * g`; 0 for ignored lines even where g is no number (the mean of no lines).
TensorRef of_counted(const Operand& factor, const Operand& g, const Tensor& classes) {
  return where(ge(classes, Scalar(0)), mul(factor, g), Scalar(0.0));
}

const char* node_name(const Tensor& x) { return x.ndim > 2 ? "NllLoss2DBackward0" : "NllLossBackward0"; }

TensorRef nll_loss(const Tensor& x, const Tensor& target, const Tensor* weight, std::int64_t reduction,
                   std::int64_t ignore_index) {
  check_shapes(x, target, weight);
  if (!is_floating(x.dtype))
    fail(ErrorKind::NotImplemented, "\"nll_loss\" not implemented for '", info(x.dtype).scalar_name, "'");
  Targets t(x, target, weight, ignore_index);
  TensorRef out;
  {
    GradScope off(false);
    TensorRef picked = cast(*pick(x, t.block, *t.classes), t.counts->dtype);
    out = reduced_loss(mul(neg(picked), t.counts), reduction, t.total, x.dtype);
  }
  return record(node_name(x), std::move(out), {&x}, {save_other(t.classes), save_other(t.counts)},
                [b = t.block, sizes = Dims(x.sizes()), total = t.total, reduction, dtype = x.dtype](Vjp& v) {
                  TensorRef per_line =
                      neg(of_counted(v.saved(1), line_gradient(*v.grad(), reduction, total), *v.saved(0)));
                  v.set(0, cast(*place(*per_line, sizes, b, *v.saved(0)), dtype));
                });
}

// ---- cross entropy: of a line with logits x, class t and weights w,
//      (1 - eps) w_t (lse - x_t) + eps / C * sum_j w_j (lse - x_j), lse = log(sum(exp(x)))

/// The plain values of a cross entropy.
struct Terms {
  Block block;
  std::int64_t reduction;
  double smoothing, total, weights;  ///< weights: the sum of w
};

/// Zeros, or the second term where there is smoothing, plus the first.
template <class T>
void line_losses(const Terms& terms, const T* x, const T* largest, const T* log_sum, const T* count, const T* weight,
                 const Tensor& classes, T* loss) {
  const Block& b = terms.block;
  T share = T(terms.smoothing / double(b.n)), rest = T(1 - terms.smoothing);
  for_places(b, classes, [&](std::int64_t i, std::int64_t at) {
    loss[i] = rest * count[i] * (log_sum[i] - (x[at] - largest[i]));
    if (terms.smoothing == 0) return;
    const T* line = x + i / b.inner * b.n * b.inner + i % b.inner;
    T others = 0;
    for (std::int64_t j = 0; j < b.n; ++j)
      others += (weight ? weight[j] : T(1)) * (log_sum[i] - (line[j * b.inner] - largest[i]));
    loss[i] += share * others;
  });
}

/// The factors of a line's gradient a * softmax(x) - b * (1 at t) - d * w, without the gradient of the result.
struct Factors {
  TensorRef a, b, d;
  Factors(const Terms& terms, const Tensor& counts, const Tensor& classes) {
    GradScope off(false);
    TensorRef counted = cast(*ge(classes, Scalar(0)), counts.dtype);
    double share = terms.smoothing / double(terms.block.n);
    b = mul(counts, Scalar(1 - terms.smoothing));
    d = mul(counted, Scalar(share));
    a = terms.smoothing == 0 ? b : add(*b, *mul(counted, Scalar(share * terms.weights)));
  }
};

enum : int { SavedX, SavedClasses, SavedCounts, SavedLargest, SavedLogSum, SavedWeight };

/// The gradient of the logits in one pass.
TensorRef fused_vjp(const Terms& terms, Vjp& v) {
  TensorRef saved = v.saved(SavedX), x = softmax_operand(*saved), classes = v.saved(SavedClasses),
            counts = v.saved(SavedCounts), weight = v.saved(SavedWeight);
  TensorRef largest = v.saved(SavedLargest), log_sum = v.saved(SavedLogSum);
  TensorRef g = cast(*line_gradient(*v.grad(), terms.reduction, terms.total), x->dtype);
  Factors f(terms, *counts, *classes);
  TensorRef a = packed(*of_counted(f.a, g, *classes)), b = packed(*of_counted(f.b, g, *classes)),
            d = packed(*of_counted(f.d, g, *classes));
  TensorRef w = weight ? softmax_operand(*weight) : nullptr, out = empty(x->sizes(), x->dtype);
  cross_entropy_vjp(
      x->dtype, terms.block,
      {x->read(), largest->read(), log_sum->read(), a->read(), d->read(), w ? w->read() : nullptr, out->write()});
  visit_wide(x->dtype, "cross_entropy", [&]<class T>() {
    auto* dx = out->write_as<T>();
    auto* at_class = b->read_as<T>();
    for_places(terms.block, *classes, [=](std::int64_t i, std::int64_t at) { dx[at] -= at_class[i]; });
  });
  return cast(*out, saved->dtype);
}

/// The same in differentiable operators.
TensorRef recorded_vjp(const Terms& terms, Vjp& v) {
  TensorRef x = v.saved(SavedX), classes = v.saved(SavedClasses), weight = v.saved(SavedWeight);
  int dim = class_dim(*x);
  auto spread = [&](const TensorRef& per_line) {
    return per_line->ndim + 1 == x->ndim ? unsqueeze(*per_line, dim) : per_line;
  };
  Factors f(terms, *v.saved(SavedCounts), *classes);
  TensorRef others = spread(f.d);
  if (weight) {
    Dims sizes(x->ndim, 1);
    sizes[dim] = weight->numel;
    others = mul(others, view(*weight, sizes));
  }
  TensorRef parts = sub(mul(spread(f.a), softmax(*cast(*x, f.a->dtype), dim)),
                        add(*place(*f.b, x->sizes(), terms.block, *classes), *others));
  TensorRef g = line_gradient(*v.grad(), terms.reduction, terms.total);
  return cast(*of_counted(terms.reduction == None ? spread(g) : g, parts, *spread(classes)), x->dtype);
}

TensorRef cross_entropy_loss(const Tensor& x, const Tensor& target, const Tensor* weight, std::int64_t reduction,
                             std::int64_t ignore_index, double smoothing) {
  check(smoothing >= 0 && smoothing <= 1, "label_smoothing must be between 0.0 and 1.0. Got: ", smoothing);
  if (!is_floating(x.dtype))
    fail(ErrorKind::NotImplemented, "\"log_softmax\" not implemented for '", info(x.dtype).scalar_name, "'");
  check_shapes(x, target, weight);
  Targets t(x, target, weight, ignore_index);
  TensorRef in = softmax_operand(x), w = weight ? softmax_operand(*weight) : nullptr;
  TensorRef largest = empty(target.sizes(), in->dtype), log_sum = empty(target.sizes(), in->dtype),
            losses = zeros(target.sizes(), in->dtype);
  Terms terms{t.block, reduction, smoothing, t.total, double(t.block.n)};
  if (w && smoothing != 0) terms.weights = item(*sum(*detach(*w), {}, false, DType::Float64)).to_double();
  if (t.lines && t.block.n)
    softmax_normalisers(in->dtype, t.block, in->read(), largest->write(), log_sum->write(), false);
  visit_wide(in->dtype, "cross_entropy", [&]<class T>() {
    line_losses<T>(terms, in->read_as<T>(), largest->read_as<T>(), log_sum->read_as<T>(), t.counts->read_as<T>(),
                   w ? w->read_as<T>() : nullptr, *t.classes, losses->write_as<T>());
  });
  return record(node_name(x), reduced_loss(losses, reduction, t.total, x.dtype), {&x},
                {save_in(x, 0), save_other(t.classes), save_other(t.counts), save_other(largest), save_other(log_sum),
                 weight ? save_other(*weight) : Save{nullptr}},
                [terms](Vjp& v) { v.set(0, differentiates() ? recorded_vjp(terms, v) : fused_vjp(terms, v)); });
}

// ---- the operators

const Define losses[] = {
    {"nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, int ignore_index=-100)", &nll_loss,
     NnFunction, "-weight[target] * self[target] over (C,) or (N, C, *d)."},
    {"cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, int ignore_index=-100, "
     "float label_smoothing=0.0)",
     &cross_entropy_loss, NnFunction, "The cross entropy of logits (C,) or (N, C, *d) with class indices."},
};

}  // namespace
}  // namespace rushlight
