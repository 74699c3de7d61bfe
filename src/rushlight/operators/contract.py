"""Contractions: ``einsum`` and ``tensordot``, as permutations around batched matrix products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _C

__all__ = ["einsum", "tensordot"]

Tensor = _C.Tensor
ELLIPSIS = "..."


def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Tensor | None = None) -> Tensor:
    """Return the sum of products over pairs of dimensions: the last ``dims`` of ``a`` with the first of ``b``, or the
    two lists of ``dims``. RuntimeError where paired sizes differ (a size of 1 is summed over first)."""
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.dim(), b.dim()):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        left, right = list(range(a.dim() - dims, a.dim())), list(range(dims))
    else:
        left, right = ([d] if isinstance(d, int) else [int(i) for i in d] for d in dims)
    if len(left) != len(right):
        raise RuntimeError("both dimension lists should have same length")
    left, right = [d % a.dim() for d in left], [d % b.dim() for d in right]
    for i, j in zip(left, right, strict=True):
        if a.shape[i] != b.shape[j]:
            if b.shape[j] == 1:
                a = a.sum(i, keepdim=True)
            elif a.shape[i] == 1:
                b = b.sum(j, keepdim=True)
            else:
                raise RuntimeError(
                    f"contracted dimensions need to match, but first has size {a.shape[i]} in dim {i} and second has "
                    f"size {b.shape[j]} in dim {j}"
                )
    kept_a = [i for i in range(a.dim()) if i not in left]
    kept_b = [j for j in range(b.dim()) if j not in right]
    rows, inner = [a.shape[i] for i in kept_a], [a.shape[i] for i in left]
    cols = [b.shape[j] for j in kept_b]
    product = a.permute(kept_a + left).reshape(_count(rows), _count(inner)) @ b.permute(right + kept_b).reshape(
        _count(inner), _count(cols)
    )
    result = product.reshape(rows + cols)
    return result if out is None else out.copy_(result)


def _count(sizes: Sequence[int]) -> int:
    n = 1
    for size in sizes:
        n *= size
    return n


def einsum(*args: Any) -> Tensor:
    """Return the sum of products that the equation names: ``einsum("bij,bjk->bik", a, b)``.

    Letters name dimensions; a letter twice in one operand takes its diagonal, letters absent from the output are summed
    over, ``...`` stands for dimensions that broadcast. Without ``->`` the output is the letters that occur once, in
    order. Also ``einsum(a, [0, 1], b, [1, 2], [0, 2])``. RuntimeError for equations that do not fit the operands.
    """
    equation, operands = _read(args)
    inputs, output = _parse(equation, operands)
    sizes: dict[str, int] = {}
    arranged = [_diagonals(x, labels, sizes) for x, labels in zip(operands, inputs, strict=True)]
    labels_left = [labels for _x, labels in arranged]
    result, labels = arranged[0]
    for n in range(1, len(arranged)):
        needed = set(output).union(*labels_left[n + 1 :])
        result, labels = _multiply((result, labels), arranged[n], needed)
    gone = [i for i, label in enumerate(labels) if label not in output]
    if gone:
        result = result.sum(gone)
        labels = [label for label in labels if label in output]
    return result.permute([labels.index(label) for label in output])


def _read(args: tuple[Any, ...]) -> tuple[str, list[Tensor]]:
    if not args:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one operand and its subscripts list"
        )
    if isinstance(args[0], str):
        operands = list(args[1]) if len(args) == 2 and isinstance(args[1], tuple | list) else list(args[1:])
        if not operands:
            raise RuntimeError("einsum(): must provide at least one operand")
        return args[0].replace(" ", ""), operands

    def letters(subscripts: Sequence[Any]) -> str:
        return "".join([ELLIPSIS if s is Ellipsis else _letter(s) for s in subscripts])

    pairs = len(args) // 2
    equation = ",".join([letters(args[2 * i + 1]) for i in range(pairs)])
    if len(args) % 2:
        equation += "->" + letters(args[-1])
    return equation, [args[2 * i] for i in range(pairs)]


def _letter(number: int) -> str:
    if not 0 <= number < 52:
        raise ValueError("einsum(): subscripts must be within range [0, 52)")
    return chr(ord("A") + number) if number < 26 else chr(ord("a") + number - 26)


def _parse(equation: str, operands: list[Tensor]) -> tuple[list[list[str]], list[str]]:
    """The labels of each operand's dimensions and of the result's; an ellipsis becomes labels "0", "1", ... from the right."""
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(operands):
        raise RuntimeError(
            f"einsum(): {'fewer' if len(terms) > len(operands) else 'more'} operands were provided than specified in the equation"
        )
    inputs, widest = [], 0
    for n, (term, x) in enumerate(zip(terms, operands, strict=True)):
        before, dots, after = term.partition(ELLIPSIS)
        for c in before + after:
            if not c.isascii() or not c.isalpha():
                raise RuntimeError(
                    f"einsum(): invalid subscript given at index {term.index(c)} in the equation string, subscripts must be in [a-zA-Z]"
                )
        hidden = x.dim() - len(before) - len(after)
        if hidden < 0 or (hidden and not dots):
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({len(before) + len(after)}) does not match the "
                f"number of dimensions ({x.dim()}) for operand {n} and no ellipsis was given"
            )
        widest = max(widest, hidden)
        inputs.append([*before, *[str(hidden - 1 - i) for i in range(hidden)], *after])
    batch = [str(widest - 1 - i) for i in range(widest)]
    if arrow:
        before, dots, after = right.partition(ELLIPSIS)
        output = [*before, *(batch if dots else []), *after]
    else:
        seen = [label for labels in inputs for label in labels if label.isalpha()]
        output = [*batch, *sorted([label for label in set(seen) if seen.count(label) == 1])]
    for label in output:
        if output.count(label) > 1:
            raise RuntimeError(f"einsum(): output subscript {label} appears more than once in the output")
        if not any(label in labels for labels in inputs):
            raise RuntimeError(
                f"einsum(): output subscript {label} does not appear in the equation for any input operand"
            )
    return inputs, output


def _diagonals(x: Tensor, labels: list[str], sizes: dict[str, int]) -> tuple[Tensor, list[str]]:
    """The operand with one dimension for each label."""
    labels = list(labels)
    for i in range(len(labels) - 1, -1, -1):
        first = labels.index(labels[i])
        if first != i:
            if x.shape[first] != x.shape[i]:
                raise RuntimeError(
                    f"einsum(): subscript {labels[i]} is repeated for operand but the sizes don't match, {x.shape[i]} != {x.shape[first]}"
                )
            x = x.diagonal(0, first, i).movedim(-1, first)
            del labels[i]
    for label, size in zip(labels, x.shape, strict=True):
        known = sizes.setdefault(label, size)
        if known == 1:
            sizes[label] = size
        elif size not in (1, known):
            raise RuntimeError(
                f"einsum(): operands do not broadcast with remapped shapes: subscript {label} has sizes {known} and {size}"
            )
    return x, labels


def _multiply(
    left: tuple[Tensor, list[str]], right: tuple[Tensor, list[str]], needed: set[str]
) -> tuple[Tensor, list[str]]:
    """The product of two operands, summed over the labels that nothing needs afterwards."""
    (a, la), (b, lb) = left, right
    a, la = _sum_alone(a, la, {*lb, *needed})
    b, lb = _sum_alone(b, lb, {*la, *needed})
    shared = [label for label in la if label in lb]
    # a size of 1 beside a greater one is broadcast, which a matrix product does not do: such labels count as one-sided
    summed = [s for s in shared if s not in needed]
    a, b = _match(a, la, b, lb, summed)
    batch = [s for s in shared if s in needed]
    only_a = [label for label in la if label not in shared]
    only_b = [label for label in lb if label not in shared]
    sizes_a, sizes_b = dict(zip(la, a.shape, strict=True)), dict(zip(lb, b.shape, strict=True))
    lead = [max(sizes_a[s], sizes_b[s]) if 0 not in (sizes_a[s], sizes_b[s]) else 0 for s in batch]
    inner = _count([sizes_a[s] for s in summed])
    x = a.permute([la.index(s) for s in batch + only_a + summed])
    y = b.permute([lb.index(s) for s in batch + summed + only_b])
    x = x.reshape([sizes_a[s] for s in batch] + [_count([sizes_a[s] for s in only_a]), inner])
    y = y.reshape([sizes_b[s] for s in batch] + [inner, _count([sizes_b[s] for s in only_b])])
    product = x * y.transpose(-2, -1) if not summed and not only_a and not only_b else x @ y
    shape = lead + [sizes_a[s] for s in only_a] + [sizes_b[s] for s in only_b]
    return product.reshape(shape), batch + only_a + only_b


def _sum_alone(x: Tensor, labels: list[str], needed: set[str]) -> tuple[Tensor, list[str]]:
    gone = [i for i, label in enumerate(labels) if label not in needed]
    if not gone:
        return x, labels
    return x.sum(gone), [label for label in labels if label in needed]


def _match(a: Tensor, la: list[str], b: Tensor, lb: list[str], summed: list[str]) -> tuple[Tensor, Tensor]:
    """Operands whose summed dimensions have equal sizes: one of size 1 is expanded."""
    for label in summed:
        i, j = la.index(label), lb.index(label)
        if a.shape[i] != b.shape[j]:
            size = max(a.shape[i], b.shape[j])
            a = a.expand([size if k == i else n for k, n in enumerate(a.shape)])
            b = b.expand([size if k == j else n for k, n in enumerate(b.shape)])
    return a, b
