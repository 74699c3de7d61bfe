"""A budget for what backward needs: the same results, less memory."""

import gc

import pytest

import rushlight as torch
from rushlight.autograd.graph import allow_mutation_on_saved_tensors, disable_saved_tensors_hooks, memory_budget
from rushlight.vision.models import resnet18

COUNT = 1 << 12  # 16 KiB of float32


def allocated():
    return torch._C.memory_stats()["allocated_bytes"]


def peak_of(function):
    """What the function returns, and the most that was allocated above the level at its begin."""
    gc.collect()
    before = allocated()
    torch._C.reset_peak_memory_stats()
    result = function()
    return result, torch._C.memory_stats()["peak_bytes"] - before


def chain(x, steps):
    for i in range(steps):
        x = (torch.sin, lambda t: t * 1.01, torch.tanh, lambda t: t * t, torch.cos, torch.sigmoid)[i % 6](x)
    return x


def gradient(function, x, budget=None, **options):
    x = x.detach().requires_grad_()
    if budget is None:
        function(x).sum().backward()
        return x.grad
    with memory_budget(budget, **options):
        function(x).sum().backward()
    return x.grad


def test_chain_of_ten_thousand_pointwise_operations():
    torch.manual_seed(0)
    x = torch.randn(COUNT)
    plain, without = peak_of(lambda: gradient(lambda x: chain(x, 10_000), x))

    def run():
        leaf = x.detach().requires_grad_()
        with memory_budget(2_000_000) as budget:
            chain(leaf, 10_000).sum().backward()
        return leaf.grad, budget

    (held, budget), peak = peak_of(run)
    assert torch.equal(held, plain)
    assert without > 80_000_000
    assert peak < 2_000_000
    assert budget.recomputed < 10_000
    assert budget.dropped_bytes > 60_000_000
    assert budget.moved_bytes < without / 4


@pytest.mark.parametrize("onednn", [False, True])
def test_resnet18(onednn):
    with torch.backends.mkldnn.flags(enabled=onednn):
        check_resnet18(same=not onednn)  # what comes back from a file lies in rows, and is added up in another order


def check_resnet18(same):
    torch.manual_seed(0)
    model = resnet18(num_classes=10)
    x = torch.randn(8, 3, 64, 64)
    state = {name: value.clone() for name, value in model.state_dict().items()}
    gradients = sum(p.nbytes for p in model.parameters())

    def run(budget=None):
        model.load_state_dict(state)
        model.zero_grad()
        if budget is None:
            model(x).logsumexp(1).sum().backward()
        else:
            with budget:
                model(x).logsumexp(1).sum().backward()

    _, without = peak_of(run)
    plain = [p.grad for p in model.parameters()]
    buffers = [b.clone() for b in model.buffers()]
    limit = without - (without - gradients) // 3
    budget = memory_budget(limit)
    _, peak = peak_of(lambda: run(budget))
    assert peak < limit < without
    assert budget.moved_bytes > 0
    for p, expected in zip(model.parameters(), plain, strict=True):
        assert torch.equal(p.grad, expected) if same else torch.allclose(p.grad, expected, rtol=1e-3, atol=1e-3)
    for b, expected in zip(model.buffers(), buffers, strict=True):
        assert torch.equal(b, expected) if same else torch.allclose(b, expected, rtol=1e-5)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x.sin() * x.cos() + x.exp() * x).tanh() * x.sin().exp(),
        lambda x: torch.where(x > 0, x.sin(), x.exp()) * torch.maximum(x, x * x) / (1 + x.abs()),
        lambda x: (x.reshape(64, 64).sin().t() * x.reshape(64, 64).exp()[:, :1]).tanh().softmax(0)[::2].exp(),
        lambda x: (2 - x) * (1 / (x * x + 1)) ** 2 * 2**x,
        lambda x: torch.nn.functional.gelu(x.double() * 2).float().clamp(-1, 1) * x.sin().mul_(3).exp(),
        lambda x: (x.reshape(64, 64) @ x.reshape(64, 64).sin()).relu().exp().log_softmax(1) * x.reshape(64, 64).tanh(),
        lambda x: x.sin() ** 1 * x.sin().pow(1.0) * (x + 0).sin(),
        lambda x: torch.cat([x.sin(), x.cos()]).exp().chunk(3)[1].sin() * x.exp().sum(),
    ],
)
@pytest.mark.parametrize("budget", [1, 40_000, 300_000])
def test_any_program_gives_the_same_bits(function, budget):
    torch.manual_seed(1)
    x = torch.randn(COUNT)
    assert torch.equal(gradient(function, x, budget), gradient(function, x))


def test_backward_outside_of_the_block_and_twice():
    x = torch.randn(COUNT)
    leaf = x.detach().requires_grad_()
    with memory_budget(50_000):
        out = chain(leaf, 30).sum()
    out.backward(retain_graph=True)
    first = leaf.grad.clone()
    leaf.grad = None
    out.backward()
    assert torch.equal(leaf.grad, first)
    assert torch.equal(first, gradient(lambda x: chain(x, 30), x))


def test_second_derivative():
    def second(x):
        (first,) = torch.autograd.grad(chain(x, 12).sum(), x, create_graph=True)
        return first

    x = torch.randn(COUNT)
    assert torch.equal(gradient(second, x, 40_000), gradient(second, x))


def test_everything_is_freed():
    x = torch.randn(COUNT, requires_grad=True)
    budget = memory_budget(50_000)
    gc.collect()
    before = allocated()
    with budget:
        out = chain(x, 30).sum()
        del out
        gc.collect()
        assert allocated() == before
    with memory_budget(50_000):
        chain(x, 30).sum().backward()
    x.grad = None
    gc.collect()
    assert allocated() == before


def test_what_the_program_holds_stays_where_it_is():
    x = torch.randn(COUNT, requires_grad=True)
    with memory_budget(1) as budget:
        kept = [x.sin()]
        for _ in range(10):
            kept.append(kept[-1].exp().sin())
        addresses = [t.data_ptr() for t in kept]
        kept[-1].sum().backward()
    assert [t.data_ptr() for t in kept] == addresses
    assert budget.moved_bytes + budget.dropped_bytes > 0


def test_operand_changed_in_place_before_backward():
    """A recipe keeps the numbers that its operand had."""
    w = torch.randn(COUNT, requires_grad=True)
    with memory_budget(1):
        out = ((w * 1.5).sin() * 2).exp().sum()
    with torch.no_grad():
        expected = w * 1.5
        expected = expected.cos() * 2 * (expected.sin() * 2).exp() * 1.5
        w.mul_(100)
    out.backward()
    torch.testing.assert_close(w.grad, expected)


def test_saved_tensor_changed_in_place_is_an_error():
    for budget in (1, 10**9):
        x = torch.randn(COUNT, requires_grad=True)
        with memory_budget(budget):
            y = x.exp()
            z = y.sin()
            y.add_(1)
            with pytest.raises(RuntimeError, match="modified by an inplace operation.*version 1; expected version 0"):
                z.sum().backward()
    small = torch.ones(3, requires_grad=True)
    with memory_budget(1):
        y = small.exp()
        y.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()


def test_training_inside_of_the_block():
    def train(budget):
        torch.manual_seed(2)
        model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.Linear(64, 32), torch.nn.Tanh())
        scale = torch.nn.Parameter(torch.ones(32))
        optimizer = torch.optim.Adam([*model.parameters(), scale], lr=0.01)
        x = torch.randn(128, 32)
        losses = []

        def steps():
            for _ in range(5):
                optimizer.zero_grad()
                loss = ((model(x).sin() * scale).exp() * (scale * 2).cos() - x).square().mean()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())

        if budget is None:
            steps()
        else:
            with memory_budget(budget):
                steps()
        return losses, [p.detach().clone() for p in (*model.parameters(), scale)]

    losses, parameters = train(None)
    for budget in (1, 100_000, 10**9):
        again, same = train(budget)
        assert again == losses
        assert all(torch.equal(a, b) for a, b in zip(parameters, same, strict=True))
    assert losses[-1] < losses[0]


def test_around_and_inside_of_checkpoints():
    def function(x):
        return torch.utils.checkpoint.checkpoint(lambda x: chain(x, 9), x.sin(), use_reentrant=False).exp() * x

    x = torch.randn(COUNT)
    plain = gradient(lambda x: chain(x.sin(), 9).exp() * x, x)
    assert torch.equal(gradient(function, x, 1), plain)

    def within(x):
        with memory_budget(1):
            return chain(x, 9)

    leaf = x.detach().requires_grad_()
    torch.utils.checkpoint.checkpoint(within, leaf, use_reentrant=False).sum().backward()
    assert torch.equal(leaf.grad, gradient(lambda x: chain(x, 9), x))


def test_random_numbers_and_normalisation():
    def function(x):
        x = torch.nn.functional.dropout(x.reshape(4, 16, 64), 0.4)
        return torch.nn.functional.layer_norm(x.sin(), (64,)).exp()

    x = torch.randn(COUNT)
    torch.manual_seed(5)
    plain = gradient(function, x)
    torch.manual_seed(5)
    assert torch.equal(gradient(function, x, 1), plain)


def test_file_goes_where_asked_and_its_places_are_used_again(tmp_path):
    x = torch.randn(64, 64, requires_grad=True)
    budget = memory_budget(1, directory=tmp_path)
    with budget:
        sizes = []
        for _ in range(5):
            y = x
            for _ in range(4):
                y = (y @ x).softmax(1)
            y.sum().backward()
            gc.collect()
            sizes.append(budget._file.size)
    assert sizes[0] == sizes[-1] > 0
    with pytest.raises(FileNotFoundError, match="there is no directory"):
        memory_budget(1, directory=tmp_path / "absent")


def test_the_same_bytes_as_other_numbers():
    class Keeps(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            bits = x.view(torch.int32)
            ctx.save_for_backward(x, bits)
            return x * 1

        @staticmethod
        def backward(ctx, g):
            x, bits = ctx.saved_tensors
            assert bits.dtype == torch.int32
            assert torch.equal(bits, x.view(torch.int32))
            return g * x

    x = torch.randn(COUNT)
    for budget in (1, 10**9):
        assert torch.equal(
            gradient(lambda x: Keeps.apply(x.sin()).exp(), x, budget), gradient(lambda x: Keeps.apply(x.sin()).exp(), x)
        )


def test_other_hooks():
    x = torch.randn(COUNT, requires_grad=True)
    with disable_saved_tensors_hooks("not here"), pytest.raises(RuntimeError, match="not here"), memory_budget(1):
        raise AssertionError
    with allow_mutation_on_saved_tensors(), memory_budget(10**6):
        y = x.exp()
        y.sin().sum().backward()
    assert torch.isfinite(x.grad).all()
    assert not torch._C._profiler_enabled()


def test_bad_arguments():
    for wrong in (1.5, "1", True, None):
        with pytest.raises(TypeError, match="argument 'bytes' must be int"):
            memory_budget(wrong)
    for wrong in (0, -1):
        with pytest.raises(ValueError, match="expected a positive number of bytes"):
            memory_budget(wrong)
    budget = memory_budget(10)
    with budget, pytest.raises(RuntimeError, match="cannot be entered again"), budget:
        raise AssertionError


def test_per_sample_gradients_within_a_budget():
    x = torch.linspace(-1, 1, COUNT).view(4, -1)
    gradient = torch.func.vmap(torch.func.grad(lambda x: chain(x, 30).sum()))
    expected = gradient(x)
    with memory_budget(50_000) as budget:
        assert torch.equal(gradient(x), expected)
    assert budget.moved_bytes > 0
