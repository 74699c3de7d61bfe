// What a node keeps for its derivative, under the names that Python has for it.
#pragma once

#include "python/python.h"

namespace rushlight::python {

/// The attributes of a node: those of every node, and _saved_<name> and _raw_saved_<name> of those that have them.
PyObject* node_attribute(PyObject* self, PyObject* attribute);
PyObject* node_dir(PyObject* self, PyObject*);
void init_saved_type(PyObject* module);

}  // namespace rushlight::python
