"""How much memory things take, and that nothing grows: each measurement in a fresh process."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import rushlight as torch

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads the resident memory from /proc")

# What the interpreter's and the C library's allocators may move: their arenas come and go by 1 MB and 128 kB.
SLACK = 1 << 20

HEAD = """
import gc, json, os
import rushlight as torch
from rushlight import nn

def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

def allocated():
    return torch._C.memory_stats()["allocated_bytes"]
"""


def measure(code):
    """What `code` leaves in `result`, run by a new interpreter."""
    program = HEAD + code + "\nprint(json.dumps(result))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# ---- one tensor


@pytest.mark.parametrize(
    "make",
    [
        "torch.ones(4, requires_grad=True)",
        "torch.zeros(4).requires_grad_()",
        "torch.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)",
        "nn.Parameter(torch.ones(4))",
    ],
)
def test_a_leaf_of_four_numbers(make):
    code = f"""
{make}
leaves = [None] * 100_000
gc.collect()
before = resident()
for i in range(100_000):
    leaves[i] = {make}
gc.collect()
result = (resident() - before) / 100_000
"""
    assert 16 < measure(code) < 400


def test_a_leaf_that_has_a_gradient():
    code = """
leaves = [None] * 50_000
one = torch.ones(4)
(torch.ones(4, requires_grad=True) * one).backward(one)
gc.collect()
before = resident()
for i in range(50_000):
    leaves[i] = torch.ones(4, requires_grad=True)
    (leaves[i] * one).backward(one)
gc.collect()
result = (resident() - before) / 50_000
"""
    assert 32 < measure(code) < 1000


def test_a_recorded_operation():
    code = """
x = torch.ones(4, requires_grad=True)
y = x
for _ in range(1000):
    y = y * 2
y = x
gc.collect()
before = resident()
for _ in range(100_000):
    y = y * 2
result = (resident() - before) / 100_000
"""
    assert 16 < measure(code) < 600


def test_the_allocator_counts_what_is_alive():
    before = torch._C.memory_stats()["allocated_bytes"]
    held = torch.ones(1000)
    assert torch._C.memory_stats()["allocated_bytes"] - before >= 4000
    view = held[10:]
    del held
    assert torch._C.memory_stats()["allocated_bytes"] - before >= 4000
    del view
    assert torch._C.memory_stats()["allocated_bytes"] == before


# ---- loops

LOOPS = {
    "a model and its optimizer": """
net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(net.parameters())
data, target = torch.randn(4, 8), torch.randn(4, 2)
def step():
    optimizer.zero_grad()
    nn.functional.mse_loss(net(data), target).backward()
    optimizer.step()
""",
    "hooks that come and go": """
x = torch.ones(16, requires_grad=True)
x.register_post_accumulate_grad_hook(lambda leaf: None)
def step():
    y = (x * 2).exp()
    handle = x.register_hook(lambda g: 2 * g)
    y.register_hook(lambda g: g + y.detach())
    y.grad_fn.register_hook(lambda inputs, outputs: None)
    y.grad_fn.register_prehook(lambda outputs: None)
    y.retain_grad()
    y.sum().backward()
    handle.remove()
    x.grad = None
""",
    "second derivatives": """
x = torch.ones(16, requires_grad=True)
def step():
    g, = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    (g * g).sum().backward()
    x.grad = None
""",
    "gradients that are recorded into .grad": """
import warnings
warnings.simplefilter("ignore")
def step():
    x = torch.ones(16, requires_grad=True)
    (x**3).sum().backward(create_graph=True)
""",
    "Functions": """
class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.note = [x]
        return x**3
    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return 3 * x * x * g
x = torch.ones(16, requires_grad=True)
def step():
    y = Cube.apply(x)
    y.sum().backward()
    x.grad = None
""",
    "changes in place and views": """
x = torch.ones(16, requires_grad=True)
def step():
    y = x * 2
    y[2:5].mul_(3)
    y.view(4, 4).t()[0].add_(1)
    y.sum().backward()
    with torch.no_grad():
        x.sub_(x.grad, alpha=1e-6)
    x.grad.zero_()
""",
    "errors": """
x = torch.ones(16, requires_grad=True)
def step():
    y = x.exp()
    y.add_(1)
    for broken in (lambda: y.sum().backward(), lambda: x.view(3), lambda: torch.exp("no"), lambda: x @ y.view(4, 4)):
        try:
            broken()
        except (RuntimeError, TypeError):
            pass
        else:
            raise AssertionError("must fail")
""",
    "numbers in and out": """
import numpy
def step():
    a = numpy.ones(16, dtype=numpy.float32)
    x = torch.from_numpy(a)
    assert x.numpy().sum() == 16 and len(x.tolist()) == 16 and x[3].item() == 1
    str(x), torch.tensor(x.tolist()), torch.as_tensor(a[2:])
""",
}


@pytest.mark.parametrize("name", LOOPS)
def test_loops_do_not_grow(name):
    code = f"""{LOOPS[name]}
def run(n):
    for _ in range(n):
        step()
    gc.collect()
    return resident(), allocated(), len(gc.get_objects())
early = run(100)
late = run(9_900)
result = [b - a for a, b in zip(early, late)]
"""
    grown, tensors, objects = measure(code)
    assert tensors == 0  # bytes of tensors: exactly as after iteration 100
    assert objects <= 5  # what the collector follows, but for the names of this very measurement
    assert grown <= SLACK


def test_loops_over_large_tensors_do_not_grow():
    code = """
x = torch.ones(1 << 17, requires_grad=True)
def run(n):
    for i in range(n):
        y = ((x * 2 + 1).tanh() * x).relu()  # left pending, then computed in one pass
        if i % 3:
            y.sum().backward()
            x.grad = None
        del y
    gc.collect()
    return resident(), allocated()
early = run(20)
late = run(300)
result = [b - a for a, b in zip(early, late)]
"""
    grown, tensors = measure(code)
    assert tensors == 0
    assert grown <= (1 << 19) + SLACK  # one tensor's memory, which the C library may have kept


def test_cached_memory_is_bounded_and_given_back():
    code = """
held = [torch.ones(1 << 20) for _ in range(40)]
del held
before = torch._C.memory_stats()["cached_bytes"]
limit = torch._C.memory_stats()["cache_limit_bytes"]
torch._C.empty_cache()
result = [before, limit, torch._C.memory_stats()["cached_bytes"]]
"""
    cached, limit, after = measure(code)
    assert 0 < cached <= limit
    assert after == 0


def test_a_chain_gives_its_memory_back():
    code = """
def chain():
    y = torch.ones(4, requires_grad=True)
    for _ in range(300_000):
        y = y * 1.0
    return y
chain().sum().backward()
chain().sum().backward()
before = resident(), allocated()
for _ in range(3):
    chain().sum().backward()
result = [resident() - before[0], allocated() - before[1]]
"""
    grown, tensors = measure(code)
    assert tensors == 0
    assert grown <= 4 * SLACK  # of 120 MB each


@pytest.mark.parametrize("limit, kept", [(1 << 32, True), (0, False)])
def test_nodes_of_a_large_graph_serve_the_next_one(limit, kept):
    """They need no fresh objects then, so that they cause no run of the garbage collector; empty_cache frees them."""
    code = f"""
torch.set_cache_limit({limit})
runs = []
gc.callbacks.append(lambda phase, info: runs.append(phase))

def collections_of_a_graph():
    runs.clear()
    z = torch.ones(1, requires_grad=True)
    for _ in range(20_000):
        z = z + 1.0
    z.backward()
    return len(runs)

result = [collections_of_a_graph(), collections_of_a_graph()]
torch.empty_cache()
result.append(collections_of_a_graph())
"""
    first, second, third = measure(code)
    assert first > 10 and third > 10
    assert (second == 0) == kept
