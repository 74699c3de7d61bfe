// The extension module: types first, then one loop over the registry, then the process-wide settings.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "kernels/cpu.h"
#include "kernels/gemm.h"
#include "kernels/onednn.h"
#include "kernels/parallel.h"
#include "operators/deferred.h"
#include "operators/layout.h"
#include "python/batched.h"
#include "python/hook.h"
#include "python/python.h"
#include "python/watch.h"

namespace nb = nanobind;

namespace rushlight::python {

void free_kept_nodes();  // object.cpp
namespace {

/// rushlight's module gets functions, Tensor gets methods and in-place methods, _nn gets the functions of nn.
void add_operators(nb::module_& m) {
  nb::module_ nn = m.def_submodule("_nn", "Operators that torch keeps in torch._C._nn.");
  nb::list names;
  auto* tensor = reinterpret_cast<PyObject*>(tensor_type);
  for (Operator* op : all_operators()) {
    Owned object(operator_object(*op, false));
    names.append(nb::str(op->name.c_str()));
    if (op->forms & Function) checked(PyObject_SetAttrString(m.ptr(), op->name.c_str(), object));
    if (op->forms & NnFunction) checked(PyObject_SetAttrString(nn.ptr(), op->name.c_str(), object));
    if (op->forms & Method) checked(PyObject_SetAttrString(tensor, op->name.c_str(), object));
    if (op->forms & Inplace) {
      std::string text = op->name + "_";
      Owned changing(operator_object(*op, true));
      checked(PyObject_SetAttrString(tensor, text.c_str(), changing));
      if (op->forms & Function) checked(PyObject_SetAttrString(m.ptr(), text.c_str(), changing));
      if (op->forms & NnFunction) checked(PyObject_SetAttrString(nn.ptr(), text.c_str(), changing));
    }
  }
  m.attr("_operator_names") = names;
}

nb::dict stats() {
  const MemoryStats& s = memory_stats();
  nb::dict d;
  d["allocated_bytes"] = s.allocated;
  d["peak_bytes"] = s.peak;
  d["cached_bytes"] = s.cached;
  d["cache_limit_bytes"] = s.limit;
  d["allocations"] = s.allocations;
  d["system_calls"] = s.system_calls;
  return d;
}

nb::dict deferral() {
  nb::dict d;
  d["deferred"] = deferral_stats.deferred;
  d["passes"] = deferral_stats.passes;
  return d;
}

void limit_deferral(bool on, std::int64_t elements) {
  deferral_limits = DeferralLimits();
  deferral_limits.on = on;
  deferral_limits.elements = std::max<std::int64_t>(elements, 2);
  deferral_limits.run = std::min(deferral_limits.run, deferral_limits.elements);
}

nb::dict layout_statistics() {
  nb::dict d;
  d["laid"] = layout_stats.laid;
  d["rearranged"] = layout_stats.rearranged;
  d["in_library"] = layout_stats.in_library;
  const OnednnTable* library = onednn();
  d["plans"] = library ? library->plans() : 0;
  d["most_plans"] = library ? library->most_plans : 0;
  return d;
}

nb::dict build_info() {
  nb::dict d;
  d["compiler"] = std::string("g++ ") + __VERSION__;
  d["cpu"] = std::string(isa_name());
  nb::dict libraries;
  libraries["OpenBLAS"] = std::string(blas_config());
#ifdef _OPENMP
  libraries["OpenMP"] = std::to_string(_OPENMP);
#else
  libraries["OpenMP"] = std::string("none: kernels run on one thread");
#endif
  if (*onednn_version()) libraries["oneDNN"] = std::string(onednn_version());
  libraries["NumPy"] = nb::cast<std::string>(nb::module_::import_("numpy").attr("__version__"));
  d["libraries"] = libraries;
  d["threads"] = num_threads();
  return d;
}

void threads(int n) { set_num_threads(n); }

}  // namespace

NB_MODULE(_C, m) {
  try {
    init_named_types(m.ptr());
    init_operator_type(m.ptr());
    init_tensor_type(m.ptr());
    init_batched_type(m.ptr());
    init_node_type(m.ptr());
    init_function_type(m.ptr());
    init_hooks(m.ptr());
    init_engine(m.ptr());
    init_tangents(m.ptr());
    init_overrides(m.ptr());
    init_offered_type(m.ptr());
    init_pointwise(m.ptr());
    init_numpy(m.ptr());
    init_data(m.ptr());
    init_promotion(m.ptr());
    init_optimizer(m.ptr());
    init_storage_type(m.ptr());
    init_nn_module_type(m.ptr());
    init_generator_type(m.ptr());
    init_foreach(m.ptr());
    init_watch(m.ptr());
    init_profile(m.ptr());
    add_operators(m);
  } catch (...) {
    set_error();
    throw nb::python_error();
  }
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const Error&) {
      set_error();
    }
  });
  m.def("memory_stats", &stats, "Bytes allocated, their peak, and what the cache holds.");
  m.def(
      "reset_peak_memory_stats", [] { memory_stats().peak = memory_stats().allocated; },
      "Sets the peak to what is allocated now.");
  m.def(
      "empty_cache",
      [] {
        free_kept_nodes();
        empty_cache();
      },
      "Gives cached blocks back to the system.");
  m.def("set_cache_limit", &set_cache_limit, nb::arg("bytes"), "Bounds the bytes that are kept for reuse.");
  m.def("_deferral_stats", &deferral, "Pointwise results left pending, and passes over memory that computed some.");
  m.def("_set_deferral", &limit_deferral, nb::arg("on"), nb::arg("elements") = DeferralLimits().elements,
        "May pointwise results of so many elements stay pending?");
  m.def("get_num_threads", &num_threads, "The number of threads that kernels use.");
  m.def("set_num_threads", &threads, nb::arg("n"), "Sets the number of threads that kernels use.");
  m.def("_build_info", &build_info);
  m.def("_set_onednn", &set_onednn, nb::arg("on"), "Switches oneDNN on or off.");
  m.def("_onednn_enabled", &onednn_enabled);
  m.def("_set_onednn_deterministic", &set_onednn_deterministic, nb::arg("on"), "Is oneDNN used only where it is so?");
  m.def("_onednn_deterministic", &onednn_deterministic);
  m.def("_set_deterministic", &set_deterministic, nb::arg("on"), "Must bits not depend on the number of threads?");
  m.def("_layout_stats", &layout_statistics, "What became of layouts so far, and how many plans of oneDNN are kept.");
  m.def("_set_default_dtype", [](nb::object o) {
    DType d;
    if (!try_dtype(o.ptr(), d) || !is_floating(d))
      throw nb::type_error("only floating-point types are supported as the default type");
    default_dtype = d;
  });
  m.def(
      "get_default_dtype", [] { return nb::steal(dtype_object(default_dtype)); },
      "The floating type that tensors get by default.");
}

}  // namespace rushlight::python
