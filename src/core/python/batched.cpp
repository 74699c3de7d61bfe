// Tensors of vmap: the type, pointwise operators over them, and the way to the rules of all others.
#include "python/batched.h"

#include <unordered_set>
#include <vector>

namespace rushlight::python {

PyTypeObject* batched_type;
thread_local Batching batching;
int tensor_traverse(PyObject* self, visitproc visit, void* arg);
void tensor_dealloc(PyObject* self);

namespace {

// ---- the type

constexpr const char* no_numbers =
    "vmap: this needs the numbers of a batched tensor, which stands for all samples at once: there is no batching rule "
    "for it. If the function is still running, use other operations or loop over the samples; if it has returned, the "
    "tensor must not be used any more, return it from the function instead.";

void refuse_read(Storage*) { fail(no_numbers); }
void keep_pending(Storage*) {}

/// The storage of all batched tensors: it cannot be read or written.
Storage* sealed_storage() {
  static Pending sealed{&refuse_read, &keep_pending};
  static Storage* storage = [] {
    Storage* s = new_pending_storage(0, &sealed).detach();
    s->exposed = true;  // nothing is deferred over it
    return s;
  }();
  return storage;
}

/// The sizes of a sample, as the value has them now.
void take_geometry(Batched* b) {
  const Tensor& v = *b->value;
  check(v.ndim > 0, "vmap: a rule gave a value without a batch dimension");
  b->dtype = v.dtype;
  set_geometry(b, v.sizes().subspan(1), v.strides().subspan(1));
}

PyObject* new_batched(TensorRef value, std::int64_t level) {
  auto* b = PyObject_GC_New(Batched, batched_type);
  if (!b) throw PythonError();
  b->dict = b->weakrefs = nullptr;
  retain(sealed_storage());
  b->storage = sealed_storage();
  b->offset = 0;
  b->dims = nullptr;
  b->meta = nullptr;
  b->grad_fn_ = nullptr;
  b->output_nr = 0;
  b->flags = 0;
  b->value = value.detach();
  b->level = level;
  take_geometry(b);
  PyObject_GC_Track(object_of(b));
  return object_of(b);
}

void batched_dealloc(PyObject* self) {
  Tensor* value = std::exchange(batched_of(self)->value, nullptr);
  tensor_dealloc(self);
  release(static_cast<Object*>(value));
}

int batched_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(object_of(batched_of(self)->value));
  return tensor_traverse(self, visit, arg);
}

PyObject* get_value(PyObject* self, void*) { return Py_NewRef(object_of(batched_of(self)->value)); }
PyObject* get_level(PyObject* self, void*) { return PyLong_FromLongLong(batched_of(self)->level); }
int set_value(PyObject* self, PyObject* v, void*) {
  return guarded_int([&] {
    check_type(v && is_tensor(v), "the value of a batched tensor is a tensor");
    Batched* b = batched_of(self);
    Tensor* old = std::exchange(b->value, TensorRef(tensor_of(v)).detach());
    release(static_cast<Object*>(old));
    take_geometry(b);
  });
}

PyGetSetDef getset[] = {
    {"_value", get_value, set_value, "The numbers of all samples; the first dimension is the batch.", nullptr},
    {"_level", get_level, nullptr, "Which vmap it belongs to.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

// ---- levels

std::int64_t highest_level(PyObject* o) {
  if (is_batched(o)) return batched_of(o)->level;
  if (!PyTuple_Check(o) && !PyList_Check(o)) return 0;
  std::int64_t level = 0;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i)
    level = std::max(level, highest_level(PySequence_Fast_GET_ITEM(o, i)));
  return level;
}

/// The levels of a tensor, the outermost vmap first, and the tensor that has the numbers.
const Tensor* unwrap(const Tensor* t, Dims& levels) {
  while (is_batched(t)) {
    levels.insert(0, static_cast<const Batched*>(t)->level);
    t = static_cast<const Batched*>(t)->value;
  }
  return t;
}

}  // namespace

bool any_batched(PyObject* const* objects, Py_ssize_t n) {
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* o = objects[i];
    if (is_batched(o)) return true;
    if ((PyTuple_Check(o) || PyList_Check(o)) && highest_level(o)) return true;
  }
  return false;
}

PyObject* wrap_batched(PyObject* result, std::int64_t level) {
  if (is_tensor(result)) return new_batched(TensorRef(tensor_of(result)), level);
  bool tuple = PyTuple_Check(result);
  if (!tuple && !PyList_Check(result)) return Py_NewRef(result);
  Py_ssize_t n = PySequence_Fast_GET_SIZE(result);
  auto* type = reinterpret_cast<PyObject*>(Py_TYPE(result));
  bool plain = !tuple || PyTuple_CheckExact(result);
  bool named = !plain && PyObject_HasAttrString(type, "n_fields");
  Owned out(checked(named ? PyStructSequence_New(Py_TYPE(result)) : tuple ? PyTuple_New(n) : PyList_New(n)));
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* part = checked(wrap_batched(PySequence_Fast_GET_ITEM(result, i), level));
    if (tuple)
      PyTuple_SET_ITEM(out.get(), i, part);
    else
      PyList_SET_ITEM(out.get(), i, part);
  }
  if (!plain && !named && PyObject_HasAttrString(type, "_fields")) return PyObject_CallObject(type, out);
  return out.detach();
}

// ---- pointwise operators

BatchValues::BatchValues(const PointwiseOp& op, const Operand* in, int n) : first_(in[0].tensor) {
  Dims own[4];
  bool mixed = false;
  const Tensor* typed = nullptr;
  for (int i = 0; i < n; ++i) {
    in_[i] = in[i];
    const Tensor* t = in[i].tensor;
    if (!t) continue;
    in_[i].tensor = unwrap(t, own[i]);
    ndim_ = std::max(ndim_, int(t->ndim));
    for (auto level : own[i]) {
      int at = 0;
      while (at < levels_.size() && levels_[at] < level) ++at;
      if (at == levels_.size() || levels_[at] != level) levels_.insert(at, level);
    }
    mixed = mixed || (typed && typed->dtype != t->dtype);
    typed = t;
  }
  if (mixed) {  // a sample without dimensions takes part in promotion as such, though its value has some
    unsigned mask = op.promoted & ~op.numbers;
    DType wanted = result_type(in, n, mask), found = result_type(in_, n, mask);
    if (wanted != found)
      for (int i = 0; i < n; ++i)
        if (in_[i].tensor && in_[i].tensor->dtype != wanted && ((mask >> i) & 1)) {
          kept_[i] = cast(*in_[i].tensor, wanted);
          in_[i].tensor = kept_[i].get();
        }
  }
  for (int i = 0; i < n; ++i) {
    const Tensor* t = in[i].tensor;
    if (!t || own[i].empty()) continue;
    int missing = ndim_ - t->ndim;
    if (missing == 0 && equal(own[i], IntSpan(levels_).last(std::size_t(own[i].size())))) continue;
    const Tensor& v = *in_[i].tensor;
    Dims sizes;
    for (int k = 0, d = 0; k < levels_.size(); ++k)
      sizes.push_back(d < own[i].size() && own[i][d] == levels_[k] ? v.size(d++) : 1);
    for (int k = 0; k < missing; ++k) sizes.push_back(1);
    for (int k = 0; k < t->ndim; ++k) sizes.push_back(t->size(k));
    kept_[i] = view(v, sizes);
    in_[i].tensor = kept_[i].get();
  }
}

Tensor& BatchValues::target(const char* operation) const {
  Dims own;
  const Tensor* value = unwrap(first_, own);
  check(own.size() == levels_.size(), "vmap: inplace arithmetic(self, *extra_args) is not possible: ", operation,
        " would write batched numbers into a tensor that is not batched (over ", levels_.size() - own.size(),
        " of the levels of vmap). Use the operation that is not in place, or make the tensor inside of the function "
        "from a batched one, as with new_zeros or zeros_like.");
  check(first_->ndim == ndim_, "output with shape ", to_string(first_->sizes()),
        " doesn't match the broadcast shape: an operand has ", ndim_, " dimensions");
  return *const_cast<Tensor*>(value);
}

PyObject* BatchValues::wrap(TensorRef result) const {
  for (auto level : levels_) result = TensorRef::adopt(tensor_of(new_batched(std::move(result), level)));
  return python::wrap(std::move(result));
}

// ---- the others

namespace {
PyObject* entries[int(BatchedEntry::Count)];

PyObject* overload_call(PyObject* self, PyObject* const* args, std::size_t nargsf, PyObject*) {
  return guarded([&] { return call_overload(operator_of(self), args, PyVectorcall_NARGS(nargsf)); });
}

/// The tensors of a sequence and the sequences in it stay as they are: their rules ask for values themselves.
PyObject* value_at(PyObject* o, std::int64_t level) {
  return is_batched(o) && batched_of(o)->level == level ? object_of(batched_of(o)->value) : o;
}

std::int64_t size_at(PyObject* o, std::int64_t level) {
  if (is_batched(o)) return batched_of(o)->level == level ? batched_of(o)->value->size(0) : -1;
  if (PyTuple_Check(o) || PyList_Check(o))
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i)
      if (std::int64_t n = size_at(PySequence_Fast_GET_ITEM(o, i), level); n >= 0) return n;
  return -1;
}

}  // namespace

PyObject* batched_entry(BatchedEntry entry) {
  check(entries[int(entry)], "vmap is not loaded");
  return entries[int(entry)];
}

PyObject* overload_object(OperatorObject* op, std::size_t overload) {
  if (!op->overloads) op->overloads = checked(PyList_New(0));
  while (std::size_t(PyList_GET_SIZE(op->overloads)) <= overload) {
    auto* o = new_operator(&overload_call, text_of(op->name));
    Owned owner(reinterpret_cast<PyObject*>(o));
    o->op = op->op;
    o->inplace = op->inplace;
    o->overload = int(PyList_GET_SIZE(op->overloads));
    checked(PyList_Append(op->overloads, owner));
  }
  return PyList_GET_ITEM(op->overloads, Py_ssize_t(overload));
}

PyObject* call_rule(OperatorObject* o, PyObject* const* args, Py_ssize_t n) {
  auto* self = reinterpret_cast<PyObject*>(o);
  if (!o->rule) {
    Owned chosen(checked(PyObject_CallOneArg(batched_entry(BatchedEntry::Choose), self)));
    check_type(PyTuple_Check(chosen.get()) && PyTuple_GET_SIZE(chosen.get()) == 2, "a rule comes as (function, whole)");
    o->rule = Py_NewRef(PyTuple_GET_ITEM(chosen.get(), 0));
    o->whole = PyObject_IsTrue(PyTuple_GET_ITEM(chosen.get(), 1));
  }
  if (o->whole) {
    std::vector<PyObject*> passed{self};
    passed.insert(passed.end(), args, args + n);
    return PyObject_Vectorcall(o->rule, passed.data(), std::size_t(n + 1), nullptr);
  }
  std::int64_t level = 0, size = -1;
  for (Py_ssize_t i = 0; i < n; ++i) level = std::max(level, highest_level(args[i]));
  long mask = 0;
  std::vector<PyObject*> passed(std::size_t(n) + 4);
  for (Py_ssize_t i = 0; i < n; ++i) {
    std::int64_t found = size_at(args[i], level);
    if (found >= 0) {
      mask |= 1L << i;
      size = found;
    }
    passed[std::size_t(i) + 4] = value_at(args[i], level);
  }
  bool changes = text_of(o->name).back() == '_' && n && is_tensor(args[0]);
  check(!changes || (mask & 1), "vmap: inplace arithmetic(self, *extra_args) is not possible: ", text_of(o->name),
        " would write batched numbers into a tensor that is not batched. Use the operation that is not in place, or "
        "make the tensor inside of the function from a batched one, as with new_zeros or zeros_like.");
  Owned count(PyLong_FromLongLong(size)), bits(PyLong_FromLong(mask)), at(PyLong_FromLongLong(level));
  passed[0] = self;
  passed[1] = at;
  passed[2] = count;
  passed[3] = bits;
  Owned result(PyObject_Vectorcall(o->rule, passed.data(), passed.size(), nullptr));
  if (!result) return nullptr;
  if (!changes) return wrap_batched(result, level);
  take_geometry(batched_of(args[0]));
  return Py_NewRef(args[0]);
}

namespace {

// ---- for the package

PyObject* make(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    check_type(n == 2, "_batch(result, level)");
    return wrap_batched(args[0], PyLong_AsLongLong(args[1]));
  });
}

/// _value_at(x, level): the value of a tensor batched at the level, None for anything else.
PyObject* value_at_level(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    check_type(n == 2, "_value_at(x, level)");
    if (!is_batched(args[0]) || batched_of(args[0])->level != PyLong_AsLongLong(args[1])) Py_RETURN_NONE;
    return Py_NewRef(object_of(batched_of(args[0])->value));
  });
}

PyObject* highest(PyObject*, PyObject* o) { return PyLong_FromLongLong(highest_level(o)); }

/// _unbatch(x): the tensor with the numbers, and the levels of its leading dimensions.
PyObject* unbatch(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    check_type(is_tensor(o), "_unbatch() takes a tensor, not ", Py_TYPE(o)->tp_name);
    Dims levels;
    const Tensor* value = unwrap(tensor_of(o), levels);
    Owned tuple(checked(PyTuple_New(levels.size())));
    for (int i = 0; i < levels.size(); ++i) PyTuple_SET_ITEM(tuple.get(), i, PyLong_FromLongLong(levels[i]));
    return PyTuple_Pack(2, object_of(const_cast<Tensor*>(value)), tuple.get());
  });
}

/// _rebatch(value, levels): wraps a tensor whose leading dimensions belong to these levels.
PyObject* rebatch(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    Dims levels;
    check_type(n == 2 && is_tensor(args[0]) && try_ints(args[1], levels), "_rebatch(value, levels)");
    if (levels.empty()) return Py_NewRef(args[0]);
    TensorRef t(tensor_of(args[0]));
    for (auto level : levels) t = TensorRef::adopt(tensor_of(new_batched(std::move(t), level)));
    return wrap(std::move(t));
  });
}

/// _spread(x, levels, sizes): the tensor with all these levels, those that it lacks expanded.
PyObject* spread(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    Dims levels, sizes, own, shape;
    check_type(n == 3 && is_tensor(args[0]) && try_ints(args[1], levels) && try_ints(args[2], sizes),
               "_spread(x, levels, sizes)");
    const Tensor* logical = tensor_of(args[0]);
    const Tensor* value = unwrap(logical, own);
    if (equal(own, levels)) return Py_NewRef(args[0]);
    Dims ones;
    for (int k = 0, d = 0; k < levels.size(); ++k) {
      bool have = d < own.size() && own[d] == levels[k];
      ones.push_back(have ? value->size(d) : 1);
      shape.push_back(have ? value->size(d++) : sizes[k]);
    }
    for (auto size : logical->sizes()) {
      ones.push_back(size);
      shape.push_back(size);
    }
    TensorRef t = own.empty() ? expand(*value, shape) : expand(*view(*value, ones), shape);
    for (auto level : levels) t = TensorRef::adopt(tensor_of(new_batched(std::move(t), level)));
    return wrap(std::move(t));
  });
}

PyObject* enter(PyObject*, PyObject* is_vmap) {
  ++batching.transforms;
  if (is_vmap == Py_True) ++batching.levels;
  Py_RETURN_NONE;
}
PyObject* leave(PyObject*, PyObject* is_vmap) {
  --batching.transforms;
  if (is_vmap == Py_True) --batching.levels;
  Py_RETURN_NONE;
}
PyObject* depth(PyObject*, PyObject*) { return PyLong_FromLong(batching.transforms); }

PyObject* set_entries(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    check_type(PyTuple_GET_SIZE(args) == int(BatchedEntry::Count),
               "_set_batching(choose, get_item, set_item, apply, backward)");
    for (int i = 0; i < int(BatchedEntry::Count); ++i) Py_XSETREF(entries[i], Py_NewRef(PyTuple_GET_ITEM(args, i)));
    Py_RETURN_NONE;
  });
}

/// _reaches_others(outputs, inputs): does the graph of the outputs end in leaves that are not among the inputs?
PyObject* reaches_others(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    check_type(n == 2 && PyTuple_Check(args[0]) && PyTuple_Check(args[1]), "_reaches_others(outputs, inputs)");
    std::vector<Node*> ends, open;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args[1]); ++i) {
      Edge edge = gradient_edge(*tensor_of(PyTuple_GET_ITEM(args[1], i)));
      if (edge.node && edge.node->kind != &AccumulateGrad::kind) {  // an input with a history: it reaches others
        release(static_cast<Object*>(edge.node));
        Py_RETURN_TRUE;
      }
      ends.push_back(edge.node);
      if (edge.node) release(static_cast<Object*>(edge.node));  // the input keeps it
    }
    std::unordered_set<Node*> seen(ends.begin(), ends.end());
    auto push = [&](Node* node) {
      if (node && seen.insert(node).second) open.push_back(node);
    };
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args[0]); ++i) {
      Tensor* t = tensor_of(PyTuple_GET_ITEM(args[0], i));
      if (t->has(RequiresGrad) && t->is_leaf()) {
        bool among = false;
        for (Py_ssize_t j = 0; j < PyTuple_GET_SIZE(args[1]); ++j)
          among = among || tensor_of(PyTuple_GET_ITEM(args[1], j)) == t;
        if (!among) Py_RETURN_TRUE;
      }
      push(t->grad_fn());
    }
    PyObject* finished = intern("_finished_input");
    Owned owner(finished);
    while (!open.empty()) {
      Node* node = open.back();
      open.pop_back();
      if (node->kind == &AccumulateGrad::kind) {  // of a level that is over: a constant
        auto* dict = static_cast<PyObject*>(static_cast<AccumulateGrad*>(node)->variable->dict);
        if (dict && PyDict_Contains(dict, finished) == 1) continue;
        Py_RETURN_TRUE;
      }
      for (int i = 0; i < node->n_edges; ++i) push(node->edges[i].node);
    }
    Py_RETURN_FALSE;
  });
}

template <class F>
PyCFunction fast(F f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}

PyMethodDef functions[] = {
    {"_batch", fast(make), METH_FASTCALL, "Wraps the tensors of a result whose first dimension is the batch."},
    {"_value_at", fast(value_at_level), METH_FASTCALL, "The value of a tensor batched at the level, or None."},
    {"_highest_level", highest, METH_O, "The highest level of a tensor, or of those in tuples and lists; 0: none."},
    {"_unbatch", unbatch, METH_O, "The tensor with the numbers, and the levels of its leading dimensions."},
    {"_rebatch", fast(rebatch), METH_FASTCALL, "Wraps a tensor whose leading dimensions belong to the levels."},
    {"_spread", fast(spread), METH_FASTCALL, "The tensor with all these levels, those that it lacks expanded."},
    {"_enter_transform", enter, METH_O, "Counts an open transform; True: a vmap."},
    {"_leave_transform", leave, METH_O, "Uncounts it."},
    {"_transform_depth", depth, METH_NOARGS, "How many transforms are open."},
    {"_set_batching", set_entries, METH_VARARGS, "Sets what the package does for batched tensors."},
    {"_reaches_others", fast(reaches_others), METH_FASTCALL,
     "Does the graph of the outputs end in leaves that are not among the inputs?"},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void init_batched_type(PyObject* module) {
  PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(batched_dealloc)},
                         {Py_tp_traverse, reinterpret_cast<void*>(batched_traverse)},
                         {Py_tp_getset, getset},
                         {0, nullptr}};
  PyType_Spec spec{"rushlight._BatchedTensor", sizeof(Batched), 0,
                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  batched_type = reinterpret_cast<PyTypeObject*>(
      checked(PyType_FromSpecWithBases(&spec, reinterpret_cast<PyObject*>(tensor_type))));
  checked(PyModule_AddObjectRef(module, "_BatchedTensor", reinterpret_cast<PyObject*>(batched_type)));
  checked(PyModule_AddFunctions(module, functions));
}

}  // namespace rushlight::python
