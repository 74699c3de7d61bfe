// Losses of pairs of numbers: a pointwise operator each, then the mean, the sum or neither.
#include "operators/operators.h"
#include "operators/registry.h"

namespace rushlight {
namespace {

/// A loss: its terms f(x, target[, parameter]) and what of a term's gradient reaches x and target, f'(g, x, target[,
/// ...]).
struct PairLoss {
  const char* node;
  PointwiseOp &terms, &to_input, &to_target;
  explicit PairLoss(const char* node, const std::string& name)
      : node(node),
        terms(pointwise_op(name)),
        to_input(pointwise_op(name + "_to_input")),
        to_target(pointwise_op(name + "_to_target")) {}
};

/// One node for the terms and their reduction. The parameter is a number or a tensor; `weight` multiplies the terms.
TensorRef pair_loss(const PairLoss& loss, const Tensor& x, const Tensor& target, std::int64_t reduction,
                    const Operand& parameter = {}, const Tensor* weight = nullptr) {
  TensorRef terms, out;
  if (!is_floating(x.dtype) && !is_floating(target.dtype))
    fail(ErrorKind::NotImplemented, '"', loss.terms.name, "\" not implemented for '", info(x.dtype).scalar_name, "'");
  {
    GradScope off(false);
    terms = pointwise(loss.terms, {x, target, parameter});
    if (weight) terms = mul(terms, *weight);
    out = reduction == 1 ? mean(*terms, {}) : reduction == 2 ? sum(*terms, {}) : terms;
  }
  Save weights = weight ? save_other(*weight) : Save{nullptr},
       parameters = parameter.tensor ? save_other(*parameter.tensor) : Save{nullptr};
  auto vjp = [&loss, count = double(terms->numel), mean = reduction == 1, number = parameter.number,
              dtype = terms->dtype](Vjp& v) {
    TensorRef x = v.saved(0), target = v.saved(1), weight = v.saved(2), parameter = v.saved(3), g = v.grad();
    if (mean) g = div(g, Scalar(count));
    if (weight) g = mul(g, weight);
    for (int i = 0; i < 2; ++i) {
      if (!v.needs(i)) continue;
      const TensorRef& to = i ? target : x;
      TensorRef part = pointwise(i ? loss.to_target : loss.to_input,
                                 {g, x, target, parameter ? Operand(parameter) : Operand(number)});
      v.set(i, cast(*sum_to_size(*part, to->sizes()), to->dtype));
    }
  };
  return record(loss.node, std::move(out), {&x, &target}, {save_in(x, 0), save_in(target, 1), weights, parameters},
                vjp);
}

TensorRef mse_loss(const Tensor& x, const Tensor& target, std::int64_t reduction) {
  static const PairLoss loss("MseLossBackward0", "mse");
  return pair_loss(loss, x, target, reduction);
}

TensorRef l1_loss(const Tensor& x, const Tensor& target, std::int64_t reduction) {
  TensorRef terms = absolute(sub(x, target));
  return reduction == 1 ? mean(*terms, {}) : reduction == 2 ? sum(*terms, {}) : terms;
}

TensorRef smooth_l1_loss(const Tensor& x, const Tensor& target, std::int64_t reduction, double beta) {
  static const PairLoss loss("SmoothL1LossBackward0", "smooth_l1");
  check(beta >= 0, "smooth_l1_loss does not support negative values for beta.");
  return beta == 0 ? l1_loss(x, target, reduction) : pair_loss(loss, x, target, reduction, Scalar(beta));
}

TensorRef huber_loss(const Tensor& x, const Tensor& target, std::int64_t reduction, double delta) {
  static const PairLoss loss("HuberLossBackward0", "huber");
  check(delta > 0, "huber_loss does not support non-positive values for delta.");
  return pair_loss(loss, x, target, reduction, Scalar(delta));
}

void refuse_weight_gradient(const Tensor* weight, const char* operation, const char* argument) {
  check(!weight || !weight->requires_grad(), "the function '", operation,
        "' is not differentiable with respect to argument '", argument,
        "'. This input cannot have requires_grad True.");
}

TensorRef binary_cross_entropy(const Tensor& x, const Tensor& target, const Tensor* weight, std::int64_t reduction) {
  static const PairLoss loss("BinaryCrossEntropyBackward0", "binary_cross_entropy_terms");
  static PointwiseOp& within = pointwise_op("within_unit");
  check(x.dtype == target.dtype, "Found dtype ", info(target.dtype).scalar_name, " but expected ",
        info(x.dtype).scalar_name);
  check(all_true(*pointwise(within, {x})), "all elements of input should be between 0 and 1");
  refuse_weight_gradient(weight, "binary_cross_entropy", "weight");
  return pair_loss(loss, x, target, reduction, {}, weight);
}

TensorRef binary_cross_entropy_with_logits(const Tensor& x, const Tensor& target, const Tensor* weight,
                                           const Tensor* pos_weight, std::int64_t reduction) {
  static const PairLoss plain("BinaryCrossEntropyWithLogitsBackward0", "binary_cross_entropy_logits");
  static const PairLoss weighted("BinaryCrossEntropyWithLogitsBackward0", "binary_cross_entropy_logits_weighted");
  refuse_weight_gradient(weight, "binary_cross_entropy_with_logits", "weight");
  refuse_weight_gradient(pos_weight, "binary_cross_entropy_with_logits", "pos_weight");
  return pos_weight ? pair_loss(weighted, x, target, reduction, *pos_weight, weight)
                    : pair_loss(plain, x, target, reduction, {}, weight);
}

TensorRef kl_div(const Tensor& x, const Tensor& target, std::int64_t reduction, bool log_target) {
  static PointwiseOp &plain = pointwise_op("kl_terms"), &of_logs = pointwise_op("kl_terms_of_logs");
  TensorRef terms = pointwise(log_target ? of_logs : plain, {x, target});
  return reduction == 1 ? mean(*terms, {}) : reduction == 2 ? sum(*terms, {}) : terms;
}

// ---- the operators

const Define losses[] = {
    {"mse_loss(Tensor self, Tensor target, int reduction=1)", &mse_loss, NnFunction, "(self - target)^2"},
    {"l1_loss(Tensor self, Tensor target, int reduction=1)", &l1_loss, NnFunction, "|self - target|"},
    {"smooth_l1_loss(Tensor self, Tensor target, int reduction=1, float beta=1.0)", &smooth_l1_loss, NnFunction,
     "d^2 / (2 beta) where d = |self - target| < beta, else d - beta / 2."},
    {"huber_loss(Tensor self, Tensor target, int reduction=1, float delta=1.0)", &huber_loss, NnFunction,
     "d^2 / 2 where d = |self - target| <= delta, else delta (d - delta / 2)."},
    {"binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=1)", &binary_cross_entropy,
     NnFunction, "-(target log(self) + (1 - target) log(1 - self)), each logarithm at least -100."},
    {"binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, int "
     "reduction=1)",
     &binary_cross_entropy_with_logits, Function, "binary_cross_entropy of sigmoid(self), computed from the logits."},
    {"kl_div(Tensor self, Tensor target, int reduction=1, *, bool log_target=False)", &kl_div, Function,
     "target (log(target) - self), or of logarithms."},
};

}  // namespace
}  // namespace rushlight
