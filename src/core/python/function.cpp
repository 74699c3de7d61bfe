// autograd.Function: nodes whose derivative is a Python method. What the package expects of them is written in
// src/rushlight/autograd/function.py.
#include <memory>

#include "autograd/tangent.h"
#include "python/batched.h"

namespace rushlight::python {

void* allocate_node(PyTypeObject* type, std::size_t bytes);

namespace {

struct Shape {
  bool tensor = false;
  int edge = -1;  ///< of an input: which edge leads to it; tensors alone have one
  DType dtype = DType::Float32;
  Dims sizes;
};

struct FunctionState {
  std::vector<Edge> edges;
  std::vector<SavedTensor> saved;
  std::vector<Shape> inputs, outputs;
  Owned to_save, saved_for_forward, dirty, non_differentiable, needs_input_grad;
  Owned rerun;  ///< (arguments, their versions) where an intermediate of forward was saved: to differentiate it, too
  bool materialize = true;
};

struct FunctionNode : Node {
  FunctionState* state;
};

FunctionNode* function_of(PyObject* o) { return static_cast<FunctionNode*>(node_of(o)); }
FunctionState& state_of(PyObject* o) { return *function_of(o)->state; }

TensorRef conform(const FunctionNode* node, int i, PyObject* given) {
  const Shape& want = node->state->inputs[std::size_t(i)];
  const char* who = Py_TYPE(reinterpret_cast<const PyObject*>(node))->tp_name;
  check(is_tensor(given), "expected Variable or None (got ", Py_TYPE(given)->tp_name, ")");
  TensorRef g(tensor_of(given));
  if (!equal(g->sizes(), want.sizes)) {
    bool fits = g->ndim >= want.sizes.size();
    for (int d = 0; fits && d < want.sizes.size(); ++d) {
      std::int64_t have = g->size(g->ndim - want.sizes.size() + d);
      fits = have == want.sizes[d] || want.sizes[d] == 1;
    }
    check(fits, "Function ", who, " returned an invalid gradient at index ", i, " - got ", to_string(g->sizes()),
          " but expected shape compatible with ", to_string(want.sizes));
    g = sum_to_size(*g, want.sizes);
  }
  check(is_complex(want.dtype) || !is_complex(g->dtype), "Function ", who, " returned an invalid gradient at index ", i,
        " - expected a real gradient, got ", rushlight::name(g->dtype));
  return g->dtype == want.dtype ? g : cast(*g, want.dtype);
}

void function_apply_node(Node* n, TensorRef* grads, TensorRef* results) {
  auto* node = static_cast<FunctionNode*>(n);
  FunctionState& state = *node->state;
  PyObject* self = object_of(node);
  Owned args(checked(PyTuple_New(node->n_outputs)));
  for (int i = 0; i < node->n_outputs; ++i) {
    TensorRef g = grads[i];
    const Shape& shape = state.outputs[std::size_t(i)];
    if (!g && state.materialize && shape.tensor) g = zeros(shape.sizes, shape.dtype);
    PyTuple_SET_ITEM(args.get(), i, wrap(std::move(g)));
  }
  static PyObject* apply_name = intern("apply");
  Owned method(checked(PyObject_GetAttr(self, apply_name)));
  Owned out(PyObject_CallObject(method, args));
  if (!out) throw PythonError();
  if (!PyTuple_Check(out.get())) out = Owned(checked(PyTuple_Pack(1, out.get())));
  auto n_inputs = Py_ssize_t(state.inputs.size()), got = PyTuple_GET_SIZE(out.get());
  bool only_none = true;
  for (Py_ssize_t i = n_inputs; i < got; ++i) only_none = only_none && PyTuple_GET_ITEM(out.get(), i) == Py_None;
  check(got == n_inputs || (got > n_inputs && only_none), "function ", Py_TYPE(self)->tp_name,
        " returned an incorrect number of gradients (expected ", n_inputs, ", got ", got, ")");
  for (Py_ssize_t i = 0; i < n_inputs; ++i) {
    PyObject* g = PyTuple_GET_ITEM(out.get(), i);
    const Shape& shape = state.inputs[std::size_t(i)];
    if (!shape.tensor) {
      check(g == Py_None, "function ", Py_TYPE(self)->tp_name, " returned a gradient different than None at position ",
            i + 1, ", but the corresponding forward input was not a Variable");
      continue;
    }
    if (g == Py_None || !node->needs(shape.edge)) continue;
    results[shape.edge] = conform(node, int(i), g);
  }
}

void function_destroy(Node* n) noexcept { delete static_cast<FunctionNode*>(n)->state; }

int function_visit(Node* n, Visitor v) {
  FunctionState* s = static_cast<FunctionNode*>(n)->state;
  if (!s) return 0;
  for (PyObject* o :
       {s->to_save.get(), s->saved_for_forward.get(), s->dirty.get(), s->non_differentiable.get(), s->rerun.get()})
    if (int stop = v.raw(o)) return stop;
  return 0;
}

void function_release(Node* n) { static_cast<FunctionNode*>(n)->state->rerun = Owned(); }

/// Named by its class, so the kind's own name is empty.
NodeKind function_kind{"", &function_apply_node, &function_destroy, &function_visit, &function_release, true};

PyObject* function_new(PyTypeObject* type, PyObject*, PyObject*) {
  return guarded([&] {
    auto* node = static_cast<FunctionNode*>(allocate_node(type, sizeof(FunctionNode)));
    node->kind = &function_kind;
    node->sequence = next_sequence();
    node->edges = nullptr;
    node->saved = nullptr;
    node->extra = nullptr;
    node->task = nullptr;
    node->n_edges = node->n_outputs = 0;
    node->n_saved = 0;
    node->released = false;
    node->lending = Lending::None;
    node->dtype = DType::Float32;
    node->ndim = 0;
    node->state = new FunctionState;
    object_track(node);
    return object_of(node);
  });
}

// ---- the context's methods

PyObject* set_tuple(Owned FunctionState::* member, PyObject* self, PyObject* args) {
  state_of(self).*member = Owned::borrow(args);
  Py_RETURN_NONE;
}
PyObject* save_for_backward(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) {
      PyObject* t = PyTuple_GET_ITEM(args, i);
      check_type(t == Py_None || is_tensor(t), "save_for_backward can only save variables, but argument ", i,
                 " is of type ", Py_TYPE(t)->tp_name);
    }
    return set_tuple(&FunctionState::to_save, self, args);
  });
}
PyObject* save_for_forward(PyObject* self, PyObject* args) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) {
    PyObject* t = PyTuple_GET_ITEM(args, i);
    if (t == Py_None || is_tensor(t)) continue;
    PyErr_SetString(PyExc_AssertionError,
                    "save_for_forward expects all arguments to be tensors; you should save non-tensors as attributes "
                    "on ctx.");
    return nullptr;
  }
  return set_tuple(&FunctionState::saved_for_forward, self, args);
}
PyObject* mark(const char* name, Owned FunctionState::* member, PyObject* self, PyObject* args) {
  return guarded([&] {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i)
      check(is_tensor(PyTuple_GET_ITEM(args, i)), name, " can only accept variables, but argument ", i, " is of type ",
            Py_TYPE(PyTuple_GET_ITEM(args, i))->tp_name);
    return set_tuple(member, self, args);
  });
}
PyObject* mark_dirty(PyObject* self, PyObject* args) { return mark("mark_dirty", &FunctionState::dirty, self, args); }
PyObject* mark_non_differentiable(PyObject* self, PyObject* args) {
  return mark("mark_non_differentiable", &FunctionState::non_differentiable, self, args);
}
PyObject* set_materialize(PyObject* self, PyObject* value) {
  if (!PyBool_Check(value)) {
    PyErr_Format(PyExc_TypeError, "set_materialize_grads expects a bool, not %s", Py_TYPE(value)->tp_name);
    return nullptr;
  }
  state_of(self).materialize = value == Py_True;
  Py_RETURN_NONE;
}
PyObject* function_name(PyObject* self, PyObject*) { return PyUnicode_FromString(Py_TYPE(self)->tp_name); }

PyObject* saved_tensors(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    FunctionNode* node = function_of(self);
    FunctionState& state = *node->state;
    if (node->released) fail_released(node);
    if (state.saved_for_forward) return Py_NewRef(state.saved_for_forward.get());  // inside of forward or jvp
    if (state.to_save) return Py_NewRef(state.to_save.get());                      // still inside of forward
    PyObject* out = checked(PyTuple_New(node->n_saved));
    Owned owner(out);
    bool differentiated = modes.grad && current_node() == node;
    GradScope with_history(true);  // a saved output is that output again, whatever mode backward runs in
    for (int i = 0; i < int(node->n_saved); ++i) PyTuple_SET_ITEM(out, i, wrap(unpack(node, i)));
    if (!differentiated || !state.rerun) return owner.detach();
    Owned module(checked(PyImport_ImportModule("rushlight.autograd.function")));
    return checked(PyObject_CallMethod(module, "_with_histories", "OOOO", self, out,
                                       PyTuple_GET_ITEM(state.rerun.get(), 0), PyTuple_GET_ITEM(state.rerun.get(), 1)));
  });
}
PyObject* saved_for_forward_get(PyObject* self, void*) {
  auto& s = state_of(self).saved_for_forward;
  return s ? Py_NewRef(s.get()) : PyTuple_New(0);
}
PyObject* needs_input_grad(PyObject* self, void*) {
  auto& s = state_of(self).needs_input_grad;
  return s ? Py_NewRef(s.get()) : PyTuple_New(0);
}
int set_needs_input_grad(PyObject* self, PyObject* v, void*) {
  state_of(self).needs_input_grad = Owned::borrow(v);
  return 0;
}

PyMethodDef methods[] = {
    {"save_for_backward", save_for_backward, METH_VARARGS, "Keeps tensors (or None) for backward."},
    {"save_for_forward", save_for_forward, METH_VARARGS, "Keeps tensors for jvp."},
    {"mark_dirty", mark_dirty, METH_VARARGS, "Names the inputs that forward changed in place."},
    {"mark_non_differentiable", mark_non_differentiable, METH_VARARGS, "Names the outputs without a gradient."},
    {"set_materialize_grads", set_materialize, METH_O, "False: gradients that are not there come as None, not zeros."},
    {"name", function_name, METH_NOARGS, "The name of the node's class."},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef getset[] = {
    {"saved_tensors", saved_tensors, nullptr, "What save_for_backward kept.", nullptr},
    {"saved_variables", saved_tensors, nullptr, "The former name of saved_tensors.", nullptr},
    {"saved_for_forward", saved_for_forward_get, nullptr, "What save_for_forward kept.", nullptr},
    {"needs_input_grad", needs_input_grad, set_needs_input_grad, "One bool per argument: is its gradient wanted?",
     nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

// ---- apply

bool contains(PyObject* tuple, PyObject* o) {
  if (!tuple) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i)
    if (PyTuple_GET_ITEM(tuple, i) == o) return true;
  return false;
}

int index_in(PyObject* tuple, PyObject* o) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i)
    if (PyTuple_GET_ITEM(tuple, i) == o) return int(i);
  return -1;
}

class Application {
 public:
  Application(PyObject* cls, PyObject* args) : cls_(cls), args_(args) {}

  PyObject* run() {
    static PyObject *backward_cls = intern("_backward_cls"), *forward_name = intern("forward"),
                    *setup_name = intern("setup_context");
    static PyObject* base_setup = nullptr;
    if (!base_setup) {
      Owned module(checked(PyImport_ImportModule("rushlight.autograd.function")));
      Owned base(checked(PyObject_GetAttrString(module, "Function")));
      base_setup = checked(PyObject_GetAttr(base, setup_name));
    }
    Owned node_class(checked(PyObject_GetAttr(cls_, backward_cls)));
    Owned ctx(checked(PyObject_CallNoArgs(node_class)));
    ctx_ = ctx;
    inspect_inputs();
    Owned forward(checked(PyObject_GetAttr(cls_, forward_name))), setup(checked(PyObject_GetAttr(cls_, setup_name)));
    bool separate = setup.get() != base_setup;
    Owned output;
    {
      GradScope off(false);
      TangentsBelow none(0);
      if (separate) {
        output = Owned(checked(PyObject_CallObject(forward, args_)));
        Owned done(checked(PyObject_CallFunctionObjArgs(setup, ctx.get(), args_, output.get(), nullptr)));
      } else {
        Py_ssize_t n = PyTuple_GET_SIZE(args_);
        Owned all(checked(PyTuple_New(n + 1)));
        PyTuple_SET_ITEM(all.get(), 0, Py_NewRef(ctx.get()));
        for (Py_ssize_t i = 0; i < n; ++i) PyTuple_SET_ITEM(all.get(), i + 1, Py_NewRef(PyTuple_GET_ITEM(args_, i)));
        output = Owned(checked(PyObject_CallObject(forward, all)));
      }
    }
    return finish(output);
  }

 private:
  void inspect_inputs() {
    FunctionState& s = state_of(ctx_);
    Py_ssize_t n = PyTuple_GET_SIZE(args_);
    s.inputs.resize(std::size_t(n));
    Owned needs(checked(PyTuple_New(n)));
    bool quiet = false;
    int edges = 0;
    for (Py_ssize_t i = 0; i < n; ++i) {
      PyObject* a = PyTuple_GET_ITEM(args_, i);
      bool needed = false;
      if (is_tensor(a)) {
        Tensor& t = *tensor_of(a);
        quiet = quiet || t.has(Volatile);
        needed = t.requires_grad();
        s.inputs[std::size_t(i)] = {true, edges++, t.dtype, Dims(t.sizes())};
      }
      recorded_ = recorded_ || needed;
      dual_ = dual_ || (modes.dual && is_tensor(a) && carries_tangent(*tensor_of(a)));
      PyTuple_SET_ITEM(needs.get(), i, PyBool_FromLong(needed));
    }
    recorded_ = recorded_ && modes.grad && !quiet;
    s.needs_input_grad = std::move(needs);
    if (!recorded_) return;
    // edges as they were before forward, which may change its inputs in place
    for (Py_ssize_t i = 0; i < n; ++i) {
      PyObject* a = PyTuple_GET_ITEM(args_, i);
      if (is_tensor(a))
        s.edges.push_back(is_differentiable(tensor_of(a)->dtype) ? gradient_edge(*tensor_of(a)) : Edge{});
    }
    Node* node = node_of(ctx_);
    node->edges = s.edges.data();
    node->n_edges = decltype(node->n_edges)(edges);
  }

  PyObject* finish(PyObject* output) {
    FunctionState& s = state_of(ctx_);
    bool single = !PyTuple_Check(output);
    Owned outputs = single ? Owned(checked(PyTuple_Pack(1, output))) : Owned::borrow(output);
    Py_ssize_t n = PyTuple_GET_SIZE(outputs.get());
    check_dirty(outputs);
    Owned results(checked(PyTuple_New(n)));
    Node* node = node_of(ctx_);
    node->n_outputs = std::int32_t(n);
    s.outputs.resize(std::size_t(n));
    int tensors = 0;
    for (Py_ssize_t i = 0; i < n; ++i) tensors += is_tensor(PyTuple_GET_ITEM(outputs.get(), i));
    for (Py_ssize_t i = 0; i < n; ++i) {
      PyObject* o = PyTuple_GET_ITEM(outputs.get(), i);
      PyTuple_SET_ITEM(results.get(), i, is_tensor(o) ? wrap(settle(o, i, tensors)) : Py_NewRef(o));
    }
    if (recorded_) {
      if (diagnosis.anomaly || diagnosis.record_locations) trace_node(node);
      HooksLater later(dual_);
      save(outputs, results);
    }
    if (dual_) push_tangents(outputs, results);
    if (dual_ && recorded_) pack_late(node);
    s.to_save = Owned();
    s.saved_for_forward = Owned();
    s.dirty = Owned();
    s.non_differentiable = Owned();
    return single ? Py_NewRef(PyTuple_GET_ITEM(results.get(), 0)) : results.detach();
  }

  void check_dirty(PyObject* outputs) {
    FunctionState& s = state_of(ctx_);
    if (!s.dirty) return;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(s.dirty.get()); ++i) {
      PyObject* d = PyTuple_GET_ITEM(s.dirty.get(), i);
      check(is_tensor(d), "mark_dirty can only accept variables, but argument ", i, " is of type ",
            Py_TYPE(d)->tp_name);
      if (recorded_ && !contains(args_, d))
        checked(PyErr_WarnEx(PyExc_UserWarning,
                             "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have "
                             "been mutated should be passed to ctx.mark_dirty().",
                             1));
      check(contains(outputs, d),
            "Some elements marked as dirty during the forward method were not returned as output. The inputs that are "
            "modified inplace must all be outputs of the Function.");
      Tensor& t = *tensor_of(d);
      check(!(recorded_ && t.has(RequiresGrad) && t.is_leaf()),
            "a leaf Variable that requires grad has been used in an in-place operation.");
      check(!(recorded_ && is_view(t) && PyTuple_GET_SIZE(outputs) > 1),
            "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot return "
            "more than one Tensor. This is not supported by the current "
            "autograd engine. You should either make sure the input is not a view (using .clone() for example) or make "
            "your Function only return one Tensor (potentially splitting "
            "it into two Functions: one doing the inplace that returns a single Tensor and a second one that does the "
            "other operations).");
    }
  }

  TensorRef settle(PyObject* o, Py_ssize_t i, int tensors) {
    FunctionState& s = state_of(ctx_);
    Tensor& t = *tensor_of(o);
    bool input = contains(args_, o), dirty = contains(s.dirty, o);
    bool differentiable = recorded_ && !contains(s.non_differentiable, o) && is_differentiable(t.dtype);
    s.outputs[std::size_t(i)] = {true, -1, t.dtype, Dims(t.sizes())};
    Node* node = node_of(ctx_);
    if (i == 0)
      note_output(node, t);
    else
      note_type(node, std::uint32_t(i), t.dtype);
    if (dirty) {
      if (!differentiable) return TensorRef(&t);
      if (is_view(t))
        rebase(t);
      else
        set_history(t, node, std::uint32_t(i));
      return TensorRef(&t);
    }
    if (!differentiable) return input || t.requires_grad() ? alias(t) : TensorRef(&t);
    if (input) {
      TensorRef same = alias(t);
      mark_view(*same, t, Creation::InCustomFunction);
      set_history(*same, node, std::uint32_t(i));
      return same;
    }
    if (is_view(t)) {
      t.meta->creation = tensors > 1 ? Creation::MultiOutput : Creation::InCustomFunction;
      t.meta->view_version = t.version();
    }
    set_history(t, node, std::uint32_t(i));
    return TensorRef(&t);
  }

  /// The view's base passes through this node inside of the window.
  void rebase(Tensor& t) {
    --t.storage->version;  // forward has counted its change already
    finish_inplace(t, Ref<Node>(node_of(ctx_)), "a Function");
  }

  void keep_arguments(FunctionState& s) {
    Py_ssize_t n = PyTuple_GET_SIZE(args_);
    Owned versions(checked(PyTuple_New(n)));
    for (Py_ssize_t i = 0; i < n; ++i) {
      PyObject* a = PyTuple_GET_ITEM(args_, i);
      PyTuple_SET_ITEM(versions.get(), i, PyLong_FromUnsignedLong(is_tensor(a) ? tensor_of(a)->version() : 0));
    }
    s.rerun = Owned(checked(PyTuple_Pack(2, args_, versions.get())));
  }

  void save(PyObject* outputs, PyObject* results) {
    FunctionState& s = state_of(ctx_);
    if (!s.to_save) return;
    Py_ssize_t n = PyTuple_GET_SIZE(s.to_save.get());
    s.saved.resize(std::size_t(n));
    Node* node = node_of(ctx_);
    node->saved = s.saved.data();
    node->n_saved = std::uint16_t(n);
    bool intermediate = false;
    for (Py_ssize_t i = 0; i < n; ++i) {
      PyObject* o = PyTuple_GET_ITEM(s.to_save.get(), i);
      if (o == Py_None) continue;
      int out = index_in(outputs, o), in = index_in(args_, o);
      Tensor* t = tensor_of(o);
      intermediate = intermediate || (out < 0 && in < 0 && is_differentiable(t->dtype) && !t->requires_grad());
      if (out >= 0 && (in < 0 || contains(s.dirty, o)))
        save_output(node, int(i), tensor_of(PyTuple_GET_ITEM(results, out)),
                    tensor_of(PyTuple_GET_ITEM(results, out))->grad_fn_ == node ? out : -1);
      else
        save_input(node, int(i), t, in < 0 ? -1 : s.inputs[std::size_t(in)].edge);
    }
    if (intermediate && !s.dirty) keep_arguments(s);
  }

  /// The tangents of the results, level by level: by the Function's jvp, or by its backward where that serves for both.
  void push_tangents(PyObject* outputs, PyObject* results) {
    static PyObject* transposes_name = intern("_transposes_backward");
    Owned transposes(checked(PyObject_GetAttr(cls_, transposes_name)));
    int seen = modes.dual;
    for (int level = 0; level < seen; ++level) {
      TangentsBelow below(level);
      Owned tangents(tangents_of(level));
      if (!tangents) continue;
      if (transposes.get() == Py_True)
        transpose(results, level);
      else
        push(outputs, results, tangents, level);
    }
  }

  void push(PyObject* outputs, PyObject* results, PyObject* tangents, int level) {
    static PyObject* jvp_name = intern("jvp");
    FunctionState& s = state_of(ctx_);
    Owned jvp(checked(PyObject_GetAttr(cls_, jvp_name)));
    Owned pushed(checked(PyObject_CallObject(jvp, tangents)));
    if (!PyTuple_Check(pushed.get())) pushed = Owned(checked(PyTuple_Pack(1, pushed.get())));
    Py_ssize_t n = PyTuple_GET_SIZE(results), got = PyTuple_GET_SIZE(pushed.get());
    check(n == got, "Function's jvp returned an invalid number of forward gradients (expected ", n, " but got ", got,
          ")");
    for (Py_ssize_t i = 0; i < n; ++i) {
      PyObject *t = PyTuple_GET_ITEM(pushed.get(), i), *o = PyTuple_GET_ITEM(results, i),
               *given = PyTuple_GET_ITEM(outputs, i);
      check(t == Py_None || is_tensor(t), "expected Variable or None (got ", Py_TYPE(t)->tp_name, ") for grad output ",
            i, ".");
      if (is_tensor(o) && !contains(s.non_differentiable, given) && is_differentiable(tensor_of(o)->dtype))
        receive_tangent(given, *tensor_of(o), i, t, tangents, level);
      else
        check(t == Py_None, "Function's jvp returned a gradient at position ", i,
              ", but  the corresponding forward output is not a differentiable Tensor.You should return None at that "
              "position instead.");
    }
  }

  /// The tangents of the results by transposing backward, as for the operators of the core (autograd/tangent.h).
  void transpose(PyObject* results, int level) {
    FunctionState& s = state_of(ctx_);
    Py_ssize_t n = PyTuple_GET_SIZE(args_), n_outputs = PyTuple_GET_SIZE(results);
    TensorList outs(static_cast<std::size_t>(n_outputs)), tangents(static_cast<std::size_t>(n));
    bool records = recorded_;
    Owned needs(checked(PyTuple_New(n)));
    for (Py_ssize_t i = 0; i < n; ++i) {
      PyObject* a = PyTuple_GET_ITEM(args_, i);
      TensorRef& t = tangents[std::size_t(i)];
      if (is_tensor(a) && is_differentiable(tensor_of(a)->dtype)) t = TensorRef(find_tangent(*tensor_of(a), level));
      records = records || (t && t->requires_grad());
      PyTuple_SET_ITEM(needs.get(), i, PyBool_FromLong(bool(t)));
    }
    for (Py_ssize_t i = 0; i < n_outputs; ++i)
      if (PyObject* o = PyTuple_GET_ITEM(results, i); is_tensor(o) && !contains(s.non_differentiable, o))
        outs[std::size_t(i)] = TensorRef(tensor_of(o));
    std::swap(s.needs_input_grad, needs);
    TensorList pushed = transpose_pullback(outs, tangents, records && modes.grad,
                                           [&](TensorRef* g, TensorRef* given) { pull(outs, tangents, g, given); });
    std::swap(s.needs_input_grad, needs);
    for (std::size_t i = 0; i < outs.size(); ++i) {
      if (!pushed[i]) continue;
      set_tangent(*outs[i], level, std::move(pushed[i]));
      note_output_tangent(node_of(ctx_), int(i), level, *find_tangent(*outs[i], level));
    }
  }

  /// Calls backward for `cotangents` of `outs`.
  void pull(const TensorList& outs, const TensorList& tangents, TensorRef* cotangents, TensorRef* gradients) {
    Owned given(checked(PyTuple_New(Py_ssize_t(outs.size()))));
    for (std::size_t i = 0; i < outs.size(); ++i) PyTuple_SET_ITEM(given.get(), Py_ssize_t(i), wrap(cotangents[i]));
    Owned method(checked(PyObject_GetAttrString(ctx_, "apply")));
    Owned pulled(checked(PyObject_CallObject(method, given)));
    if (!PyTuple_Check(pulled.get())) pulled = Owned(checked(PyTuple_Pack(1, pulled.get())));
    for (std::size_t i = 0; i < tangents.size(); ++i) {
      PyObject* g = PyTuple_GET_ITEM(pulled.get(), Py_ssize_t(i));
      if (tangents[i] && g != Py_None) gradients[i] = conform(function_of(ctx_), int(i), g);
    }
  }

  /// jvp's arguments: the context and a tangent, or None, for each argument of forward; null where there is none.
  PyObject* tangents_of(int level) {
    bool materialize = state_of(ctx_).materialize, any = false;
    Py_ssize_t n = PyTuple_GET_SIZE(args_);
    Owned all(checked(PyTuple_New(n + 1)));
    PyTuple_SET_ITEM(all.get(), 0, Py_NewRef(ctx_));
    for (Py_ssize_t i = 0; i < n; ++i) {
      PyObject* a = PyTuple_GET_ITEM(args_, i);
      TensorRef t;
      if (is_tensor(a) && is_differentiable(tensor_of(a)->dtype)) {
        t = TensorRef(find_tangent(*tensor_of(a), level));
        any = any || t;
        if (!t && materialize) t = zeros(tensor_of(a)->sizes(), tensor_of(a)->dtype);
      }
      PyTuple_SET_ITEM(all.get(), i + 1, wrap(std::move(t)));
    }
    return any ? all.detach() : nullptr;
  }

  void receive_tangent(PyObject* given, Tensor& out, Py_ssize_t i, PyObject* pushed, PyObject* tangents, int level) {
    check(pushed != Py_None, "Function's jvp returned None at position ", i,
          ", but the corresponding forward output is differentiable: return zeros where it does not depend on the "
          "inputs.");
    TensorRef t(tensor_of(pushed));
    int in = index_in(args_, given);
    bool dirty = contains(state_of(ctx_).dirty, given), window = in >= 0 || shows_input(*tensor_of(given));
    check(dirty || !window || (is_view(*t) && index_in(tangents, pushed) < 0 && shares_memory(*t, tangents)),
          "A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning a view of "
          "the given grad input.");
    check(same_sizes(*t, out),
          "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
          "supported. Tensor is of size ",
          to_string(out.sizes()), " while the given forward gradient is of size ", to_string(t->sizes()), ".");
    if (dirty)
      check(in >= 0 && PyTuple_GET_ITEM(tangents, in + 1) == pushed,
            "An inplace custom Function is not modifying the forward mode gradients inplace. If the forward is "
            "modifying an input inplace, then the jvp function must modify the corresponding gradient inplace.");
    else if (index_in(tangents, pushed) >= 0)
      t = clone(*t);  // a result's tangent is not an input's, too
    set_tangent(out, level, std::move(t));
    note_output_tangent(node_of(ctx_), int(i), level, *find_tangent(out, level));
  }

  bool shows_input(const Tensor& t) { return is_view(t) && shares_memory(t, args_); }

  static bool shares_memory(const Tensor& t, PyObject* others) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(others); ++i) {
      PyObject* o = PyTuple_GET_ITEM(others, i);
      if (is_tensor(o) && tensor_of(o)->storage == t.storage) return true;
    }
    return false;
  }

  PyObject *cls_, *args_, *ctx_ = nullptr;
  bool recorded_ = false, dual_ = false;
};

PyObject* function_apply(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guarded([&]() -> PyObject* {
    check_type(nargs == 2 && PyTuple_Check(args[1]), "_function_apply(cls, args) takes a class and a tuple");
    if (batching.transforms) [[unlikely]] {
      Owned result(checked(PyObject_Vectorcall(batched_entry(BatchedEntry::Function), args, 2, nullptr)));
      if (result.get() != Py_NotImplemented) return result.detach();
    }
    return Application(args[0], args[1]).run();
  });
}

PyMethodDef module_methods[] = {
    {"_function_apply", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function_apply)), METH_FASTCALL,
     "Runs an autograd.Function."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void init_function_type(PyObject* module) {
  PyType_Slot slots[] = {
      {Py_tp_new, reinterpret_cast<void*>(function_new)},
      {Py_tp_methods, methods},
      {Py_tp_getset, getset},
      {Py_tp_dealloc, node_type->tp_dealloc ? reinterpret_cast<void*>(node_type->tp_dealloc) : nullptr},
      {Py_tp_traverse, reinterpret_cast<void*>(node_type->tp_traverse)},
      {Py_tp_clear, reinterpret_cast<void*>(node_type->tp_clear)},
      {0, nullptr}};
  PyType_Spec spec{"rushlight._C._FunctionBase", sizeof(Node), 8,
                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};
  PyObject* type = checked(PyType_FromSpecWithBases(&spec, reinterpret_cast<PyObject*>(node_type)));
  checked(PyModule_AddObjectRef(module, "_FunctionBase", type));
  Py_DECREF(type);
  checked(PyModule_AddFunctions(module, module_methods));
}

}  // namespace rushlight::python
