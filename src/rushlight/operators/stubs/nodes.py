"""The names of the nodes that an operator records, found by calling it on small inputs made from its signature."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator
from typing import Any

from ... import _C
from ..registry import Operator, Overload, Parameter

_SHAPES = ((2, 2), (2,), (2, 2, 2), (2, 2, 4, 4), (2, 2, 4, 4, 4), (1, 2, 4), ())
_NUMBERS = {"int": (0, 1, 2), "float": (0.5,), "bool": (False, True), "Number": (0.5, 1, 2), "str": ("mean", "sum")}
_SIZES = ([1], [2, 2], [0], [1, 1], [1, 1, 1], [1] * 4, [1] * 6)
_MASKS = ("condition", "mask")
_ATTEMPTS = 2000  # per overload


def node_names(operator: Operator) -> list[str]:
    """The names in the order of the overloads; empty where nothing is differentiable or no attempt succeeded."""
    state = _C.default_generator.get_state()
    found: dict[str, None] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for overload in operator.overloads if operator.differentiable else ():
            for attempt in itertools.islice(_attempts(overload), _ATTEMPTS):
                name = _node_name(operator, attempt)
                if name:
                    found[name] = None
                    break
    _C.default_generator.set_state(state)
    return list(found)


def _node_name(operator: Operator, attempt: dict[Parameter, Any]) -> str | None:
    made = {p: v.tensor() if isinstance(v, _Input) else v for p, v in attempt.items()}
    args = [v for p, v in made.items() if not p.keyword_only]
    before = [a.grad_fn for a in args if isinstance(a, _C.Tensor)]
    try:
        result = operator.callable(*args, **{p.name: v for p, v in made.items() if p.keyword_only})
    except Exception:
        return None  # these arguments do not fit: the next ones may
    for part in result if isinstance(result, tuple) else (result,):
        node = part.grad_fn if isinstance(part, _C.Tensor) else None
        if node is not None and not any(node is fn for fn in before):
            return node.name()
    return None


class _Input:
    """A tensor that is made anew for each attempt, since operators may change it. Not a leaf, so that they may."""

    def __init__(self, shape: tuple[int, ...], dtype: _C.dtype, several: bool) -> None:
        self.shape, self.dtype, self.several = shape, dtype, several

    def tensor(self) -> Any:
        made = _C.full(self.shape, 0.5 if self.dtype.is_floating_point else 1).to(self.dtype)
        if self.dtype.is_floating_point:
            made = made.requires_grad_().clone()
        return [made, made] if self.several else made


def _attempts(overload: Overload) -> Iterator[dict[Parameter, Any]]:
    """Arguments for the required parameters, and then for one that may be None too."""
    required = [p for p in overload.parameters if p.default is None]
    optional = [p for p in overload.parameters if p.optional and p.type in ("Tensor", "Number", "float")]
    for parameters in (required, required + optional[:1]):
        for shape in _SHAPES:
            choices = [_choices(p, shape, first=i == 0) for i, p in enumerate(parameters)]
            for values in itertools.product(*choices):
                yield dict(zip(parameters, values, strict=True))


def _choices(p: Parameter, shape: tuple[int, ...], first: bool) -> list[Any]:
    if p.type not in ("Tensor", "Operand", "tuple of Tensors"):
        return list(_SIZES) if p.type == "tuple of ints" else list(_NUMBERS.get(p.type, (None,)))
    several = p.type == "tuple of Tensors"
    if p.name in _MASKS:
        return [_Input(shape, _C.bool, several)]
    shapes = [shape] if first else [shape, shape[1:], shape[:1], (2, 2), (2, 2, 2)]
    whole = [] if first else [_Input(s, d, several) for d in (_C.int64, _C.bool) for s in (shape, shape[:1])]
    return [_Input(s, _C.float32, several) for s in shapes] + whole
