// Setting a run of memory to copies of one element.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace rushlight {

/// Sets `count` elements in a row. The work is the C library's memset and memcpy, which suit the processor at hand: an
/// element of equal bytes (zeros above all) is set, another is written once and then copied, doubling up to a block.
template <class T>
void fill_run(char* to, std::size_t count, const T& element) {
  constexpr std::size_t block = 4096;
  std::size_t size = count * sizeof(T);
  if (!size) return;
  std::memcpy(to, &element, sizeof(T));
  if (std::equal(to + 1, to + sizeof(T), to)) {
    std::memset(to, to[0], size);
    return;
  }
  for (std::size_t done = sizeof(T), step; done < size; done += step) {
    step = std::min({done, block, size - done});
    std::memcpy(to + done, to, step);
  }
}

}  // namespace rushlight
