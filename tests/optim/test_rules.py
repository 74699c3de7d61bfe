"""The update rules: each against its formula in plain numbers, its options, and its derivative."""

import cmath
import math

import pytest

import rushlight as torch
from rushlight import optim
from rushlight.autograd import gradcheck
from rushlight.nn import Parameter

STEPS = 6
START = [0.7, -1.3, 0.0, 2.5]


def gradients(x, step):
    """A gradient that depends on the parameter and turns its sign now and then."""
    return [1.5 * v - 0.4 + math.sin(3.0 * i + 1.7 * step) for i, v in enumerate(x)]


def train(cls, dtype=None, start=START, steps=STEPS, **options):
    p = Parameter(torch.tensor(start, dtype=dtype or torch.float64))
    opt = cls([p], **options)
    for step in range(1, steps + 1):
        p.grad = torch.tensor(gradients(p.tolist(), step), dtype=p.dtype)
        opt.step()
    return p.tolist()


# Each formula is written for one number, from the papers; `s` is its state, which begins empty.


def sgd(p, g, t, s, lr, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False):
    g += weight_decay * p
    if momentum:
        s["b"] = g if t == 1 else momentum * s["b"] + (1 - dampening) * g
        g = g + momentum * s["b"] if nesterov else s["b"]
    return p - lr * g


def moments(g, s, b1, b2):
    s["m"] = b1 * s.get("m", 0.0) + (1 - b1) * g
    s["v"] = b2 * s.get("v", 0.0) + (1 - b2) * g * g


def adam(p, g, t, s, lr, betas, eps=1e-8, weight_decay=0.0, amsgrad=False, decoupled_weight_decay=False):
    if decoupled_weight_decay:
        p *= 1 - lr * weight_decay
    else:
        g += weight_decay * p
    moments(g, s, *betas)
    v = s["x"] = max(s.get("x", 0.0), s["v"]) if amsgrad else s["v"]
    return p - lr * (s["m"] / (1 - betas[0] ** t)) / (math.sqrt(v / (1 - betas[1] ** t)) + eps)


def adamw(p, g, t, s, lr, betas, weight_decay=1e-2):
    return adam(p, g, t, s, lr, betas, weight_decay=weight_decay, decoupled_weight_decay=True)


def adamax(p, g, t, s, lr, betas, eps=1e-8, weight_decay=0.0):
    g += weight_decay * p
    s["m"] = betas[0] * s.get("m", 0.0) + (1 - betas[0]) * g
    s["u"] = max(betas[1] * s.get("u", 0.0), abs(g) + eps)
    return p - lr / (1 - betas[0] ** t) * s["m"] / s["u"]


def nadam(p, g, t, s, lr, betas, momentum_decay=4e-3, weight_decay=0.0, decoupled_weight_decay=False):
    if decoupled_weight_decay:
        p *= 1 - lr * weight_decay
    else:
        g += weight_decay * p
    moments(g, s, *betas)
    mus = [betas[0] * (1 - 0.5 * 0.96 ** (i * momentum_decay)) for i in range(1, t + 2)]
    now, after = math.prod(mus[:-1]), math.prod(mus)
    root = math.sqrt(s["v"] / (1 - betas[1] ** t)) + 1e-8
    return p - lr * ((1 - mus[-2]) * g / (1 - now) + mus[-1] * s["m"] / (1 - after)) / root


def radam(p, g, t, s, lr, betas, weight_decay=0.0, decoupled_weight_decay=False):
    if decoupled_weight_decay:
        p *= 1 - lr * weight_decay
    else:
        g += weight_decay * p
    moments(g, s, *betas)
    m = s["m"] / (1 - betas[0] ** t)
    limit = 2 / (1 - betas[1]) - 1
    length = limit - 2 * t * betas[1] ** t / (1 - betas[1] ** t)
    if length <= 5:
        return p - lr * m
    r = math.sqrt((length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length))
    return p - lr * m * r * math.sqrt(1 - betas[1] ** t) / (math.sqrt(s["v"]) + 1e-8)


def adagrad(p, g, t, s, lr, lr_decay=0.0, initial_accumulator_value=0.0, eps=1e-10, weight_decay=0.0):
    g += weight_decay * p
    s["s"] = s.get("s", initial_accumulator_value) + g * g
    return p - lr / (1 + (t - 1) * lr_decay) * g / (math.sqrt(s["s"]) + eps)


def adadelta(p, g, t, s, lr=1.0, rho=0.9, eps=1e-6, weight_decay=0.0):
    g += weight_decay * p
    s["v"] = rho * s.get("v", 0.0) + (1 - rho) * g * g
    delta = math.sqrt(s.get("u", 0.0) + eps) / math.sqrt(s["v"] + eps) * g
    s["u"] = rho * s.get("u", 0.0) + (1 - rho) * delta * delta
    return p - lr * delta


def rmsprop(p, g, t, s, lr, alpha=0.99, eps=1e-8, weight_decay=0.0, momentum=0.0, centered=False):
    g += weight_decay * p
    s["v"] = alpha * s.get("v", 0.0) + (1 - alpha) * g * g
    s["m"] = alpha * s.get("m", 0.0) + (1 - alpha) * g
    step = g / (math.sqrt(s["v"] - s["m"] ** 2 if centered else s["v"]) + eps)
    s["b"] = momentum * s.get("b", 0.0) + step
    return p - lr * s["b"]


def rprop(p, g, t, s, lr, etas=(0.5, 1.2), step_sizes=(1e-6, 50)):
    agreement = g * s.get("g", 0.0)
    s["d"] = s.get("d", lr) * (etas[1] if agreement > 0 else etas[0] if agreement < 0 else 1.0)
    s["d"] = min(max(s["d"], step_sizes[0]), step_sizes[1])
    s["g"] = 0.0 if agreement < 0 else g
    return p - s["d"] * ((s["g"] > 0) - (s["g"] < 0))


def asgd(p, g, t, s, lr, lambd=1e-4, alpha=0.75, t0=1e6, weight_decay=0.0):
    g += weight_decay * p
    eta = lr if t == 1 else lr / (1 + lambd * lr * (t - 1)) ** alpha
    return (1 - lambd * eta) * p - eta * g


CASES = [
    (optim.SGD, sgd, {"lr": 0.1}),
    (optim.SGD, sgd, {"lr": 0.1, "weight_decay": 0.3}),
    (optim.SGD, sgd, {"lr": 0.1, "momentum": 0.9}),
    (optim.SGD, sgd, {"lr": 0.1, "momentum": 0.9, "dampening": 0.4, "weight_decay": 0.3}),
    (optim.SGD, sgd, {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    (optim.Adam, adam, {"lr": 0.1, "betas": (0.9, 0.99)}),
    (optim.Adam, adam, {"lr": 0.1, "betas": (0.3, 0.2), "eps": 0.1, "weight_decay": 0.3}),
    (optim.Adam, adam, {"lr": 0.1, "betas": (0.9, 0.6), "amsgrad": True}),
    (optim.Adam, adam, {"lr": 0.1, "betas": (0.9, 0.99), "weight_decay": 0.3, "decoupled_weight_decay": True}),
    (optim.AdamW, adamw, {"lr": 0.1, "betas": (0.9, 0.99)}),
    (optim.AdamW, adamw, {"lr": 0.1, "betas": (0.9, 0.99), "weight_decay": 0.5}),
    (optim.Adamax, adamax, {"lr": 0.1, "betas": (0.9, 0.9)}),
    (optim.Adamax, adamax, {"lr": 0.1, "betas": (0.9, 0.9), "eps": 0.01, "weight_decay": 0.3}),
    (optim.NAdam, nadam, {"lr": 0.1, "betas": (0.9, 0.99)}),
    (optim.NAdam, nadam, {"lr": 0.1, "betas": (0.9, 0.99), "momentum_decay": 0.5, "weight_decay": 0.3}),
    (optim.NAdam, nadam, {"lr": 0.1, "betas": (0.9, 0.9), "weight_decay": 0.3, "decoupled_weight_decay": True}),
    (optim.RAdam, radam, {"lr": 0.1, "betas": (0.9, 0.999)}),
    (optim.RAdam, radam, {"lr": 0.1, "betas": (0.9, 0.8), "weight_decay": 0.3}),
    (optim.RAdam, radam, {"lr": 0.1, "betas": (0.9, 0.9), "weight_decay": 0.3, "decoupled_weight_decay": True}),
    (optim.Adagrad, adagrad, {"lr": 0.1}),
    (optim.Adagrad, adagrad, {"lr": 0.1, "lr_decay": 0.2, "weight_decay": 0.3, "initial_accumulator_value": 0.5}),
    (optim.Adadelta, adadelta, {}),
    (optim.Adadelta, adadelta, {"lr": 0.5, "rho": 0.7, "eps": 1e-3, "weight_decay": 0.3}),
    (optim.RMSprop, rmsprop, {"lr": 0.1}),
    (optim.RMSprop, rmsprop, {"lr": 0.1, "alpha": 0.8, "momentum": 0.7, "weight_decay": 0.3}),
    (optim.RMSprop, rmsprop, {"lr": 0.1, "alpha": 0.8, "centered": True}),
    (optim.RMSprop, rmsprop, {"lr": 0.1, "alpha": 0.8, "centered": True, "momentum": 0.7, "eps": 0.1}),
    (optim.Rprop, rprop, {"lr": 0.1}),
    (optim.Rprop, rprop, {"lr": 0.1, "etas": (0.2, 1.9), "step_sizes": (0.04, 0.3)}),
    (optim.ASGD, asgd, {"lr": 0.1}),
    (optim.ASGD, asgd, {"lr": 0.1, "lambd": 0.2, "alpha": 0.5, "weight_decay": 0.3}),
]


def reference(formula, steps=STEPS, sign=1, **options):
    x, states = list(START), [{} for _ in START]
    for t in range(1, steps + 1):
        g = gradients(x, t)
        x = [formula(v, sign * d, t, s, **options) for v, d, s in zip(x, g, states, strict=True)]
    return x


# The state of NAdam and ASGD has float32 numbers, as in checkpoints of PyTorch.
PRECISION = {optim.NAdam: 1e-6, optim.ASGD: 1e-6}


@pytest.mark.parametrize(("cls", "formula", "options"), CASES)
@pytest.mark.parametrize("maximize", [False, True])
def test_formula(cls, formula, options, maximize):
    expected = reference(formula, sign=-1 if maximize else 1, **options)
    assert train(cls, maximize=maximize, **options) == pytest.approx(expected, rel=PRECISION.get(cls, 1e-12))


@pytest.mark.parametrize(("cls", "formula", "options"), CASES)
def test_formula_in_float32(cls, formula, options):
    assert train(cls, torch.float32, **options) == pytest.approx(reference(formula, **options), rel=1e-5, abs=1e-5)


@pytest.mark.parametrize(("cls", "formula", "options"), CASES)
def test_rate_as_a_tensor(cls, formula, options):
    options = {"lr": 1.0, **options}
    rate = torch.tensor(options["lr"])
    assert train(cls, **{**options, "lr": rate}) == pytest.approx(train(cls, **options), rel=1e-6, abs=1e-8)
    assert rate.item() == pytest.approx(options["lr"])


@pytest.mark.parametrize(("cls", "formula", "options"), CASES)
def test_layout_of_the_parameter_does_not_matter(cls, formula, options):
    whole = torch.tensor(START * 2, dtype=torch.float64).reshape(2, 4)
    p = whole.T[:, 0].requires_grad_()
    assert not whole.T.is_contiguous()
    q = whole.T.detach().clone(memory_format=torch.contiguous_format)[::2].requires_grad_()
    opt = cls([p, q], **options)
    for step in range(1, STEPS + 1):
        p.grad = torch.tensor(gradients(p.tolist(), step), dtype=torch.float64)
        q.grad = torch.ones(2, 2, dtype=torch.float64).T
        opt.step()
    assert p.tolist() == train(cls, **options)
    assert torch.equal(q[:, 0], q[:, 1])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize(("cls", "formula", "options"), CASES)
def test_half_types(cls, formula, options, dtype):
    # An epsilon below the least half number would leave zeros to divide by.
    if cls in (optim.Adagrad, optim.Adadelta):
        options = {**options, "eps": 1e-3}
    expected = reference(formula, steps=3, **options)
    result = train(cls, dtype, steps=3, **options)
    assert result == pytest.approx(expected, rel=0.1, abs=0.1)
    assert result != START


@pytest.mark.parametrize(("cls", "formula", "options"), CASES)
def test_complex_numbers_are_pairs_of_real_ones(cls, formula, options):
    p = Parameter(torch.tensor([0.7 - 1.3j, 0.0 + 2.5j]))
    q = Parameter(torch.view_as_real(p.detach()).clone())
    one, two = cls([p], **options), cls([q], **options)
    for step in range(STEPS):
        g = [cmath.rect(1.0, 2.0 * step + i) for i in range(2)]
        p.grad = torch.tensor(g, dtype=torch.complex64)
        q.grad = torch.view_as_real(p.grad).clone()
        one.step()
        two.step()
    torch.testing.assert_close(torch.view_as_real(p.detach()), q.detach(), rtol=1e-5, atol=1e-6)
    for key, value in one.state[p].items():
        assert value.is_complex() == (key not in ("step", "eta", "mu", "mu_product"))


def test_averages_of_asgd():
    p = Parameter(torch.tensor([1.0], dtype=torch.float64))
    opt = optim.ASGD([p], lr=0.1, lambd=0.0, t0=2)
    seen = []
    for _ in range(5):
        p.grad = torch.ones(1, dtype=torch.float64)
        opt.step()
        seen.append(opt.state[p]["ax"].item())
    # mu of steps 1 to 5: 1, 1, 1, 1, 1/2
    assert seen == pytest.approx([0.9, 0.8, 0.7, 0.6, 0.55])


def test_adafactor_of_a_matrix():
    g = torch.tensor([[1.0, 2.0], [3.0, -4.0], [0.5, 0.0]], dtype=torch.float64)
    p = Parameter(torch.full((3, 2), 0.5, dtype=torch.float64))
    p.grad = g.clone()
    opt = optim.Adafactor([p], lr=0.1, weight_decay=0.2)
    opt.step()
    rows, columns = (g * g).mean(1, keepdim=True), (g * g).mean(0, keepdim=True)
    variance = rows * columns / rows.mean()
    update = g / variance.sqrt()
    clip = max(1.0, (update * update).mean().sqrt().item())
    expected = 0.5 * (1 - 0.1 * 0.2) - 0.5 * 0.1 / clip * update
    torch.testing.assert_close(p.detach(), expected)
    torch.testing.assert_close(opt.state[p]["row_var"], rows)
    torch.testing.assert_close(opt.state[p]["col_var"], columns)


def test_adafactor_of_a_vector():
    p = Parameter(torch.tensor([0.5, -0.5, 0.5], dtype=torch.float64))
    opt = optim.Adafactor([p], lr=0.1, d=2.0)
    p.grad = torch.tensor([3.0, -2.0, 0.0], dtype=torch.float64)
    opt.step()
    # In the first step every update is the gradient's sign, and its root mean square is below d.
    assert p.tolist() == pytest.approx([0.45, -0.45, 0.5])
    assert opt.state[p]["variance"].tolist() == pytest.approx([9.0, 4.0, 0.0])


def test_adafactor_refuses_complex_parameters():
    p = Parameter(torch.ones(2, dtype=torch.complex64))
    p.grad = torch.ones(2, dtype=torch.complex64)
    with pytest.raises(RuntimeError, match="Adafactor does not support complex parameters"):
        optim.Adafactor([p]).step()


@pytest.mark.parametrize("shape", [(6, 3), (3, 6), (4, 4)])
def test_muon_moves_by_nearly_orthogonal_matrices(shape):
    torch.manual_seed(0)
    p = Parameter(torch.zeros(shape))
    p.grad = torch.randn(shape)
    optim.Muon([p], lr=1.0, weight_decay=0.0).step()
    ratio = math.sqrt(max(1, shape[0] / shape[1]))
    singular = torch.linalg.svdvals(p.detach()) / ratio
    assert singular.min().item() > 0.5
    assert singular.max().item() < 1.3
    assert (p * p.grad).sum().item() < 0


def test_muon_options():
    p = Parameter(torch.ones(2, 8))
    p.grad = torch.zeros(2, 8)
    optim.Muon([p], lr=0.5, weight_decay=0.5).step()
    assert torch.equal(p.detach(), torch.full((2, 8), 0.75))  # only the decay is left
    moved = []
    for adjust in ("original", "match_rms_adamw"):
        q = Parameter(torch.zeros(2, 8))
        q.grad = p.detach() + torch.arange(16.0).reshape(2, 8)
        optim.Muon([q], lr=0.5, weight_decay=0.0, adjust_lr_fn=adjust).step()
        moved.append(q.detach())
    torch.testing.assert_close(moved[1], moved[0] * 0.2 * math.sqrt(8))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"adjust_lr_fn": "abc"}, ValueError, "Adjust learning rate function abc is not supported"),
        ({"ns_steps": 100}, ValueError, "Number of steps must be less than 100"),
        ({"ns_coefficients": (1.0, 2.0)}, ValueError, "Coefficients must be a tuple of exactly 3 values"),
    ],
)
def test_muon_refusals(options, error, message):
    p = Parameter(torch.ones(2, 2))
    p.grad = torch.ones(2, 2)
    with pytest.raises(error, match=message):
        optim.Muon([p], **options).step()
    assert torch.equal(p.detach(), torch.ones(2, 2))


def test_muon_refuses_vectors():
    with pytest.raises(ValueError, match="Muon only supports 2D parameters whereas we found a parameter with size"):
        optim.Muon([Parameter(torch.ones(3))])


# --- options --------------------------------------------------------------------------------------------------------

NEGATIVE = [
    (optim.SGD, "lr", "Invalid learning rate: -1"),
    (optim.SGD, "momentum", "Invalid momentum value: -1"),
    (optim.SGD, "weight_decay", "Invalid weight_decay value: -1"),
    (optim.Adam, "lr", "Invalid learning rate: -1"),
    (optim.Adam, "eps", "Invalid epsilon value: -1"),
    (optim.AdamW, "weight_decay", "Invalid weight_decay value: -1"),
    (optim.Adamax, "eps", "Invalid epsilon value: -1"),
    (optim.NAdam, "momentum_decay", "Invalid momentum_decay value: -1"),
    (optim.RAdam, "weight_decay", "Invalid weight_decay value: -1"),
    (optim.Adagrad, "lr_decay", "Invalid lr_decay value: -1"),
    (optim.Adagrad, "initial_accumulator_value", "Invalid initial_accumulator_value value: -1"),
    (optim.Adadelta, "rho", "Invalid rho value: -1"),
    (optim.RMSprop, "alpha", "Invalid alpha value: -1"),
    (optim.RMSprop, "momentum", "Invalid momentum value: -1"),
    (optim.Rprop, "lr", "Invalid learning rate: -1"),
    (optim.ASGD, "weight_decay", "Invalid weight_decay value: -1"),
    (optim.LBFGS, "lr", "Invalid learning rate: -1"),
    (optim.Adafactor, "lr", "Learning rate should be >= 0 but is: -1"),
    (optim.Adafactor, "weight_decay", "weight_decay should be >= 0 but is: -1"),
    (optim.Adafactor, "d", "Clipping threshold d should be >= 1 but is: -1"),
    (optim.Muon, "lr", "Learning rate should be >= 0 but is: -1"),
    (optim.Muon, "momentum", "momentum should be >= 0 but is: -1"),
    (optim.Muon, "weight_decay", "weight decay should be >= 0 but is: -1"),
]


@pytest.mark.parametrize(("cls", "option", "message"), NEGATIVE)
def test_negative_options_are_refused(cls, option, message):
    with pytest.raises(ValueError) as info:
        cls([Parameter(torch.ones(2, 2))], **{option: -1})
    assert str(info.value) == message


@pytest.mark.parametrize(
    ("cls", "options", "error", "message"),
    [
        (optim.SGD, {"nesterov": True}, ValueError, "Nesterov momentum requires a momentum and zero dampening"),
        (optim.SGD, {"nesterov": True, "momentum": 0.9, "dampening": 0.1}, ValueError, "Nesterov momentum requires"),
        (optim.SGD, {"lr": torch.ones(2)}, ValueError, "Tensor lr must be 1-element"),
        (optim.SGD, {"lr": torch.tensor(-1.0)}, ValueError, "Invalid learning rate: -1.0"),
        (optim.Adam, {"lr": math.nan}, ValueError, "Invalid learning rate: nan"),
        (optim.Adam, {"betas": (1.0, 0.9)}, ValueError, "Invalid beta parameter at index 0: 1.0"),
        (optim.Adam, {"betas": (0.9, -0.1)}, ValueError, "Invalid beta parameter at index 1: -0.1"),
        (optim.Adam, {"betas": (torch.tensor(0.9), 0.9)}, ValueError, "betas must be either both floats or both"),
        (
            optim.Adam,
            {"lr": torch.tensor(0.1), "foreach": True},
            ValueError,
            "lr as a Tensor is not supported for capturable=False and foreach=True",
        ),
        (optim.Adam, {"foreach": True, "fused": True}, RuntimeError, "`fused` and `foreach` cannot be `True` together"),
        (optim.SGD, {"differentiable": True, "fused": True}, RuntimeError, "`fused` does not support `differentiable`"),
        (optim.Adagrad, {"foreach": True, "fused": True}, RuntimeError, "`fused` and `foreach` cannot be `True`"),
        (optim.Rprop, {"etas": (1.5, 1.2)}, ValueError, "Invalid eta values: 1.5, 1.2"),
        (optim.Adadelta, {"rho": 2}, ValueError, "Invalid rho value: 2"),
        (optim.Adafactor, {"eps": (-1, 1)}, ValueError, "epsilon1 should be >= 0 but is: -1"),
        (optim.Adafactor, {"eps": (None, -1)}, ValueError, "epsilon2 should be >= 0 but is: -1"),
        (optim.Adafactor, {"beta2_decay": 1}, ValueError, "beta2_decay should be <= 0 but is: 1"),
        (optim.Adam, {"rate": 1}, TypeError, "unexpected keyword argument 'rate'"),
    ],
)
def test_refused_options(cls, options, error, message):
    with pytest.raises(error) as info:
        cls([Parameter(torch.ones(2, 2))], **options)
    assert info.type is error
    assert message in str(info.value)


@pytest.mark.parametrize("option", ["foreach", "fused", "capturable"])
@pytest.mark.parametrize("cls", [optim.SGD, optim.Adam, optim.AdamW, optim.Adagrad, optim.RMSprop, optim.ASGD])
def test_choices_of_implementation_change_nothing(cls, option):
    if option not in cls([Parameter(torch.ones(1))]).defaults:
        with pytest.raises(TypeError, match=option):
            cls([Parameter(torch.ones(1))], **{option: True})
        return
    assert train(cls, **{option: True}) == train(cls)


def test_betas_as_tensors():
    betas = (torch.tensor(0.8, dtype=torch.float64), torch.tensor(0.95, dtype=torch.float64))
    assert train(optim.Adam, betas=betas) == train(optim.Adam, betas=(0.8, 0.95))


# --- differentiable steps -------------------------------------------------------------------------------------------


def two_steps(cls, lr=None, **options):
    """A function of parameter, gradients (and rate) that gives the parameter and state after two steps."""

    def function(p, g, h, *rate):
        p = p.clone()
        opt = cls(
            [p], differentiable=True, **options, **({"lr": rate[0]} if rate else {} if lr is None else {"lr": lr})
        )
        for grad in (g, h):
            p.grad = grad
            opt.step()
        return (p, *(v for v in opt.state[p].values() if v.requires_grad and v.dtype == torch.float64))

    return function


def inputs(*more):
    torch.manual_seed(3)
    tensors = [torch.randn(4, dtype=torch.float64) for _ in range(3)]
    tensors[2] += 0.1 * tensors[1].sign()
    return tuple(t.requires_grad_() for t in (*tensors, *more))


DIFFERENTIABLE = [
    (cls, {k: v for k, v in options.items() if k != "lr"})
    for cls, _, options in CASES
    if cls is not optim.Rprop  # its derivative by the gradient is zero wherever there is one
]


@pytest.mark.parametrize(("cls", "options"), DIFFERENTIABLE)
def test_steps_are_differentiable(cls, options):
    assert gradcheck(two_steps(cls, lr=0.1, **options), inputs(), eps=1e-7, atol=1e-4)


# The state keeps ASGD's rate in float32, too coarse for differences.
@pytest.mark.parametrize(("cls", "options"), [case for case in DIFFERENTIABLE if case[0] is not optim.ASGD])
def test_steps_are_differentiable_by_the_rate(cls, options):
    rate = torch.tensor(0.1, dtype=torch.float64)
    assert gradcheck(two_steps(cls, **options), inputs(rate), eps=1e-7, atol=1e-4)


def test_rate_of_asgd_has_a_gradient():
    rate = torch.tensor(0.1, requires_grad=True)
    p = torch.ones(3, requires_grad=True)
    (end,) = two_steps(optim.ASGD, lambd=0.0)(p, torch.ones(3), torch.ones(3), rate)[:1]
    (slope,) = torch.autograd.grad(end.sum(), rate)
    assert slope.item() == pytest.approx(-6.0)


def test_rprop_is_differentiable_by_the_parameter():
    p, g, h = inputs()
    (end,) = two_steps(optim.Rprop)(p, g, h)[:1]
    assert torch.equal(torch.autograd.grad(end.sum(), p)[0], torch.ones(4, dtype=torch.float64))


def test_decay_rates_of_adam_have_gradients():
    def function(beta1, beta2):
        return two_steps(optim.Adam, betas=(beta1, beta2), lr=0.1)(*[t.detach() for t in inputs()])[0]

    betas = [torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in (0.7, 0.9)]
    assert gradcheck(function, betas, eps=1e-6, atol=1e-5)


def test_undifferentiable_steps_refuse_nothing_but_record_nothing():
    p = Parameter(torch.ones(2))
    p.grad = (p * 3).detach().requires_grad_()
    opt = optim.SGD([p], lr=0.1, momentum=0.9)
    opt.step()
    assert not opt.state[p]["momentum_buffer"].requires_grad
