"""Tensors that several processes see: through queues, pipes, arguments and forks."""

import gc
import os
import pickle

import numpy as np
import pytest

import rushlight as torch
import rushlight.multiprocessing as mp
from rushlight import nn
from rushlight.multiprocessing import shared_storage

METHODS = [pytest.param(method, id=method) for method in ("fork", "spawn") if method in mp.get_all_start_methods()]


def open_files():
    return len(os.listdir("/proc/self/fd"))


def add_one(tensor, done):
    tensor.add_(1)
    done.put((tensor.is_shared(), tensor.tolist()))


def echo(inbox, outbox):
    for value in iter(inbox.get, None):
        outbox.put(value)
    inbox.get()


def train(model, done):
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(2.0)
    done.put(sum(p.numel() for p in model.parameters()))


def run(method, target, *args):
    """Run ``target`` in a process with a queue as its last argument, and return what it puts there first."""
    context = mp.get_context(method)
    queue = context.Queue()
    process = context.Process(target=target, args=(*args, queue))
    process.start()
    result = queue.get(timeout=60)
    process.join(60)
    assert process.exitcode == 0
    return result


def test_sharing_in_place():
    base = torch.arange(12.0).reshape(3, 4)
    view = base[1]
    assert not base.is_shared()
    assert base.share_memory_() is base
    assert base.is_shared()
    assert view.is_shared()
    view[0] = 100.0
    assert base[1, 0] == 100.0
    address = base.data_ptr()
    assert base.share_memory_().data_ptr() == address
    assert torch.zeros(0).share_memory_().tolist() == []


def test_sharing_keeps_gradients_and_types():
    leaf = torch.ones(3, requires_grad=True)
    leaf.share_memory_()
    (leaf * 2).sum().backward()
    assert leaf.grad.tolist() == [2.0, 2.0, 2.0]
    parameter = nn.Parameter(torch.ones(2))
    assert type(parameter.share_memory_()) is nn.Parameter
    parameter.data.share_memory_()
    assert parameter.is_shared()
    assert parameter.detach().is_shared()


def test_arrays_that_point_into_a_storage_stay_valid():
    tensor = torch.arange(100_000)
    array = tensor.numpy()
    tensor.share_memory_()
    tensor.zero_()
    del tensor
    gc.collect()
    assert array.tolist() == list(range(100_000))


def test_a_storage_with_a_buffer_on_it_is_not_moved():
    tensor = torch.arange(4)
    with memoryview(tensor.untyped_storage()), pytest.raises(RuntimeError, match="while a buffer points into it"):
        tensor.share_memory_()
    assert tensor.share_memory_().tolist() == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="32 bytes cannot move into 3 bytes"):
        torch.arange(4).untyped_storage()._move_to(bytearray(3))


def test_a_storage_with_a_buffer_on_it_is_not_resized():
    storage = torch.arange(4).untyped_storage()
    with memoryview(storage), pytest.raises(RuntimeError, match="not resizable"):
        storage.resize_(64)
    assert storage.resize_(64).nbytes() == 64


@pytest.mark.parametrize("method", METHODS)
def test_arguments_of_a_process_are_shared(method):
    tensor = torch.zeros(5)
    tensor.share_memory_()
    assert run(method, add_one, tensor) == (True, [1.0] * 5)
    assert tensor.tolist() == [1.0] * 5


@pytest.mark.parametrize("method", METHODS)
def test_models_are_shared(method):
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2)).share_memory()
    assert all(parameter.is_shared() for parameter in model.parameters())
    assert run(method, train, model) == 26
    assert all((parameter == 2.0).all() for parameter in model.parameters())
    assert sum(parameter.requires_grad for parameter in model.parameters()) == 4


@pytest.mark.parametrize("method", METHODS)
def test_queues_there_and_back(method):
    context = mp.get_context(method)
    there, back = context.Queue(), context.Queue()
    process = context.Process(target=echo, args=(there, back))
    process.start()
    base = torch.arange(100_000.0)
    values = [
        base,
        [base[10:20], base[::2], {"again": base}],
        torch.arange(6).reshape(2, 3).t(),
        torch.tensor(3),
        torch.zeros(0, 4),
        torch.ones(2, requires_grad=True),
        nn.Parameter(torch.ones(3), requires_grad=False),
        torch.ones(3, dtype=torch.bfloat16),
        base.untyped_storage(),
    ]
    for value in values:
        there.put(value)
        got = back.get(timeout=60)
        assert type(got) is type(value)
        if isinstance(value, torch.Tensor):
            assert (got.dtype, got.shape, got.stride()) == (value.dtype, value.shape, value.stride())
            assert got.requires_grad == value.requires_grad
            assert got.tolist() == value.tolist()
            assert got.is_shared() or got.numel() == 0
    there.put([base[3:5], base])
    part, whole = back.get(timeout=60)
    whole[3] = -1.0
    assert part[0] == -1.0
    assert base[3] == -1.0
    assert torch.frombuffer(memoryview(got), dtype=torch.float32)[3] == -1.0
    there.put(None)
    there.put(None)
    process.join(60)
    assert process.exitcode == 0


def test_what_is_put_into_a_queue_moves_to_shared_memory():
    tensor = torch.ones(3)
    queue = mp.Queue()
    queue.put(tensor)
    got = queue.get(timeout=60)
    assert tensor.is_shared()
    got[0] = 5.0
    assert tensor[0] == 5.0


def test_tensors_with_a_history_are_refused():
    tensor = torch.ones(3, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor which requires_grad"):
        mp.reductions.reduce_tensor(tensor)


def test_many_tensors_take_few_descriptors():
    before = open_files()
    tensors = [torch.full((100,), float(i)).share_memory_() for i in range(2000)]
    assert open_files() - before < 20
    assert [tensor[7].item() for tensor in tensors] == list(map(float, range(2000)))
    del tensors
    gc.collect()
    shared_storage._open_segment = None
    assert open_files() <= before


def test_large_tensors_give_their_memory_back():
    before = open_files()
    for _ in range(5):
        tensor = torch.zeros(1 << 20).share_memory_()
        assert open_files() > before
        del tensor
        gc.collect()
        assert open_files() == before
    assert len(shared_storage._places) <= 1


def test_plain_pickles_copy():
    tensor = torch.ones(3).share_memory_()
    copy = pickle.loads(pickle.dumps(tensor))
    assert not copy.is_shared()
    copy[0] = 7.0
    assert tensor[0] == 1.0


def test_new_shared_storages_are_zero():
    storage = shared_storage.new_shared(1000)
    assert bytes(memoryview(storage)) == bytes(1000)
    assert shared_storage.new_shared(0).nbytes() == 0
    assert np.frombuffer(memoryview(storage), dtype=np.uint8).sum() == 0


def test_strategies_are_accepted():
    assert mp.get_all_sharing_strategies() == {"file_descriptor", "file_system"}
    before = mp.get_sharing_strategy()
    mp.set_sharing_strategy("file_system")
    assert mp.get_sharing_strategy() == "file_system"
    mp.set_sharing_strategy(before)
    with pytest.raises(AssertionError, match="carrier_pigeon"):
        mp.set_sharing_strategy("carrier_pigeon")


def test_the_standard_module_is_all_here():
    import multiprocessing

    for name in multiprocessing.__all__:
        assert getattr(mp, name) is getattr(multiprocessing, name)
        assert name in mp.__all__
