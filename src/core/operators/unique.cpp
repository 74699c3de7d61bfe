// Distinct elements, places in sorted sequences, histograms and counts; and are two tensors the same.
#include "kernels/unique.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "kernels/bins.h"
#include "kernels/bounds.h"
#include "operators/extremum.h"
#include "operators/line.h"
#include "operators/reduce.h"
#include "operators/registry.h"

namespace rushlight {
namespace {

/// (values, inverse, counts) with empty tensors for what was not asked for; `dim` < 0: of all elements.
std::tuple<TensorRef, TensorRef, TensorRef> distinct(const Tensor& t, bool consecutive, bool wants_inverse,
                                                     bool wants_counts, std::optional<std::int64_t> dim_) {
  GradScope off(false);
  TensorRef rows = detach(t);
  check_index(!dim_ || t.ndim, "Dimension specified as ", dim_.value_or(0), " but tensor has no dimensions");
  int dim = dim_ ? wrap_dim(*dim_, t.ndim) : 0;
  for (int d = 0; dim_ && d < t.ndim; ++d)
    check(d == dim || t.size(d) != 0,
          "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied");
  Dims forward, back(t.ndim);  // the dimension first, the others in their order: so rows are compared
  if (dim_) {
    forward.push_back(dim);
    for (int d = 0; d < t.ndim; ++d)
      if (d != dim) forward.push_back(d);
    for (int d = 0; d < t.ndim; ++d) back[int(forward[d])] = d;
    rows = permute(*rows, forward);
  }
  rows = packed(*rows);
  std::int64_t n = dim_ ? (t.ndim ? rows->size(0) : 1) : rows->numel, width = dim_ && n ? rows->numel / n : 1;
  TensorRef inverse = empty(Dims{n}, DType::Int64), counts = empty(Dims{n}, DType::Int64),
            kept = empty(Dims{n}, DType::Int64);
  auto *to = wants_inverse ? inverse->write_as<std::int64_t>() : nullptr,
       *number = wants_counts ? counts->write_as<std::int64_t>() : nullptr;
  std::int64_t found = 0;
  TensorRef values;
  visit_not_complex(t.dtype, "unique", [&]<class T>() {
    auto* from = rows->read_as<T>();
    if (dim_) {
      auto* places = kept->write_as<std::int64_t>();
      found = consecutive ? unique_consecutive_rows<T>(from, n, width, places, to, number)
                          : unique_rows<T>(from, n, width, places, to, number);
    } else {
      TensorRef all = empty(Dims{n}, t.dtype);
      found = consecutive ? unique_consecutive<T>(from, n, all->write_as<T>(), to, number)
                          : unique_sorted<T>(from, n, all->write_as<T>(), to, number);
      values = copy_of(*narrow(*all, 0, 0, found));
    }
  });
  if (dim_) {
    values = index_select(*rows, 0, *narrow(*kept, 0, 0, found));
    values = packed(*permute(*values, back));
  }
  TensorRef nothing = empty(Dims{0}, DType::Int64);
  if (!dim_ && wants_inverse) inverse = view(*inverse, t.sizes());
  return {alias(*values), wants_inverse ? alias(*inverse) : nothing,
          wants_counts ? copy_of(*narrow(*counts, 0, 0, found)) : nothing};
}

std::tuple<TensorRef, TensorRef, TensorRef> unique(const Tensor& t, bool, bool inverse, bool counts,
                                                   std::optional<std::int64_t> dim) {
  return distinct(t, false, inverse, counts, dim);
}
std::tuple<TensorRef, TensorRef, TensorRef> unique_run(const Tensor& t, bool inverse, bool counts,
                                                       std::optional<std::int64_t> dim) {
  return distinct(t, true, inverse, counts, dim);
}

/// Rows of `sequence` (one for all, or one per row of values) searched for `values`.
TensorRef search(const Tensor& sequence, const Tensor& values, const Tensor* sorter, bool int32, bool right) {
  std::int64_t n = sequence.ndim ? sequence.size(sequence.ndim - 1) : 1;
  DType type = promote(sequence.dtype, values.dtype);
  TensorRef boundaries = packed(*cast(*detach(sequence), type)), wanted = packed(*cast(*detach(values), type)),
            order = sorter ? packed(*sorter) : nullptr;
  TensorRef out = empty(values.sizes(), int32 ? DType::Int32 : DType::Int64);
  std::int64_t rows = sequence.ndim > 1 ? boundaries->numel / std::max<std::int64_t>(n, 1) : 1;
  std::int64_t each = rows ? wanted->numel / rows : 0;
  if (each == 0) return out;
  visit_numbers(type, "searchsorted", [&]<class T>() {
    for (std::int64_t r = 0; r < rows; ++r) {
      auto* by = order ? order->read_as<std::int64_t>() + r * n : nullptr;
      auto *at = boundaries->read_as<T>() + r * n, *of = wanted->read_as<T>() + r * each;
      auto search_to = [&](auto* to) {
        parallel_for(each, 1 << 12, [&](std::int64_t begin, std::int64_t end) {
          search_sorted<T>(at, n, by, of + begin, end - begin, right, to + r * each + begin);
        });
      };
      if (int32)
        search_to(out->write_as<std::int32_t>());
      else
        search_to(out->write_as<std::int64_t>());
    }
  });
  return out;
}

bool to_right(bool right, const std::optional<std::string>& side) {
  if (!side) return right;
  check(*side == "left" || *side == "right", "torch.searchsorted(): side can only be 'left' or 'right' but got ",
        *side);
  check(!right || *side == "right", "torch.searchsorted(): side and right can't be set to opposites, got side of ",
        *side, " while right was True");
  return *side == "right";
}

TensorRef searchsorted(const Tensor& sequence, const Tensor& values, bool int32, bool right,
                       const std::optional<std::string>& side, const Tensor* sorter) {
  check(sequence.ndim > 0,
        "torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension");
  bool fits = sequence.ndim == 1 || sequence.ndim == values.ndim;
  for (int i = 0; fits && sequence.ndim > 1 && i + 1 < sequence.ndim; ++i) fits = sequence.size(i) == values.size(i);
  check(fits,
        "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries "
        "tensor and input value tensor must match, but we got boundaries tensor ",
        to_string(sequence.sizes()), " and input value tensor ", to_string(values.sizes()));
  check(!sorter || (sorter->dtype == DType::Int64 && equal(sorter->sizes(), sequence.sizes())),
        "torch.searchsorted(): boundary and sorter must have the same size, and sorter must be a tensor of long dtype");
  if (sorter)
    for (TensorRef s = packed(*sorter); std::int64_t i : std::span(s->read_as<std::int64_t>(), std::size_t(s->numel)))
      check(i >= 0 && i < sequence.size(sequence.ndim - 1), "torch.searchsorted(): sorter index out of range");
  return search(sequence, values, sorter, int32, to_right(right, side));
}
TensorRef searchsorted_number(const Tensor& sequence, const Scalar& value, bool int32, bool right,
                              const std::optional<std::string>& side, const Tensor* sorter) {
  check(sequence.ndim == 1,
        "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but we got "
        "boundaries tensor dim(",
        int(sequence.ndim), ")");
  return searchsorted(sequence, *scalar_tensor(value, promote(sequence.dtype, value.dtype())), int32, right, side,
                      sorter);
}
TensorRef bucketize(const Tensor& t, const Tensor& boundaries, bool int32, bool right) {
  check(boundaries.ndim == 1, "boundaries tensor must be 1 dimension, but got dim(", int(boundaries.ndim), ")");
  return search(boundaries, t, nullptr, int32, right);
}
TensorRef bucketize_number(const Scalar& value, const Tensor& boundaries, bool int32, bool right) {
  return bucketize(*scalar_tensor(value, promote(boundaries.dtype, value.dtype())), boundaries, int32, right);
}

TensorRef histc(const Tensor& t, std::int64_t bins, const Scalar& min, const Scalar& max) {
  check(bins > 0, "torch.histc(): bins must be > 0, but got ", bins);
  double low = min.to_double(), high = max.to_double();
  check(low <= high, "torch.histc: max must be larger than min");
  TensorRef x = packed(*detach(t)), counts = zeros(Dims{bins}, DType::Int64);
  visit_floating(t.dtype, "histc", [&]<class T>() {
    auto* p = x->read_as<T>();
    if (low == high && x->numel) {
      low = item(*amin(*x, {})).to_double();
      high = item(*amax(*x, {})).to_double();
    }
    if (low == high) low -= 1, high += 1;
    check(std::isfinite(low) && std::isfinite(high), "torch.histc: range of [", low, ", ", high, "] is not finite");
    count_in_parts<T>(p, x->numel, bins, T(low), T(high), counts->write_as<std::int64_t>());
  });
  return cast(*counts, t.dtype);
}

TensorRef bincount(const Tensor& t, const Tensor* weights, std::int64_t minlength) {
  if (!is_integral(t.dtype))
    fail(ErrorKind::NotImplemented, "\"bincount\" not implemented for '", info(t.dtype).scalar_name, "'");
  check(t.ndim == 1, "bincount only supports 1-d non-negative integral inputs.");
  check(minlength >= 0, "minlength should be >= 0");
  check(!weights || equal(weights->sizes(), t.sizes()), "weights should be 1-d and have the same length as input");
  TensorRef x = packed(t), out;
  visit_real(t.dtype, "bincount", [&]<class T>() {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      auto* p = x->read_as<T>();
      Extent found = x->numel ? extent(t.dtype, p, x->numel) : Extent{0, -1};
      check(found.least >= 0, "bincount only supports 1-d non-negative integral inputs.");
      std::int64_t n = std::max(found.largest + 1, minlength);
      if (!weights) {
        out = zeros(Dims{n}, DType::Int64);
        count_by_index<T>(p, x->numel, n, out->write_as<std::int64_t>());
      } else if (weights->dtype == DType::Float32) {
        out = zeros(Dims{n}, DType::Float32);
        add_by_index<T, float>(p, x->numel, packed(*weights)->read_as<float>(), out->write_as<float>());
      } else {
        out = zeros(Dims{n}, DType::Float64);
        TensorRef w = packed(*cast(*detach(*weights), DType::Float64));
        add_by_index<T, double>(p, x->numel, w->read_as<double>(), out->write_as<double>());
      }
    }
  });
  return out;
}

const Define counting[] = {
    {"_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False, int? dim=None)",
     &unique, Function | NoGradient,
     "Distinct elements or slices in order, where each input went, and how many became each."},
    {"_unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None)",
     &unique_run, Function | NoGradient, "The same with only neighbours compared."},
    {"searchsorted(Tensor sorted_sequence, Tensor input, *, bool out_int32=False, bool right=False, str? side=None, "
     "Tensor? sorter=None)",
     &searchsorted, Function | Out | NoGradient, "Where each number belongs in an ascending sequence."},
    {"searchsorted(Tensor sorted_sequence, Scalar input, *, bool out_int32=False, bool right=False, str? side=None, "
     "Tensor? sorter=None)",
     &searchsorted_number, Function | NoGradient},
    {"bucketize(Tensor input, Tensor boundaries, *, bool out_int32=False, bool right=False)", &bucketize,
     Function | Out | NoGradient, "Which bucket between ascending boundaries each number falls into."},
    {"bucketize(Scalar input, Tensor boundaries, *, bool out_int32=False, bool right=False)", &bucketize_number,
     Function | NoGradient},
    {"histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0)", &histc, Both | Out | NoGradient,
     "How many elements lie in each of equal parts of [min, max]."},
    {"bincount(Tensor self, Tensor? weights=None, int minlength=0)", &bincount, Both | NoGradient,
     "How often each integer occurs, or the sum of its weights."},
};

}  // namespace
}  // namespace rushlight
