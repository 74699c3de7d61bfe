#include "kernels/mask.h"

#include <cstring>

#include "tensor/dtype.h"

namespace rushlight {
namespace {

std::int64_t count_set(const std::uint8_t* mask, std::int64_t n) {
  constexpr std::uint64_t ones = 0x0101010101010101, rest = 0x7f * ones;
  std::int64_t count = 0, i = 0;
  for (; i + 8 <= n; i += 8) {
    std::uint64_t word;
    std::memcpy(&word, mask + i, sizeof word);
    word = ((((word & rest) + rest) | word) >> 7) & ones;  // a byte is 1 where it was not 0
    count += std::int64_t(word * ones >> 56);              // the sum of the bytes is the uppermost one
  }
  for (; i < n; ++i) count += mask[i] != 0;
  return count;
}

/// The one or the other; whole numbers by arithmetic, where compilers would branch.
template <class T>
T either(bool first, T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    T take = T(-T(first));
    return T((a & take) | (b & T(~take)));
  } else {
    return first ? a : b;
  }
}

}  // namespace

Choice::Choice(const std::uint8_t* mask, std::int64_t n)
    : Choice(n, [mask](std::int64_t begin, std::int64_t end) { return count_set(mask + begin, end - begin); }) {}

void select_masked(const Choice& choice, const std::uint8_t* mask, const std::byte* from, std::byte* to,
                   std::int64_t item) {
  visit_width(item, [&]<class T>() {
    choice.for_each([&](std::int64_t begin, std::int64_t, std::int64_t first, std::int64_t last) {
      const T* x = reinterpret_cast<const T*>(from) + begin;
      const std::uint8_t* m = mask + begin;
      T *at = reinterpret_cast<T*>(to) + first, *end = reinterpret_cast<T*>(to) + last;
      for (std::int64_t i = 0; at != end; ++i) {  // each element is written, and stays if it is chosen
        *at = x[i];
        at += m[i] != 0;
      }
    });
  });
}

void scatter_masked(const Choice& choice, const std::uint8_t* mask, const std::byte* from, std::byte* to,
                    std::int64_t item) {
  visit_width(item, [&]<class T>() {
    choice.for_each([&](std::int64_t begin, std::int64_t, std::int64_t first, std::int64_t last) {
      T* x = reinterpret_cast<T*>(to) + begin;
      const std::uint8_t* m = mask + begin;
      const T *at = reinterpret_cast<const T*>(from) + first, *end = reinterpret_cast<const T*>(from) + last;
      for (std::int64_t i = 0; at != end; ++i) {
        bool chosen = m[i] != 0;
        x[i] = either(chosen, *at, x[i]);
        at += chosen;
      }
    });
  });
}

void fill_masked(const Nest& nest, char* const* base, const std::byte* number, std::int64_t item) {
  visit_width(item, [&]<class T>() {
    T value;
    std::memcpy(&value, number, sizeof value);
    parallel_for(nest.numel, 1 << 15, [&](std::int64_t begin, std::int64_t end) {
      nest.run(base, begin, end, [&](char** p, std::int64_t n, const std::int64_t* steps) {
        auto run = [&](auto mask_step, auto step) {
          const char* m = p[0];
          char* x = p[1];
          for (std::int64_t i = 0; i < n; ++i) {
            T& element = *reinterpret_cast<T*>(x + i * step);
            element = either(m[i * mask_step] != 0, value, element);
          }
        };
        if (steps[0] == 1 && steps[1] == sizeof(T))
          run(std::integral_constant<std::int64_t, 1>(), std::integral_constant<std::int64_t, sizeof(T)>());
        else
          run(steps[0], steps[1]);
      });
    });
  });
}

}  // namespace rushlight
