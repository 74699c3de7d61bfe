// The search for what is not finite, compiled once per instruction set: a number is infinite where all bits of its
// exponent are set and none of its fraction, NaN where one of those is set too.
#include <algorithm>
#include <cstring>

#include "kernels/finite.h"

namespace rushlight::RUSHLIGHT_ISA {
namespace {

template <class Word, Word infinity>
unsigned faults(const char* numbers, std::int64_t n, std::int64_t step) {
  constexpr Word magnitude = Word(~Word(0)) >> 1;
  Word nans = 0, infinities = 0;
  auto look = [&](Word w) {
    w &= magnitude;
    nans |= Word(w > infinity);
    infinities |= Word(w == infinity);
  };
  if (step == std::int64_t(sizeof(Word))) {
    const Word* words = reinterpret_cast<const Word*>(numbers);
    for (std::int64_t i = 0; i < n; ++i) look(words[i]);
  } else {
    for (std::int64_t i = 0; i < n; ++i) {
      Word w;
      std::memcpy(&w, numbers + i * step, sizeof w);
      look(w);
    }
  }
  return (nans ? found_nan : 0u) | (infinities ? found_infinity : 0u);
}

}  // namespace

FindFaults fault_search(DType dtype) {
  switch (dtype) {
    case DType::Float16:
      return &faults<std::uint16_t, 0x7c00>;
    case DType::BFloat16:
      return &faults<std::uint16_t, 0x7f80>;
    case DType::Float64:
      return &faults<std::uint64_t, 0x7ff0000000000000>;
    default:
      return &faults<std::uint32_t, 0x7f800000>;
  }
}

}  // namespace rushlight::RUSHLIGHT_ISA
