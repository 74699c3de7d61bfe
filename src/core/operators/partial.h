// Operators that write into part of a tensor: one kernel and one derivative serve the form that gives a new tensor and
// the one that changes its input.
#pragma once

#include "autograd/record.h"
#include "operators/copy.h"

namespace rushlight {

/// Refuses to write to memory that another operand is read from.
void refuse_shared_memory(const Tensor& written, const Tensor& read);

/// Where the result of an operator goes: a copy of its first input, or that input itself.
struct Target {
  Tensor& self;
  const char* inplace = nullptr;  ///< the operation's name ("index_add_") where the input is changed itself
  bool may_overlap = false;       ///< several elements may lie in one place: all get one number
  Target(const Tensor& t) : self(const_cast<Tensor&>(t)) {}
  Target(Tensor& t, const char* operation) : self(t), inplace(operation) {}
};

/// Calls `write(Tensor&)` on the target's numbers and records it. `inputs`: self first; they alone may require grad.
template <class Write, class Derivative>
TensorRef write_part(const char* name, Target target, std::initializer_list<const Tensor*> inputs,
                     std::initializer_list<Save> saves, Write&& write, Derivative&& derivative) {
  if (!target.inplace) {
    TensorRef out = copy_of(target.self);
    write(*out);
    if (!is_differentiable(out->dtype)) return out;
    return record(name, std::move(out), inputs, saves, std::forward<Derivative>(derivative));
  }
  Tensor& self = target.self;
  std::span<const Tensor* const> in(inputs.begin(), inputs.size());
  bool records = is_differentiable(self.dtype) && any_needs_record(in);
  check_inplace(self, any_wants_gradients(in));
  if (!target.may_overlap) refuse_overlapping_write(self);
  for (std::size_t i = 1; i < in.size(); ++i)
    if (in[i]) refuse_shared_memory(self, *in[i]);
  Ref<Node> node;
  if (records)
    node = make_lambda_node(name, in, std::span<const Save>(saves.begin(), saves.size()), 1,
                            std::forward<Derivative>(derivative));
  write(self);
  finish_inplace(self, std::move(node), target.inplace);
  return TensorRef(&self);
}

}  // namespace rushlight
