// A node of the recorded graph: one operation, seen from behind.
//
// A node takes the gradients of the operation's outputs and gives those of its inputs, along its edges. It owns the
// tensors that its derivative needs (with the version they had), the edges to the producers of its inputs, and hooks.
// What differs between operations stands in a NodeKind: a name, the derivative, and how to destroy extra state.
#pragma once

#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "autograd/hook.h"
#include "autograd/mode.h"
#include "tensor/tensor.h"

namespace rushlight {

struct Node;
struct Task;  // autograd/engine.cpp

/// Where a gradient goes: an input of a node is identified by the number of the forward output it stands for.
struct Edge {
  Node* node = nullptr;  ///< owned; null where nothing requires grad
  std::uint32_t output = 0;
};

/// A tensor kept for the derivative.
struct SavedTensor {
  Tensor* tensor = nullptr;   ///< owned; for an output: an alias without history, so that no cycle arises. Pending
                              ///< results are aliases, too: whoever counts the holders of their storage tells by
                              ///< Storage::saved whether nodes are the only ones
  std::uint32_t version = 0;  ///< what the version was at saving
  std::int16_t input = -1;    ///< which input of the operation it is (its history is then that edge's), or -1
  std::int16_t output = -1;   ///< which output it is, or -1
  SavedHook* hook = nullptr;  ///< owned; set where saved_tensors_hooks were active: `tensor` is then null

  void keep(TensorRef t) {
    tensor = t.detach();
    ++tensor->storage->saved;
  }
  /// The tensor, or null; the caller owns it now.
  Tensor* let_go() {
    Tensor* t = std::exchange(tensor, nullptr);
    if (t) --t->storage->saved;
    return t;
  }
};

struct NodeKind {
  std::string name;                                            ///< as Python shows it: "MulBackward0"
  void (*apply)(Node*, TensorRef* grads, TensorRef* results);  ///< grads: one per forward output; results: per edge
  void (*destroy)(Node*) noexcept = nullptr;                   ///< destroys what a derived struct adds
  int (*visit)(Node*, Visitor) = nullptr;                      ///< objects owned beyond edges and saved tensors
  void (*release)(Node*) = nullptr;                            ///< frees buffers beyond saved tensors
  bool runs_without_gradients = false;                         ///< apply is called even where no gradient arrived
  /// As apply, for many cotangents at once: gradients have a leading dimension of `rows`. Null: one at a time only.
  void (*apply_rows)(Node*, TensorRef* grads, TensorRef* results, std::int64_t rows) = nullptr;
  void* type = nullptr;  ///< embedding: the class of these nodes, made at first use
};

/// What a node's saved tensors are for: its own derivative, or that by which a tangent is computed (tangent.h).
enum class Lending : std::uint8_t { None, ToUnrecorded, ToRecorded };

/// What few nodes have.
struct NodeExtra {
  HookList<TensorHook> tensor_hooks;                        ///< before the node runs, on one output's gradient each
  HookList<NodePreHook> pre_hooks;                          ///< before the node runs
  HookList<NodePostHook> post_hooks;                        ///< after it
  std::vector<Dims> more_sizes;                             ///< of outputs 1, 2, ... (output 0's stand in the node)
  std::vector<std::uint32_t> complex_outputs;               ///< outputs that are complex where output 0 is real
  std::vector<std::pair<std::uint32_t, Object*>> retained;  ///< (output, tensor) of retain_grad; not owned
  std::vector<const Tensor*> dual_inputs;                   ///< not owned: see autograd/tangent.h
  Object* metadata = nullptr;                               ///< owned Python dict, made when asked for
  Object* trace = nullptr;                                  ///< owned Python object: where the operation was recorded
  ~NodeExtra() {
    if (metadata) rushlight::release(metadata);
    if (trace) rushlight::release(trace);
  }
};

/// Edges (a bit each) of the node that runs on this thread behind which nobody wants a gradient.
struct Unwanted {
  const Node* node = nullptr;
  std::uint64_t edges = 0;
  bool has(const Node* of, int i) const { return node == of && i < 64 && ((edges >> i) & 1); }
};
extern thread_local Unwanted unwanted __attribute__((tls_model("initial-exec")));

struct Node : Object {
  std::intptr_t item_count;  ///< the variable-size part's length, as Python keeps it
  void* dict;                ///< Python's attributes
  void* weakrefs;
  const NodeKind* kind;
  std::uint64_t sequence;  ///< the order of recording; backward runs the latest first
  Edge* edges;             ///< n_edges of them, behind the node
  SavedTensor* saved;      ///< n_saved of them, behind the edges
  NodeExtra* extra;
  Task* task;  ///< the engine's, while a backward runs over this node
  std::int32_t n_edges, n_outputs;
  std::uint16_t n_saved;
  bool released;  ///< saved tensors were freed by a backward
  Lending lending;
  DType dtype;  ///< of output 0, with its shape: for checks, pictures and messages
  std::uint8_t ndim;
  std::int64_t sizes[4];  ///< the first four

  NodeExtra& extras() {
    if (!extra) extra = new NodeExtra;
    return *extra;
  }
  const Edge& edge(int i) const { return edges[i]; }
  /// Is a gradient to be given along this edge?
  bool needs(int i) const { return edges[i].node != nullptr && !unwanted.has(this, i); }
};

/// embedding: memory for a node of `bytes` bytes of the kind's class, count 1; header, dict and weakrefs ready.
void* node_allocate(NodeKind* kind, std::size_t bytes);
/// embedding: the node's name, as errors give it.
std::string name_of(const Node* node);
/// The same without "Backward0", as PyTorch names the producer of a tensor.
std::string operation_of(const Node* node);
/// Frees what a node owns, pushing what may be long onto a list instead of recursing.
void node_clear(Node* node) noexcept;
/// Gives up a count; a chain of objects that die of it is freed in a loop, however long.
void drop(Object* object) noexcept;
int node_visit(Node* node, Visitor visit);
std::uint64_t next_sequence();

/// Sets up the common part of a node whose own struct takes `bytes`.
Node* new_node(NodeKind* kind, std::size_t bytes, int n_edges, int n_saved, int n_outputs);

/// Keeps `t` in slot `i`. `input`: which input of the operation it is (-1: none); an output is kept by save_output.
void save_input(Node* node, int i, Tensor* t, int input);
void save_output(Node* node, int i, Tensor* t, int output);
/// The tensor of slot `i`, after the check of its version.
TensorRef unpack(Node* node, int i);
/// Frees the buffers; a second backward then raises.
void release_saved(Node* node);
[[noreturn]] void fail_released(const Node* node);

}  // namespace rushlight
