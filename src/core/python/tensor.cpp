// The Tensor type: attributes, number slots and the few methods that are not operators.
#include <cctype>

#include "autograd/tangent.h"
#include "python/batched.h"

namespace rushlight::python {

PyTypeObject* tensor_type;
void tensor_dealloc(PyObject* self);

// ---- lifetime

int tensor_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Tensor* t = tensor_of(self);
  Py_VISIT(static_cast<PyObject*>(t->dict));
  return tensor_visit(t, Visitor{reinterpret_cast<int (*)(void*, void*)>(visit), arg});
}

namespace {

int tensor_clear_cycles(PyObject* self) {
  Tensor* t = tensor_of(self);
  Py_CLEAR(reinterpret_cast<PyObject*&>(t->dict));
  if (Node* fn = std::exchange(t->grad_fn_, nullptr)) drop(fn);
  if (t->meta) {
    if (Tensor* grad = std::exchange(t->meta->grad, nullptr)) drop(grad);
    t->meta->hooks.clear();
    t->meta->leaf_hooks.clear();
    drop_tangents(*t->meta);
  }
  return 0;
}

/// Tensor(...) is the legacy constructor of the default type; the package's function reads the arguments.
PyObject* legacy_constructor = nullptr;
PyObject* tensor_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    check(legacy_constructor, "the package is not initialised");
    Owned made(PyObject_Call(legacy_constructor, args, kwargs));
    if (!made) return nullptr;
    if (type == tensor_type) return made.detach();
    PyObject* self = checked(type->tp_alloc(type, 0));  // a subclass: the same numbers in an object of it
    Tensor *from = tensor_of(made), *t = tensor_of(self);
    PyObject_GC_UnTrack(self);
    retain(from->storage);
    t->storage = from->storage;
    t->offset = from->offset;
    t->dtype = from->dtype;
    t->flags = 0;
    set_geometry(t, from->sizes(), from->strides());
    PyObject_GC_Track(self);
    return self;
  });
}

/// _make_subclass(cls, data, requires_grad=False): an object of a subclass over the same numbers.
PyObject* make_subclass(PyObject*, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"cls", "data", "require_grad", nullptr};
    PyTypeObject* cls;
    PyObject* data;
    int requires_grad = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O!|p", const_cast<char**>(names), &PyType_Type, &cls, tensor_type,
                                     &data, &requires_grad))
      return nullptr;
    check_type(PyType_IsSubtype(cls, tensor_type), "cls must be a subclass of Tensor, not ", cls->tp_name);
    Tensor* from = tensor_of(data);
    check(!requires_grad || is_differentiable(from->dtype),
          "Only Tensors of floating point and complex dtype can require gradients");
    PyObject* self = checked(cls->tp_alloc(cls, 0));
    PyObject_GC_UnTrack(self);
    Tensor* t = tensor_of(self);
    retain(from->storage);
    t->storage = from->storage;
    t->offset = from->offset;
    t->dtype = from->dtype;
    t->flags = requires_grad ? RequiresGrad : 0;
    set_geometry(t, from->sizes(), from->strides());
    PyObject_GC_Track(self);
    return self;
  });
}

// ---- numbers

PointwiseOp& named(const char* name) { return pointwise_op(name); }

/// The same under vmap; apart, so that the plain path stays small.
[[gnu::noinline, gnu::cold]] PyObject* over_values(PointwiseOp& op, const Operand* in, int n) {
  BatchValues values(op, in, n);
  return values.wrap(pointwise(op, values.in()));
}
[[gnu::noinline, gnu::cold]] PyObject* change_values(PointwiseOp& op, const char* text, PyObject* a,
                                                     const Operand* in) {
  BatchValues values(op, in, 2);
  pointwise_inplace(op, values.target(text), values.in(), text);
  return Py_NewRef(a);
}

/// Tensor op anything; what is no operand is left to the other side. `method`: what Tensor calls the operator.
PyObject* binary(PointwiseOp& op, const char* method, PyObject* a, PyObject* b) {
  return guarded([&]() -> PyObject* {
    Operand in[2];
    if (is_tensor(a))
      in[0].tensor = tensor_of(a);
    else if (!try_operand(a, in[0]))
      return left_to_other(method, b, a);
    if (is_tensor(b))
      in[1].tensor = tensor_of(b);
    else if (!try_operand(b, in[1]))
      return left_to_other(method, a, b);
    if (batching.levels && any_batched(in, 2)) [[unlikely]]
      return over_values(op, in, 2);
    return wrap(pointwise(op, in));
  });
}

PyObject* inplace(PointwiseOp& op, const char* text, PyObject* a, PyObject* b) {
  return guarded([&]() -> PyObject* {
    Operand in[2];
    in[0].tensor = tensor_of(a);
    if (!try_operand(b, in[1])) return left_to_other(text, a, b);
    if (batching.levels && any_batched(in, 2)) [[unlikely]]
      return change_values(op, text, a, in);
    pointwise_inplace(op, *tensor_of(a), in, text);
    return Py_NewRef(a);
  });
}

PyObject* unary(PointwiseOp& op, PyObject* a) {
  return guarded([&] {
    Operand in[1] = {Operand(*tensor_of(a))};
    if (is_batched(a)) [[unlikely]]
      return over_values(op, in, 1);
    return wrap(pointwise(op, in));
  });
}

#define RUSHLIGHT_BINARY(slot, op_name)      \
  PyObject* slot(PyObject* a, PyObject* b) { \
    static PointwiseOp& op = named(op_name); \
    return binary(op, op_name, a, b);        \
  }
#define RUSHLIGHT_INPLACE(slot, op_name, text) \
  PyObject* slot(PyObject* a, PyObject* b) {   \
    static PointwiseOp& op = named(op_name);   \
    return inplace(op, text, a, b);            \
  }
#define RUSHLIGHT_UNARY(slot, op_name)       \
  PyObject* slot(PyObject* a) {              \
    static PointwiseOp& op = named(op_name); \
    return unary(op, a);                     \
  }

RUSHLIGHT_BINARY(number_add, "add")
RUSHLIGHT_BINARY(number_multiply, "mul")
RUSHLIGHT_BINARY(number_remainder, "remainder")
RUSHLIGHT_BINARY(number_and, "bitwise_and")
RUSHLIGHT_BINARY(number_or, "bitwise_or")
RUSHLIGHT_BINARY(number_xor, "bitwise_xor")
RUSHLIGHT_BINARY(number_lshift, "bitwise_left_shift")
RUSHLIGHT_BINARY(number_rshift, "bitwise_right_shift")
RUSHLIGHT_BINARY(number_floor_divide, "floor_divide")
RUSHLIGHT_INPLACE(number_iadd, "add", "add_")
RUSHLIGHT_INPLACE(number_isubtract, "sub", "sub_")
RUSHLIGHT_INPLACE(number_imultiply, "mul", "mul_")
RUSHLIGHT_INPLACE(number_itrue_divide, "div", "div_")
RUSHLIGHT_INPLACE(number_ifloor_divide, "floor_divide", "floor_divide_")
RUSHLIGHT_INPLACE(number_iremainder, "remainder", "remainder_")
RUSHLIGHT_INPLACE(number_iand, "bitwise_and", "bitwise_and_")
RUSHLIGHT_INPLACE(number_ior, "bitwise_or", "bitwise_or_")
RUSHLIGHT_INPLACE(number_ixor, "bitwise_xor", "bitwise_xor_")
RUSHLIGHT_INPLACE(number_ilshift, "bitwise_left_shift", "bitwise_left_shift_")
RUSHLIGHT_INPLACE(number_irshift, "bitwise_right_shift", "bitwise_right_shift_")
RUSHLIGHT_UNARY(number_negative, "neg")
RUSHLIGHT_UNARY(number_absolute, "abs")
RUSHLIGHT_UNARY(number_invert, "bitwise_not")
PyObject* number_positive(PyObject* a) { return Py_NewRef(a); }

PyObject* number_subtract(PyObject* a, PyObject* b) {
  static PointwiseOp &op = named("sub"), &reversed = named("rsub");
  if (is_tensor(a)) return binary(op, "sub", a, b);
  return binary(reversed, "__rsub__", b, a);
}

PyObject* number_true_divide(PyObject* a, PyObject* b) {
  static PointwiseOp &op = named("div"), &reciprocal = named("reciprocal"), &times = named("mul");
  if (is_tensor(a)) return binary(op, "div", a, b);
  if (is_batched(b)) [[unlikely]] {
    Owned inverse(unary(reciprocal, b));
    return inverse ? binary(times, "mul", inverse, a) : nullptr;
  }
  return guarded([&]() -> PyObject* {
    Operand number;
    if (!try_operand(a, number)) return left_to_other("__rtruediv__", b, a);
    Operand x[1] = {Operand(*tensor_of(b))};
    TensorRef inverse = pointwise(reciprocal, x);
    Operand in[2] = {Operand(inverse), number};
    return wrap(pointwise(times, in));
  });
}

PyObject* number_power(PyObject* a, PyObject* b, PyObject* modulus) {
  if (modulus != Py_None) Py_RETURN_NOTIMPLEMENTED;
  return guarded([&]() -> PyObject* {
    Operand base, exponent;
    if (!try_operand(a, base)) return left_to_other("__rpow__", b, a);
    if (!try_operand(b, exponent)) return left_to_other("pow", a, b);
    Operand in[2] = {base, exponent};
    if (batching.levels && any_batched(in, 2)) [[unlikely]] {
      BatchValues values(named("pow"), in, 2);
      return values.wrap(power(values.in()[0], values.in()[1]));
    }
    return wrap(power(base, exponent));
  });
}

PyObject* number_ipower(PyObject* a, PyObject* b, PyObject*) {
  return guarded([&]() -> PyObject* {
    Operand exponent;
    if (!try_operand(b, exponent)) return left_to_other("pow_", a, b);
    Operand in[2] = {Operand(*tensor_of(a)), exponent};
    if (batching.levels && any_batched(in, 2)) [[unlikely]] {
      BatchValues values(named("pow"), in, 2);
      power_inplace(values.target("pow_"), values.in()[1]);
      return Py_NewRef(a);
    }
    power_inplace(*tensor_of(a), exponent);
    return Py_NewRef(a);
  });
}

PyObject* number_matmul(PyObject* a, PyObject* b) {
  if (!is_tensor(b)) return left_to_other("matmul", a, b);
  if (!is_tensor(a)) return left_to_other("__rmatmul__", b, a);
  if (is_batched(a) || is_batched(b)) [[unlikely]]
    return PyObject_CallMethod(reinterpret_cast<PyObject*>(tensor_type), "matmul", "OO", a, b);
  return guarded([&] { return wrap(matmul(*tensor_of(a), *tensor_of(b))); });
}

PyObject* compare(PyObject* a, PyObject* b, int kind) {
  static const char* methods[6] = {"lt", "le", "eq", "ne", "gt", "ge"};
  static PointwiseOp* ops[6] = {&named("lt"), &named("le"), &named("eq"), &named("ne"), &named("gt"), &named("ge")};
  return binary(*ops[kind], methods[kind], a, b);
}

int number_bool(PyObject* self) {
  int truth = 0;
  int status = guarded_int([&] {
    Tensor* t = tensor_of(self);
    check(t->numel != 0, "Boolean value of Tensor with no values is ambiguous");
    check(t->numel == 1, "Boolean value of Tensor with more than one value is ambiguous");
    Scalar s = item(*t);
    truth = !s.is(0);
  });
  return status < 0 ? -1 : truth;
}

/// The element as a real number; refuses what has an imaginary part.
Scalar real_item(PyObject* self, const char* type) {
  Scalar s = item(*tensor_of(self));
  if (s.kind != Scalar::Complex) return s;
  check(s.imag == 0, "value cannot be converted to type ", type, " without overflow");
  return Scalar(s.real);
}
/// As PyTorch, once in a process: what is made of the number will have no gradient.
void warn_of_lost_history(const Tensor& t) {
  static bool warned = false;
  if (warned || !t.requires_grad()) return;
  warned = true;
  checked(PyErr_WarnEx(PyExc_UserWarning,
                       "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\n"
                       "Consider using tensor.detach() first.",
                       1));
}

PyObject* number_int(PyObject* self) {
  return guarded([&] {
    warn_of_lost_history(*tensor_of(self));
    Scalar s = real_item(self, "int64_t");
    if (s.kind == Scalar::Float) return checked(PyLong_FromDouble(s.real));
    return PyLong_FromLongLong(s.integer);
  });
}
PyObject* number_float(PyObject* self) {
  return guarded([&] {
    warn_of_lost_history(*tensor_of(self));
    return PyFloat_FromDouble(real_item(self, "double").to_double());
  });
}
PyObject* number_index(PyObject* self) {
  return guarded([&] {
    Tensor* t = tensor_of(self);
    check_type(t->numel == 1 && category(t->dtype) <= 1,
               "only integer tensors of a single element can be converted to an index");
    return PyLong_FromLongLong(item(*t).to_int());
  });
}
PyObject* tensor_complex(PyObject* self, PyObject*) {
  return guarded([&] {
    warn_of_lost_history(*tensor_of(self));
    Scalar s = item(*tensor_of(self));
    return PyComplex_FromDoubles(s.to_double(), s.kind == Scalar::Complex ? s.imag : 0);
  });
}

// ---- sequence

Py_ssize_t length(PyObject* self) {
  Tensor* t = tensor_of(self);
  if (t->ndim == 0) {
    PyErr_SetString(PyExc_TypeError, "len() of a 0-d tensor");
    return -1;
  }
  return Py_ssize_t(t->size(0));
}

PyObject* iterate(PyObject* self) {
  return guarded([&]() -> PyObject* {
    Tensor* t = tensor_of(self);
    check_type(t->ndim > 0, "iteration over a 0-d tensor");
    if (is_batched(self)) {
      Owned parts(checked(PyObject_CallMethod(self, "unbind", nullptr)));
      return PyObject_GetIter(parts);
    }
    Owned parts(wrap_tuple(unbind(*t, 0)));
    return PyObject_GetIter(parts);
  });
}

// ---- attributes

PyObject* get_requires_grad(PyObject* s, void*) { return PyBool_FromLong(tensor_of(s)->requires_grad()); }
int set_requires_grad(PyObject* s, PyObject* v, void*) {
  return guarded_int([&] {
    check(v && PyBool_Check(v), "requires_grad must be a bool");
    Tensor* t = tensor_of(s);
    bool on = v == Py_True;
    check(t->is_leaf(),
          on ? "you can only change requires_grad flags of leaf variables."
             : "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a "
               "subgraph that doesn't require differentiation use var_no_grad = var.detach().");
    check(!on || is_differentiable(t->dtype), "only Tensors of floating point and complex dtype can require gradients");
    check(!on || !t->has(Inference) || inference_mode(),
          "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.");
    if (t->is_leaf()) t->set(RequiresGrad, on);
  });
}

PyObject* get_grad(PyObject* s, void*) {
  Tensor* t = tensor_of(s);
  Tensor* g = grad_of(*t);
  if (g) return Py_NewRef(object_of(g));
  if (t->grad_fn() && !t->has(RetainsGrad) && t->requires_grad() &&
      PyErr_WarnEx(PyExc_UserWarning,
                   "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute "
                   "won't be populated during autograd.backward(). If you "
                   "indeed want the .grad field to be populated for a non-leaf Tensor, use .retain_grad() on the "
                   "non-leaf Tensor. If you access the non-leaf Tensor by "
                   "mistake, make sure you access the leaf Tensor instead.",
                   1) < 0)
    return nullptr;
  Py_RETURN_NONE;
}
std::string lower(const char* text) {
  std::string out = text;
  for (auto& c : out) c = char(std::tolower(c));
  return out;
}

int set_grad_attribute(PyObject* s, PyObject* v, void*) {
  return guarded_int([&] {
    Tensor* t = tensor_of(s);
    if (!v || v == Py_None) {
      if (t->meta) set_grad(*t, nullptr);
      return;
    }
    check_type(is_tensor(v), "assigned grad expected to be a Tensor or None but got grad of type ",
               Py_TYPE(v)->tp_name);
    check(v != s, "can't assign Variable as its own grad");
    Tensor* g = tensor_of(v);
    check(equal(g->sizes(), t->sizes()), "attempting to assign a gradient of size '", to_string(g->sizes()),
          "' to a tensor of size '", to_string(t->sizes()),
          "'. Please ensure that the gradient and the tensor are the same size");
    check(g->dtype == t->dtype, "attempting to assign a gradient with dtype '", lower(info(g->dtype).scalar_name),
          "' to a tensor with grad_dtype '", info(t->dtype).scalar_name,
          "'. The gradient must match the tensor's grad_dtype, which is the tensor's dtype.");
    set_grad(*t, TensorRef(g));
  });
}

PyObject* get_grad_fn(PyObject* s, void*) {
  return guarded([&] {
    check_history(*tensor_of(s));
    return wrap(tensor_of(s)->grad_fn());
  });
}
PyObject* get_is_leaf(PyObject* s, void*) {
  return guarded([&] {
    check_history(*tensor_of(s));
    return PyBool_FromLong(tensor_of(s)->is_leaf());
  });
}
PyObject* get_shape(PyObject* s, void*) {
  return guarded([&] { return make_size(tensor_of(s)->sizes()); });
}
PyObject* get_dtype(PyObject* s, void*) { return dtype_object(tensor_of(s)->dtype); }
PyObject* get_device(PyObject*, void*) { return cpu_device(); }
PyObject* get_ndim(PyObject* s, void*) { return PyLong_FromLong(tensor_of(s)->ndim); }
PyObject* get_itemsize(PyObject* s, void*) { return PyLong_FromLongLong(tensor_of(s)->item_size()); }
PyObject* get_nbytes(PyObject* s, void*) {
  return PyLong_FromLongLong(tensor_of(s)->item_size() * tensor_of(s)->numel);
}
PyObject* get_version(PyObject* s, void*) {
  return guarded([&] {
    check(!tensor_of(s)->has(Inference), "Inference tensors do not track version counter.");
    return PyLong_FromUnsignedLong(tensor_of(s)->version());
  });
}
PyObject* get_output_nr(PyObject* s, void*) { return PyLong_FromUnsignedLong(tensor_of(s)->output_nr); }
PyObject* get_base(PyObject* s, void*) {
  Tensor* t = tensor_of(s);
  if (!is_view(*t)) Py_RETURN_NONE;
  return Py_NewRef(object_of(t->meta->base));
}
PyObject* get_retains_grad(PyObject* s, void*) { return PyBool_FromLong(tensor_of(s)->has(RetainsGrad)); }
PyObject* get_data(PyObject* s, void*) {
  return guarded([&] {
    Tensor* t = tensor_of(s);
    return wrap(make_tensor(alias_storage(t->storage), t->dtype, t->sizes(), t->strides(), t->offset));
  });
}
int set_data(PyObject* s, PyObject* v, void*) {
  return guarded_int([&] {
    check(v, "Deleting tensor data is not allowed. Delete tensor instead!");
    check_type(is_tensor(v), "Variable data has to be a tensor, but got ", Py_TYPE(v)->tp_name);
    Tensor *t = tensor_of(s), *from = tensor_of(v);
    check(!t->requires_grad() || is_differentiable(from->dtype),
          "data set to a tensor that requires gradients must be floating point or complex dtype");
    Ref<Storage> storage = from->storage == t->storage ? Ref<Storage>(t->storage) : Ref<Storage>(from->storage);
    Storage* old = std::exchange(t->storage, storage.detach());
    release(old);
    t->offset = from->offset;
    t->dtype = from->dtype;
    set_geometry(t, Dims(from->sizes()), Dims(from->strides()));
    if (t->meta && t->meta->accumulator) {  // what it expects has changed with the numbers
      note_output(t->meta->accumulator, *t);
    }
  });
}
PyObject* get_transposed(PyObject* s, void*) {
  return guarded([&] {
    Tensor* t = tensor_of(s);
    Dims order(t->ndim);
    for (int i = 0; i < t->ndim; ++i) order[i] = t->ndim - 1 - i;
    return wrap(permute(*t, order));
  });
}
PyObject* get_matrix_transposed(PyObject* s, void*) {
  return guarded([&] {
    Tensor* t = tensor_of(s);
    if (t->ndim == 0) return wrap(TensorRef(t));
    check(t->ndim >= 2, "tensor.mT is only supported on matrices or batches of matrices. Got ", int(t->ndim),
          "-D tensor.");
    return wrap(transpose(*t, -2, -1));
  });
}
PyObject* get_layout(PyObject*, void*) { return strided_layout(); }
PyObject* get_real(PyObject* s, void*) {
  return guarded([&] { return wrap(real_part(*tensor_of(s))); });
}
PyObject* get_imag(PyObject* s, void*) {
  return guarded([&] { return wrap(imaginary_part(*tensor_of(s))); });
}
/// Writes a tensor or a number over a part.
void set_part(Tensor& part, PyObject* v, const char* name) {
  check(v, "Deleting tensor ", name, " is not allowed.");
  if (is_tensor(v))
    copy_into(part, *tensor_of(v));
  else
    copy_into(part, *scalar_tensor(as_scalar(v, name), part.dtype));
}
int set_real(PyObject* s, PyObject* v, void*) {
  return guarded_int([&] { set_part(*real_part(*tensor_of(s)), v, "real"); });
}
int set_imag(PyObject* s, PyObject* v, void*) {
  return guarded_int([&] { set_part(*imaginary_part(*tensor_of(s)), v, "imag"); });
}
PyObject* get_true(PyObject*, void*) { Py_RETURN_TRUE; }
PyObject* get_false(PyObject*, void*) { Py_RETURN_FALSE; }
PyObject* get_volatile(PyObject* s, void*) { return PyBool_FromLong(tensor_of(s)->has(Volatile)); }
int set_volatile(PyObject* s, PyObject* v, void*) {
  tensor_of(s)->set(Volatile, v && PyObject_IsTrue(v));
  return 0;
}

PyGetSetDef getset[] = {
    {"requires_grad", get_requires_grad, set_requires_grad,
     "True where operations on this tensor are recorded. Settable on leaves of floating type.", nullptr},
    {"grad", get_grad, set_grad_attribute, "The gradient that backward() accumulated, or None.", nullptr},
    {"_grad", get_grad, set_grad_attribute, nullptr, nullptr},
    {"grad_fn", get_grad_fn, nullptr, "The node of the graph that produced this tensor, or None for a leaf.", nullptr},
    {"is_leaf", get_is_leaf, nullptr, "True where no recorded operation produced this tensor.", nullptr},
    {"shape", get_shape, nullptr, "The sizes, as a torch.Size.", nullptr},
    {"dtype", get_dtype, nullptr, "The element type.", nullptr},
    {"device", get_device, nullptr, "Always device(type='cpu').", nullptr},
    {"layout", get_layout, nullptr, "Always torch.strided.", nullptr},
    {"real", get_real, set_real, "The real part, a view: of a real tensor, itself.", nullptr},
    {"imag", get_imag, set_imag, "The imaginary part of a complex tensor, a view.", nullptr},
    {"ndim", get_ndim, nullptr, "The number of dimensions.", nullptr},
    {"itemsize", get_itemsize, nullptr, "Bytes of one element.", nullptr},
    {"nbytes", get_nbytes, nullptr, "Bytes of all elements.", nullptr},
    {"_version", get_version, nullptr, "How often the memory was changed in place.", nullptr},
    {"output_nr", get_output_nr, nullptr, "Which output of grad_fn this is.", nullptr},
    {"_base", get_base, nullptr, "The tensor that this is a view of, or None.", nullptr},
    {"retains_grad", get_retains_grad, nullptr, "True after retain_grad() on a non-leaf.", nullptr},
    {"data", get_data, set_data, "The same numbers, outside of the graph and under a version counter of their own.",
     nullptr},
    {"T", get_transposed, nullptr, "The dimensions reversed.", nullptr},
    {"mT", get_matrix_transposed, nullptr, "The last two dimensions exchanged.", nullptr},
    {"is_cpu", get_true, nullptr, nullptr, nullptr},
    {"is_cuda", get_false, nullptr, nullptr, nullptr},
    {"is_mps", get_false, nullptr, nullptr, nullptr},
    {"is_meta", get_false, nullptr, nullptr, nullptr},
    {"is_sparse", get_false, nullptr, nullptr, nullptr},
    {"is_quantized", get_false, nullptr, nullptr, nullptr},
    {"is_mkldnn", get_false, nullptr, nullptr, nullptr},
    {"is_nested", get_false, nullptr, nullptr, nullptr},
    {"_volatile", get_volatile, set_volatile, "True for Variable(volatile=True): nothing computed from it is recorded.",
     nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

// ---- methods

PyObject* size(PyObject* s, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  return guarded([&]() -> PyObject* {
    Tensor* t = tensor_of(s);
    Py_ssize_t given = nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    check_type(given <= 1, "size() takes at most 1 argument (", given, " given)");
    if (given == 0 || args[0] == Py_None) return make_size(t->sizes());
    std::int64_t dim;
    check_type(try_int(args[0], dim), "size(): argument 'dim' (position 1) must be int, not ",
               Py_TYPE(args[0])->tp_name);
    check_index(t->ndim > 0, "Dimension specified as ", dim, " but tensor has no dimensions");
    return PyLong_FromLongLong(t->size(wrap_dim(dim, t->ndim)));
  });
}
PyObject* stride(PyObject* s, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  return guarded([&]() -> PyObject* {
    Tensor* t = tensor_of(s);
    Py_ssize_t given = nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    if (given == 0) {
      PyObject* out = checked(PyTuple_New(t->ndim));
      for (int i = 0; i < t->ndim; ++i) PyTuple_SET_ITEM(out, i, PyLong_FromLongLong(t->stride(i)));
      return out;
    }
    std::int64_t dim;
    check_type(try_int(args[0], dim), "stride(): argument 'dim' (position 1) must be int, not ",
               Py_TYPE(args[0])->tp_name);
    return PyLong_FromLongLong(t->stride(wrap_dim(dim, t->ndim)));
  });
}
PyObject* dim(PyObject* s, PyObject*) { return PyLong_FromLong(tensor_of(s)->ndim); }
PyObject* numel(PyObject* s, PyObject*) { return PyLong_FromLongLong(tensor_of(s)->numel); }
PyObject* storage_offset(PyObject* s, PyObject*) { return PyLong_FromLongLong(tensor_of(s)->offset); }
PyObject* item_method(PyObject* s, PyObject*) {
  return guarded([&] { return number_to_python(item(*tensor_of(s))); });
}
PyObject* tolist(PyObject* s, PyObject*) {
  return guarded([&] { return tensor_to_list(*tensor_of(s)); });
}
PyObject* data_ptr(PyObject* s, PyObject*) {
  return guarded([&] {
    Tensor* t = tensor_of(s);
    return PyLong_FromVoidPtr(t->numel ? t->expose() : nullptr);
  });
}
PyObject* is_contiguous(PyObject* s, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  return guarded([&]() -> PyObject* {
    Tensor* t = tensor_of(s);
    MemoryFormat format = MemoryFormat::Contiguous;
    if (nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0))
      check_type(try_memory_format(args[0], format),
                 "is_contiguous(): argument 'memory_format' must be torch.memory_format");
    return PyBool_FromLong(is_contiguous_in(*t, format));
  });
}
PyObject* requires_grad_(PyObject* s, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  PyObject* value = nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0) ? args[0] : Py_True;
  if (value == Py_True && !tensor_of(s)->is_leaf()) return Py_NewRef(s);
  return set_requires_grad(s, value, nullptr) < 0 ? nullptr : Py_NewRef(s);
}
PyObject* detach_(PyObject* s, PyObject*) {
  return guarded([&] {
    Tensor* t = tensor_of(s);
    check(!is_view(*t),
          "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for "
          "training, and gradient_as_bucket_view is set "
          "as True, gradients are views of DDP buckets, and hence detach_() cannot be called on these gradients.");
    if (t->meta && t->has(RetainsGrad)) t->set(RetainsGrad, false);
    t->set(RequiresGrad, false);
    set_history(*t, nullptr);
    if (t->meta) drop_tangents(*t->meta);
    return Py_NewRef(s);
  });
}
PyObject* is_floating_point(PyObject* s, PyObject*) { return PyBool_FromLong(is_floating(tensor_of(s)->dtype)); }
PyObject* is_complex_method(PyObject* s, PyObject*) { return PyBool_FromLong(is_complex(tensor_of(s)->dtype)); }
PyObject* is_signed(PyObject* s, PyObject*) {
  DType d = tensor_of(s)->dtype;
  return PyBool_FromLong(d != DType::Bool && d != DType::UInt8);
}
PyObject* is_inference(PyObject* s, PyObject*) { return PyBool_FromLong(tensor_of(s)->has(Inference)); }
PyObject* is_set_to(PyObject* s, PyObject* other) {
  return guarded([&] {
    check_type(is_tensor(other), "is_set_to(): argument 'tensor' must be Tensor, not ", Py_TYPE(other)->tp_name);
    Tensor *a = tensor_of(s), *b = tensor_of(other);
    return PyBool_FromLong(a->storage == b->storage && a->offset == b->offset && equal(a->sizes(), b->sizes()) &&
                           equal(a->strides(), b->strides()));
  });
}

using Fast = PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);
PyCFunction fast(Fast f) { return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f)); }

PyMethodDef methods[] = {
    {"size", fast(size), METH_FASTCALL | METH_KEYWORDS, "size(dim=None): the sizes, or that of one dimension."},
    {"stride", fast(stride), METH_FASTCALL | METH_KEYWORDS,
     "stride(dim=None): elements between neighbours of each dimension."},
    {"dim", dim, METH_NOARGS, "The number of dimensions."},
    {"ndimension", dim, METH_NOARGS, "The number of dimensions."},
    {"numel", numel, METH_NOARGS, "The number of elements."},
    {"nelement", numel, METH_NOARGS, "The number of elements."},
    {"element_size", [](PyObject* s, PyObject*) { return get_itemsize(s, nullptr); }, METH_NOARGS,
     "Bytes of one element."},
    {"storage_offset", storage_offset, METH_NOARGS, "Where in its storage the tensor begins, in elements."},
    {"item", item_method, METH_NOARGS, "The only element, as a Python number."},
    {"tolist", tolist, METH_NOARGS, "The numbers as nested lists (a number for a 0-d tensor)."},
    {"data_ptr", data_ptr, METH_NOARGS, "The address of the first element."},
    {"is_contiguous", fast(is_contiguous), METH_FASTCALL | METH_KEYWORDS,
     "True where the elements lie in row-major order."},
    {"requires_grad_", fast(requires_grad_), METH_FASTCALL | METH_KEYWORDS,
     "requires_grad_(requires_grad=True): sets requires_grad, gives self."},
    {"detach_", detach_, METH_NOARGS, "Makes this very tensor a leaf that does not require grad."},
    {"is_floating_point", is_floating_point, METH_NOARGS, nullptr},
    {"is_complex", is_complex_method, METH_NOARGS, nullptr},
    {"is_signed", is_signed, METH_NOARGS, nullptr},
    {"_is_view", [](PyObject* s, PyObject*) { return PyBool_FromLong(is_view(*tensor_of(s))); }, METH_NOARGS,
     "Is this a view that autograd follows?"},
    {"is_inference", is_inference, METH_NOARGS, nullptr},
    {"is_set_to", is_set_to, METH_O, nullptr},
    {"__complex__", tensor_complex, METH_NOARGS, nullptr},
    {"_make_subclass", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(make_subclass)),
     METH_VARARGS | METH_KEYWORDS | METH_STATIC,
     "_make_subclass(cls, data, require_grad=False): the same numbers in an object of a subclass."},
    {nullptr, nullptr, 0, nullptr},
};

PyObject* set_legacy_constructor(PyObject*, PyObject* f) {
  Py_XSETREF(legacy_constructor, Py_NewRef(f));
  Py_RETURN_NONE;
}
PyMethodDef module_methods[] = {{"_set_legacy_constructor", set_legacy_constructor, METH_O, "What Tensor(...) calls."},
                                {nullptr, nullptr, 0, nullptr}};

Py_hash_t hash(PyObject* self) { return _Py_HashPointer(self); }

}  // namespace

/// The module-level slots need the pointwise table: the package fills them after its operators are declared.
void init_tensor_type(PyObject* module) {
  static PyMemberDef members[] = {{"__dictoffset__", T_PYSSIZET, offsetof(Tensor, dict), READONLY, nullptr},
                                  {"__weaklistoffset__", T_PYSSIZET, offsetof(Tensor, weakrefs), READONLY, nullptr},
                                  {nullptr, 0, 0, 0, nullptr}};
#define SLOT(slot, f)                \
  {                                  \
    slot, reinterpret_cast<void*>(f) \
  }
  static PyGetSetDef with_dict[sizeof(getset) / sizeof(getset[0]) + 1];
  std::copy(std::begin(getset), std::end(getset), with_dict);
  with_dict[sizeof(getset) / sizeof(getset[0]) - 1] = {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict,
                                                       nullptr, nullptr};
  with_dict[sizeof(getset) / sizeof(getset[0])] = {nullptr, nullptr, nullptr, nullptr, nullptr};
  PyType_Slot slots[] = {SLOT(Py_tp_dealloc, tensor_dealloc),
                         SLOT(Py_tp_traverse, tensor_traverse),
                         SLOT(Py_tp_clear, tensor_clear_cycles),
                         SLOT(Py_tp_new, tensor_new),
                         SLOT(Py_tp_members, members),
                         SLOT(Py_tp_getset, with_dict),
                         SLOT(Py_tp_methods, methods),
                         SLOT(Py_tp_richcompare, compare),
                         SLOT(Py_tp_hash, hash),
                         SLOT(Py_tp_iter, iterate),
                         SLOT(Py_mp_length, length),
                         SLOT(Py_mp_subscript, get_item),
                         SLOT(Py_mp_ass_subscript, set_item),
                         SLOT(Py_nb_add, number_add),
                         SLOT(Py_nb_subtract, number_subtract),
                         SLOT(Py_nb_multiply, number_multiply),
                         SLOT(Py_nb_true_divide, number_true_divide),
                         SLOT(Py_nb_floor_divide, number_floor_divide),
                         SLOT(Py_nb_remainder, number_remainder),
                         SLOT(Py_nb_power, number_power),
                         SLOT(Py_nb_matrix_multiply, number_matmul),
                         SLOT(Py_nb_and, number_and),
                         SLOT(Py_nb_or, number_or),
                         SLOT(Py_nb_xor, number_xor),
                         SLOT(Py_nb_lshift, number_lshift),
                         SLOT(Py_nb_rshift, number_rshift),
                         SLOT(Py_nb_inplace_add, number_iadd),
                         SLOT(Py_nb_inplace_subtract, number_isubtract),
                         SLOT(Py_nb_inplace_multiply, number_imultiply),
                         SLOT(Py_nb_inplace_true_divide, number_itrue_divide),
                         SLOT(Py_nb_inplace_floor_divide, number_ifloor_divide),
                         SLOT(Py_nb_inplace_remainder, number_iremainder),
                         SLOT(Py_nb_inplace_power, number_ipower),
                         SLOT(Py_nb_inplace_and, number_iand),
                         SLOT(Py_nb_inplace_or, number_ior),
                         SLOT(Py_nb_inplace_xor, number_ixor),
                         SLOT(Py_nb_inplace_lshift, number_ilshift),
                         SLOT(Py_nb_inplace_rshift, number_irshift),
                         SLOT(Py_nb_negative, number_negative),
                         SLOT(Py_nb_positive, number_positive),
                         SLOT(Py_nb_absolute, number_absolute),
                         SLOT(Py_nb_invert, number_invert),
                         SLOT(Py_nb_bool, number_bool),
                         SLOT(Py_nb_int, number_int),
                         SLOT(Py_nb_float, number_float),
                         SLOT(Py_nb_index, number_index),
                         {0, nullptr}};
#undef SLOT
  PyType_Spec spec{"rushlight.Tensor", sizeof(Tensor), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
                   slots};
  tensor_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)));
  checked(PyModule_AddObjectRef(module, "Tensor", reinterpret_cast<PyObject*>(tensor_type)));
  checked(PyModule_AddFunctions(module, module_methods));
}

}  // namespace rushlight::python
