"""Every operator of the registry, on every sample: values, types, layouts, derivatives, forms, errors, threads."""

from __future__ import annotations

import inspect
import itertools
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from samples import DTYPES, Sample, family_of, over, samples_of
from samples.compare import Unharmed, array, assert_close, assert_same, bits, parts, tensors, widened

import rushlight
from rushlight.autograd import gradcheck, gradgradcheck
from rushlight.operators.registry import Operator, operators, overloads_of

OPERATORS = operators()
REFUSALS = (RuntimeError, TypeError, NotImplementedError)


def twins(op: Operator) -> bool:
    """Does the in-place form take what the functional form takes? (`bernoulli_` takes the probability beside.)"""
    own = {tuple([p.name for p in o.parameters if p.name not in ("out", "generator")]) for o in op.overloads}
    return own <= {tuple([p.name for p in o.parameters if p.name != "generator"]) for o in overloads_of(op.changing)}


TRIED = [n for n in OPERATORS if not (n.endswith("_") and n[:-1] in OPERATORS and twins(OPERATORS[n[:-1]]))]
each = pytest.mark.parametrize("name", [n for n in TRIED if family_of(n)])


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """NumPy's warnings about infinities and NaN say nothing here."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


def call(op: Operator, sample: Sample) -> Any:
    rushlight.manual_seed(3)
    return op.callable(*sample.args, **sample.kwargs)


def changes_first(op: Operator) -> bool:
    """Is there only an in-place form (copy_, uniform_)?"""
    return op.name.endswith("_")


def written(op: Operator, sample: Sample) -> Any:
    """The argument that the operator may change."""
    at = 0 if changes_first(op) else family_of(op.name).writes
    return None if at is None else sample.args[at]


def accepted(op: Operator, candidates: tuple[str, ...] = ("float64", "int64", "bool", "complex128")) -> str:
    """The first of these types that the operator takes."""
    for dtype in candidates:
        sample = next(samples_of(op.name, dtype), None)
        if sample is None:
            continue
        try:
            call(op, fresh(sample))
        except REFUSALS:
            continue
        return dtype
    raise AssertionError(f"{op.name} takes none of {candidates}")


def fresh(sample: Sample) -> Sample:
    """The same sample on tensors of its own, strides kept."""
    return sample.map(copied)


def copied(t: rushlight.Tensor) -> rushlight.Tensor:
    plain = t.detach()
    if 0 in plain.stride() and plain.numel():
        base = plain[tuple(slice(0, 1) if s == 0 else slice(None) for s in plain.stride())].clone()
        return base.expand(plain.shape)
    return plain.clone()


def reference_call(op: Operator, sample: Sample) -> Any:
    """The call of the reference on copies of the sample's numbers, in double precision where floating."""
    family = family_of(op.name)
    convert = array if family.own_precision else widened
    arguments, keywords = over(sample.args, convert), over(sample.kwargs, convert)

    def compute() -> Any:
        result = family.reference(*arguments, **keywords)
        if op.pointwise and result.dtype.kind in "fc":  # of whole numbers, NumPy may compute in half precision
            exact = over_arrays(arguments, lambda a: a.astype(np.float64) if a.dtype.kind in "iub" else a)
            result = family.reference(*exact, **keywords)
        return result

    return compute


def over_arrays(arguments: tuple[Any, ...], f: Any) -> tuple[Any, ...]:
    return tuple([f(a) if isinstance(a, np.ndarray) else a for a in arguments])


def types_of(sample: Sample) -> tuple[str, ...]:
    """What decides whether an operator takes the sample's types."""
    keywords = [f"{k}={v}" if not isinstance(v, rushlight.Tensor) else k for k, v in sorted(sample.kwargs.items())]
    positional = [str(a.dtype) if isinstance(a, rushlight.Tensor) else type(a).__name__ for a in sample.args]
    return (*positional, *keywords)


# ---- the table itself


@pytest.mark.parametrize("name", TRIED)
def test_has_samples_and_text(name: str) -> None:
    op = OPERATORS[name]
    assert family_of(name) is not None, f"{name} has no samples: add it to a family in tests/operators/samples"
    assert any(next(samples_of(name, dtype), None) for dtype in DTYPES)
    head, _, body = op.doc.partition("\n\n")
    assert head.startswith(name) and len(body) > 3, f"{name} says nothing of itself: {op.doc!r}"
    assert isinstance(inspect.signature(op.callable), inspect.Signature)
    assert op.signatures and all(s.startswith(name + "(") for s in op.signatures)


# ---- values


@each
def test_values(name: str) -> None:
    op, family = OPERATORS[name], family_of(name)
    taken: set[tuple[str, ...]] = set()
    refused: dict[tuple[str, ...], str] = {}
    works = False
    for dtype in family.dtypes:
        made = list(samples_of(name, dtype))
        precise = list(samples_of(name, "float64"))
        for i, sample in enumerate(made):
            what = f"{name}({sample}) in {dtype}"
            if changes_first(op):
                sample = fresh(sample)
            compute = reference_call(op, sample) if family.reference else None
            unharmed = Unharmed(sample)
            try:
                result = call(op, sample)
            except REFUSALS as error:
                refused[types_of(sample)] = f"{what}: {error}"
                unharmed.check(what)
                continue
            works = True
            if all(t.numel() > 1 for t in sample.tensors()):  # what needs no work may be done in any type
                taken.add(types_of(sample))
            unharmed.check(what, besides=written(op, sample))
            if family.random or not sample.values:
                continue
            if compute is not None:
                expected = compute()
            elif dtype in ("float16", "bfloat16", "float32") and len(precise) == len(made):
                expected = call(op, fresh(precise[i]))
            else:
                continue
            ours, theirs = parts(result), parts(expected)
            assert len(ours) == len(theirs), f"{what}: {len(ours)} results, expected {len(theirs)}"
            for a, b in zip(ours, theirs):
                assert_close(a, b, family.allowed(result_type(a)), what)
    assert works, f"{name} takes no type: {refused}"
    torn = {types: refused[types] for types in taken & set(refused)}
    assert not torn, f"taken by some calls and refused by others: {torn}"


def result_type(result: Any) -> str:
    return str(getattr(result, "dtype", "float64")).removeprefix("torch.")


# ---- layouts


def strided(t: rushlight.Tensor) -> rushlight.Tensor:
    """The same numbers with gaps, starting somewhere in a larger memory."""
    wide = rushlight.zeros((*[2 * n + 1 for n in t.shape], 2), dtype=t.dtype)
    view = wide[(*[slice(1, None, 2)] * t.dim(), 1)]
    view.copy_(t)
    return view


def transposed(t: rushlight.Tensor) -> rushlight.Tensor:
    """The same numbers, the first dimension closest in memory."""
    order = tuple(range(t.dim()))[::-1]
    return t.permute(order).clone(memory_format=rushlight.contiguous_format).permute(order)


@each
@pytest.mark.parametrize("layout", [strided, transposed])
def test_layouts(name: str, layout: Any) -> None:
    op, family = OPERATORS[name], family_of(name)
    if family.random or family.strides:
        return
    dtype = accepted(op)
    for sample in samples_of(name, dtype):
        if not sample.values:
            continue
        other = sample.map(lambda t: layout(t) if t.numel() else t.clone())
        expected = call(op, fresh(sample))
        assert_same(call(op, other), expected, family.allowed(dtype), f"{name}({sample})")


@each
def test_seeds(name: str) -> None:
    if not family_of(name).random:
        return
    op = OPERATORS[name]
    dtype = accepted(op, ("float32", "int64"))
    for sample in samples_of(name, dtype):
        results = []
        for _ in range(2):
            results.append(bits(call(op, fresh(sample))))
        assert results[0] == results[1], f"{name}({sample}) draws other numbers from the same seed"


# ---- derivatives


def floating(t: Any) -> bool:
    """Has the tensor's type derivatives?"""
    return isinstance(t, rushlight.Tensor) and (t.is_floating_point() or t.is_complex())


def refuses(op: Operator, sample: Sample) -> bool:
    try:
        call(op, fresh(sample))
    except REFUSALS:
        return True
    return False


def derivable(name: str, limit: int = 24) -> Iterator[tuple[Sample, list[rushlight.Tensor]]]:
    """Samples in float64, and complex128 where that is taken, whose derivatives are defined; and their floating tensors."""
    for dtype in ("float64", "complex128"):
        for sample in samples_of(name, dtype):
            inputs = [t for t in sample.tensors() if floating(t)][: sample.variables]
            if not (sample.derivatives and sample.values and inputs and sum(t.numel() for t in inputs) <= limit):
                continue
            if dtype == "float64" or not refuses(OPERATORS[name], sample):
                yield sample, inputs


def real_sum(t: rushlight.Tensor) -> rushlight.Tensor:
    """A real number that depends on every part of every element."""
    return (t.real - 0.75 * t.imag).sum() if t.is_complex() else t.sum()


def filled_with(sample: Sample, inputs: Sequence[rushlight.Tensor]) -> Sample:
    """The sample with other tensors for its first floating ones."""
    following = iter(inputs)
    return sample.map(lambda t: next(following, t) if floating(t) else t)


def as_function(op: Operator, sample: Sample) -> Any:
    """The operator as a function of its sample's floating tensors."""

    def function(*inputs: rushlight.Tensor) -> Any:
        filled = filled_with(sample, inputs)
        if changes_first(op):
            filled.args = (filled.args[0].clone(), *filled.args[1:])
        return tuple([t for t in tensors(call(op, filled)) if floating(t)])

    return function


def leaves(inputs: list[rushlight.Tensor], needed: Any = None) -> list[rushlight.Tensor]:
    made = [t.detach().clone(memory_format=rushlight.contiguous_format) for t in inputs]
    for i, t in enumerate(made):
        t.requires_grad_(needed is None or i in needed)
    return made


@each
def test_derivatives(name: str) -> None:
    op = OPERATORS[name]
    recorded = 0
    for sample, inputs in derivable(name):
        function = as_function(op, sample)
        variables = leaves(inputs)
        what = f"{name}({sample})"
        try:
            results = function(*variables)
        except NotImplementedError:
            assert not op.differentiable, f"{what} is not for floating numbers, but declared differentiable"
            continue
        if not op.differentiable:
            assert not any(r.requires_grad for r in results), f"{what} is recorded, but declared without a derivative"
            continue
        if not any(r.requires_grad for r in results):
            continue
        recorded += 1
        precise = all(r.dtype in (rushlight.float64, rushlight.complex128) for r in results)
        if precise and all(t.numel() for t in variables):
            assert gradcheck(function, tuple(variables)), what
            assert gradgradcheck(function, tuple(variables)), what
    if op.differentiable and any(True for _ in derivable(name)):
        assert recorded, f"{name} is declared differentiable, but no sample is recorded"


@each
def test_every_subset_of_inputs(name: str) -> None:
    op = OPERATORS[name]
    if not op.differentiable:
        return
    for sample, inputs in derivable(name, limit=60):
        function = as_function(op, sample)
        what = f"{name}({sample})"
        gradients: dict[int, Any] = {}
        subsets = [s for k in range(len(inputs), -1, -1) for s in itertools.combinations(range(len(inputs)), k)]
        for needed in subsets[:16]:
            variables = leaves(inputs, needed)
            unharmed = Unharmed(tuple(variables))
            weighted = [r * (0.5 + i) for i, r in enumerate(function(*variables)) if r.requires_grad]
            unharmed.check(what, besides=written(op, sample))
            if not needed:
                assert not weighted, f"{what}: nothing requires grad, but the result does"
                continue
            if not weighted:
                continue
            total = sum(real_sum(r) for r in weighted)
            total.backward()
            for i, v in enumerate(variables):
                if i not in needed:
                    assert v.grad is None, f"{what}: a gradient for input {i}, which does not require it"
                    continue
                got = None if v.grad is None else array(v.grad)
                if len(needed) == len(inputs):
                    gradients[i] = got
                elif gradients.get(i) is None or got is None:
                    assert (got is None or not got.any()) and (gradients.get(i) is None or not gradients[i].any()), what
                else:
                    np.testing.assert_allclose(
                        got, gradients[i], 1e-12, 1e-12, err_msg=f"{what}: input {i} of {needed}"
                    )


# ---- errors


@each
def test_wrong_arguments_are_refused(name: str) -> None:
    op = OPERATORS[name]
    dtype = accepted(op)
    for sample in itertools.islice(samples_of(name, dtype), 3):
        unharmed = Unharmed(sample)
        with pytest.raises(TypeError, match=name.rstrip("_")):
            op.callable(*sample.args, **sample.kwargs, frobnicate=1)
        with pytest.raises(TypeError, match=name.rstrip("_")):
            op.callable(*[object()] * max(len(sample.args), 1), **sample.kwargs)
        with pytest.raises(TypeError, match=name.rstrip("_")):
            op.callable(*sample.args, *[object()] * 30)
        if any(p.default is None for p in op.overloads[0].parameters):
            with pytest.raises(TypeError, match=name.rstrip("_")):
                op.callable()
        unharmed.check(name)


@each
def test_dimensions_out_of_range_are_refused(name: str) -> None:
    op = OPERATORS[name]
    dtype = accepted(op)
    for sample in samples_of(name, dtype):
        for overload in op.overloads:
            found = [(i, p) for i, p in enumerate(overload.parameters) if p.name == "dim" and p.type == "int"]
            at = found[0][0] if found and (found[0][1].default != "None" or "dim" in sample.kwargs) else None
            own = isinstance(sample.args[0], rushlight.Tensor) and sample.args[0].dim() == 2 if sample.args else False
            if at is None or not own:
                continue
            if len(sample.args) > at:
                wrong = Sample((*sample.args[:at], 7, *sample.args[at + 1 :]), sample.kwargs)
            else:
                wrong = Sample(sample.args, {**sample.kwargs, "dim": -9})
            unharmed = Unharmed(wrong)
            with pytest.raises(IndexError, match="Dimension out of range"):
                call(op, wrong)
            unharmed.check(name)
            return


@pytest.mark.parametrize("name", [n for n, op in OPERATORS.items() if op.pointwise])
def test_shapes_that_do_not_broadcast_are_refused(name: str) -> None:
    op = OPERATORS[name]
    dtype = accepted(op)
    sample = next(samples_of(name, dtype))
    count = len([a for a in sample.args if isinstance(a, rushlight.Tensor)])
    if count < 2:
        return
    a, b = rushlight.ones(2, 3).to(sample.args[0].dtype), rushlight.ones(4).to(sample.args[1].dtype)
    unharmed = Unharmed((a, b))
    with pytest.raises(RuntimeError, match="must match"):
        op.callable(a, b, *sample.args[2:], **sample.kwargs)
    if op.changing is not None:
        with pytest.raises(RuntimeError, match="must match"):
            op.changing(a, b, *sample.args[2:], **sample.kwargs)
    unharmed.check(name)


# ---- threads


@pytest.mark.parametrize("name", [n for n in OPERATORS if family_of(n) and family_of(n).large])
def test_bits_do_not_depend_on_the_number_of_threads(name: str) -> None:
    op = OPERATORS[name]
    dtype = accepted(op, ("float32", "int64", "bool"))
    before = rushlight.get_num_threads()
    results = []
    try:
        for threads in (1, 2):
            rushlight.set_num_threads(threads)
            found: list[rushlight.Tensor] = []
            for sample in samples_of(name, dtype, large=True):
                variables = [t.requires_grad_() for t in sample.tensors() if floating(t) and op.differentiable]
                result = call(op, sample)
                found += tensors(result)
                recorded = [r for r in tensors(result) if r.requires_grad]
                if recorded:
                    rushlight.autograd.backward(recorded, [r.detach() for r in recorded])
                    found += [v.grad for v in variables if v.grad is not None]
            results.append(found)
    finally:
        rushlight.set_num_threads(before)
    assert results[0], f"{name} has nothing to compare"
    if family_of(name).bits:
        assert bits(results[0]) == bits(results[1]), f"{name} depends on the number of threads"
    else:
        assert_same(results[0], results[1], (1e-4, 1e-4), name)
