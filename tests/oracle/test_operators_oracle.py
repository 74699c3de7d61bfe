"""Every operator of the registry on every sample and type against PyTorch: what is taken and refused, types, numbers."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rushlight
from rushlight.operators.registry import operators

sys.path.insert(0, str(Path(__file__).parents[1] / "operators"))
from samples import DTYPES, family_of, over, samples_of
from samples.compare import array, parts

torch = pytest.importorskip("torch", reason="the oracle is installed by .ci/run only")
pytestmark = pytest.mark.oracle

OPERATORS = operators()


def theirs(op: Any) -> Any:
    """PyTorch's operator of that name, where it has it, as its core offers it."""
    functions = torch._C._VariableFunctions
    places = (
        [torch._C._nn, functions, torch.Tensor] if "nn" in op.forms else [functions, torch.Tensor, torch._C._linalg]
    )
    if op.forms <= {"method", "inplace"}:
        places = [torch.Tensor]
    return next((getattr(place, op.name) for place in places if hasattr(place, op.name)), None)


NAMES = [n for n, op in OPERATORS.items() if theirs(op) is not None and family_of(n) and not family_of(n).random]


def converted(value: Any) -> Any:
    """The same call for PyTorch: tensors with the same strides, its types."""
    if isinstance(value, rushlight.Tensor):
        dtype, size, stride = getattr(torch, kind(value)), tuple(value.shape), value.stride()
        plain = torch.from_numpy(np.array(array(value))).to(dtype)
        if 0 in stride and value.numel():  # expanded
            return plain[tuple([slice(0, 1) if s == 0 else slice(None) for s in stride])].expand(size)
        made = torch.empty_strided(size, stride, dtype=dtype)
        return made.copy_(plain) if made.numel() else made
    if isinstance(value, tuple | list):
        return type(value)([converted(v) for v in value])
    if isinstance(value, dict):
        return {k: converted(v) for k, v in value.items()}
    if isinstance(value, rushlight.dtype | rushlight.memory_format):
        return getattr(torch, str(value).removeprefix("torch."))
    if isinstance(value, rushlight.device):
        return torch.device(str(value))
    return value


def kind(t: Any) -> str:
    return str(t.dtype).removeprefix("torch.")


def outcome(function: Any, args: Any, kwargs: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return parts(function(*args, **kwargs))
        except Exception as error:
            return error


def described(result: Any) -> Any:
    if isinstance(result, Exception):
        return "refused"
    return [(kind(r), tuple(r.shape)) if hasattr(r, "dtype") else type(r).__name__ for r in result]


def as_array(t: Any) -> Any:
    if isinstance(t, rushlight.Tensor):
        return array(t)
    if isinstance(t, torch.Tensor):
        plain = t.detach()
        return (plain.float() if plain.dtype == torch.bfloat16 else plain).resolve_conj().numpy()
    return np.asarray(t)


# PyTorch's series for these are short
ROUGH = {"_dirichlet_grad": 1e-5, "_standard_gamma_grad": 1e-4, "polygamma": 1e-8}
# What differs on purpose, and keeps differing.
KNOWN = {
    **dict.fromkeys(
        ("bmm", "matmul", "mm", "mv"), "products of bool are refused even where there is nothing to compute"
    ),
    **dict.fromkeys(("log_softmax", "softmax"), "integers are refused even where there is nothing to compute"),
    **dict.fromkeys(("copysign", "signbit"), "the sign of a NaN that became bfloat16"),
    **dict.fromkeys(
        ("amax", "amin", "cummax", "cummin"), "complex numbers are refused even where there is nothing to compare"
    ),
    "_unique2": "takes a dimension, which PyTorch gives to unique_dim",
    "avg_pool3d": "half types are taken",
    "pixel_unshuffle": "PyTorch gives an empty tensor back in its old shape",
}
NAMES = [pytest.param(n, marks=pytest.mark.xfail(reason=KNOWN[n], strict=True)) if n in KNOWN else n for n in NAMES]


def with_reduction(op: Any, args: Any, kwargs: Any) -> Any:
    """PyTorch's core leaves losses unreduced unless told, which its package always does: 1 is the mean."""
    places = [i for i, p in enumerate(op.overloads[0].parameters) if p.name == "reduction"]
    return {"reduction": 1, **kwargs} if places and len(args) <= places[0] else kwargs


@pytest.mark.parametrize("name", NAMES)
def test_operator(name: str) -> None:
    op, family, twin = OPERATORS[name], family_of(name), theirs(OPERATORS[name])
    wrong: list[str] = []
    for dtype in DTYPES:
        for sample in samples_of(name, dtype):
            args, kwargs = converted(sample.args), converted(sample.kwargs)
            mine = outcome(op.callable, *[over(v, lambda t: t.detach().clone()) for v in (sample.args, sample.kwargs)])
            other = outcome(twin, args, with_reduction(op, args, kwargs))
            what = f"{name}({sample})"
            if described(mine) != described(other):
                wrong.append(f"{what}: {describe(mine)}, PyTorch: {describe(other)}")
            elif isinstance(mine, Exception):
                if not isinstance(mine, type(other)):
                    wrong.append(f"{what}: {describe(mine)}, PyTorch: {describe(other)}")
            elif sample.values:
                for a, b in zip(mine, other):
                    tolerance = family.allowed(kind(a) if hasattr(a, "dtype") else "float64")
                    tolerance = (max(tolerance[0], ROUGH.get(name, 0)), tolerance[1])
                    if not np.allclose(as_array(a), as_array(b), *tolerance, equal_nan=True):
                        wrong.append(f"{what}: {as_array(a).tolist()}, PyTorch: {as_array(b).tolist()}")
    assert not wrong, f"{len(wrong)} differ:\n" + "\n".join(wrong[:40])


def describe(result: Any) -> str:
    if isinstance(result, Exception):
        return f"{type(result).__name__}: {str(result)[:90]}"
    return str(described(result))
