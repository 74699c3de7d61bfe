// Order along a dimension: sort, topk, kthvalue, median, mode. Each finds values and their places; the derivative puts
// gradients back at those places.
#include "kernels/sort.h"

#include <cmath>

#include "operators/along.h"
#include "operators/line.h"
#include "operators/registry.h"

namespace rushlight {
namespace {

using Pair = std::array<TensorRef, 2>;

/// Room for values and places of `length` elements per line, and the stride along `dim` of both.
struct Found {
  Pair parts;
  std::int64_t stride;
  Found(const Tensor& t, int dim, std::int64_t length) {
    Dims sizes(t.sizes());
    if (t.ndim) sizes[dim] = length;
    parts = {empty(sizes, t.dtype), empty(sizes, DType::Int64)};
    stride = along(*parts[0], dim).stride;
  }
  /// Calls f(line in, line of values, line of places) for each line.
  template <class T, class F>
  void for_lines(const Tensor& t, int dim, F&& f) {
    if (parts[0]->numel == 0 || t.numel == 0) return;
    std::int64_t from = along(t, dim).stride;
    for_each_line(dim, t, {parts[0].get(), parts[1].get()}, [&](char** p) {
      f(Line<const T>{reinterpret_cast<const T*>(p[0]), from}, Line<T>{reinterpret_cast<T*>(p[1]), stride},
        Line<std::int64_t>{reinterpret_cast<std::int64_t*>(p[2]), stride});
    });
  }
  /// The parts, recorded.
  Pair finish(const char* node, const Tensor& t, int dim, bool keepdim) {
    if (!keepdim && t.ndim) {
      Dims sizes(t.sizes());
      sizes.erase(dim);
      for (auto& part : parts) set_geometry(part.get(), sizes, contiguous_strides(sizes));
    }
    const Tensor* inputs[] = {&t};
    Save saves[] = {save_other(parts[1])};
    record_many(node, parts, inputs, saves, by_rows([dim, keepdim, from = Dims(t.sizes())](Vjp& v) {
                  v.set(0, choice_vjp(v, *v.grad(0), from, dim, *v.saved(0), keepdim));
                }));
    return parts;
  }
};

Pair sorted(const char* node, const Tensor& t, std::int64_t dim_, bool descending) {
  int dim = wrap_dim(dim_, t.ndim);
  std::int64_t n = along(t, dim).n;
  check(!is_complex(t.dtype), "Sort does not support complex dtypes on CPU");
  Found found(t, dim, n);
  visit_not_complex(t.dtype, "sort", [&]<class T>() {
    found.for_lines<T>(t, dim,
                       [&](auto in, auto values, auto places) { sort_line<T>(in, n, descending, values, places); });
  });
  return found.finish(node, t, dim, true);
}

Pair topk(const Tensor& t, std::int64_t k, std::int64_t dim_, bool largest, bool in_order) {
  int dim = wrap_dim(dim_, t.ndim);
  std::int64_t n = along(t, dim).n;
  check(k >= 0 && k <= n, "selected index k out of range: k is ", k, ", dimension ", dim, " has ", n, " elements");
  if (t.ndim == 0) k = 1;
  check(!is_complex(t.dtype), "topk does not support complex dtypes on CPU");
  check(t.dtype != DType::Bool, "topk does not support bool dtypes on CPU");
  Found found(t, dim, k);
  visit_numbers(t.dtype, "topk", [&]<class T>() {
    found.for_lines<T>(
        t, dim, [&](auto in, auto values, auto places) { topk_line<T>(in, n, k, largest, in_order, values, places); });
  });
  return found.finish("TopkBackward0", t, dim, true);
}

/// One element of each line: select.template operator()<T>(line, n) finds it.
template <auto visit, class Select>
Pair select_one(const char* operation, const char* node, const Tensor& t, std::int64_t dim_, bool keepdim,
                Select select) {
  int dim = wrap_dim(dim_, t.ndim);
  std::int64_t n = along(t, dim).n;
  check_index(n > 0, operation, "(): Expected reduction dim ", dim, " to have non-zero size.");
  Found found(t, dim, 1);
  auto over = [&]<class T>() {
    found.for_lines<T>(t, dim, [&](auto in, auto values, auto places) {
      Selected<T> one = select.template operator()<T>(in, n);
      values[0] = one.value;
      places[0] = one.index;
    });
  };
  visit(t.dtype, operation, over);
  return found.finish(node, t, dim, keepdim);
}

constexpr auto of_numbers = [](DType d, const char* operation, auto& f) { visit_numbers(d, operation, f); };
constexpr auto of_all = [](DType d, const char* operation, auto& f) { visit_not_complex(d, operation, f); };

Pair kthvalue(const Tensor& t, std::int64_t k, std::int64_t dim_, bool keepdim) {
  int dim = wrap_dim(dim_, t.ndim);
  std::int64_t n = along(t, dim).n;
  check_index(n > 0, "kthvalue(): Expected reduction dim ", dim, " to have non-zero size.");
  check(k >= 1 && k <= n, "kthvalue(): selected number k out of range for dimension ", dim);
  return select_one<of_numbers>(
      "kthvalue", "KthvalueBackward0", t, dim, keepdim,
      [k]<class T>(Line<const T> line, std::int64_t count) { return kth_of_line<T>(line, count, k); });
}
Pair median(const Tensor& t, std::int64_t dim, bool keepdim) {
  return select_one<of_numbers>("median", "MedianBackward1", t, dim, keepdim,
                                []<class T>(Line<const T> line, std::int64_t n) { return median_of_line<T>(line, n); });
}
Pair nanmedian(const Tensor& t, std::int64_t dim, bool keepdim) {
  return select_one<of_numbers>(
      "nanmedian", "NanmedianBackward1", t, dim, keepdim,
      []<class T>(Line<const T> line, std::int64_t n) { return nanmedian_of_line<T>(line, n); });
}
Pair mode(const Tensor& t, std::int64_t dim, bool keepdim) {
  return select_one<of_all>("mode", "ModeBackward0", t, dim, keepdim,
                            []<class T>(Line<const T> line, std::int64_t n) { return mode_of_line<T>(line, n); });
}

/// Over all elements; equals share the gradient. Nothing at all gives NaN.
TensorRef over_all(const char* node, const Tensor& t, Pair (*over_dim)(const Tensor&, std::int64_t, bool)) {
  TensorRef out;
  {
    GradScope off(false);
    out = t.numel ? over_dim(*reshape(t, Dims{-1}), 0, false)[0] : full({}, Scalar(std::nan("")), t.dtype);
  }
  return record(node, out, {&t}, {save_in(t, 0), save_out(out)}, [r = Reduced(t, {})](Vjp& v) {
    v.set(0, evenly_shared(v, *v.grad(), *v.saved(0), *v.saved(1), r, true));
  });
}

// ---- the operators

Pair sort(const Tensor& t, std::int64_t dim, bool descending) { return sorted("SortBackward0", t, dim, descending); }
Pair sort_stable(const Tensor& t, std::optional<bool>, std::int64_t dim, bool descending) {
  return sorted("SortBackward1", t, dim, descending);
}
TensorRef argsort(const Tensor& t, std::int64_t dim, bool descending) { return sort(*detach(t), dim, descending)[1]; }
TensorRef argsort_stable(const Tensor& t, bool, std::int64_t dim, bool descending) {
  return argsort(t, dim, descending);
}
TensorRef msort(const Tensor& t) { return t.ndim ? sort(t, 0, false)[0] : clone(t); }
TensorRef median_all(const Tensor& t) { return over_all("MedianBackward0", t, &median); }
TensorRef nanmedian_all(const Tensor& t) { return over_all("NanmedianBackward0", t, &nanmedian); }

const std::vector<std::string> values_indices{"values", "indices"};

const Define orders[] = {
    {"sort(Tensor self, int dim=-1, bool descending=False)", &sort, Both | Out,
     "The elements in order along a dimension, and their places; NaN is greatest. Stable.", values_indices},
    {"sort(Tensor self, *, bool? stable, int dim=-1, bool descending=False)", &sort_stable, Both | Out, "",
     values_indices},
    {"argsort(Tensor self, int dim=-1, bool descending=False)", &argsort, Both | Out | NoGradient,
     "The places of the elements in order."},
    {"argsort(Tensor self, *, bool stable, int dim=-1, bool descending=False)", &argsort_stable,
     Both | Out | NoGradient},
    {"msort(Tensor self)", &msort, Both | Out, "The elements in order along the first dimension."},
    {"topk(Tensor self, int k, int dim=-1, bool largest=True, bool sorted=True)", &topk, Both | Out,
     "The k largest (or smallest) elements along a dimension, and their places.", values_indices},
    {"kthvalue(Tensor self, int k, int dim=-1, bool keepdim=False)", &kthvalue, Both | Out,
     "The k-th smallest element along a dimension, and its place.", values_indices},
    {"median(Tensor self)", &median_all, Both, "The lower median; NaN where there is one."},
    {"median(Tensor self, int dim, bool keepdim=False)", &median, Both | Out, "", values_indices},
    {"nanmedian(Tensor self)", &nanmedian_all, Both, "The lower median of what is not NaN."},
    {"nanmedian(Tensor self, int dim, bool keepdim=False)", &nanmedian, Both | Out, "", values_indices},
    {"mode(Tensor self, int dim=-1, bool keepdim=False)", &mode, Both | Out,
     "The most frequent element along a dimension, the smallest of several, and its last place.", values_indices},
};

}  // namespace
}  // namespace rushlight
