#include "autograd/engine.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <unordered_map>

#include "autograd/tangent.h"
#include "operators/deferred.h"
#include "operators/finite.h"
#include "operators/operators.h"

namespace rushlight {

/// A node's place in one run: what is still awaited, and the gradients that have come.
struct Task {
  Node* node = nullptr;
  class Run* run = nullptr;
  std::int32_t awaited = 0;
  bool needed = true;
  bool catches = false;        ///< some gradient is to be caught here
  TensorRef* grads = nullptr;  ///< n_outputs of them: `one` or an array
  TensorRef one;
  ~Task() {
    if (grads && grads != &one) delete[] grads;
  }
};

class Run;

namespace {
thread_local Node* running_node = nullptr;
thread_local int depth = 0;        // runs nested on this stack
thread_local int total_depth = 0;  // and on the stacks that wait for it
constexpr int max_total_depth = 10000;
thread_local Run* innermost = nullptr;
constexpr int max_depth = 40;  // runs nested on one stack; deeper ones get a stack of their own

struct Later {  // the ready node with the greatest sequence number is on top
  bool operator()(const Task* a, const Task* b) const { return a->node->sequence < b->node->sequence; }
};

bool reusable(const Tensor& g) {
  return !g.storage->deferred() && g.refcount == 1 && g.storage->refcount == 1 && !g.meta && !g.grad_fn_ &&
         g.is_contiguous() && !g.storage->free_owner;
}
}  // namespace

/// The gradients that a node was given, for hooks and errors behind it.
class Kept {
 public:
  void take(const TensorRef* grads, int n) {
    if (n == 1)
      one_ = grads[0];
    else
      many_.assign(grads, grads + n);
  }
  TensorRef* data() { return many_.empty() ? &one_ : many_.data(); }

 private:
  TensorRef one_;
  TensorList many_;
};

class Run {
 public:
  explicit Run(const BackwardOptions& options)
      : id(++count_of_runs), options_(options), outer_(std::exchange(innermost, this)) {}
  Run(const Run&) = delete;
  ~Run() {
    innermost = outer_;
    for (auto& chunk : chunks_)
      for (std::size_t i = 0; i < chunk.used; ++i)
        if (chunk.tasks[i].node->task == &chunk.tasks[i]) chunk.tasks[i].node->task = nullptr;
  }

  /// False where gradients with rows were to run through what does not take them.
  bool execute(std::vector<GraphPoint>& roots, TensorList& grads, TensorList& caught) {
    roots_ = &roots;
    count(roots);
    if (!options_.inputs.empty()) mark_needed(roots);
    if (by_rows() && !takes_rows()) return false;
    for (std::size_t i = 0; i < roots.size(); ++i)
      feed(*find(roots[i].node.get()), roots[i].output, std::move(grads[i]));
    for (auto& root : roots) {
      Task* task = find(root.node.get());
      if (task->awaited == 0 && task->needed && std::find(ready_.begin(), ready_.end(), task) == ready_.end())
        push(task);
    }
    caught.resize(options_.inputs.size());
    caught_ = &caught;
    int steps = 0;
    while (!ready_.empty()) {
      std::pop_heap(ready_.begin(), ready_.end(), Later());
      Task* task = ready_.back();
      ready_.pop_back();
      if (!unseen_.empty() && !goes_unseen(task->node)) [[unlikely]]
        look_at_unseen();
      step(*task);
      if ((++steps & 1023) == 0) breathe();
    }
    look_at_unseen();
    return true;
  }

  const Run* outer() const { return outer_; }
  bool has_inputs() const { return !options_.inputs.empty(); }
  bool runs(Node* node) {
    Task* task = find(node);
    return task && task->needed;
  }

  const std::int64_t id;

 private:
  static inline std::int64_t count_of_runs = -1;
  struct Chunk {
    std::unique_ptr<Task[]> tasks;
    std::size_t used = 0, size = 0;
  };

  Task* find(Node* node) {
    if (node->task && node->task->run == this) return node->task;
    if (!foreign_.empty()) {
      auto it = foreign_.find(node);
      if (it != foreign_.end()) return it->second;
    }
    return nullptr;
  }

  Task* make(Node* node) {
    if (chunks_.empty() || chunks_.back().used == chunks_.back().size) {
      std::size_t size = chunks_.empty() ? 32 : std::min<std::size_t>(chunks_.back().size * 4, 4096);
      chunks_.push_back({std::make_unique<Task[]>(size), 0, size});
    }
    Chunk& chunk = chunks_.back();
    Task* task = &chunk.tasks[chunk.used++];
    task->node = node;
    task->run = this;
    task->needed = options_.inputs.empty();
    if (node->n_outputs == 1)
      task->grads = &task->one;
    else
      task->grads = new TensorRef[std::max<std::size_t>(node->n_outputs, 1)];
    if (!node->task)
      node->task = task;
    else
      foreign_[node] = task;  // another run is walking over this node
    return task;
  }

  /// Finds all nodes below the roots and how many edges lead to each.
  void count(std::vector<GraphPoint>& roots) {
    std::vector<Node*> stack;
    for (auto& root : roots)
      if (!find(root.node.get())) {
        make(root.node.get());
        stack.push_back(root.node.get());
      }
    while (!stack.empty()) {
      Node* node = stack.back();
      stack.pop_back();
      for (int i = 0; i < node->n_edges; ++i) {
        Node* next = node->edges[i].node;
        if (!next) continue;
        Task* task = find(next);
        if (!task) {
          task = make(next);
          stack.push_back(next);
        }
        ++task->awaited;
      }
    }
  }

  /// With given inputs: marks what lies on a path to one of them; only that runs.
  void mark_needed(std::vector<GraphPoint>& roots) {
    for (auto& input : options_.inputs)
      if (input.node)
        if (Task* task = find(input.node.get())) {
          task->catches = true;
          task->needed = true;
        }
    std::vector<std::pair<Task*, int>> stack;
    std::unordered_map<Task*, bool> seen;
    for (auto& root : roots) {
      Task* first = find(root.node.get());
      if (!seen.emplace(first, true).second) continue;
      stack.emplace_back(first, 0);
      while (!stack.empty()) {
        auto& [task, next] = stack.back();
        if (next < task->node->n_edges) {
          Node* child = task->node->edges[next++].node;
          if (!child) continue;
          Task* t = find(child);
          if (seen.emplace(t, true).second) stack.emplace_back(t, 0);
        } else {
          Task* done = task;
          stack.pop_back();
          for (int i = 0; i < done->node->n_edges && !done->needed; ++i)
            if (Node* child = done->node->edges[i].node) done->needed = find(child)->needed;
        }
      }
    }
  }

  bool by_rows() const { return options_.rows >= 0; }

  /// Whether every node that will run takes gradients with rows, and nobody else looks at them on the way.
  bool takes_rows() {
    for (auto& chunk : chunks_)
      for (std::size_t i = 0; i < chunk.used; ++i) {
        const Task& task = chunk.tasks[i];
        Node* node = task.node;
        if (!task.needed) continue;
        if (node->kind == &AccumulateGrad::kind) {
          const AutogradMeta* meta = static_cast<AccumulateGrad*>(node)->variable->meta;
          if (meta && !meta->hooks.empty()) return false;
          continue;
        }
        if (node->extra && !is_unwatched(*node->extra)) return false;
        if (!node->kind->apply_rows && (!task.catches || goes_on(node))) return false;
      }
    return true;
  }

  static bool is_unwatched(const NodeExtra& extra) {
    return extra.tensor_hooks.empty() && extra.pre_hooks.empty() && extra.post_hooks.empty() && extra.retained.empty();
  }

  void push(Task* task) {
    ready_.push_back(task);
    std::push_heap(ready_.begin(), ready_.end(), Later());
  }

  /// Adds a gradient to what a node has received for one output.
  void feed(Task& task, std::uint32_t output, TensorRef g) {
    if (!g) return;
    TensorRef& slot = task.grads[output];
    if (!slot) {
      slot = std::move(g);
      return;
    }
    if (!options_.create_graph && slot->dtype == g->dtype && equal(slot->sizes(), g->sizes())) {
      bool pending = slot->storage->deferred() || g->storage->deferred();  // then the sum is better left pending, too
      if (!pending && reusable(*slot)) return add_numbers(*slot, *g);
      if (!pending && reusable(*g)) {
        add_numbers(*g, *slot);
        slot = std::move(g);
        return;
      }
    }
    slot = add(*slot, *g);
  }

  void catch_gradients(Task& task) {
    for (std::size_t i = 0; i < options_.inputs.size(); ++i) {
      auto& input = options_.inputs[i];
      if (input.node.get() == task.node && !(*caught_)[i]) (*caught_)[i] = task.grads[input.output];
    }
  }

  void step(Task& task) {
    Node* node = task.node;
    Ref<Node> alive(node);
    TensorRef few[4];
    std::unique_ptr<TensorRef[]> many;
    TensorRef* results = few;
    if (node->n_edges > 4) {
      many = std::make_unique<TensorRef[]>(node->n_edges);
      results = many.get();
    }
    bool leaf = node->kind == &AccumulateGrad::kind;
    bool runs = task.needed && (!leaf || options_.accumulate || options_.inputs.empty());
    Kept kept;
    try {
      struct Restore {
        Node* node = running_node;
        Unwanted edges = unwanted;
        ~Restore() { running_node = node, unwanted = edges; }
      } restore;
      running_node = node;
      unwanted = has_inputs() ? Unwanted{node, unwanted_edges(node)} : Unwanted{};
      before(task, leaf);
      if (task.catches) {
        catch_gradients(task);
        runs = runs && (leaf ? options_.accumulate : goes_on(node));
      }
      if (!runs) return finish_edges(task, results);
      bool any = false;
      for (int i = 0; i < node->n_outputs && !any; ++i) any = bool(task.grads[i]);
      if (any || node->kind->runs_without_gradients) {
        if (node->extra && !node->extra->pre_hooks.empty()) {
          own(task.grads, node->n_outputs);
          node->extra->pre_hooks.each([&](NodePreHook& hook) { hook.call(task.grads, node->n_outputs); });
        }
        bool hooked = node->extra && !node->extra->post_hooks.empty();
        if (hooked || diagnosis.anomaly) kept.take(task.grads, node->n_outputs);
        if (node_watch.profile) [[unlikely]]
          apply_profiled(node, task.grads, results);
        else
          apply(node, task.grads, results);
        if (hooked) {
          for (int i = 0; i < node->n_edges; ++i)
            if (results[i] && node->edges[i].node) results[i] = suited(std::move(results[i]), node->edges[i]);
          own(results, node->n_edges);
          own(kept.data(), node->n_outputs);
          node->extra->post_hooks.each(
              [&](NodePostHook& hook) { hook.call(results, node->n_edges, kept.data(), node->n_outputs); });
        }
      }
    } catch (...) {
      if (diagnosis.anomaly) explain_failure(node);
      throw;
    }
    if (diagnosis.anomaly && diagnosis.check_nan) [[unlikely]]
      look_at(node, results, kept.data());
    if (!options_.keep_graph) release_saved(node);
    finish_edges(task, results);
  }

  /// True where some path to another wanted input leads through this node.
  bool goes_on(Node* node) {
    for (int i = 0; i < node->n_edges; ++i)
      if (Node* next = node->edges[i].node)
        if (find(next)->needed) return true;
    return false;
  }

  /// Of a run with given inputs.
  std::uint64_t unwanted_edges(Node* node) {
    std::uint64_t mask = 0;
    for (int i = 0; i < node->n_edges && i < 64; ++i)
      if (Node* next = node->edges[i].node; next && !find(next)->needed) mask |= std::uint64_t(1) << i;
    return mask;
  }

  void before(Task& task, bool leaf) {
    Node* node = task.node;
    if (leaf) {
      Tensor* variable = static_cast<AccumulateGrad*>(node)->variable;
      if (variable->meta && task.grads[0])
        variable->meta->hooks.each([&](TensorHook& hook) { apply_hook(hook, task.grads[0]); });
      return;
    }
    if (!node->extra) return;
    node->extra->tensor_hooks.each([&](TensorHook& hook) {
      if (task.grads[hook.output]) apply_hook(hook, task.grads[hook.output]);
    });
    for (auto& [output, tensor] : node->extra->retained) {
      TensorRef& g = task.grads[output];
      if (!g) continue;
      auto& t = *static_cast<Tensor*>(tensor);
      Tensor* old = grad_of(t);
      if (!old)
        set_grad(t, options_.create_graph ? g : clone(*g));
      else
        set_grad(t, add(*old, *g));
    }
  }

  /// A hook may change what it is given: a gradient that others hold, too, or whose elements share memory, is copied
  /// first.
  static void own(TensorRef* grads, int n) {
    if (grad_enabled()) return;
    for (int i = 0; i < n; ++i) {
      TensorRef& g = grads[i];
      if (g && (g->refcount > 1 || g->storage->refcount > 1 || has_internal_overlap(*g))) g = clone(*g);
    }
  }

  static void apply_hook(TensorHook& hook, TensorRef& g) {
    own(&g, 1);
    if (TensorRef other = hook.call(g.get())) g = std::move(other);
  }

  void apply(Node* node, TensorRef* grads, TensorRef* results) const {
    if (by_rows()) [[unlikely]]
      node->kind->apply_rows(node, grads, results, options_.rows);
    else
      node->kind->apply(node, grads, results);
  }

  void apply_profiled(Node* node, TensorRef* grads, TensorRef* results) const {
    struct Event {
      explicit Event(Node* n) { profile_node(n); }
      Event(const Event&) = delete;
      ~Event() { profile_end(); }
    } event(node);
    apply(node, grads, results);
  }

  // Anomaly mode looks at every gradient. Pending ones are looked at together, while they are computed in one pass, a
  // few nodes at a time, and before anything runs that has effects of its own.

  static constexpr std::size_t most_unseen = 16;  // nodes

  struct Unseen {
    Ref<Node> node;
    TensorList results, grads;
  };

  bool goes_unseen(const Node* node) const {
    return node->kind->apply == unseen_.back().node->kind->apply && (!node->extra || is_unwatched(*node->extra));
  }

  void look_at(Node* node, const TensorRef* results, const TensorRef* grads) {
    bool pending = false;
    for (int i = 0; i < node->n_edges; ++i) pending = pending || (results[i] && results[i]->storage->deferred());
    if (pending)
      unseen_.push_back({Ref<Node>(node), {results, results + node->n_edges}, {grads, grads + node->n_outputs}});
    if (!pending || unseen_.size() >= most_unseen) look_at_unseen();
    if (!pending) refuse_not_finite(node, results, grads);
  }

  void look_at_unseen() {
    std::vector<Unseen> unseen = std::exchange(unseen_, {});
    std::unordered_map<const Tensor*, std::intptr_t> ours;  // how often each is held here
    for (auto& seen : unseen)
      for (auto* list : {&seen.results, &seen.grads})
        for (auto& t : *list)
          if (t) ++ours[t.get()];
    std::vector<Looked> pending;
    for (auto& seen : unseen)
      for (auto& result : seen.results)
        if (result && result->storage->deferred())
          pending.push_back({result.get(), result->refcount > ours[result.get()]});
    bool fine = is_finite_pending(pending, true, node_watch.infinities);
    for (auto& seen : unseen) {
      for (auto& result : seen.results)
        if (fine && std::any_of(pending.begin(), pending.end(), [&](auto& l) { return l.tensor == result.get(); }))
          result = nullptr;
      refuse_not_finite(seen.node.get(), seen.results.data(), seen.grads.data());
    }
  }

  static void refuse_not_finite(Node* node, const TensorRef* results, const TensorRef* grads) {
    for (int i = 0; i < node->n_edges; ++i) {
      Fault fault = results[i] ? fault_in(*results[i], true, node_watch.infinities) : Fault::None;
      if (fault == Fault::None) continue;
      try {
        report_not_finite(node, i, fault == Fault::Nan, grads, results[i]);
      } catch (...) {
        explain_failure(node);
        throw;
      }
    }
  }

  void finish_edges(Task& task, TensorRef* results) {
    Node* node = task.node;
    for (int i = 0; i < node->n_outputs; ++i) task.grads[i] = nullptr;
    for (int i = 0; i < node->n_edges; ++i) {
      const Edge& edge = node->edges[i];
      if (!edge.node) {
        results[i] = nullptr;
        continue;
      }
      Task* next = find(edge.node);
      if (results[i] && next->needed) {
        if (!suits(*results[i], edge)) [[unlikely]]
          results[i] = suited(std::move(results[i]), edge);
        feed(*next, edge.output, std::move(results[i]));
      }
      results[i] = nullptr;
      if (--next->awaited == 0 && next->needed) push(next);
    }
  }

  const BackwardOptions& options_;
  Run* outer_;
  std::vector<GraphPoint>* roots_ = nullptr;
  TensorList* caught_ = nullptr;
  std::vector<Chunk> chunks_;
  std::vector<Task*> ready_;
  std::unordered_map<Node*, Task*> foreign_;
  std::vector<Unseen> unseen_;
};

Node* current_node() { return running_node; }
NodeWatch node_watch;
bool collects_everywhere() {
  for (const Run* run = innermost; run; run = run->outer())
    if (run->has_inputs()) return false;
  return true;
}
std::int64_t current_run() { return innermost ? innermost->id : -1; }
bool will_run(Node* node) { return innermost && innermost->runs(node); }

namespace {
bool run_here(std::vector<GraphPoint>& roots, TensorList& grads, const BackwardOptions& options, TensorList& caught) {
  GradScope scope(options.create_graph);
  struct Depth {
    Depth() { ++depth, ++total_depth; }
    ~Depth() { --depth, --total_depth; }
  } deeper;
  Run run(options);
  return run.execute(roots, grads, caught);
}
}  // namespace

TensorList run_backward(std::vector<GraphPoint> roots, TensorList grads, const BackwardOptions& options) {
  TensorList caught;
  run_rows(std::move(roots), std::move(grads), options, caught);
  return caught;
}

bool run_rows(std::vector<GraphPoint> roots, TensorList grads, const BackwardOptions& options, TensorList& caught) {
  check(total_depth < max_total_depth, "backward is nested in backward ", total_depth,
        " times: does a Function's backward call itself without end?");
  if (depth < max_depth) return run_here(roots, grads, options, caught);
  struct Call {
    std::vector<GraphPoint>& roots;
    TensorList& grads;
    const BackwardOptions& options;
    int total_depth;
    Modes modes;
    TangentLevels* levels;
    TensorList& caught;
    bool ran;
  } call{roots, grads, options, total_depth, modes, modes.dual ? tangent_levels() : nullptr, caught, false};
  run_on_fresh_stack(
      [](void* p) {
        auto& c = *static_cast<Call*>(p);
        total_depth = c.total_depth;
        modes = c.modes;
        take_tangent_levels(c.levels);
        c.ran = run_here(c.roots, c.grads, c.options, c.caught);
      },
      &call);
  return call.ran;
}

}  // namespace rushlight
