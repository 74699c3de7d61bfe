"""Mixed precision: losses scaled and gradients unscaled, regions for devices that are not there."""

import math
import warnings
from collections import namedtuple

import pytest

import rushlight as torch
import rushlight.amp
import rushlight.cuda.amp
from rushlight.amp import GradScaler, autocast


def problem():
    parameter = torch.nn.Parameter(torch.ones(2))
    return parameter, torch.optim.SGD([parameter], lr=1.0)


def backward(scaler, parameter, factor=2.0):
    parameter.grad = None
    scaler.scale((parameter * factor).sum()).backward()


def test_a_step_uses_the_gradients_without_the_scale():
    parameter, optimizer = problem()
    scaler = GradScaler("cpu", init_scale=4.0)
    backward(scaler, parameter)
    assert parameter.grad.tolist() == [8.0, 8.0]
    scaler.step(optimizer)
    assert parameter.grad.tolist() == [2.0, 2.0]
    assert parameter.tolist() == [-1.0, -1.0]


def test_unscaling_beforehand_lets_gradients_be_clipped():
    parameter, optimizer = problem()
    scaler = GradScaler("cpu", init_scale=4.0)
    backward(scaler, parameter)
    scaler.unscale_(optimizer)
    parameter.grad.clamp_(max=0.5)
    scaler.step(optimizer)
    assert parameter.tolist() == [0.5, 0.5]


@pytest.mark.parametrize("factor", [math.inf, math.nan])
def test_an_overflow_leaves_the_step_out_and_shrinks_the_scale(factor):
    parameter, optimizer = problem()
    scaler = GradScaler("cpu", init_scale=8.0)
    backward(scaler, parameter, factor)
    assert scaler.step(optimizer) is None
    assert parameter.tolist() == [1.0, 1.0]
    scaler.update()
    assert scaler.get_scale() == 4.0


def test_the_scale_grows_after_enough_steps():
    parameter, optimizer = problem()
    scaler = GradScaler("cpu", init_scale=2.0, growth_factor=3.0, growth_interval=2)
    scales = []
    for factor in (1.0, 1.0, 1.0, math.inf, 1.0, 1.0):
        backward(scaler, parameter, factor)
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
    assert scales == [2.0, 6.0, 6.0, 3.0, 3.0, 9.0]


def test_the_scale_does_not_grow_past_the_largest_number():
    parameter, optimizer = problem()
    scaler = GradScaler("cpu", init_scale=2.0**127, growth_interval=1)
    backward(scaler, parameter, 2.0**-100)
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == 2.0**127


def test_containers_keep_their_types():
    Pair = namedtuple("Pair", "first second")
    scaler = GradScaler("cpu", init_scale=2.0)
    one = torch.ones(1)
    scaled = scaler.scale([one, (one, Pair(one, one))])
    assert isinstance(scaled, list)
    assert isinstance(scaled[1][1], Pair)
    assert [t.item() for t in (scaled[0], scaled[1][0], *scaled[1][1])] == [2.0] * 4
    with pytest.raises(ValueError, match="iterable of Tensors"):
        scaler.scale(3)


def test_two_optimizers_are_kept_apart():
    (first, first_optimizer), (second, second_optimizer) = problem(), problem()
    scaler = GradScaler("cpu", init_scale=2.0)
    backward(scaler, first, math.inf)
    backward(scaler, second, 1.0)
    scaler.step(first_optimizer)
    scaler.step(second_optimizer)
    assert first.tolist() == [1.0, 1.0]
    assert second.tolist() == [0.0, 0.0]
    scaler.update()
    assert scaler.get_scale() == 1.0


def test_calls_in_the_wrong_order_are_refused():
    parameter, optimizer = problem()
    scaler = GradScaler("cpu", init_scale=2.0)
    for call in (lambda: scaler.step(optimizer), scaler.update, lambda: scaler.unscale_(optimizer)):
        with pytest.raises(AssertionError, match="_scale is None"):
            call()
    scaler.scale(torch.ones(1))
    with pytest.raises(AssertionError, match="No inf checks were recorded prior to update"):
        scaler.update()
    with pytest.raises(AssertionError, match="No inf checks were recorded for this optimizer"):
        scaler.step(optimizer)
    scaler = GradScaler("cpu", init_scale=2.0)
    backward(scaler, parameter)
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="already been called on this optimizer"):
        scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="Closure use is not currently supported"):
        scaler.step(optimizer, closure=lambda: 0.0)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="already been called since the last update"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="called after step"):
        scaler.unscale_(optimizer)
    assert parameter.tolist() == [-1.0, -1.0]


def test_the_state_is_carried_over():
    parameter, optimizer = problem()
    scaler = GradScaler("cpu", init_scale=2.0, growth_interval=5)
    backward(scaler, parameter)
    scaler.step(optimizer)
    scaler.update()
    state = scaler.state_dict()
    assert state == {
        "scale": 2.0,
        "growth_factor": 2.0,
        "backoff_factor": 0.5,
        "growth_interval": 5,
        "_growth_tracker": 1,
    }
    other = GradScaler("cpu")
    other.load_state_dict(state)
    assert other.state_dict() == state
    other.scale(torch.ones(1))
    assert other.state_dict() == state
    with pytest.raises(RuntimeError, match="state dict is empty"):
        other.load_state_dict({})


def test_the_scale_can_be_set():
    scaler = GradScaler("cpu")
    scaler.scale(torch.ones(1))
    scaler.update(7.0)
    assert scaler.get_scale() == 7.0
    scaler.update(torch.tensor(3.0))
    assert scaler.get_scale() == 3.0


@pytest.mark.parametrize("factors", [{"growth_factor": 1.0}, {"backoff_factor": 1.0}])
def test_factors_on_the_wrong_side_of_1_are_refused(factors):
    with pytest.raises(AssertionError, match=r"must be [<>] 1\.0, found 1\.0"):
        GradScaler("cpu", **factors)


def test_for_cuda_everything_passes_through():
    parameter, optimizer = problem()
    with pytest.warns(UserWarning, match="CUDA is not available"):
        scaler = GradScaler()
    assert not scaler.is_enabled()
    assert (scaler.get_scale(), scaler.state_dict()) == (1.0, {})
    backward(scaler, parameter)
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert parameter.tolist() == [-1.0, -1.0]


def test_regions_for_absent_devices_are_switched_off():
    with pytest.warns(UserWarning, match="CUDA is not available"):
        region = autocast("cuda")
    with region:
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.float32
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with autocast("cuda", enabled=False), autocast("xpu"), autocast("cpu", enabled=False):
            pass

        @autocast("cuda", enabled=False)
        def double(x):
            return 2 * x

    assert double(3) == 6


def test_a_region_for_the_cpu_says_that_it_is_not_there():
    with pytest.raises(NotImplementedError, match=r"torch\.autocast.*bfloat16"):
        autocast("cpu")
    with pytest.warns(UserWarning, match="target dtype is not supported"):
        autocast("cpu", dtype=torch.float32)
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
        autocast(1)
    with pytest.raises(RuntimeError, match="at start of device string: toaster"):
        autocast("toaster")


def test_the_old_names_warn_and_do_the_same():
    cuda_amp = torch.cuda.amp
    with pytest.warns(FutureWarning, match=r"Please use `torch.amp.GradScaler\('cuda'"):
        assert isinstance(cuda_amp.GradScaler(enabled=False), GradScaler)
    with pytest.warns(FutureWarning, match=r"Please use `torch.amp.autocast\('cuda'"):
        assert isinstance(cuda_amp.autocast(enabled=False), autocast)
    with pytest.warns(FutureWarning):
        assert cuda_amp.custom_fwd(len) is len
    with pytest.warns(FutureWarning):
        assert cuda_amp.custom_bwd(len) is len


def test_marks_of_custom_functions_leave_them_as_they_are():
    assert torch.amp.custom_fwd(len, device_type="cuda") is len
    assert torch.amp.custom_fwd(device_type="cuda", cast_inputs=torch.float32)(len) is len
    assert torch.amp.custom_bwd(device_type="cpu")(len) is len


def test_the_dtypes_of_regions_are_pytorchs():
    mode = torch.amp.autocast_mode
    assert mode.get_autocast_dtype("cpu") == torch.bfloat16
    assert mode.get_autocast_dtype("cuda:1") == torch.float16
    assert mode.is_autocast_enabled() is mode.is_autocast_enabled("cpu") is False
