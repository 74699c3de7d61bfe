"""One function in several processes: waiting, failures, endings."""

import os
import pickle
import signal
import sys
import time

import pytest

import rushlight as torch
import rushlight.multiprocessing as mp

METHODS = [method for method in ("fork", "spawn") if method in mp.get_all_start_methods()]


def fill(index, tensor, factor):
    tensor[index] = index * factor


def fail_in_the_second(index, action):
    if index == 1:
        action()
    time.sleep(600)


def raise_error():
    raise ValueError("the second process fails")


def raise_long_error():
    raise ValueError("long " * 100_000)


def kill():
    os.kill(os.getpid(), signal.SIGKILL)


def leave():
    sys.exit(5)


def leave_hard():
    os._exit(7)


def end_well(index):
    time.sleep(0.1 * index)


@pytest.mark.parametrize("method", METHODS)
def test_results_in_shared_memory(method):
    tensor = torch.zeros(3).share_memory_()
    assert mp.start_processes(fill, (tensor, 10), nprocs=3, start_method=method) is None
    assert tensor.tolist() == [0.0, 10.0, 20.0]


def test_spawn_by_name():
    tensor = torch.zeros(2).share_memory_()
    mp.spawn(fill, args=(tensor, 5), nprocs=2)
    assert tensor.tolist() == [0.0, 5.0]
    with pytest.warns(FutureWarning, match="only supports start_method=spawn"):
        mp.spawn(fill, args=(tensor, 7), nprocs=2, start_method="fork")
    assert tensor.tolist() == [0.0, 7.0]


@pytest.mark.parametrize("method", METHODS)
def test_an_exception_ends_the_others(method):
    started = time.monotonic()
    with pytest.raises(mp.ProcessRaisedException, match="-- Process 1 terminated with the following error") as caught:
        mp.start_processes(fail_in_the_second, (raise_error,), nprocs=3, start_method=method)
    assert "ValueError: the second process fails" in str(caught.value)
    assert "in raise_error" in str(caught.value)
    assert caught.value.error_index == 1
    assert isinstance(caught.value, mp.ProcessException)
    assert time.monotonic() - started < 60
    assert mp.active_children() == []


def test_a_long_report_does_not_block():
    with pytest.raises(mp.ProcessRaisedException, match="long long"):
        mp.start_processes(fail_in_the_second, (raise_long_error,), nprocs=2, start_method="fork")


@pytest.mark.parametrize(
    ("action", "message", "code", "name"),
    [
        (kill, "process 1 terminated with signal SIGKILL", -9, "SIGKILL"),
        (leave, "process 1 terminated with exit code 5", 5, None),
        (leave_hard, "process 1 terminated with exit code 7", 7, None),
    ],
)
def test_a_process_that_ends(action, message, code, name):
    with pytest.raises(mp.ProcessExitedException, match=message) as caught:
        mp.start_processes(fail_in_the_second, (action,), nprocs=2, start_method="fork")
    assert (caught.value.exit_code, caught.value.signal_name, caught.value.error_index) == (code, name, 1)
    assert mp.active_children() == []


def test_exceptions_can_be_pickled():
    for error in (
        mp.ProcessRaisedException("message", 1, 2),
        mp.ProcessExitedException("message", 1, 2, 3, "SIGKILL"),
    ):
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error)
        assert vars(again) == vars(error)


def test_joining_step_by_step():
    context = mp.start_processes(end_well, nprocs=3, join=False, start_method="fork")
    assert isinstance(context, mp.ProcessContext)
    assert len(context.pids()) == 3
    assert context.join(timeout=0) is False
    while not context.join(timeout=60):
        continue
    assert context.join() is True
    assert [process.exitcode for process in context.processes] == [0, 0, 0]


def test_a_period_of_grace():
    context = mp.start_processes(fail_in_the_second, (raise_error,), nprocs=2, join=False, start_method="fork")
    with pytest.raises(mp.ProcessRaisedException):
        while not context.join(timeout=60, grace_period=0.2):
            continue
    assert context.processes[0].exitcode == -signal.SIGTERM
