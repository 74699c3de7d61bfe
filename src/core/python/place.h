// Places in the program, as anomaly mode and the profiler keep them.
#pragma once

#include "python/python.h"

namespace rushlight::python {

/// What led here, as an object whose calls() tells [(code, position), ...], innermost call first. A new reference.
PyObject* capture_place();
/// The same as text: the innermost line outside of the package, or the whole stack.
PyObject* place_text(PyObject* place, bool whole);

}  // namespace rushlight::python
