// The engine: walks the record backwards.
#pragma once

#include <vector>

#include "autograd/variable.h"

namespace rushlight {

/// Where the gradient of a root goes in, or where one is to be caught.
struct GraphPoint {
  Ref<Node> node;
  std::uint32_t output = 0;
};

struct BackwardOptions {
  bool keep_graph = false;
  bool create_graph = false;
  bool accumulate = true;          ///< let leaves collect; false: only catch at `inputs`
  std::vector<GraphPoint> inputs;  ///< empty: all leaves
  std::int64_t rows = -1;          ///< of run_rows
};

/// Runs from `roots` with `grads` (one each). Returns the caught gradients, one per input (null: not reached).
TensorList run_backward(std::vector<GraphPoint> roots, TensorList grads, const BackwardOptions& options);
/// The same for `options.rows` cotangents at once, a leading dimension of `grads` and of what is caught at the inputs
/// (of which there are some). False where a node on the way takes one at a time only, or has hooks: nothing has run.
bool run_rows(std::vector<GraphPoint> roots, TensorList grads, const BackwardOptions& options, TensorList& caught);

/// What backward reports of each node beyond Diagnosis, off unless asked for.
struct NodeWatch {
  bool profile = false;     ///< time and memory of each node (autograd.profiler)
  bool infinities = false;  ///< under anomaly mode: refuse infinite gradients, too
};
extern NodeWatch node_watch;
/// embedding: opens and closes the profiler's event of a node.
void profile_node(Node* node);
void profile_end();
/// embedding: raises for `result`, gradient `output` of the node, with NaN (or infinity); `grads`: what the node was
/// given.
[[noreturn]] void report_not_finite(Node* node, int output, bool nan, const TensorRef* grads, const TensorRef& result);

/// embedding: called between nodes now and then: raises where the user interrupted, lets other threads run.
void breathe();
/// embedding: adds what is known of the place where `node` was recorded to the error in flight (anomaly mode).
void explain_failure(Node* node);
/// embedding: runs `f` on a thread with a fresh stack, this one waiting.
void run_on_fresh_stack(void (*f)(void*), void* argument);

/// The node that is being run on this thread, or null.
Node* current_node();
/// The number of the innermost run on this thread, -1 outside of backward.
std::int64_t current_run();
/// True where every run on this thread lets all leaves collect: none was given inputs.
bool collects_everywhere();
/// True where the innermost run on this thread will run the node (or has).
bool will_run(Node* node);

}  // namespace rushlight
