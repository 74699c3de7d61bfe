"""Schedules: their values, the order of calls, warnings, and state dicts."""

import copy
import gc
import math
import pickle
import warnings
import weakref

import pytest

import rushlight as torch
from rushlight import optim
from rushlight.nn import Parameter
from rushlight.optim import lr_scheduler as schedule


def optimizer(groups=1, lr=1.0, cls=optim.SGD, **options):
    if cls is optim.SGD:
        options.setdefault("momentum", 0.9)
    return cls([{"params": [Parameter(torch.ones(1))]} for _ in range(groups)], lr=lr, **options)


def rates(opt, scheduler, steps):
    """The first group's rate after each step, the first one before any."""
    seen = [float(opt.param_groups[0]["lr"])]
    for _ in range(steps):
        opt.step()
        scheduler.step()
        assert scheduler.get_last_lr() == [g["lr"] for g in opt.param_groups]
        seen.append(float(opt.param_groups[0]["lr"]))
    return seen


COSINE = [(1 + math.cos(math.pi * t / 4)) / 2 for t in range(8)]

VALUES = [
    (schedule.LambdaLR, {"lr_lambda": lambda e: 0.5**e}, [1, 0.5, 0.25, 0.125]),
    (schedule.MultiplicativeLR, {"lr_lambda": lambda e: e}, [1, 1, 2, 6, 24]),
    (schedule.StepLR, {"step_size": 2, "gamma": 0.5}, [1, 1, 0.5, 0.5, 0.25]),
    (schedule.MultiStepLR, {"milestones": [1, 3, 3], "gamma": 0.5}, [1, 0.5, 0.5, 0.125, 0.125]),
    (schedule.ConstantLR, {"factor": 0.5, "total_iters": 2}, [0.5, 0.5, 1, 1]),
    (
        schedule.LinearLR,
        {"start_factor": 0.5, "end_factor": 1.0, "total_iters": 4},
        [0.5, 0.625, 0.75, 0.875, 1, 1, 1],
    ),
    (schedule.ExponentialLR, {"gamma": 0.5}, [1, 0.5, 0.25, 0.125]),
    (schedule.PolynomialLR, {"total_iters": 4, "power": 2.0}, [1, 0.5625, 0.25, 0.0625, 0, 0, 0]),
    (schedule.CosineAnnealingLR, {"T_max": 4}, [*COSINE, *COSINE]),
    (schedule.CosineAnnealingLR, {"T_max": 4, "eta_min": 0.5}, [0.5 + c / 2 for c in COSINE]),
    (schedule.CosineAnnealingWarmRestarts, {"T_0": 4}, [*COSINE[:4], *COSINE[:4], 1]),
    (schedule.CosineAnnealingWarmRestarts, {"T_0": 1, "T_mult": 2}, [1, 1, 0.5, 1, *COSINE[1:4], 1]),
]


@pytest.mark.parametrize(("cls", "options", "expected"), VALUES)
def test_values(cls, options, expected):
    opt = optimizer()
    assert rates(opt, cls(opt, **options), len(expected) - 1) == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize(("cls", "options", "expected"), VALUES)
def test_values_with_the_rate_as_a_tensor(cls, options, expected):
    rate = torch.tensor(1.0)
    opt = optimizer(lr=rate)
    scheduler = cls(opt, **options)
    assert rates(opt, scheduler, len(expected) - 1) == pytest.approx(expected, abs=1e-6)
    assert opt.param_groups[0]["lr"] is rate  # others may hold it
    assert scheduler.base_lrs[0].item() == 1.0


@pytest.mark.parametrize(("cls", "options", "expected"), VALUES)
def test_closed_form_equals_the_chain(cls, options, expected):
    if cls is schedule.MultiplicativeLR:
        assert not hasattr(cls, "_get_closed_form_lr")
        return
    for epoch in range(len(expected)):
        opt = optimizer()
        scheduler = cls(opt, **options)
        opt.step()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scheduler.step(epoch)
        assert scheduler.get_last_lr() == pytest.approx([expected[epoch]], abs=1e-15)
        assert scheduler.last_epoch == epoch


@pytest.mark.parametrize(("cls", "options", "expected"), VALUES)
def test_resumed_schedule_counts_from_its_epoch(cls, options, expected):
    opt = optimizer(lr=0.5)
    opt.param_groups[0]["initial_lr"] = 2.0
    scheduler = cls(opt, **options, last_epoch=2)
    assert scheduler.last_epoch == 3
    assert scheduler.base_lrs == [2.0]
    assert opt.param_groups[0]["initial_lr"] == 2.0


@pytest.mark.parametrize(("cls", "options", "expected"), VALUES)
def test_state_dict_goes_on(cls, options, expected):
    opt = optimizer()
    scheduler = cls(opt, **options)
    rates(opt, scheduler, 2)
    saved = pickle.loads(pickle.dumps((opt.state_dict(), scheduler.state_dict())))
    assert "optimizer" not in saved[1]
    other = optimizer(lr=7.0)
    resumed = cls(other, **options)
    other.load_state_dict(saved[0])
    resumed.load_state_dict(saved[1])
    assert rates(other, resumed, len(expected) - 3) == pytest.approx(expected[2:], abs=1e-13)


def test_groups_have_their_own_rates():
    opt = optim.SGD([{"params": [Parameter(torch.ones(1))], "lr": lr} for lr in (1.0, 3.0)], lr=9.0)
    scheduler = schedule.LambdaLR(opt, [lambda e: 0.5**e, lambda e: 1.0])
    rates(opt, scheduler, 2)
    assert scheduler.get_last_lr() == [0.25, 3.0]
    assert scheduler.base_lrs == [1.0, 3.0]


class Decay:
    def __init__(self, base):
        self.base = base

    def __call__(self, epoch):
        return self.base**epoch


@pytest.mark.parametrize("cls", [schedule.LambdaLR, schedule.MultiplicativeLR])
def test_state_dict_keeps_the_attributes_of_callables_but_no_functions(cls):
    saved = cls(optimizer(2), [Decay(0.5), lambda e: 1.0]).state_dict()
    assert saved["lr_lambdas"] == [{"base": 0.5}, None]
    other = cls(optimizer(2), [Decay(0.7), lambda e: 1.0])
    other.load_state_dict(saved)
    assert other.lr_lambdas[0].base == 0.5
    assert saved["lr_lambdas"] == [{"base": 0.5}, None]


# --- cycles ---------------------------------------------------------------------------------------------------------


def test_cyclic():
    opt = optimizer()
    scheduler = schedule.CyclicLR(opt, 1.0, 3.0, step_size_up=2, step_size_down=4, base_momentum=0.5, max_momentum=0.9)
    assert opt.param_groups[0]["momentum"] == 0.9
    seen = []
    for _ in range(7):
        seen.append((opt.param_groups[0]["lr"], opt.param_groups[0]["momentum"]))
        opt.step()
        scheduler.step()
    assert [s[0] for s in seen] == pytest.approx([1, 2, 3, 2.5, 2, 1.5, 1])
    assert [s[1] for s in seen] == pytest.approx([0.9, 0.7, 0.5, 0.6, 0.7, 0.8, 0.9])


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"mode": "triangular2"}, [1, 3, 1, 2, 1, 1.5]),
        ({"mode": "exp_range", "gamma": 0.5}, [1, 2, 1, 1.25, 1]),
        ({"scale_fn": lambda cycle: cycle}, [1, 3, 1, 5, 1, 7]),
        ({"scale_fn": lambda step: step, "scale_mode": "iterations"}, [1, 3, 1, 7, 1]),
    ],
)
def test_cyclic_heights(options, expected):
    opt = optimizer()
    scheduler = schedule.CyclicLR(opt, 1.0, 3.0, step_size_up=1, cycle_momentum=False, **options)
    assert rates(opt, scheduler, len(expected) - 1) == pytest.approx(expected)
    assert opt.param_groups[0]["momentum"] == 0.9


def test_cyclic_state_dict_leaves_functions_out():
    scheduler = schedule.CyclicLR(optimizer(), 1.0, 3.0, scale_fn=Decay(0.5))
    saved = scheduler.state_dict()
    assert saved["_scale_fn_custom"] == {"base": 0.5}
    other = schedule.CyclicLR(optimizer(), 1.0, 3.0, scale_fn=Decay(0.9))
    other.load_state_dict(pickle.loads(pickle.dumps(saved)))
    assert other.scale_fn(1) == 0.5


@pytest.mark.parametrize("cls", [optim.SGD, optim.Adam])
def test_one_cycle(cls):
    opt = optimizer(cls=cls)

    def momentum():
        group = opt.param_groups[0]
        return group["betas"][0] if cls is optim.Adam else group["momentum"]

    scheduler = schedule.OneCycleLR(
        opt, 1.0, total_steps=10, pct_start=0.5, anneal_strategy="linear", div_factor=4.0, final_div_factor=10.0
    )
    moments = [momentum()]
    seen = [opt.param_groups[0]["lr"]]
    for _ in range(9):
        opt.step()
        scheduler.step()
        seen.append(opt.param_groups[0]["lr"])
        moments.append(momentum())
    assert seen[:5] == pytest.approx([0.25, 0.4375, 0.625, 0.8125, 1.0])
    assert seen[9] == pytest.approx(0.025)
    assert seen[4:] == sorted(seen[4:], reverse=True)
    assert (moments[0], moments[4], moments[9]) == pytest.approx((0.95, 0.85, 0.95))


def test_one_cycle_in_three_phases_along_a_cosine():
    opt = optimizer()
    scheduler = schedule.OneCycleLR(
        opt, 1.0, epochs=2, steps_per_epoch=5, pct_start=0.3, div_factor=2.0, final_div_factor=10.0, three_phase=True
    )
    seen = rates(opt, scheduler, 9)
    assert (seen[0], seen[1], seen[2], seen[4], seen[9]) == pytest.approx((0.5, 0.75, 1.0, 0.5, 0.05))
    opt.step()
    scheduler.step()
    with pytest.raises(ValueError, match=r"Tried to step 11 times. The specified number of total steps is 10"):
        scheduler.step()


# --- plateau --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "metrics", "expected"),
    [
        ({"patience": 1}, [3, 2, 2, 2, 2, 2], [1, 1, 1, 0.1, 0.1, 0.01]),
        ({"patience": 0, "mode": "max"}, [1, 2, 1, 3], [1, 1, 0.1, 0.1]),
        ({"patience": 0, "cooldown": 2}, [1, 1, 1, 1, 1], [1, 0.1, 0.1, 0.1, 0.01]),
        ({"patience": 0, "threshold": 0.5}, [1, 0.6, 0.4], [1, 0.1, 0.1]),
        ({"patience": 0, "threshold": 0.5, "threshold_mode": "abs"}, [1, 0.6, 0.4], [1, 0.1, 0.1]),
        ({"patience": 0, "threshold": 0.5, "threshold_mode": "abs", "mode": "max"}, [1, 1.4, 1.6], [1, 0.1, 0.1]),
        ({"patience": 0, "min_lr": 0.05}, [1, 1, 1, 1], [1, 0.1, 0.05, 0.05]),
        ({"patience": 0, "eps": 0.95}, [1, 1, 1], [1, 1, 1]),
        ({"patience": 0}, [math.nan, math.nan], [0.1, 0.01]),
    ],
)
def test_plateau(options, metrics, expected):
    opt = optimizer()
    scheduler = schedule.ReduceLROnPlateau(opt, **options)
    seen = []
    for metric in metrics:
        scheduler.step(torch.tensor(float(metric)))
        seen.append(scheduler.get_last_lr()[0])
    assert seen == pytest.approx(expected)


def test_plateau_notices_new_groups():
    opt = optimizer()
    one = schedule.ReduceLROnPlateau(opt, patience=0, min_lr=0.5)
    listed = schedule.ReduceLROnPlateau(opt, patience=0, min_lr=[0.5])
    opt.add_param_group({"params": [Parameter(torch.ones(1))]})
    one.step(1.0)
    one.step(1.0)
    assert one.get_last_lr() == [0.5, 0.5]
    listed.step(1.0)
    with pytest.raises(RuntimeError, match="usually due to a new param group"):
        listed.step(1.0)


def test_plateau_state_dict():
    scheduler = schedule.ReduceLROnPlateau(optimizer(), patience=1)
    scheduler.step(1.0)
    scheduler.step(2.0)
    other = schedule.ReduceLROnPlateau(optimizer(), patience=1)
    other.load_state_dict(copy.deepcopy(scheduler.state_dict()))
    other.step(2.0)
    assert other.get_last_lr() == pytest.approx([0.1])


# --- composites -----------------------------------------------------------------------------------------------------


def sequence(opt):
    return schedule.SequentialLR(
        opt,
        [schedule.ConstantLR(opt, 0.5, 10), schedule.ExponentialLR(opt, 0.5), schedule.StepLR(opt, 1, 0.1)],
        [2, 4],
    )


def test_sequence():
    opt = optimizer()
    assert rates(opt, sequence(opt), 5) == pytest.approx([0.5, 0.5, 1.0, 0.5, 1.0, 0.1])


def test_sequence_of_chains():
    opt = optimizer()
    chain = schedule.ChainedScheduler([schedule.ConstantLR(opt, 0.5, 2), schedule.ExponentialLR(opt, 0.5)])
    scheduler = schedule.SequentialLR(opt, [schedule.ConstantLR(opt, 0.1, 9), schedule.LambdaLR(opt, lambda e: e)], [2])
    assert rates(opt, scheduler, 3) == pytest.approx([0.1, 0.1, 0.0, 1.0])
    assert rates(opt, chain, 2) == pytest.approx([1.0, 0.5, 0.5])


def test_chain():
    opt = optimizer()
    scheduler = schedule.ChainedScheduler([schedule.ConstantLR(opt, 0.5, 2), schedule.ExponentialLR(opt, 0.5)])
    assert rates(opt, scheduler, 3) == pytest.approx([0.5, 0.25, 0.25, 0.125])


@pytest.mark.parametrize("make", [sequence, lambda opt: schedule.ChainedScheduler([schedule.StepLR(opt, 2, 0.5)])])
def test_composite_state_dicts(make):
    opt = optimizer()
    scheduler = make(opt)
    rates(opt, scheduler, 3)
    saved = copy.deepcopy((opt.state_dict(), scheduler.state_dict()))
    assert all(isinstance(s, dict) for s in saved[1]["_schedulers"])
    other = optimizer()
    resumed = make(other)
    other.load_state_dict(saved[0])
    resumed.load_state_dict(saved[1])
    assert rates(other, resumed, 3) == rates(opt, scheduler, 3)


# --- refusals and warnings ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda o: schedule.StepLR(3, 1), TypeError, "int is not an Optimizer"),
        (lambda o: schedule.ReduceLROnPlateau(3), TypeError, "int is not an Optimizer"),
        (lambda o: schedule.CyclicLR(3, 1, 2), TypeError, "int is not an Optimizer"),
        (lambda o: schedule.OneCycleLR(3, 1), TypeError, "int is not an Optimizer"),
        (
            lambda o: schedule.StepLR(o, 1, last_epoch=3),
            KeyError,
            "param 'initial_lr' is not specified in param_groups",
        ),
        (lambda o: schedule.LambdaLR(o, [len]), ValueError, "Expected 2 lr_lambdas, but got 1"),
        (lambda o: schedule.MultiplicativeLR(o, [len] * 3), ValueError, "Expected 2 lr_lambdas, but got 3"),
        (
            lambda o: schedule.ConstantLR(o, 2),
            ValueError,
            "Constant multiplicative factor expected to be between 0 and",
        ),
        (lambda o: schedule.LinearLR(o, 0), ValueError, "Starting multiplicative factor expected to be greater than 0"),
        (
            lambda o: schedule.LinearLR(o, end_factor=2),
            ValueError,
            "Ending multiplicative factor expected to be between",
        ),
        (lambda o: schedule.CosineAnnealingWarmRestarts(o, 0), ValueError, "Expected positive integer T_0, but got 0"),
        (
            lambda o: schedule.CosineAnnealingWarmRestarts(o, 1, 0),
            ValueError,
            "Expected integer T_mult >= 1, but got 0",
        ),
        (
            lambda o: schedule.CosineAnnealingWarmRestarts(o, 1, eta_min="a"),
            ValueError,
            "Expected float or int eta_min, but got a of type <class 'str'>",
        ),
        (
            lambda o: schedule.CosineAnnealingWarmRestarts(o, 1).step(-1),
            ValueError,
            "Expected non-negative epoch, but got -1",
        ),
        (lambda o: schedule.CyclicLR(o, 1, 2, mode="x"), ValueError, "mode is invalid and scale_fn is None"),
        (
            lambda o: schedule.CyclicLR(o, [1], 2),
            ValueError,
            "base_lr must have the same length as optimizer.param_groups. base_lr has 1 values, param_groups has 2.",
        ),
        (
            lambda o: schedule.CyclicLR(optimizer(cls=optim.Adagrad), 1, 2),
            ValueError,
            "optimizer must support momentum or beta1 with `cycle_momentum` option enabled",
        ),
        (
            lambda o: schedule.OneCycleLR(optimizer(cls=optim.Adagrad), 1, 2),
            ValueError,
            "optimizer must support momentum or beta1 with `cycle_momentum` option enabled",
        ),
        (
            lambda o: schedule.OneCycleLR(o, 1, epochs=3),
            ValueError,
            "You must define either total_steps OR (epochs AND steps_per_epoch)",
        ),
        (lambda o: schedule.OneCycleLR(o, 1, 0), ValueError, "Expected positive integer total_steps, but got 0"),
        (
            lambda o: schedule.OneCycleLR(o, 1, epochs=0, steps_per_epoch=1),
            ValueError,
            "Expected positive integer epochs, but got 0",
        ),
        (
            lambda o: schedule.OneCycleLR(o, 1, 5, pct_start=2),
            ValueError,
            "Expected float between 0 and 1 pct_start, but got 2",
        ),
        (
            lambda o: schedule.OneCycleLR(o, 1, 5, anneal_strategy="x"),
            ValueError,
            "anneal_strategy must be one of 'cos' or 'linear', instead got x",
        ),
        (lambda o: schedule.ReduceLROnPlateau(o, factor=1), ValueError, "Factor should be < 1.0."),
        (lambda o: schedule.ReduceLROnPlateau(o, mode="x"), ValueError, "mode x is unknown!"),
        (lambda o: schedule.ReduceLROnPlateau(o, threshold_mode="x"), ValueError, "threshold mode x is unknown!"),
        (lambda o: schedule.ReduceLROnPlateau(o, min_lr=[1]), ValueError, "expected 2 min_lrs, got 1"),
        (lambda o: schedule.SequentialLR(o, [], []), ValueError, "SequentialLR expects at least one scheduler"),
        (
            lambda o: schedule.SequentialLR(o, [schedule.StepLR(o, 1)], [1]),
            ValueError,
            "Sequential Schedulers expects number of schedulers provided to be one more than the number of milestone",
        ),
        (
            lambda o: schedule.SequentialLR(o, [schedule.StepLR(optimizer(), 1)], []),
            ValueError,
            "SequentialLR expects all schedulers to belong to the same optimizer",
        ),
        (
            lambda o: schedule.SequentialLR(o, [schedule.ReduceLROnPlateau(o)], []),
            ValueError,
            "SequentialLR does not support `ReduceLROnPlateau` scheduler",
        ),
        (
            lambda o: schedule.SequentialLR(o, [object()], []),
            TypeError,
            "SequentialLR at index 0 should have `optimizer` as its attribute.",
        ),
        (lambda o: schedule.ChainedScheduler([]), ValueError, "ChainedScheduler expects at least one scheduler"),
        (
            lambda o: schedule.ChainedScheduler([schedule.StepLR(o, 1), schedule.StepLR(optimizer(), 1)]),
            ValueError,
            "belong to the same optimizer, but got scheduler StepLR at index 1",
        ),
        (
            lambda o: schedule.ChainedScheduler([schedule.ReduceLROnPlateau(o)]),
            ValueError,
            "ChainedScheduler does not support `ReduceLROnPlateau` scheduler",
        ),
        (lambda o: schedule.LRScheduler(o), NotImplementedError, "get_lr"),
    ],
)
def test_refusals(make, error, message):
    with pytest.raises(error) as info:
        make(optimizer(2))
    assert info.type is error
    assert message in str(info.value)


def test_right_order_is_quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        opt = optimizer()
        rates(opt, schedule.StepLR(opt, 1), 2)


def test_wrong_order_warns_once():
    scheduler = schedule.StepLR(optimizer(), 1)
    with pytest.warns(UserWarning, match=r"Detected call of `lr_scheduler.step\(\)` before `optimizer.step\(\)`"):
        scheduler.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scheduler.step()


def test_replaced_step_warns():
    opt = optimizer()
    scheduler = schedule.StepLR(opt, 1)
    opt.step = lambda: None
    with pytest.warns(UserWarning, match=r"`optimizer.step\(\)` has been overridden after"):
        scheduler.step()


def test_epoch_argument_warns():
    opt = optimizer()
    scheduler, plateau = schedule.StepLR(opt, 1), schedule.ReduceLROnPlateau(opt)
    opt.step()
    for call in (lambda: scheduler.step(2), lambda: plateau.step(1.0, 2)):
        with pytest.warns(UserWarning, match="The epoch parameter in `scheduler.step"):
            call()


def test_get_lr_from_outside_warns():
    scheduler = schedule.StepLR(optimizer(), 1)
    with pytest.warns(UserWarning, match=r"please use `get_last_lr\(\)`"):
        assert scheduler.get_lr() == [1.0]


def test_schedules_of_users():
    class Half(schedule._LRScheduler):
        def get_lr(self):
            return [base / (1 + self.last_epoch) for base in self.base_lrs]

    opt = optimizer()
    assert rates(opt, Half(opt), 3) == pytest.approx([1, 1 / 2, 1 / 3, 1 / 4])


def test_schedule_does_not_keep_the_optimizer_alive_by_its_step():
    opt = optimizer()
    scheduler = schedule.StepLR(opt, 1)
    ref = weakref.ref(opt)
    gc.disable()
    try:
        del opt, scheduler
        assert ref() is None
    finally:
        gc.enable()


def test_optimizer_with_a_schedule_can_be_copied():
    opt = optimizer()
    schedule.StepLR(opt, 1)
    other = copy.deepcopy(opt)
    for p in (opt.param_groups[0]["params"][0], other.param_groups[0]["params"][0]):
        p.grad = torch.ones(1)
    other.step()
    assert opt.param_groups[0]["params"][0].item() == 1.0
    assert other.param_groups[0]["params"][0].item() == 0.0
