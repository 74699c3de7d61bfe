#include "operators/deferred.h"

#include <map>

#include "kernels/nest.h"
#include "operators/layout.h"
#include "operators/operators.h"

namespace rushlight {

DeferralStats deferral_stats;
void (*watch_pass)(bool begins) = nullptr;

namespace {

bool enabled = true;
constexpr std::size_t max_instructions = 64;
constexpr std::size_t max_read = max_operands - 4;  // of one pass: room for a few results that somebody holds

struct Input {
  Storage* storage = nullptr;  ///< owned; null: a number, or unused
  std::int64_t offset = 0;     ///< in bytes
  bool single = false;         ///< one element for all places
  bool used = false;
  Scalar number;
  friend bool operator==(const Input& a, const Input& b) {
    return a.storage && a.storage == b.storage && a.offset == b.offset && a.single == b.single;
  }
};

void materialize_storage(Storage* s);
void discard_storage(Storage* s);

/// The work behind one pending storage.
struct Deferred : Pending {
  Storage* self;
  const Program* program;
  DType dtype;
  std::int64_t n;
  Arrangement layout;  ///< of the result and of all inputs that are not single
  std::vector<Input> inputs;
  Deferred* companion = nullptr;                 ///< work to be done in the same pass (defer_together)
  Deferred *before = nullptr, *after = nullptr;  ///< all pending work, for flush_readers

  Deferred();
  Deferred(const Deferred&) = delete;
  ~Deferred() {
    unlink();
    if (companion) companion->companion = nullptr;
    for (auto& in : inputs)
      if (in.storage) {
        --in.storage->readers;
        release(in.storage);
      }
  }
  static Deferred*& all() {
    static Deferred* first = nullptr;
    return first;
  }

 private:
  void link() {
    after = all();
    if (after) after->before = this;
    all() = this;
  }
  void unlink() {
    (before ? before->after : all()) = after;
    if (after) after->before = before;
  }
};

Deferred::Deferred() : Pending{&materialize_storage, &discard_storage} { link(); }

Deferred* work_of(const Storage* s) { return static_cast<Deferred*>(s->pending); }

void collect(Deferred* last, std::vector<Deferred*>& order);

/// The pending work behind the inputs, in the order of computation.
void collect_inputs(const std::vector<Input>& inputs, std::vector<Deferred*>& order) {
  for (auto& in : inputs)
    if (in.storage && in.storage->deferred()) collect(work_of(in.storage), order);
}

/// The same, and `last` itself.
void collect(Deferred* last, std::vector<Deferred*>& order) {
  if (std::find(order.begin(), order.end(), last) != order.end()) return;
  collect_inputs(last->inputs, order);
  order.push_back(last);
}

/// What a pass over several pieces of work would have to do.
struct Extent {
  std::size_t instructions = 0;
  std::vector<const Input*> read;  ///< what is read from memory, and numbers

  void add(const Program& program, const std::vector<Input>& inputs) {
    instructions += program.code.size();
    for (auto& in : inputs) {
      if (!in.used || (in.storage && in.storage->deferred())) continue;
      auto same = [&](const Input* other) { return *other == in; };
      if (read.size() <= max_read && std::none_of(read.begin(), read.end(), same)) read.push_back(&in);
    }
  }
  bool fits() const { return instructions <= max_instructions && read.size() <= max_read; }
};

/// A fused pass: what it reads, what it writes, and the program between.
class Fusion {
 public:
  explicit Fusion(Deferred* last, Deferred* companion = nullptr) : last_(last), companion_(companion) {
    if (companion) collect(companion, order_);
    collect(last, order_);
  }

  /// Gives up where there would be too many operands or instructions.
  bool plan() {
    Extent extent;
    for (auto* d : order_) extent.add(*d->program, d->inputs);
    if (extent.instructions > max_instructions) return false;
    for (auto* d : order_) {
      for (auto& in : d->inputs) key_.push_back(place(in));
      key_.push_back(std::int64_t(reinterpret_cast<std::intptr_t>(d->program)));
    }
    for (std::size_t i = 0; i < order_.size(); ++i)
      if (order_[i] == last_ || order_[i] == companion_ || held_elsewhere(order_[i])) {
        outputs_.push_back(i);
        key_.push_back(-1 - std::int64_t(i));
      }
    key_.push_back(std::int64_t(order_[0]->dtype));
    return int(externals_.size() + outputs_.size()) <= max_operands;
  }

  void run() {
    Kernel& kernel = kernel_for();
    DType d = last_->dtype;
    std::int64_t item = item_size(d);
    char* address[max_operands];
    std::int64_t steps[max_operands];
    alignas(16) std::byte numbers[max_operands][16];
    int k = 0;
    for (auto* in : externals_) {
      if (in->storage) {
        address[k] = reinterpret_cast<char*>(in->storage->bytes + in->offset);
        steps[k] = in->single ? 0 : item;
      } else {
        in->number.store(d, numbers[k]);
        address[k] = reinterpret_cast<char*>(numbers[k]);
        steps[k] = 0;
      }
      ++k;
    }
    std::vector<Ref<Storage>> done;
    for (auto i : outputs_) {
      Storage* s = order_[i]->self;
      allocate_bytes(s);
      done.emplace_back(s);
      address[k] = reinterpret_cast<char*>(s->bytes);
      steps[k++] = item;
    }
    ++deferral_stats.passes;
    run_kernel_flat(kernel, last_->n, address, steps, true);
    std::vector<std::unique_ptr<Deferred>> finished;
    for (auto& s : done) {
      finished.emplace_back(work_of(s.get()));
      s->filled();
    }
  }

 private:
  /// Where an input stands: among the pending results (odd numbers) or the externals (even).
  std::int64_t place(const Input& in) {
    if (!in.used) return -1000;
    if (in.storage && in.storage->deferred()) {
      auto at = std::find(order_.begin(), order_.end(), work_of(in.storage)) - order_.begin();
      return 2 * at + 1;
    }
    for (std::size_t i = 0; i < externals_.size(); ++i)
      if (*externals_[i] == in) return 2 * std::int64_t(i);
    externals_.push_back(&in);
    return 2 * std::int64_t(externals_.size() - 1);
  }

  /// Does anything outside of this pass still hold the result?
  bool held_elsewhere(const Deferred* d) const {
    std::intptr_t inside = 0;
    for (auto* other : order_)
      for (auto& in : other->inputs) inside += in.storage == d->self;
    return d->self->refcount > inside;
  }

  Kernel& kernel_for() {
    static auto* cache = new std::map<std::vector<std::int64_t>, std::unique_ptr<Kernel>>;
    auto& slot = (*cache)[key_];
    if (!slot) slot = build();
    return *slot;
  }

  std::unique_ptr<Kernel> build() {
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
    for (auto i : outputs_) p.outputs.push_back(results[i]);
    DType d = order_[0]->dtype;
    std::vector<DType> in(std::size_t(p.n_inputs), d), out(outputs_.size(), d);
    return compile(p, in.data(), ~0u, d, out.data(), "a fused chain");
  }

  Deferred *last_, *companion_;
  std::vector<Deferred*> order_;
  std::vector<const Input*> externals_;
  std::vector<std::size_t> outputs_;
  std::vector<std::int64_t> key_;
};

void materialize_storage(Storage* s) {
  Ref<Storage> alive(s);
  Deferred* last = work_of(s);
  for (Deferred* companion : {last->companion, static_cast<Deferred*>(nullptr)}) {
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
  std::unique_ptr<Deferred> gone(work_of(s));
  s->pending = nullptr;
}

bool shareable(const Tensor& t, DType d) { return t.dtype == d && !t.storage->reachable(); }

}  // namespace

void Storage::flush_readers() {
  for (Deferred* d = Deferred::all(); d && readers;) {
    bool reads = false;
    for (auto& in : d->inputs) reads = reads || in.storage == this;
    if (!reads) {
      d = d->after;
      continue;
    }
    d->self->read_laid();
    d = Deferred::all();  // the list has changed
  }
}

void set_deferral(bool on) { enabled = on; }

TensorRef defer(const Program& program, DType d, const Operand* in, int n, const Tensor& like) {
  if (!enabled || (d != DType::Float32 && d != DType::Float64)) return nullptr;
  std::vector<Input> inputs(static_cast<std::size_t>(n));
  std::vector<bool> used(std::size_t(n), false);
  for (auto& instruction : program.code)
    for (int k = 0; k < instruction.n_in; ++k)
      if (instruction.in[k] < n) used[instruction.in[k]] = true;
  if (program.code.empty()) return nullptr;
  Arrangement layout;
  bool first = true;
  for (int i = 0; i < n; ++i) {
    Input& to = inputs[std::size_t(i)];
    to.used = used[std::size_t(i)];
    if (!to.used) continue;
    const Tensor* t = in[i].tensor;
    if (!t) {
      to.number = in[i].number;
      continue;
    }
    if (!shareable(*t, d)) return nullptr;
    bool single = t->numel == 1;
    if (!single && !t->is_contiguous()) {  // one number expanded
      single = true;
      for (int k = 0; k < t->ndim && single; ++k) single = t->size(k) == 1 || t->stride(k) == 0;
      if (!single) return nullptr;
    }
    if (!single && !same_sizes(*t, like)) return nullptr;
    if (!single) {  // all lie in one order
      Arrangement own = t->storage->layout ? layout_of(*t) : Arrangement();
      if ((t->storage->layout && !own) || (!first && own != layout)) return nullptr;
      layout = own, first = false;
    } else if (t->storage->layout) {
      t->storage->read();
    }
    to.storage = t->storage;
    to.offset = t->offset * t->item_size();
    to.single = single;
    Deferred* behind = t->storage->deferred() ? work_of(t->storage) : nullptr;
    if (behind && (single || to.offset != 0 || behind->n != like.numel || behind->dtype != d)) {
      single ? t->storage->read() : t->storage->read_laid();  // now: every pending input is whole
    }
  }
  std::vector<Deferred*> order;
  collect_inputs(inputs, order);
  Extent extent;
  extent.add(program, inputs);
  for (auto* before : order) extent.add(*before->program, before->inputs);
  if (!extent.fits())  // the chain is computed so far, and another begins
    for (auto& input : inputs)
      if (input.storage) input.storage->read_laid();
  for (auto& input : inputs)  // a single element of the same storage has been read
    if (input.storage && !input.single && input.storage->layout != layout) return nullptr;
  auto work = std::make_unique<Deferred>();
  work->program = &program;
  work->dtype = d;
  work->n = like.numel;
  work->layout = layout;
  for (auto& input : inputs)
    if (input.storage) {
      retain(input.storage);
      ++input.storage->readers;
    }
  work->inputs = std::move(inputs);
  Ref<Storage> storage = new_pending_storage(std::size_t(like.numel * item_size(d)), nullptr);
  work->self = storage.get();
  storage->layout = layout;
  storage->pending = work.release();
  ++deferral_stats.deferred;
  return make_tensor(std::move(storage), d, like.sizes(), contiguous_strides(like.sizes()), 0);
}

bool defer_inplace(const Program& program, DType d, const Operand* in, int n, Tensor& self) {
  Storage* s = self.storage;
  if (s->deferred() && s->readers) s->flush_readers();  // they want the old numbers
  if (!s->deferred() || self.offset != 0 || work_of(s)->n != self.numel) return false;
  TensorRef next = defer(program, d, in, n, self);
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
  Deferred *one = work_of(a.storage), *other = work_of(b.storage);
  if (one->companion || other->companion || one->n != other->n || one->dtype != other->dtype) return;
  one->companion = other;
  other->companion = one;
}

}  // namespace rushlight
