"""Averages of models, the statistics of batch normalisation under them, and their schedule."""

import copy
import math

import pytest

import rushlight as torch
from rushlight import nn, optim
from rushlight.optim.swa_utils import (
    SWALR,
    AveragedModel,
    get_ema_avg_fn,
    get_ema_multi_avg_fn,
    get_swa_avg_fn,
    get_swa_multi_avg_fn,
    update_bn,
)


def model():
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    with torch.no_grad():
        for p in net.parameters():
            p.fill_(0.0)
    return net


def averaged(net, numbers, **options):
    average = AveragedModel(net, **options)
    for number in numbers:
        with torch.no_grad():
            net[0].weight.fill_(number)
            net[1].running_mean.fill_(number)
            net[1].num_batches_tracked.fill_(int(number))
        average.update_parameters(net)
    return average


NUMBERS = [1.0, 2.0, 6.0]
MEAN, EMA = 3.0, (1 * 0.5 + 2 * 0.5) * 0.5 + 6 * 0.5


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, MEAN),
        ({"avg_fn": get_swa_avg_fn()}, MEAN),
        ({"multi_avg_fn": get_swa_multi_avg_fn()}, MEAN),
        ({"avg_fn": get_ema_avg_fn(0.5)}, EMA),
        ({"multi_avg_fn": get_ema_multi_avg_fn(0.5)}, EMA),
        ({"avg_fn": lambda average, current, count: average + current * count}, 1 + 2 * 1 + 6 * 2),
    ],
)
@pytest.mark.parametrize("buffers", [False, True])
def test_averages(options, expected, buffers):
    net = model()
    average = averaged(net, NUMBERS, use_buffers=buffers, **options)
    assert average.n_averaged.item() == 3
    assert average.module[0].weight.flatten().tolist() == pytest.approx([expected] * 4)
    assert average.module[1].running_mean.tolist() == pytest.approx([expected if buffers else 6.0] * 2)
    assert average.module[1].num_batches_tracked.dtype == torch.int64
    assert net[0].weight[0, 0].item() == 6.0
    assert all(p.is_leaf and p.requires_grad for p in average.module.parameters())


def test_averaged_model_is_a_module():
    net = model()
    average = averaged(net, NUMBERS)
    assert list(average.state_dict())[:2] == ["n_averaged", "module.0.weight"]
    other = AveragedModel(model())
    other.load_state_dict(copy.deepcopy(average.state_dict()))
    assert other.n_averaged.item() == 3
    x = torch.ones(4, 2)
    average.eval()
    other.eval()
    assert torch.equal(average(x), average.module(x))
    assert torch.equal(average(x), other(x))


def test_refusals():
    with pytest.raises(AssertionError, match="Only one of avg_fn and multi_avg_fn should be provided"):
        AveragedModel(model(), avg_fn=get_swa_avg_fn(), multi_avg_fn=get_swa_multi_avg_fn())
    for make in (get_ema_avg_fn, get_ema_multi_avg_fn):
        for decay in (-0.1, 1.1):
            with pytest.raises(ValueError, match=f"Invalid decay value {decay} provided"):
                make(decay)


def test_update_bn_computes_plain_means():
    net = model()
    net[1].momentum = 0.3
    net.eval()
    with torch.no_grad():
        net[0].weight.copy_(torch.eye(2))
    batches = [torch.tensor([[1.0, 2.0], [3.0, 4.0]]), (torch.tensor([[5.0, 6.0], [7.0, 8.0]]), "label")]
    update_bn(batches, net)
    assert net[1].running_mean.tolist() == [4.0, 5.0]
    assert net[1].running_var.tolist() == [2.0, 2.0]
    assert net[1].momentum == 0.3
    assert not net.training
    assert net[0].weight.grad is None


def test_update_bn_restores_the_model_after_an_error():
    net = model()
    with pytest.raises(TypeError):
        update_bn([{"x": torch.ones(2, 2)}], net)
    assert net[1].momentum == 0.1
    assert net.training


def test_update_bn_without_batch_normalisation_reads_nothing():
    def loader():
        raise AssertionError("read")
        yield

    update_bn(loader(), nn.Linear(2, 2))


def optimizer(groups=1):
    return optim.SGD([{"params": [nn.Parameter(torch.ones(1))]} for _ in range(groups)], lr=1.0)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"anneal_strategy": "linear", "anneal_epochs": 4}, [1, 0.8, 0.6, 0.4, 0.2, 0.2]),
        ({"anneal_epochs": 2}, [1, 0.6, 0.2, 0.2]),
        ({"anneal_epochs": 4}, [0.2 + 0.4 * (1 + math.cos(math.pi * t / 4)) for t in range(5)]),
        ({"anneal_epochs": 0}, [0.2, 0.2, 0.2]),
    ],
)
def test_swalr(options, expected):
    opt = optimizer()
    scheduler = SWALR(opt, 0.2, **options)
    seen = [opt.param_groups[0]["lr"]]
    for _ in expected[1:]:
        opt.step()
        scheduler.step()
        seen.append(opt.param_groups[0]["lr"])
    assert seen == pytest.approx(expected)
    assert "optimizer" not in scheduler.state_dict()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"swa_lr": [0.1]}, "swa_lr must have the same length as optimizer.param_groups. swa_lr has 1 values"),
        ({"swa_lr": 0.1, "anneal_strategy": "x"}, "anneal_strategy must be one of 'cos' or 'linear', instead got x"),
        ({"swa_lr": 0.1, "anneal_epochs": -1}, "anneal_epochs must be equal or greater than 0, got -1"),
        ({"swa_lr": 0.1, "anneal_epochs": 1.5}, "anneal_epochs must be equal or greater than 0, got 1.5"),
    ],
)
def test_swalr_refusals(options, message):
    with pytest.raises(ValueError) as info:
        SWALR(optimizer(2), **options)
    assert message in str(info.value)
