// Watching calls of operators from Python: by handlers that stand in for them, the profiler, and forward checks.
//
// While nobody watches, operators and Tensor's slots are what they are, and cost nothing more. While anybody does, on
// any thread, their function pointers are exchanged for ones that look for a watcher first.
#pragma once

#include <atomic>

#include "python/operator.h"

namespace rushlight::python {

/// Watch, or one watcher fewer.
void watch_calls(bool on);
/// Anomaly mode with check_forward: refuse the first result that is not finite.
void check_calls(bool on);

/// How many handlers stand in for functions written in Python, on any thread.
extern std::atomic<int> function_handlers;
/// What the innermost handler of this thread makes of a function's call, or null where it is for operators alone.
PyObject* handle_function(PyObject* function, PyObject* const* args, Py_ssize_t n, PyObject* names);

// profile.cpp
extern bool profiling;
/// Opens an event of the call; closed by event_end, which looks at the result's grad_fn.
void event_begin(PyObject* name, PyObject* const* args, Py_ssize_t nargs);
void event_end(PyObject* result);

void init_watch(PyObject* module);
void init_profile(PyObject* module);

}  // namespace rushlight::python
