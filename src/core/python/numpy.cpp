// NumPy arrays in both directions without a copy where the memory allows, the buffer protocol, and DLPack.
#define RUSHLIGHT_IMPORT_NUMPY
#include <numpy/ndarrayobject.h>

#include <cstring>

#include "python/python.h"

namespace rushlight::python {
namespace {

int numpy_type(DType d) {
  switch (d) {
    case DType::Bool:
      return NPY_BOOL;
    case DType::UInt8:
      return NPY_UINT8;
    case DType::Int8:
      return NPY_INT8;
    case DType::Int16:
      return NPY_INT16;
    case DType::Int32:
      return NPY_INT32;
    case DType::Int64:
      return NPY_INT64;
    case DType::Float16:
      return NPY_FLOAT16;
    case DType::Float32:
      return NPY_FLOAT32;
    case DType::Float64:
      return NPY_FLOAT64;
    case DType::Complex64:
      return NPY_COMPLEX64;
    case DType::Complex128:
      return NPY_COMPLEX128;
    case DType::BFloat16:
      break;
  }
  fail(ErrorKind::Type, "Got unsupported ScalarType ", info(d).scalar_name);
}

DType type_of_array(PyArrayObject* a) {
  int type = PyArray_TYPE(a);
  for (int i = 0; i < dtype_count; ++i) {
    if (DType(i) == DType::BFloat16) continue;
    if (PyArray_EquivTypenums(type, numpy_type(DType(i)))) return DType(i);
  }
  Owned text(PyObject_Str(reinterpret_cast<PyObject*>(PyArray_DESCR(a))));
  fail(ErrorKind::Type, "can't convert np.ndarray of type ", text_of(text),
       ". The only supported types are: float64, float32, float16, complex64, complex128, int64, int32, int16, int8, "
       "uint8, and bool.");
}

/// An array over the tensor's memory; the array keeps the tensor.
PyObject* array_of(Tensor& t) {
  npy_intp sizes[64], strides[64];
  for (int i = 0; i < t.ndim; ++i) {
    sizes[i] = npy_intp(t.size(i));
    strides[i] = npy_intp(t.stride(i) * t.item_size());
  }
  int type = numpy_type(t.dtype);
  PyObject* array =
      checked(PyArray_New(&PyArray_Type, t.ndim, sizes, type, strides, t.expose(), 0, NPY_ARRAY_WRITEABLE, nullptr));
  t.storage->resizable = false;  // the array points into it
  if (PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(array), Py_NewRef(object_of(&t))) < 0) throw PythonError();
  return array;
}

PyObject* numpy_method(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  return guarded([&]() -> PyObject* {
    Tensor& t = *tensor_of(self);
    bool force = nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0) && PyObject_IsTrue(args[0]);
    if (force) return array_of(*alias(t));
    check(!t.requires_grad(), "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.");
    return array_of(t);
  });
}

PyObject* array_protocol(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"dtype", "copy", nullptr};
    PyObject *dtype = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO", const_cast<char**>(names), &dtype, &copy)) return nullptr;
    Tensor& t = *tensor_of(self);
    check(!t.requires_grad(), "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.");
    Owned array(array_of(t));
    bool wants_copy = copy == Py_True;
    if (dtype == Py_None) return wants_copy ? PyObject_CallMethod(array, "copy", nullptr) : array.detach();
    PyArray_Descr* descr = nullptr;
    if (!PyArray_DescrConverter(dtype, &descr)) return nullptr;
    Owned held(reinterpret_cast<PyObject*>(descr));
    if (!wants_copy && PyArray_EquivTypes(descr, PyArray_DESCR(reinterpret_cast<PyArrayObject*>(array.get()))))
      return array.detach();
    check_value(copy != Py_False, "Unable to avoid copy while creating an array as requested.");
    return PyObject_CallMethod(array, "astype", "O", held.get());
  });
}

PyObject* from_numpy(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    check_type(PyArray_Check(o), "expected np.ndarray (got ", Py_TYPE(o)->tp_name, ")");
    return wrap(tensor_from_array(o, false));
  });
}

/// frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False)
PyObject* frombuffer(PyObject*, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"buffer", "dtype", "count", "offset", "requires_grad", nullptr};
    PyObject *buffer, *dtype = nullptr;
    long long count = -1, offset = 0;
    int requires_grad = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OLLp", const_cast<char**>(names), &buffer, &dtype, &count,
                                     &offset, &requires_grad))
      return nullptr;
    DType d;
    check_type(dtype && try_dtype(dtype, d), "frombuffer(): argument 'dtype' must be torch.dtype");
    auto* view = new Py_buffer;
    if (PyObject_GetBuffer(buffer, view, PyBUF_WRITABLE) < 0) {
      PyErr_Clear();
      if (PyObject_GetBuffer(buffer, view, PyBUF_SIMPLE) < 0) {
        delete view;
        throw PythonError();
      }
      if (PyErr_WarnEx(PyExc_UserWarning,
                       "The given buffer is not writable, and PyTorch does not support non-writable tensors. This "
                       "means you can write to the underlying (supposedly non-writable) buffer "
                       "using the tensor. You may want to copy the buffer to protect its data or make it writable "
                       "before converting it to a tensor.",
                       1) < 0) {
        PyBuffer_Release(view);
        delete view;
        throw PythonError();
      }
    }
    std::int64_t item = item_size(d), size = view->len;
    auto refuse = [&](auto... parts) {
      PyBuffer_Release(view);
      delete view;
      fail(ErrorKind::Value, parts...);
    };
    if (size <= 0 || count == 0) refuse("both buffer length (", size, ") and count (", count, ") must not be 0");
    if (offset < 0 || offset >= size)
      refuse("offset (", offset, " bytes) must be non-negative and no greater than buffer length (", size,
             " bytes) minus 1");
    if (count < 0) {
      if ((size - offset) % item)
        refuse("buffer length (", size - offset, " bytes) after offset (", offset,
               " bytes) must be a multiple of element size (", item, ")");
      count = (size - offset) / item;
    }
    if (count > (size - offset) / item)
      refuse("requested buffer length (", count, " * ", item, " bytes) after offset (", offset,
             " bytes) must not be greater than actual buffer length (", size, " bytes)");
    auto storage = foreign_storage(view->buf, std::size_t(size), view, [](void* p) {
      auto* v = static_cast<Py_buffer*>(p);
      PyBuffer_Release(v);
      delete v;
    });
    auto* base = storage->bytes;
    storage->bytes = base + offset;  // elements begin at the offset, which need not be a multiple of their size
    storage->size = std::size_t(size - offset);
    TensorRef t = make_tensor(std::move(storage), d, Dims{count}, Dims{1}, 0);
    if (requires_grad) t->set(RequiresGrad, true);
    return wrap(std::move(t));
  });
}

// ---- DLPack (dmlc/dlpack, version 0.8's unversioned structs)

struct DLDevice {
  std::int32_t device_type, device_id;
};
struct DLDataType {
  std::uint8_t code, bits;
  std::uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  std::int32_t ndim;
  DLDataType dtype;
  std::int64_t *shape, *strides;
  std::uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor tensor;
  void* manager;
  void (*deleter)(DLManagedTensor*);
};

DLDataType dl_type(DType d) {
  auto bits = std::uint8_t(item_size(d) * 8);
  if (d == DType::Bool) return {6, 8, 1};
  if (d == DType::UInt8) return {1, bits, 1};
  if (category(d) == 1) return {0, bits, 1};
  if (d == DType::BFloat16) return {4, bits, 1};
  return {std::uint8_t(is_complex(d) ? 5 : 2), bits, 1};
}

void capsule_destructor(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, "dltensor")) return;  // consumed
  auto* m = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, "dltensor"));
  m->deleter(m);
}

PyObject* to_dlpack(PyObject* self, PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    Tensor& t = *tensor_of(self);
    check(!t.requires_grad(), "Can't export tensors that require gradient, use tensor.detach()");
    struct Exported {
      DLManagedTensor managed;
      TensorRef tensor;
      std::int64_t dims[128];
    };
    auto* e = new Exported;
    e->tensor = TensorRef(&t);
    for (int i = 0; i < t.ndim; ++i) {
      e->dims[i] = t.size(i);
      e->dims[64 + i] = t.size(i) > 1 ? t.stride(i) : 1;
    }
    t.storage->resizable = false;
    e->managed = {{t.expose(), {1, 0}, t.ndim, dl_type(t.dtype), e->dims, e->dims + 64, 0}, e, [](DLManagedTensor* m) {
                    PyGILState_STATE state = PyGILState_Ensure();
                    delete static_cast<Exported*>(m->manager);
                    PyGILState_Release(state);
                  }};
    return checked(PyCapsule_New(&e->managed, "dltensor", capsule_destructor));
  });
}

PyObject* dlpack_device(PyObject*, PyObject*) { return Py_BuildValue("(ii)", 1, 0); }

PyObject* from_dlpack(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    Owned capsule = PyCapsule_CheckExact(o) ? Owned::borrow(o) : Owned(PyObject_CallMethod(o, "__dlpack__", nullptr));
    if (!capsule) throw PythonError();
    check(PyCapsule_IsValid(capsule, "dltensor"),
          "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only once, so you "
          "might have already constructed a tensor from it once.");
    auto* m = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, "dltensor"));
    const DLTensor& d = m->tensor;
    check(d.device.device_type == 1, "rushlight runs on CPUs only; the DLPack tensor is on a device of type ",
          d.device.device_type);
    int found = -1;
    for (int i = 0; i < dtype_count; ++i) {
      DLDataType t = dl_type(DType(i));
      if (t.code == d.dtype.code && t.bits == d.dtype.bits && d.dtype.lanes == 1) found = i;
    }
    check(found >= 0, "Unsupported DLPack type: code ", int(d.dtype.code), ", ", int(d.dtype.bits), " bits, ",
          d.dtype.lanes, " lanes");
    check(d.ndim >= 0 && d.ndim <= 64, "the DLPack tensor has ", d.ndim, " dimensions");
    Dims sizes(d.ndim), strides(d.ndim);
    std::int64_t extent = 1;
    for (int i = 0; i < d.ndim; ++i) sizes[i] = d.shape[i];
    strides = contiguous_strides(sizes);
    for (int i = 0; i < d.ndim; ++i) {
      if (d.strides) strides[i] = d.strides[i];
      check(strides[i] >= 0, "DLPack tensors with negative strides are not supported");
      extent = sizes[i] ? extent + (sizes[i] - 1) * strides[i] : 0;
    }
    if (count_elements(sizes) == 0) extent = 0;
    check(PyCapsule_SetName(capsule, "used_dltensor") == 0, "the DLPack capsule cannot be marked as used");
    auto storage = foreign_storage(static_cast<std::byte*>(d.data) + d.byte_offset,
                                   std::size_t(extent * item_size(DType(found))), m, [](void* p) {
                                     auto* managed = static_cast<DLManagedTensor*>(p);
                                     if (managed->deleter) managed->deleter(managed);
                                   });
    return wrap(make_tensor(std::move(storage), DType(found), sizes, strides, 0));
  });
}

PyMethodDef tensor_methods[] = {
    {"numpy", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(numpy_method)), METH_FASTCALL | METH_KEYWORDS,
     "numpy(*, force=False): an array over the same memory."},
    {"__array__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(array_protocol)),
     METH_VARARGS | METH_KEYWORDS, nullptr},
    {"__dlpack__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(to_dlpack)), METH_VARARGS | METH_KEYWORDS,
     "A DLPack capsule over the same memory."},
    {"__dlpack_device__", dlpack_device, METH_NOARGS, "(1, 0): the CPU."},
    {nullptr, nullptr, 0, nullptr},
};
PyMethodDef module_methods[] = {
    {"from_numpy", from_numpy, METH_O, "from_numpy(array): a tensor over the memory of a NumPy array."},
    {"from_dlpack", from_dlpack, METH_O,
     "from_dlpack(object): a tensor over the memory of an object with __dlpack__, or of a capsule."},
    {"frombuffer", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(frombuffer)),
     METH_VARARGS | METH_KEYWORDS, "frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False)"},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

bool is_array(PyObject* o) { return PyArray_Check(o) || PyArray_CheckScalar(o); }

TensorRef tensor_from_array(PyObject* o, bool copy) {
  Owned array = PyArray_Check(o) ? Owned::borrow(o) : Owned(checked(PyArray_FromScalar(o, nullptr)));
  auto* a = reinterpret_cast<PyArrayObject*>(array.get());
  DType d = type_of_array(a);
  check_value(PyArray_ISNOTSWAPPED(a),
              "given numpy array has byte order different from the native byte order. Conversion between byte orders "
              "is currently not supported.");
  int n = PyArray_NDIM(a);
  Dims sizes(n), strides(n);
  std::int64_t extent = 1;
  bool fits = PyArray_ISALIGNED(a);
  for (int i = 0; i < n; ++i) {
    sizes[i] = PyArray_DIM(a, i);
    std::int64_t bytes = PyArray_STRIDE(a, i);
    if (!copy) {
      check_value(bytes >= 0,
                  "At least one stride in the given numpy array is negative, and tensors with negative strides are not "
                  "currently supported. (You can probably work around this by "
                  "making a copy of your array  with array.copy().) ");
      check_value(bytes % item_size(d) == 0,
                  "given numpy array strides not a multiple of the element byte size. Copy the numpy array to "
                  "reallocate the memory.");
    }
    fits = fits && bytes >= 0 && bytes % item_size(d) == 0;
    strides[i] = bytes / item_size(d);
    extent = sizes[i] ? extent + (sizes[i] - 1) * strides[i] : 0;
  }
  if (count_elements(sizes) == 0) extent = 0;
  if (copy) {
    TensorRef out = empty(sizes, d);
    Owned row_major(checked(PyArray_FROM_OF(array, NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED)));
    if (out->numel)
      std::memcpy(out->write(), PyArray_DATA(reinterpret_cast<PyArrayObject*>(row_major.get())),
                  std::size_t(out->numel * out->item_size()));
    return out;
  }
  check_value(fits, "the given numpy array is not aligned");
  if (!PyArray_ISWRITEABLE(a)) {
    static bool warned = false;
    if (!std::exchange(warned, true) &&
        PyErr_WarnEx(
            PyExc_UserWarning,
            "The given NumPy array is not writable, and PyTorch does not support non-writable tensors. This means "
            "writing to this tensor will result in undefined behavior. "
            "You may want to copy the array to protect its data or make it writable before converting it to a tensor.",
            1) < 0)
      throw PythonError();
  }
  void* data = PyArray_DATA(a);
  auto storage = foreign_storage(data, std::size_t(extent * item_size(d)), array.detach(), [](void* p) {
    PyGILState_STATE state = PyGILState_Ensure();
    Py_DECREF(static_cast<PyObject*>(p));
    PyGILState_Release(state);
  });
  return make_tensor(std::move(storage), d, sizes, strides, 0);
}

static int import_numpy() {
  import_array1(-1);
  return 0;
}

void init_numpy(PyObject* module) {
  if (import_numpy() < 0) throw PythonError();
  checked(PyModule_AddFunctions(module, module_methods));
  for (PyMethodDef* m = tensor_methods; m->ml_name; ++m) {
    Owned method(checked(PyDescr_NewMethod(tensor_type, m)));
    checked(PyObject_SetAttrString(reinterpret_cast<PyObject*>(tensor_type), m->ml_name, method));
  }
}

}  // namespace rushlight::python
