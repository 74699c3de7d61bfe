#include "kernels/optimizer.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "kernels/multiply_add.h"

namespace rushlight {

namespace {

enum class Decay { none, added, decoupled };

/// Calls f with a compile-time constant for the way the weight decays.
template <class F>
void with_decay(double weight_decay, bool decoupled, const F& f) {
  if (weight_decay == 0)
    f(std::integral_constant<Decay, Decay::none>{});
  else if (decoupled)
    f(std::integral_constant<Decay, Decay::decoupled>{});
  else
    f(std::integral_constant<Decay, Decay::added>{});
}

template <class F>
void with_flag(bool flag, const F& f) {
  if (flag)
    f(std::true_type{});
  else
    f(std::false_type{});
}

/// rule(Arithmetic, param[i], grad[i], state[i]...) for each number, in the form for this machine.
template <class Rule, class T, class... State>
void for_each_number(std::int64_t n, const Rule& rule, T* param, const T* grad, State*... state) {
  with_pytorch_arithmetic([&](auto a) RUSHLIGHT_INLINE_LAMBDA {
    [&](T* __restrict p, const T* __restrict g, State* __restrict... s) RUSHLIGHT_INLINE_LAMBDA {
      for (std::int64_t i = 0; i < n; ++i) rule(a, p[i], g[i], s[i]...);
    }(param, grad, state...);
  });
}

/// The gradient is multiplied by this: -1 to maximize.
template <class T>
T direction(bool maximize) {
  return maximize ? T(-1) : T(1);
}

/// a, or b if it is greater; NaN if one of them is.
template <class T>
[[gnu::always_inline]] inline T maximum(T a, T b) {
  return a > b || a != a ? a : b;
}

/// PyTorch's interpolation, which is exact at both ends: a + weight (b - a), but from b for weights of 1/2 and more.
template <class T>
struct Lerp {
  bool near;
  T factor;

  explicit Lerp(double weight) : near(std::abs(T(weight)) < T(0.5)), factor(near ? T(weight) : T(weight) - T(1)) {}

  template <class A>
  [[gnu::always_inline]] T operator()(A, T a, T b) const {
    return A::multiply_add(factor, b - a, near ? a : b);
  }
};

/// The weight decay of one number: of the gradient g, or of the parameter p.
template <Decay D, class T>
struct WeightDecay {
  T factor;

  WeightDecay(double lr, double weight_decay) : factor(D == Decay::decoupled ? 1 - lr * weight_decay : weight_decay) {}

  template <class A>
  [[gnu::always_inline]] void operator()(A, T& p, T& g) const {
    if constexpr (D == Decay::added) g = A::multiply_add(p, factor, g);
    if constexpr (D == Decay::decoupled) p = p * factor;
  }
};

}  // namespace

template <class T>
void sgd(T* param, const T* grad, T* momentum_buffer, std::int64_t n, const SgdOptions& o) {
  const T sign = direction<T>(o.maximize), momentum = T(o.momentum), gain = T(o.first ? 1 : 1 - o.dampening);
  const T minus_lr = T(-o.lr);
  with_decay(o.weight_decay, false, [&](auto decay) {
    const WeightDecay<decay.value, T> decay_weight(o.lr, o.weight_decay);
    if (o.momentum == 0) {
      for_each_number(
          n,
          [=](auto a, T& p, T grad) RUSHLIGHT_INLINE_LAMBDA {
            T g = sign * grad;
            decay_weight(a, p, g);
            p = a.multiply_add(g, minus_lr, p);
          },
          param, grad);
      return;
    }
    with_flag(o.nesterov, [&](auto nesterov) {
      for_each_number(
          n,
          [=](auto a, T& p, T grad, T& buffer) RUSHLIGHT_INLINE_LAMBDA {
            T g = sign * grad;
            decay_weight(a, p, g);
            buffer = a.multiply_add(g, gain, buffer * momentum);
            g = nesterov.value ? a.multiply_add(buffer, momentum, g) : buffer;
            p = a.multiply_add(g, minus_lr, p);
          },
          param, grad, momentum_buffer);
    });
  });
}

template <class T>
void adam(T* param, const T* grad, T* exp_avg, T* exp_avg_sq, T* max_exp_avg_sq, std::int64_t n, const AdamOptions& o) {
  const Lerp<T> lerp(1 - o.beta1);
  const T sign = direction<T>(o.maximize), beta2 = T(o.beta2), gain = T(1 - o.beta2), eps = T(o.eps);
  const T root_correction = T(std::sqrt(1 - std::pow(o.beta2, o.step)));
  const T minus_rate = T(-(o.lr / (1 - std::pow(o.beta1, o.step))));
  with_decay(o.weight_decay, o.decoupled_weight_decay, [&](auto decay) {
    const WeightDecay<decay.value, T> decay_weight(o.lr, o.weight_decay);
    const auto rule = [=](auto a, T& p, T grad, T& m, T& v, T* v_max) RUSHLIGHT_INLINE_LAMBDA {
      T g = sign * grad;
      decay_weight(a, p, g);
      m = lerp(a, m, g);
      v = a.multiply_add(gain * g, g, v * beta2);
      T square = v;
      if (v_max) square = *v_max = maximum(*v_max, v);
      p = p + minus_rate * m / (std::sqrt(square) / root_correction + eps);
    };
    if (max_exp_avg_sq)
      for_each_number(
          n, [=](auto a, T& p, T g, T& m, T& v, T& v_max) RUSHLIGHT_INLINE_LAMBDA { rule(a, p, g, m, v, &v_max); },
          param, grad, exp_avg, exp_avg_sq, max_exp_avg_sq);
    else
      for_each_number(
          n, [=](auto a, T& p, T g, T& m, T& v) RUSHLIGHT_INLINE_LAMBDA { rule(a, p, g, m, v, nullptr); }, param, grad,
          exp_avg, exp_avg_sq);
  });
}

template <class T>
void adamax(T* param, const T* grad, T* exp_avg, T* exp_inf, std::int64_t n, const AdamOptions& o) {
  const Lerp<T> lerp(1 - o.beta1);
  const T sign = direction<T>(o.maximize), beta2 = T(o.beta2), eps = T(o.eps);
  const T minus_rate = T(-(o.lr / (1 - std::pow(o.beta1, o.step))));
  with_decay(o.weight_decay, false, [&](auto decay) {
    const WeightDecay<decay.value, T> decay_weight(o.lr, o.weight_decay);
    for_each_number(
        n,
        [=](auto a, T& p, T grad, T& m, T& u) RUSHLIGHT_INLINE_LAMBDA {
          T g = sign * grad;
          decay_weight(a, p, g);
          m = lerp(a, m, g);
          u = maximum(u * beta2, std::abs(g) + eps);
          p = p + minus_rate * m / u;
        },
        param, grad, exp_avg, exp_inf);
  });
}

double nadam_momentum(const NadamOptions& o, double step) {
  return o.beta1 * (1 - 0.5 * std::pow(0.96, step * o.momentum_decay));
}

template <class T>
void nadam(T* param, const T* grad, T* exp_avg, T* exp_avg_sq, std::int64_t n, const NadamOptions& o) {
  const Lerp<T> lerp(1 - o.beta1);
  const double mu = nadam_momentum(o, o.step), mu_next = nadam_momentum(o, o.step + 1);
  const T sign = direction<T>(o.maximize), beta2 = T(o.beta2), gain = T(1 - o.beta2), eps = T(o.eps);
  const T correction = T(1 - std::pow(o.beta2, o.step));
  const T minus_rate_grad = T(-o.lr * (1 - mu) / (1 - o.mu_product));
  const T minus_rate_mean = T(-o.lr * mu_next / (1 - o.mu_product * mu_next));
  with_decay(o.weight_decay, o.decoupled_weight_decay, [&](auto decay) {
    const WeightDecay<decay.value, T> decay_weight(o.lr, o.weight_decay);
    for_each_number(
        n,
        [=](auto a, T& p, T grad, T& m, T& v) RUSHLIGHT_INLINE_LAMBDA {
          T g = sign * grad;
          decay_weight(a, p, g);
          m = lerp(a, m, g);
          v = a.multiply_add(gain * g, g, v * beta2);
          const T root = std::sqrt(v / correction) + eps;
          p = p + minus_rate_grad * g / root;
          p = p + minus_rate_mean * m / root;
        },
        param, grad, exp_avg, exp_avg_sq);
  });
}

namespace {

/// RAdam's factor of the adaptive rate, without the root of v's correction; 0 while the variance is unbounded.
double rectification(double step, double beta2) {
  const double power = std::pow(beta2, step);
  const double limit = 2 / (1 - beta2) - 1;
  const double length = limit - 2 * step * power / (1 - power);
  if (!(length > 5)) return 0;
  return std::sqrt((length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length));
}

}  // namespace

template <class T>
void radam(T* param, const T* grad, T* exp_avg, T* exp_avg_sq, std::int64_t n, const AdamOptions& o) {
  const Lerp<T> lerp(1 - o.beta1);
  const double rectified = rectification(o.step, o.beta2);
  const T sign = direction<T>(o.maximize), beta2 = T(o.beta2), gain = T(1 - o.beta2), eps = T(o.eps);
  const T correction = T(1 - std::pow(o.beta1, o.step)), lr = T(o.lr), factor = T(rectified);
  const T root_correction = T(std::sqrt(1 - std::pow(o.beta2, o.step)));
  with_decay(o.weight_decay, o.decoupled_weight_decay, [&](auto decay) {
    const WeightDecay<decay.value, T> decay_weight(o.lr, o.weight_decay);
    with_flag(rectified != 0, [&](auto adaptive) {
      for_each_number(
          n,
          [=](auto a, T& p, T grad, T& m, T& v) RUSHLIGHT_INLINE_LAMBDA {
            T g = sign * grad;
            decay_weight(a, p, g);
            m = lerp(a, m, g);
            v = a.multiply_add(gain * g, g, v * beta2);
            T update = m / correction * lr;
            if constexpr (adaptive.value) update = update * (1 / (std::sqrt(v) + eps) * root_correction) * factor;
            p = p - update;
          },
          param, grad, exp_avg, exp_avg_sq);
    });
  });
}

template <class T>
void adagrad(T* param, const T* grad, T* sum, std::int64_t n, const AdagradOptions& o) {
  const T sign = direction<T>(o.maximize), eps = T(o.eps);
  const T minus_rate = T(-(o.lr / (1 + (o.step - 1) * o.lr_decay)));
  with_decay(o.weight_decay, false, [&](auto decay) {
    const WeightDecay<decay.value, T> decay_weight(o.lr, o.weight_decay);
    for_each_number(
        n,
        [=](auto a, T& p, T grad, T& total) RUSHLIGHT_INLINE_LAMBDA {
          T g = sign * grad;
          decay_weight(a, p, g);
          total = a.multiply_add(g, g, total);
          p = p + minus_rate * g / (std::sqrt(total) + eps);
        },
        param, grad, sum);
  });
}

template <class T>
void adadelta(T* param, const T* grad, T* square_avg, T* acc_delta, std::int64_t n, const AdadeltaOptions& o) {
  const T sign = direction<T>(o.maximize), rho = T(o.rho), gain = T(1 - o.rho), eps = T(o.eps), minus_lr = T(-o.lr);
  with_decay(o.weight_decay, false, [&](auto decay) {
    const WeightDecay<decay.value, T> decay_weight(o.lr, o.weight_decay);
    for_each_number(
        n,
        [=](auto a, T& p, T grad, T& v, T& u) RUSHLIGHT_INLINE_LAMBDA {
          T g = sign * grad;
          decay_weight(a, p, g);
          v = a.multiply_add(gain * g, g, v * rho);
          const T delta = std::sqrt(u + eps) / std::sqrt(v + eps) * g;
          u = a.multiply_add(gain * delta, delta, u * rho);
          p = a.multiply_add(delta, minus_lr, p);
        },
        param, grad, square_avg, acc_delta);
  });
}

namespace {

/// One number of RMSprop up to the denominator; mean is null unless the rule is centered.
template <class T, class A>
[[gnu::always_inline]] inline T rmsprop_denominator(A a, T g, T& v, T* mean, T alpha, T gain, Lerp<T> lerp, T eps) {
  v = a.multiply_add(gain * g, g, v * alpha);
  if (!mean) return std::sqrt(v) + eps;
  *mean = lerp(a, *mean, g);
  return std::sqrt(a.multiply_add(-*mean, *mean, v)) + eps;
}

}  // namespace

template <class T>
void rmsprop(T* param, const T* grad, T* square_avg, T* grad_avg, T* momentum_buffer, std::int64_t n,
             const RmspropOptions& o) {
  const Lerp<T> lerp(1 - o.alpha);
  const T sign = direction<T>(o.maximize), alpha = T(o.alpha), gain = T(1 - o.alpha), eps = T(o.eps);
  const T momentum = T(o.momentum), minus_lr = T(-o.lr);
  with_decay(o.weight_decay, false, [&](auto decay) {
    const WeightDecay<decay.value, T> decay_weight(o.lr, o.weight_decay);
    const auto rule = [=](auto a, T& p, T grad, T& v, T* mean, T* buffer) RUSHLIGHT_INLINE_LAMBDA {
      T g = sign * grad;
      decay_weight(a, p, g);
      const T root = rmsprop_denominator(a, g, v, mean, alpha, gain, lerp, eps);
      if (!buffer) {
        p = p + minus_lr * g / root;
        return;
      }
      *buffer = *buffer * momentum + g / root;
      p = a.multiply_add(*buffer, minus_lr, p);
    };
    using Ref = T&;
    if (grad_avg && momentum_buffer)
      for_each_number(
          n, [=](auto a, Ref p, T g, Ref v, Ref m, Ref b) RUSHLIGHT_INLINE_LAMBDA { rule(a, p, g, v, &m, &b); }, param,
          grad, square_avg, grad_avg, momentum_buffer);
    else if (grad_avg)
      for_each_number(
          n, [=](auto a, Ref p, T g, Ref v, Ref m) RUSHLIGHT_INLINE_LAMBDA { rule(a, p, g, v, &m, nullptr); }, param,
          grad, square_avg, grad_avg);
    else if (momentum_buffer)
      for_each_number(
          n, [=](auto a, Ref p, T g, Ref v, Ref b) RUSHLIGHT_INLINE_LAMBDA { rule(a, p, g, v, nullptr, &b); }, param,
          grad, square_avg, momentum_buffer);
    else
      for_each_number(
          n, [=](auto a, Ref p, T g, Ref v) RUSHLIGHT_INLINE_LAMBDA { rule(a, p, g, v, nullptr, nullptr); }, param,
          grad, square_avg);
  });
}

template <class T>
void rprop(T* param, const T* grad, T* prev, T* step_size, std::int64_t n, const RpropOptions& o) {
  const T sign = direction<T>(o.maximize), minus = T(o.eta_minus), plus = T(o.eta_plus);
  const T low = T(o.step_size_min), high = T(o.step_size_max);
  for_each_number(
      n,
      [=](auto a, T& p, T grad, T& before, T& size) RUSHLIGHT_INLINE_LAMBDA {
        T g = sign * grad;
        const T agreement = g * before;
        size = size * (agreement > 0 ? plus : agreement < 0 ? minus : T(1));
        size = size < low ? low : size;
        size = size > high ? high : size;
        g = agreement < 0 ? T(0) : g;
        p = a.multiply_add((g < 0 ? T(1) : T(0)) - (g > 0 ? T(1) : T(0)), size, p);
        before = g;
      },
      param, grad, prev, step_size);
}

template <class T>
void asgd(T* param, const T* grad, T* ax, std::int64_t n, const AsgdOptions& o) {
  const T sign = direction<T>(o.maximize), keep = T(1 - o.lambd * o.eta), minus_eta = T(-o.eta), mu = T(o.mu);
  with_decay(o.weight_decay, false, [&](auto decay) {
    const WeightDecay<decay.value, T> decay_weight(o.lr, o.weight_decay);
    with_flag(o.mu == 1, [&](auto copies) {
      for_each_number(
          n,
          [=](auto a, T& p, T grad, T& mean) RUSHLIGHT_INLINE_LAMBDA {
            T g = sign * grad;
            decay_weight(a, p, g);
            p = a.multiply_add(g, minus_eta, p * keep);
            mean = copies.value ? p : mean + (p - mean) * mu;
          },
          param, grad, ax);
    });
  });
}

double asgd_eta(const AsgdOptions& o) { return o.lr / std::pow(1 + o.lambd * o.lr * o.step, o.alpha); }

double asgd_mu(const AsgdOptions& o) { return 1 / std::max(1.0, o.step - o.t0); }

// Adafactor. Sums are taken in double.

namespace {

template <class T>
double sum_of_squares(const T* x, std::int64_t n) {
  double lanes[8] = {};  // so that sums run side by side
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (int k = 0; k < 8; ++k) lanes[k] += double(x[i + k]) * double(x[i + k]);
  for (; i < n; ++i) lanes[0] += double(x[i]) * double(x[i]);
  return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

/// The factors of a step that follow from the parameter as it was before.
template <class T>
struct AdafactorStep {
  double weight;  // by which the state moves towards the new mean squares
  double rate;    // before clipping
  T keep;         // by which the parameter decays

  AdafactorStep(const T* param, std::int64_t n, const AdafactorOptions& o)
      : weight(std::pow(o.step, o.beta2_decay)),
        rate(std::max(o.eps2, std::sqrt(sum_of_squares(param, n) / double(n))) * std::min(o.lr, 1 / std::sqrt(o.step))),
        keep(T(1 - o.lr * o.weight_decay)) {}

  /// What the update is multiplied by, given the sum of its squares.
  T factor(double squares, std::int64_t n, const AdafactorOptions& o) const {
    const double clip = std::max(1.0, std::sqrt(squares / double(n)) / o.d);
    return T((o.maximize ? rate : -rate) / clip);
  }
};

/// Moves row_var (rows) and col_var (columns) towards the mean squares of the rows and columns of grad.
template <class T>
void update_factors(const T* grad, T* row_var, T* col_var, std::int64_t rows, std::int64_t columns, double weight) {
  const T move = T(weight);
  for (std::int64_t j = 0; j < columns; ++j) col_var[j] = col_var[j] - move * col_var[j];
  const T share = T(weight / double(rows));
  for (std::int64_t i = 0; i < rows; ++i) {
    const T* g = grad + i * columns;
    const T mean = T(sum_of_squares(g, columns) / double(columns));
    row_var[i] = row_var[i] + move * (mean - row_var[i]);
    for (std::int64_t j = 0; j < columns; ++j) col_var[j] = col_var[j] + share * (g[j] * g[j]);
  }
}

/// f(index, update) for each number of a matrix.
template <class T, class F>
void for_each_update(const T* grad, const T* row_var, const T* col_var, std::int64_t rows, std::int64_t columns,
                     double eps, const F& f) {
  double mean = 0;
  for (std::int64_t i = 0; i < rows; ++i) mean += double(row_var[i]);
  const T divisor = T(std::max(mean / double(rows), eps)), least = T(eps * eps);
  for (std::int64_t i = 0; i < rows; ++i) {
    const T* g = grad + i * columns;
    for (std::int64_t j = 0; j < columns; ++j)
      f(i * columns + j, g[j] / std::sqrt(std::max(row_var[i] * col_var[j] / divisor, least)));
  }
}

}  // namespace

template <class T>
void adafactor(T* param, const T* grad, T* row_var, T* col_var, std::int64_t batch, std::int64_t rows,
               std::int64_t columns, const AdafactorOptions& o) {
  const std::int64_t size = rows * columns, n = batch * size;
  if (n == 0) return;
  const AdafactorStep<T> step(param, n, o);
  double squares = 0;
  for (std::int64_t b = 0; b < batch; ++b) {
    const T* g = grad + b * size;
    T *r = row_var + b * rows, *c = col_var + b * columns;
    update_factors(g, r, c, rows, columns, step.weight);
    for_each_update(g, r, c, rows, columns, o.eps1, [&](std::int64_t, T u) { squares += double(u) * double(u); });
  }
  const T factor = step.factor(squares, n, o);
  for (std::int64_t b = 0; b < batch; ++b) {
    T* p = param + b * size;
    for_each_update(grad + b * size, row_var + b * rows, col_var + b * columns, rows, columns, o.eps1,
                    [&](std::int64_t i, T u) { p[i] = p[i] * step.keep + factor * u; });
  }
}

template <class T>
void adafactor(T* param, const T* grad, T* variance, std::int64_t n, const AdafactorOptions& o) {
  if (n == 0) return;
  const AdafactorStep<T> step(param, n, o);
  const Lerp<T> lerp(step.weight);
  const T least = T(o.eps1 * o.eps1);
  double squares = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    variance[i] = lerp(SeparateArithmetic{}, variance[i], grad[i] * grad[i]);
    const T update = grad[i] / std::sqrt(std::max(variance[i], least));
    squares += double(update) * double(update);
  }
  const T factor = step.factor(squares, n, o);
  for (std::int64_t i = 0; i < n; ++i)
    param[i] = param[i] * step.keep + factor * (grad[i] / std::sqrt(std::max(variance[i], least)));
}

#define RUSHLIGHT_INSTANTIATE(T)                                                                                    \
  template void sgd(T*, const T*, T*, std::int64_t, const SgdOptions&);                                             \
  template void adam(T*, const T*, T*, T*, T*, std::int64_t, const AdamOptions&);                                   \
  template void adamax(T*, const T*, T*, T*, std::int64_t, const AdamOptions&);                                     \
  template void nadam(T*, const T*, T*, T*, std::int64_t, const NadamOptions&);                                     \
  template void radam(T*, const T*, T*, T*, std::int64_t, const AdamOptions&);                                      \
  template void adagrad(T*, const T*, T*, std::int64_t, const AdagradOptions&);                                     \
  template void adadelta(T*, const T*, T*, T*, std::int64_t, const AdadeltaOptions&);                               \
  template void rmsprop(T*, const T*, T*, T*, T*, std::int64_t, const RmspropOptions&);                             \
  template void rprop(T*, const T*, T*, T*, std::int64_t, const RpropOptions&);                                     \
  template void asgd(T*, const T*, T*, std::int64_t, const AsgdOptions&);                                           \
  template void adafactor(T*, const T*, T*, T*, std::int64_t, std::int64_t, std::int64_t, const AdafactorOptions&); \
  template void adafactor(T*, const T*, T*, std::int64_t, const AdafactorOptions&);

RUSHLIGHT_INSTANTIATE(float)
RUSHLIGHT_INSTANTIATE(double)

#undef RUSHLIGHT_INSTANTIATE

}  // namespace rushlight
