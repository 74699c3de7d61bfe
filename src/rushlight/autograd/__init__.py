"""Automatic differentiation: the two entries to the engine, and the package around them (``torch.autograd``).

``_C._run_backward(tensors, grad_tensors, retain_graph, create_graph, inputs, allow_unreachable, accumulate_grad)`` is
the engine. ``tensors`` and ``inputs`` are tuples of tensors and ``graph.GradientEdge``; ``grad_tensors`` is a tuple of
tensors and None. It checks these itself, in PyTorch's words, because ``Tensor.backward`` reaches it without passing
here: as many gradients as tensors; shapes equal; dtypes equal if either is complex; None standing for 1 where the
output has one element and a real floating type, and for nothing where it does not require grad; inputs that require
grad and, unless ``allow_unreachable``, were reached. ``inputs`` empty means all leaves. With ``accumulate_grad`` it
adds to ``.grad`` (for inputs that are not leaves too) and returns None; without, it returns the gradients of
``inputs``, None for those not reached.
"""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, TypeAlias

import rushlight
from rushlight import _C, Tensor
from rushlight._C import _run_backward
from rushlight._missing import lazy_module

from . import forward_ad, function, functional, grad_mode, graph
from .anomaly_mode import detect_anomaly, set_detect_anomaly
from .function import Function
from .grad_mode import (
    enable_grad,
    enforce_grad_layout_policy,
    inference_mode,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from .gradcheck import gradcheck, gradgradcheck
from .variable import Variable

__all__ = [
    "Function",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "enforce_grad_layout_policy",
    "forward_ad",
    "function",
    "functional",
    "grad",
    "grad_mode",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_multithreading_enabled",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
    "set_record_locations",
    "variable",
]

TensorOrEdge: TypeAlias = Tensor | graph.GradientEdge
TensorsOrEdges: TypeAlias = TensorOrEdge | Sequence[TensorOrEdge]
Cotangents: TypeAlias = Tensor | Sequence[Tensor | None] | None

is_multithreading_enabled = _C._is_multithreading_enabled


def backward(
    tensors: TensorsOrEdges,
    grad_tensors: Cotangents = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Cotangents = None,
    inputs: TensorsOrEdges | dict[str, Tensor] | None = None,
) -> None:
    """Add to ``.grad`` of the leaves (or of ``inputs``) the gradients of the sum of ``tensors``.

    ``grad_tensors`` weighs the tensors: one per tensor, of its shape; None for a tensor with one element means 1.
    ``retain_graph`` (default: ``create_graph``) keeps what the graph saved for another backward; ``create_graph``
    makes the gradients differentiable. ``grad_variables`` is the former name of ``grad_tensors``.

    Raises RuntimeError for shapes that differ, a missing weight of a tensor with several elements, tensors that do
    not require grad, empty ``inputs`` and a graph already freed; TypeError for what is not a tensor.

    ``inp.grad += sum_i vjp(tensors[i], inp, grad_tensors[i])``.
    """
    if grad_variables is not None:
        warnings.warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, stacklevel=2)
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. Please only "
                "use `grad_tensors`."
            )
        grad_tensors = grad_variables
    sinks: tuple[TensorOrEdge, ...] = ()
    if inputs is not None:
        _, sinks = _as_inputs(inputs, "backward")
    roots = _as_tuple(tensors)
    _run_backward(
        roots,
        _as_cotangents(grad_tensors, len(roots)),
        create_graph if retain_graph is None else retain_graph,
        create_graph,
        sinks,
        True,
        True,
    )


def grad(
    outputs: TensorsOrEdges,
    inputs: TensorsOrEdges | dict[str, Tensor],
    grad_outputs: Cotangents = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> Any:
    """Return the gradients of the sum of ``outputs`` with respect to ``inputs``, as a tuple (a dict for a dict).

    ``grad_outputs``, ``retain_graph`` and ``create_graph`` as for :func:`backward`. An input that the outputs do not
    depend on is a RuntimeError unless ``allow_unused``, then None, or zeros with ``materialize_grads``.
    ``is_grads_batched`` takes the first dimension of every ``grad_outputs`` for a batch (through ``func.vmap``) and
    returns batched gradients. ``only_inputs`` is ignored.

    Raises further ValueError for ``allow_unused=False`` with ``materialize_grads``.
    """
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    if not only_inputs:
        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient for "
            "other parts of the graph, please use torch.autograd.backward.",
            FutureWarning,
            stacklevel=2,
        )
    roots = _as_tuple(outputs)
    keys, sources = _as_inputs(inputs, "grad")
    cotangents = _as_cotangents(grad_outputs, len(roots))
    retain = create_graph if retain_graph is None else retain_graph
    unused = materialize_grads if allow_unused is None else allow_unused
    if is_grads_batched:
        result = _batched_grad(roots, sources, cotangents, retain, create_graph, unused)
    else:
        result = _run_backward(roots, cotangents, retain, create_graph, sources, unused, False)
    if materialize_grads:
        result = _materialize(result, sources, create_graph)
    return result if keys is None else dict(zip(keys, result, strict=True))


def set_record_locations(enabled: bool) -> None:
    """Store with every recorded operation, and every in-place change, the source line that called it.

    Errors of backward then name these lines. Raises TypeError unless ``enabled`` is a bool. Not in PyTorch.
    """
    if enabled is not True and enabled is not False:
        raise TypeError(f"set_record_locations(): argument 'enabled' must be bool, not {type(enabled).__name__}")
    _C._set_record_locations(enabled)


def variable(*args: Any, **kwargs: Any) -> NoReturn:
    raise RuntimeError("torch.autograd.variable(...) is deprecated, use torch.tensor(...) instead")


def _as_tuple(tensors: TensorsOrEdges) -> tuple[TensorOrEdge, ...]:
    if isinstance(tensors, Tensor):
        return (tensors,)
    if isinstance(tensors, graph.GradientEdge):  # itself a tuple
        return (tensors,)
    return tuple(tensors)


def _as_inputs(inputs: Any, caller: str) -> tuple[list[str] | None, tuple[TensorOrEdge, ...]]:
    """The tensors or edges, and the keys if they came as a dict."""
    keys = None
    if isinstance(inputs, Tensor):
        return keys, (inputs,)
    if type(inputs) not in (list, tuple) and isinstance(inputs, Mapping):  # slow to ask
        if type(inputs) is not dict:
            raise TypeError(
                f"`inputs` argument to `{caller}()` must be a dict, not {type(inputs).__name__}. Other Mapping types "
                "are not supported."
            )
        keys, inputs = list(inputs), inputs.values()
    sources = _as_tuple(inputs)
    if not sources:
        raise RuntimeError(f"`inputs` argument to `{caller}()` cannot be empty.")
    return keys, sources


def _as_cotangents(grads: Cotangents, count: int) -> tuple[Tensor | None, ...]:
    if grads is None:
        return (None,) * count
    if isinstance(grads, Tensor):
        return (grads,)
    return tuple(grads)


def _batched_grad(
    roots: tuple[TensorOrEdge, ...],
    sources: tuple[TensorOrEdge, ...],
    cotangents: tuple[Tensor | None, ...],
    retain_graph: bool,
    create_graph: bool,
    allow_unused: bool,
) -> tuple[Tensor | None, ...]:
    from rushlight.func import vmap

    for i, (out, v) in enumerate(zip(roots, cotangents, strict=False)):
        if not isinstance(out, Tensor):
            raise RuntimeError("Batched grads are not supported with GradientEdge")
        if v is None or v.dim() == 0 or v.shape[1:] != out.shape:
            raise RuntimeError(
                "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch "
                "dimension. The sizes of the remaining dimensions are expected to match the shape of corresponding "
                f"output, but a mismatch was detected: grad_output[{i}] has a shape of "
                f"{None if v is None else v.shape} and output[{i}] has a shape of {out.shape}. If you only want some "
                "tensors in `grad_output` to be considered batched, consider using vmap."
            )
    reached: list[bool] = []

    def vjp(*vectors: Any) -> tuple[Tensor, ...]:
        grads = _run_backward(roots, vectors, retain_graph, create_graph, sources, allow_unused, False)
        reached[:] = [g is not None for g in grads]
        return tuple([g for g in grads if g is not None])

    batched = iter(vmap(vjp)(*cotangents))
    return tuple([next(batched) if hit else None for hit in reached])


def _materialize(
    grads: tuple[Tensor | None, ...], sources: tuple[TensorOrEdge, ...], create_graph: bool
) -> tuple[Tensor, ...]:
    filled = []
    for g, source in zip(grads, sources, strict=True):
        if g is None:
            if not isinstance(source, Tensor):
                raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge")
            g = rushlight.zeros_like(source, requires_grad=create_graph)
        filled.append(g)
    return tuple(filled)


__getattr__, __dir__ = lazy_module(__name__, submodules=("profiler", "profiler_util"))
