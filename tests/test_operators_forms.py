"""The other forms of every operator of the registry: in place, and with ``out=``."""

from __future__ import annotations

from typing import Any

import pytest
from samples import Sample, family_of, samples_of
from samples.compare import Unharmed, array, assert_close, assert_same, tensors

import rushlight
from rushlight.operators.registry import INPLACE, OUT, Operator
from test_operators import (
    OPERATORS,
    TRIED,
    _quiet,  # noqa: F401
    accepted,
    as_function,
    call,
    changes_first,
    derivable,
    filled_with,
    floating,
    fresh,
    leaves,
    real_sum,
    strided,
    twins,
)

each_changing = pytest.mark.parametrize(
    "name", [n for n, op in OPERATORS.items() if INPLACE in op.forms and twins(op) and family_of(n)]
)
each_with_out = pytest.mark.parametrize("name", [n for n, op in OPERATORS.items() if OUT in op.forms and family_of(n)])


# ---- in-place forms


def in_place(op: Operator, sample: Sample) -> Any:
    rushlight.manual_seed(3)
    return op.changing(*sample.args, **sample.kwargs)


@each_changing
def test_in_place_equals_functional(name: str) -> None:
    op = OPERATORS[name]
    if changes_first(op):
        return
    dtype = accepted(op)
    done = 0
    for sample in samples_of(name, dtype):
        if not sample.args or not isinstance(sample.args[0], rushlight.Tensor):
            continue
        what = f"{name}_({sample})"
        expected = call(op, fresh(sample))
        changed = fresh(sample)
        target = changed.args[0]
        fits = tuple(expected.shape) == tuple(target.shape) and not (0 in target.stride() and target.numel() > 1)
        fits = fits or family_of(name).reshapes
        unharmed = Unharmed(changed)
        if not fits or not rushlight.can_cast(expected.dtype, target.dtype):
            with pytest.raises(RuntimeError):
                in_place(op, changed)
            unharmed.check(what)
            continue
        version = target._version
        result = in_place(op, changed)
        assert result is target, f"{what} does not return its first argument"
        changes = target._version - version  # a random operator may be several, or none where it keeps everything
        assert family_of(name).random or changes == 1, f"{what}: version {version} became {target._version}"
        assert_same(target, expected.to(target.dtype), what=what)
        if family_of(name).writes is None:
            unharmed.check(what, besides=target)
        done += 1
    assert done, f"no sample of {name} can be computed in place"


@each_changing
def test_in_place_gradients_equal_functional(name: str) -> None:
    op = OPERATORS[name]
    if changes_first(op) or not op.differentiable:
        return
    for sample, inputs in derivable(name, limit=60):
        if not floating(sample.args[0]) or 0 in sample.args[0].stride():
            continue
        functional = leaves(inputs)
        result = as_function(op, sample)(*functional)[0]
        fits = tuple(result.shape) == tuple(sample.args[0].shape) and result.dtype == sample.args[0].dtype
        if not result.requires_grad or not fits:
            continue
        real_sum(result.mul(result.detach() + 0.5)).backward()
        changing = leaves(inputs)
        filled = filled_with(sample, [changing[0].clone(), *changing[1:]])
        after = in_place(op, filled)
        real_sum(after.mul(after.detach() + 0.5)).backward()
        for a, b in zip(changing, functional):
            assert (a.grad is None) == (b.grad is None), f"{name}_({sample})"
            if a.grad is not None:
                assert_close(a.grad, b.grad, (1e-12, 1e-12), f"{name}_({sample})")


@pytest.mark.parametrize(
    "name", [n for n in TRIED if n.endswith("_") or (INPLACE in OPERATORS[n].forms and twins(OPERATORS[n]))]
)
def test_in_place_is_refused(name: str) -> None:
    op = OPERATORS[name]
    dtype = accepted(op)
    change = op.changing or op.callable
    for sample in samples_of(name, dtype):
        target = sample.args[0] if sample.args else None
        if not isinstance(target, rushlight.Tensor) or target.dim() == 0 or target.numel() < 2 or 0 in target.stride():
            continue
        if dtype == "float64":
            leaf = fresh(sample)
            leaf.args[0].requires_grad_()
            unharmed = Unharmed(leaf)
            with pytest.raises(RuntimeError, match=r"a leaf Variable that requires grad|cannot resize variables"):
                change(*leaf.args, **leaf.kwargs)
            unharmed.check(f"{name} of a leaf")
        overlapping = fresh(sample)
        base = overlapping.args[0][..., :1]
        overlapping.args = (base.expand(target.shape), *overlapping.args[1:])
        if target.shape[-1] == 1 or family_of(name).reshapes:
            continue
        if name in ("fill", "fill_", "zero_", "fill_diagonal_"):  # one number, written many times, does no harm
            written_to = change(*overlapping.args, **overlapping.kwargs)
            assert written_to is overlapping.args[0] and array(written_to).max() == (name != "zero_")
            return
        unharmed = Unharmed(overlapping)
        with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
            change(*overlapping.args, **overlapping.kwargs)
        unharmed.check(f"{name} of an expanded tensor")
        return


# ---- out=


def with_out(op: Operator, sample: Sample, outs: list[rushlight.Tensor], single: bool) -> Any:
    return op.callable(*sample.args, **sample.kwargs, out=outs[0] if single else tuple(outs))


def defined(name: str) -> bool:
    """Are the numbers of some result defined?"""
    return any(s.values for s in samples_of(name, "float64"))


@each_with_out
def test_out_equals_functional(name: str) -> None:
    op, family = OPERATORS[name], family_of(name)
    if changes_first(op):
        return
    dtype = accepted(op)
    done = 0
    for sample in samples_of(name, dtype):
        if not sample.values or family.random or "dtype" in sample.kwargs:
            continue
        what = f"{name}({sample}, out=)"
        expected = call(op, fresh(sample))
        results = tensors(expected)
        if not results or isinstance(expected, list):
            continue
        single = isinstance(expected, rushlight.Tensor)
        unharmed = Unharmed(sample)
        for make in (rushlight.empty_like, lambda t: rushlight.empty((0,), dtype=t.dtype), strided):
            outs = [make(t) for t in results]
            versions = [t._version for t in outs]
            strides = [t.stride() for t in outs]
            got = with_out(op, sample, outs, single)
            unharmed.check(what)
            for i, (g, out, wanted) in enumerate(zip(tensors(got), outs, results)):
                assert g is out, f"{what} returns another tensor"
                assert_same(out, wanted, what=what)
                if make is not strided or out.numel() > 0:
                    assert out._version > versions[i] or out.numel() == 0, f"{what}: the version was not counted"
                if make is strided:
                    assert out.stride() == strides[i], f"{what}: a fitting tensor lost its strides"
        done += 1
    assert done or not defined(name), f"no sample of {name} can be tried with out="


@each_with_out
def test_out_is_refused(name: str) -> None:
    op, family = OPERATORS[name], family_of(name)
    if changes_first(op) or family.random:
        return
    dtype = accepted(op)
    for sample in samples_of(name, dtype):
        if not sample.values or "dtype" in sample.kwargs:
            continue
        expected = call(op, fresh(sample))
        if not isinstance(expected, rushlight.Tensor) or expected.numel() < 2:
            continue
        out = rushlight.zeros_like(expected)
        if expected.dtype.is_floating_point and sample.tensors():  # a factory makes numbers of the type of out=
            whole = rushlight.zeros(expected.shape, dtype=rushlight.int64)
            unharmed = Unharmed(sample, (whole,))
            with pytest.raises(RuntimeError, match="can't be cast to the desired output type"):
                call_with_out(op, sample, whole)
            unharmed.check(f"{name}(out=) of a type that cannot hold the result")
            if op.differentiable:
                recorded = sample.map(lambda t: t.detach().clone().requires_grad_() if floating(t) else t)
                if recorded.tensors() and any(t.requires_grad for t in recorded.tensors()):
                    unharmed = Unharmed(recorded, (out,))
                    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
                        call_with_out(op, recorded, out)
                    unharmed.check(f"{name}(out=) of inputs that require grad")
        single = rushlight.zeros((1,) * expected.dim(), dtype=expected.dtype).expand(expected.shape)
        unharmed = Unharmed(sample, (single,))
        with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
            call_with_out(op, sample, single)
        unharmed.check(f"{name}(out=) of an expanded tensor")
        with pytest.raises(TypeError):
            call_with_out(op, sample, 3)
        return


def call_with_out(op: Operator, sample: Sample, out: Any) -> Any:
    return op.callable(*sample.args, **sample.kwargs, out=out)
