// Order: sort, argsort, topk, kthvalue, median, mode. Values are gathered at the places found, so their derivative is
// that of a gather.
#include "kernels/sort.h"

#include <cmath>

#include "operators/along.h"
#include "operators/line.h"
#include "operators/registry.h"

namespace rushlight {
namespace {

using Pair = std::tuple<TensorRef, TensorRef>;

/// The values at `places` along `dim`, and the places: the values were found with them, so they are not gathered again.
Pair chosen(const char* name, const Tensor& t, TensorRef values, TensorRef places, int dim, bool keepdim) {
  if (is_differentiable(t.dtype))
    values =
        record(name, std::move(values), {&t}, {save_other(places)}, [dim, keepdim, from = Dims(t.sizes())](Vjp& v) {
          v.set(0, choice_vjp(*v.grad(), from, dim, *v.saved(0), keepdim));
        });
  return {values, places};
}

Pair sorted(const Tensor& t, int dim, bool descending) {
  TensorRef values = empty(t.sizes(), t.dtype), places = empty(t.sizes(), DType::Int64);
  auto [n, stride] = along(t, dim);
  auto to = along(*values, dim).stride;
  if (t.numel)
    visit_sortable(t.dtype, "sort", [&, n = n, stride = stride]<class T>() {
      for_each_line(dim, t, {values.get(), places.get()}, [&](char** p) {
        sort_line<T>({reinterpret_cast<const T*>(p[0]), stride}, n, descending, {reinterpret_cast<T*>(p[1]), to},
                     {reinterpret_cast<std::int64_t*>(p[2]), to});
      });
    });
  return chosen("SortBackward0", t, values, places, dim, true);
}

Pair sort(const Tensor& t, std::int64_t dim, bool descending) { return sorted(t, wrap_dim(dim, t.ndim), descending); }
Pair sort_stable(const Tensor& t, bool, std::int64_t dim, bool descending) { return sort(t, dim, descending); }
TensorRef argsort(const Tensor& t, std::int64_t dim, bool descending) {
  return std::get<1>(sort(*detach(t), dim, descending));
}
TensorRef argsort_stable(const Tensor& t, bool, std::int64_t dim, bool descending) {
  return argsort(t, dim, descending);
}
TensorRef msort(const Tensor& t) { return std::get<0>(sort(t, 0, false)); }

Pair topk(const Tensor& t, std::int64_t k, std::int64_t dim_, bool largest, bool in_order) {
  int dim = wrap_dim(dim_, t.ndim);
  auto [n, stride] = along(t, dim);
  check(k >= 0 && k <= n, "selected index k out of range");
  Dims sizes(t.sizes());
  if (t.ndim) sizes[dim] = k;
  TensorRef values = empty(sizes, t.dtype), places = empty(sizes, DType::Int64);
  auto to = along(*values, dim).stride;
  check(t.dtype != DType::Bool, "\"topk\" not implemented for 'Bool'");
  if (values->numel)
    visit_sortable(t.dtype, "topk", [&, n = n, stride = stride]<class T>() {
      if constexpr (!std::is_same_v<T, bool>)
        for_each_line(dim, t, {values.get(), places.get()}, [&](char** p) {
          topk_line<T>({reinterpret_cast<const T*>(p[0]), stride}, n, k, largest, in_order,
                       {reinterpret_cast<T*>(p[1]), to}, {reinterpret_cast<std::int64_t*>(p[2]), to});
        });
    });
  return chosen("TopkBackward0", t, values, places, dim, true);
}

/// One element of each line, chosen by `select(line, n)`.
template <class Select>
Pair select_one(const char* operation, const char* name, const Tensor& t, std::int64_t dim_, bool keepdim,
                Select select) {
  int dim = wrap_dim(dim_, t.ndim);
  auto [n, stride] = along(t, dim);
  check_index(n > 0, operation, "(): Expected reduction dim ", dim, " to have non-zero size.");
  check(t.dtype != DType::Bool || std::string_view(operation) == "mode", '"', operation,
        "\" not implemented for 'Bool'");
  Dims sizes(t.sizes());
  if (t.ndim) sizes[dim] = 1;
  TensorRef values = empty(sizes, t.dtype), places = empty(sizes, DType::Int64);
  if (t.numel)
    visit_sortable(t.dtype, operation, [&, n = n, stride = stride]<class T>() {
      for_each_line(dim, t, {values.get(), places.get()}, [&](char** p) {
        auto [value, index] = select.template operator()<T>(Line<const T>{reinterpret_cast<const T*>(p[0]), stride}, n);
        *reinterpret_cast<T*>(p[1]) = value;
        *reinterpret_cast<std::int64_t*>(p[2]) = index;
      });
    });
  if (!keepdim && t.ndim) {
    GradScope off(false);
    values = alias(*squeeze(*values, dim));
    places = alias(*squeeze(*places, dim));
  }
  return chosen(name, t, values, places, dim, keepdim);
}

Pair kthvalue(const Tensor& t, std::int64_t k, std::int64_t dim, bool keepdim) {
  std::int64_t n = along(t, wrap_dim(dim, t.ndim)).n;
  check(k >= 1 && k <= n, "kthvalue(): selected number k out of range for dimension ", dim);
  return select_one("kthvalue", "KthvalueBackward0", t, dim, keepdim,
                    [k]<class T>(Line<const T> line, std::int64_t count) -> Selected<T> {
                      if constexpr (std::is_same_v<T, bool>)
                        return {};
                      else
                        return kth_of_line<T>(line, count, k);
                    });
}

Pair median_dim(const Tensor& t, std::int64_t dim, bool keepdim) {
  return select_one("median", "MedianBackward1", t, dim, keepdim,
                    []<class T>(Line<const T> line, std::int64_t n) -> Selected<T> {
                      if constexpr (std::is_same_v<T, bool>)
                        return {};
                      else
                        return median_of_line<T>(line, n);
                    });
}
Pair nanmedian_dim(const Tensor& t, std::int64_t dim, bool keepdim) {
  return select_one("nanmedian", "NanmedianBackward1", t, dim, keepdim,
                    []<class T>(Line<const T> line, std::int64_t n) -> Selected<T> {
                      if constexpr (std::is_same_v<T, bool>)
                        return {};
                      else
                        return nanmedian_of_line<T>(line, n);
                    });
}
Pair mode(const Tensor& t, std::int64_t dim, bool keepdim) {
  return select_one("mode", "ModeBackward0", t, dim, keepdim,
                    []<class T>(Line<const T> line, std::int64_t n) { return mode_of_line<T>(line, n); });
}

/// Over all elements: the same on the flattened tensor; nothing at all gives NaN.
template <class Dim>
TensorRef over_all(const Tensor& t, Dim over_dim) {
  if (t.numel == 0) return full({}, Scalar(std::nan("")), t.dtype);
  return std::get<0>(over_dim(*reshape(t, Dims{-1}), 0, false));
}
TensorRef median_all(const Tensor& t) { return over_all(t, &median_dim); }
TensorRef nanmedian_all(const Tensor& t) { return over_all(t, &nanmedian_dim); }

const std::vector<std::string> fields = {"values", "indices"};

const Define orders[] = {
    {"sort(Tensor self, int dim=-1, bool descending=False)", &sort, Both | Out,
     "The elements in order along a dimension, and their places; NaN is greatest. Stable.", fields},
    {"sort(Tensor self, *, bool stable, int dim=-1, bool descending=False)", &sort_stable, Both | Out, "", fields},
    {"argsort(Tensor self, int dim=-1, bool descending=False)", &argsort, Both | NoGradient,
     "The places of the elements in order."},
    {"argsort(Tensor self, *, bool stable, int dim=-1, bool descending=False)", &argsort_stable, Both | NoGradient},
    {"msort(Tensor self)", &msort, Both | Out, "The elements in order along the first dimension."},
    {"topk(Tensor self, int k, int dim=-1, bool largest=True, bool sorted=True)", &topk, Both | Out,
     "The k largest (or smallest) elements along a dimension, and their places.", fields},
    {"kthvalue(Tensor self, int k, int dim=-1, bool keepdim=False)", &kthvalue, Both | Out,
     "The k-th smallest element along a dimension, and its place.", fields},
    {"median(Tensor self)", &median_all, Both, "The lower median; NaN where there is one."},
    {"median(Tensor self, int dim, bool keepdim=False)", &median_dim, Both | Out, "", fields},
    {"nanmedian(Tensor self)", &nanmedian_all, Both, "The lower median of what is not NaN."},
    {"nanmedian(Tensor self, int dim, bool keepdim=False)", &nanmedian_dim, Both | Out, "", fields},
    {"mode(Tensor self, int dim=-1, bool keepdim=False)", &mode, Both | Out,
     "The most frequent element along a dimension, and its last place.", fields},
};

}  // namespace
}  // namespace rushlight
