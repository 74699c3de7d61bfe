"""Large pointwise results stay pending until somebody looks, and nobody can tell (src/core/operators/deferred.h)."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import threading
import warnings

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

import rushlight as torch
from rushlight import _C

SIZE = 1 << 16  # the least number of elements that is deferred


@pytest.fixture(params=["float32", "float64"])
def dtype(request):
    return getattr(torch, request.param)


def numbers(dtype=torch.float32, size=SIZE, start=0):
    return torch.arange(start, start + size).remainder(97).to(dtype) / 16


class Counted:
    """How many results were left pending, and how many passes over memory were made, inside of a with block."""

    def __enter__(self):
        self._before = _C._deferral_stats()
        return self

    def __exit__(self, *_):
        after = _C._deferral_stats()
        self.deferred = after["deferred"] - self._before["deferred"]
        self.passes = after["passes"] - self._before["passes"]


def eager(function, *args):
    """The result without deferral."""
    _C._set_deferral(False)
    try:
        with Counted() as c:
            result = function(*args)
            result = result.clone() if isinstance(result, torch.Tensor) else result
        assert c.deferred == c.passes == 0
        return result
    finally:
        _C._set_deferral(True)


def look(x):
    return x.numpy().copy()


# ---- counts


def test_a_chain_is_one_pass(dtype):
    x = numbers(dtype)
    with Counted() as c:
        y = ((x * 2 + 1).tanh() * x).relu() - 0.5
    assert (c.deferred, c.passes) == (6, 0)
    with Counted() as c:
        look(y)
    assert (c.deferred, c.passes) == (0, 1)
    with Counted() as c:
        look(y)
        y.sum()
    assert c.passes == 0


def test_results_that_are_still_held_are_written_in_the_same_pass(dtype):
    x = numbers(dtype)
    a = x + 1
    b = a * 2
    c = b.exp()
    with Counted() as count:
        look(c)
        look(a)
        look(b)
    assert count.passes == 1
    assert np.array_equal(look(b), look(a) * 2)


def test_two_results_of_one_chain(dtype):
    x = numbers(dtype)
    base = x * 3
    a, b = base + 1, base - 1
    with Counted() as c:
        left = look(a)
    assert c.passes == 1
    with Counted() as c:
        right = look(b)
    assert c.passes == 1
    assert np.array_equal(left - right, np.full(SIZE, 2, left.dtype))


def test_what_nobody_looks_at_is_not_computed():
    x = numbers()
    with Counted() as c:
        y = x * 2
        z = y + 1
        del y, z
        for _ in range(10):
            x * x
    assert c.deferred == 12
    assert c.passes == 0


def test_small_results_and_other_types_are_computed_at_once():
    with Counted() as c:
        numbers(size=SIZE - 1) * 2
        torch.ones(SIZE, dtype=torch.int64) * 2
        torch.ones(SIZE, dtype=torch.float16) * 2
        torch.ones(2, SIZE).t() * 2
    made = c.deferred
    with Counted() as c:  # those of `numbers` itself
        numbers(size=SIZE - 1)
    assert made == c.deferred


def test_long_chains_are_cut_into_passes(dtype):
    x = numbers(dtype)

    def chain(x):
        for i in range(200):
            x = x * 0.5 + i % 3
        return x

    with Counted() as c:
        y = look(chain(x))
    assert c.deferred == 400
    assert 8 <= c.passes <= 25  # a pass reads at most 20 tensors or numbers, and every step brings one
    assert np.array_equal(y, look(eager(chain, x)))


def test_the_backward_of_a_chain_needs_few_passes():
    x = numbers().requires_grad_()
    look(x.detach())
    with Counted() as c:
        y = (x * 2 + 1).tanh() * x
        y.backward(torch.ones(SIZE))
        look(x.grad)
    assert c.passes <= 3


# ---- values

STEPS = {
    "add": lambda x, y: x + y,
    "mul": lambda x, y: x * y,
    "sub": lambda x, y: x - 0.25,
    "div": lambda x, y: x / (y.abs() + 1),
    "exp": lambda x, y: (x * 0.01).exp(),
    "tanh": lambda x, y: x.tanh(),
    "relu": lambda x, y: x.relu(),
    "square": lambda x, y: (x * x).clamp(max=10.0),
    "sigmoid": lambda x, y: x.sigmoid(),
    "reshape": lambda x, y: x.reshape(256, -1).reshape(-1),
    "half": lambda x, y: torch.cat([x[: SIZE // 2] * 2, x[SIZE // 2 :]]),
    "shift": lambda x, y: x * y[3],
    "flip": lambda x, y: x.flip(0) + y,
    "in place": lambda x, y: (x + 0).mul_(0.5).add_(y),
    "part in place": lambda x, y: _part(x + 0),
}


def _part(x):
    x[10:20] = 7
    x[::2].neg_()
    return x


@hypothesis.settings(max_examples=60, deadline=None)
@hypothesis.given(st.lists(st.sampled_from(list(STEPS)), min_size=1, max_size=12), st.booleans(), st.integers(0, 3))
def test_any_chain_equals_its_eager_form(steps, double, keep):
    kind = torch.float64 if double else torch.float32
    x, y = numbers(kind), numbers(kind, start=5)

    def run(x, y):
        held = []
        for i, step in enumerate(steps):
            x = STEPS[step](x, y)
            if i % 4 == keep:
                held.append(x)
        return [x, *held]

    lazy = [look(r) for r in run(x, y)]
    plain = [look(r) for r in eager(lambda: [r.clone() for r in run(x, y)])]
    for a, b in zip(lazy, plain, strict=True):
        assert np.array_equal(a, b, equal_nan=True)


@pytest.mark.parametrize("step", ["mul", "div", "exp", "tanh", "square", "sigmoid", "shift"])
def test_gradients_equal_their_eager_form(step, dtype):
    def gradients(create_graph):
        x, y = numbers(dtype).requires_grad_(), numbers(dtype, start=5).requires_grad_()
        out = STEPS[step](STEPS[step](x, y) * 0.5, y)
        first = torch.autograd.grad(out, [x, y], numbers(dtype, start=9), create_graph=create_graph, allow_unused=True)
        if create_graph:
            return torch.autograd.grad((first[0] ** 2).sum(), x, allow_unused=True)
        return first

    for create_graph in (False, True):
        lazy = gradients(create_graph)
        plain = eager(lambda again=create_graph: [g if g is None else g.clone() for g in gradients(again)])
        for a, b in zip(lazy, plain, strict=True):
            assert (a is None) == (b is None)
            if a is not None:
                np.testing.assert_allclose(look(a.detach()), look(b), rtol=1e-6, atol=1e-7)


def test_numbers_that_are_not_finite_and_shapes():
    x = numbers().reshape(16, -1, 8)
    x[0, 0, 0], x[1, 2, 3] = float("nan"), float("inf")
    y = (x * 0 + 1) / x
    assert y.shape == (16, SIZE // 128, 8)
    with np.errstate(all="ignore"):
        assert np.array_equal(look(y), (look(x) * 0 + 1) / look(x), equal_nan=True)


# ---- what changes after the work was put off


def test_a_change_of_an_operand_comes_after_the_read(dtype):
    x = numbers(dtype)
    before = look(x)
    y = x * 2
    x.add_(1)
    assert np.array_equal(look(y), before * 2)
    z = x * 2
    x[5] = 100
    x.zero_()
    assert np.array_equal(look(z), (before + 1) * 2)


def test_a_change_through_a_view_comes_after_the_read():
    x = numbers()
    before = look(x)
    view = x.view(256, -1)
    y = x + 1
    view[3].fill_(0)
    view.t()[0] = -1
    assert np.array_equal(look(y), before + 1)


def test_a_change_of_the_pending_result_itself():
    x = numbers()
    y = x * 2
    y.add_(1)
    y[0] = -5
    expected = look(x) * 2 + 1
    expected[0] = -5
    assert np.array_equal(look(y), expected)


def test_a_result_that_is_changed_while_another_reads_it():
    x = numbers()
    y = x * 2
    z = y + 1
    y.zero_()
    assert np.array_equal(look(z), look(x) * 2 + 1)
    assert look(y).sum() == 0


def test_resizing_and_replacing_the_memory_of_an_operand():
    x = numbers()
    before = look(x)
    y = x * 3
    x.resize_(4)
    x.data = torch.zeros(2)
    assert np.array_equal(look(y), before * 3)
    a = numbers()
    b = a * 3
    a.set_(torch.zeros(3))
    assert np.array_equal(look(b), before * 3)


def test_moving_and_growing_the_memory_of_an_operand():
    x = torch.ones(SIZE)
    y = x * 2
    x.share_memory_()
    x.fill_(9)
    assert y.sum().item() == 2 * SIZE
    z = x * 2
    assert z.share_memory_().is_shared() and z[5].item() == 18
    w = x + 1
    storage = w.untyped_storage()
    storage.resize_(storage.nbytes() + 64)
    assert w[-1].item() == 10


def test_results_written_over_an_operand():
    a = torch.ones(SIZE)
    b = a + 1
    torch.mul(a, 5, out=a)
    c = a + 1
    a.copy_(torch.zeros(SIZE))
    assert (b[0].item(), c[0].item(), a[0].item()) == (2, 6, 0)


@pytest.mark.parametrize("optimizer", ["SGD", "Adam", "RMSprop"])
def test_a_step_of_an_optimizer_comes_after_the_read(optimizer):
    p = torch.nn.Parameter(torch.ones(SIZE))
    y = p.detach() * 2
    p.grad = torch.ones(SIZE)
    getattr(torch.optim, optimizer)([p], lr=0.5).step()
    assert y[0].item() == 2 and p[0].item() < 1


def test_a_gradient_that_is_read_and_then_added_to():
    x = torch.ones(SIZE, requires_grad=True)
    (x * 2).backward(torch.ones(SIZE))
    h = x.grad + 1
    (x * 2).backward(torch.ones(SIZE))
    assert (h[0].item(), x.grad[0].item()) == (3, 4)


def test_a_sum_of_many_pending_results():
    a = torch.ones(SIZE)
    parts = [a * k for k in range(40)]
    total = sum(parts[1:], parts[0])
    del parts
    assert total[7].item() == sum(range(40))


def test_memory_that_numpy_sees_is_not_put_off():
    array = np.ones(SIZE, dtype=np.float32)
    x = torch.from_numpy(array)
    y = x * 2
    array[:] = 5  # a write that nobody can notice
    assert look(y).max() == 2
    z = numbers()
    seen = z.numpy()
    w = z + 1
    seen[:] = 0
    assert look(w).sum() > SIZE / 2


def test_memory_that_is_given_away_while_pending():
    x = numbers()
    y = x + 1
    array = y.numpy()  # computes
    z = y * 2
    array[:] = 0
    assert look(z)[0] == 2
    pointer = (x + 1).data_ptr()
    assert pointer % 64 == 0


def test_data_and_detach_share_the_memory():
    x = numbers().requires_grad_()
    y = x * 2
    d, data = y.detach(), y.data
    y.data.add_(1)
    assert np.array_equal(look(d), look(data))
    assert look(d)[1] == look(x.detach())[1] * 2 + 1


# ---- looks of every kind


@pytest.mark.parametrize(
    "glance",
    [
        lambda y: y.numpy().sum(),
        lambda y: y.sum().item(),
        lambda y: y[7].item() * SIZE,
        lambda y: float(y.max()) * SIZE,
        lambda y: y.clone().sum().item(),
        lambda y: float(sum(y.view(16, -1).sum(1).tolist())),
        lambda y: (y @ torch.ones(SIZE)).item(),
        lambda y: copy.deepcopy(y).sum().item(),
        lambda y: pickle.loads(pickle.dumps(y)).sum().item(),
        lambda y: np.asarray(y).sum(),
        lambda y: np.from_dlpack(y).sum(),
        lambda y: torch.frombuffer(memoryview(y.untyped_storage()), dtype=torch.float32).sum().item(),
        lambda y: torch.stack([y, y]).sum().item() / 2,
        lambda y: y.masked_select(y > -1).sum().item(),
        lambda y: y.to(torch.float64).sum().item(),
    ],
)
def test_every_way_to_look_sees_the_numbers(glance):
    y = torch.ones(SIZE) * 3 - 1
    assert glance(y) == 2 * SIZE


def test_printing_and_saving(tmp_path):
    y = torch.zeros(SIZE) + 1.5
    assert repr(y) == "tensor([1.5000, 1.5000, 1.5000,  ..., 1.5000, 1.5000, 1.5000])"
    z = torch.zeros(SIZE) + 2.5
    torch.save(z, tmp_path / "z.pt")
    assert torch.load(tmp_path / "z.pt").sum().item() == 2.5 * SIZE
    assert torch.equal(torch.zeros(SIZE) + 2.5, z)


# ---- gradients of pending work


def test_a_gradient_that_is_one_number_of_a_pending_operand():
    # the derivative reads the operand whole and, as the gradient, one number of it
    for _ in range(20):
        x = torch.full((SIZE,), 3.0, requires_grad=True)
        factor = torch.full((SIZE,), 2.0) * 2
        (x * factor).backward(factor[7].expand(SIZE))
        assert x.grad[5].item() == 16


def test_saved_operands_are_read_at_their_version():
    x = numbers().requires_grad_()
    y = (x * 2).exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_accumulated_gradients_are_their_own():
    x = numbers().requires_grad_()
    (x * 2).backward(torch.ones(SIZE))
    first = x.grad
    (x * 3).backward(torch.ones(SIZE))
    assert first is x.grad
    assert look(x.grad).tolist() == [5] * SIZE


# ---- errors


def test_errors_come_at_the_call_not_later():
    x = numbers()
    with pytest.raises(RuntimeError, match="must match the size"):
        x + torch.ones(SIZE + 1)
    with pytest.raises(TypeError):
        x + "1"
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch.ones(SIZE, dtype=torch.int64).add_(x)


def test_anomaly_mode_finds_the_operation():
    x = torch.zeros(SIZE, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.autograd.detect_anomaly(), pytest.raises(RuntimeError, match="SqrtBackward0.*nan"):
            (x.sqrt() * 0).sum().backward()


# ---- threads, processes, exit


def test_threads_look_at_shared_pending_results():
    for _ in range(20):
        x = numbers()
        expected = ((look(x) * 2 + 1) * look(x)).sum(dtype=np.float64)
        y = (x * 2 + 1) * x
        z = y - 1
        sums = []
        barrier = threading.Barrier(4)

        def read(result, add, barrier=barrier, sums=sums):
            barrier.wait()
            sums.append(look(result).sum(dtype=np.float64) + add)

        threads = [threading.Thread(target=read, args=pair) for pair in ((y, 0), (z, SIZE), (y, 0), (z, SIZE))]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert sums == pytest.approx([expected] * 4, rel=1e-6)


def test_threads_of_their_own():
    results = {}

    def work(k):
        for _ in range(20):
            y = (torch.ones(SIZE) * k + 1).sqrt()
            y.mul_(2)
            results.setdefault(k, set()).add(y[k].item())

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for k, seen in results.items():
        assert list(seen) == [pytest.approx(2 * (k + 1) ** 0.5)]


def test_a_thread_changes_what_pending_work_reads():
    for _ in range(20):
        x = torch.ones(SIZE)
        results = [x * k for k in range(1, 5)]

        def spoil(x=x):
            x.fill_(100)

        thread = threading.Thread(target=spoil)
        thread.start()
        seen = [look(r).max() for r in results]
        thread.join()
        assert seen == [1, 2, 3, 4]


def test_the_program_may_end_with_pending_work():
    code = (
        "import rushlight as torch\n"
        "x = torch.ones(1 << 17, requires_grad=True)\n"
        "y = (x * 2 + 1).tanh()\n"
        "z = y.detach() + 1\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
