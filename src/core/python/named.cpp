// dtype, layout, memory_format and device objects, and Size.
#include <cstring>

#include "python/python.h"

namespace rushlight::python {

PyTypeObject* dtype_type;
PyTypeObject* size_type;

namespace {

/// A constant with a printed name: torch.float32, torch.strided, torch.channels_last.
struct Named {
  PyObject_HEAD;
  const char* name;
  int value;
};

PyTypeObject *layout_type, *format_type, *device_type;
PyObject* dtype_objects[dtype_count];
PyObject* strided;

PyObject* named_repr(PyObject* self) { return PyUnicode_FromFormat("torch.%s", reinterpret_cast<Named*>(self)->name); }
/// Pickled as a name of the package, so that identity survives.
PyObject* named_reduce(PyObject* self, PyObject*) { return PyUnicode_FromString(reinterpret_cast<Named*>(self)->name); }
PyObject* named_copy(PyObject* self, PyObject*) { return Py_NewRef(self); }

PyMethodDef named_methods[] = {
    {"__reduce__", named_reduce, METH_NOARGS, nullptr},
    {"__copy__", named_copy, METH_NOARGS, nullptr},
    {"__deepcopy__", named_copy, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

DType dtype_value(PyObject* self) { return DType(reinterpret_cast<Named*>(self)->value); }
PyObject* dtype_is_floating(PyObject* s, void*) { return PyBool_FromLong(is_floating(dtype_value(s))); }
PyObject* dtype_is_complex(PyObject* s, void*) { return PyBool_FromLong(is_complex(dtype_value(s))); }
PyObject* dtype_is_signed(PyObject* s, void*) {
  DType d = dtype_value(s);
  return PyBool_FromLong(d != DType::Bool && d != DType::UInt8);
}
PyObject* dtype_itemsize(PyObject* s, void*) { return PyLong_FromLongLong(item_size(dtype_value(s))); }
PyObject* dtype_to_real(PyObject* s, PyObject*) {
  DType d = dtype_value(s);
  return Py_NewRef(dtype_objects[int(real_of(d))]);
}
PyObject* dtype_to_complex(PyObject* s, PyObject*) {
  DType d = dtype_value(s);
  return Py_NewRef(dtype_objects[int(complex_of(d))]);
}

PyGetSetDef dtype_getset[] = {
    {"is_floating_point", dtype_is_floating, nullptr, "True for float16, bfloat16, float32 and float64.", nullptr},
    {"is_complex", dtype_is_complex, nullptr, "True for complex64 and complex128.", nullptr},
    {"is_signed", dtype_is_signed, nullptr, "True where negative numbers exist.", nullptr},
    {"itemsize", dtype_itemsize, nullptr, "Bytes of one element.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMethodDef dtype_methods[] = {
    {"__reduce__", named_reduce, METH_NOARGS, nullptr},
    {"__copy__", named_copy, METH_NOARGS, nullptr},
    {"__deepcopy__", named_copy, METH_O, nullptr},
    {"to_real", dtype_to_real, METH_NOARGS, "The real type of a complex one."},
    {"to_complex", dtype_to_complex, METH_NOARGS, "The complex type of a real one."},
    {nullptr, nullptr, 0, nullptr},
};

PyTypeObject* make_named_type(PyObject* module, const char* name, PyMethodDef* methods, PyGetSetDef* getset) {
  PyType_Slot slots[] = {{Py_tp_repr, reinterpret_cast<void*>(named_repr)},
                         {Py_tp_methods, methods},
                         {getset ? Py_tp_getset : 0, getset},
                         {0, nullptr}};
  PyType_Spec spec{name, sizeof(Named), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  auto* type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)));
  checked(PyModule_AddObjectRef(module, std::strrchr(name, '.') + 1, reinterpret_cast<PyObject*>(type)));
  return type;
}

PyObject* make_named(PyObject* module, PyTypeObject* type, const char* name, int value) {
  auto* o = PyObject_New(Named, type);
  o->name = name;
  o->value = value;
  checked(PyModule_AddObjectRef(module, name, reinterpret_cast<PyObject*>(o)));
  return reinterpret_cast<PyObject*>(o);
}

// ---- device

struct DeviceObject {
  PyObject_HEAD;
  PyObject* type;  // str
  long index;      // -1: none
};
PyObject* cpu;

bool known_device(const char* name) {
  for (const char* known :
       {"cpu",  "cuda", "ipu", "xpu",  "mkldnn", "opengl", "opencl", "ideep", "hip",  "ve",
        "fpga", "maia", "xla", "lazy", "vulkan", "mps",    "meta",   "hpu",   "mtia", "privateuseone"})
    if (!std::strcmp(name, known)) return true;
  return false;
}

PyObject* new_device(const std::string& text, long index) {
  std::string type = text;
  auto colon = text.find(':');
  if (colon != text.npos) {
    type = text.substr(0, colon);
    std::string digits = text.substr(colon + 1);
    check(!digits.empty() && digits.find_first_not_of("0123456789") == digits.npos, "Invalid device string: '", text,
          "'");
    check(index < 0, "type (string) must not include an index because index was passed explicitly: ", text);
    index = std::stol(digits);
  }
  check(known_device(type.c_str()),
        "Expected one of cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, xla, lazy, vulkan, "
        "mps, meta, hpu, "
        "mtia, privateuseone device type at start of device string: ",
        type);
  auto* d = PyObject_New(DeviceObject, device_type);
  d->type = PyUnicode_FromString(type.c_str());
  d->index = index;
  return reinterpret_cast<PyObject*>(d);
}

PyObject* device_new(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"type", "index", nullptr};
    PyObject *type = nullptr, *index = nullptr;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O", const_cast<char**>(names), &type, &index)) return nullptr;
    if (PyObject_TypeCheck(type, device_type)) return Py_NewRef(type);
    if (PyLong_Check(type)) return new_device("cuda", PyLong_AsLong(type));
    check_type(PyUnicode_Check(type), "device(): argument 'type' must be str, not ", Py_TYPE(type)->tp_name);
    long i = -1;
    if (index && index != Py_None) {
      i = PyLong_AsLong(index);
      if (i == -1 && PyErr_Occurred()) return nullptr;
    }
    return new_device(text_of(type), i);
  });
}

void device_dealloc(PyObject* self) {
  Py_XDECREF(reinterpret_cast<DeviceObject*>(self)->type);
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* device_str(PyObject* self) {
  auto* d = reinterpret_cast<DeviceObject*>(self);
  return d->index < 0 ? Py_NewRef(d->type) : PyUnicode_FromFormat("%U:%ld", d->type, d->index);
}
PyObject* device_repr(PyObject* self) {
  auto* d = reinterpret_cast<DeviceObject*>(self);
  return d->index < 0 ? PyUnicode_FromFormat("device(type='%U')", d->type)
                      : PyUnicode_FromFormat("device(type='%U', index=%ld)", d->type, d->index);
}
PyObject* device_compare(PyObject* a, PyObject* b, int op) {
  if (!PyObject_TypeCheck(a, device_type) || !PyObject_TypeCheck(b, device_type) || (op != Py_EQ && op != Py_NE))
    Py_RETURN_NOTIMPLEMENTED;
  auto *x = reinterpret_cast<DeviceObject*>(a), *y = reinterpret_cast<DeviceObject*>(b);
  bool same = x->index == y->index && PyUnicode_Compare(x->type, y->type) == 0;
  return PyBool_FromLong(same == (op == Py_EQ));
}
Py_hash_t device_hash(PyObject* self) {
  auto* d = reinterpret_cast<DeviceObject*>(self);
  Py_hash_t h = PyObject_Hash(d->type) * 31 + d->index;
  return h == -1 ? -2 : h;
}
PyObject* device_type_get(PyObject* s, void*) { return Py_NewRef(reinterpret_cast<DeviceObject*>(s)->type); }
PyObject* device_index_get(PyObject* s, void*) {
  long i = reinterpret_cast<DeviceObject*>(s)->index;
  if (i < 0) Py_RETURN_NONE;
  return PyLong_FromLong(i);
}
PyObject* device_reduce(PyObject* self, PyObject*) {
  Owned text(device_str(self));
  return Py_BuildValue("(O(O))", device_type, text.get());
}
PyObject* device_enter(PyObject* self, PyObject*) {
  return guarded([&] {
    check_device(self);
    return Py_NewRef(self);
  });
}
PyObject* device_exit(PyObject*, PyObject*) { Py_RETURN_NONE; }

PyGetSetDef device_getset[] = {{"type", device_type_get, nullptr, "The kind of device, \"cpu\".", nullptr},
                               {"index", device_index_get, nullptr, "Which of several, or None.", nullptr},
                               {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMethodDef device_methods[] = {{"__reduce__", device_reduce, METH_NOARGS, nullptr},
                                {"__enter__", device_enter, METH_NOARGS, nullptr},
                                {"__exit__", device_exit, METH_VARARGS, nullptr},
                                {nullptr, nullptr, 0, nullptr}};

// ---- Size

PyObject* size_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    Owned plain(PyObject_Call(reinterpret_cast<PyObject*>(&PyTuple_Type), args, kwargs));
    if (!plain) return nullptr;
    Py_ssize_t n = PyTuple_GET_SIZE(plain.get());
    PyObject* self = checked(type->tp_alloc(type, n));
    Owned owner(self);
    for (Py_ssize_t i = 0; i < n; ++i) {
      std::int64_t v;
      check_type(try_int(PyTuple_GET_ITEM(plain.get(), i), v), "torch.Size() takes an iterable of 'int' (item ", i,
                 " is '", Py_TYPE(PyTuple_GET_ITEM(plain.get(), i))->tp_name, "')");
      PyTuple_SET_ITEM(self, i, PyLong_FromLongLong(v));
    }
    return owner.detach();
  });
}

PyObject* size_repr(PyObject* self) {
  Owned list(PySequence_List(self));
  return list ? PyUnicode_FromFormat("torch.Size(%R)", list.get()) : nullptr;
}

PyObject* size_numel(PyObject* self, PyObject*) {
  std::int64_t n = 1;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); ++i) n *= PyLong_AsLongLong(PyTuple_GET_ITEM(self, i));
  return PyLong_FromLongLong(n);
}

PyObject* size_reduce(PyObject* self, PyObject*) {
  Owned plain(PySequence_Tuple(self));
  return Py_BuildValue("(O(O))", size_type, plain.get());
}

/// A slice or sum of a Size is one again.
PyObject* as_size(PyObject* tuple) {
  if (!tuple || Py_TYPE(tuple) != &PyTuple_Type) return tuple;
  Owned plain(tuple);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i)
    if (!PyLong_Check(PyTuple_GET_ITEM(tuple, i))) return plain.detach();
  return PyObject_CallOneArg(reinterpret_cast<PyObject*>(size_type), tuple);
}
PyObject* size_subscript(PyObject* self, PyObject* key) {
  return as_size(PyTuple_Type.tp_as_mapping->mp_subscript(self, key));
}
PyObject* size_concat(PyObject* self, PyObject* other) {
  return as_size(PyTuple_Type.tp_as_sequence->sq_concat(self, other));
}
PyObject* size_repeat(PyObject* self, Py_ssize_t n) { return as_size(PyTuple_Type.tp_as_sequence->sq_repeat(self, n)); }

PyMethodDef size_methods[] = {{"numel", size_numel, METH_NOARGS, "The product of the sizes."},
                              {"__reduce__", size_reduce, METH_NOARGS, nullptr},
                              {nullptr, nullptr, 0, nullptr}};

}  // namespace

PyObject* make_size(IntSpan sizes) {
  // A Size never changes, so the lately made ones are given again: `x.shape` asks for the same few all the time.
  struct Known {
    std::array<std::int64_t, 5> sizes;
    PyObject* object;
  };
  static std::array<Known, 64> known;  // guarded by the interpreter lock
  std::size_t n = sizes.size(), key = n;
  for (std::int64_t size : sizes) key = key * 31 + std::size_t(size);
  Known* slot = n <= known[0].sizes.size() ? &known[key % known.size()] : nullptr;
  if (slot && slot->object && PyTuple_GET_SIZE(slot->object) == Py_ssize_t(n) &&
      std::equal(sizes.begin(), sizes.end(), slot->sizes.begin()))
    return Py_NewRef(slot->object);
  PyObject* self = checked(size_type->tp_alloc(size_type, Py_ssize_t(n)));
  for (std::size_t i = 0; i < n; ++i) PyTuple_SET_ITEM(self, Py_ssize_t(i), PyLong_FromLongLong(sizes[i]));
  if (slot) {
    Py_XSETREF(slot->object, Py_NewRef(self));
    std::copy(sizes.begin(), sizes.end(), slot->sizes.begin());
  }
  return self;
}

PyObject* dtype_object(DType d) { return Py_NewRef(dtype_objects[int(d)]); }

bool try_dtype(PyObject* o, DType& out) {
  if (Py_TYPE(o) == dtype_type) {
    out = dtype_value(o);
    return true;
  }
  // Python's own types stand for their default counterparts
  if (o == reinterpret_cast<PyObject*>(&PyFloat_Type)) return out = DType::Float64, true;
  if (o == reinterpret_cast<PyObject*>(&PyLong_Type)) return out = DType::Int64, true;
  if (o == reinterpret_cast<PyObject*>(&PyBool_Type)) return out = DType::Bool, true;
  if (o == reinterpret_cast<PyObject*>(&PyComplex_Type)) return out = DType::Complex128, true;
  return false;
}

PyObject* strided_layout() { return Py_NewRef(strided); }
bool is_layout(PyObject* o) { return Py_TYPE(o) == layout_type; }
bool try_memory_format(PyObject* o, MemoryFormat& out) {
  if (Py_TYPE(o) != format_type) return false;
  out = MemoryFormat(reinterpret_cast<Named*>(o)->value);
  return true;
}

bool is_device(PyObject* o) { return Py_TYPE(o) == device_type; }
PyObject* cpu_device() { return Py_NewRef(cpu); }

void check_device(PyObject* o) {
  if (o == Py_None || o == cpu) return;
  Owned device;
  if (!is_device(o)) {
    check_type(PyUnicode_Check(o) || PyLong_Check(o), "device must be a str, an int or a torch.device, not ",
               Py_TYPE(o)->tp_name);
    device = Owned(PyUnicode_Check(o) ? new_device(text_of(o), -1) : new_device("cuda", PyLong_AsLong(o)));
    o = device;
  }
  std::string type = text_of(reinterpret_cast<DeviceObject*>(o)->type);
  if (type == "cpu") return;
  if (type == "cuda") {
    PyErr_SetString(PyExc_AssertionError, "Torch not compiled with CUDA enabled: rushlight runs on CPUs only");
    throw PythonError();
  }
  fail(ErrorKind::NotImplemented, "rushlight runs on CPUs only; there is no device '", type, "'");
}

void init_named_types(PyObject* module) {
  dtype_type = make_named_type(module, "rushlight.dtype", dtype_methods, dtype_getset);
  for (int i = 0; i < dtype_count; ++i) dtype_objects[i] = make_named(module, dtype_type, dtype_table[i].name, i);
  layout_type = make_named_type(module, "rushlight.layout", named_methods, nullptr);
  strided = make_named(module, layout_type, "strided", 0);
  format_type = make_named_type(module, "rushlight.memory_format", named_methods, nullptr);
  Py_DECREF(make_named(module, format_type, "contiguous_format", int(MemoryFormat::Contiguous)));
  Py_DECREF(make_named(module, format_type, "preserve_format", int(MemoryFormat::Preserve)));
  Py_DECREF(make_named(module, format_type, "channels_last", int(MemoryFormat::ChannelsLast)));
  Py_DECREF(make_named(module, format_type, "channels_last_3d", int(MemoryFormat::ChannelsLast3d)));

  PyType_Slot device_slots[] = {{Py_tp_new, reinterpret_cast<void*>(device_new)},
                                {Py_tp_dealloc, reinterpret_cast<void*>(device_dealloc)},
                                {Py_tp_str, reinterpret_cast<void*>(device_str)},
                                {Py_tp_repr, reinterpret_cast<void*>(device_repr)},
                                {Py_tp_richcompare, reinterpret_cast<void*>(device_compare)},
                                {Py_tp_hash, reinterpret_cast<void*>(device_hash)},
                                {Py_tp_getset, device_getset},
                                {Py_tp_methods, device_methods},
                                {0, nullptr}};
  PyType_Spec device_spec{"rushlight.device", sizeof(DeviceObject), 0, Py_TPFLAGS_DEFAULT, device_slots};
  device_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&device_spec)));
  checked(PyModule_AddObjectRef(module, "device", reinterpret_cast<PyObject*>(device_type)));
  cpu = new_device("cpu", -1);

  PyType_Slot size_slots[] = {{Py_tp_new, reinterpret_cast<void*>(size_new)},
                              {Py_tp_repr, reinterpret_cast<void*>(size_repr)},
                              {Py_tp_methods, size_methods},
                              {Py_mp_subscript, reinterpret_cast<void*>(size_subscript)},
                              {Py_sq_concat, reinterpret_cast<void*>(size_concat)},
                              {Py_sq_repeat, reinterpret_cast<void*>(size_repeat)},
                              {Py_mp_length, reinterpret_cast<void*>(PyTuple_Type.tp_as_mapping->mp_length)},
                              {0, nullptr}};
  PyType_Spec size_spec{"rushlight.Size", 0, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_TUPLE_SUBCLASS,
                        size_slots};
  size_type = reinterpret_cast<PyTypeObject*>(
      checked(PyType_FromSpecWithBases(&size_spec, reinterpret_cast<PyObject*>(&PyTuple_Type))));
  checked(PyModule_AddObjectRef(module, "Size", reinterpret_cast<PyObject*>(size_type)));
}

}  // namespace rushlight::python
