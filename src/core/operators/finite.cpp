#include "operators/finite.h"

#include <atomic>

#include "kernels/finite.h"
#include "kernels/nest.h"
#include "kernels/parallel.h"
#include "operators/layout.h"

namespace rushlight {

Fault fault_in(const Tensor& t, bool nans, bool infinities) {
  unsigned wanted = (nans ? found_nan : 0u) | (infinities ? found_infinity : 0u);
  if (!is_differentiable(t.dtype) || !wanted || !t.numel) return Fault::None;
  // repeated numbers are looked at once; complex ones are pairs of real ones; in which order they lie does not matter
  Dims sizes, strides;
  std::int64_t parts = is_complex(t.dtype) ? 2 : 1;
  bool laid = bool(t.storage->layout) && bool(layout_of(t));
  if (laid) {
    sizes.push_back(t.numel);
    strides.push_back(parts);
  }
  for (int d = 0; d < t.ndim && !laid; ++d) {
    if (t.stride(d) == 0) continue;
    sizes.push_back(t.size(d));
    strides.push_back(t.stride(d) * parts);
  }
  if (parts == 2) {
    sizes.push_back(2);
    strides.push_back(1);
  }
  DType real = real_of(t.dtype);
  std::int64_t item = item_size(real);
  const std::int64_t* operand[] = {strides.data()};
  Nest nest(sizes, operand, &item, 1);
  FindFaults search = fault_search(real);
  char* base = reinterpret_cast<char*>(laid ? t.storage->read_laid() : const_cast<std::byte*>(t.read()));
  std::atomic<unsigned> found = 0;
  parallel_for(
      nest.numel, 1 << 16,
      [&](std::int64_t begin, std::int64_t end) {
        nest.run(&base, begin, end, [&](char** p, std::int64_t n, const std::int64_t* steps) {
          if (unsigned here = search(p[0], n, steps[0]) & wanted) found |= here;
        });
      },
      laid);
  return found & found_nan ? Fault::Nan : found ? Fault::Infinity : Fault::None;
}

bool has_nan(const Tensor& t) { return fault_in(t, true, false) == Fault::Nan; }

}  // namespace rushlight
