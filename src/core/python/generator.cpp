// torch.Generator, and the default one.
#include <new>
#include <random>

#include "operators/random.h"
#include "python/python.h"

namespace rushlight {

Generator* default_generator;

}  // namespace rushlight

namespace rushlight::python {

PyTypeObject* generator_type;

namespace {

/// A type's name without its module, as it stands in PyTorch's messages.
std::string short_name(PyObject* o) {
  std::string name = Py_TYPE(o)->tp_name;
  return name.substr(name.rfind('.') + 1);
}

Generator& generator_at(PyObject* o) { return *reinterpret_cast<Generator*>(o); }

Generator* new_generator(PyTypeObject* type, const MersenneTwister& twister) {
  auto* g = reinterpret_cast<Generator*>(checked(type->tp_alloc(type, 0)));
  new (&g->twister) MersenneTwister(twister);
  return g;
}

/// Generator(device="cpu")
PyObject* generator_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"device", nullptr};
    PyObject* device = nullptr;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:Generator", const_cast<char**>(names), &device)) return nullptr;
    if (device) check_device(device);
    return object_of(new_generator(type, MersenneTwister()));
  });
}

void generator_dealloc(PyObject* self) {
  Generator& g = generator_at(self);
  if (g.weakrefs) PyObject_ClearWeakRefs(self);
  g.twister.~MersenneTwister();
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* device(PyObject*, void*) { return cpu_device(); }

PyObject* initial_seed(PyObject* self, PyObject*) {
  return PyLong_FromUnsignedLongLong(generator_at(self).twister.initial_seed());
}

PyObject* seed(PyObject* self, PyObject*) {
  return guarded([&] {
    std::random_device chance;
    std::uint64_t high = chance();
    generator_at(self).twister.seed(high << 32 | chance());
    return initial_seed(self, nullptr);
  });
}

PyObject* manual_seed(PyObject* self, PyObject* value) {
  return guarded([&]() -> PyObject* {
    check(PyLong_Check(value) && !PyBool_Check(value), "manual_seed expected a long, but got ",
          Py_TYPE(value)->tp_name);
    // all 64 bits are used: what is no signed number of 64 bits may be an unsigned one
    int overflow;
    auto seed = std::uint64_t(PyLong_AsLongLongAndOverflow(value, &overflow));
    if (overflow > 0) {
      seed = PyLong_AsUnsignedLongLong(value);
      overflow = PyErr_Occurred() != nullptr;
      PyErr_Clear();
    }
    check_value(!overflow, "Overflow when unpacking long long: a seed has 64 bits, signed or unsigned");
    generator_at(self).twister.seed(seed);
    return Py_NewRef(self);
  });
}

PyObject* get_state(PyObject* self, PyObject*) {
  return guarded([&] {
    TensorRef state = empty(Dims{MersenneTwister::state_size}, DType::UInt8);
    generator_at(self).twister.get_state(state->write_as<std::uint8_t>());
    return wrap(std::move(state));
  });
}

void restore(Generator& g, PyObject* state) {
  check_type(is_tensor(state), "expected a torch.ByteTensor, but got ", short_name(state));
  Tensor& t = *tensor_of(state);
  check_type(t.dtype == DType::UInt8, "RNG state must be a torch.ByteTensor");
  check(t.is_contiguous(), "RNG state must be contiguous");
  auto error = g.twister.set_state(t.read_as<std::uint8_t>(), std::size_t(t.numel));
  check(error != MersenneTwister::StateError::WrongSize, "Expected a CPUGeneratorImplState of size ",
        MersenneTwister::state_size, " but found the input RNG state size to be ", t.numel);
  check(error != MersenneTwister::StateError::Invalid, "Invalid mt19937 state");
}

PyObject* set_state(PyObject* self, PyObject* state) {
  return guarded([&] {
    restore(generator_at(self), state);
    return Py_NewRef(self);
  });
}

PyObject* clone_state(PyObject* self, PyObject*) {
  return guarded([&] { return object_of(new_generator(generator_type, generator_at(self).twister)); });
}

PyObject* no_graph_get(PyObject*, PyObject*) {
  PyErr_SetString(PyExc_NotImplementedError, "graphsafe_get_state is not supported in this Generator");
  return nullptr;
}
PyObject* no_graph_set(PyObject*, PyObject* state) {
  if (is_generator(state))
    PyErr_SetString(PyExc_NotImplementedError, "graphsafe_set_state is not supported in this Generator");
  else
    PyErr_Format(PyExc_TypeError, "expected a Generator, but got %s", short_name(state).c_str());
  return nullptr;
}
PyObject* no_offset(PyObject*, PyObject*) {
  PyErr_SetString(PyExc_RuntimeError, "CPU Generator does not use offset");
  return nullptr;
}

/// As PyTorch pickles one: the device, and (seed, offset, state).
PyObject* reduce(PyObject* self, PyObject*) {
  return guarded([&] {
    Owned state(checked(get_state(self, nullptr))), seed(checked(initial_seed(self, nullptr))), device(cpu_device());
    return checked(Py_BuildValue("O(O)(OOO)", Py_TYPE(self), device.get(), seed.get(), Py_None, state.get()));
  });
}
PyObject* set_pickled(PyObject* self, PyObject* values) {
  return guarded([&]() -> PyObject* {
    check_type(PyTuple_Check(values) && PyTuple_GET_SIZE(values) == 3,
               "a pickled Generator has a seed, an offset and a state");
    restore(generator_at(self), PyTuple_GET_ITEM(values, 2));
    Py_RETURN_NONE;
  });
}

PyMethodDef methods[] = {
    {"initial_seed", initial_seed, METH_NOARGS, "initial_seed() -> int\n\nThe seed that the stream began with."},
    {"seed", seed, METH_NOARGS,
     "seed() -> int\n\nBegins a stream whose seed the system's source of chance gives, and returns the seed."},
    {"manual_seed", manual_seed, METH_O,
     "manual_seed(seed) -> Generator\n\nBegins the stream of a seed of 64 bits; negative ones count from 2^64."},
    {"get_state", get_state, METH_NOARGS,
     "get_state() -> Tensor\n\nThe state as a tensor of bytes, in PyTorch's layout."},
    {"set_state", set_state, METH_O, "set_state(new_state) -> Generator\n\nTakes a state that get_state() gave."},
    {"clone_state", clone_state, METH_NOARGS, "clone_state() -> Generator\n\nA new generator in the same state."},
    {"graphsafe_get_state", no_graph_get, METH_NOARGS, "Of devices with captured graphs; raises on the CPU."},
    {"graphsafe_set_state", no_graph_set, METH_O, "Of devices with captured graphs; raises on the CPU."},
    {"get_offset", no_offset, METH_NOARGS, "Of counting generators; raises on the CPU."},
    {"set_offset", no_offset, METH_O, "Of counting generators; raises on the CPU."},
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {"__setstate__", set_pickled, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef getset[] = {{"device", device, nullptr, "The CPU.", nullptr},
                        {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMemberDef members[] = {{"__weaklistoffset__", T_PYSSIZET, offsetof(Generator, weakrefs), READONLY, nullptr},
                         {nullptr, 0, 0, 0, nullptr}};

}  // namespace

void init_generator_type(PyObject* module) {
  PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(generator_new)},
                         {Py_tp_dealloc, reinterpret_cast<void*>(generator_dealloc)},
                         {Py_tp_methods, methods},
                         {Py_tp_getset, getset},
                         {Py_tp_members, members},
                         {Py_tp_doc, const_cast<char*>("Generator(device=\"cpu\")\n\nA stream of random bits: MT19937, "
                                                       "with PyTorch's seeds, draws and saved states.")},
                         {0, nullptr}};
  PyType_Spec spec{"rushlight.Generator", sizeof(Generator), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  generator_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)));
  checked(PyModule_AddObjectRef(module, "Generator", reinterpret_cast<PyObject*>(generator_type)));
  default_generator = new_generator(generator_type, MersenneTwister());
  checked(PyModule_AddObjectRef(module, "default_generator", object_of(default_generator)));
}

}  // namespace rushlight::python
