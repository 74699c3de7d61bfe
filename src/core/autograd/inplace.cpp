// In-place changes: what is refused, and how histories of bases and views follow.
#include "autograd/tangent.h"
#include "operators/operators.h"

namespace rushlight {
namespace {

/// The base's new history after a change of a view: the gradient of the base, outside of the window, goes on to the
/// old history; inside, it passes through the changing operation first.
struct CopySlices : Node {
  Node* fn;  ///< owned: the operation that changed the window; its edge 0 stands for the window's old numbers
  Dims base_sizes, base_strides, sizes, strides;
  std::int64_t base_offset, offset;
  DType base_dtype, window_dtype;  ///< which differ where one shows the parts of the other's complex numbers
  static NodeKind kind;
};

void copy_slices_apply(Node* node, TensorRef* grads, TensorRef* results) {
  auto& self = *static_cast<CopySlices*>(node);
  if (!self.fn) fail_released(node);
  if (!grads[0]) return;
  // work on a gradient that is laid out like the base, so that the window's geometry applies
  TensorRef grad = to_geometry(*grads[0], self.base_sizes, self.base_strides);
  bool turned = self.base_dtype != self.window_dtype;
  RealWindow base(turned && is_complex(self.base_dtype), self.base_sizes, self.base_strides, self.base_offset);
  RealWindow part(turned && is_complex(self.window_dtype), self.sizes, self.strides, self.offset);
  if (turned) grad = as_real_numbers(*grad);
  TensorRef window = as_strided(*grad, part.sizes, part.strides, grad->offset + part.offset - base.offset);
  if (turned) window = as_numbers_of(self.window_dtype, *window);
  int n = self.fn->n_edges;
  std::vector<TensorRef> inner(std::size_t(std::max(n, 1)));
  TensorRef in[1] = {clone(*window)};
  self.fn->kind->apply(self.fn, in, inner.data());
  TensorRef fill =
      inner[0] ? cast(*sum_to_size(*inner[0], self.sizes), window->dtype) : zeros(self.sizes, window->dtype);
  if (turned) fill = as_real_numbers(*fill);
  results[0] = as_strided_scatter(*grad, *fill, part.sizes, part.strides, part.offset - base.offset);
  if (turned) results[0] = as_numbers_of(self.base_dtype, *results[0]);
  for (int i = 1; i < n; ++i) results[i] = std::move(inner[std::size_t(i)]);
}

void copy_slices_destroy(Node* node) noexcept {
  auto& self = *static_cast<CopySlices*>(node);
  if (Node* fn = std::exchange(self.fn, nullptr)) drop(fn);
  self.base_sizes.~Dims();
  self.base_strides.~Dims();
  self.sizes.~Dims();
  self.strides.~Dims();
}

int copy_slices_visit(Node* node, Visitor v) { return v(static_cast<CopySlices*>(node)->fn); }

void copy_slices_release(Node* node) {
  auto& self = *static_cast<CopySlices*>(node);
  if (self.fn) release_saved(self.fn);
}

[[noreturn]] void fail_creation(const Tensor& t, bool direct) {
  const Node* fn = t.grad_fn_;
  std::string output = fn ? concat("Output ", t.output_nr, " of ", operation_of(fn), " is a view")
                          : "A view was created in no_grad mode";
  const char* what = direct ? " and is being modified inplace. "
                            : " and its base or another view of its base has been modified inplace. ";
  switch (t.meta->creation) {
    case Creation::MultiOutput:
      fail(output, what,
           "This view is the output of a function that returns multiple views. Such functions do not allow the output "
           "views to be modified "
           "inplace. You should replace the inplace operation by an out-of-place one.");
    case Creation::NoGrad:
      fail("A view was created in no_grad mode", what,
           "Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by "
           "moving both the view and the inplace either both inside the no_grad block (if you don't want the inplace "
           "to be tracked) or both outside (if you "
           "want the inplace to be tracked).");
    case Creation::InCustomFunction:
      fail(output, what,
           "This view was created inside a custom Function (or because an input was returned as-is) and the autograd "
           "logic to handle view+inplace "
           "would override the custom backward associated with the custom Function, leading to incorrect gradients. "
           "This behavior is forbidden. You can fix this "
           "by cloning the output of the custom Function.");
    case Creation::Inference:
      fail("A view was created in inference mode", what,
           "Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by "
           "moving both the view and the inplace either both inside the inference_mode block (if you don't want the "
           "inplace to be tracked) or both outside (if "
           "you want the inplace to be tracked).");
    case Creation::Default:
      break;
  }
  fail(output, what);
}

}  // namespace

NodeKind CopySlices::kind{"CopySlices", &copy_slices_apply, &copy_slices_destroy, &copy_slices_visit,
                          &copy_slices_release};

void check_history(const Tensor& t) {
  if (!is_view(t) || t.meta->view_version == t.version() || t.meta->creation == Creation::Default) return;
  if (t.grad_fn_ || t.meta->base->requires_grad())  // a base may come to require gradients
    fail_creation(t, false);
}

bool mutations_watched = false;

void check_inplace(Tensor& t, bool gradients) {
  if (t.has(Inference) && !inference_mode())
    fail(
        "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a normal "
        "tensor before doing inplace update. "
        "See https://github.com/pytorch/rfcs/pull/17 for more details.");
  if (mutations_watched) [[unlikely]]
    before_mutation(t);
  if (!modes.grad) return;
  bool has_grad = t.requires_grad();
  if (!gradients && !has_grad && !is_view(t)) return;
  if (is_view(t)) {
    Tensor& base = *t.meta->base;
    if ((gradients || has_grad) && t.meta->creation != Creation::Default) fail_creation(t, true);
    if (has_grad || base.requires_grad())
      check(!(base.has(RequiresGrad) && base.is_leaf()),
            "a view of a leaf Variable that requires grad is being used in an in-place operation.");
  }
  check(!(t.has(RequiresGrad) && t.is_leaf()),
        "a leaf Variable that requires grad is being used in an in-place operation.");
}

void finish_inplace(Tensor& t, Ref<Node> node, const char* operation) {
  if (diagnosis.record_locations || diagnosis.anomaly) [[unlikely]]
    trace_change(&t, operation);
  if (modes.dual && node) [[unlikely]]
    node = give_dual_change(std::move(node), t);
  if (!node) {
    t.bump_version();
    return;
  }
  note_output(node.get(), t);
  if (!is_view(t)) {
    set_history(t, node.get());
    t.bump_version();
    return;
  }
  Tensor& base = *t.meta->base;
  int n = node->n_edges;
  Node* raw = new_node(&CopySlices::kind, sizeof(CopySlices), std::max(n, 1), 0, 1);
  auto* slices = static_cast<CopySlices*>(raw);
  slices->fn = nullptr;
  new (&slices->base_sizes) Dims(base.sizes());
  new (&slices->base_strides) Dims(base.strides());
  new (&slices->sizes) Dims(t.sizes());
  new (&slices->strides) Dims(t.strides());
  slices->base_offset = base.offset;
  slices->offset = t.offset;
  slices->base_dtype = base.dtype;
  slices->window_dtype = t.dtype;
  slices->edges[0] = gradient_edge(base);
  for (int i = 1; i < n; ++i) {
    slices->edges[i] = node->edges[i];
    if (slices->edges[i].node) retain(static_cast<Object*>(slices->edges[i].node));
  }
  slices->fn = node.detach();
  note_output(slices, base);
  object_track(slices);
  set_history(base, slices);
  release(static_cast<Object*>(slices));
  t.bump_version();  // every view of the base now finds its grad_fn out of date
}

}  // namespace rushlight
