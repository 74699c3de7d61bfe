// Hooks as the core sees them; core/python gives each a Python callable.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tensor/tensor.h"

namespace rushlight {

struct Hook {
  virtual ~Hook() = default;
  virtual int visit(Visitor) const { return 0; }
};
/// Sees the gradient of one output; may give another in its place.
struct TensorHook : Hook {
  std::uint32_t output = 0;
  virtual TensorRef call(Tensor* grad) = 0;
};
/// Sees all gradients that reach a node, before it runs; may replace them.
struct NodePreHook : Hook {
  virtual void call(TensorRef* grads, int n) = 0;
};
/// Sees what a node gave and what it got.
struct NodePostHook : Hook {
  virtual void call(TensorRef* results, int n_results, TensorRef* grads, int n_grads) = 0;
};
/// Runs after a gradient was accumulated into a leaf.
struct LeafHook : Hook {
  virtual void call(Tensor* leaf) = 0;
};
/// What saved_tensors_hooks made of a saved tensor.
struct SavedHook : Hook {
  virtual TensorRef unpack() = 0;
};

/// Hooks in order of registration; a hook may be removed while the list runs.
template <class H>
class HookList {
 public:
  std::int64_t add(std::shared_ptr<H> hook, std::int64_t id) {
    entries_.emplace_back(id, std::move(hook));
    return id;
  }
  bool remove(std::int64_t id) {
    for (auto it = entries_.begin(); it != entries_.end(); ++it)
      if (it->first == id) {
        auto dying = std::move(it->second);  // its destructor may run Python, which may come back here
        entries_.erase(it);
        return true;
      }
    return false;
  }
  bool empty() const { return entries_.empty(); }
  template <class F>
  void each(F&& f) const {
    auto copy = entries_;
    for (auto& [id, hook] : copy)
      if (contains(id)) f(*hook);
  }
  int visit(Visitor v) const {
    for (auto& [id, hook] : entries_)
      if (int stop = hook->visit(v)) return stop;
    return 0;
  }
  void clear() {
    auto dying = std::move(entries_);
    entries_.clear();
  }
  const auto& entries() const { return entries_; }

 private:
  bool contains(std::int64_t id) const {
    for (auto& e : entries_)
      if (e.first == id) return true;
    return false;
  }
  std::vector<std::pair<std::int64_t, std::shared_ptr<H>>> entries_;
};

/// embedding: the hook that saved_tensors_hooks asks for `t`, or null where none is active.
SavedHook* pack_saved(Tensor* t);
/// True while saved_tensors_hooks are active on this thread.
extern thread_local bool saved_hooks_active __attribute__((tls_model("initial-exec")));

/// embedding: called on a freshly recorded node while Diagnosis asks for it: keeps the source line or the whole stack.
void trace_node(struct Node* node);
/// embedding: called after an in-place change of `t` by `operation` while locations are recorded.
void trace_change(Tensor* t, const char* operation);
/// embedding: what the two above know, for a message ("" where nothing is known).
std::string describe_change(const Tensor* t);
std::string describe_node(const struct Node* node);

}  // namespace rushlight
