"""Optimizers against PyTorch's: ten steps of every option, state dicts, derivatives, refusals."""

import itertools
import math

import numpy as np
import pytest

import rushlight
import rushlight.optim

torch = pytest.importorskip("torch", reason="the oracle is installed by .ci/run only")
pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

SHAPES = [(5, 7), (33,), (2, 3, 4), ()]
STEPS = 10
TOLERANCE = {"float64": (1e-7, 1e-9), "float32": (2e-5, 2e-6), "bfloat16": (5e-2, 2e-2), "complex64": (2e-5, 2e-6)}


def array(t):
    t = t.detach()
    return np.asarray(t.float().numpy() if str(t.dtype).endswith("bfloat16") else t.numpy())


def close(a, b, dtype):
    rtol, atol = TOLERANCE[dtype]
    return np.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True)


def grid(**choices):
    """All combinations of options."""
    return [dict(zip(choices, values, strict=True)) for values in itertools.product(*choices.values())]


FLAGS = [False, True]
OPTIONS = {
    "SGD": [
        o
        for o in grid(
            lr=[0.03], momentum=[0, 0.9], dampening=[0, 0.3], weight_decay=[0, 0.1], nesterov=FLAGS, maximize=FLAGS
        )
        if not o["nesterov"] or (o["momentum"] and not o["dampening"])
    ],
    "Adam": [
        {"eps": 0.1, "lr": 0.1},
        *grid(
            betas=[(0.9, 0.99), (0.3, 0.2)],
            weight_decay=[0, 0.1],
            amsgrad=FLAGS,
            maximize=FLAGS,
            decoupled_weight_decay=FLAGS,
            lr=[0.01],
        ),
    ],
    "AdamW": grid(weight_decay=[0.0, 0.01, 0.3], amsgrad=FLAGS, maximize=FLAGS, lr=[0.01]),
    "Adamax": [{"eps": 0.1}, *grid(weight_decay=[0, 0.1], maximize=FLAGS, betas=[(0.9, 0.999), (0.4, 0.5)])],
    "NAdam": grid(weight_decay=[0, 0.1], maximize=FLAGS, decoupled_weight_decay=FLAGS, momentum_decay=[4e-3, 0.3]),
    "RAdam": grid(
        weight_decay=[0, 0.1], maximize=FLAGS, decoupled_weight_decay=FLAGS, betas=[(0.9, 0.999), (0.9, 0.7)], lr=[0.02]
    ),
    "Adagrad": grid(weight_decay=[0, 0.1], maximize=FLAGS, lr_decay=[0, 0.1], initial_accumulator_value=[0, 0.5]),
    "Adadelta": grid(weight_decay=[0, 0.1], maximize=FLAGS, rho=[0.9, 0.5], eps=[1e-6, 1e-2]),
    "RMSprop": grid(weight_decay=[0, 0.1], maximize=FLAGS, momentum=[0, 0.8], centered=FLAGS, alpha=[0.99, 0.3]),
    "Rprop": grid(maximize=FLAGS, etas=[(0.5, 1.2), (0.2, 1.9)], step_sizes=[(1e-6, 50), (0.008, 0.03)]),
    "ASGD": grid(weight_decay=[0, 0.1], maximize=FLAGS, lambd=[1e-4, 0.2], alpha=[0.75, 0.3], t0=[1e6, 3]),
    "Adafactor": [
        {"eps": (0.1, 0.2)},
        *grid(weight_decay=[0.0, 0.1], maximize=FLAGS, d=[1.0, 1.7], beta2_decay=[-0.8, -0.3]),
    ],
    "Muon": [
        {"ns_steps": 2, "ns_coefficients": (3.0, -4.0, 2.0), "lr": 0.1},
        *grid(
            weight_decay=[0.0, 0.1], momentum=[0.95, 0.5], nesterov=FLAGS, adjust_lr_fn=["original", "match_rms_adamw"]
        ),
    ],
}
CASES = [(name, options) for name, all_options in OPTIONS.items() for options in all_options]
SHAPES_OF = {"Muon": [(5, 7), (6, 2)]}


def start(name, dtype):
    rng = np.random.RandomState(3)
    values = [np.asarray(rng.randn(*shape)) for shape in SHAPES_OF.get(name, SHAPES)]
    if dtype == "complex64":
        values = [v + 1j * rng.randn(*v.shape) for v in values]
    return values


def tensor(package, value, dtype):
    return package.tensor(np.asarray(value).tolist(), dtype=getattr(package, dtype))


def train(package, name, options, dtype, change=None):
    """The parameters after each step, and the optimizer. Gradients follow from numbers of NumPy alone."""
    params = [package.nn.Parameter(tensor(package, v, dtype)) for v in start(name, dtype)]
    opt = getattr(package.optim, name)(params, **options)
    rng = np.random.RandomState(5)
    seen = []
    for step in range(STEPS):
        for p in params:
            noise = rng.randn(*p.shape) * (rng.rand(*p.shape) > 0.1)
            p.grad = tensor(package, noise + 0.3 * array(p), dtype)
        if step == 4:
            params[0].grad = None
        opt.step()
        if change is not None and step == STEPS // 2:
            opt = change(opt, params)
        seen.append([array(p).copy() for p in params])
    return seen, opt


def compare(name, options, dtype="float64", **changes):
    want, reference = train(torch, name, options, dtype, **changes)
    got, opt = train(rushlight, name, options, dtype, **changes)
    for step, (a, b) in enumerate(zip(want, got, strict=True)):
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            assert x.shape == y.shape
            assert close(x, y, dtype), f"step {step + 1}, parameter {i}: {np.abs(x - y).max()}"
    return reference, opt


@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
def test_ten_steps(name, options):
    reference, opt = compare(name, options)
    check_state_dict(reference.state_dict(), opt.state_dict(), "float64")


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize(("name", "options"), [c for c in CASES if c[0] not in ("Adafactor", "Muon")], ids=str)
def test_ten_steps_in_other_dtypes(name, options, dtype):
    reference, opt = compare(name, options, dtype)
    check_state_dict(reference.state_dict(), opt.state_dict(), dtype)


@pytest.mark.parametrize("name", [n for n in OPTIONS if n not in ("Adafactor", "Muon")])
def test_ten_steps_in_bfloat16(name):
    compare(name, {"eps": 1e-3} if name in ("Adagrad", "Adadelta") else {}, "bfloat16")


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Adagrad", "RMSprop", "Adadelta", "NAdam", "Adamax"])
def test_rate_as_a_tensor(name):
    rates = {p: p.tensor(0.02) for p in (torch, rushlight)}
    for dtype in ("float64", "float32"):
        want, _ = train(torch, name, {"lr": rates[torch]}, dtype)
        got, _ = train(rushlight, name, {"lr": rates[rushlight]}, dtype)
        assert all(close(x, y, "float32") for a, b in zip(want, got, strict=True) for x, y in zip(a, b, strict=True))


def check_state_dict(want, got, dtype):
    assert [{k: v for k, v in g.items() if k != "foreach"} for g in want["param_groups"]] == [
        {k: v for k, v in g.items() if k != "foreach"} for g in got["param_groups"]
    ]
    assert [list(g) for g in want["param_groups"]] == [list(g) for g in got["param_groups"]]
    assert list(want["state"]) == list(got["state"])
    for key, state in want["state"].items():
        assert list(state) == list(got["state"][key])
        for entry, value in state.items():
            other = got["state"][key][entry]
            assert str(value.dtype).split(".")[-1] == str(other.dtype).split(".")[-1]
            assert tuple(value.shape) == tuple(other.shape)
            assert close(array(value), array(other), dtype), entry


def carried(value, package):
    """Nested containers with PyTorch's tensors in the place of rushlight's, or the other way."""
    if isinstance(value, (torch.Tensor, rushlight.Tensor)):
        return tensor(package, array(value), str(value.dtype).split(".")[-1])
    if isinstance(value, dict):
        return {k: carried(v, package) for k, v in value.items()}
    return type(value)(carried(v, package) for v in value) if isinstance(value, (list, tuple)) else value


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("package", [torch, rushlight], ids=["there", "here"])
def test_state_dicts_are_interchangeable(name, package):
    options = {"momentum": 0.9, "lr": 0.1} if name == "SGD" else {}
    other = rushlight if package is torch else torch

    def change(opt, params):
        """Through the other package's optimizer into a new one."""
        middle = getattr(other.optim, name)([other.nn.Parameter(carried(p.detach(), other)) for p in params], **options)
        middle.load_state_dict(carried(opt.state_dict(), other))
        fresh = getattr(package.optim, name)(params, **options)
        fresh.load_state_dict(carried(middle.state_dict(), package))
        return fresh

    want, _ = train(package, name, options, "float64")
    got, _ = train(package, name, options, "float64", change=change)
    assert all(close(x, y, "float64") for a, b in zip(want, got, strict=True) for x, y in zip(a, b, strict=True))


# --- L-BFGS ---------------------------------------------------------------------------------------------------------


def lbfgs(package, dtype, options, steps):
    x = package.nn.Parameter(tensor(package, [-1.2, 1.0, 0.3, 0.8], dtype))
    y = package.nn.Parameter(tensor(package, [[0.5], [-0.4]], dtype))
    opt = package.optim.LBFGS([x, y], **options)
    seen = []

    def closure():
        opt.zero_grad()
        z = package.cat([x, y[:, 0]])
        loss = (20.0 * (z[1:] - z[:-1] ** 2) ** 2 + (1 - z[:-1]) ** 2).sum()
        loss.backward()
        seen.append(loss.item())
        return loss

    for _ in range(steps):
        seen.append(opt.step(closure).item())
        seen.append([array(x).copy(), array(y).copy()])
    return seen, opt, closure


@pytest.mark.parametrize(
    "options",
    [
        {"lr": 0.01, "max_iter": 7},
        {"lr": 0.002},
        {"line_search_fn": "strong_wolfe"},
        {"line_search_fn": "strong_wolfe", "history_size": 2, "max_iter": 5},
        {"line_search_fn": "strong_wolfe", "max_eval": 3},
        {"lr": 0.1, "tolerance_grad": 1.0, "tolerance_change": 1e-2},
        {"line_search_fn": "strong_wolfe", "lr": 30.0, "max_iter": 3},
        {"line_search_fn": "strong_wolfe", "lr": 1e4, "max_eval": 12},
    ],
    ids=str,
)
def test_lbfgs(options):
    want, reference, _ = lbfgs(torch, "float64", options, steps=5)
    got, opt, _ = lbfgs(rushlight, "float64", options, steps=5)
    assert len(want) == len(got)  # as many evaluations
    for a, b in zip(want, got, strict=True):
        if isinstance(a, float):
            assert a == pytest.approx(b, rel=1e-5, abs=1e-8, nan_ok=True)
        else:
            assert all(np.allclose(x, y, rtol=1e-5, atol=1e-8, equal_nan=True) for x, y in zip(a, b, strict=True))
    (want_state,), (got_state,) = reference.state.values(), opt.state.values()
    for key in ("func_evals", "n_iter"):
        assert want_state[key] == got_state[key]


def test_history_of_lbfgs_is_interchangeable():
    options = {"line_search_fn": "strong_wolfe", "max_iter": 6}
    pairs = [(package, *lbfgs(package, "float64", options, steps=2)) for package in (torch, rushlight)]
    saved = [opt.state_dict() for _, _, opt, _ in pairs]
    for (package, _, opt, closure), other in zip(pairs, saved[::-1], strict=True):
        opt.load_state_dict(carried(other, package))
        opt.step(closure)
    want, got = ([array(p) for p in opt.param_groups[0]["params"]] for _, _, opt, _ in pairs)
    assert all(close(a, b, "float64") for a, b in zip(want, got, strict=True))


# --- differentiable steps -------------------------------------------------------------------------------------------


def slopes(package, name, options, tensors):
    """The derivatives of one step. It begins with state: PyTorch detaches SGD's first momentum."""
    p, grad, first = [tensor(package, v, "float64").requires_grad_() for v in tensors]
    leaf = p.detach().clone()
    leaf.grad = first.detach()
    before = getattr(package.optim, name)([leaf], **options)
    before.step()
    end = p.clone()
    end.grad = grad
    opt = getattr(package.optim, name)([end], differentiable=True, **options)
    opt.state[end] = before.state[leaf]
    opt.step()
    weights = tensor(package, np.arange(1.0, 5.0), "float64")
    return [array(t) for t in package.autograd.grad((end * weights).sum(), [p, grad])]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1}),
        ("Adam", {"amsgrad": True, "lr": 0.1, "weight_decay": 0.1}),
        ("AdamW", {"lr": 0.1}),
        ("Adamax", {"lr": 0.1, "weight_decay": 0.1}),
        ("NAdam", {"lr": 0.1}),
        ("RAdam", {"lr": 0.1, "betas": (0.9, 0.5)}),
        ("Adagrad", {"lr": 0.1}),
        ("Adadelta", {"weight_decay": 0.1}),
        ("RMSprop", {"momentum": 0.5, "centered": True, "alpha": 0.5}),
        ("ASGD", {"lr": 0.1, "weight_decay": 0.1}),
        ("Rprop", {}),
    ],
)
def test_derivatives_of_steps(name, options):
    rng = np.random.RandomState(1)
    tensors = [rng.randn(4) for _ in range(3)]
    want, got = slopes(torch, name, options, tensors), slopes(rushlight, name, options, tensors)
    for a, b in zip(want, got, strict=True):
        # PyTorch corrects the bias of differentiable steps in float32.
        assert np.allclose(a, b, rtol=1e-3, atol=1e-6)


# --- refusals -------------------------------------------------------------------------------------------------------

BAD = {
    "lr": [-1, -0.5, math.nan],
    "momentum": [-1],
    "weight_decay": [-1],
    "nesterov": [True],
    "betas": [(-1, 0.9), (0.9, -1), (1.0, 0.9), (0.9, 1.0)],
    "eps": [-1, (-1, 1), (None, -1)],
    "rho": [-1, 2],
    "lr_decay": [-1],
    "initial_accumulator_value": [-1],
    "alpha": [-1],
    "etas": [(1.5, 1.2), (0.5, 0.9), (0, 1)],
    "momentum_decay": [-1],
    "beta2_decay": [1],
    "d": [0, 0.5],
    "adjust_lr_fn": ["abc"],
    "bogus": [1],
}


@pytest.mark.parametrize("name", [*OPTIONS, "LBFGS"])
def test_refused_options(name):
    for option, values in BAD.items():
        for value in values:
            outcomes = []
            for package in (torch, rushlight):
                p = package.nn.Parameter(package.ones(2, 2))
                try:
                    getattr(package.optim, name)([p], **{option: value})
                    outcomes.append(None)
                except Exception as e:
                    outcomes.append((type(e), str(e)))
            want, got = outcomes
            if (name, option) == ("SGD", "lr") and value != value:
                # PyTorch's SGD alone takes a rate that is no number.
                assert want is None
                assert got == (ValueError, "Invalid learning rate: nan")
            elif want is not None and want[0] is TypeError and "'" in want[1] and option != "bogus":
                assert got is not None  # a comparison of wrong types, whose text depends on its order
                assert got[0] is TypeError
            else:
                assert want == got


@pytest.mark.parametrize("name", [*OPTIONS, "LBFGS"])
def test_defaults_and_printed_form(name):
    options = [
        getattr(package.optim, name)([package.nn.Parameter(package.ones(2, 2))]) for package in (torch, rushlight)
    ]
    assert list(options[0].defaults.items()) == list(options[1].defaults.items())
    assert repr(options[0]) == repr(options[1])
