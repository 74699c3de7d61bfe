#include "tensor/tensor.h"

#include <cstring>
#include <numeric>

#include "autograd/variable.h"

namespace rushlight {

void set_geometry(Tensor* t, IntSpan sizes, IntSpan strides) {
  int n = int(sizes.size());
  check(n <= 64, "tensors have at most 64 dimensions, got ", n);
  std::int64_t* dims = n <= 4 ? t->inline_dims : new std::int64_t[std::size_t(n) * 2];
  std::int64_t numel = 1;
  for (int i = 0; i < n; ++i) {
    dims[i] = sizes[std::size_t(i)];
    dims[n + i] = strides[std::size_t(i)];
    numel *= dims[i];
  }
  if (t->dims && t->dims != t->inline_dims) delete[] t->dims;
  t->dims = dims;
  t->ndim = std::uint8_t(n);
  t->numel = numel;
  bool contiguous = true;
  std::int64_t step = 1;
  for (int i = n - 1; i >= 0 && contiguous; --i) {
    if (dims[i] == 1) continue;
    contiguous = dims[n + i] == step;
    step *= dims[i];
  }
  t->set(Contiguous, contiguous || numel == 0);
}

namespace {
Tensor* bare_tensor(Ref<Storage> storage, DType dtype, std::int64_t offset) {
  Tensor* t = tensor_allocate();
  t->storage = storage.detach();
  t->offset = offset;
  t->dims = nullptr;
  t->meta = nullptr;
  t->grad_fn_ = nullptr;
  t->output_nr = 0;
  t->dtype = dtype;
  t->flags = inference_mode() ? Inference : 0;
  return t;
}
}  // namespace

TensorRef make_tensor(Ref<Storage> storage, DType dtype, IntSpan sizes, IntSpan strides, std::int64_t offset) {
  auto t = TensorRef::adopt(bare_tensor(std::move(storage), dtype, offset));
  set_geometry(t.get(), sizes, strides);
  object_track(t.get());
  return t;
}

TensorRef empty(IntSpan sizes, DType dtype) {
  std::int64_t numel = count_elements(sizes), bytes;
  check(!__builtin_mul_overflow(numel, item_size(dtype), &bytes),
        "Storage size calculation overflowed with sizes=", to_string(sizes));
  Tensor* t = bare_tensor(new_storage(std::size_t(bytes)), dtype, 0);
  int n = int(sizes.size());
  if (n <= 4) {
    std::int64_t step = 1;
    t->dims = t->inline_dims;
    for (int i = n - 1; i >= 0; --i) {
      t->dims[i] = sizes[std::size_t(i)];
      t->dims[n + i] = step;
      step *= std::max<std::int64_t>(t->dims[i], 1);
    }
    t->ndim = std::uint8_t(n);
    t->numel = numel;
    t->flags |= Contiguous;
    object_track(t);
    return TensorRef::adopt(t);
  }
  auto owned = TensorRef::adopt(t);
  set_geometry(t, sizes, contiguous_strides(sizes));
  object_track(t);
  return owned;
}

TensorRef empty_strided(IntSpan sizes, IntSpan strides, DType dtype) {
  std::int64_t extent = count_elements(sizes) ? 1 : 0, bytes;
  bool overflow = false;
  for (std::size_t i = 0; extent && i < sizes.size(); ++i) {
    std::int64_t reach;
    check(strides[i] >= 0, "Trying to create a tensor with negative stride ", strides[i]);
    overflow |=
        __builtin_mul_overflow(sizes[i] - 1, strides[i], &reach) || __builtin_add_overflow(extent, reach, &extent);
  }
  overflow |= __builtin_mul_overflow(extent, item_size(dtype), &bytes);
  check(!overflow, "Storage size calculation overflowed with sizes=", to_string(sizes),
        " and strides=", to_string(strides));
  return make_tensor(new_storage(std::size_t(bytes)), dtype, sizes, strides, 0);
}

TensorRef empty_like(const Tensor& like, DType dtype) {
  if (like.is_contiguous()) return empty(like.sizes(), dtype);
  // keep the order of dimensions in memory, without gaps
  int n = like.ndim;
  Dims order(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    std::int64_t sa = like.stride(int(a)), sb = like.stride(int(b));
    return sa != 0 && sb != 0 && sa > sb;
  });
  Dims strides(n);
  std::int64_t step = 1;
  for (int k = n - 1; k >= 0; --k) {
    int i = int(order[k]);
    strides[i] = step;
    step *= std::max<std::int64_t>(like.size(i), 1);
  }
  return empty_strided(like.sizes(), strides, dtype);
}

TensorRef alias(const Tensor& t) {
  return make_tensor(Ref<Storage>(t.storage), t.dtype, t.sizes(), t.strides(), t.offset);
}

bool is_dense(const Tensor& t) {
  if (t.is_contiguous()) return true;
  Dims order(t.ndim);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](std::int64_t a, std::int64_t b) { return t.stride(int(a)) < t.stride(int(b)); });
  std::int64_t step = 1;
  for (auto i : order) {
    if (t.size(int(i)) == 1) continue;
    if (t.stride(int(i)) != step) return false;
    step *= t.size(int(i));
  }
  return true;
}

bool has_internal_overlap(const Tensor& t) {
  for (int i = 0; i < t.ndim; ++i)
    if (t.size(i) > 1 && t.stride(i) == 0) return t.numel > 0;
  return false;
}

Overlap memory_overlap(const Tensor& a, const Tensor& b) {
  if (a.numel == 0 || b.numel == 0) return Overlap::None;
  if (!is_dense(a) || !is_dense(b)) {
    if (a.storage == b.storage && a.offset == b.offset && equal(a.sizes(), b.sizes()) &&
        equal(a.strides(), b.strides()) && a.dtype == b.dtype)
      return Overlap::Full;
    return Overlap::None;  // too hard to tell, as PyTorch has it
  }
  // what is pending or laid out in another order is nobody else's memory
  if (a.storage != b.storage && (a.storage->pending || b.storage->pending)) return Overlap::None;
  auto begin = [&](const Tensor& t) {
    auto base = a.storage == b.storage ? 0 : std::intptr_t(t.storage->bytes);
    return base + t.offset * t.item_size();
  };
  std::intptr_t a0 = begin(a), b0 = begin(b), a1 = a0 + a.numel * a.item_size(), b1 = b0 + b.numel * b.item_size();
  if (a0 == b0 && a1 == b1) return equal(a.strides(), b.strides()) ? Overlap::Full : Overlap::Partial;
  return a0 < b1 && b0 < a1 ? Overlap::Partial : Overlap::None;
}

}  // namespace rushlight
