"""L-BFGS: minima found, conditions of the line search, limits, and the history in state dicts."""

import copy
import math

import pytest

import rushlight as torch
from rushlight import optim
from rushlight.nn import Parameter
from rushlight.optim.lbfgs import _cubic_interpolate, _strong_wolfe


def rosenbrock(x):
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def minimize(function, start, steps, **options):
    p = Parameter(torch.tensor(start, dtype=torch.float64))
    opt = optim.LBFGS([p], **options)
    calls = []

    def closure():
        opt.zero_grad()
        loss = function(p)
        loss.backward()
        calls.append(loss.item())
        return loss

    losses = [opt.step(closure).item() for _ in range(steps)]
    return p, opt, calls, losses


@pytest.mark.parametrize("history", [3, 100])
def test_rosenbrock(history):
    p, _, calls, losses = minimize(
        rosenbrock, [-1.2, 1.0, 0.5], 20, line_search_fn="strong_wolfe", history_size=history, tolerance_change=1e-16
    )
    assert p.tolist() == pytest.approx([1.0, 1.0, 1.0], abs=1e-6)
    assert losses == sorted(losses, reverse=True)
    assert losses[0] == calls[0]


def test_quadratic_without_line_search():
    p, opt, *_ = minimize(lambda x: ((x - 3) ** 2 * torch.tensor([1.0, 10.0])).sum(), [0.0, 0.0], 4, lr=0.5)
    assert p.tolist() == pytest.approx([3.0, 3.0], abs=1e-4)
    state = opt.state[p]
    assert state["func_evals"] >= state["n_iter"] > 20


def test_at_a_minimum_nothing_happens():
    p, opt, calls, _ = minimize(lambda x: (x * x).sum(), [0.0, 0.0], 1)
    assert p.tolist() == [0.0, 0.0]
    assert len(calls) == 1
    assert opt.state[p] == {"func_evals": 1, "n_iter": 0}


@pytest.mark.parametrize(("options", "most"), [({"max_iter": 4}, 5), ({"max_iter": 50, "max_eval": 7}, 7)])
def test_limits_of_one_step(options, most):
    p, opt, calls, _ = minimize(rosenbrock, [-1.2, 1.0], 1, lr=1e-3, **options)
    assert len(calls) <= most
    assert opt.state[p]["func_evals"] == len(calls)


def test_max_eval_follows_max_iter():
    assert optim.LBFGS([Parameter(torch.ones(1))], max_iter=8).defaults["max_eval"] == 10


def test_several_parameters_are_one_vector():
    start = [-1.2, 1.0, 0.5]
    whole, *_ = minimize(rosenbrock, start, 3, line_search_fn="strong_wolfe")
    a = Parameter(torch.tensor(start[:1], dtype=torch.float64))
    b = Parameter(torch.tensor([start[1:]], dtype=torch.float64).T)
    unused = Parameter(torch.ones(2, dtype=torch.float64))
    opt = optim.LBFGS([a, b, unused], line_search_fn="strong_wolfe")

    def closure():
        opt.zero_grad()
        loss = rosenbrock(torch.cat([a, b[:, 0]]))
        loss.backward()
        return loss

    for _ in range(3):
        opt.step(closure)
    assert a.tolist() + b[:, 0].tolist() == pytest.approx(whole.tolist(), rel=1e-9)
    assert unused.tolist() == [1.0, 1.0]


def test_complex_parameters():
    p = Parameter(torch.tensor([0.0 + 0.0j, 1.0 - 1.0j], dtype=torch.complex128))
    opt = optim.LBFGS([p], line_search_fn="strong_wolfe")

    def closure():
        opt.zero_grad()
        loss = ((p - (2 - 1j)).abs() ** 2).sum()
        loss.backward()
        return loss

    for _ in range(3):
        opt.step(closure)
    torch.testing.assert_close(p.detach(), torch.full((2,), 2 - 1j, dtype=torch.complex128))


def test_history_goes_with_the_state_dict():
    p, opt, *_ = minimize(rosenbrock, [-1.2, 1.0], 2, max_iter=3, line_search_fn="strong_wolfe")
    q, other, *_ = minimize(rosenbrock, p.tolist(), 0, max_iter=3, line_search_fn="strong_wolfe")
    other.load_state_dict(copy.deepcopy(opt.state_dict()))

    def step(optimizer, x):
        def closure():
            optimizer.zero_grad()
            loss = rosenbrock(x)
            loss.backward()
            return loss

        optimizer.step(closure)

    step(opt, p)
    step(other, q)
    assert p.tolist() == q.tolist()
    assert other.state[q]["n_iter"] == opt.state[p]["n_iter"] > 2


def test_refusals():
    with pytest.raises(ValueError, match=r"LBFGS doesn't support per-parameter options \(parameter groups\)"):
        optim.LBFGS([{"params": [Parameter(torch.ones(1))]}, {"params": [Parameter(torch.ones(1))]}])
    with pytest.raises(RuntimeError, match="only 'strong_wolfe' is supported"):
        minimize(rosenbrock, [-1.2, 1.0], 1, line_search_fn="armijo")
    with pytest.raises(TypeError, match="closure"):
        optim.LBFGS([Parameter(torch.ones(1))]).step()


def test_cubic_interpolation_finds_the_minimum_of_a_cubic():
    def f(x):
        return x**3 - 3 * x  # minimum at 1

    def slope(x):
        return 3 * x**2 - 3

    for a, b in [(0.0, 3.0), (3.0, 0.0), (-0.5, 1.5)]:
        assert _cubic_interpolate(a, f(a), slope(a), b, f(b), slope(b)) == pytest.approx(1.0)
    assert _cubic_interpolate(0.0, f(0.0), slope(0.0), 3.0, f(3.0), slope(3.0), bounds=(2.0, 5.0)) == 2.0
    # No minimum: the middle.
    assert _cubic_interpolate(0.0, 0.0, 1.0, 2.0, 1.8, 1.0) == 1.0
    assert _cubic_interpolate(0.0, 0.0, 1.0, 2.0, math.nan, 1.0) == 1.0


@pytest.mark.parametrize("first", [1e-4, 0.1, 1.0, 30.0])
@pytest.mark.parametrize(
    ("function", "origin"),
    [(lambda x: x**4 - 3 * x**2 + x, 2.0), (lambda x: torch.log1p(x**2) - 0.01 * x, -4.0), (lambda x: x.cosh(), 3.0)],
)
def test_strong_wolfe_conditions_hold(function, origin, first):
    def objective(x, t, d):
        y = torch.tensor([x + t * d.item()], dtype=torch.float64, requires_grad=True)
        value = function(y).sum()
        return value.item(), torch.autograd.grad(value, y)[0]

    at = objective(origin, 0.0, torch.ones(1))
    direction = -at[1]
    slope = at[1].dot(direction).item()
    loss, grad, t, evaluations = _strong_wolfe(objective, origin, first, direction, *at, slope)
    assert 1 <= evaluations <= 26
    assert (loss, grad.item()) == (objective(origin, t, direction)[0], objective(origin, t, direction)[1].item())
    assert loss <= at[0] + 1e-4 * t * slope
    assert abs(grad.dot(direction).item()) <= 0.9 * abs(slope)
