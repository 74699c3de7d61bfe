#include "kernels/attention.h"

#include <algorithm>
#include <memory>
#include <new>

#include "kernels/cpu.h"
#include "kernels/parallel.h"

namespace rushlight {

#define RUSHLIGHT_DECLARE(isa)                    \
  namespace isa {                                 \
  AttentionBuild<float> attention_build(float);   \
  AttentionBuild<double> attention_build(double); \
  }
RUSHLIGHT_FOR_EACH_ISA(RUSHLIGHT_DECLARE)

namespace {

/// Multiplications that are worth a thread.
constexpr double thread_work = 1 << 17;
/// Queries of one head that stay together where heads are fewer than threads.
constexpr std::int64_t part = 64;

template <class T>
const AttentionBuild<T>& build() {
  static const AttentionBuild<T> chosen = RUSHLIGHT_BEST(attention_build(T()));
  return chosen;
}

/// Calls f(item, scratch) for each of `n` items, each of so much work, with scratch memory of the thread's.
template <class T, class F>
void with_scratch(std::int64_t n, double work, std::int64_t size, F&& f) {
  auto grain = std::clamp<std::int64_t>(std::int64_t(thread_work / std::max(work, 1.0)), 1, 63);
  std::int64_t workers = std::min<std::int64_t>(n, num_threads());
  auto memory = std::make_unique_for_overwrite<T[]>(std::size_t(workers * size));
  std::int64_t each = (n + workers - 1) / workers;
  parallel_for(workers, std::max<std::int64_t>(1, (grain + each - 1) / each),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t worker = begin; worker < end; ++worker)
                   for (std::int64_t item = worker * each; item < std::min(n, (worker + 1) * each); ++item)
                     f(item, memory.get() + worker * size);
               });
}

double work_of(const AttentionShape& s) { return double(s.length) * double(s.keys) * double(s.width + s.values); }

}  // namespace

template <class T>
void attention_forward(const AttentionShape& s, const AttentionHead<T>* heads, std::int64_t groups,
                       std::int64_t share) {
  std::int64_t parts = groups >= num_threads() ? 1 : (s.length + part - 1) / part, rows = parts == 1 ? s.length : part;
  with_scratch<T>(groups * parts, work_of(s) * double(share) / double(parts), build<T>().scratch_size(s, false),
                  [&](std::int64_t item, T* scratch) {
                    std::int64_t begin = item % parts * rows;
                    build<T>().forward(s, heads + item / parts * share, share, begin, std::min(begin + rows, s.length),
                                       scratch);
                  });
}

template <class T>
void attention_backward(const AttentionShape& s, const AttentionHead<T>* heads, const AttentionHeadVjp<T>* vjps,
                        std::int64_t groups, std::int64_t share) {
  with_scratch<T>(groups, work_of(s) * double(share), build<T>().scratch_size(s, true),
                  [&](std::int64_t group, T* scratch) {
                    build<T>().backward(s, heads + group * share, vjps + group * share, share, scratch);
                  });
}

template void attention_forward<float>(const AttentionShape&, const AttentionHead<float>*, std::int64_t, std::int64_t);
template void attention_forward<double>(const AttentionShape&, const AttentionHead<double>*, std::int64_t,
                                        std::int64_t);
template void attention_backward<float>(const AttentionShape&, const AttentionHead<float>*,
                                        const AttentionHeadVjp<float>*, std::int64_t, std::int64_t);
template void attention_backward<double>(const AttentionShape&, const AttentionHead<double>*,
                                         const AttentionHeadVjp<double>*, std::int64_t, std::int64_t);

}  // namespace rushlight
