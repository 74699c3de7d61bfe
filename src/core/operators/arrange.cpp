// The same numbers in another order, or repeated.
#include "operators/arrange.h"

#include <algorithm>
#include <cstring>

#include "operators/operators.h"
#include "operators/registry.h"
#include "operators/view_form.h"
#include "tensor/format.h"

namespace rushlight {
namespace {

TensorRef borrowed(const Tensor& t) { return TensorRef(const_cast<Tensor*>(&t)); }

/// A window of the storage that no one follows: what kernels copy from and to.
TensorRef raw_window(const Tensor& t, IntSpan sizes, IntSpan strides, std::int64_t offset) {
  return make_tensor(Ref<Storage>(t.storage), t.dtype, sizes, strides, offset);
}

TensorRef flipped(const Tensor& t, std::uint64_t mask) {
  TensorRef out = empty_like(t, t.dtype);
  if (t.numel == 0) return out;
  Dims strides(t.strides());
  std::int64_t offset = t.offset;
  for (int i = 0; i < t.ndim; ++i)
    if ((mask >> i) & 1) {
      offset += (t.size(i) - 1) * strides[i];
      strides[i] = -strides[i];
    }
  copy_numbers(*out, *raw_window(t, t.sizes(), strides, offset));
  return out;
}

}  // namespace

TensorRef flip(const Tensor& t, const Dims& dims) {
  TensorRef out = flipped(t, dim_mask(dims, t.ndim));
  if (!is_differentiable(t.dtype)) return out;
  return record("FlipBackward0", out, {&t}, {}, [dims](Vjp& v) { v.set(0, flip(*v.grad(), dims)); });
}

namespace {

TensorRef fliplr(const Tensor& t) {
  check(t.ndim >= 2, "Input must be >= 2-d.");
  return flip(t, Dims{1});
}
TensorRef flipud(const Tensor& t) {
  check(t.ndim >= 1, "Input must be >= 1-d.");
  return flip(t, Dims{0});
}

/// Along one dimension: the last `shift` elements come first.
TensorRef rolled(const Tensor& t, std::int64_t shift, int dim) {
  MemoryFormat format = suggested_format(t);
  TensorRef out = empty_strided(t.sizes(), format_strides(t.sizes(), format), t.dtype);
  std::int64_t n = t.size(dim);
  if (t.numel == 0) return out;
  shift = (shift % n + n) % n;
  Dims sizes(t.sizes());
  auto move = [&](std::int64_t from, std::int64_t to, std::int64_t count) {
    if (count == 0) return;
    sizes[dim] = count;
    TensorRef place = raw_window(*out, sizes, out->strides(), to * out->stride(dim));
    copy_numbers(*place, *raw_window(t, sizes, t.strides(), t.offset + from * t.stride(dim)));
  };
  move(0, shift, n - shift);
  move(n - shift, 0, shift);
  return out;
}

TensorRef roll(const Tensor& t, const Dims& shifts, const Dims& dims) {
  check(!shifts.empty(), "`shifts` required");
  TensorRef out;
  if (dims.empty()) {
    check(shifts.size() == 1, "shifts and dimensions must align. shifts: ", shifts.size(), ", dims:0");
    TensorRef x = packed(t), line = raw_window(*x, Dims{x->numel}, Dims{1}, x->offset);
    TensorRef moved = rolled(*line, shifts[0], 0);
    out = raw_window(*moved, t.sizes(), contiguous_strides(t.sizes()), 0);
  } else {
    check(shifts.size() == dims.size(), "shifts and dimensions must align. shifts: ", shifts.size(),
          ", dims:", dims.size());
    check_index(t.ndim > 0, "Dimension specified as ", dims[0], " but tensor has no dimensions");
    out = borrowed(t);
    for (int i = 0; i < dims.size(); ++i) out = rolled(*out, shifts[i], wrap_dim(dims[i], t.ndim));
  }
  if (!is_differentiable(t.dtype)) return out;
  Dims back(shifts);
  for (auto& s : back) s = -s;
  return record("RollBackward0", out, {&t}, {}, [back, dims](Vjp& v) { v.set(0, roll(*v.grad(), back, dims)); });
}

TensorRef rot90(const Tensor& t, std::int64_t k, const Dims& dims) {
  check(dims.size() == 2, "expected total rotation dims == 2, but got dims = ", dims.size());
  check(t.ndim >= 2, "expected total dims >= 2, but got total dims = ", int(t.ndim));
  int a = wrap_dim(dims[0], t.ndim), b = wrap_dim(dims[1], t.ndim);
  check(a != b, "expected rotation dims to be different, but got dim0 = ", dims[0], " and dim1 = ", dims[1]);
  std::int64_t quarter = (k % 4 + 4) % 4;
  auto bit = [](int d) { return std::uint64_t(1) << d; };
  TensorRef out;
  if (quarter == 0) {
    out = empty(t.sizes(), t.dtype);
    copy_numbers(*out, t);
  } else {
    out = flipped(t, quarter == 1 ? bit(b) : quarter == 2 ? bit(a) | bit(b) : bit(a));
  }
  if (quarter % 2) {
    Dims sizes(out->sizes()), strides(out->strides());
    std::swap(sizes[a], sizes[b]);
    std::swap(strides[a], strides[b]);
    out = raw_window(*out, sizes, strides, 0);
  }
  if (!is_differentiable(t.dtype)) return out;
  return record("Rot90Backward0", out, {&t}, {},
                [quarter, dims](Vjp& v) { v.set(0, rot90(*v.grad(), -quarter, dims)); });
}

// ---- repeated

/// Repetitions as dimensions of their own: (r0, s0, r1, s1, ...).
Dims paired(IntSpan repeats, IntSpan sizes) {
  Dims out;
  std::size_t lead = repeats.size() - sizes.size();
  for (std::size_t i = 0; i < repeats.size(); ++i) {
    out.push_back(repeats[i]);
    out.push_back(i < lead ? 1 : sizes[i - lead]);
  }
  return out;
}

TensorRef repeat(const Tensor& t, const Dims& repeats) {
  check(repeats.size() >= t.ndim,
        "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor");
  int lead = repeats.size() - t.ndim;
  Dims sizes(repeats), strides;
  for (int i = 0; i < t.ndim; ++i) sizes[lead + i] *= t.size(i);
  TensorRef out = empty(sizes, t.dtype);
  Dims pairs = paired(repeats, t.sizes());
  if (out->numel) {
    for (int i = 0; i < repeats.size(); ++i) {
      strides.push_back(0);
      strides.push_back(i < lead ? 0 : t.stride(i - lead));
    }
    TensorRef place = raw_window(*out, pairs, contiguous_strides(pairs), 0);
    copy_numbers(*place, *raw_window(t, pairs, strides, t.offset));
  }
  if (!is_differentiable(t.dtype)) return out;
  return record("RepeatBackward0", out, {&t}, {}, [pairs, from = Dims(t.sizes())](Vjp& v) {
    if (v.grad()->numel == 0) return v.set(0, zeros(from, v.grad()->dtype));
    Dims times;
    for (int i = 0; i < pairs.size(); i += 2) times.push_back(i);
    TensorRef g = reshape(*v.grad(), pairs);
    v.set(0, reshape(*(times.empty() ? g : sum(*g, times)), from));
  });
}

TensorRef tile(const Tensor& t, const Dims& dims) {
  Dims repeats;
  for (int i = dims.size(); i < t.ndim; ++i) repeats.push_back(1);
  for (auto d : dims) repeats.push_back(d);
  return repeat(t, repeats);
}

/// Position i as often as repeats[i] says.
TensorRef repeated_positions(const Tensor& repeats, std::optional<std::int64_t> output_size) {
  check(repeats.ndim == 1, "repeat_interleave only accept 1D vector as repeat");
  if (repeats.dtype != DType::Int64 && repeats.dtype != DType::Int32)
    fail(ErrorKind::NotImplemented, "\"repeat_interleave_cpu\" not implemented for '", info(repeats.dtype).scalar_name,
         "'");
  GradScope off(false);
  TensorRef counts = packed(*cast(repeats, DType::Int64));
  const auto* p = counts->read_as<std::int64_t>();
  std::int64_t total = 0;
  for (std::int64_t i = 0; i < counts->numel; ++i) {
    check(p[i] >= 0, "repeats can not be negative");
    total += p[i];
  }
  check(!output_size || *output_size == total, "allocated size does not match required size");
  TensorRef out = empty(Dims{total}, DType::Int64);
  auto* to = out->write_as<std::int64_t>();
  for (std::int64_t i = 0; i < counts->numel; ++i) to = std::fill_n(to, p[i], i);
  return out;
}

TensorRef repeat_interleave_positions(const Tensor& repeats, std::optional<std::int64_t> output_size) {
  return cast(*repeated_positions(repeats, output_size), repeats.dtype);
}

TensorRef repeat_interleave_number(const Tensor& t, std::int64_t repeats, std::optional<std::int64_t> dim_,
                                   std::optional<std::int64_t> output_size) {
  TensorRef x = dim_ ? borrowed(t) : reshape(t, Dims{-1});
  if (dim_ && x->ndim == 0) x = reshape(t, Dims{1});
  check(repeats >= 0, "Repeats must be non-negative");
  int dim = wrap_dim(dim_.value_or(0), x->ndim);
  check(!output_size || *output_size == x->size(dim) * repeats, "repeat_interleave: Invalid output_size, expected ",
        x->size(dim) * repeats, " but got ", output_size.value_or(0));
  Dims wide(x->sizes()), sizes(x->sizes());
  wide.insert(dim + 1, repeats);
  sizes[dim] *= repeats;
  return view(*own_copy(*expand(*unsqueeze(*x, dim + 1), wide)), sizes);
}

TensorRef repeat_interleave_tensor(const Tensor& t, const Tensor& repeats, std::optional<std::int64_t> dim_,
                                   std::optional<std::int64_t> output_size) {
  TensorRef x = dim_ ? borrowed(t) : reshape(t, Dims{-1});
  if (x->ndim == 0) x = reshape(t, Dims{1});
  int dim = wrap_dim(dim_.value_or(0), x->ndim);
  check(repeats.ndim <= 1, "repeats must be 0-dim or 1-dim tensor");
  TensorRef counts = borrowed(repeats);
  {
    GradScope off(false);
    if (repeats.numel == 1)
      counts = expand(*view(*packed(repeats), Dims{1}), Dims{x->size(dim)});
    else
      check(repeats.size(0) == x->size(dim),
            "repeats must have the same size as input along dim, but got repeats.size(0) = ", repeats.size(0),
            " and input.size(", dim, ") = ", x->size(dim));
  }
  return index_select(*x, dim, *repeated_positions(*counts, output_size));
}

// ---- triangles

/// Sets what lies above the k-th diagonal (where not `lower`: below it) to 0 in every matrix.
void clear_triangle(Tensor& t, std::int64_t k, bool lower) {
  int n = t.ndim;
  std::int64_t rows = t.size(n - 2), columns = t.size(n - 1), item = t.item_size();
  std::int64_t row_step = t.stride(n - 2) * item, column_step = t.stride(n - 1) * item;
  if (t.numel == 0) return;
  auto* base = reinterpret_cast<char*>(t.write());
  std::int64_t matrices = t.numel / (rows * columns);
  for (std::int64_t m = 0; m < matrices; ++m) {
    std::int64_t rest = m, at = 0;
    for (int d = n - 3; d >= 0; --d) {
      at += rest % t.size(d) * t.stride(d) * item;
      rest /= t.size(d);
    }
    for (std::int64_t i = 0; i < rows; ++i) {
      std::int64_t begin = lower ? std::clamp<std::int64_t>(i + k + 1, 0, columns) : 0,
                   end = lower ? columns : std::clamp<std::int64_t>(i + k, 0, columns);
      char* row = base + at + i * row_step;
      if (column_step == item)
        std::memset(row + begin * item, 0, std::size_t((end - begin) * item));
      else
        for (std::int64_t j = begin; j < end; ++j) std::memset(row + j * column_step, 0, std::size_t(item));
    }
  }
}

TensorRef triangle(const Tensor& t, std::int64_t k, bool lower) {
  check(t.ndim >= 2, lower ? "tril" : "triu", ": input tensor must have at least 2 dimensions");
  TensorRef out = empty(t.sizes(), t.dtype);
  copy_numbers(*out, t);
  clear_triangle(*out, k, lower);
  if (!is_differentiable(t.dtype)) return out;
  auto derivative = by_rows([k, lower](Vjp& v) { v.set(0, triangle(*v.grad(), k, lower)); });
  return lower ? record("TrilBackward0", out, {&t}, {}, derivative)
               : record("TriuBackward0", out, {&t}, {}, derivative);
}

TensorRef triangle_(Tensor& t, std::int64_t k, bool lower) {
  check(t.ndim >= 2, lower ? "tril" : "triu", ": input tensor must have at least 2 dimensions");
  bool records = is_differentiable(t.dtype) && needs_record(t);
  check_inplace(t, wants_gradients(t));
  refuse_overlapping_write(t);
  Ref<Node> node;
  if (records) {
    const Tensor* inputs[] = {&t};
    node = make_lambda_node(lower ? "TrilBackward0" : "TriuBackward0", inputs, {}, 1,
                            [k, lower](Vjp& v) { v.set(0, triangle(*v.grad(), k, lower)); });
  }
  clear_triangle(t, k, lower);
  finish_inplace(t, std::move(node), lower ? "tril_" : "triu_");
  return TensorRef(&t);
}

TensorRef tril(const Tensor& t, std::int64_t k) { return triangle(t, k, true); }
TensorRef triu(const Tensor& t, std::int64_t k) { return triangle(t, k, false); }
TensorRef tril_(Tensor& t, std::int64_t k) { return triangle_(t, k, true); }
TensorRef triu_(Tensor& t, std::int64_t k) { return triangle_(t, k, false); }

TensorRef kron(const Tensor& a, const Tensor& b) {
  static PointwiseOp& times = pointwise_op("mul");
  int n = std::max(a.ndim, b.ndim);
  Dims left, right, sizes;
  for (int i = 0; i < n; ++i) {
    std::int64_t x = i < n - a.ndim ? 1 : a.size(i - n + a.ndim), y = i < n - b.ndim ? 1 : b.size(i - n + b.ndim);
    left.push_back(x);
    left.push_back(1);
    right.push_back(1);
    right.push_back(y);
    sizes.push_back(x * y);
  }
  return reshape(*pointwise(times, {Operand(reshape(a, left)), Operand(reshape(b, right))}), sizes);
}

const Define arrangements[] = {
    {"flip(Tensor self, int[] dims)", &flip, Both, "Dimensions run backwards."},
    {"fliplr(Tensor self)", &fliplr, Both, "flip along dimension 1."},
    {"flipud(Tensor self)", &flipud, Both, "flip along dimension 0."},
    {"roll(Tensor self, int[1] shifts, int[1] dims=[])", &roll, Both,
     "Elements moved along dimensions; what leaves at an end comes in at the other."},
    {"rot90(Tensor self, int k=1, int[] dims=[0,1])", &rot90, Both, "A plane turned by k quarters."},
    {"repeat(Tensor self, int[] repeats)", &repeat, Method, "The tensor repeated along dimensions."},
    {"tile(Tensor self, int[] dims)", &tile, Both, "repeat, with 1 for the leading dimensions that are not named."},
    {"repeat_interleave(Tensor repeats, *, int? output_size=None)", &repeat_interleave_positions, Function,
     "Each element repeated; of counts alone the positions."},
    {"repeat_interleave(Tensor self, int repeats, int? dim=None, *, int? output_size=None)", &repeat_interleave_number,
     Both},
    {"repeat_interleave(Tensor self, Tensor repeats, int? dim=None, *, int? output_size=None)",
     &repeat_interleave_tensor, Both},
    {"tril(Tensor self, int diagonal=0)", &tril, Both | Out, "Matrices with zeros above a diagonal."},
    {"triu(Tensor self, int diagonal=0)", &triu, Both | Out, "Matrices with zeros below a diagonal."},
    {"tril_(Tensor self, int diagonal=0)", &tril_, Method, "tril in place."},
    {"triu_(Tensor self, int diagonal=0)", &triu_, Method, "triu in place."},
    {"kron(Tensor self, Tensor other)", &kron, Both | Out, "The Kronecker product."},
};

}  // namespace

}  // namespace rushlight
