#include "kernels/finite.h"

#include "kernels/cpu.h"

namespace rushlight {

#define RUSHLIGHT_DECLARE(isa)          \
  namespace isa {                       \
  FindFaults fault_search(DType dtype); \
  }
RUSHLIGHT_FOR_EACH_ISA(RUSHLIGHT_DECLARE)

FindFaults fault_search(DType dtype) { return RUSHLIGHT_BEST(fault_search(dtype)); }

}  // namespace rushlight
