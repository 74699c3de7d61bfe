#include "kernels/program.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include "kernels/nest.h"
#include "kernels/pair.h"
#include "kernels/parallel.h"
#include "kernels/walk.h"

namespace rushlight {
namespace {

DType arithmetic_type(DType d) { return is_half(d) ? DType::Float32 : d; }

/// Types of one slot while a program is compiled.
struct Typed {
  DType dtype = DType::Float32;
  bool constant = false;
  Kernel::Argument argument{};
};

class Compiler {
 public:
  Compiler(const Program& program, const char* name) : program_(program), kernel_(std::make_unique<Kernel>()) {
    kernel_->name = name;
    kernel_->n_inputs = program.n_inputs;
    kernel_->n_outputs = int(program.outputs.size());
  }

  std::unique_ptr<Kernel> run(const DType* inputs, unsigned promoted, DType compute, const DType* wanted) {
    count_uses();
    slots_.resize(std::size_t(program_.first_result()) + program_.code.size());
    for (int i = 0; i < program_.n_inputs; ++i) {
      slots_[std::size_t(i)] = {
          inputs[i], false, {Kernel::Argument::External, std::uint16_t(i), std::uint16_t(item_size(inputs[i]))}};
    }
    bool in_halves = is_half(compute) && has_own_loop(compute);
    for (int i = 0; i < program_.n_inputs; ++i) {
      DType to = in_halves ? compute : (promoted >> i) & 1 ? arithmetic_type(compute) : arithmetic_type(inputs[i]);
      if (inputs[i] != to && uses_[std::size_t(i)]) slots_[std::size_t(i)] = cast(slots_[std::size_t(i)], to);
    }
    for (std::size_t c = 0; c < program_.constants.size(); ++c)
      slots_[std::size_t(program_.n_inputs) + c].constant = true;
    for (std::size_t i = 0; i < program_.code.size(); ++i) emit(i);
    for (std::size_t o = 0; o < program_.outputs.size(); ++o) write_output(o, wanted ? &wanted[o] : nullptr);
    finish();
    return std::move(kernel_);
  }

 private:
  void count_uses() {
    uses_.assign(std::size_t(program_.first_result()) + program_.code.size(), 0);
    for (auto& instruction : program_.code)
      for (int k = 0; k < instruction.n_in; ++k) ++uses_[instruction.in[k]];
    for (auto o : program_.outputs) uses_[o] += 1000;  // outputs stay until the end
  }

  /// One instruction with a loop for operands that are all of this type (only halves need to ask).
  bool has_own_loop(DType d) const {
    DType same[4] = {d, d, d, d};
    return program_.code.size() == 1 && program_.code[0].loop->find(same);
  }

  std::uint16_t new_temporary() {
    if (!free_.empty()) {
      auto t = free_.back();
      free_.pop_back();
      return t;
    }
    return std::uint16_t(kernel_->n_temporaries++);
  }

  Typed cast(const Typed& from, DType to) {
    Typed out{to, false, {Kernel::Argument::Temporary, new_temporary(), std::uint16_t(item_size(to))}};
    kernel_->steps.push_back({cast_loop(from.dtype, to), nullptr, 2, {from.argument, out.argument}});
    return out;
  }

  Typed constant(const Scalar& value, DType dtype) {
    std::array<std::byte, 16> bytes{};
    value.store(dtype, bytes.data());
    kernel_->constants.push_back(bytes);
    return {dtype, true, {Kernel::Argument::Constant, std::uint16_t(kernel_->constants.size() - 1), 0}};
  }

  /// The signature that needs the fewest conversions of the arguments, all of them widening.
  const LoopSignature& resolve(const Instruction& instruction) {
    const LoopSignature* best = nullptr;
    int best_cost = 1 << 20;
    for (auto& s : instruction.loop->signatures) {
      int cost = 0;
      bool fits = true;
      for (int k = 0; k < instruction.n_in && fits; ++k) {
        const Typed& a = slots_[instruction.in[k]];
        if (a.constant) {
          int kind = program_.constants[std::size_t(instruction.in[k] - program_.n_inputs)].kind;
          fits = kind <= category(s.in[k]);
          if (all_constant(instruction) && s.in[k] != default_dtype) cost += 64;
        } else if (a.dtype != s.in[k]) {
          fits = promote(a.dtype, s.in[k]) == s.in[k];
          cost += 64 + int(item_size(s.in[k]));
          // an integer goes to the default floating type, not to whichever is listed first
          if (category(a.dtype) < 2 && category(s.in[k]) == 2 && s.in[k] != default_dtype) cost += 32;
        }
      }
      if (fits && cost < best_cost) {
        best = &s;
        best_cost = cost;
      }
    }
    if (!best) {
      const Typed& a = slots_[instruction.in[0]];
      fail(ErrorKind::NotImplemented, '"', kernel_->name, "\" not implemented for '", info(a.dtype).scalar_name, "'");
    }
    return *best;
  }

  bool all_constant(const Instruction& instruction) const {
    for (int k = 0; k < instruction.n_in; ++k)
      if (!slots_[instruction.in[k]].constant) return false;
    return true;
  }

  void emit(std::size_t i) {
    const Instruction& instruction = program_.code[i];
    const LoopSignature& s = resolve(instruction);
    Kernel::Step step{s.function, s.data, instruction.n_in + 1, {}};
    std::vector<std::uint16_t> casts;
    for (int k = 0; k < instruction.n_in; ++k) {
      const Typed& a = slots_[instruction.in[k]];
      if (a.constant)
        step.args[k] =
            constant(program_.constants[std::size_t(instruction.in[k] - program_.n_inputs)], s.in[k]).argument;
      else if (a.dtype != s.in[k]) {
        step.args[k] = cast(a, s.in[k]).argument;
        casts.push_back(step.args[k].index);
      } else
        step.args[k] = a.argument;
    }
    for (int k = 0; k < instruction.n_in; ++k) {
      std::size_t slot = instruction.in[k];
      if (--uses_[slot] == 0 && slots_[slot].argument.kind == Kernel::Argument::Temporary && !slots_[slot].constant)
        free_.push_back(slots_[slot].argument.index);
    }
    for (auto t : casts) free_.push_back(t);
    // loops may write over an input of equal or greater width element by element; a wider result needs its own block
    std::size_t result = std::size_t(program_.first_result()) + i;
    Typed out{s.out, false, {Kernel::Argument::Temporary, 0, std::uint16_t(item_size(s.out))}};
    out.argument.index = fresh_unless_same_width(step, item_size(s.out));
    step.args[instruction.n_in] = out.argument;
    slots_[result] = out;
    kernel_->steps.push_back(step);
    writer_[result] = kernel_->steps.size() - 1;
  }

  std::uint16_t fresh_unless_same_width(const Kernel::Step& step, std::int64_t width) {
    for (std::size_t f = free_.size(); f-- > 0;) {
      bool clash = false;
      for (int k = 0; k + 1 < step.n_args; ++k)
        clash |= step.args[k].kind == Kernel::Argument::Temporary && step.args[k].index == free_[f] &&
                 step.args[k].item != width;
      if (clash) continue;
      auto t = free_[f];
      free_.erase(free_.begin() + std::ptrdiff_t(f));
      return t;
    }
    return std::uint16_t(kernel_->n_temporaries++);
  }

  void write_output(std::size_t o, const DType* wanted) {
    std::size_t slot = program_.outputs[o];
    Typed from = slots_[slot];
    if (from.constant)
      from = constant(program_.constants[slot - std::size_t(program_.n_inputs)], wanted ? *wanted : default_dtype);
    DType to = wanted ? *wanted : from.dtype;
    Kernel::Argument external{Kernel::Argument::External, std::uint16_t(program_.n_inputs + int(o)),
                              std::uint16_t(item_size(to))};
    auto writer = writer_.find(slot);
    if (to == from.dtype && writer != writer_.end() && uses_[slot] < 2000 &&
        !read_after(writer->second, from.argument)) {
      auto& step = kernel_->steps[writer->second];
      step.args[step.n_args - 1] = external;  // written where it is wanted at once
    } else {
      kernel_->steps.push_back({cast_loop(from.dtype, to), nullptr, 2, {from.argument, external}});
    }
    kernel_->outputs.push_back(to);
  }

  bool read_after(std::size_t step, const Kernel::Argument& a) const {
    for (std::size_t i = step + 1; i < kernel_->steps.size(); ++i)
      for (int k = 0; k + 1 < kernel_->steps[i].n_args; ++k) {
        auto& b = kernel_->steps[i].args[k];
        if (b.kind == a.kind && b.index == a.index) return true;
      }
    return false;
  }

  void finish() {
    Kernel& k = *kernel_;
    if (k.n_temporaries) {
      k.stride = 1;
      for (auto& step : k.steps)
        for (int i = 0; i < step.n_args; ++i)
          if (step.args[i].kind == Kernel::Argument::Temporary)
            k.stride = std::max<std::int64_t>(k.stride, step.args[i].item);
      check(k.n_temporaries <= max_temporaries, "a pointwise program needs more than ", max_temporaries,
            " temporaries");
      // half of a first-level cache for temporaries, the rest for the operands' blocks (block_size looks at these)
      k.block = std::clamp<std::int64_t>(24 * 1024 / (k.n_temporaries * k.stride) / 64 * 64, 64, 1024);
    }
    k.direct = k.steps.size() == 1 && k.steps[0].n_args == k.n_inputs + k.n_outputs;
    for (int i = 0; k.direct && i < k.steps[0].n_args; ++i) {
      auto& a = k.steps[0].args[i];
      k.direct = a.kind == Kernel::Argument::External && a.index == i;
    }
  }

  const Program& program_;
  std::unique_ptr<Kernel> kernel_;
  std::vector<Typed> slots_;
  std::vector<int> uses_;
  std::vector<std::uint16_t> free_;
  std::unordered_map<std::size_t, std::size_t> writer_;
};

}  // namespace

std::unique_ptr<Kernel> compile(const Program& program, const DType* inputs, unsigned promoted, DType compute,
                                const DType* wanted, const char* name) {
  bool real = compute == DType::Float32 || compute == DType::Float64;
  for (int i = 0; i < program.n_inputs; ++i) real = real && (inputs[i] == compute || ((promoted >> i) & 1));
  if (!real || program.code.size() < 2) return Compiler(program, name).run(inputs, promoted, compute, wanted);
  Program joined = paired(program);
  return Compiler(joined, name).run(inputs, promoted, compute, wanted);
}

/// Fetches the operands' next block while this one is worked on: a long program leaves memory idle otherwise.
static void prefetch(const Kernel& kernel, char* const* operands, const std::int64_t* steps, std::int64_t at,
                     std::int64_t block) {
  constexpr std::int64_t line = 64;
  for (int k = 0; k < kernel.n_inputs + kernel.n_outputs; ++k) {
    std::int64_t step = steps[k];
    if (step <= 0 || step > 16) continue;  // one number, or elements far apart
    const char* from = operands[k] + at * step;
    for (std::int64_t byte = 0; byte < block * step; byte += line) {
      if (k < kernel.n_inputs)
        __builtin_prefetch(from + byte, 0, 2);
      else
        __builtin_prefetch(from + byte, 1, 2);
    }
  }
}

/// How many elements go through all steps at a time: as many as a first-level cache holds together with the
/// temporaries, the operands, and what is fetched of these for the next block.
static std::int64_t block_size(const Kernel& kernel, const std::int64_t* steps) {
  constexpr std::int64_t cache = 32 * 1024;
  std::int64_t bytes = std::max<std::int64_t>(kernel.n_temporaries * kernel.stride, 1);
  for (int k = 0; k < kernel.n_inputs + kernel.n_outputs; ++k)
    if (steps[k] > 0 && steps[k] <= 16) bytes += 2 * steps[k];
  return std::clamp<std::int64_t>(cache / bytes / 64 * 64, 64, kernel.block);
}

void Kernel::run_line(char* const* operands, const std::int64_t* operand_steps, std::int64_t n,
                      std::byte* scratch) const {
  if (direct) {
    char* args[max_operands];
    std::intptr_t steps_[max_operands];
    for (int k = 0; k < n_inputs + n_outputs; ++k) {
      args[k] = operands[k];
      steps_[k] = operand_steps[k];
    }
    std::intptr_t count = n;
    steps[0].function(args, &count, steps_, steps[0].data);
    return;
  }
  const std::int64_t size = n > 64 ? block_size(*this, operand_steps) : 64;
  for (std::int64_t at = 0; at < n; at += size) {
    std::intptr_t count = std::min(size, n - at);
    if (n - at > 2 * size) prefetch(*this, operands, operand_steps, at + size, size);
    for (auto& step : steps) {
      char* args[5];
      std::intptr_t steps_[5];
      for (int k = 0; k < step.n_args; ++k) {
        const Argument& a = step.args[k];
        switch (a.kind) {
          case Argument::External:
            steps_[k] = operand_steps[a.index];
            args[k] = operands[a.index] + at * steps_[k];
            break;
          case Argument::Temporary:
            steps_[k] = a.item;
            args[k] = reinterpret_cast<char*>(scratch + a.index * size * stride);
            break;
          case Argument::Constant:
            steps_[k] = 0;
            args[k] = const_cast<char*>(reinterpret_cast<const char*>(constants[a.index].data()));
            break;
        }
      }
      step.function(args, &count, steps_, step.data);
    }
  }
}

static void raise_division(const Kernel&) {
  if (division_by_zero) {
    division_by_zero = false;
    fail("ZeroDivisionError");
  }
}

/// The thread's blocks. On the heap: thread-local memory of a loaded library is scarce.
static std::byte* scratch() {
  struct alignas(64) Blocks {
    std::byte bytes[scratch_bytes];
  };
  static thread_local std::unique_ptr<Blocks> memory;
  if (!memory) memory = std::make_unique_for_overwrite<Blocks>();
  return memory->bytes;
}

void run_kernel_part(const Kernel& kernel, std::int64_t n, char* const* operands, const std::int64_t* steps) {
  kernel.run_line(operands, steps, n, kernel.direct ? nullptr : scratch());
}

void run_kernel_flat(const Kernel& kernel, std::int64_t n, char* const* operands, const std::int64_t* steps,
                     bool keep_lock) {
  if (n <= pointwise_grain) {
    kernel.run_line(operands, steps, n, kernel.direct ? nullptr : scratch());
    if (division_by_zero) [[unlikely]]
      raise_division(kernel);
    return;
  }
  int count = kernel.n_inputs + kernel.n_outputs;
  bool divided = false;
  parallel_for(
      n, pointwise_grain,
      [&](std::int64_t begin, std::int64_t end) {
        char* moved[max_operands];
        for (int k = 0; k < count; ++k) moved[k] = operands[k] + begin * steps[k];
        kernel.run_line(moved, steps, end - begin, scratch());
        if (division_by_zero) {
          division_by_zero = false;
          divided = true;
        }
      },
      keep_lock);
  if (divided) fail("ZeroDivisionError");
}

namespace {

/// A run over operands whose common runs are short: those that do not lie evenly are packed, block by block.
class PackedRun {
 public:
  PackedRun(const Kernel& kernel, const Nest& nest, char* const* base, const std::int64_t* item)
      : kernel_(kernel), base_(base), item_(item), count_(nest.n_operands) {
    for (int k = 0; k < count_; ++k) {
      walks_[k] = Walk(nest, k);
      packed_ += !walks_[k].is_even();
    }
  }

  void run(std::int64_t begin, std::int64_t end) const {
    auto room = std::make_unique_for_overwrite<std::byte[]>(std::size_t(packed_ * block * 16));
    for (std::int64_t at = begin; at < end; at += block) run_block(at, std::min(block, end - at), room.get());
  }

 private:
  static constexpr std::int64_t block = 1024;

  void run_block(std::int64_t at, std::int64_t n, std::byte* room) const {
    char* address[max_operands];
    std::int64_t steps[max_operands];
    for (int k = 0; k < count_; ++k) {
      const Walk& walk = walks_[k];
      steps[k] = walk.is_even() ? walk.step() : item_[k];
      address[k] = base_[k] + at * walk.step();
      if (walk.is_even()) continue;
      address[k] = reinterpret_cast<char*>(room);
      room += block * 16;
      if (k < kernel_.n_inputs)
        visit_width(item_[k], [&]<class T>() { walk.gather(base_[k], at, n, reinterpret_cast<T*>(address[k])); });
    }
    kernel_.run_line(address, steps, n, scratch());
    for (int k = kernel_.n_inputs; k < count_; ++k)
      if (!walks_[k].is_even())
        visit_width(item_[k], [&]<class T>() { walks_[k].scatter(base_[k], at, n, reinterpret_cast<T*>(address[k])); });
  }

  const Kernel& kernel_;
  char* const* base_;
  const std::int64_t* item_;
  int count_, packed_ = 0;
  Walk walks_[max_operands];
};

}  // namespace

void run_kernel(const Kernel& kernel, IntSpan shape, const RunOperand* operands, int n) {
  const std::int64_t* strides[max_operands];
  std::int64_t item[max_operands];
  char* base[max_operands];
  for (int k = 0; k < n; ++k) {
    strides[k] = operands[k].strides;
    item[k] = operands[k].item;
    base[k] = operands[k].address;
  }
  Nest nest(shape, strides, item, n);
  if (nest.numel == 0) return;
  if (nest.ndim <= 1) return run_kernel_flat(kernel, nest.numel, base, nest.steps[0]);
  bool divided = false;
  std::optional<PackedRun> packed;
  if (nest.sizes[0] < short_run && nest.numel >= 8 * short_run) packed.emplace(kernel, nest, base, item);
  parallel_for(nest.numel, pointwise_grain, [&](std::int64_t begin, std::int64_t end) {
    if (packed) {
      packed->run(begin, end);
    } else {
      std::byte* memory = scratch();
      nest.run(base, begin, end, [&](char** p, std::int64_t count, const std::int64_t* steps) {
        kernel.run_line(p, steps, count, memory);
      });
    }
    if (division_by_zero) {
      division_by_zero = false;
      divided = true;
    }
  });
  if (divided) fail("ZeroDivisionError");
}

}  // namespace rushlight
