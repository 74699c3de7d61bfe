#include "kernels/bounds.h"

#include "kernels/cpu.h"

namespace rushlight {

#define RUSHLIGHT_DECLARE(isa)                                                           \
  namespace isa {                                                                        \
  bool within(const std::int64_t*, std::int64_t n, std::int64_t low, std::int64_t size); \
  }
RUSHLIGHT_FOR_EACH_ISA(RUSHLIGHT_DECLARE)

bool within(const std::int64_t* index, std::int64_t n, std::int64_t low, std::int64_t size) {
  return RUSHLIGHT_BEST(within(index, n, low, size));
}

}  // namespace rushlight
