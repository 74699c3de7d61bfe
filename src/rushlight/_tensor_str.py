"""How tensors are written: ``repr`` and ``str``, and the options that govern them.

The numbers that will be shown are fetched once, as a NumPy array of the summarised slice; all the rest is text.
"""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import compress
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

import rushlight

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rushlight import Tensor

__all__ = ["get_printoptions", "printoptions", "set_printoptions", "tensor_str", "transform_str"]


@dataclasses.dataclass(slots=True)
class PrintOptions:
    """The current options; see :func:`set_printoptions`."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


_PROFILES: dict[str, dict[str, Any]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": inf, "edgeitems": 3, "linewidth": 80},
}

PRINT_OPTS = PrintOptions()


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Choose how tensors are printed; what is left ``None`` keeps its value, ``sci_mode`` excepted.

    Args:
        precision: digits after the decimal point (4 at first).
        threshold: tensors with more elements than this are summarised (1000 at first).
        edgeitems: elements shown at each end of a summarised dimension (3 at first).
        linewidth: columns of a line before it is wrapped (80 at first).
        profile: ``"default"``, ``"short"`` or ``"full"``: values for the four above, which they can still override.
        sci_mode: scientific notation always (True), never (False), or by the size of the numbers (None).
            Every call sets it, as in PyTorch.
    """
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    chosen = dict(_PROFILES.get(profile, {})) if profile is not None else {}
    chosen.update((name, value) for name, value in given.items() if value is not None)
    for name, value in chosen.items():
        setattr(PRINT_OPTS, name, value)
    PRINT_OPTS.sci_mode = sci_mode


def get_printoptions() -> dict[str, Any]:
    """Return the current options as keyword arguments of :func:`set_printoptions`."""
    return dataclasses.asdict(PRINT_OPTS)


@contextlib.contextmanager
def printoptions(**kwargs: Any) -> Iterator[None]:
    """Change the options inside a ``with`` block; takes the arguments of :func:`set_printoptions`."""
    before = get_printoptions()
    set_printoptions(**kwargs)
    try:
        yield
    finally:
        set_printoptions(**before)


def tensor_str(tensor: Tensor, *, tensor_contents: str | None = None) -> str:
    """Return the text of a tensor as ``Tensor.__repr__`` gives it.

    Args:
        tensor: a tensor of any shape and dtype.
        tensor_contents: text to put in the place of the numbers.
    """
    primal, tangent = _unpack(tensor)
    plain = type(tensor) is rushlight.Tensor or type(tensor) is rushlight.nn.Parameter
    prefix = "tensor(" if plain else type(tensor).__name__ + "("
    if tensor_contents is None:
        if tensor.is_meta:
            tensor_contents = "..."
        elif tensor.numel() == 0:
            tensor_contents = "[]"
        else:
            tensor_contents = _contents(primal, len(prefix))
    return _append_suffixes(prefix + tensor_contents, _suffixes(tensor, tangent), len(prefix))


def transform_str(kind: str, level: int, value: str, batch_dim: int | None = None) -> str:
    """Return the text of a tensor seen inside a function transform.

    Args:
        kind: ``"GradTrackingTensor"`` or ``"BatchedTensor"``.
        level: number of the transform, outermost first.
        value: text of the wrapped tensor.
        batch_dim: the batched dimension of the wrapped tensor, when there is one.
    """
    where = "" if batch_dim is None else f", bdim={batch_dim}"
    indented = "\n".join("    " + line for line in value.split("\n"))
    return f"{kind}(lvl={level}{where}, value=\n{indented}\n)"


# --- what stands behind the numbers ---------------------------------------------------------------------------------


def _unpack(tensor: Tensor) -> tuple[Tensor, Tensor | None]:
    """Return the tensor without its tangent, and the tangent: there is none before forward mode has been imported."""
    forward_ad = sys.modules.get("rushlight.autograd.forward_ad")
    return (tensor, None) if forward_ad is None else forward_ad.unpack_dual(tensor)


def _suffixes(tensor: Tensor, tangent: Tensor | None) -> list[str]:
    suffixes = []
    if tensor.device.type != "cpu":
        suffixes.append(f"device='{tensor.device}'")
    if _size_is_hidden(tensor):
        suffixes.append(f"size={tuple(tensor.shape)}")
    if not _dtype_is_implied(tensor):
        suffixes.append(f"dtype={tensor.dtype}")
    history = _history(tensor)
    if history:
        suffixes.append(history)
    if tangent is not None:
        suffixes.append(f"tangent={tangent}")
    return suffixes


def _size_is_hidden(tensor: Tensor) -> bool:
    """Whether the shape cannot be read off the brackets."""
    if tensor.is_meta:
        return True
    return tensor.ndim != 1 if tensor.numel() == 0 else PRINT_OPTS.edgeitems == 0


def _dtype_is_implied(tensor: Tensor) -> bool:
    """Whether writing the printed numbers into ``rushlight.tensor`` would give the same dtype."""
    dtype, default = tensor.dtype, rushlight.get_default_dtype()
    if dtype == default:
        return True
    if tensor.is_meta or tensor.numel() == 0:
        return False
    # The half types imply complex64 too, as in PyTorch.
    implied_complex = rushlight.complex128 if default == rushlight.float64 else rushlight.complex64
    return dtype in (rushlight.int64, rushlight.bool, implied_complex)


def _history(tensor: Tensor) -> str:
    try:
        grad_fn = tensor.grad_fn
    except RuntimeError:  # a view whose history an in-place operation has made unusable
        return "grad_fn=<Invalid>"
    if grad_fn is not None:
        return f"grad_fn=<{grad_fn.name().rpartition('::')[2]}>"
    return "requires_grad=True" if tensor.requires_grad else ""


def _append_suffixes(text: str, suffixes: list[str], indent: int) -> str:
    """Close the parenthesis after the suffixes, starting a line where one would not fit.

    PyTorch counts a line two columns longer than it is until the first break; the same is done here.
    """
    column = len(text) - text.rfind("\n") + 1
    parts = [text]
    for suffix in suffixes:
        if column + len(suffix) + 2 > PRINT_OPTS.linewidth:
            parts.append(",\n" + " " * indent + suffix)
            column = indent + len(suffix)
        else:
            parts.append(", " + suffix)
            column += len(suffix) + 2
    parts.append(")")
    return "".join(parts)


# --- the numbers ----------------------------------------------------------------------------------------------------


def _contents(tensor: Tensor, indent: int) -> str:
    """Return the nested brackets of a tensor with at least one element."""
    shape = tuple(tensor.shape)
    edge = PRINT_OPTS.edgeitems
    summarised = tensor.numel() > PRINT_OPTS.threshold
    if summarised and edge == 0 and shape:
        return "[...]"
    array = _fetch(tensor, edge if summarised else None)
    if array.dtype.kind == "c":
        cells, cell_width = _complex_cells(array)
    else:
        cells, cell_width = _real_cells(array)
    if not shape:
        return cells[0]
    return _brackets(cells, shape, array.shape, indent, cell_width)


def _fetch(tensor: Tensor, edge: int | None) -> NDArray[Any]:
    """Return the numbers as a NumPy array; with `edge`, only so many at each end of a longer dimension."""
    bits = tensor.dtype == rushlight.bfloat16  # NumPy lacks this type: its bits are the upper half of a float32's
    array: NDArray[Any] = tensor.detach().view(rushlight.int16).numpy() if bits else tensor.numpy(force=True)
    if edge is not None:
        array = array[np.ix_(*(_ends(size, edge) for size in array.shape))]
    if bits:
        return (array.astype(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)
    return array


def _ends(size: int, edge: int) -> range | list[int]:
    return range(size) if size <= 2 * edge else [*range(edge), *range(size - edge, size)]


def _real_cells(array: NDArray[Any]) -> tuple[list[str], int]:
    """Return the padded text of every element in C order, and the common width."""
    if array.dtype.kind == "f":
        cells, width = _float_cells(array)
    else:
        cells = [str(value) for value in array.ravel().tolist()]
        width = max(map(len, cells))
    return [cell.rjust(width) for cell in cells], width


def _complex_cells(array: NDArray[Any]) -> tuple[list[str], int]:
    """The same for complex numbers: each part has a format of its own, and only the real part is padded."""
    real, real_width = _real_cells(array.real)
    imag, imag_width = _float_cells(array.imag)
    cells = [a + (b if b[0] == "-" else "+" + b) + "j" for a, b in zip(real, imag, strict=True)]
    return cells, real_width + imag_width + 1


def _float_cells(array: NDArray[Any]) -> tuple[list[str], int]:
    """Return the unpadded text of every number in C order, and the width that the non-zero finite ones need."""
    numbers = array.ravel()
    counted = np.isfinite(numbers) & (numbers != 0)
    write = _float_format(numbers[counted].astype(np.float64))
    cells = [write(number) for number in numbers.tolist()]
    return cells, max(map(len, compress(cells, counted.tolist())), default=1)


def _float_format(numbers: NDArray[np.float64]) -> Callable[[float], str]:
    """Choose whole, fixed or scientific notation for a tensor from its non-zero finite numbers."""
    if numbers.size == 0:
        return _write_whole
    sizes = np.abs(numbers)
    low, high = float(sizes.min()), float(sizes.max())
    whole = bool((numbers == np.ceil(numbers)).all())
    scientific = PRINT_OPTS.sci_mode
    if scientific is None:
        scientific = high / low > 1000.0 or high > 1.0e8 or (low < 1.0e-4 and not whole)
    if whole and not scientific:
        return _write_whole
    return f"{{:.{PRINT_OPTS.precision}{'e' if scientific else 'f'}}}".format


def _write_whole(number: float) -> str:
    text = f"{number:.0f}"
    return text if text[-1] in "nf" else text + "."  # "nan" and "inf" have no decimal point


# --- the brackets ---------------------------------------------------------------------------------------------------


def _brackets(cells: list[str], shape: tuple[int, ...], shown: tuple[int, ...], indent: int, cell_width: int) -> str:
    """Nest the cells of a tensor of this shape, of which `shown` entries per dimension are there.

    Goes from the innermost dimension outwards; every pass replaces the entries of one dimension by one text.
    """
    innermost = len(shape) - 1
    texts = _lines(cells, shape[-1], shown[-1], indent + innermost + 1, cell_width)
    for depth in range(innermost - 1, -1, -1):
        separator = "," + "\n" * (innermost - depth) + " " * (indent + depth + 1)
        groups = _groups(texts, shape[depth], shown[depth], "...")
        texts = [f"[{separator.join(group)}]" for group in groups]
    return texts[0]


def _lines(cells: list[str], size: int, shown: int, indent: int, cell_width: int) -> list[str]:
    """Return the text of every vector, wrapped at the line width, which PyTorch counts from the bracket."""
    per_line = max(1, (PRINT_OPTS.linewidth - indent + 1) // (cell_width + 2))
    separator = ",\n" + " " * indent
    texts = []
    for vector in _groups(cells, size, shown, " ..."):
        lines = [", ".join(vector[start : start + per_line]) for start in range(0, len(vector), per_line)]
        texts.append(f"[{separator.join(lines)}]")
    return texts


def _groups(texts: list[str], size: int, shown: int, ellipsis: str) -> Iterable[list[str]]:
    """Cut the texts into groups of `shown`, with an ellipsis in the middle of each when entries were left out."""
    half = shown // 2
    for start in range(0, len(texts), shown):
        group = texts[start : start + shown]
        if shown < size:
            group.insert(half, ellipsis)
        yield group
