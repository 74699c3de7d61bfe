"""Schedules against PyTorch's, number for number: fifty steps of each with every option."""

import copy
import itertools
import random
import warnings

import numpy as np
import pytest

import rushlight
import rushlight.optim

torch = pytest.importorskip("torch", reason="the oracle is installed by .ci/run only")
pytestmark = pytest.mark.oracle


def grid(**choices):
    """All combinations of options."""
    return [dict(zip(choices, values, strict=True)) for values in itertools.product(*choices.values())]


class Inverse:
    def __init__(self):
        self.power = 1

    def __call__(self, epoch):
        return 1 / (1 + epoch) ** self.power


def make(name, *args, **options):
    return lambda schedules, opt: getattr(schedules, name)(opt, *args, **options)


CHAINABLE = {
    "StepLR": make("StepLR", 7),
    "StepLR 2": make("StepLR", 3, 0.5),
    "MultiStepLR": make("MultiStepLR", [3, 3, 9, 40], 0.3),
    "ConstantLR": make("ConstantLR"),
    "ConstantLR 2": make("ConstantLR", 0.2, 11),
    "LinearLR": make("LinearLR"),
    "LinearLR 2": make("LinearLR", 0.1, 0.8, 17),
    "ExponentialLR": make("ExponentialLR", 0.93),
    "CosineAnnealingLR": make("CosineAnnealingLR", 11),
    "CosineAnnealingLR 2": make("CosineAnnealingLR", 60, 0.01),
    "PolynomialLR": make("PolynomialLR"),
    "PolynomialLR 2": make("PolynomialLR", 31, 2.5),
    "LambdaLR": make("LambdaLR", lambda epoch: 0.95**epoch),
    "LambdaLR 2": make("LambdaLR", [Inverse(), lambda epoch: epoch]),
    "MultiplicativeLR": make("MultiplicativeLR", [Inverse(), lambda epoch: 0.95]),
    "CosineAnnealingWarmRestarts": make("CosineAnnealingWarmRestarts", 7),
    "CosineAnnealingWarmRestarts 2": make("CosineAnnealingWarmRestarts", 4, 2, 0.05),
}
CYCLES = {
    "CyclicLR": make("CyclicLR", 0.01, 0.1, step_size_up=7),
    "CyclicLR 2": make("CyclicLR", [0.01, 0.02], [0.1, 0.3], 4, 9, mode="triangular2"),
    "CyclicLR 3": make("CyclicLR", 0.01, 0.1, 5, mode="exp_range", gamma=0.97),
    "CyclicLR 4": make("CyclicLR", 0.01, 0.1, 5, scale_fn=Inverse(), scale_mode="iterations"),
    "CyclicLR 5": make("CyclicLR", 0.01, 0.1, 5, cycle_momentum=False),
    "OneCycleLR": make("OneCycleLR", 0.5, 60),
    "OneCycleLR 2": make("OneCycleLR", [0.5, 0.9], epochs=5, steps_per_epoch=12, anneal_strategy="linear"),
    "OneCycleLR 3": make("OneCycleLR", 0.5, 60, three_phase=True, pct_start=0.35, div_factor=10.0),
    "OneCycleLR 4": make("OneCycleLR", 0.5, 60, cycle_momentum=False),
}
COMPOSITES = {
    "sequence": lambda s, o: s.SequentialLR(
        o, [s.ConstantLR(o, 0.1, 4), s.ExponentialLR(o, 0.9), s.CosineAnnealingLR(o, 10)], [5, 20]
    ),
    "sequence 2": lambda s, o: s.SequentialLR(o, [s.LinearLR(o), s.CosineAnnealingWarmRestarts(o, 3)], [6]),
    "sequence 3": lambda s, o: s.SequentialLR(
        o, [s.ChainedScheduler([s.LinearLR(o), s.StepLR(o, 2)]), s.CosineAnnealingWarmRestarts(o, 3)], [6]
    ),
    "sequence 4": lambda s, o: s.SequentialLR(o, [s.OneCycleLR(o, 0.3, 20), s.LambdaLR(o, lambda e: 0.1)], [15]),
    "chain": lambda s, o: s.ChainedScheduler(
        [s.ConstantLR(o, 0.1, 4), s.ExponentialLR(o, 0.9), s.MultiplicativeLR(o, lambda e: 1.01)]
    ),
    "chain 2": lambda s, o: s.ChainedScheduler([s.CosineAnnealingLR(o, 9), s.LinearLR(o, 0.2, 1.0, 7)], optimizer=o),
}
AVERAGING = {
    f"SWALR {options}": lambda s, o, options=options: s.SWALR(o, **options)
    for options in grid(swa_lr=[0.05, [0.05, 2.0]], anneal_epochs=[0, 5, 30], anneal_strategy=["cos", "linear"])
}
PLATEAUS = {
    f"plateau {options}": make("ReduceLROnPlateau", **options)
    for options in (
        {},
        {"patience": 2},
        {"mode": "max", "patience": 1, "cooldown": 3},
        {"threshold_mode": "abs", "threshold": 0.3, "patience": 0},
        {"mode": "max", "threshold_mode": "abs", "threshold": 0.1, "patience": 2, "min_lr": [0.1, 0.2], "factor": 0.5},
        {"patience": 0, "min_lr": 1e-3, "eps": 1e-2},
    )
}


def follow(package, schedules, build, epochs, cls="SGD", rate=0.7, initial=False, metrics=False):
    """Rates, momenta and counts after each step, and the state dict at the end."""
    params = [package.nn.Parameter(package.ones(1)) for _ in range(2)]
    options = {"momentum": 0.9} if cls == "SGD" else {}
    opt = getattr(package.optim, cls)(
        [{"params": [p], "lr": copy.deepcopy(rate)} for p in params], lr=copy.deepcopy(rate), **options
    )
    if not isinstance(rate, package.Tensor):
        opt.param_groups[1]["lr"] = 2 * rate
    if initial:
        for group in opt.param_groups:
            group["initial_lr"] = group["lr"]
    scheduler = build(schedules, opt)
    rng = random.Random(3)
    seen = []
    for epoch in epochs:
        seen.append(
            (
                [float(g["lr"]) for g in opt.param_groups],
                [float(v) for v in scheduler.get_last_lr()],
                [g.get("momentum", g.get("betas")) for g in opt.param_groups],
                scheduler.__dict__.get("last_epoch"),
            )
        )
        opt.step()
        if metrics:
            scheduler.step(rng.random() * rng.random())
        elif epoch is None:
            scheduler.step()
        else:
            scheduler.step(epoch)
    return seen, scheduler.state_dict()


def same_schedule(name, build, **options):
    def run(package):
        schedules = package.optim.swa_utils if name.startswith("SWALR") else package.optim.lr_scheduler
        rate = package.tensor(0.7) if options.get("tensor") else 0.7
        given = {k: v for k, v in options.items() if k != "tensor"}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return follow(package, schedules, build, rate=rate, **{"epochs": [None] * 50, **given})

    (want, want_state), (got, got_state) = run(torch), run(rushlight)
    if options.get("tensor"):
        assert np.allclose([w[0] for w in want], [g[0] for g in got], rtol=1e-6)
        return
    assert want == got
    # Functions have other addresses.
    assert {k: v for k, v in want_state.items() if "anneal_func" not in k} == {
        k: v for k, v in got_state.items() if "anneal_func" not in k
    }


ALL = CHAINABLE | CYCLES | COMPOSITES | AVERAGING


@pytest.mark.parametrize("name", ALL)
def test_fifty_steps_exactly(name):
    same_schedule(name, ALL[name])


@pytest.mark.parametrize("name", ALL)
def test_fifty_steps_of_adam_exactly(name):
    same_schedule(name, ALL[name], cls="Adam")


@pytest.mark.parametrize("name", ALL)
def test_fifty_steps_with_the_rate_as_a_tensor(name):
    same_schedule(name, ALL[name], tensor=True)


@pytest.mark.parametrize("name", PLATEAUS)
def test_plateaus_exactly(name):
    same_schedule(name, PLATEAUS[name], metrics=True)


@pytest.mark.parametrize("name", CHAINABLE)
def test_resumed_schedules_exactly(name):
    def build(schedules, opt):
        # Rebuilt as of epoch 4, from rates that the optimizer has.
        scheduler = CHAINABLE[name](schedules, opt)
        kind = type(scheduler)
        options = {k: v for k, v in scheduler.__dict__.items() if k in ("T_0", "T_mult", "eta_min", "T_max", "gamma")}
        options |= {k: v for k, v in scheduler.__dict__.items() if k in ("step_size", "factor", "total_iters", "power")}
        options |= {k: v for k, v in scheduler.__dict__.items() if k in ("start_factor", "end_factor")}
        if hasattr(scheduler, "lr_lambdas"):
            options["lr_lambda"] = scheduler.lr_lambdas
        if hasattr(scheduler, "milestones"):
            options["milestones"] = list(scheduler.milestones.elements())
        return kind(opt, last_epoch=4, **options)

    same_schedule(name, build, initial=True)


@pytest.mark.parametrize("name", [n for n in CHAINABLE | CYCLES if not n.startswith("OneCycle")])
def test_given_epochs_exactly(name):
    same_schedule(name, (CHAINABLE | CYCLES)[name], epochs=[3, 0, 10, 11, 5, None, None, 30, 7])


def test_fractional_epochs_exactly():
    epochs = [0.3, 1.7, 3.9, 4.2, 13.5, None, 50.25]
    same_schedule("restarts", make("CosineAnnealingWarmRestarts", 4, 2), epochs=epochs)
