#include "autograd/node.h"

#include <algorithm>
#include <vector>

#include "autograd/record.h"
#include "autograd/tangent.h"
#include "operators/copy.h"

namespace rushlight {

thread_local Modes modes;
thread_local Unwanted unwanted;
thread_local bool saved_hooks_active = false;
Diagnosis diagnosis;

std::uint64_t next_sequence() {
  static std::uint64_t sequence = 0;  // under the interpreter lock
  return ++sequence;
}

Node* new_node(NodeKind* kind, std::size_t bytes, int n_edges, int n_saved, int n_outputs) {
  std::size_t tail = (bytes + 7) / 8 * 8;
  std::size_t total = tail + std::size_t(n_edges) * sizeof(Edge) + std::size_t(n_saved) * sizeof(SavedTensor);
  auto* node = static_cast<Node*>(node_allocate(kind, total));
  auto* memory = reinterpret_cast<std::byte*>(node);
  node->kind = kind;
  node->sequence = next_sequence();
  node->edges = reinterpret_cast<Edge*>(memory + tail);
  node->saved = reinterpret_cast<SavedTensor*>(node->edges + n_edges);
  for (int i = 0; i < n_edges; ++i) new (node->edges + i) Edge;
  for (int i = 0; i < n_saved; ++i) new (node->saved + i) SavedTensor;
  node->extra = nullptr;
  node->task = nullptr;
  node->n_edges = n_edges;
  node->n_saved = std::uint16_t(n_saved);
  node->n_outputs = n_outputs;
  node->released = false;
  node->lending = Lending::None;
  node->dtype = DType::Float32;
  node->ndim = 0;
  return node;
}

void fill_edges(Node* node, std::span<const Tensor* const> inputs) {
  if (modes.dual) [[unlikely]]
    note_inputs(node, inputs);
  for (std::size_t i = 0; modes.grad && i < inputs.size(); ++i)
    if (inputs[i] && is_differentiable(inputs[i]->dtype))
      node->edges[i] = gradient_edge(*const_cast<Tensor*>(inputs[i]));
  if (diagnosis.anomaly || diagnosis.record_locations) [[unlikely]]
    trace_node(node);
  object_track(node);
}

void note_output(Node* node, const Tensor& out) {
  node->dtype = out.dtype;
  node->ndim = out.ndim;
  for (int i = 0; i < out.ndim && i < 4; ++i) node->sizes[i] = out.size(i);
}

void note_type(Node* node, std::uint32_t output, DType type) {
  if (is_complex(type) && !is_complex(node->dtype)) node->extras().complex_outputs.push_back(output);
}

TensorRef suited(TensorRef g, const Edge& edge) {
  const Node& node = *edge.node;
  bool complex = is_complex(node.dtype);
  if (edge.output && node.extra) {
    auto& others = node.extra->complex_outputs;
    complex = complex || std::find(others.begin(), others.end(), edge.output) != others.end();
  }
  return is_complex(g->dtype) == complex ? g : cast(*g, complex ? complex_of(g->dtype) : real_of(g->dtype));
}

namespace {
/// Where a tangent will be computed from the saved tensors first, hooks get them after that (pack_late).
bool packs(const Node* node) { return saved_hooks_active && !(node->extra && !node->extra->dual_inputs.empty()); }
}  // namespace

void save_input(Node* node, int i, Tensor* t, int input) {
  SavedTensor& s = node->saved[i];
  check(
      !(t->flags & Inference) || inference_mode(),
      "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in "
      "computation tracked by autograd. To work around this, you can make a clone to get a normal tensor and use it in "
      "autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`.");
  s.input = std::int16_t(input);
  s.version = t->version();
  if (saved_hooks_active && packs(node)) [[unlikely]] {
    if ((s.hook = pack_saved(t))) return;
  }
  s.keep(t->storage->deferred() && !modes.dual ? alias(*t) : TensorRef(t));
}

void save_output(Node* node, int i, Tensor* t, int output) {
  SavedTensor& s = node->saved[i];
  s.output = std::int16_t(output);
  s.version = t->version();
  TensorRef bare = alias(*t);
  if (saved_hooks_active && packs(node)) [[unlikely]] {
    if ((s.hook = pack_saved(bare.get()))) return;
  }
  s.keep(std::move(bare));
}

std::string operation_of(const Node* node) {
  std::string name = name_of(node);
  return name.substr(0, name.rfind("Backward"));
}

namespace {

[[noreturn]] void fail_version(const Node* node, const SavedTensor& s) {
  const Tensor* t = s.tensor;
  std::string producer = "a leaf";
  std::uint32_t nr = 0;
  if (s.output >= 0) {
    producer = operation_of(node);
    nr = std::uint32_t(s.output);
  } else if (const Node* fn = t->grad_fn()) {
    producer = operation_of(fn);
    nr = t->output_nr;
  } else if (const Edge* edge = s.input >= 0 ? &node->edges[s.input] : nullptr;
             edge && edge->node && edge->node->kind != &AccumulateGrad::kind) {
    producer = operation_of(edge->node);
    nr = edge->output;
  }
  std::string what = concat("[torch.", info(t->dtype).legacy, " ", to_string(t->sizes()), "]");
  what += producer == "a leaf" ? std::string("") : concat(", which is output ", nr, " of ", producer, ",");
  std::string changed = describe_change(t), needed = describe_node(node);
  fail("one of the variables needed for gradient computation has been modified by an inplace operation: ", what,
       " is at version ", t->version(), "; expected version ", s.version, " instead. It was saved by ", name_of(node),
       ".", changed.empty() ? "" : "\nIt was modified here:\n" + changed,
       needed.empty() ? "" : "\nIt was needed by the operation recorded here:\n" + needed,
       changed.empty() && needed.empty()
           ? " Hint: enable anomaly detection to find the operation that failed to compute its gradient, with "
             "torch.autograd.set_detect_anomaly(True); or see both source lines with "
             "torch.autograd.set_record_locations(True)."
           : "");
}

bool same_history(Tensor& t, const Edge& edge) {
  if (Node* fn = t.grad_fn()) return fn == edge.node && t.output_nr == edge.output;
  if (!t.has(RequiresGrad)) return edge.node == nullptr;
  return t.meta && t.meta->accumulator == edge.node;
}

}  // namespace

void fail_released(const Node* node) {
  (void)node;
  fail(
      "Trying to backward through the graph a second time (or directly access saved tensors after they have already "
      "been "
      "freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify "
      "retain_graph=True if you need to backward through the graph a second time or if you need to access saved "
      "tensors "
      "after calling backward.");
}

TensorRef unpack(Node* node, int i) {
  SavedTensor& s = node->saved[i];
  if (node->lending != Lending::None) [[unlikely]]
    return lend_saved(node, s);
  if (!s.tensor) {
    if (node->released) fail_released(node);
    if (!s.hook) return nullptr;
  }
  TensorRef bare;
  if (s.hook) {
    bare = s.hook->unpack();
  } else {
    if (s.tensor->version() != s.version) [[unlikely]]
      fail_version(node, s);
    if (!modes.grad) return TensorRef(s.tensor);
    bare = TensorRef(s.tensor);
  }
  if (s.output >= 0) {
    TensorRef out = alias(*bare);
    if (modes.dual) share_tangents(*bare, *out);
    set_history(*out, node, std::uint32_t(s.output));
    return out;
  }
  if (s.input < 0) return bare;
  const Edge& edge = node->edges[s.input];
  if (!s.hook && same_history(*bare, edge)) return bare;
  if (s.hook && !edge.node) return bare;
  if (!edge.node && bare->is_leaf()) return bare;  // a leaf that has come to require gradients since
  TensorRef out = alias(*bare);
  if (modes.dual) share_tangents(*bare, *out);
  if (!edge.node) return out;
  if (edge.node->kind == &AccumulateGrad::kind) {
    out->set(RequiresGrad, true);
    meta_of(*out).accumulator = edge.node;
    return TensorRef(out);
  }
  set_history(*out, edge.node, edge.output);
  return out;
}

void release_saved(Node* node) {
  if (node->kind->release) node->kind->release(node);
  node->released = true;
  for (int i = 0; i < node->n_saved; ++i) {
    SavedTensor& s = node->saved[i];
    if (Tensor* t = s.let_go()) release(static_cast<Object*>(t));
    delete std::exchange(s.hook, nullptr);
  }
}

// Chains of nodes are freed in a loop: whoever drops a last reference while a loop runs leaves the node to the loop.
static std::vector<Object*>* draining = nullptr;

void drop(Object* object) noexcept {
  if (--object->refcount) return;
  if (draining) {
    object->refcount = 1;  // kept alive by the list
    draining->push_back(object);
    return;
  }
  object->refcount = 1;
  std::vector<Object*> list;
  draining = &list;
  list.push_back(object);
  while (!list.empty()) {
    Object* next = list.back();
    list.pop_back();
    release(next);
  }
  draining = nullptr;
}

void node_clear(Node* node) noexcept {
  for (int i = 0; i < node->n_saved; ++i) {
    SavedTensor& s = node->saved[i];
    if (Tensor* t = s.let_go()) drop(t);
    delete std::exchange(s.hook, nullptr);
  }
  for (int i = 0; i < node->n_edges; ++i)
    if (Node* next = std::exchange(node->edges[i].node, nullptr)) drop(next);
  delete std::exchange(node->extra, nullptr);
  if (node->kind->destroy) node->kind->destroy(node);
}

int node_visit(Node* node, Visitor v) {
  for (int i = 0; node->lending == Lending::None && i < node->n_edges; ++i)  // lent nodes have other edges for a while
    if (int stop = v(node->edges[i].node)) return stop;
  for (int i = 0; i < node->n_saved; ++i) {
    if (int stop = v(node->saved[i].tensor)) return stop;
    if (node->saved[i].hook)
      if (int stop = node->saved[i].hook->visit(v)) return stop;
  }
  if (node->kind->visit)
    if (int stop = node->kind->visit(node, v)) return stop;
  if (NodeExtra* e = node->extra) {
    if (int stop = e->tensor_hooks.visit(v)) return stop;
    if (int stop = e->pre_hooks.visit(v)) return stop;
    if (int stop = e->post_hooks.visit(v)) return stop;
    if (int stop = v.raw(e->metadata)) return stop;
    if (int stop = v.raw(e->trace)) return stop;
  }
  return 0;
}

}  // namespace rushlight
