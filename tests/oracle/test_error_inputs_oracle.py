"""PyTorch's own lists of wrong inputs: each is refused with an exception of PyTorch's class."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import rushlight

torch = pytest.importorskip("torch", reason="the oracle is installed by .ci/run only")
pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

# what is not there: other layouts and devices, complex transforms
ABSENT = ("sparse.", "torch.ops.", "_refs.")
# What differs on purpose or is still to be built, by operator: how many of its wrong inputs are taken or refused with
# another class.
KNOWN = {
    "__rdiv__": 2,  # called of a number: the TypeError of a type's method
    "aminmax": 1,  # out= of another floating type is converted into
    "complex": 1,  # the same
    "gather": 1,  # the same
    "narrow_copy": 1,  # IndexError for a dimension out of range, as everywhere else
    "nn.functional.multi_margin_loss": 2,  # the target's type is looked at before the weight's shape
    "nn.functional.softshrink": 1,  # a negative lambda
    "normal": 1,  # TypeError for numbers that fit no signature
}


def ours(name: str) -> Any:
    place: Any = rushlight
    try:
        for part in name.split("."):
            place = getattr(place, part)
    except (AttributeError, ImportError):
        return getattr(rushlight.Tensor, name, None)
    return place


def converted(value: Any) -> Any:
    """The same argument here; raises ValueError for what has no counterpart."""
    if isinstance(value, torch.Tensor):
        if value.layout != torch.strided or value.device.type != "cpu" or value.is_quantized:
            raise ValueError("another layout or device")
        plain = value.detach().resolve_conj().resolve_neg()
        dtype = getattr(rushlight, str(value.dtype).removeprefix("torch."))
        made = rushlight.empty(tuple(value.shape), dtype=dtype)
        if value.numel():
            numbers = plain.float() if value.dtype == torch.bfloat16 else plain
            made = rushlight.from_numpy(numbers.numpy().copy()).to(dtype)
        return made.requires_grad_(value.requires_grad)
    if isinstance(value, tuple | list):
        parts = [converted(v) for v in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if isinstance(value, dict):
        return {k: converted(v) for k, v in value.items()}
    if isinstance(value, torch.dtype | torch.layout | torch.memory_format):
        return getattr(rushlight, str(value).removeprefix("torch."))
    return rushlight.device(str(value)) if isinstance(value, torch.device) else value


def raised(function: Any, args: Any, kwargs: Any) -> Exception | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            function(*args, **kwargs)
        except Exception as error:
            return error
    return None


def operators() -> list[Any]:
    from torch.testing._internal.common_methods_invocations import op_db

    tried = [op for op in op_db if op.error_inputs_func is not None and not op.name.startswith(ABSENT)]
    return [op for op in tried if ours(op.name) is not None]


@pytest.mark.parametrize(
    "op", operators(), ids=lambda op: f"{op.name}{op.variant_test_name and '/'}{op.variant_test_name}"
)
def test_wrong_inputs(op: Any) -> None:
    function, wrong = ours(op.name), []
    for case in op.error_inputs("cpu"):
        sample = case.sample_input
        try:
            args, kwargs = converted((sample.input, *sample.args)), converted(sample.kwargs)
        except (ValueError, AttributeError, RuntimeError):  # what has no counterpart: more than 64 dimensions, say
            continue
        mine, theirs = raised(function, args, kwargs), raised(op.op, (sample.input, *sample.args), sample.kwargs)
        if theirs is None or "memory location" in str(theirs):  # arguments that share memory are not carried over
            continue
        if not isinstance(mine, type(theirs)):
            wrong.append(f"{type(mine).__name__}: {mine}\n    PyTorch: {type(theirs).__name__}: {theirs}"[:400])
    assert len(wrong) == KNOWN.get(op.name, 0), "\n".join(wrong)
