// A line: n elements of memory, a constant stride apart. What kernels along one dimension of a tensor work on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace rushlight {

/// The elements data[0], data[stride], data[2 * stride], ...; the stride counts elements and may be 0 or negative.
template <class T>
struct Line {
  T* data = nullptr;
  std::int64_t stride = 1;
  T& operator[](std::int64_t i) const { return data[i * stride]; }
};

/// Equal lines side by side: line j starts at data[j * gap].
template <class T>
struct Lines {
  T* data = nullptr;
  std::int64_t stride = 1, gap = 0;
  T& at(std::int64_t j, std::int64_t i) const { return data[j * gap + i * stride]; }
};

/// Working memory for one line: on the stack if short, else from the heap, uninitialised. T is trivial.
template <class T, std::size_t on_stack = 128>
class WorkArray {
 public:
  explicit WorkArray(std::int64_t size) {
    if (std::size_t(size) > on_stack) {
      heap_.reset(new T[std::size_t(size)]);
      data_ = heap_.get();
    }
  }
  WorkArray(const WorkArray&) = delete;
  WorkArray& operator=(const WorkArray&) = delete;
  T* data() { return data_; }
  T& operator[](std::int64_t i) { return data_[i]; }

 private:
  alignas(T) std::byte stack_[on_stack * sizeof(T)];
  std::unique_ptr<T[]> heap_;
  T* data_ = reinterpret_cast<T*>(stack_);
};

}  // namespace rushlight
