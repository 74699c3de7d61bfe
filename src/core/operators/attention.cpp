// Scaled dot product attention: by a kernel that keeps no matrix of scores where operands allow it, else composed of
// products and a softmax.
#include "kernels/attention.h"

#include <cmath>
#include <limits>
#include <vector>

#include "operators/operators.h"
#include "operators/recorded_vjp.h"
#include "operators/registry.h"

namespace rushlight {
namespace {

struct Options {
  double dropout = 0;
  bool causal = false;
  double scale = 1;
};

// ---- the formula

/// True where row i may see column j: on and below the diagonal.
TensorRef past(std::int64_t rows, std::int64_t columns) {
  TensorRef seen = empty(Dims{rows, columns}, DType::Bool);
  bool* to = seen->write_as<bool>();
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) to[i * columns + j] = j <= i;
  return seen;
}

/// Each head of `shared` as often as there are heads of queries for it.
TensorRef repeated_heads(const TensorRef& shared, std::int64_t heads) {
  int dim = shared->ndim - 3;
  if (shared->size(dim) >= heads) return shared;
  Dims wide(shared->sizes()), sizes(shared->sizes());
  sizes[dim] = heads;
  wide.insert(dim + 1, heads / shared->size(dim));
  return reshape(*expand(*unsqueeze(*shared, dim + 1), wide), sizes);
}

/// The scores under a mask, and which rows see no key: these keep their scores, for a finite derivative.
TensorRef masked(const TensorRef& scores, const TensorRef& mask, TensorRef& blind) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  bool chooses = mask->dtype == DType::Bool;
  TensorRef seen = chooses ? mask : ne(mask, Scalar(-infinity));
  blind = eq(sum(*seen, Dims{-1}, true), Scalar(0));
  if (chooses) return where(logical_or(mask, blind), scores, Scalar(-infinity));
  return add(*scores, *cast(*where(blind, Scalar(0.0), mask), scores->dtype));
}

TensorRef composed(const TensorRef& q, TensorRef k, TensorRef v, const TensorRef& mask, const Options& o) {
  for (TensorRef* shared : {&k, &v})
    if (q->ndim > 2 && (*shared)->ndim == q->ndim && (*shared)->size(q->ndim - 3) > 1)
      *shared = repeated_heads(*shared, q->size(q->ndim - 3));
  TensorRef scores = matmul(*mul(q, Scalar(o.scale)), *transpose(*k, -2, -1)), blind;
  if (o.causal)
    scores = where(past(q->size(q->ndim - 2), k->size(k->ndim - 2)), scores,
                   Scalar(-std::numeric_limits<double>::infinity()));
  else if (mask)
    scores = masked(scores, mask, blind);
  TensorRef weights = softmax(*scores, -1);
  if (o.dropout != 0) weights = dropout(*weights, o.dropout, true);
  TensorRef out = matmul(*weights, *v);
  return blind ? where(blind, Scalar(0.0), out) : out;
}

// ---- the kernel

/// Rows of numbers that lie together, or a copy of such.
TensorRef readable(const Tensor& t) {
  return t.stride(t.ndim - 1) == 1 ? TensorRef(const_cast<Tensor*>(&t)) : packed(t);
}

/// As PyTorch lays it out: the heads of a position beside each other.
TensorRef empty_heads(IntSpan sizes, DType dtype) {
  if (sizes.size() != 4) return empty(sizes, dtype);
  std::int64_t h = sizes[1], n = sizes[2], e = sizes[3];
  return empty_strided(sizes, Dims{n * h * e, e, h * e, 1}, dtype);
}

/// Where head number `head` of `heads` begins in `t`, whose dimension -3 may have fewer of them.
std::int64_t head_offset(const Tensor& t, IntSpan heads, std::int64_t head, std::int64_t share) {
  std::int64_t offset = 0;
  for (int d = int(heads.size()) - 1; d >= 0; --d) {
    std::int64_t at = head % heads[std::size_t(d)];
    head /= heads[std::size_t(d)];
    offset += (d == int(heads.size()) - 1 ? at / share : at) * t.stride(d);
  }
  return offset;
}

struct Operands {
  TensorRef q, k, v, mask, out, normalisers;
  std::int64_t share = 1;
  Dims heads;

  Operands(const Tensor& q_, const Tensor& k_, const Tensor& v_, const TensorRef& mask_)
      : q(readable(q_)), k(readable(k_)), v(readable(v_)), heads(q_.sizes().first(std::size_t(q_.ndim - 2))) {
    if (!heads.empty()) share = q->size(q->ndim - 3) / k->size(q->ndim - 3);
    if (mask_) {
      Dims sizes(q->sizes());
      sizes.back() = k->size(k->ndim - 2);
      mask = expand(*mask_, sizes);
    }
  }
  std::int64_t count() const { return count_elements(heads); }

  AttentionShape shape(const Options& o) const {
    return {q->size(q->ndim - 2), k->size(k->ndim - 2), q->size(q->ndim - 1), v->size(v->ndim - 1), o.causal, o.scale};
  }
  template <class T>
  HeadRows<T> rows(const TensorRef& t, std::int64_t head, bool shared) const {
    std::int64_t offset = head_offset(*t, heads, head, shared ? share : 1);
    if constexpr (std::is_const_v<T>)
      return {t->read_as<T>() + offset, t->stride(t->ndim - 2)};
    else
      return {t->write_as<T>() + offset, t->stride(t->ndim - 2)};
  }
  template <class T>
  HeadMask<T> head_mask(std::int64_t head) const {
    if (!mask) return {};
    std::int64_t offset = head_offset(*mask, heads, head, 1), row = mask->stride(mask->ndim - 2),
                 column = mask->stride(mask->ndim - 1);
    if (mask->dtype == DType::Bool) return {mask->read_as<bool>() + offset, nullptr, row, column};
    return {nullptr, mask->read_as<T>() + offset, row, column};
  }
  template <class T>
  std::vector<AttentionHead<T>> all() const {
    std::vector<AttentionHead<T>> list;
    std::int64_t length = q->size(q->ndim - 2);
    HeadRows<T> none;
    for (std::int64_t h = 0; h < count(); ++h)
      list.push_back({rows<const T>(q, h, false), rows<const T>(k, h, true), rows<const T>(v, h, true), head_mask<T>(h),
                      out ? rows<T>(out, h, false) : none, const_cast<T*>(normalisers->read_as<T>()) + h * length});
    return list;
  }
};

void set_gradients(Vjp& v, Operands& in, const Options& o) {
  DType dtype = in.q->dtype;
  TensorRef d_out = readable(*v.grad()), dq = empty_heads(in.q->sizes(), dtype), dk = empty_heads(in.k->sizes(), dtype),
            dv = empty_heads(in.v->sizes(), dtype);
  fill_numbers(*dk, 0);
  fill_numbers(*dv, 0);
  visit_wide(dtype, "scaled_dot_product_attention", [&]<class T>() {
    std::vector<AttentionHead<T>> heads = in.all<T>();
    std::vector<AttentionHeadVjp<T>> vjps;
    for (std::int64_t h = 0; h < in.count(); ++h)
      vjps.push_back({in.rows<const T>(d_out, h, false), in.rows<T>(dq, h, false), in.rows<T>(dk, h, true),
                      in.rows<T>(dv, h, true)});
    attention_backward<T>(in.shape(o), heads.data(), vjps.data(), in.count() / in.share, in.share);
  });
  v.set(0, dq);
  v.set(1, dk);
  v.set(2, dv);
}

void vjp(Vjp& v, const Options& o) {
  TensorRef mask = v.saved(5);
  if (differentiates())
    return recorded_vjp(v, {v.saved(0), v.saved(1), v.saved(2)},
                        [&](const TensorList& in) { return TensorList{composed(in[0], in[1], in[2], mask, o)}; });
  Operands in(*v.saved(0), *v.saved(1), *v.saved(2), mask);
  in.out = v.saved(3);
  in.normalisers = v.saved(4);
  set_gradients(v, in, o);
}

TensorRef fused(const Tensor& q, const Tensor& k, const Tensor& v, const TensorRef& mask, const Options& o) {
  TensorRef out;
  Operands in = [&] {
    GradScope off(false);
    return Operands(q, k, v, mask);
  }();
  Dims sizes(q.sizes());
  sizes.back() = v.size(v.ndim - 1);
  in.out = out = empty_heads(sizes, q.dtype);
  in.normalisers = empty(q.sizes().first(std::size_t(q.ndim - 1)), q.dtype);
  visit_wide(q.dtype, "scaled_dot_product_attention", [&]<class T>() {
    attention_forward<T>(in.shape(o), in.all<T>().data(), in.count() / in.share, in.share);
  });
  return record(
      "ScaledDotProductFlashAttentionForCpuBackward0", out, {&q, &k, &v},
      {save_in(q, 0), save_in(k, 1), save_in(v, 2), save_out(out), save_other(in.normalisers), save_other(mask)},
      [o](Vjp& v) { vjp(v, o); });
}

bool fits_kernel(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor* mask, const Options& o) {
  if ((q.dtype != DType::Float32 && q.dtype != DType::Float64) || o.dropout != 0) return false;
  if (mask && (needs_record(*mask) || mask->ndim > q.ndim)) return false;
  if (k.ndim != q.ndim || v.ndim != q.ndim || !q.numel || !k.numel || !v.numel) return false;
  int n = q.ndim;
  bool same_heads = n == 2 || k.size(n - 3) == v.size(n - 3);  // fewer than of q: grouped, as the checks saw to
  for (int d = 0; d + 3 < n; ++d) same_heads = same_heads && q.size(d) == k.size(d) && q.size(d) == v.size(d);
  if (n > 2) same_heads = same_heads && k.size(n - 3) && q.size(n - 3) % k.size(n - 3) == 0;
  return same_heads && q.size(n - 1) == k.size(n - 1) && k.size(n - 2) == v.size(n - 2);
}

// ---- the operator

void check_operands(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor* mask, bool causal) {
  auto torch_name = [](const Tensor& t) { return "torch." + std::string(rushlight::name(t.dtype)); };
  check(q.dtype == k.dtype && k.dtype == v.dtype,
        "Expected query, key, and value to have the same dtype, but got query.dtype: ", torch_name(q),
        " key.dtype: ", torch_name(k), " and value.dtype: ", torch_name(v), " instead.");
  check(q.ndim >= 2 && k.ndim >= 2 && v.ndim >= 2,
        "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: ", int(q.ndim),
        " key.dim: ", int(k.ndim), " and value.dim: ", int(v.ndim), " instead.");
  if (!mask) return;
  check(!causal, "scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True");
  check(mask->dtype == DType::Bool || mask->dtype == DType::Float32 || mask->dtype == q.dtype,
        "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: ",
        torch_name(*mask), " and  query.dtype: ", torch_name(q), " instead.");
  check_index(mask->ndim >= 2, "Dimension out of range (expected an attn_mask with 2 or more dimensions, but got ",
              int(mask->ndim), ")");
}

void check_mask_shape(const Tensor& q, const Tensor& k, const Tensor& mask) {
  Dims scores(q.sizes());
  scores.back() = k.size(k.ndim - 2);
  if (k.ndim > q.ndim) return;  // the keys' batches broadcast: the product tells
  Dims with_mask = broadcast_sizes(scores, mask.sizes());
  check(with_mask.size() == scores.size() && (with_mask == scores || k.numel == 0), "output with shape ", scores,
        " doesn't match the broadcast shape ", with_mask, " of an attn_mask of ", to_string(mask.sizes()));
}

void check_heads(const Tensor& q, const Tensor& k, const Tensor& v, bool grouped) {
  if (!grouped) {
    for (const Tensor* t : {&k, &v})
      check(q.ndim < 3 || t->ndim < 3 || q.size(q.ndim - 3) == t->size(t->ndim - 3) || t->size(t->ndim - 3) == 1 ||
                q.size(q.ndim - 3) == 1,
            "The size of tensor a (", q.size(q.ndim - 3), ") must match the size of tensor b (", t->size(t->ndim - 3),
            ") at non-singleton dimension ", q.ndim - 3);
    return;
  }
  for (const Tensor* t : {&q, &k, &v}) wrap_dim(-3, t->ndim);
  std::int64_t heads = q.size(q.ndim - 3);
  for (const Tensor* t : {&k, &v})
    check(t->size(t->ndim - 3) && heads % t->size(t->ndim - 3) == 0,
          "Number of heads in key and value must divide the number of heads in query, got ", k.size(k.ndim - 3),
          " and ", v.size(v.ndim - 3), " for ", heads);
}

TensorRef attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor* mask, double dropout, bool causal,
                    std::optional<double> scale, bool grouped) {
  check_operands(q, k, v, mask, causal);
  check_heads(q, k, v, grouped);
  if (mask) check_mask_shape(q, k, *mask);
  std::int64_t width = q.size(q.ndim - 1);
  Options o{dropout, causal, scale ? *scale : width ? 1 / std::sqrt(double(width)) : 1};
  TensorRef given(const_cast<Tensor*>(mask));
  if (fits_kernel(q, k, v, mask, o))
    return fused(q, k, v, mask && mask->dtype != DType::Bool ? cast(*mask, q.dtype) : given, o);
  auto ref = [](const Tensor& t) { return TensorRef(const_cast<Tensor*>(&t)); };
  return composed(ref(q), ref(k), ref(v), given, o);
}

const Define attentions[] = {
    {"scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float "
     "dropout_p=0.0, "
     "bool is_causal=False, *, float? scale=None, bool enable_gqa=False)",
     &attention, NnFunction,
     "softmax(scale query key^T + mask) value: (..., L, E), (..., S, E), (..., S, V) to (..., L, V). scale is "
     "1/sqrt(E) "
     "by default. attn_mask broadcasts to (..., L, S): true where a position takes part, or numbers to add; is_causal "
     "lets position i see the keys up to i, and excludes a mask. A row that sees no key is 0. dropout_p drops weights "
     "(always, not only in training). With enable_gqa the heads, dimension -3, of key and value are each used by "
     "several of query, whose number they divide. Fewer than two dimensions, differing dtypes, and a mask of integers "
     "are a RuntimeError."},
};

}  // namespace
}  // namespace rushlight
