// Registration of hooks on nodes.
#pragma once

#include "python/python.h"

namespace rushlight::python {

PyObject* add_node_hook(Node* node, PyObject* hook);
PyObject* add_node_prehook(Node* node, PyObject* hook);
void init_hooks(PyObject* module);

}  // namespace rushlight::python
