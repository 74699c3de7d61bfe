// Samples from distributions whose parameters are tensors.
#include "kernels/random_sample.h"

#include <cmath>

#include "kernels/random.h"
#include "kernels/sample_gradient.h"
#include "operators/pointwise.h"
#include "operators/random_fill.h"
#include "operators/view.h"

namespace rushlight {

void draw_bernoulli(Tensor& t, const Tensor& p, MersenneTwister& generator) {
  // the probabilities in the memory order of what is filled
  TensorRef probabilities = empty_like(t, p.dtype);
  copy_numbers(
      *probabilities, *[&] {
        GradScope off(false);
        return expand(p, t.sizes());
      }());
  visit_not_complex(t.dtype, "bernoulli_tensor_cpu_self_", [&]<class T>() {
    visit_floating(p.dtype, "bernoulli_tensor_cpu_p_", [&]<class P>() {
      const P* numbers = probabilities->read_as<P>();
      for (std::int64_t i = 0; i < t.numel; ++i) {
        auto value = double(numbers[i]);
        check(value >= 0 && value <= 1, "Expected p_in >= 0 && p_in <= 1 to be true, but got false.");
      }
      fill_memory<T>(t, [&](T* out, std::int64_t n) { fill_bernoulli(generator, out, numbers, n); });
    });
  });
}

namespace {

// ---- Bernoulli

TensorRef bernoulli_number_(Tensor& t, double p, GeneratorArg g) {
  return redraw<"BernoulliBackward2">(t, "bernoulli_", [&] { draw_bernoulli(t, p, generator_of(g)); });
}

TensorRef bernoulli_tensor_(Tensor& t, const Tensor& p, GeneratorArg g) {
  bool records = needs_record(t, p);
  check_inplace(t, wants_gradients(t, p));
  refuse_overlapping_write(t);
  draw_bernoulli(t, p, generator_of(g));
  Ref<Node> node;
  if (records) {
    const Tensor* inputs[] = {&t, &p};
    node = make_lambda_node("BernoulliBackward1", inputs, {}, 1, [sizes = Dims(p.sizes()), dtype = p.dtype](Vjp& v) {
      if (v.needs(0)) v.set(0, zeros_like(*v.grad()));
      if (v.needs(1)) v.set(1, zeros(sizes, dtype));
    });
  }
  finish_inplace(t, std::move(node), "bernoulli_");
  return TensorRef(&t);
}

TensorRef bernoulli(const Tensor& p, GeneratorArg g, Tensor* out) {
  check(!(out && modes.grad && p.requires_grad()),
        "bernoulli(): functions with out=... arguments don't support automatic differentiation, but one of the "
        "arguments requires grad.");
  TensorRef t = destination("bernoulli", p.sizes(), out, {}, p.dtype);
  draw_bernoulli(*t, p, generator_of(g));
  return record("BernoulliBackward0", filled(t, out, "bernoulli"), {&p}, {}, NoDependence<"BernoulliBackward0">());
}

TensorRef bernoulli_like(const Tensor& self, double p, GeneratorArg g) {
  TensorRef t = empty(self.sizes(), self.dtype);
  draw_bernoulli(*t, p, generator_of(g));
  using Derivative = NoDerivative<"bernoulli">;
  return record(Derivative::node, t, {&self}, {}, Derivative());
}

// ---- normal numbers around tensors

/// t = t * std + mean, by two roundings as PyTorch does.
void scale_and_shift(Tensor& t, const Tensor* std, const Operand& mean) {
  static PointwiseOp &mul = pointwise_op("mul"), &add = pointwise_op("add");
  GradScope off(false);
  if (std) {
    Operand product[] = {Operand(t), Operand(*std)};
    pointwise_inplace(mul, t, product, "normal");
  }
  Operand sum[] = {Operand(t), mean};
  pointwise_inplace(add, t, sum, "normal");
}

void check_std(const Tensor& std) {
  check(!is_complex(std.dtype), "normal expects standard deviation to be non-complex");
  TensorRef numbers = packed(std);
  visit_not_complex(std.dtype, "normal", [&]<class T>() {
    const T* p = numbers->read_as<T>();
    for (std::int64_t i = 0; i < std.numel; ++i) check(double(p[i]) >= 0, "normal expects all elements of std >= 0.0");
  });
}

TensorRef normal_destination(IntSpan size, Tensor* out, DType dtype, std::initializer_list<const Tensor*> parameters) {
  if (out) {
    for (const Tensor* t : parameters)
      check(!(modes.grad && t->requires_grad()),
            "normal(): functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments requires grad.");
    resize_out(*out, size);
  }
  return destination("normal", size, out, {}, dtype);
}

TensorRef normal_both(const Tensor& mean, const Tensor& std, GeneratorArg g, Tensor* out) {
  check_std(std);
  TensorRef t = normal_destination(broadcast_sizes(mean.sizes(), std.sizes()), out, mean.dtype, {&mean, &std});
  draw_normal(*t, 0, 1, generator_of(g));
  scale_and_shift(*t, &std, Operand(mean));
  return record("NormalBackward3", filled(t, out, "normal"), {&mean, &std}, {},
                [mean_sizes = Dims(mean.sizes()), std_sizes = Dims(std.sizes()), mean_type = mean.dtype,
                 std_type = std.dtype](Vjp& v) {
                  if (v.needs(0)) v.set(0, zeros(mean_sizes, mean_type));
                  if (v.needs(1)) v.set(1, zeros(std_sizes, std_type));
                });
}

TensorRef normal_mean(const Tensor& mean, double std, GeneratorArg g, Tensor* out) {
  TensorRef t = normal_destination(mean.sizes(), out, mean.dtype, {&mean});
  draw_normal(*t, 0, std, generator_of(g));
  scale_and_shift(*t, nullptr, Operand(mean));
  return record("NormalBackward1", filled(t, out, "normal"), {&mean}, {}, NoDependence<"NormalBackward1">());
}

TensorRef normal_std(double mean, const Tensor& std, GeneratorArg g, Tensor* out) {
  check_std(std);
  TensorRef t = normal_destination(std.sizes(), out, std.dtype, {&std});
  draw_normal(*t, 0, 1, generator_of(g));
  scale_and_shift(*t, &std, Operand(Scalar(mean)));
  return record("NormalBackward2", filled(t, out, "normal"), {&std}, {}, NoDependence<"NormalBackward2">());
}

TensorRef normal_numbers(double mean, double std, const Dims& size, GeneratorArg g, Tensor* out,
                         std::optional<DType> dtype, Layout, Device, bool requires_grad, bool) {
  TensorRef t = destination("normal", size, out, dtype, default_dtype, requires_grad);
  draw_normal(*t, mean, std, generator_of(g));
  return filled(t, out, "normal", requires_grad);
}

// ---- counts and shapes: by the order of indices

/// The numbers broadcast to `sizes`, row-major.
TensorRef packed_over(const Tensor& t, IntSpan sizes) {
  if (equal(t.sizes(), sizes)) return packed(t);
  TensorRef out = empty(sizes, t.dtype);
  copy_numbers(*out, t);
  return out;
}

TensorRef poisson(const Tensor& rate, GeneratorArg g) {
  TensorRef t = empty(rate.sizes(), rate.dtype), rates = packed(rate);
  visit_floating(rate.dtype, "poisson_cpu", [&]<class T>() {
    const T* p = rates->read_as<T>();
    for (std::int64_t i = 0; i < t->numel; ++i)
      check(double(p[i]) >= 0, "invalid Poisson rate, expected rate to be non-negative");
    fill_poisson(generator_of(g), t->write_as<T>(), p, t->numel);
  });
  return record("PoissonBackward0", t, {&rate}, {}, NoDependence<"PoissonBackward0">());
}

TensorRef binomial(const Tensor& count, const Tensor& prob, GeneratorArg g) {
  for (auto [t, name] : {std::pair(&count, "count"), std::pair(&prob, "prob")})
    check_value(is_floating(t->dtype), "binomial only supports floating-point dtypes for ", name,
                ", got: ", info(t->dtype).scalar_name);
  check(count.dtype == prob.dtype, "Found dtype ", info(prob.dtype).scalar_name, " but expected ",
        info(count.dtype).scalar_name);
  Dims sizes = broadcast_sizes(count.sizes(), prob.sizes());
  TensorRef t = empty(sizes, count.dtype), counts = empty(sizes, count.dtype),
            probabilities = empty(sizes, count.dtype);
  copy_numbers(*counts, count);
  copy_numbers(*probabilities, prob);
  visit_wide(count.dtype, "binomial_cpu", [&]<class T>() {
    fill_binomial(generator_of(g), t->write_as<T>(), counts->read_as<T>(), probabilities->read_as<T>(), t->numel);
  });
  using Derivative = NoDerivative<"binomial">;
  return record(Derivative::node, t, {&count, &prob}, {}, Derivative());
}

TensorRef standard_gamma_grad(const Tensor& alpha, const Tensor& x) {
  check(alpha.dtype == x.dtype, "Found dtype ", info(x.dtype).scalar_name, " but expected ",
        info(alpha.dtype).scalar_name);
  Dims sizes = broadcast_sizes(alpha.sizes(), x.sizes());
  TensorRef t = empty(sizes, alpha.dtype), shapes = packed_over(alpha, sizes), numbers = packed_over(x, sizes);
  visit_wide(alpha.dtype, "_standard_gamma_grad_cpu", [&]<class T>() {
    const T *a = shapes->read_as<T>(), *p = numbers->read_as<T>();
    T* out = t->write_as<T>();
    for (std::int64_t i = 0; i < t->numel; ++i) out[i] = T(gamma_gradient(double(a[i]), double(p[i])));
  });
  using Derivative = NoDerivative<"_standard_gamma_grad">;
  return record(Derivative::node, t, {&alpha, &x}, {}, Derivative());
}

TensorRef standard_gamma(const Tensor& alpha, GeneratorArg g) {
  TensorRef t = empty(alpha.sizes(), alpha.dtype), shapes = packed(alpha);
  visit_wide(alpha.dtype, "gamma_cpu",
             [&]<class T>() { fill_gamma(generator_of(g), t->write_as<T>(), shapes->read_as<T>(), t->numel); });
  return record("StandardGammaBackward0", t, {&alpha}, {save_in(alpha, 0), save_out(t)}, [](Vjp& v) {
    static PointwiseOp& mul = pointwise_op("mul");
    v.set(0, pointwise(mul, {Operand(v.grad()), Operand(standard_gamma_grad(*v.saved(0), *v.saved(1)))}));
  });
}

TensorRef dirichlet_grad(const Tensor& x, const Tensor& alpha, const Tensor& total) {
  for (const Tensor* t : {&alpha, &total})
    check(t->dtype == x.dtype, "Found dtype ", info(t->dtype).scalar_name, " but expected ", info(x.dtype).scalar_name);
  Dims sizes = broadcast_sizes(broadcast_sizes(x.sizes(), alpha.sizes()), total.sizes());
  TensorRef t = empty(sizes, x.dtype), numbers = packed_over(x, sizes), shapes = packed_over(alpha, sizes),
            sums = packed_over(total, sizes);
  visit_wide(x.dtype, "_dirichlet_grad_cpu", [&]<class T>() {
    const T *p = numbers->read_as<T>(), *a = shapes->read_as<T>(), *s = sums->read_as<T>();
    T* out = t->write_as<T>();
    for (std::int64_t i = 0; i < t->numel; ++i)
      out[i] = T(dirichlet_gradient(double(p[i]), double(a[i]), double(s[i])));
  });
  using Derivative = NoDerivative<"_dirichlet_grad">;
  return record(Derivative::node, t, {&x, &alpha, &total}, {}, Derivative());
}

TensorRef sample_dirichlet(const Tensor& alpha, GeneratorArg g) {
  TensorRef t = empty(alpha.sizes(), alpha.dtype), shapes = packed(alpha);
  std::int64_t n = alpha.ndim ? alpha.size(alpha.ndim - 1) : 1;
  visit_wide(alpha.dtype, "dirichlet", [&]<class T>() {
    if (t->numel) fill_dirichlet(generator_of(g), t->write_as<T>(), shapes->read_as<T>(), t->numel / n, n);
  });
  using Derivative = NoDerivative<"_sample_dirichlet">;
  return record(Derivative::node, t, {&alpha}, {}, Derivative());
}

// ---- places drawn by weight

/// What PyTorch checks of weights that are drawn without replacement.
template <class T>
void check_weights(const T* weights, std::int64_t rows, std::int64_t n) {
  for (std::int64_t i = 0; i < rows * n; ++i) {
    auto w = double(weights[i]);
    check(w >= 0 && std::isfinite(w), "probability tensor contains either `inf`, `nan` or element < 0");
  }
  for (std::int64_t row = 0; row < rows; ++row, weights += n) {
    double sum = 0;
    for (std::int64_t i = 0; i < n; ++i) sum += double(weights[i]);
    check(sum > 0, "invalid multinomial distribution (sum of probabilities <= 0)");
  }
}

TensorRef multinomial(const Tensor& weights, std::int64_t samples, bool replacement, GeneratorArg g, Tensor* out) {
  check(!out || out->dtype == DType::Int64,
        "multinomial expects Long tensor out, got: ", info(out ? out->dtype : DType::Int64).scalar_name);
  check(weights.ndim == 1 || weights.ndim == 2, "prob_dist must be 1 or 2 dim");
  check(is_floating(weights.dtype),
        "multinomial only supports floating-point dtypes for input, got: ", info(weights.dtype).scalar_name);
  check(samples > 0, "cannot sample n_sample <= 0 samples");
  std::int64_t n = weights.size(weights.ndim - 1), rows = weights.ndim == 2 ? weights.size(0) : 1;
  check(replacement || samples <= n, "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
  check(n <= (1 << 24), "number of categories cannot exceed 2^24");
  Dims size = weights.ndim == 2 ? Dims{rows, samples} : Dims{samples};
  TensorRef p = packed(weights), places = empty(size, DType::Int64);
  if (rows) {
    check(n > 0, "multinomial(): cannot draw from an empty dimension: prob_dist has the shape ",
          to_string(weights.sizes()));
    visit_floating(weights.dtype, "multinomial", [&]<class T>() {
      const T* numbers = p->read_as<T>();
      if (replacement && samples > 1)
        return sample_with_replacement(generator_of(g), places->write_as<std::int64_t>(), numbers, rows, n, samples);
      check_weights(numbers, rows, n);
      sample_without_replacement(generator_of(g), places->write_as<std::int64_t>(), numbers, rows, n, samples);
    });
  }
  if (!out) return places;
  TensorRef t = destination("multinomial", size, out, {}, DType::Int64);
  copy_numbers(*t, *places);
  return filled(t, out, "multinomial");
}

#define RUSHLIGHT_GENERATOR "*, generator generator=None"

const Define samples[] = {
    {"bernoulli_(Tensor self, Tensor p, " RUSHLIGHT_GENERATOR ")", &bernoulli_tensor_, Method,
     "Fills with 1 by probability p, else 0."},
    {"bernoulli_(Tensor self, float p=0.5, " RUSHLIGHT_GENERATOR ")", &bernoulli_number_, Method},
    {"bernoulli(Tensor self, " RUSHLIGHT_GENERATOR ", Tensor? out=None)", &bernoulli, Both,
     "1 by the probability that the tensor says, else 0."},
    {"bernoulli(Tensor self, float p, " RUSHLIGHT_GENERATOR ")", &bernoulli_like, Both},
    {"normal(Tensor mean, Tensor std, " RUSHLIGHT_GENERATOR ", Tensor? out=None)", &normal_both, Function,
     "Normal numbers of given means and standard deviations."},
    {"normal(Tensor mean, float std=1, " RUSHLIGHT_GENERATOR ", Tensor? out=None)", &normal_mean, Function},
    {"normal(float mean, Tensor std, " RUSHLIGHT_GENERATOR ", Tensor? out=None)", &normal_std, Function},
    {"normal(float mean, float std, int[] size, " RUSHLIGHT_GENERATOR ", Tensor? out=None, " RUSHLIGHT_FACTORY ")",
     &normal_numbers, Function},
    {"poisson(Tensor self, generator generator=None)", &poisson, Function, "Poisson numbers of given rates."},
    {"binomial(Tensor count, Tensor prob, generator generator=None)", &binomial, Function,
     "Numbers of successes in count trials of probability prob."},
    {"_standard_gamma(Tensor self, generator generator=None)", &standard_gamma, Function,
     "Gamma numbers of given shapes and scale 1."},
    {"_standard_gamma_grad(Tensor self, Tensor output)", &standard_gamma_grad, Function,
     "How gamma numbers move with their shapes."},
    {"_sample_dirichlet(Tensor self, generator generator=None)", &sample_dirichlet, Function,
     "Dirichlet vectors along the last dimension."},
    {"_dirichlet_grad(Tensor x, Tensor alpha, Tensor total)", &dirichlet_grad, Function,
     "How Dirichlet numbers move with their shapes, divided by 1 - x."},
    {"multinomial(Tensor self, int num_samples, bool replacement=False, " RUSHLIGHT_GENERATOR ", Tensor? out=None)",
     &multinomial, Both | NoGradient, "Places along the last dimension, drawn by their weights."},
};

}  // namespace

}  // namespace rushlight
