#include "kernels/sort.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "kernels/order.h"
#include "tensor/error.h"

namespace rushlight {

namespace {

// An element to be sorted: equal keys are told apart by their places, so any sort of entries is stable.
template <class Word>
struct Entry {
  Word key;
  std::uint32_t index;
  bool operator<(const Entry& other) const { return key != other.key ? key < other.key : index < other.index; }
};

constexpr std::int64_t small_line = 256;  // below, comparisons are faster than the histograms of a radix sort

template <class Word>
constexpr int digit_bits = sizeof(Word) <= 2 ? 8 : 11;
template <class Word>
constexpr int digit_count = (8 * sizeof(Word) + digit_bits<Word> - 1) / digit_bits<Word>;

// Sorts by key, least significant digit first. Returns whichever of the two arrays holds the result.
template <class Word>
Entry<Word>* radix_sort(Entry<Word>* entries, Entry<Word>* other, std::int64_t n) {
  constexpr int bits = digit_bits<Word>, digits = digit_count<Word>;
  constexpr std::size_t radix = std::size_t(1) << bits;
  auto digit_of = [](Word key, int digit) { return std::size_t(key >> (digit * bits)) & (radix - 1); };

  std::vector<std::array<std::uint32_t, radix>> counts(digits);
  for (std::int64_t i = 0; i < n; ++i)
    for (int digit = 0; digit < digits; ++digit) ++counts[std::size_t(digit)][digit_of(entries[i].key, digit)];

  for (int digit = 0; digit < digits; ++digit) {
    auto& places = counts[std::size_t(digit)];
    if (places[digit_of(entries[0].key, digit)] == std::uint32_t(n)) continue;  // all keys share this digit
    std::exclusive_scan(places.begin(), places.end(), places.begin(), std::uint32_t(0));
    for (std::int64_t i = 0; i < n; ++i) other[places[digit_of(entries[i].key, digit)]++] = entries[i];
    std::swap(entries, other);
  }
  return entries;
}

template <class T>
void sort_with_wide_indices(Line<const T> in, std::int64_t n, bool descending, Line<T> values,
                            Line<std::int64_t> indices) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), std::int64_t(0));
  std::stable_sort(order.begin(), order.end(), [=](std::int64_t a, std::int64_t b) {
    return descending ? descends<T>(in[a], in[b]) : ascends<T>(in[a], in[b]);
  });
  for (std::int64_t i = 0; i < n; ++i) {
    if (values.data) values[i] = in[order[std::size_t(i)]];
    if (indices.data) indices[i] = order[std::size_t(i)];
  }
}

}  // namespace

template <class T>
void sort_line(Line<const T> in, std::int64_t n, bool descending, Line<T> values, Line<std::int64_t> indices) {
  if (n > std::int64_t(std::numeric_limits<std::uint32_t>::max()))
    return sort_with_wide_indices(in, n, descending, values, indices);
  using Word = OrderKey<T>;
  WorkArray<Entry<Word>, small_line> work(n);
  Entry<Word>* entries = work.data();
  for (std::int64_t i = 0; i < n; ++i) {
    const Word key = order_key<T>(in[i]);
    entries[i] = {descending ? Word(~key) : key, std::uint32_t(i)};
  }
  std::unique_ptr<Entry<Word>[]> other;
  if (n <= small_line) {
    std::sort(entries, entries + n);
  } else {
    other.reset(new Entry<Word>[std::size_t(n)]);
    entries = radix_sort(entries, other.get(), n);
  }
  if (values.data)
    for (std::int64_t i = 0; i < n; ++i) values[i] = in[entries[i].index];
  if (indices.data)
    for (std::int64_t i = 0; i < n; ++i) indices[i] = entries[i].index;
}

namespace {

template <class T>
void copy_with_places(Line<const T> in, std::int64_t n, Selected<T>* out) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = {in[i], i};
}

}  // namespace

namespace {

/// The greatest, or the smallest, first. What only may hold is one comparison, also true of NaN.
struct Largest {
  template <class T>
  static bool before(T a, T b) {
    return descends(a, b);
  }
  template <class T>
  static bool may_be_before(T a, T b) {
    return !(a <= b);
  }
  template <class T>
  static bool may_reach(T a, T limit) {
    return !(a < limit);
  }
};
struct Smallest {
  template <class T>
  static bool before(T a, T b) {
    return ascends(a, b);
  }
  template <class T>
  static bool may_be_before(T a, T b) {
    return !(a >= b);
  }
  template <class T>
  static bool may_reach(T a, T limit) {
    return !(a > limit);
  }
};
/// The order of elements, or of numbers, as the library's functions take it.
template <class Order>
struct InOrder {
  template <class T>
  bool operator()(const Selected<T>& a, const Selected<T>& b) const {
    return Order::before(a.value, b.value);
  }
  template <class T>
  bool operator()(T a, T b) const {
    return Order::before(a, b);
  }
};

/// The k elements that stand before all others: std::partial_sort without the copy of the line. It keeps the first k in
/// a heap, the last of them on top, and exchanges that one for each element that stands before it; which blocks have
/// such elements is seen without a branch per element.
template <class Order, class T>
void select_few(const T* in, std::int64_t n, std::int64_t k, Selected<T>* heap) {
  InOrder<Order> order;
  copy_with_places(Line<const T>{in}, k, heap);
  std::make_heap(heap, heap + k, order);
  constexpr std::int64_t block = 32;
  for (std::int64_t first = k; first < n; first += block) {
    const std::int64_t last = std::min(n, first + block);
    const T top = heap[0].value;
    unsigned any = 0;
    for (std::int64_t i = first; i < last; ++i) any |= unsigned(Order::may_be_before(in[i], top));
    if (!any) [[likely]]
      continue;
    for (std::int64_t i = first; i < last; ++i) {
      if (!Order::before(in[i], heap[0].value)) continue;
      heap[k] = {in[i], i};  // takes the place of the top, as in the library's own loop
      std::pop_heap(heap, heap + k + 1, order);
    }
  }
  std::sort_heap(heap, heap + k, order);
}

/// The same where the k elements are told apart from each other and from the others; else false, for it is the heap
/// that chooses among equal ones. The k-th of the best of `lanes` parts is a limit that few elements reach.
template <class Order, class T>
bool select_distinct(const T* in, std::int64_t n, std::int64_t k, Selected<T>* found) {
  constexpr std::int64_t lanes = 64, block = 32, most = lanes;
  T best[lanes];
  std::copy_n(in, lanes, best);
  for (std::int64_t i = lanes; i + lanes <= n; i += lanes)
    for (std::int64_t l = 0; l < lanes; ++l) best[l] = Order::may_be_before(in[i + l], best[l]) ? in[i + l] : best[l];
  std::nth_element(best, best + k - 1, best + lanes, InOrder<Order>());
  const T limit = best[k - 1];
  std::int64_t count = 0;
  for (std::int64_t first = 0; first < n; first += block) {
    const std::int64_t last = std::min(n, first + block);
    unsigned any = 0;
    for (std::int64_t i = first; i < last; ++i) any |= unsigned(Order::may_reach(in[i], limit));
    if (!any) [[likely]]
      continue;
    for (std::int64_t i = first; i < last; ++i) {
      if (Order::before(limit, in[i])) continue;
      if (count == most) return false;
      found[count++] = {in[i], i};
    }
  }
  std::sort(found, found + count, InOrder<Order>());
  for (std::int64_t i = 1; i < std::min(count, k + 1); ++i)
    if (!Order::before(found[i - 1].value, found[i].value)) return false;
  return true;
}

}  // namespace

template <class T>
void topk_line(Line<const T> in, std::int64_t n, std::int64_t k, bool largest, bool sorted, Line<T> values,
               Line<std::int64_t> indices) {
  if (k == 0) return;
  // PyTorch's choice: a heap for few of many, else a partition; which of equal elements are taken depends on it.
  const bool few = k * 64 <= n;
  WorkArray<Selected<T>> queue(few ? std::max<std::int64_t>(k + 1, 64) : n);
  WorkArray<T> side_by_side(few && in.stride != 1 ? n : 0);
  const T* numbers = in.data;
  if (few && in.stride != 1) {
    for (std::int64_t i = 0; i < n; ++i) side_by_side[i] = in[i];
    numbers = side_by_side.data();
  }
  auto select = [&]<class Order>(Order) {
    if constexpr (std::is_arithmetic_v<T>)
      if (few && k <= 16 && n <= 1 << 13 && select_distinct<Order>(numbers, n, k, queue.data())) return;
    if (few) return select_few<Order>(numbers, n, k, queue.data());
    copy_with_places(in, n, queue.data());
    std::nth_element(queue.data(), queue.data() + k - 1, queue.data() + n, InOrder<Order>());
    if (sorted) std::sort(queue.data(), queue.data() + k - 1, InOrder<Order>());
  };
  if (largest)
    select(Largest());
  else
    select(Smallest());
  for (std::int64_t i = 0; i < k; ++i) {
    values[i] = queue[i].value;
    indices[i] = queue[i].index;
  }
}

// Hoare's quickselect. The pivot is the median of the first, middle and last element; these exchanges and the scans
// that stop at elements equal to the pivot are PyTorch's, for they decide which of equal elements is reported.
template <class T>
Selected<T> kth_of_line(Line<const T> in, std::int64_t n, std::int64_t k) {
  check(1 <= k && k <= n, "kth_of_line: expected 1 <= k <= ", n, ", found ", k);
  WorkArray<Selected<T>> a(n);
  copy_with_places(in, n, a.data());
  auto exceeds = [](const Selected<T>& x, const Selected<T>& y) { return descends(x.value, y.value); };
  const std::int64_t target = k - 1;
  std::int64_t first = 0, last = n - 1;
  while (first + 1 < last) {
    std::swap(a[first + (last - first) / 2], a[first + 1]);
    if (exceeds(a[first + 1], a[last])) std::swap(a[first + 1], a[last]);
    if (exceeds(a[first], a[last])) std::swap(a[first], a[last]);
    if (exceeds(a[first + 1], a[first])) std::swap(a[first + 1], a[first]);
    // Now a[first + 1] <= a[first] = pivot <= a[last]: both scans end within the range.
    const Selected<T> pivot = a[first];
    std::int64_t up = first + 1, down = last;
    while (true) {
      do ++up;
      while (exceeds(pivot, a[up]));
      do --down;
      while (exceeds(a[down], pivot));
      if (down < up) break;
      std::swap(a[up], a[down]);
    }
    std::swap(a[first], a[down]);
    if (down <= target) first = up;
    if (down >= target) last = down - 1;
  }
  if (first + 1 == last && exceeds(a[first], a[last])) std::swap(a[first], a[last]);
  return a[target];
}

namespace {

/// Brings those of a[first..last) for which goes_first(x) holds to the front, without a branch; returns their end.
template <class Word, class F>
std::int64_t partition(Word* a, std::int64_t first, std::int64_t last, F goes_first) {
  std::int64_t end = first;
  for (std::int64_t i = first; i < last; ++i) {
    const Word x = a[i];
    a[i] = a[end];
    a[end] = x;
    end += goes_first(x);
  }
  return end;
}

/// The number of rank `rank` among a[0..n), whose order is lost: quickselect, whose pivots are medians of three, or of
/// three such where there are many; the library's where that does not get on.
template <class Word>
Word select_key(Word* a, std::int64_t n, std::int64_t rank) {
  auto middle = [](Word x, Word y, Word z) { return std::max(std::min(x, y), std::min(std::max(x, y), z)); };
  std::int64_t first = 0, last = n;
  for (int round = 0; last - first > 32 && round < 60; ++round) {
    const std::int64_t step = (last - first) / 9;
    const Word* p = a + first;
    auto three = [&](std::int64_t i) { return middle(p[i * step], p[(i + 3) * step], p[(i + 6) * step]); };
    const Word pivot = last - first > 512 ? middle(three(0), three(1), three(2)) : three(1);
    const std::int64_t below = partition(a, first, last, [pivot](Word x) { return x < pivot; });
    if (rank < below) {
      last = below;
      continue;
    }
    first = partition(a, below, last, [pivot](Word x) { return x == pivot; });
    if (rank < first) return pivot;
  }
  std::nth_element(a + first, a + rank, a + last);
  return a[rank];
}

/// The element of rank `rank` in the stable order: its key, then its place among the equal ones.
template <class T>
Selected<T> median_at(Line<const T> in, std::int64_t n, std::int64_t rank) {
  using Word = OrderKey<T>;
  WorkArray<Word, 256> keys(n);
  for (std::int64_t i = 0; i < n; ++i) keys[i] = order_key<T>(in[i]);
  const Word key = select_key(keys.data(), n, rank);
  std::int64_t equal_before = rank;
  for (std::int64_t i = 0; i < n; ++i) equal_before -= keys[i] < key;
  for (std::int64_t i = 0;; ++i)
    if (order_key<T>(in[i]) == key && equal_before-- == 0) return {in[i], i};
}

}  // namespace

template <class T>
Selected<T> median_of_line(Line<const T> in, std::int64_t n) {
  if constexpr (has_nan<T>) {
    for (std::int64_t i = 0; i < n; ++i)
      if (is_nan<T>(in[i])) return {in[i], i};
  }
  return median_at(in, n, (n - 1) / 2);
}

template <class T>
Selected<T> nanmedian_of_line(Line<const T> in, std::int64_t n) {
  std::int64_t nans = 0;
  for (std::int64_t i = 0; i < n; ++i) nans += is_nan<T>(in[i]);
  return median_at(in, n, std::max<std::int64_t>(0, (n - nans - 1) / 2));
}

template <class T>
Selected<T> mode_of_line(Line<const T> in, std::int64_t n) {
  WorkArray<Selected<T>> a(n);
  copy_with_places(in, n, a.data());
  std::sort(a.data(), a.data() + n, [](const Selected<T>& x, const Selected<T>& y) { return x.value < y.value; });
  Selected<T> mode{};
  std::int64_t longest = 0, run = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    ++run;
    if (i + 1 < n && a[i].value == a[i + 1].value) continue;
    if (run > longest) {
      longest = run;
      mode = a[i];
    }
    run = 0;
  }
  return mode;
}

// clang-format off
#define INSTANTIATE(T) \
  template void sort_line(Line<const T>, std::int64_t, bool, Line<T>, Line<std::int64_t>); \
  template Selected<T> mode_of_line(Line<const T>, std::int64_t);
#define INSTANTIATE_NUMBER(T) \
  INSTANTIATE(T) \
  template void topk_line(Line<const T>, std::int64_t, std::int64_t, bool, bool, Line<T>, Line<std::int64_t>); \
  template Selected<T> kth_of_line(Line<const T>, std::int64_t, std::int64_t); \
  template Selected<T> median_of_line(Line<const T>, std::int64_t); \
  template Selected<T> nanmedian_of_line(Line<const T>, std::int64_t);
INSTANTIATE(bool)
INSTANTIATE_NUMBER(std::uint8_t)
INSTANTIATE_NUMBER(std::int8_t)
INSTANTIATE_NUMBER(std::int16_t)
INSTANTIATE_NUMBER(std::int32_t)
INSTANTIATE_NUMBER(std::int64_t)
INSTANTIATE_NUMBER(Half)
INSTANTIATE_NUMBER(BFloat16)
INSTANTIATE_NUMBER(float)
INSTANTIATE_NUMBER(double)
// clang-format on

}  // namespace rushlight
