// The module rushlight._C._optim: a step of an optimizer over a whole group of parameters in one call.
//
// Each function takes the group's parameters, the optimizer's dict of states, and the numbers of the rule. It
// updates the parameters that have gradients and returns those of them that it left untouched, as a list (None if
// there are none): where the state has no entry yet, where an entry has another dtype or shape than the parameter, and
// where memory is not dense in one order or the dtype has no kernel. Nothing is remembered between calls, so programs
// may exchange parameters and states as they like.
#include "kernels/optimizer.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "kernels/parallel.h"
#include "operators/layout.h"
#include "python/python.h"

namespace rushlight::python {
namespace {

constexpr std::int64_t grain = 1 << 15;  // numbers below which one thread does all

/// Whether `t` lies in memory as the parameter does.
bool matches(const Tensor& t, const Tensor& param, std::size_t = 0) {
  return t.dtype == param.dtype && equal(t.sizes(), param.sizes()) &&
         ((t.is_contiguous() && param.is_contiguous()) || equal(t.strides(), param.strides()));
}

/// The entries of a parameter's state that a rule uses: their names, interned.
struct Layout {
  std::array<PyObject*, 3> tensors{};  // in the order of the kernel's arguments; null: not used
  std::array<PyObject*, 2> numbers{};  // tensors of one number
  bool counts = true;                  // has "step"
  bool first_is_made = false;          // tensors[0] may be None, and is made in the first step
  bool (*fits)(const Tensor& t, const Tensor& param, std::size_t i) = matches;  // what tensors[i] must be
};

/// A parameter with its gradient and state.
struct Entry {
  TensorRef param, grad;
  std::array<TensorRef, 3> tensors;
  std::array<TensorRef, 2> numbers;
  TensorRef step;
  PyObject* state = nullptr;  // the dict, borrowed from the optimizer's; null: not needed
  bool first = false;         // tensors[0] is None
};

bool is_number(const Tensor& t) { return t.numel == 1 && (t.dtype == DType::Float32 || t.dtype == DType::Float64); }

double number(const Tensor& t) {
  return t.dtype == DType::Float32 ? double(*t.read_as<float>()) : *t.read_as<double>();
}

void set_number(const Tensor& t, double value) {
  if (t.dtype == DType::Float32)
    *t.write_as<float>() = float(value);
  else
    *t.write_as<double>() = value;
}

/// The tensor under `key`, where it is one.
TensorRef find(PyObject* state, PyObject* key) {
  PyObject* value = PyDict_GetItemWithError(state, key);
  if (!value && PyErr_Occurred()) throw PythonError();
  return value && is_tensor(value) ? TensorRef(tensor_of(value)) : nullptr;
}

/// The tensors of a list or of anything else that can be gone through.
class Params {
 public:
  explicit Params(PyObject* o) : items_(checked(PySequence_Fast(o, "the parameters of an optimizer must be a list"))) {}
  Py_ssize_t size() const { return PySequence_Fast_GET_SIZE(items_.get()); }
  PyObject* operator[](Py_ssize_t i) const {
    PyObject* p = PySequence_Fast_GET_ITEM(items_.get(), i);
    check_type(is_tensor(p), "optimizer can only optimize Tensors, but one of the params is ", Py_TYPE(p)->tp_name);
    return p;
  }

 private:
  Owned items_;
};

/// The numbers among a function's arguments, after parameters and states.
class Arguments {
 public:
  Arguments(const char* name, PyObject* const* args, Py_ssize_t given, Py_ssize_t expected) : at_(args + 2) {
    check_type(given == expected, "_optim.", name, " takes ", expected, " arguments, got ", given);
    check_type(PyDict_Check(args[1]), "_optim.", name, ": the states must be a dict, not ", Py_TYPE(args[1])->tp_name);
  }
  /// A Python number, or what converts to one: a tensor of one element.
  double number() {
    double value = PyFloat_AsDouble(*at_++);
    if (value == -1 && PyErr_Occurred()) throw PythonError();
    return value;
  }
  std::optional<double> optional_number() {
    if (*at_ != Py_None) return number();
    ++at_;
    return std::nullopt;
  }
  bool flag() {
    int value = PyObject_IsTrue(*at_++);
    checked(value);
    return value != 0;
  }

 private:
  PyObject* const* at_;
};

/// One step over a group: the entries that can be updated, and the parameters that cannot.
class Step {
 public:
  Step(const char* name, PyObject* const* args, const Layout& layout) : name_(name), layout_(layout) {
    Params params(args[0]);
    entries_.reserve(std::size_t(params.size()));
    for (Py_ssize_t i = 0; i < params.size(); ++i) {
      PyObject* p = params[i];
      Tensor* grad = grad_of(*tensor_of(p));
      if (!grad) continue;
      Entry entry;
      entry.param = TensorRef(tensor_of(p));
      entry.grad = TensorRef(grad);
      if (complete(entry, args[1]))
        entries_.push_back(std::move(entry));
      else
        left_.push_back(std::move(entry.param));
    }
  }

  std::vector<Entry>& entries() { return entries_; }

  /// The parameters that were left untouched.
  PyObject* left() {
    if (left_.empty()) Py_RETURN_NONE;
    return wrap_list(std::move(left_));
  }

  /// Refuses what may not be changed, and makes what is made in the first step.
  void begin() {
    GradScope unrecorded(false);
    for (Entry& e : entries_) {
      check_inplace(*e.param, false);
      for (auto& t : e.tensors)
        if (t) check_inplace(*t, false);
    }
    for (Entry& e : entries_) {
      if (!e.first) continue;
      e.tensors[0] = empty_like(*e.param, e.param->dtype);
      std::fill_n(e.tensors[0]->write(), std::size_t(e.param->numel * e.param->item_size()), std::byte(0));
      checked(PyDict_SetItem(e.state, layout_.tensors[0], object_of(e.tensors[0].get())));
    }
  }

  /// Counts the step of one parameter, which may come more than once.
  static void count(const Entry& e) {
    if (!e.step) return;
    set_number(*e.step, number(*e.step) + 1);
    e.step->bump_version();
  }

  void end() {
    for (Entry& e : entries_) {
      finish_inplace(*e.param, {}, name_);
      for (auto& t : e.tensors)
        if (t) t->bump_version();
      for (auto& t : e.numbers)
        if (t) t->bump_version();
    }
  }

 private:
  /// Finds the entries of the state; false where something is missing or has no kernel.
  bool complete(Entry& e, PyObject* states) {
    const Tensor& p = *e.param;
    if (real_of(p.dtype) != DType::Float32 && real_of(p.dtype) != DType::Float64) return false;
    if (!matches(*e.grad, p) || !(p.is_contiguous() || is_dense(p))) return false;
    if (!layout_.counts && !layout_.tensors[0]) return true;
    e.state = PyDict_GetItemWithError(states, object_of(e.param.get()));
    if (!e.state && PyErr_Occurred()) throw PythonError();
    if (!e.state || !PyDict_Check(e.state)) return false;
    for (std::size_t i = 0; i < layout_.tensors.size() && layout_.tensors[i]; ++i) {
      e.tensors[i] = find(e.state, layout_.tensors[i]);
      if (e.tensors[i] && !layout_.fits(*e.tensors[i], p, i)) return false;
      if (!e.tensors[i]) {
        e.first = i == 0 && layout_.first_is_made && PyDict_GetItemWithError(e.state, layout_.tensors[0]) == Py_None;
        if (!e.first) return false;
      }
    }
    for (std::size_t i = 0; i < layout_.numbers.size() && layout_.numbers[i]; ++i) {
      e.numbers[i] = find(e.state, layout_.numbers[i]);
      if (!e.numbers[i] || !is_number(*e.numbers[i])) return false;
    }
    if (!layout_.counts) return true;
    static PyObject* key = intern("step");
    e.step = find(e.state, key);
    return e.step && is_number(*e.step);
  }

  const char* name_;
  Layout layout_;
  std::vector<Entry> entries_;
  TensorList left_;
};

/// Whether a parameter, its gradient and its state lie in one layout; what can be is brought into the parameter's.
bool lie_alike(const Entry& e) {
  const Arrangement layout = layout_of(*e.param);
  if (!layout || (layout_of(*e.grad) != layout && !try_rearrange(*e.grad, layout))) return false;
  for (auto& t : e.tensors)
    if (t && layout_of(*t) != layout && !try_rearrange(*t, layout)) return false;
  return true;
}

/// Where one parameter's numbers are.
struct Memory {
  std::byte* param;
  const std::byte* grad;
  std::array<std::byte*, 3> tensors{};
  std::int64_t begin, n;  // among the numbers of all parameters
  std::int64_t width;     // bytes of one
  bool laid;              // in a layout: who reads the parameter would move its numbers

  Memory(const Entry& e, std::int64_t begin, bool in_rows)
      : begin(begin),
        n(e.param->numel * (is_complex(e.param->dtype) ? 2 : 1)),
        width(item_size(real_of(e.param->dtype))) {
    laid = !in_rows && lie_alike(e);
    param = laid ? e.param->storage->write_laid() : e.param->write();
    grad = laid ? e.grad->storage->read_laid() : e.grad->read();
    for (std::size_t i = 0; i < tensors.size(); ++i)
      if (e.tensors[i]) tensors[i] = laid ? e.tensors[i]->storage->write_laid() : e.tensors[i]->write();
  }
};

/// The memory of all. Entries that share a storage may undo each other's layouts: then all are read in rows.
std::vector<Memory> memory_of(const std::vector<Entry>& entries) {
  std::vector<Memory> all;
  for (int attempt = 0;; ++attempt) {
    const std::int64_t before = layout_stats.rearranged;
    std::int64_t total = 0;
    all.clear();
    for (const Entry& e : entries) {
      all.emplace_back(e, total, attempt == 2);
      total += all.back().n;
    }
    if (layout_stats.rearranged == before || attempt == 2) return all;
  }
}

/// Whether two parameters share memory: then their updates must follow one another.
bool overlap(std::vector<Memory> all) {
  std::sort(all.begin(), all.end(), [](const Memory& a, const Memory& b) { return a.param < b.param; });
  for (std::size_t i = 1; i < all.size(); ++i)
    if (all[i - 1].param + all[i - 1].n * all[i - 1].width > all[i].param) return true;
  return false;
}

template <class T, class Kernel, class Options>
void run_part(const Memory& m, std::int64_t from, std::int64_t to, const Kernel& kernel, const Options& options) {
  T* tensors[3];
  for (int i = 0; i < 3; ++i) tensors[i] = m.tensors[i] ? reinterpret_cast<T*>(m.tensors[i]) + from : nullptr;
  kernel(reinterpret_cast<T*>(m.param) + from, reinterpret_cast<const T*>(m.grad) + from, tensors, to - from, options);
}

/// Runs `kernel(param, grad, tensors, n, options)` over parts of all parameters, with each one's own options.
template <class Kernel, class Options>
void run_all(const std::vector<Memory>& all, const Kernel& kernel, const std::vector<Options>& options) {
  auto work = [&](std::int64_t begin, std::int64_t end) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Memory& m = all[i];
      const std::int64_t from = std::max(begin, m.begin) - m.begin, to = std::min(end, m.begin + m.n) - m.begin;
      if (from >= to) continue;
      if (m.width == sizeof(float))
        run_part<float>(m, from, to, kernel, options[i]);
      else
        run_part<double>(m, from, to, kernel, options[i]);
    }
  };
  const std::int64_t total = all.empty() ? 0 : all.back().begin + all.back().n;
  if (total > grain && overlap(all))
    work(0, total);
  else
    parallel_for(total, grain, work, std::any_of(all.begin(), all.end(), [](const Memory& m) { return m.laid; }));
}

/// The step: `prepare(entry, options)` completes the options for one parameter and updates the numbers of its state.
template <class Options, class Prepare, class Kernel>
PyObject* run(Step& step, const Options& options, const Prepare& prepare, const Kernel& kernel) {
  step.begin();
  std::vector<Options> each(step.entries().size(), options);
  for (std::size_t i = 0; i < each.size(); ++i) {
    Step::count(step.entries()[i]);
    prepare(step.entries()[i], each[i]);
  }
  run_all(memory_of(step.entries()), kernel, each);
  step.end();
  return step.left();
}

/// For rules whose options depend on nothing but the number of the step.
constexpr auto take_step = [](const Entry& e, auto& options) { options.step = number(*e.step); };
constexpr auto take_nothing = [](const Entry&, auto&) {};

PyObject* sgd_step(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guarded([&] {
    Arguments a("sgd", args, nargs, 8);
    SgdOptions o;
    o.lr = a.number(), o.momentum = a.number(), o.dampening = a.number(), o.weight_decay = a.number();
    o.nesterov = a.flag(), o.maximize = a.flag();
    static PyObject* buffer = intern("momentum_buffer");
    Layout layout{.tensors = {o.momentum != 0 ? buffer : nullptr}, .counts = false, .first_is_made = true};
    Step step("optim.SGD", args, layout);
    return run(
        step, o, [](const Entry& e, SgdOptions& o) { o.first = e.first; },
        [](auto* p, auto* g, auto* const* s, std::int64_t n, const SgdOptions& o) { sgd(p, g, s[0], n, o); });
  });
}

/// lr, beta1, beta2, eps, weight_decay, decoupled_weight_decay, maximize
AdamOptions adam_options(Arguments& a) {
  AdamOptions o;
  o.lr = a.number(), o.beta1 = a.number(), o.beta2 = a.number(), o.eps = a.number(), o.weight_decay = a.number();
  o.decoupled_weight_decay = a.flag(), o.maximize = a.flag();
  return o;
}

Layout adam_layout() {
  static PyObject *mean = intern("exp_avg"), *square = intern("exp_avg_sq");
  return {.tensors = {mean, square}};
}

PyObject* adam_step(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guarded([&] {
    Arguments a("adam", args, nargs, 10);
    const AdamOptions o = adam_options(a);
    Layout layout = adam_layout();
    static PyObject* greatest = intern("max_exp_avg_sq");
    if (a.flag()) layout.tensors[2] = greatest;
    Step step("optim.Adam", args, layout);
    return run(step, o, take_step, [](auto* p, auto* g, auto* const* s, std::int64_t n, const AdamOptions& o) {
      adam(p, g, s[0], s[1], s[2], n, o);
    });
  });
}

PyObject* adamax_step(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guarded([&] {
    Arguments a("adamax", args, nargs, 9);
    const AdamOptions o = adam_options(a);
    static PyObject *mean = intern("exp_avg"), *greatest = intern("exp_inf");
    Step step("optim.Adamax", args, {.tensors = {mean, greatest}});
    return run(step, o, take_step, [](auto* p, auto* g, auto* const* s, std::int64_t n, const AdamOptions& o) {
      adamax(p, g, s[0], s[1], n, o);
    });
  });
}

PyObject* nadam_step(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guarded([&] {
    Arguments a("nadam", args, nargs, 10);
    NadamOptions o;
    static_cast<AdamOptions&>(o) = adam_options(a);
    o.momentum_decay = a.number();
    Layout layout = adam_layout();
    static PyObject* product = intern("mu_product");
    layout.numbers[0] = product;
    Step step("optim.NAdam", args, layout);
    auto prepare = [](const Entry& e, NadamOptions& o) {
      take_step(e, o);
      const Tensor& t = *e.numbers[0];
      const double mu = nadam_momentum(o, o.step);
      set_number(t, t.dtype == DType::Float32 ? double(float(number(t)) * float(mu)) : number(t) * mu);
      o.mu_product = number(t);
    };
    return run(step, o, prepare, [](auto* p, auto* g, auto* const* s, std::int64_t n, const NadamOptions& o) {
      nadam(p, g, s[0], s[1], n, o);
    });
  });
}

PyObject* radam_step(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guarded([&] {
    Arguments a("radam", args, nargs, 9);
    const AdamOptions o = adam_options(a);
    Step step("optim.RAdam", args, adam_layout());
    return run(step, o, take_step, [](auto* p, auto* g, auto* const* s, std::int64_t n, const AdamOptions& o) {
      radam(p, g, s[0], s[1], n, o);
    });
  });
}

PyObject* adagrad_step(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guarded([&] {
    Arguments a("adagrad", args, nargs, 7);
    AdagradOptions o;
    o.lr = a.number(), o.lr_decay = a.number(), o.eps = a.number(), o.weight_decay = a.number(), o.maximize = a.flag();
    static PyObject* sum = intern("sum");
    Step step("optim.Adagrad", args, {.tensors = {sum}});
    return run(step, o, take_step, [](auto* p, auto* g, auto* const* s, std::int64_t n, const AdagradOptions& o) {
      adagrad(p, g, s[0], n, o);
    });
  });
}

PyObject* adadelta_step(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guarded([&] {
    Arguments a("adadelta", args, nargs, 7);
    AdadeltaOptions o;
    o.lr = a.number(), o.rho = a.number(), o.eps = a.number(), o.weight_decay = a.number(), o.maximize = a.flag();
    static PyObject *square = intern("square_avg"), *delta = intern("acc_delta");
    Step step("optim.Adadelta", args, {.tensors = {square, delta}});
    return run(step, o, take_nothing, [](auto* p, auto* g, auto* const* s, std::int64_t n, const AdadeltaOptions& o) {
      adadelta(p, g, s[0], s[1], n, o);
    });
  });
}

PyObject* rmsprop_step(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guarded([&] {
    Arguments a("rmsprop", args, nargs, 9);
    RmspropOptions o;
    o.lr = a.number(), o.alpha = a.number(), o.eps = a.number(), o.weight_decay = a.number(), o.momentum = a.number();
    o.maximize = a.flag();
    const bool centered = a.flag(), follows = o.momentum > 0;
    static PyObject *square = intern("square_avg"), *mean = intern("grad_avg"), *buffer = intern("momentum_buffer");
    Layout layout{.tensors = {square,
                              centered  ? mean
                              : follows ? buffer
                                        : nullptr,
                              centered && follows ? buffer : nullptr}};
    Step step("optim.RMSprop", args, layout);
    auto kernel = [centered](auto* p, auto* g, auto* const* s, std::int64_t n, const RmspropOptions& o) {
      rmsprop(p, g, s[0], centered ? s[1] : nullptr, centered ? s[2] : s[1], n, o);
    };
    return run(step, o, take_nothing, kernel);
  });
}

PyObject* rprop_step(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guarded([&] {
    Arguments a("rprop", args, nargs, 7);
    RpropOptions o;
    o.eta_minus = a.number(), o.eta_plus = a.number(), o.step_size_min = a.number(), o.step_size_max = a.number();
    o.maximize = a.flag();
    static PyObject *before = intern("prev"), *size = intern("step_size");
    Step step("optim.Rprop", args, {.tensors = {before, size}});
    return run(step, o, take_nothing, [](auto* p, auto* g, auto* const* s, std::int64_t n, const RpropOptions& o) {
      rprop(p, g, s[0], s[1], n, o);
    });
  });
}

PyObject* asgd_step(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guarded([&] {
    Arguments a("asgd", args, nargs, 8);
    AsgdOptions o;
    o.lr = a.number(), o.lambd = a.number(), o.alpha = a.number(), o.t0 = a.number(), o.weight_decay = a.number();
    o.maximize = a.flag();
    static PyObject *mean = intern("ax"), *eta = intern("eta"), *mu = intern("mu");
    Step step("optim.ASGD", args, {.tensors = {mean}, .numbers = {eta, mu}});
    auto prepare = [](const Entry& e, AsgdOptions& o) {
      take_step(e, o);
      o.eta = number(*e.numbers[0]), o.mu = number(*e.numbers[1]);
      set_number(*e.numbers[0], asgd_eta(o));
      set_number(*e.numbers[1], asgd_mu(o));
    };
    return run(step, o, prepare,
               [](auto* p, auto* g, auto* const* s, std::int64_t n, const AsgdOptions& o) { asgd(p, g, s[0], n, o); });
  });
}

/// The means of a matrix's rows (i = 0) or columns (1): as the parameter, but for one dimension of size 1; row-major.
bool is_factor(const Tensor& t, const Tensor& param, std::size_t i) {
  if (t.dtype != param.dtype || is_complex(t.dtype) || t.ndim != param.ndim || param.ndim < 2) return false;
  for (int d = 0; d < t.ndim; ++d)
    if (t.size(d) != (d == t.ndim - 1 - int(i) ? 1 : param.size(d))) return false;
  return t.is_contiguous() && param.is_contiguous();
}

/// The mean squares of a parameter that is no matrix.
bool is_variance(const Tensor& t, const Tensor& param, std::size_t) {
  return !is_complex(t.dtype) && param.ndim < 2 && param.is_contiguous() && matches(t, param);
}

/// Updates each parameter as a whole: `kernel(T* param, const T* grad, entry)`.
template <class Kernel>
PyObject* run_whole(Step& step, const Kernel& kernel) {
  step.begin();
  for (const Entry& e : step.entries()) {
    Step::count(e);
    if (e.param->dtype == DType::Float32)
      kernel(e.param->write_as<float>(), e.grad->read_as<float>(), e);
    else
      kernel(e.param->write_as<double>(), e.grad->read_as<double>(), e);
  }
  step.end();
  return step.left();
}

PyObject* adafactor_step(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guarded([&]() -> PyObject* {
    Arguments a("adafactor", args, nargs, 9);
    AdafactorOptions o;
    o.lr = a.number(), o.beta2_decay = a.number();
    const std::optional<double> eps1 = a.optional_number();
    o.eps2 = a.number(), o.d = a.number(), o.weight_decay = a.number(), o.maximize = a.flag();
    auto complete = [&](const Entry& e, double epsilon) {
      take_step(e, o);
      o.eps1 = eps1.value_or(epsilon);
    };
    static PyObject *rows = intern("row_var"), *columns = intern("col_var"), *variance = intern("variance");
    Step matrices("optim.Adafactor", args, {.tensors = {rows, columns}, .fits = is_factor});
    Owned left(run_whole(matrices, [&](auto* p, auto* g, const Entry& e) {
      using T = std::remove_pointer_t<decltype(p)>;
      const Tensor& t = *e.param;
      const std::int64_t m = t.size(t.ndim - 2), n = t.size(t.ndim - 1), batch = t.numel == 0 ? 0 : t.numel / (m * n);
      complete(e, std::numeric_limits<T>::epsilon());
      adafactor(p, g, e.tensors[0]->write_as<T>(), e.tensors[1]->write_as<T>(), batch, m, n, o);
    }));
    if (left == Py_None) return left.detach();
    PyObject* rest[] = {left, args[1]};
    Step vectors("optim.Adafactor", rest, {.tensors = {variance}, .fits = is_variance});
    return run_whole(vectors, [&](auto* p, auto* g, const Entry& e) {
      using T = std::remove_pointer_t<decltype(p)>;
      complete(e, std::numeric_limits<T>::epsilon());
      adafactor(p, g, e.tensors[0]->write_as<T>(), e.param->numel, o);
    });
  });
}

/// clear_grads(params): sets the gradient of each to None.
PyObject* clear_grads(PyObject*, PyObject* params) {
  return guarded([&]() -> PyObject* {
    Params all(params);
    for (Py_ssize_t i = 0; i < all.size(); ++i) set_grad(*tensor_of(Owned::borrow(all[i])), nullptr);
    Py_RETURN_NONE;
  });
}

template <PyObject* (*f)(PyObject*, PyObject* const*, Py_ssize_t)>
constexpr PyMethodDef fast(const char* name, const char* doc) {
  return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f)), METH_FASTCALL, doc};
}

PyMethodDef methods[] = {
    fast<sgd_step>("sgd", "sgd(params, state, lr, momentum, dampening, weight_decay, nesterov, maximize)"),
    fast<adam_step>(
        "adam", "adam(params, state, lr, beta1, beta2, eps, weight_decay, decoupled_weight_decay, maximize, amsgrad)"),
    fast<adamax_step>("adamax",
                      "adamax(params, state, lr, beta1, beta2, eps, weight_decay, decoupled_weight_decay, maximize)"),
    fast<nadam_step>(
        "nadam",
        "nadam(params, state, lr, beta1, beta2, eps, weight_decay, decoupled_weight_decay, maximize, momentum_decay)"),
    fast<radam_step>("radam",
                     "radam(params, state, lr, beta1, beta2, eps, weight_decay, decoupled_weight_decay, maximize)"),
    fast<adagrad_step>("adagrad", "adagrad(params, state, lr, lr_decay, eps, weight_decay, maximize)"),
    fast<adadelta_step>("adadelta", "adadelta(params, state, lr, rho, eps, weight_decay, maximize)"),
    fast<rmsprop_step>("rmsprop", "rmsprop(params, state, lr, alpha, eps, weight_decay, momentum, maximize, centered)"),
    fast<rprop_step>("rprop", "rprop(params, state, eta_minus, eta_plus, step_size_min, step_size_max, maximize)"),
    fast<asgd_step>("asgd", "asgd(params, state, lr, lambd, alpha, t0, weight_decay, maximize)"),
    fast<adafactor_step>("adafactor",
                         "adafactor(params, state, lr, beta2_decay, eps1, eps2, d, weight_decay, maximize)"),
    {"clear_grads", clear_grads, METH_O, "clear_grads(params): sets the gradient of each to None"},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "rushlight._C._optim",
                          "Steps of the optimizers.",
                          -1,
                          methods,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace

void init_optimizer(PyObject* module) {
  checked(PyModule_AddObjectRef(module, "_optim", Owned(checked(PyModule_Create(&definition)))));
}

}  // namespace rushlight::python
