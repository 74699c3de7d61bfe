// Where elements are not zero.
#include "kernels/mask.h"
#include "operators/operators.h"
#include "operators/registry.h"

namespace rushlight {
namespace {

template <class T>
bool is_set(const T& v) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
    return (v.bits & 0x7fffu) != 0;
  else
    return v != T(0);
}

/// The elements of row-major `p` that are set.
template <class T>
Choice set_elements(const T* p, std::int64_t n) {
  if constexpr (sizeof(T) == 1) return {reinterpret_cast<const std::uint8_t*>(p), n};
  return {n, [p](std::int64_t begin, std::int64_t end) {
            std::int64_t count = 0;
            for (std::int64_t i = begin; i < end; ++i) count += is_set(p[i]);
            return count;
          }};
}

/// Writes the coordinates of the elements of row-major `p` that are set: coordinate d of the k-th at to[d * count + k].
template <class T>
void write_places(const T* p, IntSpan sizes, const Choice& choice, std::int64_t* to) {
  int last = int(sizes.size()) - 1;
  std::int64_t inner = sizes.back(), count = choice.count();
  choice.for_each([&](std::int64_t begin, std::int64_t, std::int64_t k, std::int64_t end) {
    std::int64_t row = begin / inner, j = begin % inner;
    for (; k < end; ++row, j = 0) {
      const T* at = p + row * inner;
      std::int64_t first = k, *column = to + last * count;
      for (; j < inner && k < end; ++j) {  // without a branch: what is not set is overwritten by the next
        column[k] = j;
        k += is_set(at[j]);
      }
      std::int64_t rest = row;
      for (int d = last - 1; d >= 0 && k > first; --d) {
        std::fill(to + d * count + first, to + d * count + k, rest % sizes[std::size_t(d)]);
        rest /= sizes[std::size_t(d)];
      }
    }
  });
}

}  // namespace

TensorRef nonzero(const Tensor& t) {
  TensorRef x = packed(t);
  return visit_dtype(t.dtype, [&]<class T>() {
    const T* p = x->read_as<T>();
    Choice choice = set_elements(p, x->numel);
    std::int64_t count = choice.count();
    // each coordinate's column in one piece, so that nonzero(as_tuple=True) gives plain vectors
    TensorRef out = empty_strided(Dims{count, t.ndim}, Dims{1, count}, DType::Int64);
    if (count && t.ndim) write_places(p, t.sizes(), choice, out->write_as<std::int64_t>());
    return out;
  });
}

TensorList nonzero_positions(const Tensor& t) {
  if (t.ndim) return unbind(*nonzero(t), 1);
  return unbind(*nonzero(*view(t, Dims{1})), 1);
}

// ---- the operators

namespace {

Result nonzero_op(const Tensor& t, bool as_tuple) {
  return as_tuple ? detail::to_result(nonzero_positions(t)) : detail::to_result(nonzero(t));
}

TensorRef nonzero_static(const Tensor& t, std::int64_t size, std::int64_t fill_value) {
  check(size >= 0, "nonzero_static: 'size' must be an non-negative integer");
  TensorRef found = nonzero(t);
  TensorRef out = full(Dims{size, t.ndim}, fill_value, DType::Int64);
  std::int64_t n = std::min(size, found->size(0));
  GradScope off(false);
  copy_numbers(*slice(*out, 0, 0, n, 1), *slice(*found, 0, 0, n, 1));
  return out;
}

const Define places[] = {
    {"nonzero(Tensor self, *, bool as_tuple=False)", &nonzero_op, Both | Out | NoGradient,
     "The positions of what is not zero, one row each; as_tuple: one vector per dimension."},
    {"argwhere(Tensor self)", &nonzero, Both | NoGradient, "The positions of what is not zero, one row each."},
    {"nonzero_static(Tensor self, *, int size, int fill_value=-1)", &nonzero_static, Both | Out | NoGradient,
     "The first `size` positions of what is not zero; rows that are missing hold fill_value."},
};

}  // namespace

}  // namespace rushlight
