#include "operators/deferred.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "kernels/finite.h"
#include "operators/finite.h"
#include "operators/fusion.h"
#include "operators/layout.h"
#include "operators/view.h"

namespace rushlight {

DeferralLimits deferral_limits;
DeferralStats deferral_stats;
void (*watch_pass)(bool begins) = nullptr;

namespace {

void materialize_storage(Storage* s) {
  Ref<Storage> alive(s);
  PendingWork* last = work_of(s);
  for (PendingWork* companion : {last->companion, static_cast<PendingWork*>(nullptr)}) {
    Fusion fusion(last, companion);
    if (fusion.plan()) {
      if (watch_pass) watch_pass(true);
      fusion.run();
      if (watch_pass) watch_pass(false);
      return;
    }
    if (!companion) break;
  }
  for (auto& in : last->inputs)  // too wide for one pass: what it stands on first
    if (in.storage) in.storage->read_laid();
  Fusion alone(last);
  alone.plan();
  alone.run();
}

void discard_storage(Storage* s) {
  std::unique_ptr<PendingWork> gone(work_of(s));
  s->pending = nullptr;
}

}  // namespace

PendingWork::PendingWork() : Pending{&materialize_storage, &discard_storage} {
  after = all();
  if (after) after->before = this;
  all() = this;
}

PendingWork::~PendingWork() {
  (before ? before->after : all()) = after;
  if (after) after->before = before;
  if (companion) companion->companion = nullptr;
  for (auto& in : inputs)
    if (in.storage) {
      --in.storage->readers;
      release(in.storage);
    }
}

PendingWork*& PendingWork::all() {
  static PendingWork* first = nullptr;
  return first;
}

void Storage::flush_readers() {
  for (PendingWork* d = PendingWork::all(); d && readers;) {
    bool reads = false;
    for (auto& in : d->inputs) reads = reads || in.storage == this;
    if (!reads) {
      d = d->after;
      continue;
    }
    d->self->read_laid();
    d = PendingWork::all();  // the list has changed
  }
}

bool reduce_pending(const Fold& fold, const Tensor& t, std::uint64_t dims, std::byte* out) {
  if (!whole_work(t)) return false;
  MadeOrder order = order_made(fold, t.sizes(), t.item_size(), dims, deferral_limits.run);
  if (order == MadeOrder::None) return false;
  Fusion fusion(t);
  if (!fusion.plan()) return false;
  // What is written by columns lies badly in the caches for what comes next.
  if (order == MadeOrder::ByColumns && fusion.writes_last()) return false;
  if (watch_pass) watch_pass(true);
  fusion.run_reduced(fold, t.sizes(), dims, out);
  if (watch_pass) watch_pass(false);
  return true;
}

bool is_finite_pending(std::vector<Looked> looked, bool nans, bool infinities) {
  unsigned wanted = (nans ? found_nan : 0u) | (infinities ? found_infinity : 0u);
  while (!looked.empty()) {
    const Tensor& last = *looked.back().tensor;
    if (!whole_work(last)) {
      if (fault_in(last, nans, infinities) != Fault::None) return false;
      looked.pop_back();
      continue;
    }
    Fusion fusion(looked);
    if (!fusion.plan()) {  // too wide: two passes, or one for it alone
      auto half = looked.begin() + std::ptrdiff_t(looked.size() / 2);
      if (half == looked.begin()) last.read();
      if (!is_finite_pending({looked.begin(), half}, nans, infinities)) return false;
      looked.erase(looked.begin(), half);
      continue;
    }
    std::vector<Looked> others;
    for (auto& l : looked)
      if (!fusion.includes(l.tensor->storage)) others.push_back(l);
    if (watch_pass) watch_pass(true);
    unsigned found = fusion.run_looked();
    if (watch_pass) watch_pass(false);
    if (found & wanted) return false;
    looked = std::move(others);
  }
  return true;
}

namespace {

/// How the operand is repeated over the sizes, or nothing where it is not so, or in runs that are too short.
std::optional<Spread> spread_over(const Tensor& t, IntSpan sizes) {
  struct Level {
    std::int64_t size, stride;
  } levels[4];
  int n = 0;
  Dims strides = broadcast_strides(t, sizes);
  for (std::size_t d = sizes.size(); d-- > 0;) {
    if (sizes[d] == 1) continue;
    if (n && strides[d] == levels[n - 1].stride * levels[n - 1].size) {
      levels[n - 1].size *= sizes[d];
      continue;
    }
    if (n == 4) return std::nullopt;
    levels[n++] = {sizes[d], strides[d]};
  }
  if (n < 2 || levels[0].size < deferral_limits.run || levels[0].stride > 1) return std::nullopt;
  Spread s;
  s.run = levels[0].size;
  s.steps = levels[0].stride == 1;
  int at = 1;
  if (s.steps) s.repeat = levels[at++].size;  // its stride is 0, or it is no repetition
  if (s.steps && levels[1].stride != 0) return std::nullopt;
  if (at < n && levels[at].stride) {
    s.next = s.steps ? s.run : 1;
    if (levels[at].stride != s.next) return std::nullopt;
    s.count = levels[at++].size;
  }
  if (at < n && levels[at++].stride != 0) return std::nullopt;
  return at == n ? std::optional(s) : std::nullopt;
}

/// An operand as pending work of these sizes can read it; false where it cannot.
bool take_input(const Tensor& t, DType d, IntSpan sizes, PendingInput& to) {
  if (t.dtype != d || t.storage->reachable()) return false;
  to.storage = t.storage;
  to.offset = t.offset * t.item_size();
  if (t.is_contiguous() && equal(t.sizes(), sizes)) return true;
  to.single = true;
  for (int k = 0; k < t.ndim && to.single; ++k) to.single = t.size(k) == 1 || t.stride(k) == 0;
  if (to.single) return true;
  auto spread = spread_over(t, sizes);
  if (spread) to.spread = *spread;
  return spread.has_value();
}

/// All of these; false where one cannot be read, or where they do not lie in one order.
bool take_inputs(const Program& program, DType d, const Operand* in, IntSpan sizes, std::vector<PendingInput>& inputs,
                 Arrangement& layout) {
  for (auto& instruction : program.code)
    for (int k = 0; k < instruction.n_in; ++k)
      if (instruction.in[k] < inputs.size()) inputs[instruction.in[k]].used = true;
  std::int64_t numel = count_elements(sizes);
  bool first = true, spread = false;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    PendingInput& to = inputs[i];
    if (!to.used) continue;
    const Tensor* t = in[i].tensor;
    if (!t) {
      to.number = in[i].number;
      continue;
    }
    if (!take_input(*t, d, sizes, to)) return false;
    if (to.whole()) {
      Arrangement own = t->storage->layout ? layout_of(*t) : Arrangement();
      if ((t->storage->layout && !own) || (!first && own != layout)) return false;
      layout = own, first = false;
    } else if (t->storage->layout) {
      t->storage->read();
    }
    spread = spread || to.spread;
    PendingWork* behind = t->storage->deferred() ? work_of(t->storage) : nullptr;
    if (behind && (!to.whole() || to.offset != 0 || behind->n != numel || behind->dtype != d))
      to.whole() ? t->storage->read_laid() : t->storage->read();  // now: every pending input is whole
  }
  return !(spread && layout);
}

}  // namespace

TensorRef defer(const Program& program, DType d, const Operand* in, int n, IntSpan sizes) {
  if (!deferral_limits.on || (d != DType::Float32 && d != DType::Float64) || program.code.empty()) return nullptr;
  std::vector<PendingInput> inputs(static_cast<std::size_t>(n));
  Arrangement layout;
  if (!take_inputs(program, d, in, sizes, inputs, layout)) return nullptr;
  std::vector<PendingWork*> order;
  collect_inputs(inputs, order);
  Extent extent;
  extent.add(program, inputs);
  for (auto* before : order) extent.add(*before->program, before->inputs);
  if (!extent.fits())  // the chain is computed so far, and another begins
    for (auto& input : inputs)
      if (input.storage) input.storage->read_laid();
  for (auto& input : inputs)  // a single element of the same storage has been read
    if (input.whole() && input.storage->layout != layout) return nullptr;
  auto work = std::make_unique<PendingWork>();
  work->program = &program;
  work->dtype = d;
  work->n = count_elements(sizes);
  work->layout = layout;
  for (auto& input : inputs)
    if (input.storage) {
      retain(input.storage);
      ++input.storage->readers;
    }
  work->inputs = std::move(inputs);
  Ref<Storage> storage = new_pending_storage(std::size_t(work->n * item_size(d)), nullptr);
  work->self = storage.get();
  storage->layout = layout;
  storage->pending = work.release();
  ++deferral_stats.deferred;
  return make_tensor(std::move(storage), d, sizes, contiguous_strides(sizes), 0);
}

bool defer_inplace(const Program& program, DType d, const Operand* in, int n, Tensor& self) {
  Storage* s = self.storage;
  if (s->deferred() && s->readers) s->flush_readers();  // they want the old numbers
  if (!s->deferred() || self.offset != 0 || work_of(s)->n != self.numel) return false;
  TensorRef next = defer(program, d, in, n, self.sizes());
  if (!next || !s->deferred()) return false;
  Storage* old = next->storage;  // the two exchange what they stand for
  std::swap(s->pending, old->pending);
  std::swap(s->layout, old->layout);
  work_of(s)->self = s;
  work_of(old)->self = old;
  for (auto& input : work_of(s)->inputs) {
    if (input.storage != s) continue;
    --s->readers;
    release(s);
    retain(old);
    ++old->readers;
    input.storage = old;
  }
  return true;
}

void defer_together(const Tensor& a, const Tensor& b) {
  if (!a.storage->deferred() || !b.storage->deferred() || a.storage->layout != b.storage->layout) return;
  PendingWork *one = work_of(a.storage), *other = work_of(b.storage);
  if (one->companion || other->companion || one->n != other->n || one->dtype != other->dtype) return;
  one->companion = other;
  other->companion = one;
}

}  // namespace rushlight
