// The engine's entry from Python, and the thread's modes.
#include "python/batched.h"
#include "python/watch.h"

namespace rushlight::python {
namespace {

/// A tensor, or a GradientEdge (node, output number).
struct Point {
  Tensor* tensor = nullptr;
  GraphPoint at;
};

Point read_point(PyObject* o, const char* what) {
  Point p;
  if (is_tensor(o)) {
    p.tensor = tensor_of(o);
    Edge e = gradient_edge(*p.tensor);
    p.at.node = Ref<Node>::adopt(e.node);
    p.at.output = e.output;
    return p;
  }
  if (PyTuple_Check(o) && PyTuple_GET_SIZE(o) >= 2 && is_node(PyTuple_GET_ITEM(o, 0))) {
    p.at.node = Ref<Node>(node_of(PyTuple_GET_ITEM(o, 0)));
    long number = PyLong_AsLong(PyTuple_GET_ITEM(o, 1));
    if (number == -1 && PyErr_Occurred()) throw PythonError();
    int outputs = std::max(p.at.node->n_outputs, 1);
    check(number >= 0 && number < outputs, "the GradientEdge's output number ", number,
          " is out of range: ", name_of(p.at.node.get()), " has ", outputs, outputs == 1 ? " output" : " outputs");
    p.at.output = std::uint32_t(number);
    return p;
  }
  bool roots = std::string_view(what) == "tensors";
  fail(roots ? ErrorKind::Type : ErrorKind::Runtime, "all ", what, " have to be Tensors or GradientEdges, but got ",
       Py_TYPE(o)->tp_name);
}

/// The shape that a GradientEdge stands for; nodes keep that of their first output, up to four sizes.
Dims known_sizes(const Point& root) {
  const Node& node = *root.at.node;
  check(root.at.output == 0 && node.ndim <= 4, "give a gradient for a GradientEdge to output ", root.at.output, " of ",
        name_of(&node), ": its shape is not known");
  return Dims(IntSpan(node.sizes, node.ndim));
}

TensorRef root_gradient(const Point& root, PyObject* given, Py_ssize_t i) {
  if (given != Py_None) {
    check_type(is_tensor(given), "gradients can be either Tensors or None, but got ", Py_TYPE(given)->tp_name);
    TensorRef g(tensor_of(given));
    if (const Tensor* t = root.tensor) {
      check(equal(g->sizes(), t->sizes()), "Mismatch in shape: grad_output[", i, "] has a shape of torch.Size(",
            to_string(g->sizes()), ") and output[", i, "] has a shape of torch.Size(", to_string(t->sizes()), ").");
      check(is_complex(g->dtype) == is_complex(t->dtype),
            "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
            "grad_output[",
            i, "] has a dtype of torch.", rushlight::name(g->dtype), " and output[", i, "] has a dtype of torch.",
            rushlight::name(t->dtype), ".");
      if (g->dtype != t->dtype) g = cast(*g, t->dtype);
    } else if (root.at.output == 0 && root.at.node->ndim <= 4) {
      Dims sizes = known_sizes(root);
      check(equal(g->sizes(), sizes), "Mismatch in shape: grad_output[", i, "] has a shape of torch.Size(",
            to_string(g->sizes()), ") and output[", i, "] has a shape of torch.Size(", sizes, ").");
    }
    return g;
  }
  if (!root.tensor) {
    Dims sizes = known_sizes(root);
    check(count_elements(sizes) == 1, "grad can be implicitly created only for scalar outputs");
    return full(sizes, 1, root.at.node->dtype);
  }
  const Tensor& t = *root.tensor;
  check(t.numel == 1, "grad can be implicitly created only for scalar outputs");
  check(is_floating(t.dtype), "grad can be implicitly created only for real scalar outputs but got torch.",
        rushlight::name(t.dtype));
  return full(t.sizes(), 1, t.dtype);
}

/// _run_backward(tensors, grad_tensors, retain_graph, create_graph, inputs, allow_unreachable, accumulate_grad)
PyObject* run(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guarded([&]() -> PyObject* {
    check_type(nargs == 7, "_run_backward takes 7 arguments");
    if (batching.levels && any_batched(args, nargs)) [[unlikely]]
      return PyObject_Vectorcall(batched_entry(BatchedEntry::Backward), args, std::size_t(nargs), nullptr);
    PyObject *tensors = args[0], *grads = args[1], *inputs = args[4];
    check_type(PyTuple_Check(tensors) && PyTuple_Check(grads) && PyTuple_Check(inputs), "_run_backward takes tuples");
    auto flag = [&](int i) {
      int truth = PyObject_IsTrue(args[i]);
      checked(truth);
      return truth != 0;
    };
    BackwardOptions options;
    options.keep_graph = flag(2);
    options.create_graph = flag(3);
    bool allow_unreachable = flag(5), accumulate = flag(6);
    options.accumulate = accumulate;
    check(!accumulate || !batching.transforms,
          "backward() called inside a functorch transform. This is not supported: use func.grad or func.vjp inside, or "
          "call backward() outside of the transforms.");
    Py_ssize_t n = PyTuple_GET_SIZE(tensors);
    check(PyTuple_GET_SIZE(grads) == n, "got ", n, " tensors and ", PyTuple_GET_SIZE(grads), " gradients");
    std::vector<GraphPoint> roots;
    TensorList root_grads;
    for (Py_ssize_t i = 0; i < n; ++i) {
      PyObject* o = PyTuple_GET_ITEM(tensors, i);
      Point p = read_point(o, "tensors");
      PyObject* given = PyTuple_GET_ITEM(grads, i);
      check(bool(p.at.node), "element ", i, " of tensors does not require grad and does not have a grad_fn");
      root_grads.push_back(root_gradient(p, given, i));
      roots.push_back(std::move(p.at));
    }
    std::vector<Tensor*> targets;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(inputs); ++i) {
      PyObject* o = PyTuple_GET_ITEM(inputs, i);
      check(!is_tensor(o) || tensor_of(o)->requires_grad(), "One of the differentiated Tensors does not require grad");
      Point p = read_point(o, "inputs");
      targets.push_back(p.tensor);
      options.inputs.push_back(std::move(p.at));
    }
    TensorList caught = run_backward(std::move(roots), std::move(root_grads), options);
    if (options.inputs.empty()) Py_RETURN_NONE;
    if (accumulate) {
      for (std::size_t i = 0; i < caught.size(); ++i) {
        Tensor* t = targets[i];
        if (!t || t->is_leaf() || !caught[i]) continue;  // leaves have collected on their own
        Tensor* old = grad_of(*t);
        GradScope scope(options.create_graph);
        set_grad(*t, old ? add(*old, *caught[i]) : clone(*caught[i]));
      }
      Py_RETURN_NONE;
    }
    if (!allow_unreachable)
      for (std::size_t i = 0; i < caught.size(); ++i)
        check(bool(caught[i]), "The differentiated Tensor at index ", i,
              " appears to not have been used in the graph. Set allow_unused=True if this is the desired behavior.");
    return wrap_tuple(std::move(caught));
  });
}

/// _run_backward_rows(tensors, grad_tensors, retain_graph, create_graph, inputs): the gradients of the inputs for many
/// cotangents at once, which a leading dimension of grad_tensors counts, or None where the graph takes one at a time.
PyObject* run_by_rows(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guarded([&]() -> PyObject* {
    PyObject *tensors = args[0], *grads = args[1], *inputs = args[4];
    check_type(nargs == 5 && PyTuple_Check(tensors) && PyTuple_Check(grads) && PyTuple_Check(inputs) &&
                   PyTuple_GET_SIZE(inputs) && PyTuple_GET_SIZE(tensors) == PyTuple_GET_SIZE(grads),
               "_run_backward_rows(tensors, grad_tensors, retain_graph, create_graph, inputs)");
    BackwardOptions options;
    options.keep_graph = args[2] == Py_True;
    options.create_graph = args[3] == Py_True;
    options.accumulate = false;
    std::vector<GraphPoint> roots;
    TensorList cotangents;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tensors); ++i) {
      Point p = read_point(PyTuple_GET_ITEM(tensors, i), "tensors");
      check(p.tensor && p.at.node && is_tensor(PyTuple_GET_ITEM(grads, i)), "tensor ", i, " has no graph");
      const Tensor& g = *tensor_of(PyTuple_GET_ITEM(grads, i));
      bool fits = g.ndim && equal(g.sizes().subspan(1), p.tensor->sizes()) && (i == 0 || g.size(0) == options.rows);
      check(fits, "grad_tensors[", i, "] has shape ", to_string(g.sizes()), ", expected rows of shape ",
            to_string(p.tensor->sizes()));
      options.rows = g.size(0);
      cotangents.push_back(cast(g, p.tensor->dtype));
      roots.push_back(std::move(p.at));
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(inputs); ++i)
      options.inputs.push_back(std::move(read_point(PyTuple_GET_ITEM(inputs, i), "inputs").at));
    TensorList caught;
    if (!run_rows(std::move(roots), std::move(cotangents), options, caught)) Py_RETURN_NONE;
    return wrap_tuple(std::move(caught));
  });
}

PyObject* set_grad_enabled(PyObject*, PyObject* v) {
  int on = PyObject_IsTrue(v);
  if (on < 0) return nullptr;
  modes.want(on);
  Py_RETURN_NONE;
}
PyObject* is_grad_enabled(PyObject*, PyObject*) { return PyBool_FromLong(modes.wanted); }
PyObject* set_inference_mode(PyObject*, PyObject* v) {
  int on = PyObject_IsTrue(v);
  if (on < 0) return nullptr;
  modes.infer(on);
  Py_RETURN_NONE;
}
PyObject* is_inference_mode(PyObject*, PyObject*) { return PyBool_FromLong(modes.inference); }
PyObject* set_anomaly(PyObject*, PyObject* args) {
  int on, check_nan = 1, check_infinity = 0, check_forward = 0;
  if (!PyArg_ParseTuple(args, "p|ppp", &on, &check_nan, &check_infinity, &check_forward)) return nullptr;
  diagnosis.anomaly = on;
  diagnosis.check_nan = check_nan;
  node_watch.infinities = check_infinity;
  check_calls(on && check_forward);
  Py_RETURN_NONE;
}
PyObject* is_anomaly(PyObject*, PyObject*) { return PyBool_FromLong(diagnosis.anomaly); }
PyObject* is_check_nan(PyObject*, PyObject*) { return PyBool_FromLong(diagnosis.check_nan); }
PyObject* is_check_infinity(PyObject*, PyObject*) { return PyBool_FromLong(node_watch.infinities); }
PyObject* collects(PyObject*, PyObject*) { return PyBool_FromLong(collects_everywhere()); }
PyObject* set_locations(PyObject*, PyObject* v) {
  int on = PyObject_IsTrue(v);
  if (on < 0) return nullptr;
  diagnosis.record_locations = on;
  Py_RETURN_NONE;
}
PyObject* get_current_node(PyObject*, PyObject*) { return wrap(current_node()); }
PyObject* increment_version(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    auto bump = [](PyObject* t) {
      check(is_tensor(t), "increment_version expects each element of the iterable to be a tensor, but got ",
            Py_TYPE(t)->tp_name);
      if (!tensor_of(t)->has(Inference)) tensor_of(t)->bump_version();
    };
    Owned it(PyObject_GetIter(o));
    if (!it && PyErr_ExceptionMatches(PyExc_TypeError)) {
      PyErr_Clear();
      fail("increment_version expect a Iterable[Tensor] as input, but got ", Py_TYPE(o)->tp_name);
    }
    if (!it) throw PythonError();
    while (PyObject* next = PyIter_Next(it)) {
      Owned one(next);
      bump(one);
    }
    if (PyErr_Occurred()) throw PythonError();
    Py_RETURN_NONE;
  });
}

// Backward runs on the thread that calls it; the switch is kept for programs that read it back.
thread_local bool multithreading = true;
PyObject* set_multithreading(PyObject*, PyObject* v) {
  int on = PyObject_IsTrue(v);
  if (on < 0) return nullptr;
  multithreading = on;
  Py_RETURN_NONE;
}
PyObject* is_multithreading(PyObject*, PyObject*) { return PyBool_FromLong(multithreading); }
PyObject* current_run_id(PyObject*, PyObject*) { return PyLong_FromLongLong(current_run()); }
PyObject* will_execute(PyObject*, PyObject* node) {
  return guarded([&] {
    check_type(is_node(node), "_will_engine_execute_node expects a node, not ", Py_TYPE(node)->tp_name);
    check(current_run() >= 0, "_will_engine_execute_node should only be called during the backward pass");
    return PyBool_FromLong(will_run(node_of(node)));
  });
}

PyObject* mutation_hook = nullptr;
PyObject* set_mutation_hook(PyObject*, PyObject* hook) {
  Py_XSETREF(mutation_hook, hook == Py_None ? nullptr : Py_NewRef(hook));
  mutations_watched = mutation_hook != nullptr;
  Py_RETURN_NONE;
}

PyMethodDef methods[] = {
    {"_is_multithreading_enabled", is_multithreading, METH_NOARGS, nullptr},
    {"_set_multithreading_enabled", set_multithreading, METH_O, nullptr},
    {"_current_graph_task_id", current_run_id, METH_NOARGS, "The number of the backward run on this thread, or -1."},
    {"_will_engine_execute_node", will_execute, METH_O, "Will the current backward run this node?"},
    {"_set_before_mutation_hook", set_mutation_hook, METH_O,
     "hook(tensor) is called before each in-place change; None ends it."},
    {"_run_backward", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(run)), METH_FASTCALL,
     "Runs the engine."},
    {"_run_backward_rows", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(run_by_rows)), METH_FASTCALL,
     "Runs the engine for many cotangents at once; None where the graph does not take them."},
    {"_set_grad_enabled", set_grad_enabled, METH_O, nullptr},
    {"is_grad_enabled", is_grad_enabled, METH_NOARGS, "is_grad_enabled(): are operations recorded on this thread?"},
    {"_set_inference_mode", set_inference_mode, METH_O, nullptr},
    {"is_inference_mode_enabled", is_inference_mode, METH_NOARGS,
     "is_inference_mode_enabled(): is inference mode on, on this thread?"},
    {"_set_anomaly_enabled", set_anomaly, METH_VARARGS, nullptr},
    {"is_anomaly_enabled", is_anomaly, METH_NOARGS, "is_anomaly_enabled(): is backward watched?"},
    {"is_anomaly_check_nan_enabled", is_check_nan, METH_NOARGS,
     "is_anomaly_check_nan_enabled(): are NaN gradients refused under anomaly mode?"},
    {"_is_anomaly_check_infinity_enabled", is_check_infinity, METH_NOARGS, nullptr},
    {"_is_checkpoint_valid", collects, METH_NOARGS,
     "False inside a backward that was given inputs, or nested in one: leaves do not all collect."},
    {"_set_record_locations", set_locations, METH_O, nullptr},
    {"_current_autograd_node", get_current_node, METH_NOARGS,
     "The node that backward is running on this thread, or None."},
    {"_increment_version", increment_version, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void init_engine(PyObject* module) { checked(PyModule_AddFunctions(module, methods)); }

}  // namespace rushlight::python

namespace rushlight {

void before_mutation(Tensor& t) {
  using namespace python;
  Owned hook = Owned::borrow(mutation_hook);
  Owned done(PyObject_CallOneArg(hook, object_of(&t)));
  if (!done) throw PythonError();
}

}  // namespace rushlight
