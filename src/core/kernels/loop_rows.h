// The forms of loops over rows of numbers in a row: whatever the steps are, the functions see them side by side.
#pragma once

#include <algorithm>

#include "kernels/loop_form.h"

namespace rushlight::RUSHLIGHT_ISA {
namespace {

constexpr std::intptr_t chunk = 256;

/// Up to a chunk of numbers in a row: those at `p`, or a copy.
template <class T>
const T* in_row(const char* p, std::intptr_t step, std::intptr_t n, T* copy) {
  if (step == sizeof(T)) return reinterpret_cast<const T*>(p);
  if (step == 0) {
    std::fill_n(copy, n, *reinterpret_cast<const T*>(p));
  } else {
    for (std::intptr_t i = 0; i < n; ++i) copy[i] = *reinterpret_cast<const T*>(p + i * step);
  }
  return copy;
}

template <class T>
void put(const T* from, char* p, std::intptr_t step, std::intptr_t n) {
  if (step == sizeof(T)) {
    std::copy_n(from, n, reinterpret_cast<T*>(p));
  } else {
    for (std::intptr_t i = 0; i < n; ++i) *reinterpret_cast<T*>(p + i * step) = from[i];
  }
}

/// Op::fast for all, in rows whatever the steps are; then Op::exact for the rare ones that it does not serve.
template <class Op, class T>
void unary_in_rows(char** args, const std::intptr_t* dims, const std::intptr_t* steps, void*) {
  for (std::intptr_t at = 0; at < dims[0]; at += chunk) {
    std::intptr_t n = std::min(chunk, dims[0] - at);
    T copy[chunk], out[chunk];
    const T* a = in_row(args[0] + at * steps[0], steps[0], n, copy);
    int rare = 0;
#pragma GCC ivdep
    for (std::intptr_t i = 0; i < n; ++i) {
      out[i] = Op::fast(a[i]);
      rare |= Op::rare(a[i]);
    }
    if (rare)
      for (std::intptr_t i = 0; i < n; ++i)
        if (Op::rare(a[i])) out[i] = Op::exact(a[i]);
    put(out, args[1] + at * steps[1], steps[1], n);
  }
}

template <class Op, class T>
void binary_in_rows(char** args, const std::intptr_t* dims, const std::intptr_t* steps, void*) {
  for (std::intptr_t at = 0; at < dims[0]; at += chunk) {
    std::intptr_t n = std::min(chunk, dims[0] - at);
    T copies[2][chunk], out[chunk];
    const T* a = in_row(args[0] + at * steps[0], steps[0], n, copies[0]);
    const T* b = in_row(args[1] + at * steps[1], steps[1], n, copies[1]);
    int rare = 0;
#pragma GCC ivdep
    for (std::intptr_t i = 0; i < n; ++i) {
      out[i] = Op::fast(a[i], b[i]);
      rare |= Op::rare(a[i], b[i]);
    }
    if (rare)
      for (std::intptr_t i = 0; i < n; ++i)
        if (Op::rare(a[i], b[i])) out[i] = Op::exact(a[i], b[i]);
    put(out, args[2] + at * steps[2], steps[2], n);
  }
}

template <class Op, class... Ts>
void unary_row_loops(Adder add, const char* name) {
  (add(name, 1, {{dtype_of<Ts>}, dtype_of<Ts>, &unary_in_rows<Op, Ts>, nullptr}), ...);
}
template <class Op, class... Ts>
void binary_row_loops(Adder add, const char* name) {
  (add(name, 2, {{dtype_of<Ts>, dtype_of<Ts>}, dtype_of<Ts>, &binary_in_rows<Op, Ts>, nullptr}), ...);
}

}  // namespace
}  // namespace rushlight::RUSHLIGHT_ISA
