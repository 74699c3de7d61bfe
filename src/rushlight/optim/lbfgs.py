"""L-BFGS, with a line search that satisfies the strong Wolfe conditions."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import rushlight
from rushlight import Tensor

from ._rule import check_rate
from .optimizer import Optimizer, ParamsT

__all__ = ["LBFGS"]

State: TypeAlias = dict[str, Any]
Objective: TypeAlias = Callable[[Any, float, Tensor], tuple[float, Tensor]]


class LBFGS(Optimizer):
    r"""The limited-memory quasi-Newton method of Broyden, Fletcher, Goldfarb and Shanno.

    One step runs up to ``max_iter`` iterations and evaluates the closure up to ``max_eval`` times (1.25 ``max_iter``
    by default). An iteration moves by :math:`-t H g`, where :math:`H` follows from the last ``history_size`` changes of
    parameters and gradients. Without line search :math:`t` is ``lr``; with ``line_search_fn="strong_wolfe"`` it is
    searched for, beginning at ``lr``. Iterations end where the greatest number of the gradient is at most
    ``tolerance_grad``, or the change of parameters or loss is below ``tolerance_change``.

    All parameters are one vector: there are no options per group.

    Raises:
        ValueError: there are several groups of parameters.
        RuntimeError: in the step, ``line_search_fn`` is neither None nor ``"strong_wolfe"``.

    Nocedal and Wright, "Numerical optimization" (2006), algorithms 7.4, 7.5, 3.5 and 3.6.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        check_rate(lr)
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    def step(self, closure: Callable[[], Any]) -> Any:  # type: ignore[override]
        """Runs the iterations of one step and returns the first loss.

        ``closure`` clears the gradients, evaluates the model, computes the gradients and returns the loss.
        """
        options = self.param_groups[0]
        params = options["params"]
        state = self.state[params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        with rushlight.enable_grad():
            first_loss = closure()
        state["func_evals"] += 1
        with rushlight.no_grad():
            grad = _flat_grad(params)
            if not grad.abs().max().item() <= options["tolerance_grad"]:
                self._iterate(closure, state, _number(first_loss), grad)
        return first_loss

    def _iterate(self, closure: Callable[[], Any], state: State, loss: float, grad: Tensor) -> None:
        options = self.param_groups[0]
        params, lr = options["params"], float(options["lr"])
        evaluations = 1
        for n in range(1, options["max_iter"] + 1):
            state["n_iter"] += 1
            first = state["n_iter"] == 1
            _update_direction(state, grad, options["history_size"])
            state["prev_flat_grad"], state["prev_loss"] = grad.clone(), loss
            state["t"] = t = min(1.0, 1.0 / grad.abs().sum().item()) * lr if first else lr
            direction = state["d"]
            slope = grad.dot(direction).item()
            if slope > -options["tolerance_change"]:
                return
            last = n == options["max_iter"]
            if options["line_search_fn"] is not None:
                start = _Point(0.0, loss, grad, slope)
                loss, grad, t, spent = self._search(closure, state, start, options["max_eval"] - evaluations)
            else:
                _move(params, direction, t)
                spent = 0 if last else 1
                if not last:
                    loss, grad = _evaluate(closure, params)
            evaluations += spent
            state["func_evals"] += spent
            if (
                last
                or evaluations >= options["max_eval"]
                or grad.abs().max().item() <= options["tolerance_grad"]
                or (direction * t).abs().max().item() <= options["tolerance_change"]
                or abs(loss - state["prev_loss"]) < options["tolerance_change"]
            ):
                return

    def _search(
        self, closure: Callable[[], Any], state: State, start: "_Point", most: int
    ) -> tuple[float, Tensor, float, int]:
        """Finds the step length, moves the parameters by it, and returns loss, gradient, length and evaluations."""
        options = self.param_groups[0]
        if options["line_search_fn"] != "strong_wolfe":
            raise RuntimeError("only 'strong_wolfe' is supported")
        params, direction = options["params"], state["d"]

        def objective(origin: list[Tensor], t: float, d: Tensor) -> tuple[float, Tensor]:
            _move(params, d, t)
            loss, grad = _evaluate(closure, params)
            for p, x in zip(params, origin, strict=True):
                p.copy_(x)
            return loss, grad

        origin = [p.clone() for p in params]
        loss, grad, t, spent = _strong_wolfe(
            objective, origin, state["t"], direction, start.loss, start.grad, start.slope, max_ls=min(25, most)
        )
        _move(params, direction, t)
        state["t"] = t
        return loss, grad, t, spent


def _flat_grad(params: list[Tensor]) -> Tensor:
    """The gradients of all parameters as one vector of real numbers."""
    views = []
    for p in params:
        grad = rushlight.zeros_like(p) if p.grad is None else p.grad
        views.append((rushlight.view_as_real(grad) if grad.is_complex() else grad).reshape(-1))
    return rushlight.cat(views)


def _move(params: list[Tensor], direction: Tensor, t: float) -> None:
    """Adds ``t * direction`` to the parameters."""
    start = 0
    for p in params:
        real = rushlight.view_as_real(p) if p.is_complex() else p
        end = start + real.numel()
        real.add_(direction[start:end].view(real.shape), alpha=t)
        start = end


def _evaluate(closure: Callable[[], Any], params: list[Tensor]) -> tuple[float, Tensor]:
    with rushlight.enable_grad():
        loss = _number(closure())
    return loss, _flat_grad(params)


def _number(loss: Any) -> float:
    return float(loss.item() if isinstance(loss, Tensor) else loss)


def _update_direction(state: State, grad: Tensor, history_size: int) -> None:
    """Sets ``state["d"]`` to ``-H grad`` by the two-loop recursion, after taking the last change into the history."""
    if state["n_iter"] == 1:
        state.update(d=grad.neg(), old_dirs=[], old_stps=[], ro=[], H_diag=1)
        return
    changes, steps, ro = state["old_dirs"], state["old_stps"], state["ro"]
    change, step = grad - state["prev_flat_grad"], state["d"] * state["t"]
    curvature = change.dot(step).item()
    if curvature > 1e-10:
        if len(changes) == history_size:
            for history in (changes, steps, ro):
                history.pop(0)
        changes.append(change)
        steps.append(step)
        ro.append(1.0 / curvature)
        state["H_diag"] = curvature / change.dot(change).item()
    d = grad.neg()
    weights = []
    for y, s, r in zip(reversed(changes), reversed(steps), reversed(ro), strict=True):
        weights.append(s.dot(d).item() * float(r))
        d.add_(y, alpha=-weights[-1])
    d.mul_(state["H_diag"])
    for y, s, r, weight in zip(changes, steps, ro, reversed(weights), strict=True):
        d.add_(s, alpha=weight - y.dot(d).item() * float(r))
    state["d"] = d


class _Point(NamedTuple):
    """The objective along the direction of search: at length ``t``, its value, gradient, and slope."""

    t: float
    loss: float
    grad: Tensor
    slope: float


def _cubic_interpolate(
    x1: float, f1: float, g1: float, x2: float, f2: float, g2: float, bounds: tuple[float, float] | None = None
) -> float:
    """The minimum, within ``bounds``, of the cubic with values f1, f2 and slopes g1, g2 at x1, x2.

    Where the cubic has no minimum it is the middle of the bounds. Nocedal and Wright, equation 3.59.
    """
    low, high = bounds if bounds is not None else (min(x1, x2), max(x1, x2))
    if x1 > x2:
        x1, f1, g1, x2, f2, g2 = x2, f2, g2, x1, f1, g1
    d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
    square = d1 * d1 - g1 * g2
    if not 0 <= square < math.inf:
        return (low + high) / 2.0
    d2 = math.sqrt(square)
    divisor = g2 - g1 + 2 * d2
    if divisor == 0:
        return (low + high) / 2.0
    return min(max(x2 - (x2 - x1) * ((g2 + d2 - d1) / divisor), low), high)


def _strong_wolfe(
    obj_func: Objective,
    x: Any,
    t: float,
    d: Tensor,
    f: float,
    g: Tensor,
    gtd: float,
    c1: float = 1e-4,
    c2: float = 0.9,
    tolerance_change: float = 1e-9,
    max_ls: int = 25,
) -> tuple[float, Tensor, float, int]:
    """Searches the length ``t`` along ``d`` for a point that satisfies the strong Wolfe conditions.

    ``obj_func(x, t, d)`` gives loss and gradient at ``x + t d``; ``f``, ``g`` and ``gtd`` are loss, gradient and slope
    at ``x``. Returns loss, gradient and length of the point found, and the number of evaluations.
    """

    def evaluate(length: float) -> _Point:
        loss, grad = obj_func(x, length, d)
        return _Point(length, loss, grad, grad.dot(d).item())

    def insufficient(point: _Point) -> bool:
        """Fails the first condition, of sufficient decrease."""
        return point.loss > f + c1 * point.t * gtd

    def flat(point: _Point) -> bool:
        """Satisfies the second condition, on the slope."""
        return abs(point.slope) <= -c2 * gtd

    start = _Point(0.0, f, g, gtd)
    previous, new = start, evaluate(t)
    spent = 0
    # First, lengthen the step until an interval is known to hold a point that satisfies both conditions.
    while spent < max_ls:
        if insufficient(new) or (spent > 1 and new.loss >= previous.loss):
            break
        if flat(new):
            return new.loss, new.grad, new.t, spent + 1
        if new.slope >= 0:
            break
        longer = (new.t + 0.01 * (new.t - previous.t), new.t * 10)
        t = _cubic_interpolate(previous.t, previous.loss, previous.slope, new.t, new.loss, new.slope, longer)
        previous, new = new, evaluate(t)
        spent += 1
    else:
        previous = start
    # Then, shrink the interval from its worse end.
    ends = [previous, new]
    low = _better(ends)
    size = d.abs().max().item()
    stalled = False
    while spent < max_ls and abs(ends[1].t - ends[0].t) * size >= tolerance_change:
        t, stalled = _next_length(ends[0], ends[1], stalled)
        new = evaluate(t)
        spent += 1
        if insufficient(new) or new.loss >= ends[low].loss:
            ends[1 - low] = new
            low = _better(ends)
            continue
        found = flat(new)
        if not found and new.slope * (ends[1 - low].t - ends[low].t) >= 0:
            ends[1 - low] = ends[low]
        ends[low] = new
        if found:
            break
    best = ends[low]
    return best.loss, best.grad, best.t, spent + 1


def _better(ends: list[_Point]) -> int:
    return 0 if ends[0].loss <= ends[1].loss else 1


def _next_length(a: _Point, b: _Point, stalled: bool) -> tuple[float, bool]:
    """The next length to try between two points, and whether it lies too near to an end.

    Twice in turn, or outside of the interval, it is moved a tenth of the interval away from the end.
    """
    t = _cubic_interpolate(a.t, a.loss, a.slope, b.t, b.loss, b.slope)
    left, right = min(a.t, b.t), max(a.t, b.t)
    margin = 0.1 * (right - left)
    if min(right - t, t - left) >= margin:
        return t, False
    if not stalled and left < t < right:
        return t, True
    return (right - margin if abs(t - right) < abs(t - left) else left + margin), False
