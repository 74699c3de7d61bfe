#include "operators/view.h"

#include <limits>
#include <numeric>

#include "kernels/nest.h"
#include "operators/operators.h"
#include "operators/registry.h"
#include "operators/view_form.h"

namespace rushlight {

Dims broadcast_strides(const Tensor& t, IntSpan sizes) {
  int n = int(sizes.size()), lead = n - t.ndim;
  Dims strides(n);
  for (int i = 0; i < t.ndim; ++i)
    if (t.size(i) != 1 || sizes[std::size_t(lead + i)] == 1) strides[lead + i] = t.stride(i);
  return strides;
}

std::uint64_t dim_mask(IntSpan dims, int ndim) {
  std::uint64_t mask = 0;
  for (auto d : dims) {
    int w = wrap_dim(d, ndim);
    check(!((mask >> w) & 1), "dim ", w, " appears multiple times in the list of dims");
    mask |= std::uint64_t(1) << w;
  }
  return mask;
}

TensorRef expand(const Tensor& t, IntSpan wanted) {
  int n = int(wanted.size());
  check(n >= t.ndim, "expand(torch.", info(t.dtype).legacy, "{", to_string(t.sizes()), "}, size=", to_string(wanted),
        "): the number of sizes provided (", n,
        ") must be greater or equal to the number of dimensions in the tensor (", int(t.ndim), ")");
  Dims sizes(wanted), strides(n);
  int lead = n - t.ndim;
  for (int i = n - 1; i >= 0; --i) {
    std::int64_t have = i >= lead ? t.size(i - lead) : 1;
    if (sizes[i] == -1) {
      check(i >= lead, "The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension ", i);
      sizes[i] = have;
    }
    if (have == sizes[i]) {
      strides[i] = i >= lead ? t.stride(i - lead) : (i + 1 < n ? sizes[i + 1] * strides[i + 1] : 1);
    } else {
      check(have == 1, "The expanded size of the tensor (", sizes[i], ") must match the existing size (", have,
            ") at non-singleton dimension ", i, ".  Target sizes: ", to_string(wanted),
            ".  Tensor sizes: ", to_string(t.sizes()));
      check(sizes[i] >= 0, "Trying to create tensor with negative dimension ", sizes[i], ": ", to_string(wanted));
      strides[i] = 0;
    }
  }
  return recorded_view(
      "ExpandBackward0", t, window(t, sizes, strides, t.offset),
      by_rows([from = Dims(t.sizes())](Vjp& v) { v.set(0, sum_to_size(*v.grad(), from, v.has_rows())); }));
}

Dims infer_size(IntSpan wanted, std::int64_t numel) {
  Dims sizes(wanted);
  int open = -1;
  std::int64_t known = 1;
  for (int i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == -1) {
      check(open < 0, "only one dimension can be inferred");
      open = i;
    } else {
      check(sizes[i] >= 0, "invalid shape dimension ", sizes[i], " at index ", i, " of shape ", to_string(wanted));
      check(!__builtin_mul_overflow(known, sizes[i], &known), "shape '", to_string(wanted),
            "' is invalid for input of size ", numel);
    }
  }
  if (open >= 0) {
    check(known != 0 || numel != 0, "cannot reshape tensor of 0 elements into shape ", to_string(wanted),
          " because the unspecified dimension size -1 can be any value and is ambiguous");
    check(known != 0 && numel % known == 0, "shape '", to_string(wanted), "' is invalid for input of size ", numel);
    sizes[open] = numel / known;
  } else {
    check(known == numel, "shape '", to_string(wanted), "' is invalid for input of size ", numel);
  }
  return sizes;
}

namespace {

/// Strides with which `t`'s memory reads as `sizes`; false where it needs a copy.
bool view_strides(const Tensor& t, const Dims& sizes, Dims& strides) {
  if (t.is_contiguous()) {
    strides = contiguous_strides(sizes);
    return true;
  }
  strides = Dims(sizes.size());
  int at = sizes.size() - 1;
  std::int64_t chunk = t.stride(t.ndim - 1), have = 1, want = 1;
  for (int i = t.ndim - 1; i >= 0; --i) {
    have *= t.size(i);
    // a run of memory ends where the next dimension does not continue it
    if (i == 0 || (t.size(i - 1) != 1 && t.stride(i - 1) != have * chunk)) {
      while (at >= 0 && (want < have || sizes[at] == 1)) {
        strides[at] = want * chunk;
        want *= sizes[at];
        --at;
      }
      if (want != have) return false;
      if (i > 0) {
        chunk = t.stride(i - 1);
        have = want = 1;
      }
    }
  }
  return at == -1;
}

TensorRef view_as(const Tensor& t, const Dims& sizes, const Dims& strides) {
  return recorded_view("ViewBackward0", t, window(t, sizes, strides, t.offset),
                       by_rows([from = Dims(t.sizes())](Vjp& v) { v.set(0, reshape(*v.grad(), v.shape(from))); }));
}

}  // namespace

TensorRef view(const Tensor& t, IntSpan wanted) {
  Dims sizes = infer_size(wanted, t.numel), strides;
  check(view_strides(t, sizes, strides),
        "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
        "contiguous subspaces). Use .reshape(...) instead.");
  return view_as(t, sizes, strides);
}

TensorRef reshape(const Tensor& t, IntSpan wanted) {
  Dims sizes = infer_size(wanted, t.numel), strides;
  if (view_strides(t, sizes, strides)) return view_as(t, sizes, strides);
  TensorRef row_major = contiguous(t);
  return recorded_view("UnsafeViewBackward0", *row_major,
                       make_tensor(Ref<Storage>(row_major->storage), t.dtype, sizes, contiguous_strides(sizes), 0),
                       by_rows([from = Dims(t.sizes())](Vjp& v) { v.set(0, reshape(*v.grad(), v.shape(from))); }));
}

TensorRef permute(const Tensor& t, IntSpan wanted) {
  int n = t.ndim;
  check(int(wanted.size()) == n,
        "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
        "ordering of dimensions i.e. input.dim() = ",
        n, " is not equal to len(dims) = ", wanted.size());
  Dims sizes(n), strides(n), inverse(n), dims(n);
  std::uint64_t seen = 0;
  for (int i = 0; i < n; ++i) {
    int d = wrap_dim(wanted[std::size_t(i)], n);
    check(!((seen >> d) & 1), "permute(): duplicate dims are not allowed.");
    seen |= std::uint64_t(1) << d;
    dims[i] = d;
    inverse[d] = i;
    sizes[i] = t.size(d);
    strides[i] = t.stride(d);
  }
  return recorded_view("PermuteBackward0", t, window(t, sizes, strides, t.offset), by_rows([inverse](Vjp& v) {
                         Dims order(inverse);
                         if (v.has_rows()) {
                           for (auto& d : order) ++d;
                           order.insert(0, 0);
                         }
                         v.set(0, permute(*v.grad(), order));
                       }));
}

TensorRef transpose(const Tensor& t, std::int64_t first, std::int64_t second) {
  int a = wrap_dim(first, t.ndim), b = wrap_dim(second, t.ndim);
  Dims sizes(t.sizes()), strides(t.strides());
  if (t.ndim) {
    std::swap(sizes[a], sizes[b]);
    std::swap(strides[a], strides[b]);
  }
  return recorded_view("TransposeBackward0", t, window(t, sizes, strides, t.offset),
                       by_rows([a, b, one = t.ndim == 0](Vjp& v) {
                         v.set(0, one ? v.grad() : transpose(*v.grad(), v.dim(a), v.dim(b)));
                       }));
}

TensorRef select(const Tensor& t, std::int64_t dim_, std::int64_t index) {
  check_index(t.ndim > 0, "select() cannot be applied to a 0-dim tensor.");
  int dim = wrap_dim(dim_, t.ndim);
  std::int64_t n = t.size(dim);
  check_index(index >= -n && index < n, "select(): index ", index, " out of range for tensor of size ",
              to_string(t.sizes()), " at dimension ", dim);
  if (index < 0) index += n;
  Dims sizes(t.sizes()), strides(t.strides());
  std::int64_t offset = t.offset + index * strides[dim];
  sizes.erase(dim);
  strides.erase(dim);
  return recorded_view("SelectBackward0", t, window(t, sizes, strides, offset),
                       by_rows([from = Dims(t.sizes()), dim, index](Vjp& v) {
                         v.set(0, select_backward(*v.grad(), v.shape(from), v.dim(dim), index));
                       }));
}

TensorRef slice(const Tensor& t, std::int64_t dim_, std::int64_t start, std::int64_t end, std::int64_t step) {
  check(t.ndim > 0, "slice() cannot be applied to a 0-dim tensor.");
  int dim = wrap_dim(dim_, t.ndim);
  check_value(step > 0, "slice step must be positive");
  std::int64_t n = t.size(dim);
  if (start < 0) start += n;
  if (end < 0) end += n;
  start = std::clamp<std::int64_t>(start, 0, n);
  end = std::clamp<std::int64_t>(end, start, n);
  Dims sizes(t.sizes()), strides(t.strides());
  std::int64_t offset = t.offset + start * strides[dim];
  sizes[dim] = (end - start + step - 1) / step;
  strides[dim] *= step;
  return recorded_view("SliceBackward0", t, window(t, sizes, strides, offset),
                       by_rows([from = Dims(t.sizes()), dim, start, end, step](Vjp& v) {
                         v.set(0, slice_backward(*v.grad(), v.shape(from), v.dim(dim), start, end, step));
                       }));
}

TensorRef narrow(const Tensor& t, std::int64_t dim_, std::int64_t start, std::int64_t length) {
  check(t.ndim > 0, "narrow() cannot be applied to a 0-dim tensor.");
  check(length >= 0, "narrow(): length must be non-negative.");
  int dim = wrap_dim(dim_, t.ndim);
  std::int64_t n = t.size(dim);
  check_index(start >= -n && start <= n, "start out of range (expected to be in range of [", -n, ", ", n, "], but got ",
              start, ")");
  if (start < 0) start += n;
  check(start <= n - length, "start (", start, ") + length (", length, ") exceeds dimension size (", n, ").");
  return slice(t, dim, start, start + length, 1);
}

TensorRef squeeze(const Tensor& t, std::int64_t dim_) {
  int dim = wrap_dim(dim_, t.ndim);
  Dims sizes(t.sizes()), strides(t.strides());
  bool drops = t.ndim > 0 && sizes[dim] == 1;
  if (drops) {
    sizes.erase(dim);
    strides.erase(dim);
  }
  return recorded_view("SqueezeBackward1", t, window(t, sizes, strides, t.offset), by_rows([drops, dim](Vjp& v) {
                         v.set(0, drops ? unsqueeze(*v.grad(), v.dim(dim)) : v.grad());
                       }));
}

TensorRef unsqueeze(const Tensor& t, std::int64_t dim_) {
  int dim = wrap_dim(dim_, t.ndim + 1);
  Dims sizes(t.sizes()), strides(t.strides());
  strides.insert(dim, dim < t.ndim ? t.size(dim) * t.stride(dim) : 1);
  sizes.insert(dim, 1);
  return recorded_view("UnsqueezeBackward0", t, window(t, sizes, strides, t.offset),
                       by_rows([dim](Vjp& v) { v.set(0, squeeze(*v.grad(), v.dim(dim))); }));
}

TensorRef detach(const Tensor& t) {
  TensorRef out = alias(t);
  if (t.has(Volatile)) [[unlikely]]
    out->set(Volatile, true);
  return out;
}

TensorRef alias_view(const Tensor& t) {
  return recorded_view("AliasBackward0", t, window(t, t.sizes(), t.strides(), t.offset),
                       by_rows([](Vjp& v) { v.set(0, v.grad()); }));
}

// ---- derivatives

TensorRef sum_to_size(const Tensor& t, IntSpan sizes, bool has_rows) {
  if (has_rows) {
    Dims result(sizes), summed(sizes);
    result.insert(0, t.size(0));
    while (summed.size() < t.ndim - 1) summed.insert(0, 1);
    summed.insert(0, t.size(0));
    TensorRef out = sum_to_size(t, summed);
    return summed.size() > result.size() ? view(*out, result) : out;
  }
  if (equal(t.sizes(), sizes)) return TensorRef(const_cast<Tensor*>(&t));
  int lead = t.ndim - int(sizes.size());
  check(lead >= 0, "size {", to_string(sizes), "} is not expandable to size {", to_string(t.sizes()), "}.");
  Dims dims;
  for (int i = 0; i < t.ndim; ++i) {
    if (i < lead || (sizes[std::size_t(i - lead)] == 1 && t.size(i) != 1)) {
      dims.push_back(i);
    } else {
      check(sizes[std::size_t(i - lead)] == t.size(i), "size {", to_string(sizes), "} is not expandable to size {",
            to_string(t.sizes()), "}.");
    }
  }
  TensorRef out = dims.empty() ? TensorRef(const_cast<Tensor*>(&t)) : sum(t, dims, true);
  return lead > 0 ? view(*out, sizes) : out;
}

TensorRef select_backward(const Tensor& g, IntSpan sizes, int dim, std::int64_t index) {
  return padded("SelectBackwardBackward0", g, sizes, [dim, index](const Tensor& t) { return select(t, dim, index); });
}

TensorRef slice_backward(const Tensor& g, IntSpan sizes, int dim, std::int64_t start, std::int64_t end,
                         std::int64_t step) {
  return padded("SliceBackwardBackward0", g, sizes, [=](const Tensor& t) { return slice(t, dim, start, end, step); });
}

// ---- the operators

namespace {

TensorRef movedim(const Tensor& t, const Dims& source, const Dims& destination) {
  check(source.size() == destination.size(), "movedim: Invalid source or destination dims: source (", source,
        " dims) should contain the same number of dims as destination (", destination, " dims)");
  Dims order(t.ndim, -1);
  std::uint64_t from = 0;
  for (int i = 0; i < source.size(); ++i) {
    int s = wrap_dim(source[i], t.ndim), d = wrap_dim(destination[i], t.ndim);
    check(!((from >> s) & 1), "movedim: repeated dim in `source` (", source, ")");
    check(t.ndim == 0 || order[d] == -1, "movedim: repeated dim in `destination` (", destination, ")");
    from |= std::uint64_t(1) << s;
    if (t.ndim) order[d] = s;
  }
  for (int i = 0, next = 0; i < t.ndim; ++i) {
    if (order[i] >= 0) continue;
    while ((from >> next) & 1) ++next;
    order[i] = next++;
  }
  return permute(t, order);
}

TensorRef squeeze_all(const Tensor& t) {
  Dims sizes, strides;
  for (int i = 0; i < t.ndim; ++i)
    if (t.size(i) != 1) {
      sizes.push_back(t.size(i));
      strides.push_back(t.stride(i));
    }
  return recorded_view("SqueezeBackward0", t, window(t, sizes, strides, t.offset),
                       by_rows([from = Dims(t.sizes())](Vjp& v) { v.set(0, reshape(*v.grad(), v.shape(from))); }));
}

TensorRef squeeze_dims(const Tensor& t, const Dims& dims) {
  std::uint64_t mask = dim_mask(dims, t.ndim);
  Dims sizes, strides;
  for (int i = 0; i < t.ndim; ++i)
    if (t.size(i) != 1 || !((mask >> i) & 1)) {
      sizes.push_back(t.size(i));
      strides.push_back(t.stride(i));
    }
  return recorded_view("SqueezeBackward2", t, window(t, sizes, strides, t.offset),
                       by_rows([from = Dims(t.sizes())](Vjp& v) { v.set(0, reshape(*v.grad(), v.shape(from))); }));
}

TensorRef flatten(const Tensor& t, std::int64_t start_, std::int64_t end_) {
  if (t.ndim == 0) return reshape(t, Dims{1});
  int start = wrap_dim(start_, t.ndim), end = wrap_dim(end_, t.ndim);
  check(start <= end, "flatten() has invalid args: start_dim cannot come after end_dim");
  if (start == end) return TensorRef(const_cast<Tensor*>(&t));
  Dims sizes;
  std::int64_t run = 1;
  for (int i = 0; i < t.ndim; ++i) {
    if (i >= start && i <= end) {
      run *= t.size(i);
      if (i == end) sizes.push_back(run);
    } else {
      sizes.push_back(t.size(i));
    }
  }
  return reshape(t, sizes);
}

TensorRef t_op(const Tensor& t) {
  check(t.ndim <= 2, "t() expects a tensor with <= 2 dimensions, but self is ", int(t.ndim), "D");
  int last = t.ndim == 2 ? 1 : 0;
  Dims sizes(t.sizes()), strides(t.strides());
  if (last) {
    std::swap(sizes[0], sizes[1]);
    std::swap(strides[0], strides[1]);
  }
  return recorded_view("TBackward0", t, window(t, sizes, strides, t.offset), by_rows([last](Vjp& v) {
                         v.set(0, last ? transpose(*v.grad(), v.dim(0), v.dim(1)) : v.grad());
                       }));
}

TensorRef slice_op(const Tensor& t, std::int64_t dim, std::optional<std::int64_t> start,
                   std::optional<std::int64_t> end, std::int64_t step) {
  return slice(t, dim, start.value_or(0), end.value_or(std::numeric_limits<std::int64_t>::max()), step);
}

TensorRef expand_op(const Tensor& t, const Dims& size, bool) { return expand(t, size); }
TensorRef expand_op_plain(const Tensor& t, const Dims& size) { return expand(t, size); }
TensorRef view_op(const Tensor& t, const Dims& size) { return view(t, size); }
TensorRef reshape_op(const Tensor& t, const Dims& shape) { return reshape(t, shape); }
TensorRef permute_op(const Tensor& t, const Dims& dims) { return permute(t, dims); }
TensorRef expand_as(const Tensor& t, const Tensor& other) { return expand(t, other.sizes()); }
TensorRef view_as_op(const Tensor& t, const Tensor& other) { return view(t, other.sizes()); }
TensorRef reshape_as(const Tensor& t, const Tensor& other) { return reshape(t, other.sizes()); }
TensorRef sum_to_size_op(const Tensor& t, const Dims& size) { return sum_to_size(t, size); }
/// The same bytes read as another type; the last dimension grows or shrinks by the ratio of the types' sizes.
TensorRef view_type(const Tensor& t, DType dtype) {
  Dims sizes(t.sizes()), strides(t.strides());
  std::int64_t offset = t.offset, from = t.item_size(), to = item_size(dtype);
  if (from != to) {
    auto refuse = [&](bool condition, auto... what) {
      check(condition, "self.", what..., " to view ", info(t.dtype).scalar_name, " as ", info(dtype).scalar_name,
            " (different element sizes)");
    };
    auto refuse_got = [&](bool condition, std::int64_t got, auto... what) {
      check(condition, "self.", what..., " to view ", info(t.dtype).scalar_name, " as ", info(dtype).scalar_name,
            " (different element sizes), but got ", got);
    };
    refuse(t.ndim > 0, "dim() cannot be 0");
    refuse_got(strides.back() == 1, strides.back(), "stride(-1) must be 1");
    std::int64_t ratio = std::max(from, to) / std::min(from, to);
    for (int i = 0; i < t.ndim; ++i) {
      if (from > to) {
        strides[i] *= i == t.ndim - 1 ? 1 : ratio;
        continue;
      }
      if (i == t.ndim - 1) break;
      refuse_got(strides[i] % ratio == 0, strides[i], concat("stride(", i, ") must be divisible by ", ratio));
      strides[i] /= ratio;
    }
    if (from > to) {
      sizes.back() *= ratio;
      offset *= ratio;
    } else {
      refuse_got(sizes.back() % ratio == 0, sizes.back(), concat("size(-1) must be divisible by ", ratio));
      refuse_got(offset % ratio == 0, offset, concat("storage_offset() must be divisible by ", ratio));
      sizes.back() /= ratio;
      offset /= ratio;
    }
  }
  return make_tensor(Ref<Storage>(t.storage), dtype, sizes, strides, offset);
}

TensorRef movedim_int(const Tensor& t, std::int64_t source, std::int64_t destination) {
  return movedim(t, Dims{source}, Dims{destination});
}

TensorRef narrow_from(const Tensor& t, std::int64_t dim, const Tensor& start, std::int64_t length) {
  check(start.ndim == 0 && category(start.dtype) == 1, "start must be an 0-dim integral Tensor.");
  return narrow(t, dim, item(start).to_int(), length);
}

const Define views[] = {
    {"view(Tensor self, int[] size)", &view_op, Method,
     "The same numbers in another shape; raises where that needs a copy."},
    {"view(Tensor self, dtype dtype)", &view_type, Method},
    {"view_as(Tensor self, Tensor other)", &view_as_op, Method, "view(other.shape)"},
    {"reshape(Tensor self, int[] shape)", &reshape_op, Both,
     "The same numbers in another shape; a view where possible, else a copy."},
    {"reshape_as(Tensor self, Tensor other)", &reshape_as, Method, "reshape(other.shape)"},
    {"expand(Tensor self, int[] size, *, bool implicit=False)", &expand_op, Method,
     "A view that repeats dimensions of size 1 without copying."},
    {"expand_as(Tensor self, Tensor other)", &expand_as, Method, "expand(other.shape)"},
    {"broadcast_to(Tensor self, int[] size)", &expand_op_plain, Both, "expand(size)"},
    {"permute(Tensor self, int[] dims)", &permute_op, Both, "A view with the dimensions in another order."},
    {"transpose(Tensor self, int dim0, int dim1)", &transpose, Both, "A view with two dimensions exchanged."},
    {"swapaxes(Tensor self, int axis0, int axis1)", &transpose, Both, "The same as transpose."},
    {"swapdims(Tensor self, int dim0, int dim1)", &transpose, Both, "The same as transpose."},
    {"t(Tensor self)", &t_op, Both, "A matrix transposed; vectors as they are."},
    {"movedim(Tensor self, int source, int destination)", &movedim_int, Both, "A view with dimensions moved."},
    {"movedim(Tensor self, int[] source, int[] destination)", &movedim, Both},
    {"moveaxis(Tensor self, int source, int destination)", &movedim_int, Both, "The same as movedim."},
    {"moveaxis(Tensor self, int[] source, int[] destination)", &movedim, Both},
    {"select(Tensor self, int dim, int index)", &select, Both, "A view of one index along a dimension."},
    {"narrow(Tensor self, int dim, Tensor start, int length)", &narrow_from, Both,
     "A view of a range along a dimension."},
    {"narrow(Tensor self, int dim, int start, int length)", &narrow, Both},
    {"squeeze(Tensor self)", &squeeze_all, Both, "A view without dimensions of size 1."},
    {"squeeze(Tensor self, int dim)", &squeeze, Both},
    {"squeeze(Tensor self, int[] dim)", &squeeze_dims, Both},
    {"unsqueeze(Tensor self, int dim)", &unsqueeze, Both, "A view with a dimension of size 1 put in."},
    {"flatten(Tensor self, int start_dim=0, int end_dim=-1)", &flatten, Both,
     "Dimensions from start_dim to end_dim made one."},
    {"sum_to_size(Tensor self, int[] size)", &sum_to_size_op, Method,
     "The sum over dimensions that broadcasting from size would have added."},
    {"detach(Tensor self)", &detach, Both | NoGradient,
     "The same numbers, outside of the graph; shares the version counter."},
    {"alias(Tensor self)", &alias_view, Function, "A view of the whole tensor."},
    {"narrow_copy(Tensor self, int dim, int start, int length)", copied<&narrow>, Both | Out, "A copy of narrow."},
    {"alias_copy(Tensor self)", copied<&alias_view>, Function | Out, "A copy that gradients flow through."},
    {"detach_copy(Tensor self)", copied<&detach>, Function | Out | NoGradient, "A copy of detach."},
    {"expand_copy(Tensor self, int[] size, *, bool implicit=False)", copied<&expand_op>, Function | Out,
     "A copy of expand."},
    {"permute_copy(Tensor self, int[] dims)", copied<&permute_op>, Function | Out, "A copy of permute."},
    {"select_copy(Tensor self, int dim, int index)", copied<&select>, Function | Out, "A copy of select."},
    {"slice_copy(Tensor self, int dim=0, int? start=None, int? end=None, int step=1)", copied<&slice_op>,
     Function | Out, "A copy of slice."},
    {"squeeze_copy(Tensor self)", copied<&squeeze_all>, Function | Out, "A copy of squeeze."},
    {"squeeze_copy(Tensor self, int dim)", copied<&squeeze>, Function | Out},
    {"squeeze_copy(Tensor self, int[] dim)", copied<&squeeze_dims>, Function | Out},
    {"t_copy(Tensor self)", copied<&t_op>, Function | Out, "A copy of t."},
    {"transpose_copy(Tensor self, int dim0, int dim1)", copied<&transpose>, Function | Out, "A copy of transpose."},
    {"unsqueeze_copy(Tensor self, int dim)", copied<&unsqueeze>, Function | Out, "A copy of unsqueeze."},
    {"view_copy(Tensor self, int[] size)", copied<&view_op>, Function | Out, "A copy of view."},
    {"view_copy(Tensor self, dtype dtype)", copied<&view_type>, Function | Out},
};

}  // namespace

}  // namespace rushlight
