// The same elements in other places: flipped, rolled, repeated, one side of a diagonal; and the identity matrix.
#include <algorithm>
#include <cstring>

#include "kernels/loop.h"
#include "kernels/nest.h"
#include "kernels/parallel.h"
#include "operators/join.h"
#include "operators/operators.h"
#include "operators/registry.h"

namespace rushlight {
namespace {

TensorRef flip(const Tensor& t, const Dims& dims) {
  std::uint64_t mask = 0;
  for (auto d : dims) {
    int w = wrap_dim(d, t.ndim);
    check(!((mask >> w) & 1), "dim ", w, " appears multiple times in the list of dims");
    mask |= std::uint64_t(1) << w;
  }
  TensorRef out = empty(t.sizes(), t.dtype);
  if (t.numel) {
    Dims from(t.strides());
    std::int64_t start = 0, item = t.item_size();
    for (int i = 0; i < t.ndim; ++i)
      if ((mask >> i) & 1) {
        start += (t.size(i) - 1) * from[i];
        from[i] = -from[i];
      }
    const std::int64_t* strides[2] = {from.data(), out->strides().data()};
    std::int64_t items[2] = {item, item};
    char* base[2] = {const_cast<char*>(reinterpret_cast<const char*>(t.read())) + start * item,
                     reinterpret_cast<char*>(out->write())};
    Nest nest(t.sizes(), strides, items, 2);
    LoopFunction copy = cast_loop(t.dtype, t.dtype);
    parallel_for(nest.numel, 1 << 15, [&](std::int64_t begin, std::int64_t end) {
      nest.run(base, begin, end, [&](char** p, std::int64_t n, const std::int64_t* steps) {
        std::intptr_t count = n, s[2] = {steps[0], steps[1]};
        copy(p, &count, s, nullptr);
      });
    });
  }
  return record("FlipBackward0", out, {&t}, {}, [dims](Vjp& v) { v.set(0, flip(*v.grad(), dims)); });
}

TensorRef fliplr(const Tensor& t) {
  check(t.ndim >= 2, "Input must be >= 2-d.");
  return flip(t, Dims{1});
}
TensorRef flipud(const Tensor& t) {
  check(t.ndim >= 1, "Input must be >= 1-d.");
  return flip(t, Dims{0});
}

TensorRef roll(const Tensor& t, const Dims& shifts, const Dims& dims) {
  if (dims.empty()) {
    check(shifts.size() == 1, "shifts and dimensions must align. shifts: ", shifts.size(), ", dims:0");
    return reshape(*roll(*reshape(t, Dims{-1}), shifts, Dims{0}), t.sizes());
  }
  check(shifts.size() == dims.size(), "shifts and dimensions must align. shifts: ", shifts.size(),
        ", dims:", dims.size());
  TensorRef x = clone(t);
  for (int i = 0; i < dims.size(); ++i) {
    int dim = wrap_dim(dims[i], t.ndim);
    std::int64_t n = t.ndim ? t.size(dim) : 0;
    if (n == 0) continue;
    std::int64_t by = (shifts[i] % n + n) % n;
    if (by == 0) continue;
    TensorRef head = narrow(*x, dim, n - by, by), tail = narrow(*x, dim, 0, n - by);
    x = cat({head.get(), tail.get()}, dim);
  }
  return x;
}

TensorRef rot90(const Tensor& t, std::int64_t k, const Dims& dims) {
  check(dims.size() == 2, "expected total rotation dims == 2, but got dims = ", dims.size());
  check(t.ndim >= 2, "expected total dims >= 2, but got total dims = ", int(t.ndim));
  int a = wrap_dim(dims[0], t.ndim), b = wrap_dim(dims[1], t.ndim);
  check(a != b, "expected rotation dims to be different, but got dim0 = ", dims[0], " and dim1 = ", dims[1]);
  switch ((k % 4 + 4) % 4) {
    case 1:
      return transpose(*flip(t, Dims{b}), a, b);
    case 2:
      return flip(t, Dims{a, b});
    case 3:
      return flip(*transpose(t, a, b), Dims{b});
    default:
      return clone(t);
  }
}

/// Keeps what lies below (above) the diagonal, zeros elsewhere.
TensorRef triangle(const char* name, const Tensor& t, std::int64_t diagonal, bool lower) {
  check(t.ndim >= 2, lower ? "tril" : "triu", ": input tensor must have at least 2 dimensions");
  TensorRef out = packed(t);
  if (out.get() == &t) out = copy_of(t);
  std::int64_t rows = t.size(t.ndim - 2), cols = t.size(t.ndim - 1), item = t.item_size();
  if (t.numel) {
    std::byte* base = out->write();
    parallel_for(out->numel / cols, std::max<std::int64_t>(1, (1 << 15) / cols),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t r = begin; r < end; ++r) {
                     std::int64_t edge = std::clamp<std::int64_t>(r % rows + diagonal + (lower ? 1 : 0), 0, cols);
                     std::byte* row = base + r * cols * item;
                     if (lower)
                       std::memset(row + edge * item, 0, std::size_t((cols - edge) * item));
                     else
                       std::memset(row, 0, std::size_t(edge * item));
                   }
                 });
  }
  return record(name, out, {&t}, {},
                [name, diagonal, lower](Vjp& v) { v.set(0, triangle(name, *v.grad(), diagonal, lower)); });
}
TensorRef tril(const Tensor& t, std::int64_t diagonal) { return triangle("TrilBackward0", t, diagonal, true); }
TensorRef triu(const Tensor& t, std::int64_t diagonal) { return triangle("TriuBackward0", t, diagonal, false); }

/// Each dimension doubled into (repeats, size), expanded, and folded again.
TensorRef repeat(const Tensor& t, const Dims& repeats) {
  int n = repeats.size(), lead = n - t.ndim;
  check(lead >= 0, "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor");
  Dims apart, wide, folded;
  for (int i = 0; i < n; ++i) {
    check(repeats[i] >= 0, "Trying to create tensor with negative dimension ", repeats[i], ": ", repeats);
    std::int64_t size = i < lead ? 1 : t.size(i - lead);
    apart.push_back(1);
    apart.push_back(size);
    wide.push_back(repeats[i]);
    wide.push_back(size);
    folded.push_back(repeats[i] * size);
  }
  TensorRef out = contiguous(*expand(*reshape(t, apart), wide));
  return reshape(out->storage == t.storage ? *clone(*out) : *out, folded);
}

TensorRef tile(const Tensor& t, const Dims& dims) {
  Dims padded(dims);
  while (padded.size() < t.ndim) padded.insert(0, 1);
  return repeat(t, padded);
}

TensorRef repeat_interleave(const Tensor& t, std::int64_t repeats, std::optional<std::int64_t> dim_,
                            std::optional<std::int64_t>) {
  check(repeats >= 0, "Repeats must be non-negative");
  TensorRef x = dim_ && t.ndim ? TensorRef(const_cast<Tensor*>(&t)) : reshape(t, Dims{-1});
  int dim = dim_ && t.ndim ? wrap_dim(*dim_, t.ndim) : 0;
  Dims wide(x->sizes()), folded(x->sizes());
  wide.insert(dim + 1, repeats);
  folded[dim] *= repeats;
  return reshape(*clone(*expand(*unsqueeze(*x, dim + 1), wide)), folded);
}

/// Each index as often as `repeats` says.
TensorRef interleaved_indices(const Tensor& repeats, std::optional<std::int64_t> output_size) {
  check(repeats.ndim <= 1, "repeat_interleave only accept 1D vector as repeat");
  check(category(repeats.dtype) == 1, "repeats has to be Long or Int tensor");
  TensorRef counts = packed(*cast(repeats, DType::Int64));
  auto* c = counts->read_as<std::int64_t>();
  std::int64_t total = 0;
  for (std::int64_t i = 0; i < counts->numel; ++i) {
    check(c[i] >= 0, "repeats can not be negative");
    total += c[i];
  }
  check(!output_size || *output_size == total, "allocated size does not match required size");
  TensorRef out = empty(Dims{total}, DType::Int64);
  auto* to = out->write_as<std::int64_t>();
  for (std::int64_t i = 0; i < counts->numel; ++i) to = std::fill_n(to, c[i], i);
  return out;
}

TensorRef repeat_interleave_by(const Tensor& t, const Tensor& repeats, std::optional<std::int64_t> dim_,
                               std::optional<std::int64_t> output_size) {
  TensorRef x = dim_ ? TensorRef(const_cast<Tensor*>(&t)) : reshape(t, Dims{-1});
  int dim = dim_ ? wrap_dim(*dim_, t.ndim) : 0;
  check(repeats.numel == x->size(dim) || repeats.numel == 1,
        "repeats must have the same size as input along dim, but got repeats.size(0) = ", repeats.numel,
        " and input.size(", dim, ") = ", x->size(dim));
  if (repeats.numel == 1 && x->size(dim) != 1) return repeat_interleave(*x, item(repeats).to_int(), dim, output_size);
  return index_select(*x, dim, *interleaved_indices(repeats, output_size));
}

TensorRef eye(std::int64_t n, std::optional<std::int64_t> m, std::optional<DType> dtype, Layout, Device,
              bool requires_grad, bool) {
  std::int64_t cols = m.value_or(n);
  check(n >= 0, "n must be greater or equal to 0, got ", n);
  check(cols >= 0, "m must be greater or equal to 0, got ", cols);
  TensorRef out = zeros(Dims{n, cols}, dtype.value_or(default_dtype));
  if (out->numel) {
    TensorRef ones_at = make_tensor(Ref<Storage>(out->storage), out->dtype, Dims{std::min(n, cols)}, Dims{cols + 1}, 0);
    fill_numbers(*ones_at, 1);
  }
  if (requires_grad) {
    check(is_differentiable(out->dtype), "Only Tensors of floating point and complex dtype can require gradients");
    out->set(RequiresGrad, true);
  }
  return out;
}
TensorRef eye_rectangular(std::int64_t n, std::int64_t m, std::optional<DType> dtype, Layout layout, Device device,
                          bool requires_grad, bool pin) {
  return eye(n, m, dtype, layout, device, requires_grad, pin);
}
TensorRef eye_square(std::int64_t n, std::optional<DType> dtype, Layout layout, Device device, bool requires_grad,
                     bool pin) {
  return eye(n, std::nullopt, dtype, layout, device, requires_grad, pin);
}

bool equal_tensors(const Tensor& a, const Tensor& b) {
  check(a.dtype == b.dtype, "Expected object of data type ", name(a.dtype), " but got data type ", name(b.dtype),
        " for argument 'other'");
  if (!same_sizes(a, b)) return false;
  if (a.storage == b.storage && a.offset == b.offset && equal(a.strides(), b.strides()) && category(a.dtype) < 2)
    return true;
  GradScope off(false);
  return all_true(*pointwise(pointwise_op("eq"), {Operand(a), Operand(b)}));
}

/// Numbers around the edges, or, for negative amounts, less than what was there. The derivative takes away what was
/// added: the same with all amounts negated.
TensorRef constant_pad(const Tensor& t, const Dims& pad, const Scalar& value) {
  check(pad.size() % 2 == 0, "Length of pad must be even but instead it equals ", pad.size());
  int dims = pad.size() / 2;
  check(dims <= t.ndim,
        "Length of pad should be no more than twice the number of dimensions of the input. Pad length is ", pad.size(),
        " while the input has ", int(t.ndim), " dimensions.");
  Dims sizes(t.sizes());
  GradScope off(false);
  TensorRef source(const_cast<Tensor*>(&t));
  for (int i = 0; i < dims; ++i) {
    int d = t.ndim - 1 - i;
    std::int64_t before = pad[2 * i], after = pad[2 * i + 1];
    sizes[d] += before + after;
    check(sizes[d] >= 0, "The input size ", t.size(d), ", plus negative padding ", before, " and ", after,
          ", resulted in a negative output size, which is invalid. Check dimension ", d, " of your input.");
    std::int64_t from = std::max<std::int64_t>(-before, 0), to = t.size(d) - std::max<std::int64_t>(-after, 0);
    source = narrow(*source, d, std::min(from, t.size(d)), std::max<std::int64_t>(to - from, 0));
  }
  TensorRef out = full(sizes, value, t.dtype), window = out;
  for (int i = 0; i < dims; ++i) {
    int d = t.ndim - 1 - i;
    window = narrow(*window, d, std::min(std::max<std::int64_t>(pad[2 * i], 0), sizes[d]), source->size(d));
  }
  copy_numbers(*window, *source);
  out = alias(*out);
  GradScope on(off.before);
  Dims negated(pad);
  for (auto& amount : negated) amount = -amount;
  return record("ConstantPadNdBackward0", out, {&t}, {},
                [negated](Vjp& v) { v.set(0, constant_pad(*v.grad(), negated, 0)); });
}

TensorList broadcast_all(const Tensors& tensors) {
  Dims sizes;
  for (const Tensor* t : tensors) sizes = broadcast_sizes(sizes, t->sizes());
  TensorList out;
  for (const Tensor* t : tensors) out.push_back(expand(*t, sizes));
  return out;
}

#define RUSHLIGHT_FACTORY \
  "dtype? dtype=None, layout layout=None, device device=None, bool requires_grad=False, bool pin_memory=False"

const Define arrangements[] = {
    {"flip(Tensor self, int[] dims)", &flip, Both, "The elements in reverse along dimensions."},
    {"fliplr(Tensor self)", &fliplr, Both, "flip along dimension 1."},
    {"flipud(Tensor self)", &flipud, Both, "flip along dimension 0."},
    {"roll(Tensor self, int[] shifts, int[] dims=[])", &roll, Both,
     "The elements moved along dimensions; what leaves at one end comes in at the other."},
    {"rot90(Tensor self, int k=1, int[] dims=[0, 1])", &rot90, Both, "A plane turned by 90 degrees k times."},
    {"tril(Tensor self, int diagonal=0)", &tril, Both | Inplace | Out, "Matrices with zeros above a diagonal."},
    {"triu(Tensor self, int diagonal=0)", &triu, Both | Inplace | Out, "Matrices with zeros below a diagonal."},
    {"repeat(Tensor self, int[] repeats)", &repeat, Method, "The tensor repeated along each dimension."},
    {"tile(Tensor self, int[] dims)", &tile, Both, "The tensor repeated along its last dimensions."},
    {"repeat_interleave(Tensor self, int repeats, int? dim=None, *, int? output_size=None)", &repeat_interleave, Both,
     "Each element (slice along dim) repeated."},
    {"repeat_interleave(Tensor self, Tensor repeats, int? dim=None, *, int? output_size=None)", &repeat_interleave_by,
     Both},
    {"repeat_interleave(Tensor repeats, *, int? output_size=None)", &interleaved_indices, Function},
    {"eye(int n, *, " RUSHLIGHT_FACTORY ")", &eye_square, Function | Out | NoGradient, "The identity matrix."},
    {"eye(int n, int m, *, " RUSHLIGHT_FACTORY ")", &eye_rectangular, Function | Out | NoGradient},
    {"constant_pad_nd(Tensor self, int[] pad, Scalar value=0)", &constant_pad, Function,
     "A number around the edges, from the last dimension on; negative amounts cut off."},
    {"_broadcast_tensors(Tensor[] tensors)", &broadcast_all, Function, "Views of one shape, by broadcasting."},
    {"equal(Tensor self, Tensor other)", &equal_tensors, Both | NoGradient,
     "Have two tensors the same shape and elements?"},
};

}  // namespace
}  // namespace rushlight
