#include "kernels/bounds.h"

#include "kernels/cpu.h"

namespace rushlight {

#define RUSHLIGHT_DECLARE(isa)                                                           \
  namespace isa {                                                                        \
  bool within(const std::int64_t*, std::int64_t n, std::int64_t low, std::int64_t size); \
  Extent extent(DType, const void*, std::int64_t n);                                     \
  }
RUSHLIGHT_FOR_EACH_ISA(RUSHLIGHT_DECLARE)

bool within(const std::int64_t* index, std::int64_t n, std::int64_t low, std::int64_t size) {
  return RUSHLIGHT_BEST(within(index, n, low, size));
}

Extent extent(DType type, const void* integers, std::int64_t n) { return RUSHLIGHT_BEST(extent(type, integers, n)); }

}  // namespace rushlight
