// UntypedStorage: the bytes behind tensors, with the buffer protocol.
#include <sys/mman.h>

#include <memory>

#include "kernels/checksum.h"
#include "python/python.h"

namespace rushlight::python {
namespace {

struct StorageObject {
  PyObject_HEAD;
  Storage* storage;  // owned
};
PyTypeObject* storage_type;

Storage& storage_of(PyObject* o) { return *reinterpret_cast<StorageObject*>(o)->storage; }

PyObject* wrap_storage(Storage* s) {
  auto* o = PyObject_New(StorageObject, storage_type);
  if (!o) throw PythonError();
  retain(s);
  o->storage = s;
  return reinterpret_cast<PyObject*>(o);
}

void dealloc(PyObject* self) {
  release(&storage_of(self));
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* storage_new(PyTypeObject*, PyObject* args, PyObject*) {
  return guarded([&]() -> PyObject* {
    long long bytes = 0;
    if (!PyArg_ParseTuple(args, "|L", &bytes)) return nullptr;
    check_value(bytes >= 0, "a storage cannot have ", bytes, " bytes");
    return wrap_storage(new_storage(std::size_t(bytes)).get());
  });
}

PyObject* nbytes(PyObject* self, PyObject*) { return PyLong_FromSize_t(storage_of(self).size); }
Py_ssize_t length(PyObject* self) { return Py_ssize_t(storage_of(self).size); }
PyObject* data_ptr(PyObject* self, PyObject*) {
  return guarded([&] { return PyLong_FromVoidPtr(storage_of(self).expose()); });
}
PyObject* resize(PyObject* self, PyObject* arg) {
  return guarded([&]() -> PyObject* {
    std::int64_t bytes;
    check_type(try_int(arg, bytes), "resize_(): argument 'size' must be int, not ", Py_TYPE(arg)->tp_name);
    check_value(bytes >= 0, "a storage cannot have ", bytes, " bytes");
    resize_storage(&storage_of(self), std::size_t(bytes));
    return Py_NewRef(self);
  });
}
PyObject* compute(PyObject* self, PyObject*) {
  return guarded([&] {
    storage_of(self).read();
    return Py_NewRef(self);
  });
}
PyObject* use_count(PyObject* self, PyObject*) { return PyLong_FromLongLong(storage_of(self).refcount - 1); }

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  return guarded_int([&] {
    Storage& s = storage_of(self);
    checked(PyBuffer_FillInfo(view, self, s.write(), Py_ssize_t(s.size), 0, flags));
    ++s.exports;
  });
}
void release_buffer(PyObject* self, Py_buffer*) { --storage_of(self).exports; }

void release_foreign(void* view) {
  PyBuffer_Release(static_cast<Py_buffer*>(view));
  delete static_cast<Py_buffer*>(view);
}

std::unique_ptr<Py_buffer> writable_buffer(PyObject* o) {
  auto view = std::make_unique<Py_buffer>();
  checked(PyObject_GetBuffer(o, view.get(), PyBUF_WRITABLE));
  return view;
}

PyObject* move_to(PyObject* self, PyObject* o) {
  return guarded([&] {
    Storage& s = storage_of(self);
    auto view = writable_buffer(o);
    if (auto bytes = view->len; std::size_t(bytes) != s.size) {
      PyBuffer_Release(view.get());
      check_value(false, "a storage of ", s.size, " bytes cannot move into ", bytes, " bytes");
    }
    move_storage(&s, static_cast<std::byte*>(view->buf), view.get(), release_foreign);
    static_cast<void>(view.release());
    return Py_NewRef(self);
  });
}
/// _populate(): all memory at once and in small pages, for a file to fill. In a virtual machine a huge page is one that
/// the host has taken back, and costs several times what its small ones do; for use again and again it pays.
PyObject* populate(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    constexpr std::size_t huge_page = std::size_t(1) << 21;
    Storage& s = storage_of(self);
    if (!s.block_class || s.size < huge_page) Py_RETURN_NONE;
    std::byte* bytes = s.write();
    Py_BEGIN_ALLOW_THREADS;
    madvise(bytes, s.size, MADV_NOHUGEPAGE);
#ifdef MADV_POPULATE_WRITE
    if (madvise(bytes, s.size, MADV_POPULATE_WRITE) == 0) madvise(bytes, s.size, MADV_HUGEPAGE);
#endif
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
  });
}
PyObject* is_shared(PyObject* self, PyObject*) { return PyBool_FromLong(aliased_storage(&storage_of(self))->shared); }
PyObject* identity(PyObject* self, PyObject*) { return PyLong_FromVoidPtr(aliased_storage(&storage_of(self))); }

PyObject* compare(PyObject* a, PyObject* b, int op) {
  if (Py_TYPE(b) != storage_type || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong((&storage_of(a) == &storage_of(b)) == (op == Py_EQ));
}
Py_hash_t hash(PyObject* self) { return _Py_HashPointer(&storage_of(self)); }

PyMethodDef methods[] = {
    {"nbytes", nbytes, METH_NOARGS, "The number of bytes."},
    {"size", nbytes, METH_NOARGS, "The number of bytes."},
    {"data_ptr", data_ptr, METH_NOARGS, "The address of the first byte."},
    {"resize_", resize, METH_O, "resize_(size): grows or shrinks to so many bytes."},
    {"is_shared", is_shared, METH_NOARGS, "Whether other processes see the bytes."},
    {"_populate", populate, METH_NOARGS, "_populate(): has all memory at once, for a file to fill."},
    {"_move_to", move_to, METH_O,
     "_move_to(buffer): moves the bytes into a writable buffer of that size, which other processes see."},
    {"_identity", identity, METH_NOARGS, "A number that storages over the same bytes have in common, while they live."},
    {"_compute", compute, METH_NOARGS, "Does the work that was put off until somebody looks at the bytes."},
    {"_use_count", use_count, METH_NOARGS, "How many tensors and storages share these bytes."},
    {nullptr, nullptr, 0, nullptr},
};

PyObject* untyped_storage(PyObject* self, PyObject*) {
  return guarded([&] { return wrap_storage(tensor_of(self)->storage); });
}

/// set_(storage, offset, size, stride), or set_(tensor), or set_().
PyObject* set_(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"source", "storage_offset", "size", "stride", nullptr};
    PyObject *source = nullptr, *size = nullptr, *stride = nullptr;
    long long offset = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OLOO", const_cast<char**>(names), &source, &offset, &size,
                                     &stride))
      return nullptr;
    Tensor& t = *tensor_of(self);
    check(!t.requires_grad() || t.is_leaf(), "set_() is not allowed on a tensor with history");
    Ref<Storage> storage;
    Dims sizes, strides;
    if (!source) {
      storage = new_storage(0);
      sizes = Dims{0};
      strides = Dims{1};
    } else if (is_tensor(source)) {
      Tensor& from = *tensor_of(source);
      check(from.dtype == t.dtype, "set_() expects tensors of one dtype, got ", name(t.dtype), " and ",
            name(from.dtype));
      storage = Ref<Storage>(from.storage);
      sizes = Dims(from.sizes());
      strides = Dims(from.strides());
      offset = from.offset;
    } else {
      check_type(Py_TYPE(source) == storage_type, "set_(): argument 'source' must be Tensor or UntypedStorage, not ",
                 Py_TYPE(source)->tp_name);
      storage = Ref<Storage>(&storage_of(source));
      if (size) {
        check_type(try_ints(size, sizes), "set_(): argument 'size' must be tuple of ints");
      } else {
        sizes = Dims{std::int64_t(storage->size) / t.item_size()};
      }
      if (stride && stride != Py_None)
        check_type(try_ints(stride, strides), "set_(): argument 'stride' must be tuple of ints");
      else
        strides = contiguous_strides(sizes);
    }
    check(sizes.size() == strides.size(), "mismatch in length of strides and shape");
    std::int64_t reach = offset, part;
    bool bad = offset < 0 || count_elements(sizes) < 0;
    for (int i = 0; i < sizes.size(); ++i) {
      bad |= strides[i] < 0 || __builtin_mul_overflow(sizes[i] - 1, strides[i], &part);
      if (!bad && sizes[i] > 0) bad |= __builtin_add_overflow(reach, part, &reach);
    }
    std::int64_t bytes = 0;
    bad |= __builtin_mul_overflow(reach + 1, t.item_size(), &bytes);
    check(!bad, "set_(): sizes ", sizes, ", strides ", strides, " and offset ", offset, " are out of range");
    if (count_elements(sizes))
      check(bytes <= std::int64_t(storage->size), "setStorage: sizes ", sizes, ", strides ", strides,
            ", storage offset ", offset, ", and itemsize ", t.item_size(), " requiring a storage size of ", bytes,
            " are out of bounds for storage of size ", storage->size);
    Storage* old = std::exchange(t.storage, storage.detach());
    release(old);
    t.offset = offset;
    set_geometry(&t, sizes, strides);
    t.bump_version();
    return Py_NewRef(self);
  });
}

PyMethodDef tensor_methods[] = {
    {"untyped_storage", untyped_storage, METH_NOARGS, "The bytes behind the tensor."},
    {"set_", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(set_)), METH_VARARGS | METH_KEYWORDS,
     "set_(source, storage_offset=0, size=(), stride=()): makes this a window of other bytes."},
    {nullptr, nullptr, 0, nullptr},
};

/// _storage_from_buffer(object, shared): a storage over the memory of an object with a writable buffer, which it keeps.
PyObject* from_buffer(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* o = nullptr;
    int shared = 0;
    if (!PyArg_ParseTuple(args, "O|p", &o, &shared)) return nullptr;
    auto view = writable_buffer(o);
    auto storage = foreign_storage(view->buf, std::size_t(view->len), view.get(), release_foreign);
    static_cast<void>(view.release());
    storage->shared = shared;
    return wrap_storage(storage.get());
  });
}

/// _crc32(buffer, crc): the interpreter goes on meanwhile.
PyObject* checksum(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    Py_buffer view;
    unsigned int crc = 0;
    if (!PyArg_ParseTuple(args, "y*|I", &view, &crc)) return nullptr;
    Py_BEGIN_ALLOW_THREADS;
    crc = crc32(crc, static_cast<const std::byte*>(view.buf), std::size_t(view.len));
    Py_END_ALLOW_THREADS;
    PyBuffer_Release(&view);
    return PyLong_FromUnsignedLong(crc);
  });
}

PyMethodDef module_methods[] = {
    {"_crc32", checksum, METH_VARARGS,
     "_crc32(buffer, crc=0): the CRC-32 of bytes, or of more bytes after those of crc."},
    {"_storage_from_buffer", from_buffer, METH_VARARGS,
     "_storage_from_buffer(buffer, shared=False): a storage over the memory of a writable buffer."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void init_storage_type(PyObject* module) {
  PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(storage_new)},
                         {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
                         {Py_tp_methods, methods},
                         {Py_sq_length, reinterpret_cast<void*>(length)},
                         {Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
                         {Py_bf_releasebuffer, reinterpret_cast<void*>(release_buffer)},
                         {Py_tp_richcompare, reinterpret_cast<void*>(compare)},
                         {Py_tp_hash, reinterpret_cast<void*>(hash)},
                         {0, nullptr}};
  PyType_Spec spec{"rushlight.UntypedStorage", sizeof(StorageObject), 0, Py_TPFLAGS_DEFAULT, slots};
  storage_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)));
  checked(PyModule_AddObjectRef(module, "UntypedStorage", reinterpret_cast<PyObject*>(storage_type)));
  checked(PyModule_AddFunctions(module, module_methods));
  for (PyMethodDef* m = tensor_methods; m->ml_name; ++m) {
    Owned method(checked(PyDescr_NewMethod(tensor_type, m)));
    checked(PyObject_SetAttrString(reinterpret_cast<PyObject*>(tensor_type), m->ml_name, method));
  }
}

}  // namespace rushlight::python
