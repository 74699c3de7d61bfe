"""The modules of PyTorch that name what is not here: other devices, compilers, groups of processes."""

import pytest

import rushlight as torch
import rushlight.accelerator
import rushlight.backends.cuda
import rushlight.backends.cudnn
import rushlight.backends.mkl
import rushlight.backends.mps
import rushlight.compiler
import rushlight.cpu
import rushlight.cuda
import rushlight.distributed
import rushlight.jit
import rushlight.mps
import rushlight.version
import rushlight.xpu


def test_there_is_no_other_device():
    assert torch.cuda.is_available() is torch.xpu.is_available() is torch.mps.is_available() is False
    assert torch.backends.mps.is_available() is torch.backends.cuda.is_built() is False
    assert torch.cuda.device_count() == torch.xpu.device_count() == torch.mps.device_count() == 0
    assert (
        torch.cuda.memory_allocated() == torch.cuda.max_memory_allocated("cuda:0") == torch.cuda.memory_reserved() == 0
    )
    assert torch.version.cuda is torch.version.hip is None
    assert torch.accelerator.current_accelerator() is None
    assert torch.cpu.device_count() == 1


def test_programs_that_seed_every_device_run():
    assert torch.cuda.manual_seed(1) is torch.cuda.manual_seed_all(1) is torch.mps.manual_seed(1) is None
    assert torch.cuda.get_rng_state_all() == []
    with pytest.raises(ValueError):
        torch.cuda.manual_seed("one")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: torch.cuda.current_device(), AssertionError, "Torch not compiled with CUDA enabled"),
        (lambda: torch.cuda.synchronize(), AssertionError, "Torch not compiled with CUDA enabled"),
        (lambda: torch.cuda.set_device("cuda:1"), AssertionError, "Torch not compiled with CUDA enabled"),
        (lambda: torch.cuda.get_device_properties(0), AssertionError, "Torch not compiled with CUDA enabled"),
        (lambda: torch.cuda.Stream(), RuntimeError, "requires CUDA support"),
        (lambda: torch.cuda.Event(enable_timing=True), RuntimeError, "dummy base class Event"),
        (lambda: torch.cuda.FloatTensor([1.0]), TypeError, "torch.cuda.FloatTensor not available"),
        (lambda: torch.cuda.nvtx.range_push("a"), RuntimeError, "NVTX functions not installed"),
        (lambda: torch.xpu.synchronize(), AssertionError, "Torch not compiled with XPU enabled"),
        (lambda: torch.mps.synchronize(), RuntimeError, "without MPS backend"),
        (lambda: torch.accelerator.synchronize(), RuntimeError, "none is available"),
        (lambda: torch.distributed.init_process_group("nccl"), RuntimeError, "NCCL built in"),
        (lambda: torch.distributed.get_rank(), ValueError, "Default process group has not been initialized"),
        (lambda: torch.jit.load("a.pt"), NotImplementedError, "torch.jit.load"),
        (lambda: torch.backends.mkl.verbose(1), RuntimeError, "verbose"),
    ],
)
def test_what_needs_a_device_raises_as_in_pytorch(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_a_device_can_be_chosen_only_where_there_is_one():
    for none in (-1, None):
        with torch.cuda.device(none):
            torch.cuda.set_device(none)
    with pytest.raises(RuntimeError, match="without CUDA support"), torch.cuda.device(0):
        pytest.fail("entered a context of a device that is not there")
    assert isinstance(torch.cuda.stream(None).__enter__(), type(None))


def test_old_names_of_memory_statistics_warn():
    with pytest.warns(FutureWarning, match="renamed to `torch.cuda.memory_reserved`"):
        assert torch.cuda.memory_cached() == 0


def test_switches_keep_what_is_assigned_and_contexts_put_it_back():
    cudnn = torch.backends.cudnn
    before = cudnn.enabled, cudnn.benchmark, cudnn.deterministic
    try:
        cudnn.benchmark = True
        with pytest.raises(KeyError), cudnn.flags(enabled=False, deterministic=True):
            assert (cudnn.enabled, cudnn.benchmark, cudnn.deterministic) == (False, False, True)
            raise KeyError
        assert (cudnn.enabled, cudnn.benchmark, cudnn.deterministic) == (before[0], True, before[2])
    finally:
        cudnn.enabled, cudnn.benchmark, cudnn.deterministic = before
    matmul = torch.backends.cuda.matmul
    matmul.allow_tf32 = True
    assert matmul.allow_tf32 is True
    matmul.allow_tf32 = False
    with pytest.raises(AttributeError):
        matmul.allow_tf33 = True
    with torch.backends.cuda.sdp_kernel(enable_flash=False):
        assert not torch.backends.cuda.flash_sdp_enabled()
    assert torch.backends.cuda.flash_sdp_enabled()


def test_scripting_tracing_and_compiling_return_the_function_itself():
    def double(x):
        return x * 2

    jit, compiler = torch.jit, torch.compiler
    for same in (jit.script(double), jit.trace(double, (1,)), jit.ignore(double), jit.ignore(drop=True)(double)):
        assert same is double
    for same in (compiler.compile(double), compiler.compile(mode="max-autotune")(double), compiler.disable()(double)):
        assert same is double
    assert jit.annotate(int, 3) == 3
    assert jit.wait(jit.fork(double, 4)) == 8
    assert not (jit.is_scripting() or jit.is_tracing() or compiler.is_compiling())
    assert issubclass(jit.ScriptModule, torch.nn.Module)
    with compiler.set_stance("force_eager"):
        assert compiler.list_backends() == []
    with pytest.raises(AssertionError, match="callable"):
        compiler.compile(3)
    with pytest.raises(RuntimeError, match="both can't be specified"):
        compiler.compile(double, mode="default", options={})


def test_streams_of_the_cpu_nest():
    outer, inner = torch.cpu.Stream(), torch.cpu.Stream()
    default = torch.cpu.current_stream()
    with torch.cpu.stream(outer):
        with torch.cpu.stream(inner):
            assert torch.cpu.current_stream() is inner
        with torch.cpu.stream(None):
            assert torch.cpu.current_stream() is outer
    assert torch.cpu.current_stream() is default


def test_processes_go_on_alone():
    assert torch.distributed.is_available() is torch.distributed.is_initialized() is False
    assert torch.distributed.is_backend_available("gloo") is False
    with pytest.raises(AttributeError, match=r"rushlight has no 'torch.distributed.all_reduce_'"):
        torch.distributed.all_reduce_(None)


def test_the_version_is_one_that_programs_compare():
    assert torch.version.__version__ == f"{torch.version.TORCH_API}+rushlight.{torch.version.VERSION}"
    assert torch.version.__version__ >= (2, 13)
    assert torch.version.__version__ < "2.14"
