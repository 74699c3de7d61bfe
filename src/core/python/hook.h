// Hooks on nodes and on saved tensors.
#pragma once

#include "python/python.h"

namespace rushlight::python {

PyObject* add_node_hook(Node* node, PyObject* hook);
PyObject* add_node_prehook(Node* node, PyObject* hook);
/// What `pack` makes of the tensor, for `unpack` to give it back.
SavedHook* pack_with(Tensor& t, PyObject* pack, PyObject* unpack);
void init_hooks(PyObject* module);

}  // namespace rushlight::python
