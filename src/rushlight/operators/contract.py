"""Contractions: ``einsum`` and ``tensordot``, as permutations around batched matrix products.

What is to be done depends on the equation and the shapes alone. It is planned once for them, with operands that have
labels and sizes but no numbers; a call looks its plan up and follows it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .. import _C

__all__ = ["einsum", "tensordot"]

Tensor = _C.Tensor
ELLIPSIS = "..."
Shape = tuple[int, ...]
Steps = tuple[tuple[Callable[..., Tensor], tuple[Any, ...]], ...]


class Product(NamedTuple):
    """One product: what is done to the operands before it, and the operator."""

    left: Steps
    right: Steps
    operator: Callable[[Tensor, Tensor], Tensor]


class Plan(NamedTuple):
    """A contraction: the products of the result so far with the next operand, and what is done at the end."""

    products: tuple[Product, ...]
    last: Steps

    def follow(self, operands: Sequence[Tensor]) -> Tensor:
        """The contraction of these operands."""
        result = operands[0]
        for (left, right, operator), x in zip(self.products, operands[1:], strict=True):
            for method, args in left:
                result = method(result, *args)
            for method, args in right:
                x = method(x, *args)
            result = operator(result, x)
        for method, args in self.last:
            result = method(result, *args)
        return result


def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Tensor | None = None) -> Tensor:
    """Return the sum of products over pairs of dimensions: the last ``dims`` of ``a`` with the first of ``b``, or the
    two lists of ``dims``. RuntimeError where paired sizes differ (a size of 1 is broadcast)."""
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.dim(), b.dim()):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        left, right = tuple(range(a.dim() - dims, a.dim())), tuple(range(dims))
    else:
        left, right = [(d,) if isinstance(d, int) else tuple([int(i) for i in d]) for d in dims]
    result = _pairs_plan(a.shape, b.shape, left, right).follow((a, b))
    return result if out is None else out.copy_(result)


@functools.lru_cache(maxsize=512)
def _pairs_plan(a: Shape, b: Shape, left: Shape, right: Shape) -> Plan:
    if len(left) != len(right):
        raise RuntimeError("both dimension lists should have same length")
    first, second = [f"a{i}" for i in range(len(a))], [f"b{j}" for j in range(len(b))]
    for i, j in zip(left, right, strict=True):
        i, j = _wrapped(i, len(a)), _wrapped(j, len(b))
        if a[i] != b[j] and 1 not in (a[i], b[j]):
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {a[i]} in dim {i} and second has "
                f"size {b[j]} in dim {j}"
            )
        if not first[i].startswith("a") or not second[j].startswith("b"):
            raise RuntimeError(
                f"dim {i if not first[i].startswith('a') else j} appears multiple times in the list of dims"
            )
        first[i] = second[j] = f"both{i}"
    kept = [label for label in first + second if not label.startswith("both")]
    return _planned([first, second], kept, (a, b))


def _wrapped(dim: int, rank: int) -> int:
    if not -rank <= dim < rank:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {dim})")
    return dim % rank


def einsum(*args: Any) -> Tensor:
    """Return the sum of products that the equation names: ``einsum("bij,bjk->bik", a, b)``.

    Letters name dimensions; a letter twice in one operand takes its diagonal, letters absent from the output are summed
    over, ``...`` stands for dimensions that broadcast. Without ``->`` the output is the letters that occur once, in
    order. Also ``einsum(a, [0, 1], b, [1, 2], [0, 2])``. RuntimeError for equations that do not fit the operands.
    """
    equation, operands = _read(args)
    try:
        shapes = [x.shape for x in operands]
    except AttributeError:
        wrong = next(i for i, x in enumerate(operands) if not isinstance(x, Tensor))
        raise TypeError(
            f"einsum(): expected Tensor as operand {wrong}, but got {type(operands[wrong]).__name__}"
        ) from None
    return _equation_plan(equation, *shapes).follow(operands)


@functools.lru_cache(maxsize=512)
def _equation_plan(equation: str, *shapes: Shape) -> Plan:
    return _planned(*_parse(equation.replace(" ", ""), [len(shape) for shape in shapes]), shapes)


def _read(args: tuple[Any, ...]) -> tuple[str, list[Tensor]]:
    if not args:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one operand and its subscripts list"
        )
    if isinstance(args[0], str):
        operands = list(args[1]) if len(args) == 2 and isinstance(args[1], tuple | list) else list(args[1:])
        if not operands:
            raise RuntimeError("einsum(): must provide at least one operand")
        return args[0], operands

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


def _parse(equation: str, ranks: list[int]) -> tuple[list[list[str]], list[str]]:
    """The labels of each operand's dimensions and of the result's; an ellipsis becomes labels "0", "1", ... from the right."""
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise RuntimeError(
            f"einsum(): {'fewer' if len(terms) > len(ranks) else 'more'} operands were provided than specified in the equation"
        )
    inputs, widest = [], 0
    for n, (term, rank) in enumerate(zip(terms, ranks, strict=True)):
        before, dots, after = term.partition(ELLIPSIS)
        for c in before + after:
            if not c.isascii() or not c.isalpha():
                raise RuntimeError(
                    f"einsum(): invalid subscript given at index {term.index(c)} in the equation string, subscripts must be in [a-zA-Z]"
                )
        hidden = rank - len(before) - len(after)
        if hidden < 0 or (hidden and not dots):
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({len(before) + len(after)}) does not match the "
                f"number of dimensions ({rank}) for operand {n} and no ellipsis was given"
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


class _Arranged:
    """An operand of a plan: the labels and sizes of its dimensions, and the steps that lead there."""

    def __init__(self, labels: list[str], sizes: Sequence[int]) -> None:
        self.labels, self.sizes = list(labels), list(sizes)
        self.steps: list[tuple[Callable[..., Tensor], tuple[Any, ...]]] = []

    def size(self, label: str) -> int:
        return self.sizes[self.labels.index(label)]

    def take_diagonals(self) -> None:
        """Leave one dimension for each label."""
        for i in range(len(self.labels) - 1, -1, -1):
            first = self.labels.index(self.labels[i])
            if first == i:
                continue
            if self.sizes[first] != self.sizes[i]:
                raise RuntimeError(
                    f"einsum(): subscript {self.labels[i]} is repeated for operand but the sizes don't match, "
                    f"{self.sizes[i]} != {self.sizes[first]}"
                )
            self.steps.append((Tensor.diagonal, (0, first, i)))
            self.steps.append((Tensor.movedim, (-1, first)))
            del self.labels[i], self.sizes[i]

    def sum_alone(self, needed: set[str]) -> None:
        """Sum over the labels that nothing needs."""
        gone = [i for i, label in enumerate(self.labels) if label not in needed]
        if gone:
            self.steps.append((Tensor.sum, (gone,)))
            self.sizes = [n for i, n in enumerate(self.sizes) if i not in gone]
            self.labels = [label for label in self.labels if label in needed]

    def expand(self, label: str, size: int) -> None:
        """Repeat a dimension of size 1."""
        if self.size(label) != size:
            self.sizes[self.labels.index(label)] = size
            self.steps.append((Tensor.expand, (list(self.sizes),)))

    def permute(self, labels: list[str]) -> None:
        """Bring the dimensions in this order."""
        order = [self.labels.index(label) for label in labels]
        if order != sorted(order):
            self.steps.append((Tensor.permute, (order,)))
        self.labels, self.sizes = list(labels), [self.sizes[i] for i in order]

    def reshape(self, sizes: list[int]) -> None:
        """Give the numbers another shape; the labels name nothing until they are set again."""
        if sizes != self.sizes:
            self.steps.append((Tensor.reshape, (sizes,)))
        self.sizes = list(sizes)


def _planned(inputs: list[list[str]], output: list[str], shapes: Sequence[Shape]) -> Plan:
    """The plan for operands with these labels and shapes."""
    arranged = [_Arranged(labels, shape) for labels, shape in zip(inputs, shapes, strict=True)]
    known: dict[str, int] = {}
    for x in arranged:
        x.take_diagonals()
        for label, size in zip(x.labels, x.sizes, strict=True):
            if known.setdefault(label, size) == 1:
                known[label] = size
            elif size not in (1, known[label]):
                raise RuntimeError(
                    f"einsum(): operands do not broadcast with remapped shapes: subscript {label} has sizes "
                    f"{known[label]} and {size}"
                )
    result, products = arranged[0], []
    for n in range(1, len(arranged)):
        needed = set(output).union(*[x.labels for x in arranged[n + 1 :]])
        product, result = _product(result, arranged[n], needed)
        products.append(product)
    result.sum_alone(set(output))
    result.permute(output)
    return Plan(tuple(products), tuple(result.steps))


def _product(a: _Arranged, b: _Arranged, needed: set[str]) -> tuple[Product, _Arranged]:
    """The product of two operands, summed over the labels that nothing needs afterwards, and what it gives."""
    a.sum_alone({*b.labels, *needed})
    b.sum_alone({*a.labels, *needed})
    shared = [label for label in a.labels if label in b.labels]
    summed = [label for label in shared if label not in needed]
    for label in summed:  # a matrix product does not broadcast what it sums over
        a.expand(label, b.size(label)) if a.size(label) == 1 else b.expand(label, a.size(label))
    batch = [label for label in shared if label in needed]
    only_a = [label for label in a.labels if label not in shared]
    only_b = [label for label in b.labels if label not in shared]
    a.permute(batch + only_a + summed)
    b.permute(batch + summed + only_b)
    lead = len(batch)
    batches = [m if n == 1 else n for m, n in zip(a.sizes[:lead], b.sizes[:lead], strict=True)]
    rows, columns = a.sizes[lead : lead + len(only_a)], b.sizes[lead + len(summed) :]
    inner = math.prod(b.sizes[lead : lead + len(summed)])
    if summed:
        # without a batch, a matrix product takes a vector where nothing else is left of an operand
        a.reshape(a.sizes[:lead] + ([math.prod(rows)] if lead or only_a else []) + [inner])
        b.reshape(b.sizes[:lead] + [inner] + ([math.prod(columns)] if lead or only_b else []))
    else:
        a.reshape(a.sizes + [1] * len(columns))
        b.reshape(b.sizes[:lead] + [1] * len(rows) + columns)
    product = Product(tuple(a.steps), tuple(b.steps), Tensor.matmul if summed else Tensor.mul)
    given = batches + ([math.prod(rows)] if lead or only_a else []) + ([math.prod(columns)] if lead or only_b else [])
    result = _Arranged(batch + only_a + only_b, given if summed else batches + rows + columns)
    result.reshape(batches + rows + columns)
    return product, result
