// The update rules of rushlight.optim, over plain memory: one step of one parameter.
//
// A rule takes n numbers of the parameter, of its gradient and of each entry of its state. All but Adafactor's work on
// each number alone, so that a caller may pass any part of a parameter, in any order of its memory that is common to
// all. T is float or double; a complex parameter is passed as its real and imaginary parts.
//
// `step` counts the steps of the parameter, this one included. `maximize` ascends. Options keep the names and meanings
// of PyTorch's. The arithmetic is that of its single-tensor implementation, operation by operation, and so are the bits
// of the rules without square roots (SGD, Adamax, Rprop, ASGD) where PyTorch takes its fused kernels (multiply_add.h).
// The others differ by rounding: PyTorch's roots are the Intel library's, which are not always the nearest numbers.
//
// The source is compiled with -ffp-contract=off, and with -fno-math-errno for its square roots to be vectorised.
#pragma once

#include <cstdint>

namespace rushlight {

struct SgdOptions {
  double lr = 1e-3;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
  bool maximize = false;
  bool first = false;  // the momentum buffer is full of zeros and takes the gradient undamped
};

/// momentum_buffer is null where momentum is 0.
template <class T>
void sgd(T* param, const T* grad, T* momentum_buffer, std::int64_t n, const SgdOptions& options);

/// Adam and AdamW.
struct AdamOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  bool decoupled_weight_decay = false;
  bool maximize = false;
  double step = 1;
};

/// max_exp_avg_sq is null without amsgrad.
template <class T>
void adam(T* param, const T* grad, T* exp_avg, T* exp_avg_sq, T* max_exp_avg_sq, std::int64_t n,
          const AdamOptions& options);

/// decoupled_weight_decay is not used.
template <class T>
void adamax(T* param, const T* grad, T* exp_avg, T* exp_inf, std::int64_t n, const AdamOptions& options);

struct NadamOptions : AdamOptions {
  double momentum_decay = 4e-3;
  double mu_product = 1;  // of nadam_momentum over all steps, this one included
};

/// The momentum of one step, by which the caller multiplies the state's mu_product before the step.
double nadam_momentum(const NadamOptions& options, double step);

template <class T>
void nadam(T* param, const T* grad, T* exp_avg, T* exp_avg_sq, std::int64_t n, const NadamOptions& options);

template <class T>
void radam(T* param, const T* grad, T* exp_avg, T* exp_avg_sq, std::int64_t n, const AdamOptions& options);

struct AdagradOptions {
  double lr = 1e-2;
  double lr_decay = 0;
  double eps = 1e-10;
  double weight_decay = 0;
  bool maximize = false;
  double step = 1;
};

template <class T>
void adagrad(T* param, const T* grad, T* sum, std::int64_t n, const AdagradOptions& options);

struct AdadeltaOptions {
  double lr = 1;
  double rho = 0.9;
  double eps = 1e-6;
  double weight_decay = 0;
  bool maximize = false;
};

template <class T>
void adadelta(T* param, const T* grad, T* square_avg, T* acc_delta, std::int64_t n, const AdadeltaOptions& options);

struct RmspropOptions {
  double lr = 1e-2;
  double alpha = 0.99;
  double eps = 1e-8;
  double weight_decay = 0;
  double momentum = 0;
  bool maximize = false;
};

/// grad_avg is null unless the rule is centered, momentum_buffer where momentum is 0.
template <class T>
void rmsprop(T* param, const T* grad, T* square_avg, T* grad_avg, T* momentum_buffer, std::int64_t n,
             const RmspropOptions& options);

struct RpropOptions {
  double eta_minus = 0.5;
  double eta_plus = 1.2;
  double step_size_min = 1e-6;
  double step_size_max = 50;
  bool maximize = false;
};

template <class T>
void rprop(T* param, const T* grad, T* prev, T* step_size, std::int64_t n, const RpropOptions& options);

struct AsgdOptions {
  double lr = 1e-2;
  double lambd = 1e-4;
  double alpha = 0.75;
  double t0 = 1e6;
  double weight_decay = 0;
  bool maximize = false;
  double step = 1;
  double eta = 1e-2;  // the state's, before this step
  double mu = 1;      // likewise
};

template <class T>
void asgd(T* param, const T* grad, T* ax, std::int64_t n, const AsgdOptions& options);

/// The state's eta and mu after the step.
double asgd_eta(const AsgdOptions& options);
double asgd_mu(const AsgdOptions& options);

struct AdafactorOptions {
  double lr = 1e-2;
  double beta2_decay = -0.8;
  double eps1 = 0;  // the machine epsilon of the parameter's dtype where the user gives None
  double eps2 = 1e-3;
  double d = 1;
  double weight_decay = 0;
  bool maximize = false;
  double step = 1;
};

/// A contiguous parameter of shape (batch, rows, columns), with row_var (batch, rows) and col_var (batch, columns).
template <class T>
void adafactor(T* param, const T* grad, T* row_var, T* col_var, std::int64_t batch, std::int64_t rows,
               std::int64_t columns, const AdafactorOptions& options);

/// A parameter of fewer than two dimensions, whole.
template <class T>
void adafactor(T* param, const T* grad, T* variance, std::int64_t n, const AdafactorOptions& options);

}  // namespace rushlight
