// New tensors of random numbers.
#include "kernels/random.h"
#include "operators/pointwise.h"
#include "operators/random_fill.h"
#include "operators/view.h"

namespace rushlight {

TensorRef destination(const char* name, IntSpan size, Tensor* out, std::optional<DType> dtype, DType natural,
                      bool requires_grad) {
  check_requires_grad(out ? out->dtype : dtype.value_or(natural), requires_grad);
  if (!out) return empty(size, dtype.value_or(natural));
  check(!(modes.grad && out->requires_grad()), name,
        "(): functions with out=... arguments don't support automatic differentiation, but one of the arguments "
        "requires grad.");
  check(!dtype || *dtype == out->dtype, "dtype ", info(dtype.value_or(natural)).scalar_name,
        " does not match dtype of out parameter (", info(out->dtype).scalar_name, ")");
  set_sizes(*out, size);
  refuse_overlapping_write(*out);
  return TensorRef(out);
}

TensorRef filled(TensorRef t, const Tensor* out, const char* name, bool requires_grad) {
  if (out) finish_inplace(*t, nullptr, name);
  return as_leaf(std::move(t), requires_grad);
}

namespace {

using OptionalType = std::optional<DType>;

TensorRef rand_op(const Dims& size, GeneratorArg g, Tensor* out, OptionalType dtype, Layout, Device, bool requires_grad,
                  bool) {
  TensorRef t = destination("rand", size, out, dtype, default_dtype, requires_grad);
  draw_uniform(*t, 0, 1, generator_of(g));
  return filled(std::move(t), out, "rand", requires_grad);
}

TensorRef randn_op(const Dims& size, GeneratorArg g, Tensor* out, OptionalType dtype, Layout, Device,
                   bool requires_grad, bool) {
  TensorRef t = destination("randn", size, out, dtype, default_dtype, requires_grad);
  draw_normal(*t, 0, 1, generator_of(g));
  return filled(std::move(t), out, "randn", requires_grad);
}

TensorRef randint_between(std::int64_t low, std::int64_t high, const Dims& size, GeneratorArg g, Tensor* out,
                          OptionalType dtype, Layout, Device, bool requires_grad, bool) {
  TensorRef t = destination("randint", size, out, dtype, DType::Int64, requires_grad);
  draw_integers(*t, low, high, generator_of(g));
  return filled(std::move(t), out, "randint", requires_grad);
}
TensorRef randint_below(std::int64_t high, const Dims& size, GeneratorArg g, Tensor* out, OptionalType dtype, Layout l,
                        Device d, bool requires_grad, bool pinned) {
  return randint_between(0, high, size, g, out, dtype, l, d, requires_grad, pinned);
}

/// Refuses an n whose permutation the type cannot hold.
void check_permutation(std::int64_t n, DType d) {
  switch (d) {
    case DType::UInt8:
      return check(n <= 256, "value cannot be converted to type uint8_t without overflow");
    case DType::Int8:
      return check(n <= 128, "value cannot be converted to type int8_t without overflow");
    case DType::Int16:
      return check(n <= 32768, "value cannot be converted to type int16_t without overflow");
    case DType::Int32:
      return check(n <= (std::int64_t(1) << 31), "value cannot be converted to type int without overflow");
    case DType::Float16:
      return check(n <= (1 << 11) + 1, "n cannot be greater than 2049 for Half type.");
    case DType::BFloat16:
      return check(n <= (1 << 8) + 1, "n cannot be greater than 257 for BFloat16 type.");
    case DType::Float32:
      return check(n <= (1 << 24) + 1, "n cannot be greater than 2^24+1 for Float type.");
    default:
      return;
  }
}

TensorRef randperm_op(std::int64_t n, GeneratorArg g, Tensor* out, OptionalType dtype, Layout, Device,
                      bool requires_grad, bool) {
  DType type = out ? out->dtype : dtype.value_or(DType::Int64);
  check_permutation(n, type);
  TensorRef t = destination("randperm", Dims{n}, out, dtype, DType::Int64, requires_grad);
  visit_not_complex(type, "randperm", [&]<class T>() {
    if constexpr (std::is_same_v<T, bool>)
      fail(ErrorKind::NotImplemented, "\"randperm\" not implemented for 'Bool'");
    else
      fill_memory<T>(*t, [&](T* numbers, std::int64_t count) { fill_permutation(generator_of(g), numbers, count); });
  });
  return filled(std::move(t), out, "randperm", requires_grad);
}

TensorRef like(const Tensor& t, OptionalType dtype, MemoryFormat format, bool requires_grad) {
  DType d = dtype.value_or(t.dtype);
  check_requires_grad(d, requires_grad);
  return format == MemoryFormat::Contiguous ? empty(t.sizes(), d) : empty_like(t, d);
}
TensorRef rand_like_op(const Tensor& self, GeneratorArg g, OptionalType dtype, Layout, Device, bool requires_grad, bool,
                       MemoryFormat format) {
  TensorRef t = like(self, dtype, format, requires_grad);
  draw_uniform(*t, 0, 1, generator_of(g));
  return as_leaf(t, requires_grad);
}
TensorRef randn_like_op(const Tensor& self, GeneratorArg g, OptionalType dtype, Layout, Device, bool requires_grad,
                        bool, MemoryFormat format) {
  TensorRef t = like(self, dtype, format, requires_grad);
  draw_normal(*t, 0, 1, generator_of(g));
  return as_leaf(t, requires_grad);
}
TensorRef randint_like_between(const Tensor& self, std::int64_t low, std::int64_t high, GeneratorArg g,
                               OptionalType dtype, Layout, Device, bool requires_grad, bool, MemoryFormat format) {
  TensorRef t = like(self, dtype, format, requires_grad);
  draw_integers(*t, low, high, generator_of(g));
  return as_leaf(t, requires_grad);
}
TensorRef randint_like_below(const Tensor& self, std::int64_t high, GeneratorArg g, OptionalType dtype, Layout l,
                             Device d, bool requires_grad, bool pinned, MemoryFormat format) {
  return randint_like_between(self, 0, high, g, dtype, l, d, requires_grad, pinned, format);
}

#define RUSHLIGHT_RANDOM "*, generator generator=None, Tensor? out=None, " RUSHLIGHT_FACTORY ")"
#define RUSHLIGHT_RANDOM_LIKE "*, generator generator=None, " RUSHLIGHT_FACTORY ", memory_format memory_format=None)"

const Define factories[] = {
    {"rand(int[] size, " RUSHLIGHT_RANDOM, &rand_op, Function | NoGradient, "Numbers uniform in [0, 1)."},
    {"randn(int[] size, " RUSHLIGHT_RANDOM, &randn_op, Function | NoGradient, "Standard normal numbers."},
    {"randint(int high, int[] size, " RUSHLIGHT_RANDOM, &randint_below, Function | NoGradient,
     "Whole numbers uniform in [low, high)."},
    {"randint(int low, int high, int[] size, " RUSHLIGHT_RANDOM, &randint_between, Function | NoGradient},
    {"randperm(int n, " RUSHLIGHT_RANDOM, &randperm_op, Function | NoGradient,
     "A random permutation of 0, ..., n - 1."},
    {"rand_like(Tensor self, " RUSHLIGHT_RANDOM_LIKE, &rand_like_op, Function | NoGradient,
     "Numbers uniform in [0, 1), shaped like another tensor."},
    {"randn_like(Tensor self, " RUSHLIGHT_RANDOM_LIKE, &randn_like_op, Function | NoGradient,
     "Standard normal numbers, shaped like another tensor."},
    {"randint_like(Tensor self, int high, " RUSHLIGHT_RANDOM_LIKE, &randint_like_below, Function | NoGradient,
     "Whole numbers uniform in [low, high), shaped like another tensor."},
    {"randint_like(Tensor self, int low, int high, " RUSHLIGHT_RANDOM_LIKE, &randint_like_between,
     Function | NoGradient},
};

}  // namespace
}  // namespace rushlight
