"""Programs drawn at random over complex tensors and their parts, changed in place, against PyTorch."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from test_complex_oracle import assert_same, shown, torch

import rushlight

pytestmark = pytest.mark.oracle


class Program:
    """Operations on complex and real tensors, on their parts and windows, and changes of these in place."""

    plain = ("neg", "exp", "sin", "tanh", "abs", "sgn", "sigmoid", "atan", "clone")
    pairs = ("add", "sub", "mul")
    views = ("row", "t", "real", "imag", "pairs", "complex", "tail")
    changes = ("mul_", "add_", "sub_", "copy_")

    def __init__(self, t: Any, seed: int) -> None:
        self.t, self.rng = t, np.random.default_rng(seed)
        kinds = (1j, 1j, 0)
        self.leaves = [t.tensor(self.draw() + k * self.draw() if k else self.draw()).requires_grad_() for k in kinds]
        self.values = [x * 1 for x in self.leaves]

    def draw(self) -> Any:
        return self.rng.normal(size=(2, 3))

    def view(self, name: str, a: Any) -> Any:
        if name == "row":
            return a[0] if a.dim() == 2 else a
        if name == "t":
            return a.t() if a.dim() == 2 else a.view_as(a)
        if name == "tail":
            return a[..., 1:]
        if name == "complex":
            return a if a.is_complex() else self.t.view_as_complex(self.t.stack([a, a * 2], -1))
        if not a.is_complex():
            return a.view_as(a)
        return self.t.view_as_real(a)[..., 1] if name == "pairs" else getattr(a, name)

    def step(self) -> None:
        group = self.rng.choice(["plain", "pairs", "views", "changes"])
        name = str(self.rng.choice(getattr(self, group)))
        a, b = (self.values[i] for i in self.rng.integers(len(self.values), size=2))
        if group == "plain":
            self.values.append(getattr(a, name)())
        elif group == "views":
            self.values.append(self.view(name, a))
        elif a.shape == b.shape and group == "pairs":
            self.values.append(getattr(a, name)(b) * 0.5)
        elif a.shape == b.shape and (a.is_complex() or not b.is_complex()):
            getattr(a, name)(b * 0.5)

    def run(self, steps: int) -> Any:
        for _ in range(steps):
            self.step()
        loss = sum((v.real * 0.3 - v.imag * 0.7).sum() if v.is_complex() else v.sum() for v in self.values)
        return shown([loss, *self.t.autograd.grad(loss, self.leaves, allow_unused=True)])


@pytest.mark.parametrize("block", range(8))
def test_random_programs(block: int) -> None:
    compared = 0
    for seed in range(block * 40, block * 40 + 40):
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                theirs = Program(torch, seed).run(12)
        except RuntimeError as error:
            assert "modified by an inplace operation" in str(error)
            continue
        assert_same(Program(rushlight, seed).run(12), theirs)
        compared += 1
    assert compared > 10
