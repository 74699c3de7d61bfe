#include "operators/fusion.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <map>
#include <utility>

#include "kernels/finite.h"
#include "kernels/nest.h"
#include "kernels/parallel.h"

namespace rushlight {

namespace {

constexpr std::size_t max_instructions = 64;
constexpr std::size_t max_read = max_operands - 4;  // of one pass: room for a few results that somebody holds
constexpr std::size_t most_again = 8;  // simple instructions that are done twice rather than a result be written

/// Whether tensors that no node saves are over it.
bool held_by_tensors(const Storage* s) { return s->refcount > std::intptr_t(s->readers) + s->saved; }

/// Whether what is not finite in this input is not finite in the result, either.
bool shows(const PendingWork* d, std::size_t input) {
  const Program& p = *d->program;
  std::vector<bool> marked(std::size_t(p.first_result()) + p.code.size(), false);
  marked[input] = true;
  for (std::size_t i = 0; i < p.code.size(); ++i)
    for (int k = 0; k < p.code[i].n_in; ++k)
      if (p.code[i].loop->linear && marked[p.code[i].in[k]]) marked[std::size_t(p.first_result()) + i] = true;
  return marked[p.outputs[0]];
}

}  // namespace

void collect_inputs(const std::vector<PendingInput>& inputs, std::vector<PendingWork*>& order) {
  // the last ones first: those of a tangent are other tangents, and each is then computed beside its primal, which need
  // not be kept until all primals are done
  for (auto in = inputs.rbegin(); in != inputs.rend(); ++in)
    if (in->storage && in->storage->deferred()) collect(work_of(in->storage), order);
}

void collect(PendingWork* last, std::vector<PendingWork*>& order) {
  if (std::find(order.begin(), order.end(), last) != order.end()) return;
  collect_inputs(last->inputs, order);
  order.push_back(last);
}

void Extent::add(const Program& program, const std::vector<PendingInput>& inputs) {
  instructions += program.code.size();
  for (auto& in : inputs) {
    if (!in.used || (in.storage && in.storage->deferred())) continue;
    auto same = [&](const PendingInput* other) { return *other == in; };
    if (read.size() <= max_read && std::none_of(read.begin(), read.end(), same)) read.push_back(&in);
  }
}
bool Extent::few_instructions() const { return instructions <= max_instructions; }
bool Extent::fits() const { return few_instructions() && read.size() <= max_read; }

int Fusion::Effort::kept() const { return std::popcount(reads) + std::popcount(results); }

Fusion::Fusion(PendingWork* last, PendingWork* companion) : last_(last), companion_(companion) {
  if (companion) collect(companion, order_);
  collect(last, order_);
}

Fusion::Fusion(const Tensor& reduced) : Fusion(work_of(reduced.storage)) { reduced_ = &reduced; }

Fusion::Fusion(std::span<const Looked> looked) : Fusion(work_of(looked.back().tensor->storage)) {
  looked_ = looked;
  std::vector<const Storage*> seen;
  for (auto& l : looked)
    if (PendingWork* d = whole_work(*l.tensor); d && d->suits(*last_)) {
      collect(d, order_);
      seen.push_back(d->self);
    }
  auto is_seen = [&](const Storage* s) { return std::find(seen.begin(), seen.end(), s) != seen.end(); };
  auto is_made_of_seen = [&](const PendingWork* d) {
    return std::any_of(d->inputs.begin(), d->inputs.end(), [&](auto& in) { return is_seen(in.storage); });
  };
  for (PendingWork* d = PendingWork::all(); d;) {
    bool more = d->suits(*last_) && held_by_tensors(d->self) && !is_seen(d->self) && is_made_of_seen(d);
    if (more) {
      collect(d, order_);
      seen.push_back(d->self);
    }
    d = more ? PendingWork::all() : d->after;
  }
}

bool Fusion::plan() {
  Extent extent;
  for (auto* d : order_) extent.add(*d->program, d->inputs);
  if (!extent.few_instructions()) return false;
  read_here_.resize(order_.size());
  for (auto* d : order_) {
    for (auto& in : d->inputs) key_.push_back(place(in));
    key_.push_back(std::int64_t(reinterpret_cast<std::intptr_t>(d->program)));
  }
  if (externals_.size() > std::size_t(max_operands)) return false;
  choose_outputs();
  for (auto& out : outputs_) key_.push_back(-1 - std::int64_t(out.at));
  key_.push_back(std::int64_t(order_[0]->dtype));
  return int(externals_.size() + outputs_.size()) <= max_operands;
}

/// What a kernel reads and writes. Its addresses may point into itself.
struct Fusion::Operands {
  char* address[max_operands];
  std::int64_t steps[max_operands];
  Spread spread[max_operands];
  alignas(16) std::byte numbers[max_operands][16];
  int count = 0;
  int rooms = 0;            ///< results that are not written: nullptr instead of an address
  bool has_spread = false;  ///< any operand
  std::vector<Ref<Storage>> done;
};

/// Makes the results piece by piece: those that are not written in the thread's own memory.
struct Fusion::Making {
  Kernel& kernel;
  const Operands& o;
  std::int64_t item;
  std::int64_t most;  ///< numbers in a piece, where some are not written

  /// Fills in where numbers [at, at + n) of each operand are, after they were made.
  void run(std::int64_t at, std::int64_t n, char** moved) const {
    static thread_local std::unique_ptr<std::byte[]> room;  // on the heap: a library's thread-local memory is scarce
    static thread_local std::int64_t room_bytes = 0;
    if (o.rooms * most * item > room_bytes) {
      room_bytes = o.rooms * most * item;
      room = std::make_unique_for_overwrite<std::byte[]>(std::size_t(room_bytes));
    }
    auto* free = reinterpret_cast<char*>(room.get());
    for (int k = 0; k < o.count; ++k)
      moved[k] = o.address[k] ? o.address[k] + at * o.steps[k] : std::exchange(free, free + most * item);
    if (o.has_spread)
      run_spread(at, n, moved);
    else
      run_kernel_part(kernel, n, moved, o.steps);
  }

  /// The same, between the places where a repeated operand begins anew.
  void run_spread(std::int64_t at, std::int64_t n, char* const* moved) const {
    for (std::int64_t i = at; i < at + n;) {
      std::int64_t end = at + n;
      char* part[max_operands];
      for (int k = 0; k < o.count; ++k) {
        part[k] = moved[k] + (i - at) * o.steps[k];
        if (!o.spread[k]) continue;
        auto [element, left] = o.spread[k].at(i);
        part[k] = o.address[k] + element * item;
        end = std::min(end, i + left);
      }
      run_kernel_part(kernel, end - i, part, o.steps);
      i = end;
    }
  }

  /// For a reduction: the last result.
  static const char* make(const void* self, std::int64_t at, std::int64_t n) {
    auto& making = *static_cast<const Making*>(self);
    char* moved[max_operands];
    making.run(at, n, moved);
    return moved[making.o.count - 1];
  }
};

void Fusion::run() {
  Operands o;
  take_operands(o);
  Kernel& kernel = kernel_for();
  if (o.has_spread) {
    Making making{kernel, o, item_size(last_->dtype), 0};
    auto part = [&](std::int64_t begin, std::int64_t end) {
      char* moved[max_operands];
      making.run(begin, end - begin, moved);
    };
    parallel_for(last_->n, pointwise_grain, part, true);
  } else {
    run_kernel_flat(kernel, last_->n, o.address, o.steps, true);
  }
  finish(o);
}

void Fusion::run_reduced(const Fold& fold, IntSpan sizes, std::uint64_t dims, std::byte* out) {
  Operands o;
  take_operands(o);
  Making making{kernel_for(), o, item_size(last_->dtype), line_block};
  reduce_made(fold, {&Making::make, &making}, sizes, making.item, dims, out);
  last_->reduced = true;
  finish(o);
}

unsigned Fusion::run_looked() {
  Operands o;
  take_operands(o);
  Making making{kernel_for(), o, item_size(last_->dtype), 1024};
  FindFaults search = fault_search(last_->dtype);
  std::vector<int> operands;
  for (std::size_t k = 0; k < outputs_.size(); ++k)
    if (outputs_[k].searched) operands.push_back(int(externals_.size() + k));
  std::atomic<unsigned> found = 0;
  auto look = [&](std::int64_t begin, std::int64_t end) {
    unsigned here = 0;
    for (std::int64_t at = begin; at < end; at += making.most) {
      std::int64_t n = std::min(making.most, end - at);
      char* moved[max_operands];
      making.run(at, n, moved);
      for (int k : operands) here |= search(moved[k], n, making.item);
    }
    found |= here;
  };
  parallel_for(last_->n, pointwise_grain, look, true);
  finish(o);
  return found;
}

bool Fusion::includes(const Storage* s) const {
  return std::any_of(order_.begin(), order_.end(), [&](const PendingWork* d) { return d->self == s; });
}

/// Where an input stands: among the pending results (odd numbers) or the externals (even).
std::int64_t Fusion::place_of(const PendingInput& in) const {
  if (!in.used) return -1000;
  if (in.storage && in.storage->deferred()) {
    auto at = std::find(order_.begin(), order_.end(), work_of(in.storage)) - order_.begin();
    return 2 * at + 1;
  }
  std::size_t i = 0;
  while (i < externals_.size() && !(*externals_[i] == in)) ++i;
  return 2 * std::int64_t(i);
}

/// The same, for an input that is met the first time, too.
std::int64_t Fusion::place(const PendingInput& in) {
  std::int64_t at = place_of(in);
  if (at == 2 * std::int64_t(externals_.size())) externals_.push_back(&in);
  if (at > 0 && at % 2) ++read_here_[std::size_t(at / 2)];
  return at;
}

/// `efforts`: of the results before; 0 instructions where they are written.
Fusion::Effort Fusion::effort_of(const PendingWork* d, const std::vector<Effort>& efforts) const {
  Effort e{d->program->code.size()};
  for (auto& instruction : d->program->code)
    if (!instruction.loop->simple) e.instructions = most_again + 1;
  for (auto& in : d->inputs) {
    if (!in.used || !in.whole()) continue;
    std::int64_t at = place_of(in);
    auto bit = std::uint64_t(1) << (at / 2);
    if (at % 2 == 0) {
      if (!in.storage->saved) e.reads |= bit;
    } else if (const Effort& before = efforts[std::size_t(at / 2)]; before.instructions) {
      e.instructions += before.instructions;
      e.reads |= before.reads;
      e.results |= before.results;
    } else if (!in.storage->saved) {
      e.results |= bit;
    }
  }
  return e;
}

const Looked* Fusion::looked_at(const Storage* s) const {
  for (auto& l : looked_)
    if (l.tensor->storage == s) return &l;
  return nullptr;
}

/// Whether a result is to be in memory: those that were asked for and those that tensors outside of this pass hold.
/// What only saved tensors and other pending work wait for stays pending, where to do it again in backward's pass is
/// cheaper than to write it now and read it then, and where no more memory is kept for it than it would take.
bool Fusion::is_written(std::size_t i, const Effort& effort) const {
  const PendingWork* d = order_[i];
  const Storage* s = d->self;
  std::intptr_t waiting = std::intptr_t(s->readers) + s->saved, holders = s->refcount - waiting;
  bool costly = effort.instructions > most_again || effort.kept() > 1;
  if (waiting > read_here_[i] && costly) return true;
  if (const Looked* l = looked_at(s)) return holders > (l->held ? 0 : 1);
  if (d != last_ || !looked_.empty()) return holders > 0 || d == companion_;
  if (!reduced_ || reduced_ != CallersOperand::current) return true;
  // It is written for those who hold it where they are likely to ask for it, or where it would be much to do again.
  if (holders == 1 && reduced_->refcount == 1) return false;
  return last_->reduced || work() > 5 * most_again || effort.kept() > 1;
}

/// Roughly, in simple instructions.
std::size_t Fusion::work() const {
  std::size_t sum = 0;
  for (auto* d : order_)
    for (auto& instruction : d->program->code) sum += instruction.loop->simple ? 1 : most_again;
  return sum;
}

/// The results to be searched: all that are looked at, or others that would show what is wrong with those.
std::vector<bool> Fusion::choose_searched() const {
  std::vector<bool> searched(order_.size(), false), shown(order_.size(), false);
  for (std::size_t i = order_.size(); !looked_.empty() && i-- > 0;) {
    const PendingWork* d = order_[i];
    searched[i] = !shown[i] && (!read_here_[i] || looked_at(d->self));
    for (std::size_t k = 0; k < d->inputs.size() && (searched[i] || shown[i]); ++k)
      if (std::int64_t at = place_of(d->inputs[k]); at > 0 && at % 2 && shows(d, k)) shown[std::size_t(at / 2)] = true;
  }
  return searched;
}

void Fusion::choose_outputs() {
  std::vector<Effort> efforts;
  std::vector<bool> searched = choose_searched();
  for (std::size_t i = 0; i < order_.size(); ++i) {
    Effort effort = effort_of(order_[i], efforts);
    bool written = is_written(i, effort);
    if (written || searched[i] || (reduced_ && order_[i] == last_)) outputs_.push_back({i, written, searched[i]});
    efforts.push_back(written ? Effort() : effort);
  }
}

void Fusion::take_operands(Operands& o) {
  DType d = last_->dtype;
  std::int64_t item = item_size(d);
  for (auto* in : externals_) {
    int k = o.count++;
    o.steps[k] = in->whole() || in->spread.steps ? item : 0;
    o.spread[k] = in->spread;
    o.has_spread = o.has_spread || in->spread;
    if (!in->storage) in->number.store(d, o.numbers[k]);
    o.address[k] = reinterpret_cast<char*>(in->storage ? in->storage->bytes + in->offset : o.numbers[k]);
  }
  for (auto& out : outputs_) {
    int k = o.count++;
    o.steps[k] = item;
    o.address[k] = nullptr;
    if (!out.written) {
      ++o.rooms;
      continue;
    }
    Storage* s = order_[out.at]->self;
    allocate_bytes(s);
    o.done.emplace_back(s);
    o.address[k] = reinterpret_cast<char*>(s->bytes);
  }
  ++deferral_stats.passes;
}

void Fusion::finish(Operands& o) {
  std::vector<std::unique_ptr<PendingWork>> finished;
  for (auto& s : o.done) {
    finished.emplace_back(work_of(s.get()));
    s->filled();
  }
}

Kernel& Fusion::kernel_for() {
  static auto* cache = new std::map<std::vector<std::int64_t>, std::unique_ptr<Kernel>>;
  auto& slot = (*cache)[key_];
  if (!slot) slot = build();
  return *slot;
}

std::unique_ptr<Kernel> Fusion::build() {
  Program p;
  p.n_inputs = int(externals_.size());
  for (auto* d : order_)
    for (auto& c : d->program->constants) p.constants.push_back(c);
  std::vector<std::uint16_t> results;
  std::size_t constant = 0, at = 0;
  for (auto* d : order_) {
    std::vector<std::uint16_t> slots;
    for (std::size_t i = 0; i < d->inputs.size(); ++i) {
      std::int64_t where = key_[at++];
      slots.push_back(where < 0 ? 0 : where % 2 ? results[std::size_t(where / 2)] : std::uint16_t(where / 2));
    }
    ++at;  // the program's own entry
    for (std::size_t c = 0; c < d->program->constants.size(); ++c)
      slots.push_back(std::uint16_t(p.n_inputs + int(constant++)));
    for (auto instruction : d->program->code) {
      for (int k = 0; k < instruction.n_in; ++k) instruction.in[k] = slots[instruction.in[k]];
      p.code.push_back(instruction);
      slots.push_back(std::uint16_t(p.first_result() + int(p.code.size()) - 1));
    }
    results.push_back(slots[d->program->outputs[0]]);
  }
  for (auto& out : outputs_) p.outputs.push_back(results[out.at]);
  DType d = order_[0]->dtype;
  std::vector<DType> in(std::size_t(p.n_inputs), d), out(outputs_.size(), d);
  return compile(p, in.data(), ~0u, d, out.data(), "a fused chain");
}

}  // namespace rushlight
