// Windows by sizes, strides and offset: as_strided, sliding windows, and the copies that write to a window.
#include <limits>
#include <numeric>

#include "kernels/nest.h"
#include "operators/operators.h"
#include "operators/registry.h"
#include "operators/view_form.h"

namespace rushlight {

namespace {
void check_window(const Tensor& t, IntSpan sizes, IntSpan strides, std::int64_t offset) {
  check(sizes.size() == strides.size(), "mismatch in length of strides and shape");
  check(offset >= 0, "Tensor: invalid storage offset ", offset);
  std::int64_t reach = offset + 1, part;
  bool overflow = false;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    check(strides[i] >= 0,
          "as_strided: Negative strides are not supported at the moment, got strides: ", to_string(strides));
    if (sizes[i] == 0) return;
    overflow |= __builtin_mul_overflow(sizes[i] - 1, strides[i], &part) || __builtin_add_overflow(reach, part, &reach);
  }
  check(!overflow && reach <= std::int64_t(t.storage->size) / t.item_size(), "setStorage: sizes ", to_string(sizes),
        ", strides ", to_string(strides), ", storage offset ", offset, ", and itemsize ", t.item_size(),
        " requiring a storage size of ", overflow ? -1 : reach * t.item_size(),
        " are out of bounds for storage of size ", t.storage->size);
}
}  // namespace

TensorRef as_strided(const Tensor& t, IntSpan sizes, IntSpan strides, std::int64_t offset) {
  count_elements(sizes);
  check_window(t, sizes, strides, offset);
  Dims x_sizes(t.sizes()), x_strides(t.strides()), w_sizes(sizes), w_strides(strides);
  return recorded_view("AsStridedBackward0", t, window(t, sizes, strides, offset), [=, x_offset = t.offset](Vjp& v) {
    v.set(0, as_strided_backward(*v.grad(), x_sizes, x_strides, x_offset, w_sizes, w_strides, offset));
  });
}

namespace {
/// numbers[position of element] += element, element by element: windows may overlap themselves.
void scatter_add_window(Tensor& memory, const Tensor& g, IntSpan strides, std::int64_t offset) {
  Dims source(g.strides());
  const std::int64_t* both[2] = {source.data(), strides.data()};
  std::int64_t item[2] = {g.item_size(), g.item_size()};
  char* base[2] = {const_cast<char*>(reinterpret_cast<const char*>(g.read())),
                   reinterpret_cast<char*>(memory.write()) + offset * g.item_size()};
  Nest nest(g.sizes(), both, item, 2);
  visit_dtype(g.dtype, [&]<class T>() {
    nest.run(base, 0, nest.numel, [&](char** p, std::int64_t n, const std::int64_t* steps) {
      for (std::int64_t i = 0; i < n; ++i) {
        T& to = *reinterpret_cast<T*>(p[1] + i * steps[1]);
        to = T(to + *reinterpret_cast<const T*>(p[0] + i * steps[0]));
      }
    });
  });
}

std::int64_t extent_of(IntSpan sizes, IntSpan strides) {
  std::int64_t extent = 1;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) return 0;
    extent += (sizes[i] - 1) * strides[i];
  }
  return extent;
}

bool overlaps_itself(IntSpan sizes, IntSpan strides) {
  Dims order(int(sizes.size()));
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](std::int64_t a, std::int64_t b) { return strides[std::size_t(a)] < strides[std::size_t(b)]; });
  std::int64_t reach = 0;
  for (auto i : order) {
    if (sizes[std::size_t(i)] <= 1) continue;
    if (strides[std::size_t(i)] <= reach) return true;
    reach += (sizes[std::size_t(i)] - 1) * strides[std::size_t(i)];
  }
  return false;
}
}  // namespace

TensorRef as_strided_backward(const Tensor& g, IntSpan x_sizes, IntSpan x_strides, std::int64_t x_offset, IntSpan sizes,
                              IntSpan strides, std::int64_t offset) {
  // the gradient of each place in memory, then read as x reads its places; a place that x shows several times gives
  // each of them an equal share
  std::int64_t first = std::min(x_offset, offset);
  std::int64_t extent =
      std::max(x_offset - first + extent_of(x_sizes, x_strides), offset - first + extent_of(sizes, strides));
  TensorRef memory = zeros(Dims{extent}, g.dtype);
  if (g.numel) scatter_add_window(*memory, g, strides, offset - first);
  Dims xs(x_sizes), xt(x_strides), ws(sizes), wt(strides);
  if (overlaps_itself(x_sizes, x_strides)) {
    GradScope off(false);
    TensorRef share = zeros(Dims{extent}, g.dtype), each = ones(x_sizes, g.dtype);
    scatter_add_window(*share, *each, x_strides, x_offset - first);
    static PointwiseOp& divide = pointwise_op("div");
    static PointwiseOp& larger = pointwise_op("maximum");
    share = pointwise(larger, {Operand(share), Operand(1.0)});
    memory = pointwise(divide, {Operand(memory), Operand(share)});
  }
  TensorRef out = empty(x_sizes, g.dtype);
  {
    GradScope off(false);
    TensorRef seen = make_tensor(Ref<Storage>(memory->storage), g.dtype, x_sizes, x_strides, x_offset - first);
    copy_numbers(*out, *seen);
  }
  return record("AsStridedBackwardBackward0", out, {&g}, {}, [=](Vjp& v) {
    TensorRef laid = to_geometry(*v.grad(), xs, xt);
    v.set(0, as_strided(*laid, ws, wt, laid->offset + offset - x_offset));
  });
}

TensorRef to_geometry(const Tensor& t, IntSpan sizes, IntSpan strides) {
  check(equal(t.sizes(), sizes), "the gradient has shape ", to_string(t.sizes()), ", expected ", to_string(sizes));
  if (equal(t.strides(), strides) && t.offset == 0) return TensorRef(const_cast<Tensor*>(&t));
  TensorRef out = empty_strided(sizes, strides, t.dtype);
  if (!is_dense(*out))
    fill_numbers(*make_tensor(Ref<Storage>(out->storage), t.dtype,
                              Dims{std::int64_t(out->storage->size) / t.item_size()}, Dims{1}, 0),
                 0);
  copy_numbers(*out, t);
  return record("CloneBackward0", out, {&t}, {}, [](Vjp& v) { v.set(0, v.grad()); });
}

TensorRef as_strided_scatter(const Tensor& t, const Tensor& window_numbers, IntSpan sizes, IntSpan strides,
                             std::int64_t offset) {
  TensorRef out = empty_strided(t.sizes(), t.strides(), t.dtype);
  check_window(*out, sizes, strides, offset);  // the result has no more memory than the tensor spans
  copy_numbers(*out, t);
  {
    GradScope off(false);
    TensorRef at = make_tensor(Ref<Storage>(out->storage), t.dtype, sizes, strides, offset);
    copy_numbers(*at, window_numbers);
  }
  Dims ts(t.sizes()), tt(t.strides()), ws(sizes), wt(strides);
  return record("AsStridedScatterBackward0", out, {&t, &window_numbers}, {}, [=](Vjp& v) {
    TensorRef g = to_geometry(*v.grad(), ts, tt);
    if (v.needs(0)) v.set(0, as_strided_scatter(*g, *zeros(ws, g->dtype), ws, wt, offset));
    if (v.needs(1)) v.set(1, contiguous(*as_strided(*g, ws, wt, g->offset + offset)));
  });
}

TensorRef unfold(const Tensor& t, std::int64_t dim_, std::int64_t size, std::int64_t step) {
  int dim = wrap_dim(dim_, t.ndim);
  std::int64_t have = t.ndim ? t.size(dim) : 1, gap = t.ndim ? t.stride(dim) : 1;
  check(size >= 0, "size is ", size, " but must be >= 0");
  check(size <= have, "maximum size for tensor at dimension ", dim, " is ", have, " but size is ", size);
  check(step > 0, "step is ", step, " but must be > 0");
  Dims sizes(t.sizes()), strides(t.strides());
  if (t.ndim) {
    sizes[dim] = (have - size) / step + 1;
    strides[dim] = step * gap;
  }
  sizes.push_back(size);
  strides.push_back(gap);
  return recorded_view("UnfoldBackward0", t, window(t, sizes, strides, t.offset),
                       [from = Dims(t.sizes()), dim, size, step](Vjp& v) {
                         v.set(0, unfold_backward(*v.grad(), from, dim, size, step));
                       });
}

TensorRef unfold_backward(const Tensor& g, IntSpan sizes, int dim, std::int64_t size, std::int64_t step) {
  TensorRef out = zeros(sizes, g.dtype);
  if (g.numel) {
    Dims strides(out->strides());
    std::int64_t gap = sizes.empty() ? 1 : strides[dim];
    if (!sizes.empty()) strides[dim] *= step;
    strides.push_back(gap);
    scatter_add_window(*out, g, strides, 0);
  }
  return record("UnfoldBackwardBackward0", out, {&g}, {},
                [dim, size, step](Vjp& v) { v.set(0, unfold(*v.grad(), dim, size, step)); });
}

// ---- copies that write to a window

namespace {

/// A copy of `t` in which `window_of` it shows `source`.
template <class Window>
TensorRef written_window(const char* name, const Tensor& t, const Tensor& source, Window window_of) {
  TensorRef out = copy_of(t);
  {
    GradScope off(false);
    TensorRef at = window_of(*out);
    check(equal(at->sizes(), source.sizes()),
          "expected src to have a size equal to the slice of self. src size = ", to_string(source.sizes()),
          ", slice size = ", to_string(at->sizes()));
    copy_numbers(*at, source);
  }
  if (!is_differentiable(t.dtype)) return out;
  return record(name, out, {&t, &source}, {}, [name, window_of, dtype = source.dtype](Vjp& v) {
    TensorRef shown = window_of(*v.grad());
    if (v.needs(0)) v.set(0, written_window(name, *v.grad(), *zeros(shown->sizes(), shown->dtype), window_of));
    if (v.needs(1)) v.set(1, cast(*shown, dtype));
  });
}

TensorRef select_scatter(const Tensor& t, const Tensor& source, std::int64_t dim, std::int64_t index) {
  return written_window("SelectScatterBackward0", t, source,
                        [dim, index](const Tensor& x) { return select(x, dim, index); });
}
TensorRef slice_scatter(const Tensor& t, const Tensor& source, std::int64_t dim, std::optional<std::int64_t> start,
                        std::optional<std::int64_t> end, std::int64_t step) {
  std::int64_t from = start.value_or(0), to = end.value_or(std::numeric_limits<std::int64_t>::max());
  return written_window("SliceScatterBackward0", t, source,
                        [=](const Tensor& x) { return slice(x, dim, from, to, step); });
}
TensorRef diagonal_scatter(const Tensor& t, const Tensor& source, std::int64_t offset, std::int64_t dim1,
                           std::int64_t dim2) {
  return written_window("DiagonalScatterBackward0", t, source,
                        [=](const Tensor& x) { return diagonal(x, offset, dim1, dim2); });
}
TensorRef as_strided_scatter_op(const Tensor& t, const Tensor& source, const Dims& size, const Dims& stride,
                                std::optional<std::int64_t> offset) {
  check(equal(source.sizes(), size),
        "expected src to have a size equal to the slice of self. src size = ", to_string(source.sizes()),
        ", slice size = ", size);
  return as_strided_scatter(t, source, size, stride, offset.value_or(t.offset) - t.offset);
}

TensorRef as_strided_op(const Tensor& t, const Dims& size, const Dims& stride, std::optional<std::int64_t> offset) {
  return as_strided(t, size, stride, offset.value_or(t.offset));
}

const Define windows[] = {
    {"as_strided(Tensor self, int[] size, int[] stride, int? storage_offset=None)", &as_strided_op, Both,
     "A view by sizes, strides and offset in the storage."},
    {"as_strided_copy(Tensor self, int[] size, int[] stride, int? storage_offset=None)", copied<&as_strided_op>,
     Function | Out, "A copy of as_strided."},
    {"unfold(Tensor self, int dimension, int size, int step)", &unfold, Method,
     "A view of sliding windows along a dimension."},
    {"unfold_copy(Tensor self, int dimension, int size, int step)", copied<&unfold>, Function | Out,
     "A copy of unfold."},
    {"select_scatter(Tensor self, Tensor src, int dim, int index)", &select_scatter, Both | Out,
     "A copy whose select(dim, index) is src."},
    {"slice_scatter(Tensor self, Tensor src, int dim=0, int? start=None, int? end=None, int step=1)", &slice_scatter,
     Both | Out, "A copy whose slice is src."},
    {"diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1)", &diagonal_scatter, Both | Out,
     "A copy whose diagonal is src."},
    {"as_strided_scatter(Tensor self, Tensor src, int[] size, int[] stride, int? storage_offset=None)",
     &as_strided_scatter_op, Both | Out, "A copy whose window is src."},
};

}  // namespace

}  // namespace rushlight
