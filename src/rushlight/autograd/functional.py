"""Jacobians, Hessians and their products with vectors, for functions of tensors (``torch.autograd.functional``).

Every function records ``func`` once and asks the engine for all rows of the result on that one graph. A row is
selected by a unit cotangent rather than by indexing the output, so that no row adds a node to the graph.

Structure of the results: a tensor given (or returned by ``func``) stands for itself, a tuple for a tuple; with tuples
on both sides ``jacobian(...)[i][j]`` belongs to output ``i`` and input ``j``.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import rushlight
from rushlight import _C, Tensor
from rushlight._C import _run_backward

from .grad_mode import enable_grad, set_grad_enabled

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

Tensors: TypeAlias = tuple[Tensor, ...]
TensorOrTensors: TypeAlias = Tensor | tuple[Tensor, ...]
Gradients: TypeAlias = Sequence[Tensor | None]

# Unit cotangents are made in blocks of about this many numbers: a function of many outputs and few inputs would
# otherwise need a square matrix far larger than its Jacobian.
_UNIT_BLOCK = 1 << 18

_OUTPUTS = "outputs of the user-provided function"


class ForwardModeError(NotImplementedError, ValueError):
    """Forward mode was asked for together with arguments that exclude it.

    PyTorch raises NotImplementedError, and only after running the function; what is wrong are the arguments, hence
    ValueError as well.
    """


def jacobian(
    func: Callable[..., TensorOrTensors],
    inputs: TensorOrTensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """Return the Jacobian of ``func`` at ``inputs``.

    Each block has the shape of its output followed by the shape of its input, and the dtype of the input
    (``strategy="forward-mode"``: of the output). An output that does not depend on an input gives zeros, or
    RuntimeError with ``strict=True``.

    ``create_graph`` makes the result differentiable. ``vectorize`` computes all rows at once through ``func.vmap``;
    ``strategy="forward-mode"``, columns instead of rows, requires it. Raises TypeError unless inputs and outputs are
    tensors or tuples of tensors, and RuntimeError for a complex output unless vectorized.

    ``J[k, l] = d out[k] / d inp[l]``; row ``k`` is the vector-Jacobian product with the unit vector ``e_k``.
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has more outputs '
            'than inputs, "forward-mode" tends to be more performant. Otherwise, prefer to use "reverse-mode".'
        )
    _check_options(create_graph, strict, vectorize, strategy)
    is_inputs_tuple, primals = _as_primals(inputs, "jacobian", create_graph)
    if strategy == "forward-mode":
        is_outputs_tuple, blocks = _columns(func, primals, "jacobian")
    elif vectorize:
        is_outputs_tuple, blocks = _rows_at_once(func, primals, create_graph, "jacobian")
    else:
        with enable_grad():
            primals = _as_leaves(primals, create_graph)
            is_outputs_tuple, outputs = _as_tuple(func(*primals), _OUTPUTS, "jacobian")
            if strict:
                _check_outputs(outputs)
            blocks = _rows(outputs, primals, create_graph, strict)
    return _unwrap([_unwrap(row, is_inputs_tuple) for row in blocks], is_outputs_tuple)


def hessian(
    func: Callable[..., Tensor],
    inputs: TensorOrTensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """Return the Hessian of the scalar function ``func`` at ``inputs``.

    ``func`` must return one tensor with one element (RuntimeError otherwise). Block ``[i][j]`` has the shape of input
    ``i`` followed by the shape of input ``j``, and the dtype of input ``j``. The other arguments are those of
    :func:`jacobian`, which is applied to the gradient; with ``strict=True`` a gradient that does not depend on the
    inputs is a RuntimeError.

    ``H[k, l] = d^2 out / d inp[k] d inp[l]``.
    """
    is_inputs_tuple, primals = _as_primals(inputs, "hessian", create_graph)
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')
    _check_options(create_graph, strict, vectorize, outer_jacobian_strategy)

    def gradient(*primals: Tensor) -> Tensors:
        outputs = _scalar_output(func(*primals), "hessian")
        if strict:
            _check_outputs(outputs)
        grads = _zeros_for_none(_vjp(outputs, primals, None, create_graph=True), primals)
        if strict:
            _check_gradient(grads)
        return grads

    if vectorize:
        pure = _pure_gradient(func, "hessian")
        if outer_jacobian_strategy == "forward-mode":
            _, blocks = _columns(pure, primals, "hessian")
        else:
            _, blocks = _rows_at_once(pure, primals, create_graph, "hessian")
    else:
        with enable_grad():
            primals = _as_leaves(primals, create_graph)
            blocks = _rows(gradient(*primals), primals, create_graph, strict)
    return _unwrap([_unwrap(row, is_inputs_tuple) for row in blocks], is_inputs_tuple)


def vjp(
    func: Callable[..., TensorOrTensors],
    inputs: TensorOrTensors,
    v: TensorOrTensors | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """Return ``func(*inputs)`` and the product of ``v`` with its Jacobian.

    ``v`` has the shapes of the outputs (RuntimeError otherwise) and may be omitted for an output of one element. The
    product has the shapes and dtypes of the inputs. ``create_graph`` and ``strict`` as for :func:`jacobian`.

    ``conj(v)^T J``, conjugated: the gradient of ``<v, func(inputs)>``.
    """
    with enable_grad():
        is_inputs_tuple, primals = _as_primals(inputs, "vjp", create_graph)
        primals = _as_leaves(primals, create_graph)
        is_outputs_tuple, outputs = _as_tuple(func(*primals), _OUTPUTS, "vjp")
        if strict:
            _check_outputs(outputs)
        cotangents = _vector(v, outputs, is_outputs_tuple, "vjp", "the user-provided function returns")
    with set_grad_enabled(create_graph or rushlight.is_grad_enabled()):
        products = _vjp(outputs, primals, cotangents, create_graph)
        products = _fill(products, primals, strict, create_graph, _NO_INPUT, _CONSTANT_JACOBIAN)
        return _finish(outputs, is_outputs_tuple, create_graph), _finish(products, is_inputs_tuple, create_graph)


def jvp(
    func: Callable[..., TensorOrTensors],
    inputs: TensorOrTensors,
    v: TensorOrTensors | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """Return ``func(*inputs)`` and the product of its Jacobian with ``v``.

    ``v`` has the shapes of the inputs (RuntimeError otherwise) and may be omitted for an input of one element. The
    product has the shapes and dtypes of the outputs. ``create_graph`` and ``strict`` as for :func:`jacobian`.

    ``J v`` by two backward passes: ``u -> J^T u`` is linear in ``u``, and its own vjp with ``v`` is ``J v``
    (J. Townsend, "A new trick for calculating Jacobian vector products", 2017).
    """
    with enable_grad():
        is_inputs_tuple, primals = _as_primals(inputs, "jvp", create_graph)
        primals = _as_leaves(primals, create_graph)
        tangents = _vector(v, primals, is_inputs_tuple, "jvp", "the input to the user-provided function is")
        is_outputs_tuple, outputs = _as_tuple(func(*primals), _OUTPUTS, "jvp")
        if strict:
            _check_outputs(outputs)
        dummies = tuple([rushlight.zeros_like(out, requires_grad=True) for out in outputs])
        transposed = _vjp(outputs, primals, dummies, create_graph=True)
        if strict:
            _check_differentiable(transposed, _CONSTANT_GRADIENT)
    with set_grad_enabled(create_graph or rushlight.is_grad_enabled()):
        products = _vjp(transposed, dummies, tangents, create_graph)
        products = _fill(products, outputs, strict, create_graph, _NO_COTANGENT, _CONSTANT_JACOBIAN)
        return _finish(outputs, is_outputs_tuple, create_graph), _finish(products, is_outputs_tuple, create_graph)


def vhp(
    func: Callable[..., Tensor],
    inputs: TensorOrTensors,
    v: TensorOrTensors | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """Return the value of the scalar function ``func`` and the product of ``v`` with its Hessian.

    ``func`` must return one tensor with one element. ``v`` has the shapes of the inputs (RuntimeError otherwise) and
    may be omitted for an input of one element. The product, ``v^T H``, has the shapes and dtypes of the inputs.
    """
    with enable_grad():
        is_tuple, primals = _as_primals(inputs, "vhp", create_graph)
        primals = _as_leaves(primals, create_graph)
        tangents = _vector(v, primals, is_tuple, "vhp", "the input to the user-provided function is")
        outputs, gradient = _value_and_gradient(func, primals, strict, "vhp")
    with set_grad_enabled(create_graph or rushlight.is_grad_enabled()):
        products = _vjp(gradient, primals, tangents, create_graph)
        products = _fill(products, primals, strict, create_graph, _NO_INPUT_OF_JACOBIAN, _CONSTANT_HESSIAN)
        return _finish(outputs, False, create_graph), _finish(products, is_tuple, create_graph)


def hvp(
    func: Callable[..., Tensor],
    inputs: TensorOrTensors,
    v: TensorOrTensors | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """Return the value of the scalar function ``func`` and the product of its Hessian with ``v``.

    As :func:`vhp`, which is cheaper and the same wherever the Hessian is symmetric: ``H v`` is computed as the
    :func:`jvp` of the gradient, with one more backward pass.
    """
    with enable_grad():
        is_tuple, primals = _as_primals(inputs, "hvp", create_graph)
        primals = _as_leaves(primals, create_graph)
        tangents = _vector(v, primals, is_tuple, "hvp", "the input to the user-provided function is")
        outputs, gradient = _value_and_gradient(func, primals, strict, "hvp")
        dummies = tuple([rushlight.zeros_like(inp, requires_grad=True) for inp in primals])
        transposed = _vjp(gradient, primals, dummies, create_graph=True)
    with set_grad_enabled(create_graph or rushlight.is_grad_enabled()):
        products = _vjp(transposed, dummies, tangents, create_graph)
        products = _fill(products, primals, strict, create_graph, _NO_COTANGENT_OF_GRADIENT, _CONSTANT_HESSIAN)
        return _finish(outputs, False, create_graph), _finish(products, is_tuple, create_graph)


# Rows and columns


def _vjp(outputs: Gradients, inputs: Tensors, cotangents: Gradients | None, create_graph: bool) -> Gradients:
    """Gradients of the inputs, None where there is no path; outputs without a graph are passed over."""
    if cotangents is None:
        cotangents = (None,) * len(outputs)
    pairs = [(out, v) for out, v in zip(outputs, cotangents, strict=True) if out is not None and out.requires_grad]
    if not pairs:
        return (None,) * len(inputs)
    roots, grads = zip(*pairs, strict=True)
    result: Gradients = _run_backward(roots, grads, create_graph, create_graph, inputs, True, False)
    return result


def _rows(outputs: Tensors, inputs: Tensors, create_graph: bool, strict: bool) -> list[list[Tensor]]:
    """Jacobian blocks of each output, by one backward pass per element."""
    blocks = []
    for i, out in enumerate(outputs):
        rows: list[Gradients] = []
        if out.requires_grad:
            if out.is_complex():
                raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {out.dtype}")
            root = (out,)
            rows = [_run_backward(root, (unit,), True, create_graph, inputs, True, False) for unit in _units(out)]
        block = []
        for j, inp in enumerate(inputs):
            column = [row[j] for row in rows]
            if strict:
                _check_column(column, i, j, create_graph)
            block.append(_stack(column, inp, out.shape + inp.shape))
        blocks.append(block)
    return blocks


def _units(out: Tensor) -> Iterator[Tensor]:
    """The unit vectors of the space of ``out``, each in its shape."""
    n = out.numel()
    block = max(1, _UNIT_BLOCK // max(n, 1))
    for start in range(0, n, block):
        count = min(block, n - start)
        units = rushlight.zeros(count * n, dtype=out.dtype)
        units[start :: n + 1] = 1  # a diagonal, row by row
        yield from units.view(count, *out.shape).unbind()


def _stack(rows: Gradients, inp: Tensor, shape: Sequence[int]) -> Tensor:
    if all(row is None for row in rows):
        return rushlight.zeros(shape, dtype=inp.dtype)
    return rushlight.stack([rushlight.zeros_like(inp) if row is None else row for row in rows]).view(shape)


def _rows_at_once(
    func: Callable[..., Any], inputs: Tensors, create_graph: bool, caller: str
) -> tuple[bool, list[list[Tensor]]]:
    """Jacobian blocks of each output, by one batched backward pass over all elements of all outputs."""
    from ..func.jacobian import by_rows

    pure, kind = _tuple_function(func, caller)
    with set_grad_enabled(create_graph):
        blocks = by_rows(pure, tuple(range(len(inputs))), real=False)(*inputs)
    return kind[0], [list(row) for row in blocks]


def _columns(func: Callable[..., Any], inputs: Tensors, caller: str) -> tuple[bool, list[list[Tensor]]]:
    """Jacobian blocks of each output, by one batched pass of forward mode over all elements of all inputs."""
    from ..func.jacobian import by_columns

    pure, kind = _tuple_function(func, caller)
    with set_grad_enabled(False):
        blocks = by_columns(pure, tuple(range(len(inputs))), real=False)(*inputs)
    return kind[0], [list(row) for row in blocks]


def _tuple_function(func: Callable[..., Any], caller: str) -> tuple[Callable[..., Tensors], list[bool]]:
    """The function with a tuple of outputs, and whether it gave one itself (known once it has run)."""
    kind = [False]

    def pure(*inputs: Tensor) -> Tensors:
        kind[0], outputs = _as_tuple(func(*inputs), _OUTPUTS, caller)
        return outputs

    return pure, kind


def _pure_gradient(func: Callable[..., Any], caller: str) -> Callable[..., Tensors]:
    """The gradient of a scalar function, for transforms to differentiate."""
    from ..func import vjp

    def gradient(*inputs: Tensor) -> Tensors:
        (output,), pull = vjp(lambda *own: _scalar_output(func(*own), caller), *inputs)
        grads: Tensors = pull((rushlight.ones_like(output),))
        return grads

    return gradient


def _value_and_gradient(
    func: Callable[..., Any], inputs: Tensors, strict: bool, caller: str
) -> tuple[Tensors, Gradients]:
    outputs = _scalar_output(func(*inputs), caller)
    if strict:
        _check_outputs(outputs)
    gradient = _vjp(outputs, inputs, None, create_graph=True)
    if strict:
        _check_gradient(gradient)
    return outputs, gradient


# Arguments and results


def _as_tuple(value: Any, what: str, caller: str) -> tuple[bool, Tensors]:
    is_tuple = isinstance(value, tuple)
    tensors: Tensors = value if is_tuple else (value,)
    for i, t in enumerate(tensors):
        if not isinstance(t, Tensor):
            where = f"value at index {i}" if is_tuple else f"given {what}"
            raise TypeError(
                f"The {what} given to {caller} must be either a Tensor or a tuple of Tensors but the {where} has type "
                f"{type(t)}."
            )
    return is_tuple, tensors


def _as_primals(inputs: Any, caller: str, create_graph: bool) -> tuple[bool, Tensors]:
    """The inputs; refused inside of a function that a transform of ``func`` differentiates by them.

    Without a graph of the derivatives it would take them for constants.
    """
    if _C._transform_depth() and not create_graph:
        raise RuntimeError(
            f"You are attempting to call Tensor.requires_grad_() (by torch.autograd.functional.{caller}) inside of a "
            "function being transformed by a functorch transform. This is unsupported, please attempt to use the "
            "functorch transforms (e.g. grad, vjp, jacrev, jacfwd, hessian) inside, or give create_graph=True."
        )
    return _as_tuple(inputs, "inputs", caller)


def _unwrap(values: Sequence[Any], is_tuple: bool) -> Any:
    return tuple(values) if is_tuple else values[0]


def _as_leaves(inputs: Tensors, create_graph: bool) -> Tensors:
    """New tensors to differentiate by: only what ``func`` does with its arguments must count.

    Under ``create_graph`` a view keeps the path to an input that has a history of its own.
    """
    return tuple([t.view_as(t) if create_graph and t.requires_grad else t.detach().requires_grad_() for t in inputs])


def _scalar_output(value: Any, caller: str) -> Tensors:
    is_tuple, outputs = _as_tuple(value, _OUTPUTS, caller)
    if is_tuple:
        raise RuntimeError(f"The function given to {caller} should return a single Tensor")
    if outputs[0].numel() != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {caller} should contain a single element")
    return outputs


def _vector(
    v: TensorOrTensors | None, refs: Tensors, is_refs_tuple: bool, caller: str, subject: str
) -> Gradients | None:
    """``v`` as a tuple of tensors of the shapes of ``refs``; None stands for 1 where ``refs`` is a single number."""
    if v is None:
        if len(refs) == 1 and refs[0].numel() == 1:
            return None
        raise RuntimeError(f"The vector v can only be None if {subject} a single Tensor with a single element.")
    _, vectors = _as_tuple(v, "v", caller)
    if len(vectors) != len(refs):
        if is_refs_tuple:
            raise RuntimeError(f"v is a tuple of invalid length: should be {len(refs)} but got {len(vectors)}.")
        raise RuntimeError("The given v should contain a single Tensor.")
    for i, (vector, ref) in enumerate(zip(vectors, refs, strict=True)):
        if vector.shape != ref.shape:
            entry = f"Entry {i} in " if is_refs_tuple else ""
            raise RuntimeError(f"{entry}v has invalid size: should be {ref.shape} but got {vector.shape}.")
    return vectors


def _zeros_for_none(grads: Gradients, refs: Tensors) -> Tensors:
    return tuple([rushlight.zeros_like(r) if g is None else g for g, r in zip(grads, refs, strict=True)])


def _fill(
    grads: Gradients, refs: Tensors, strict: bool, create_graph: bool, independent: str, constant: str
) -> Tensors:
    """Zeros for what is None; with ``strict`` what is None, or constant though its graph is wanted, is an error."""
    if strict:
        for i, grad in enumerate(grads):
            if grad is None:
                raise RuntimeError(independent.format(i))
            if create_graph and not grad.requires_grad:
                raise RuntimeError(constant.format(i))
    return _zeros_for_none(grads, refs)


def _finish(tensors: Tensors, is_tuple: bool, create_graph: bool) -> Any:
    return _unwrap(tensors if create_graph else [t.detach() for t in tensors], is_tuple)


# What is refused

_NO_INPUT = "The output of the user-provided function is independent of input {}. This is not allowed in strict mode."
_NO_INPUT_OF_OUTPUT = (
    "Output {} of the user-provided function is independent of input {}. This is not allowed in strict mode."
)
_NO_COTANGENT = (
    "The gradient with respect to the input is independent of entry {} in the grad_outputs when using the double "
    "backward trick to compute forward mode gradients. This is not allowed in strict mode."
)
_NO_INPUT_OF_JACOBIAN = (
    "The jacobian of the user-provided function is independent of input {}. This is not allowed in strict mode."
)
_NO_COTANGENT_OF_GRADIENT = (
    "The hessian of the user-provided function is independent of entry {} in the grad_jacobian. This is not allowed in "
    "strict mode as it prevents from using the double backward trick to replace forward mode AD."
)
_CONSTANT_OUTPUT = (
    "Output {} of the user-provided function does not require gradients. The outputs must be computed in a "
    "differentiable manner from the input when running in strict mode."
)
_CONSTANT_GRADIENT = (
    "The gradient with respect to input {} is independent of the inputs of the user-provided function. This is not "
    "allowed in strict mode."
)
_CONSTANT_JACOBIAN = (
    "The jacobian of the user-provided function is independent of input {}. This is not allowed in strict mode when "
    "create_graph=True."
)
_CONSTANT_HESSIAN = (
    "The hessian of the user-provided function is independent of input {}. This is not allowed in strict mode when "
    "create_graph=True."
)
_LINEAR_FUNCTION = (
    "While computing the hessian, found that the jacobian of the user-provided function with respect to input {} is "
    "independent of the input. This is not allowed in strict mode. You should ensure that your function is twice "
    "differentiable and that the jacobian depends on the inputs (this would be violated by a linear function for "
    "example)."
)


def _check_options(create_graph: bool, strict: bool, vectorize: bool, strategy: str) -> None:
    name = "torch.autograd.functional.jacobian"
    if strategy == "forward-mode":
        if create_graph:
            raise NotImplementedError(
                f'{name}: `create_graph=True` and `strategy="forward-mode"` are not supported together (yet). Please '
                'either set `create_graph=False` or `strategy="reverse-mode"`.'
            )
        if strict:
            raise RuntimeError(
                f'{name}: `strict=True` and `strategy="forward-mode"` are not supported together (yet). Please either '
                'set `strict=False` or `strategy="reverse-mode"`.'
            )
        if not vectorize:
            raise ForwardModeError(
                "Computing Jacobian using forward-AD or forward-over-reverse Hessian is only implemented for "
                '`vectorize=True` (got strategy="forward-mode" and vectorize=False).'
            )
    if vectorize and strict:
        raise RuntimeError(
            f"{name}: `strict=True` and `vectorized=True` are not supported together. Please either set "
            "`strict=False` or `vectorize=False`."
        )


def _check_outputs(outputs: Tensors) -> None:
    for i, out in enumerate(outputs):
        if not out.requires_grad:
            raise RuntimeError(_CONSTANT_OUTPUT.format(i))


def _check_gradient(gradient: Gradients) -> None:
    _check_differentiable(gradient, _LINEAR_FUNCTION)


def _check_differentiable(grads: Gradients, constant: str) -> None:
    for i, grad in enumerate(grads):
        if grad is None:
            raise RuntimeError(_NO_INPUT.format(i))
        if not grad.requires_grad:
            raise RuntimeError(constant.format(i))


def _check_column(rows: Gradients, i: int, j: int, create_graph: bool) -> None:
    for row in rows:
        if row is None:
            raise RuntimeError(_NO_INPUT_OF_OUTPUT.format(i, j))
        if create_graph and not row.requires_grad:
            raise RuntimeError(_CONSTANT_JACOBIAN.format(j))
