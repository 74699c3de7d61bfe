// Hooks: Python callables in ordered dictionaries, which handles remove them from, as the core's hook objects.
#include "python/hook.h"

#include "autograd/tangent.h"

namespace rushlight::python {
namespace {

PyObject* ordered_dict() {
  static PyObject* type = nullptr;
  if (!type) {
    Owned module(checked(PyImport_ImportModule("collections")));
    type = checked(PyObject_GetAttrString(module, "OrderedDict"));
  }
  return checked(PyObject_CallNoArgs(type));
}

/// Calls f(hook) for the dictionary's values; one that an earlier hook removed is skipped.
template <class F>
void each_in(PyObject* dict, F&& f) {
  Owned items(checked(PyMapping_Items(dict)));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i) {
    PyObject* item = PyList_GET_ITEM(items.get(), i);
    int there = PySequence_Contains(dict, PyTuple_GET_ITEM(item, 0));
    checked(there);
    if (there) f(PyTuple_GET_ITEM(item, 1));
  }
}

struct DictOwner {
  PyObject* dict;
  DictOwner() : dict(ordered_dict()) {}
  ~DictOwner() { Py_DECREF(dict); }
};

void check_gradient(const Tensor& was, PyObject* now) {
  check_type(is_tensor(now), "expected Variable, but hook returned '", Py_TYPE(now)->tp_name, "'");
  Tensor& t = *tensor_of(now);
  check(t.dtype == was.dtype, "hook has changed the type of value (was torch.", info(was.dtype).legacy, " got torch.",
        info(t.dtype).legacy, ")");
  check(equal(t.sizes(), was.sizes()), "hook has changed the size of value: was ", to_string(was.sizes()), ", got ",
        to_string(t.sizes()));
}

struct TensorHooks : TensorHook, DictOwner {
  TensorRef call(Tensor* grad) override {
    TensorRef current(grad), out;
    each_in(dict, [&](PyObject* hook) {
      Owned r(PyObject_CallOneArg(hook, object_of(current.get())));
      if (!r) throw PythonError();
      if (r.get() == Py_None) return;
      check_gradient(*current, r);
      current = out = TensorRef(tensor_of(r));
    });
    return out;
  }
  int visit(Visitor v) const override { return v.raw(dict); }
};

struct LeafHooks : LeafHook, DictOwner {
  void call(Tensor* leaf) override {
    each_in(dict, [&](PyObject* hook) {
      Owned r(PyObject_CallOneArg(hook, object_of(leaf)));
      if (!r) throw PythonError();
      check_type(r.get() == Py_None || is_tensor(r), "expected Variable, but hook returned '",
                 Py_TYPE(r.get())->tp_name, "'");
      check(r.get() == Py_None, "Tensor post accumulate grad hooks should return None.");
    });
  }
  int visit(Visitor v) const override { return v.raw(dict); }
};

PyObject* tuple_of(const TensorRef* list, int n) { return wrap_tuple(TensorList(list, list + n)); }

void replace(TensorRef* list, int n, PyObject* with, const char* what) {
  check_type(PyTuple_Check(with), "expected tuple, but hook returned '", Py_TYPE(with)->tp_name, "': ", what,
             " returns None or a tuple of gradients");
  check(PyTuple_GET_SIZE(with) == n, "hook has returned an incorrect number of values (got ", PyTuple_GET_SIZE(with),
        ", but expected ", n, ")");
  for (int i = 0; i < n; ++i) {
    PyObject* now = PyTuple_GET_ITEM(with, i);
    if (now == Py_None) {
      list[i] = nullptr;
      continue;
    }
    if (list[i]) check_gradient(*list[i], now);
    check_type(is_tensor(now), what, " must return tensors, not ", Py_TYPE(now)->tp_name);
    list[i] = TensorRef(tensor_of(now));
  }
}

struct PreHooks : NodePreHook, DictOwner {
  void call(TensorRef* grads, int n) override {
    each_in(dict, [&](PyObject* hook) {
      Owned args(tuple_of(grads, n));
      Owned r(PyObject_CallOneArg(hook, args));
      if (!r) throw PythonError();
      if (r.get() != Py_None) replace(grads, n, r, "a pre-hook");
    });
  }
  int visit(Visitor v) const override { return v.raw(dict); }
};

struct PostHooks : NodePostHook, DictOwner {
  void call(TensorRef* results, int n_results, TensorRef* grads, int n_grads) override {
    each_in(dict, [&](PyObject* hook) {
      Owned in(tuple_of(results, n_results)), out(tuple_of(grads, n_grads));
      Owned r(PyObject_CallFunctionObjArgs(hook, in.get(), out.get(), nullptr));
      if (!r) throw PythonError();
      if (r.get() != Py_None) replace(results, n_results, r, "a post-hook");
    });
  }
  int visit(Visitor v) const override { return v.raw(dict); }
};

template <class Mine, class Base>
PyObject* dict_in(HookList<Base>& list, std::uint32_t output = 0) {
  for (auto& [id, hook] : list.entries())
    if (auto* mine = dynamic_cast<Mine*>(hook.get())) {
      if constexpr (std::is_same_v<Base, TensorHook>)
        if (mine->output != output) continue;
      return mine->dict;
    }
  auto made = std::make_shared<Mine>();
  if constexpr (std::is_same_v<Base, TensorHook>) made->output = output;
  PyObject* dict = made->dict;
  list.add(std::move(made), 0);
  return dict;
}

/// Puts the callable into the dictionary; returns the handle that removes it.
PyObject* add_hook(PyObject* dict, PyObject* hook) {
  static PyObject* handle_type = nullptr;
  if (!handle_type) {
    Owned module(checked(PyImport_ImportModule("rushlight.utils.hooks")));
    handle_type = checked(PyObject_GetAttrString(module, "RemovableHandle"));
  }
  Owned handle(checked(PyObject_CallOneArg(handle_type, dict)));
  Owned id(checked(PyObject_GetAttrString(handle, "id")));
  checked(PyObject_SetItem(dict, id, hook));
  return handle.detach();
}

PyObject* register_hook(PyObject* self, PyObject* hook) {
  return guarded([&] {
    Tensor& t = *tensor_of(self);
    check(t.requires_grad(), "cannot register a hook on a tensor that doesn't require gradient");
    if (Node* fn = t.grad_fn()) return add_hook(dict_in<TensorHooks>(fn->extras().tensor_hooks, t.output_nr), hook);
    return add_hook(dict_in<TensorHooks>(meta_of(t).hooks), hook);
  });
}

PyObject* register_leaf_hook(PyObject* self, PyObject* hook) {
  return guarded([&] {
    Tensor& t = *tensor_of(self);
    check(t.requires_grad(), "cannot register a hook on a tensor that doesn't require gradient");
    check(t.is_leaf(), "post accumulate grad hooks cannot be registered on non-leaf tensors");
    return add_hook(dict_in<LeafHooks>(meta_of(t).leaf_hooks), hook);
  });
}

PyObject* backward_hooks(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    Tensor& t = *tensor_of(self);
    Node* fn = t.grad_fn();
    if (fn ? !fn->extra || fn->extra->tensor_hooks.empty() : !t.meta || t.meta->hooks.empty()) Py_RETURN_NONE;
    return Py_NewRef(fn ? dict_in<TensorHooks>(fn->extra->tensor_hooks, t.output_nr)
                        : dict_in<TensorHooks>(t.meta->hooks));
  });
}

PyObject* retain_grad_method(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    retain_grad(*tensor_of(self));
    Py_RETURN_NONE;
  });
}

PyMethodDef tensor_methods[] = {
    {"register_hook", register_hook, METH_O,
     "register_hook(hook): hook(grad) runs when the gradient of this tensor is known; what it returns replaces it. "
     "Returns a handle."},
    {"register_post_accumulate_grad_hook", register_leaf_hook, METH_O,
     "register_post_accumulate_grad_hook(hook): hook(leaf) runs after backward has added into .grad. Returns a "
     "handle."},
    {"_hooks", backward_hooks, METH_NOARGS, "The dictionary of this tensor's hooks, or None."},
    {"retain_grad", retain_grad_method, METH_NOARGS, "Lets backward fill .grad of this non-leaf tensor."},
    {nullptr, nullptr, 0, nullptr},
};

// ---- saved_tensors_hooks

struct PackedTensor : SavedHook {
  PyObject *packed, *unpacker;
  TensorRef dual;  ///< carries the tangents that what was packed had, while their levels are open; or null
  Dims sizes;      ///< of what was packed: derivatives rely on them
  DType dtype;
  ~PackedTensor() override {
    Py_DECREF(packed);
    Py_DECREF(unpacker);
  }
  TensorRef unpack() override {
    Owned r(PyObject_CallOneArg(unpacker, packed));
    if (!r) throw PythonError();
    check_type(is_tensor(r), "Output of saved tensor unpack_hook expected to be a Tensor but got result of type ",
               Py_TYPE(r.get())->tp_name);
    Tensor& t = *tensor_of(r);
    check(equal(t.sizes(), sizes), "a saved tensor's unpack_hook returned a tensor of size ", to_string(t.sizes()),
          ", but the one that was packed has size ", sizes);
    if (t.dtype == dtype) return with_tangents(t);
    check(is_complex(dtype) || !is_complex(t.dtype), "a saved tensor's unpack_hook returned a tensor of type torch.",
          rushlight::name(t.dtype), ", but the one that was packed is of type torch.", rushlight::name(dtype));
    return with_tangents(*cast(t, dtype));
  }
  TensorRef with_tangents(Tensor& t) const {
    if (!dual || !modes.dual) return TensorRef(&t);
    TensorRef out = alias(t);
    share_tangents(*dual, *out);
    return out;
  }
  int visit(Visitor v) const override {
    if (int stop = v(static_cast<Object*>(dual.get()))) return stop;
    if (int stop = v.raw(packed)) return stop;
    return v.raw(unpacker);
  }
};

thread_local std::vector<std::pair<PyObject*, PyObject*>> saved_hooks;
thread_local PyObject* disabled_message = nullptr;

PyObject* push_saved_hooks(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *pack, *unpack;
    if (!PyArg_ParseTuple(args, "OO", &pack, &unpack)) return nullptr;
    if (disabled_message) fail(text_of(disabled_message));
    saved_hooks.emplace_back(Py_NewRef(pack), Py_NewRef(unpack));
    saved_hooks_active = true;
    Py_RETURN_NONE;
  });
}

PyObject* pop_saved_hooks(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    check(!saved_hooks.empty(), "there are no saved tensor hooks to remove");
    auto [pack, unpack] = saved_hooks.back();
    saved_hooks.pop_back();
    saved_hooks_active = !saved_hooks.empty();
    Py_DECREF(pack);
    Py_DECREF(unpack);
    Py_RETURN_NONE;
  });
}

PyObject* innermost_pack(PyObject*, PyObject*) {
  return Py_NewRef(saved_hooks.empty() ? Py_None : saved_hooks.back().first);
}

PyObject* disable_saved_hooks(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* message;
    int fail_if_there = 1;
    if (!PyArg_ParseTuple(args, "O|p", &message, &fail_if_there)) return nullptr;
    check(!fail_if_there || saved_hooks.empty(), text_of(message));
    Py_XSETREF(disabled_message, Py_NewRef(message));
    Py_RETURN_NONE;
  });
}
PyObject* enable_saved_hooks(PyObject*, PyObject*) {
  Py_CLEAR(disabled_message);
  Py_RETURN_NONE;
}
PyObject* saved_hooks_message(PyObject*, PyObject*) { return Py_NewRef(disabled_message ? disabled_message : Py_None); }

PyMethodDef module_methods[] = {
    {"_push_saved_tensors_default_hooks", push_saved_hooks, METH_VARARGS, nullptr},
    {"_pop_saved_tensors_default_hooks", pop_saved_hooks, METH_NOARGS, nullptr},
    {"_innermost_pack_hook", innermost_pack, METH_NOARGS, "The hook that packs what is saved now, or None."},
    {"_saved_tensors_hooks_disable", disable_saved_hooks, METH_VARARGS, nullptr},
    {"_saved_tensors_hooks_enable", enable_saved_hooks, METH_NOARGS, nullptr},
    {"_saved_tensors_hooks_get_disabled_error_message", saved_hooks_message, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

PyObject* add_node_hook(Node* node, PyObject* hook) {
  return add_hook(dict_in<PostHooks>(node->extras().post_hooks), hook);
}
PyObject* add_node_prehook(Node* node, PyObject* hook) {
  return add_hook(dict_in<PreHooks>(node->extras().pre_hooks), hook);
}

SavedHook* pack_with(Tensor& t, PyObject* pack, PyObject* unpack) {
  std::uint32_t before = t.version();
  Owned keep_pack = Owned::borrow(pack), keep_unpack = Owned::borrow(unpack);
  // a leaf is shown as it is: a hook may leave parameters alone; others without history: what is packed cannot keep
  // the graph alive
  TensorRef shown = t.is_leaf() ? TensorRef(&t) : alias(t);
  Owned packed;
  {
    GradScope off(false);
    packed = Owned(PyObject_CallOneArg(pack, object_of(shown.get())));
  }
  if (!packed) throw PythonError();
  check(t.version() == before,
        "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook can not be "
        "modified by in-place operations as "
        "this can lead to unexpected side-effects. Please open an issue if you need to perform in-place operations on "
        "the input to a pack hook.");
  auto* hook = new PackedTensor;
  hook->packed = packed.detach();
  hook->unpacker = keep_unpack.detach();
  hook->sizes = Dims(t.sizes());
  hook->dtype = t.dtype;
  if (modes.dual && carries_tangent(t)) share_tangents(t, *(hook->dual = empty(Dims{0}, t.dtype)));
  return hook;
}

void init_hooks(PyObject* module) {
  checked(PyModule_AddFunctions(module, module_methods));
  for (PyMethodDef* m = tensor_methods; m->ml_name; ++m) {
    Owned method(checked(PyDescr_NewMethod(tensor_type, m)));
    checked(PyObject_SetAttrString(reinterpret_cast<PyObject*>(tensor_type), m->ml_name, method));
  }
}

}  // namespace rushlight::python

namespace rushlight {

SavedHook* pack_saved(Tensor* t) {
  using namespace python;
  if (saved_hooks.empty()) return nullptr;
  auto [pack, unpack] = saved_hooks.back();
  return pack_with(*t, pack, unpack);
}

}  // namespace rushlight
