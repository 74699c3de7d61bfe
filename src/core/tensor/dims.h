// A short list of integers (sizes, strides, dims) that stays on the stack up to eight entries.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <ostream>
#include <span>
#include <string>

#include "tensor/error.h"

namespace rushlight {

using IntSpan = std::span<const std::int64_t>;

class Dims {
 public:
  Dims() = default;
  explicit Dims(int n, std::int64_t value = 0) { resize(n, value); }
  Dims(std::initializer_list<std::int64_t> values) { assign(values.begin(), values.size()); }
  Dims(IntSpan values) { assign(values.data(), values.size()); }
  Dims(const Dims& other) { assign(other.data(), std::size_t(other.size_)); }
  Dims(Dims&& other) noexcept { steal(other); }
  Dims& operator=(const Dims& other) {
    if (this != &other) {
      size_ = 0;
      assign(other.data(), std::size_t(other.size_));
    }
    return *this;
  }
  Dims& operator=(Dims&& other) noexcept {
    if (this != &other) {
      if (heap_) delete[] heap_;
      steal(other);
    }
    return *this;
  }
  ~Dims() {
    if (heap_) delete[] heap_;
  }
  int size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::int64_t* data() { return heap_ ? heap_ : inline_; }
  const std::int64_t* data() const { return heap_ ? heap_ : inline_; }
  std::int64_t& operator[](int i) { return data()[i]; }
  std::int64_t operator[](int i) const { return data()[i]; }
  std::int64_t& back() { return data()[size_ - 1]; }
  std::int64_t* begin() { return data(); }
  std::int64_t* end() { return data() + size_; }
  const std::int64_t* begin() const { return data(); }
  const std::int64_t* end() const { return data() + size_; }
  operator IntSpan() const { return {data(), std::size_t(size_)}; }
  void push_back(std::int64_t v) {
    reserve(size_ + 1);
    data()[size_++] = v;
  }
  void pop_back() { --size_; }
  void resize(int n, std::int64_t value = 0) {
    reserve(n);
    for (int i = size_; i < n; ++i) data()[i] = value;
    size_ = n;
  }
  void insert(int at, std::int64_t v) {
    push_back(v);
    std::rotate(begin() + at, end() - 1, end());
  }
  void erase(int at) {
    std::copy(begin() + at + 1, end(), begin() + at);
    --size_;
  }
  friend bool operator==(const Dims& a, const Dims& b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

 private:
  static constexpr int inline_capacity = 8;
  void assign(const std::int64_t* values, std::size_t n) {
    reserve(int(n));
    std::copy(values, values + n, data());
    size_ = int(n);
  }
  void reserve(int n) {
    int capacity = heap_ ? heap_capacity_ : inline_capacity;
    if (n <= capacity) return;
    auto* grown = new std::int64_t[std::size_t(n) * 2];
    std::copy(begin(), end(), grown);
    if (heap_) delete[] heap_;
    heap_ = grown;
    heap_capacity_ = n * 2;
  }
  void steal(Dims& other) noexcept {
    size_ = other.size_;
    heap_ = other.heap_;
    heap_capacity_ = other.heap_capacity_;
    if (!heap_) std::copy(other.inline_, other.inline_ + size_, inline_);
    other.heap_ = nullptr;
    other.size_ = 0;
  }
  int size_ = 0, heap_capacity_ = 0;
  std::int64_t* heap_ = nullptr;
  std::int64_t inline_[inline_capacity];
};

/// "[2, 3]", as sizes stand in messages; nothing is built until a message is.
struct ListText {
  IntSpan values;
  std::string str() const {
    std::string out = "[";
    for (std::size_t i = 0; i < values.size(); ++i) out += (i ? ", " : "") + std::to_string(values[i]);
    return out + "]";
  }
  operator std::string() const { return str(); }
};
inline ListText to_string(IntSpan values) { return {values}; }
inline std::ostream& operator<<(std::ostream& stream, const ListText& list) { return stream << list.str(); }
inline std::ostream& operator<<(std::ostream& stream, const Dims& dims) { return stream << to_string(dims); }

inline bool equal(IntSpan a, IntSpan b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i] != b[i]) return false;
  return true;
}

/// The product of sizes; refuses negative sizes and products beyond 2^63.
inline std::int64_t count_elements(IntSpan sizes) {
  std::int64_t n = 1;
  bool overflow = false;
  for (auto s : sizes) {
    check(s >= 0, "Trying to create tensor with negative dimension ", s, ": ", to_string(sizes));
    overflow |= __builtin_mul_overflow(n, s, &n);
  }
  if (overflow && std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return 0;
  check(!overflow, "Storage size calculation overflowed with sizes=", to_string(sizes));
  return n;
}

/// An index of a dimension counted from the end where negative; a 0-d tensor takes 0 and -1.
inline int wrap_dim(std::int64_t dim, int ndim) {
  int range = ndim > 0 ? ndim : 1;
  check_index(dim >= -range && dim < range, "Dimension out of range (expected to be in range of [", -range, ", ",
              range - 1, "], but got ", dim, ")");
  return int(dim < 0 ? dim + range : dim);
}

inline Dims contiguous_strides(IntSpan sizes) {
  Dims strides(int(sizes.size()));
  std::int64_t step = 1;
  for (int i = int(sizes.size()) - 1; i >= 0; --i) {
    strides[i] = step;
    step *= std::max<std::int64_t>(sizes[std::size_t(i)], 1);
  }
  return strides;
}

/// The common shape of two by broadcasting; refuses what does not fit.
inline Dims broadcast_sizes(IntSpan first, IntSpan second) {
  bool swapped = first.size() < second.size();
  IntSpan a = swapped ? second : first, b = swapped ? first : second;
  Dims out(a);
  std::size_t lead = a.size() - b.size();
  for (std::size_t i = 0; i < b.size(); ++i) {
    std::int64_t x = a[lead + i], y = b[i];
    if (x == y || y == 1) continue;
    check(x == 1, "The size of tensor a (", swapped ? y : x, ") must match the size of tensor b (", swapped ? x : y,
          ") at non-singleton dimension ", lead + i);
    out[int(lead + i)] = y;
  }
  return out;
}

}  // namespace rushlight
