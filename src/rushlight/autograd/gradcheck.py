"""Derivatives held to finite differences (``torch.autograd.gradcheck``).

With ``f`` from inputs to outputs, slow mode compares every entry of the Jacobian, and fast mode the one number
``v^T J u`` for random unit vectors ``u`` and ``v``. A complex output is two real outputs, its real and its imaginary
part, selected by the cotangents ``e_k`` and ``1j * e_k``; by PyTorch's convention the gradient of a real number ``L``
with respect to ``x + 1j * y`` is ``dL/dx + 1j * dL/dy``.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import rushlight
from rushlight import Tensor
from rushlight._C import _run_backward

from . import _finite_difference as finite_difference
from ._finite_difference import as_tuple
from .functional import _units

__all__ = [
    "GradcheckError",
    "get_analytical_jacobian",
    "get_numerical_jacobian",
    "gradcheck",
    "gradgradcheck",
]

Func: TypeAlias = Callable[..., Any]


class GradcheckError(RuntimeError):
    """A derivative is wrong, or an implementation of one breaks a rule that it has to keep."""


def gradcheck(
    func: Func,
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Return True if the derivatives of ``func`` at ``inputs`` agree with central differences of step ``eps``.

    ``func`` takes ``inputs``, a tensor or a tuple, and returns a tensor or a tuple; compared are floating and complex
    inputs that require grad, within ``atol + rtol * abs(numerical)``. Inputs should be float64 or complex128 (a warning
    says so) and must not overlap themselves in memory.

    ``nondet_tol`` is how far two backward passes may differ; ``check_undefined_grad`` leaves gradients of outputs
    undefined; ``check_grad_dtypes`` holds gradients to the dtype of their input; ``check_batched_grad`` and
    ``check_batched_forward_grad`` compare with ``func.vmap``; ``check_forward_ad`` and ``check_backward_ad`` choose the
    modes; ``fast_mode`` compares one random projection. ``masked`` concerns sparse inputs, which do not exist here.

    Raises GradcheckError at the first difference (returns False with ``raise_exception=False``), ValueError if no
    input requires grad, RuntimeError for an input with a stride of 0.
    """
    for needed, message in (
        (
            check_forward_ad or check_backward_ad,
            "Expected at least one of check_forward_ad or check_backward_ad to be True",
        ),
        (
            check_backward_ad or not check_batched_grad,
            "Setting check_batched_grad=True requires check_backward_ad to be True",
        ),
        (
            check_forward_ad or not check_batched_forward_grad,
            "Setting check_batched_forward_grad=True requires check_forward_ad to be True",
        ),
    ):
        if not needed:
            raise AssertionError(message)
    subject = Subject(func, as_tuple(inputs), eps, atol, rtol, nondet_tol, check_grad_dtypes, fast_mode)
    try:
        subject.check_inputs()
        if not subject.evaluate():
            return subject.check_constant()
        if check_backward_ad:
            subject.check_backward()
        if check_forward_ad:
            from . import _gradcheck_forward

            _gradcheck_forward.check(subject, check_undefined_grad, check_batched_forward_grad)
        if check_backward_ad:
            from . import _gradcheck_rules

            if check_batched_grad:
                _gradcheck_rules.check_batched(subject)
            _gradcheck_rules.check_linear(subject)
            if check_undefined_grad:
                _gradcheck_rules.check_undefined(subject)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Func,
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Return True if second derivatives of ``func`` agree with central differences of its gradients.

    :func:`gradcheck` of the function from ``inputs`` and ``grad_outputs`` (random unless given, with strides if
    ``gen_non_contig_grad_outputs``) to the gradients of the inputs. ``check_rev_over_rev`` and ``check_fwd_over_rev``
    choose the mode of the outer derivative; all else as for :func:`gradcheck`.
    """
    for needed, message in (
        (
            check_fwd_over_rev or check_rev_over_rev,
            "Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True",
        ),
        (
            check_rev_over_rev or not check_undefined_grad,
            "Setting check_undefined_grad=True requires check_rev_over_rev to be True",
        ),
        (
            check_rev_over_rev or not check_batched_grad,
            "Setting check_batched_grad=True requires check_rev_over_rev to be True",
        ),
    ):
        if not needed:
            raise AssertionError(message)
    arguments = as_tuple(inputs)
    count = len(arguments)
    if grad_outputs is None:
        cotangents = tuple(
            [
                _random_cotangent(out, gen_non_contig_grad_outputs, i)
                for i, out in enumerate(_differentiable(func(*arguments)))
            ]
        )
    else:
        cotangents = as_tuple(grad_outputs)

    wanted = [isinstance(arg, Tensor) and arg.requires_grad for arg in arguments]

    def gradients(*args: Any) -> tuple[Tensor, ...]:
        # Arguments that carry tangents were detached.
        primals = [arg.requires_grad_() if want else arg for arg, want in zip(args, wanted, strict=False)]
        outputs = _differentiable(func(*primals))
        sources = [arg for arg, want in zip(primals, wanted, strict=True) if want]
        grads = rushlight.autograd.grad(outputs, sources, args[count:], create_graph=True, allow_unused=True)
        return tuple([g for g in grads if g is not None])

    return gradcheck(
        gradients,
        arguments + cotangents,
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
        masked=masked,
    )


@dataclass
class Subject:
    """A function under test at a point, with the options of the test."""

    func: Func
    inputs: tuple[Any, ...]
    eps: float
    atol: float
    rtol: float
    nondet_tol: float
    check_grad_dtypes: bool
    fast_mode: bool

    def check_inputs(self) -> None:
        self.sources: list[int] = []
        for i, arg in enumerate(self.inputs):
            if not isinstance(arg, Tensor) or not arg.requires_grad:
                continue
            if arg.dtype not in (rushlight.float64, rushlight.complex128):
                warnings.warn(
                    f"Input #{i} requires gradient and is not a double precision floating point or complex. This "
                    "check will likely fail if all the inputs are not of double precision floating point or complex. ",
                    stacklevel=3,
                )
            if any(stride == 0 and size > 1 for stride, size in zip(arg.stride(), arg.shape, strict=True)):
                raise RuntimeError(
                    f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs that are "
                    "non-overlapping to be able to compute the numerical gradients correctly. You should call "
                    ".contiguous on the input before passing it to gradcheck."
                )
            self.sources.append(i)
        if not self.sources:
            raise ValueError(
                "gradcheck expects at least one input tensor to require gradient, but none of them have "
                "requires_grad=True."
            )
        self.source_tensors = tuple([self.inputs[i] for i in self.sources])

    def evaluate(self) -> bool:
        """Run the function; return whether any of its outputs is differentiable."""
        self.outputs = as_tuple(self.func(*self.inputs))
        self.roots = [j for j, out in enumerate(self.outputs) if isinstance(out, Tensor) and out.requires_grad]
        return bool(self.roots)

    def check_constant(self) -> bool:
        """Hold outputs without a graph to what that says: they do not depend on the inputs."""
        which = [j for j, out in enumerate(self.outputs) if isinstance(out, Tensor) and _has_slope(out)]
        for i in self.sources:
            for matrices in finite_difference.jacobian(self.func, self.inputs, i, which, self.eps):
                for j, matrix in zip(which, matrices, strict=True):
                    if not bool((matrix == 0).all()):
                        raise GradcheckError(
                            "Numerical gradient for function expected to be zero: no output requires grad, but output "
                            f"{j} depends on input {i},\nnumerical:{matrix}\n"
                        )
        return True

    def check_backward(self) -> None:
        if self.fast_mode:
            for at, i in enumerate(self.sources):
                self._check_projection(at, i)
            return
        analytical = {(j, part): self.backward_jacobian(j, part) for j in self.roots for part in self.parts(j)}
        for at, i in enumerate(self.sources):
            numerical = finite_difference.jacobian(self.func, self.inputs, i, self.roots, self.eps)
            for nth, j in enumerate(self.roots):
                for part in self.parts(j):
                    a, n = analytical[j, part][at], gradient_of_part([m[nth] for m in numerical], part)
                    if not self.close(a, n):
                        raise GradcheckError(mismatch(a, n, j, i, _of_part(self.outputs[j], part, "outputs")))

    def parts(self, j: int) -> tuple[complex, ...]:
        """The unit cotangents of one element of output ``j``."""
        return (1j, 1.0) if self.outputs[j].is_complex() else (1.0,)

    def backward_jacobian(self, j: int, part: complex) -> list[Tensor]:
        """For each source the matrix (its elements, elements of the part of output ``j``), by backward passes."""
        out = self.outputs[j]
        columns: list[list[Tensor]] = [[] for _ in self.sources]
        for unit in _units(out):
            grads = self.backward(j, unit if part == 1.0 else unit * part)
            for column, grad in zip(columns, grads, strict=True):
                column.append(grad.reshape(-1))
        return [
            rushlight.stack(column, 1) if column else rushlight.zeros(source.numel(), 0, dtype=source.dtype)
            for column, source in zip(columns, self.source_tensors, strict=True)
        ]

    def backward(self, j: int, cotangent: Tensor) -> list[Tensor]:
        """Gradients of the sources, zeros where there is none, after the checks that every gradient has to pass."""
        first, again = [
            _run_backward((self.outputs[j],), (cotangent,), True, False, self.source_tensors, True, False)
            for _ in range(2)
        ]
        result = []
        for i, source, grad, other in zip(self.sources, self.source_tensors, first, again, strict=True):
            if grad is None:
                result.append(rushlight.zeros_like(source))
                continue
            if grad.dtype != source.dtype and self.check_grad_dtypes:
                raise GradcheckError(
                    f"Gradient has dtype mismatch: output {j}, input {i}, expected {source.dtype}, got {grad.dtype}"
                )
            if grad.shape != source.shape:
                raise GradcheckError(
                    f"Analytical gradient has incorrect size: output {j}, input {i}, expected {source.shape}, got "
                    f"{grad.shape}"
                )
            if other is None or not _equal_within(grad, other, self.nondet_tol):
                raise GradcheckError(
                    "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times "
                    f"gives different values (output {j}, input {i}). The tolerance for nondeterminism was "
                    f"{self.nondet_tol}; give nondet_tol if the operation cannot be deterministic."
                )
            result.append(grad)
        return result

    def _check_projection(self, at: int, i: int) -> None:
        u = unit_vector(self.inputs[i], i)
        slopes = finite_difference.directional(self.func, self.inputs, i, u, self.roots, self.eps)
        for slope, j in zip(slopes, self.roots, strict=True):
            out = self.outputs[j]
            v = unit_vector(part_of(out.detach(), 1.0), len(self.inputs) + j)
            for part in self.parts(j):
                a = _real_dot(self.backward(j, v.to(out.dtype) * part if out.is_complex() else v)[at], u)
                n = float((part_of(slope, part) * v.reshape(-1)).sum())
                if self.close_projections(a, n, u, v):
                    continue
                columns = finite_difference.jacobian(self.func, self.inputs, i, [j], self.eps)
                numerical = gradient_of_part([c[0] for c in columns], part)
                raise GradcheckError(
                    mismatch(a, n, j, i, _of_part(out, part, "outputs"))
                    + self.in_slow_mode(self.backward_jacobian(j, part)[at], numerical)
                )

    def close_projections(self, analytical: float, numerical: float, u: Tensor, v: Tensor) -> bool:
        """As ``close`` of whole matrices: an error of ``atol`` in each entry adds up in the projection."""
        atol = self.atol * total(u) * total(v)
        return abs(analytical - numerical) <= atol + self.rtol * abs(numerical)

    def in_slow_mode(self, analytical: Tensor, numerical: Tensor) -> str:
        """What to add to the message of fast mode, whose numbers are projections."""
        difference = largest_difference(analytical, numerical)
        text = (
            "The above quantities relating the numerical and analytical jacobians are computed in fast mode. Below, "
            f"we recompute numerical and analytical jacobians in slow mode:\n\nNumerical:\n{numerical}\nAnalytical:\n"
            f"{analytical}\n\nThe max per-element difference (slow mode) is: {difference}.\n"
        )
        if self.close(analytical, numerical):
            text += (
                "Fast gradcheck failed but element-wise differences are small. This means that the test might've "
                "passed in slow_mode!\n"
            )
        return text

    def close(self, analytical: Tensor, numerical: Tensor) -> bool:
        a, n = promoted(analytical, numerical)
        return bool(rushlight.allclose(a, n, self.rtol, self.atol))


def mismatch(analytical: Any, numerical: Any, j: int, i: int, prefix: str = "", mode: str = "") -> str:
    text = (
        f"{prefix}Jacobian {mode}mismatch for output {j} with respect to input {i},\nnumerical:{numerical}\n"
        f"analytical:{analytical}\n"
    )
    if isinstance(analytical, Tensor) and analytical.dim() == 2 and analytical.numel() > 1:
        a, n = promoted(analytical, numerical)
        worst = int((a - n).abs().nan_to_num(float("inf")).argmax())
        row, column = divmod(worst, analytical.shape[1])
        text += (
            f"largest difference: element {row} of the input, element {column} of the output, numerical "
            f"{n[row, column].item()}, analytical {a[row, column].item()}\n"
        )
    return text


def gradient_of_part(directions: Sequence[Tensor], part: complex) -> Tensor:
    """The gradient of the real or imaginary part of an output, from its derivatives along the input's axes."""
    along = [part_of(d, part) for d in directions]
    return along[0] if len(along) == 1 else rushlight.complex(along[0], along[1])


def part_of(t: Tensor, part: complex) -> Tensor:
    """The imaginary part for 1j; else the real part, or all of a real tensor."""
    if not t.is_complex():
        return t
    return t.imag if part == 1j else t.real


def unit_vector(like: Tensor, seed: int) -> Tensor:
    """A random vector of norm 1 in the space of ``like``, without touching the global generator.

    Entries are positive, so that errors of one sign cannot cancel.
    """
    vector = _random(like.numel(), like, 0.0, 1.0, seed)
    length = float(vector.abs().pow(2).sum()) ** 0.5
    return (vector / (length or 1.0)).reshape(like.shape)


def total(vector: Tensor) -> float:
    """How much an error of 1 in every entry adds to a product with ``vector``."""
    return float(vector.real.sum() + vector.imag.sum()) if vector.is_complex() else float(vector.sum())


def promoted(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    dtype = rushlight.promote_types(a.dtype, b.dtype)
    return a.to(dtype), b.to(dtype)


def largest_difference(a: Tensor, b: Tensor) -> float:
    a, b = promoted(a, b)
    return float((a - b).abs().max()) if a.numel() else 0.0


def _real_dot(grad: Tensor, u: Tensor) -> float:
    """The change of a real number along ``u``, given its gradient."""
    grad, u = promoted(grad, u)
    return float((grad.real * u.real + grad.imag * u.imag).sum() if u.is_complex() else (grad * u).sum())


def _of_part(t: Tensor, part: complex, what: str) -> str:
    if not t.is_complex():
        return ""
    return f"While considering the {'imaginary' if part == 1j else 'real'} part of complex {what} only, "


def _equal_within(a: Tensor, b: Tensor, tolerance: float) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    same = (a == b) | ((a != a) & (b != b))
    return bool((same | ((a - b).abs() <= tolerance)).all())


def _differentiable(outputs: Any) -> tuple[Tensor, ...]:
    return tuple([out for out in as_tuple(outputs) if isinstance(out, Tensor) and out.requires_grad])


def _random_cotangent(out: Tensor, strided: bool, seed: int) -> Tensor:
    if strided:
        return _random(2 * out.numel(), out, -1.0, 1.0, seed).view(*out.shape, 2)[..., 0].requires_grad_()
    return _random(out.numel(), out, -1.0, 1.0, seed).view(out.shape).requires_grad_()


def _random(n: int, like: Tensor, low: float, high: float, seed: int) -> Tensor:
    """``n`` numbers of the dtype of ``like``, uniform between ``low`` and ``high``."""
    import random  # here: it is slow to load, and programs that train do not come here

    rng = random.Random(seed)
    parts = [
        rushlight.tensor([rng.uniform(low, high) for _ in range(n)], dtype=rushlight.float64)
        for _ in range(2 if like.is_complex() else 1)
    ]
    return (rushlight.complex(*parts) if like.is_complex() else parts[0]).to(like.dtype)


def _has_slope(out: Tensor) -> bool:
    return out.is_floating_point() or out.is_complex()


def get_numerical_jacobian(fn: Func, inputs: Any, target: Any = None, eps: float = 1e-3, grad_out: float = 1.0) -> Any:
    """Return the matrices of central differences of ``fn(inputs)``, one for each input that requires grad. Deprecated.

    ValueError for a ``grad_out`` other than 1.
    """
    _deprecated("get_numerical_jacobian", grad_out)
    sources = as_tuple(inputs if target is None else target)
    given = as_tuple(inputs)
    places = [
        i for i, t in enumerate(given) if isinstance(t, Tensor) and t.requires_grad and any(t is s for s in sources)
    ]
    return tuple([finite_difference.jacobian(lambda *args: fn(args), given, i, (0,), eps)[0][0] for i in places])


def get_analytical_jacobian(inputs: Any, output: Tensor, nondet_tol: float = 0.0, grad_out: float = 1.0) -> Any:
    """Return the matrices of backward's gradients of ``output``, and three verdicts. Deprecated.

    That two passes agree within ``nondet_tol``, and that gradients have the inputs' sizes and dtypes.
    """
    _deprecated("get_analytical_jacobian", grad_out)
    given = [t for t in as_tuple(inputs) if isinstance(t, Tensor) and t.requires_grad]
    passes = []
    for _ in range(2):
        rows = [
            _run_backward((output,), (unit.view_as(output),), True, False, tuple(given), True, False)
            for unit in rushlight.eye(output.numel(), dtype=output.dtype)
        ]
        passes.append(
            [
                rushlight.stack([rushlight.zeros_like(t) if g is None else g for g in column], -1).reshape(
                    t.numel(), -1
                )
                for t, column in zip(given, zip(*rows, strict=True), strict=True)
            ]
        )
    first, second = passes
    agree = all(bool(((a - b).abs() <= nondet_tol).all()) for a, b in zip(first, second, strict=True))
    return tuple(first), agree, True, True


def _deprecated(name: str, grad_out: float) -> None:
    warnings.warn(
        f"`{name}` was part of PyTorch's private API and not meant to be exposed. It is deprecated: use gradcheck.",
        FutureWarning,
        stacklevel=3,
    )
    if grad_out != 1.0:
        raise ValueError(f"Expected grad_out to be 1.0. {name} no longer supports values of grad_out != 1.0.")
