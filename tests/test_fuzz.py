"""No input from Python crashes the process: every operator on random shapes, strides, dtypes and arguments.

A call may succeed or raise; what it may not do is to read or write beyond its memory (the sanitizer build of `.ci/run`
sees that), to end the process, or to fail inside (SystemError). The numbers are the business of test_operators.py.
"""

from __future__ import annotations

import itertools
import os
import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from samples import Sample, samples_of

import rushlight
from rushlight.operators.registry import INPLACE, OUT, Operator, Overload, Parameter, operators, overloads_of

OPERATORS = operators()
CALLS = int(os.environ.get("RUSHLIGHT_FUZZ_CALLS", "60"))  # per operator
DTYPES = [
    getattr(rushlight, name)
    for name in [
        "bool",
        "uint8",
        "int8",
        "int16",
        "int32",
        "int64",
        "float16",
        "bfloat16",
        "float32",
        "float64",
        "complex64",
        "complex128",
    ]
]
REFUSED = (RuntimeError, TypeError, ValueError, IndexError, OverflowError, ZeroDivisionError, MemoryError, BufferError)
# sizes that a machine has no memory for, and numbers at the ends of int64: never a size that it might really allocate
EXTREMES = [-(2**63), 2**63 - 1, 2**62, 2**50, -(2**50), 2**63, -(2**63) - 1]
NEVER_FIT: set[str] = set()
WORDS = [
    "mean",
    "sum",
    "none",
    "reflect",
    "replicate",
    "circular",
    "constant",
    "left",
    "right",
    "ij",
    "xy",
    "",
    "€",
    "prod",
]
WORDS += [
    "amax",
    "amin",
    "floor",
    "trunc",
    "tanh",
    "linear",
    "nearest",
    "bilinear",
    "a,b->ab",
    "ij,jk->ik",
    "...i->i",
    "ii",
]


class Draw:
    """Random arguments of one call: dimensions come from a few sizes, so that shapes often fit together."""

    def __init__(self, seed: str) -> None:
        self.random = random.Random(seed)
        self.sizes = [self.random.choice([0, 1, 1, 2, 3, 5]) for _ in range(3)]
        self.dtype = self.random.choice(DTYPES)
        self.ndim = self.random.randint(0, 4)
        self.made: list[rushlight.Tensor] = []

    def shape(self) -> list[int]:
        ndim = self.ndim if self.random.random() < 0.7 else self.random.randint(0, 6)
        return [self.random.choice(self.sizes) for _ in range(ndim)]

    def numbers(self, shape: list[int], dtype: rushlight.dtype) -> rushlight.Tensor:
        """Row-major: small numbers, which are indices too, and now and then NaN, infinities or extremes."""
        values = np.array([self.random.randint(-2, 5) for _ in range(int(np.prod(shape)))], np.float64).reshape(shape)
        if values.size and self.random.random() < 0.3 and dtype.is_floating_point:
            values.flat[self.random.randrange(values.size)] = self.random.choice([np.nan, np.inf, -np.inf, 1e300, 0.5])
        t = rushlight.from_numpy(values).to(dtype)
        if t.numel() and self.random.random() < 0.1 and dtype is rushlight.int64:
            t.view(-1)[self.random.randrange(t.numel())] = self.random.choice(EXTREMES[:5])
        return t

    def tensor(self) -> rushlight.Tensor:
        draw = self.random.random()
        if self.made and draw < 0.15:
            t = self.random.choice(self.made)  # the same memory twice
            return t if self.random.random() < 0.5 or t.dim() == 0 else t.transpose(0, -1)
        dtype = self.dtype if self.random.random() < 0.75 else self.random.choice(DTYPES)
        t = self.strided(self.numbers(self.shape(), dtype))
        if (t.is_floating_point() or t.is_complex()) and self.random.random() < 0.4:
            t = t.detach().requires_grad_()
            if self.random.random() < 0.5:
                t = t.alias() if hasattr(t, "alias") else t.view_as(t)
        self.made.append(t)
        return t

    def strided(self, t: rushlight.Tensor) -> rushlight.Tensor:
        kind = self.random.randrange(8)
        if kind == 1 and t.dim() > 1:
            return t.permute(*self.random.sample(range(t.dim()), t.dim()))
        if kind == 2 and t.dim() and t.numel():
            return rushlight.cat([t, t], 0)[::2]
        if kind == 3 and t.dim():
            return t[:1].expand(self.random.randint(1, 4), *t.shape[1:])
        if kind == 4 and t.dim() == 1 and t.numel() > 2:
            return t.as_strided([t.numel() - 1, 2], [1, 1])  # overlapping
        if kind == 5 and self.random.random() < 0.2:
            t = t.clone()
            t.untyped_storage().resize_(self.random.choice([0, 1, t.untyped_storage().nbytes() // 2]))
        if kind == 6 and t.dim():
            return t.unsqueeze(0).select(0, 0).narrow(0, 0, t.shape[0])
        return t

    def integer(self) -> int:
        return self.random.choice(EXTREMES) if self.random.random() < 0.06 else self.random.randint(-4, 5)

    def integers(self) -> Any:
        if self.random.random() < 0.2:
            return self.integer()
        return [self.integer() for _ in range(self.random.choice([0, 1, 2, 2, 3, 4, 6]))]

    def number(self) -> Any:
        return self.random.choice(
            [0, 1, 2, -1, 0.5, 2.5, True, 1j, float("nan"), float("inf"), -float("inf"), 1e300, *EXTREMES]
        )

    def operand(self) -> Any:
        return self.tensor() if self.random.random() < 0.7 else self.number()

    def changed(self, value: Any) -> Any:
        """Another argument in the place of one that fits."""
        if isinstance(value, rushlight.Tensor):
            return self.changed_tensor(value)
        if isinstance(value, bool) or value is None or self.random.random() < 0.1:
            return self.random.choice([True, False, None, *EXTREMES, 1.5, self.tensor()])
        if isinstance(value, int):
            return self.random.choice([self.integer(), value + self.random.choice([-1, 1]), -value])
        if isinstance(value, (float, complex)):
            return self.number()
        if isinstance(value, (list, tuple)) and value:
            items = list(value)
            place = self.random.randrange(len(items))
            items[place] = self.changed(items[place])
            return items if self.random.random() < 0.8 else items[:place] + items[place + 1 :]
        return self.random.choice(WORDS) if isinstance(value, str) else value

    def changed_tensor(self, t: rushlight.Tensor) -> rushlight.Tensor:
        kind = self.random.randrange(6)
        if kind == 0:
            return self.tensor()
        if kind == 1:
            return t.detach().to(self.random.choice(DTYPES))
        if kind == 2 and t.dim():
            sizes = list(t.shape)
            sizes[self.random.randrange(len(sizes))] = self.random.choice([0, 1, 2, 4])
            return self.numbers(sizes, t.dtype)
        if kind == 3:  # other numbers: indices out of range, say
            return self.numbers(list(t.shape), t.dtype)
        if kind == 4:
            return t.detach().unsqueeze(0) if self.random.random() < 0.5 or t.dim() == 0 else t.detach().select(0, 0)
        return self.strided(t.detach())

    def changed_sample(self, sample: Sample) -> tuple[list[Any], dict[str, Any]]:
        """The arguments of a call that fits, one or two of them changed."""
        sample = sample.map(lambda t: t.detach().clone())
        args, kwargs = list(sample.args), dict(sample.kwargs)
        for _ in range(self.random.choice([0, 1, 1, 1, 2])):
            places: list[Any] = [*range(len(args)), *kwargs]
            place = self.random.choice(places)
            target: Any = kwargs if isinstance(place, str) else args
            target[place] = self.changed(target[place])
        for t in results([*args, *kwargs.values()]):
            if t.is_leaf and (t.is_floating_point() or t.is_complex()) and self.random.random() < 0.5:
                t.requires_grad_()
            self.made.append(t)
        return args, kwargs

    def argument(self, parameter: Parameter) -> Any:
        if self.random.random() < 0.02:  # a wrong type altogether
            return self.random.choice(
                [None, "word", [], [[1], 2], object(), 1.5, {}, self.tensor(), (self.tensor(), 3)]
            )
        if parameter.optional and self.random.random() < 0.3:
            return None
        return _MAKERS[parameter.type](self)


_MAKERS: dict[str, Callable[[Draw], Any]] = {
    "Tensor": Draw.tensor,
    "Operand": Draw.operand,
    "tuple of Tensors": lambda d: [d.tensor() for _ in range(d.random.randint(0, 3))],
    "int": Draw.integer,
    "tuple of ints": Draw.integers,
    "bool": lambda d: d.random.random() < 0.5,
    "Number": Draw.number,
    "float": lambda d: d.random.choice([0.0, 0.5, 1.0, -1.0, 2.0, float("nan"), float("inf"), 1e300]),
    "str": lambda d: d.random.choice(WORDS),
    "torch.dtype": lambda d: d.random.choice(DTYPES),
    "torch.device": lambda d: "cpu",
    "torch.layout": lambda d: rushlight.strided,
    "torch.Generator": lambda d: rushlight.Generator(),
    "torch.memory_format": lambda d: d.random.choice(
        [rushlight.contiguous_format, rushlight.preserve_format, rushlight.channels_last, rushlight.channels_last_3d]
    ),
}


def arguments(draw: Draw, overload: Overload) -> tuple[list[Any], dict[str, Any]]:
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for parameter in overload.parameters:
        if parameter.default is not None and draw.random.random() < (0.8 if parameter.keyword_only else 0.4):
            continue
        if parameter.keyword_only or len(kwargs) or parameter.default is not None:
            kwargs[parameter.name] = draw.argument(parameter)
        else:
            args.append(draw.argument(parameter))
    return args, kwargs


def results(value: Any) -> list[rushlight.Tensor]:
    if isinstance(value, rushlight.Tensor):
        return [value]
    return [t for part in value for t in results(part)] if isinstance(value, (tuple, list)) else []


def exercise(draw: Draw, value: Any) -> None:
    """Look at every number, and go back through what was recorded."""
    for t in results(value):
        repr(t)
        t.clone()
        if t.requires_grad and t.numel():
            grads = rushlight.autograd.grad(
                [t],
                [m for m in draw.made if m.requires_grad],
                [rushlight.ones_like(t)],
                create_graph=True,
                allow_unused=True,
            )
            for g in grads:
                if g is not None and g.requires_grad and g.numel():
                    g.sum().abs().backward()


def attempt(function: Callable[..., Any], overload: Overload, seed: str, with_out: bool, samples: list[Sample]) -> bool:
    """One call; was it accepted?"""
    draw = Draw(seed)
    try:
        if samples and draw.random.random() < 0.6:
            args, kwargs = draw.changed_sample(draw.random.choice(samples))
        else:
            args, kwargs = arguments(draw, overload)
        if with_out:
            outs = [draw.tensor() for _ in range(max(1, len(overload.fields)))]
            kwargs["out"] = outs[0] if len(outs) == 1 else tuple(outs)
        exercise(draw, function(*args, **kwargs))
    except REFUSED:
        return False
    return True


def known(name: str) -> list[Sample]:
    """Calls that fit, from the samples of the registry's test."""
    return [s for dtype in ("float64", "float32", "int64") for s in itertools.islice(samples_of(name, dtype), 20)]


def forms_of(operator: Operator) -> list[tuple[Callable[..., Any], Overload, bool]]:
    """Each way to call an operator, in place and with out= too."""
    forms = [(operator.callable, overload, False) for overload in operator.overloads]
    if INPLACE in operator.forms:
        forms += [(operator.changing, overload, False) for overload in overloads_of(operator.changing)]
    if OUT in operator.forms:
        forms += [(operator.callable, overload, True) for overload in operator.overloads]
    return forms


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("name", OPERATORS)
def test_no_arguments_crash(name: str) -> None:
    forms, samples = forms_of(OPERATORS[name]), known(name)
    accepted = 0
    for form, (function, overload, with_out) in enumerate(forms):
        for call in range(max(10, CALLS // len(forms))):
            accepted += attempt(function, overload, f"{name} {form} {call}", with_out, samples)
    assert accepted > 0 or name in NEVER_FIT, "every call was refused: the arguments drawn never fit"
