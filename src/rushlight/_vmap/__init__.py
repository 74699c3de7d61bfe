"""Batching: what operators do with tensors that stand for many samples (the machinery behind ``func.vmap``).

A batched tensor (src/core/python/batched.h) shows the sizes of one sample; its ``_value`` holds all samples along its
first dimension and may be batched itself by an outer vmap. Pointwise operators broadcast over values in the core. Every
other operator has a rule here, found by name when an overload first meets a batched tensor:

* ``rule(call, level, size, mask, *values)``: ``values`` are all parameters of the overload in order, tensors of the
  highest level replaced by their values; bit ``i`` of ``mask`` says that parameter ``i`` was batched; ``size`` is the
  number of samples. The rule gives the values of the result. ``call`` is the overload itself, taking all parameters.
* a rule of the whole call, ``rule(call, *arguments)``, sees the batched tensors and gives the result as it is to be.

The rules stand by family in ``dims`` (whatever names dimensions), ``shape``, ``reduction``, ``matrix``, ``select`` and
``scatter``, ``bins``, ``join``, ``fold`` (convolutions, pooling, paddings, norms), ``loss``, ``random``; what has none is looped
over, with a warning (``table``).
"""

from .. import _C
from . import (
    backward,
    bins,
    dims,
    fold,
    function,
    index,
    join,
    loss,
    matrix,
    pointwise,
    random,
    reduction,
    scatter,
    shape,
    tensor,
)
from .table import choose

__all__: list[str] = []

_families = (
    bins,
    dims,
    fold,
    join,
    loss,
    matrix,
    pointwise,
    random,
    reduction,
    scatter,
    shape,
    tensor,
)  # importing them fills the table

_C._set_batching(choose, index.get_item, index.set_item, function.apply, backward.run)
