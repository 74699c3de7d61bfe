"""Switches of the process and questions about tensors."""

import pytest

import rushlight as torch


@pytest.fixture(autouse=True)
def _restored():
    yield
    torch.use_deterministic_algorithms(False)
    torch.set_float32_matmul_precision("highest")


def test_deterministic_algorithms():
    assert not torch.are_deterministic_algorithms_enabled() and torch.get_deterministic_debug_mode() == 0
    torch.use_deterministic_algorithms(True, warn_only=True)
    assert torch.are_deterministic_algorithms_enabled()
    assert torch.is_deterministic_algorithms_warn_only_enabled() and torch.get_deterministic_debug_mode() == 1
    torch.set_deterministic_debug_mode("error")
    assert torch.get_deterministic_debug_mode() == 2 and not torch.is_deterministic_algorithms_warn_only_enabled()
    torch.set_deterministic_debug_mode(0)
    assert not torch.are_deterministic_algorithms_enabled()
    with pytest.raises(RuntimeError, match="expected one of `default`, `warn`, `error`, but got loud"):
        torch.set_deterministic_debug_mode("loud")
    with pytest.raises(RuntimeError, match="expected 0, 1, or 2, but got 3"):
        torch.set_deterministic_debug_mode(3)
    with pytest.raises(TypeError, match="debug_mode must be str or int"):
        torch.set_deterministic_debug_mode(None)


def test_precision_of_products():
    torch.set_float32_matmul_precision("high")
    assert torch.get_float32_matmul_precision() == "high"
    with pytest.warns(UserWarning, match="low is not one of 'highest', 'high', or 'medium'"):
        torch.set_float32_matmul_precision("low")
    assert torch.get_float32_matmul_precision() == "high"


def test_other_switches():
    assert torch.set_flush_denormal(True) is False
    torch.set_num_interop_threads(2)
    assert torch.get_num_interop_threads() == 2
    with pytest.raises(RuntimeError, match="number of threads > 0"):
        torch.set_num_interop_threads(0)
    assert not torch.is_warn_always_enabled()
    with pytest.raises(TypeError, match="expected a bool"):
        torch.set_warn_always(1)


def test_questions():
    x = torch.ones(2)
    assert torch.is_signed(x) and not torch.is_signed(torch.ones(2, dtype=torch.uint8))
    with torch.inference_mode():
        assert torch.is_inference(torch.ones(1))
    assert not torch.is_inference(x) and not torch.is_conj(x) and not x.is_neg()


def test_parts_of_real_numbers():
    x = torch.tensor([-1.0, 2.0, float("nan")])
    assert torch.real(x) is x and torch.conj(x) is x and x.resolve_conj() is x and torch.resolve_neg(x) is x
    with pytest.raises(RuntimeError, match="imag is not implemented for tensors with non-complex dtypes"):
        torch.imag(x)
    assert torch.angle(x)[:2].tolist() == [pytest.approx(3.1415927), 0.0] and torch.angle(x)[2].isnan()
    z = torch.tensor([1 + 2j, -3j])
    assert torch.real(z).tolist() == [1.0, 0.0] and torch.imag(z).tolist() == [2.0, -3.0]
    assert torch.conj(z).tolist() == [1 - 2j, 3j] and not z.conj().is_conj() and z.resolve_conj() is z


def test_numbers_that_may_be_symbols_elsewhere():
    assert torch.sym_int(2.7) == 2 and torch.sym_float(2) == 2.0 and torch.sym_not(True) is False
    assert torch.sym_max(1, 2.5) == 2.5 and torch.sym_min(1, 2.5) == 1.0
    assert type(torch.sym_max(3, 2.5)) is float


def test_demands():
    torch._check(True)
    torch._assert(torch.tensor(True), "m")
    with pytest.raises(AssertionError, match="^m$"):
        torch._assert(False, "m")
    with pytest.raises(RuntimeError, match="Expected cond to be True, but got False"):
        torch._check(False)
    for check, error in (
        (torch._check, RuntimeError),
        (torch._check_index, IndexError),
        (torch._check_value, ValueError),
        (torch._check_type, TypeError),
    ):
        with pytest.raises(error, match="^why$"):
            check(False, lambda: "why")
    with pytest.raises(TypeError, match="cond must be a bool, but got <class 'int'>"):
        torch._check(1)
    with pytest.raises(TypeError, match="message must be a callable"):
        torch._check(False, "why")
    with pytest.raises(RuntimeError, match="zero"):
        torch._assert_async(torch.tensor(0))


def test_mixed_precision_by_older_names():
    assert torch.autocast is torch.amp.autocast and torch.GradScaler is torch.amp.GradScaler
    assert not torch.is_autocast_enabled() and not torch.is_autocast_cpu_enabled()
    assert torch.get_autocast_cpu_dtype() == torch.get_autocast_dtype("cpu") == torch.bfloat16
    assert torch.get_autocast_gpu_dtype() == torch.float16
