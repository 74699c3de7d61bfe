"""One workload or more per family of operators, forward and backward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .workload import Step, gradient_step, workload


def _gelu(torch: Any, x: Any) -> Any:
    return 0.5 * x * (1 + torch.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


def _elementwise(n: int) -> Any:
    def build(torch: Any) -> Step:
        torch.manual_seed(0)
        return gradient_step(torch, lambda x: _gelu(torch, x), torch.randn(n, requires_grad=True))

    return build


for _digits in (4, 6, 7):
    workload("pointwise", f"elementwise_1e{_digits}")(_elementwise(10**_digits))


def _matmul(n: int) -> Any:
    def build(torch: Any) -> Step:
        torch.manual_seed(0)
        return gradient_step(torch, lambda a, b: a @ b, *(torch.randn(n, n, requires_grad=True) for _ in range(2)))

    return build


for _n in (64, 1024):
    workload("product", f"matmul_{_n}")(_matmul(_n))


@workload("product")
def matvec_512(torch: Any) -> Step:
    """A matrix times a vector."""
    torch.manual_seed(0)
    return gradient_step(
        torch, lambda a, x: a @ x, torch.randn(512, 512, requires_grad=True), torch.randn(512, requires_grad=True)
    )


@workload("product")
def bmm_64x32(torch: Any) -> Step:
    """64 products of matrices of 32 rows."""
    torch.manual_seed(0)
    return gradient_step(torch, torch.bmm, *(torch.randn(64, 32, 32, requires_grad=True) for _ in range(2)))


@workload("reduction")
def reduce_broadcast(torch: Any) -> Step:
    """Column means, gradients of what was broadcast."""
    torch.manual_seed(0)
    x, b = torch.randn(2048, 1024, requires_grad=True), torch.randn(1024, requires_grad=True)
    return gradient_step(torch, lambda x, b: ((x - x.mean(0)) * b).pow(2).mean(), x, b)


@workload("reduction")
def norms_1e6(torch: Any) -> Step:
    """Variances of rows."""
    torch.manual_seed(0)
    return gradient_step(torch, lambda x: x.var(1), torch.randn(1000, 1000, requires_grad=True))


@workload("order")
def sort_1e5(torch: Any) -> Step:
    """Sorting, and the gradient put back in place."""
    torch.manual_seed(0)
    return gradient_step(torch, lambda x: x.sort()[0], torch.randn(100000, requires_grad=True))


@workload("short dimensions")
def bodies_500(torch: Any) -> Step:
    """The potential of 500 bodies in space: all differences of coordinates, summed over the last dimension of three."""
    torch.manual_seed(0)

    def potential(places: Any) -> Any:
        apart = places[:, None, :] - places[None, :, :]
        return 1 / (apart.square().sum(-1) + 0.01).sqrt()

    return gradient_step(torch, potential, torch.rand(500, 3, requires_grad=True))


@workload("short dimensions")
def softmax_of_4(torch: Any) -> Step:
    """The logarithms of the probabilities of four actions."""
    torch.manual_seed(0)
    return gradient_step(torch, lambda x: x.log_softmax(1), torch.randn(20_000, 4, requires_grad=True))


@workload("order")
def topk_1e5(torch: Any) -> Step:
    """The ten greatest of each row."""
    torch.manual_seed(0)
    return gradient_step(torch, lambda x: x.topk(10)[0], torch.randn(100, 1000, requires_grad=True))


@workload("order")
def median_1e5(torch: Any) -> Step:
    """The medians of rows."""
    torch.manual_seed(0)
    return gradient_step(torch, lambda x: x.median(1)[0], torch.randn(100, 1000, requires_grad=True))


@workload("order")
def searchsorted_1e5(torch: Any) -> Step:
    """Places in a sorted sequence of 1,000."""
    torch.manual_seed(0)
    sequence, values = torch.randn(1000).sort()[0], torch.randn(100000)
    return lambda: torch.searchsorted(sequence, values)


@workload("scan")
def cumsum_1e6(torch: Any) -> Step:
    """Running sums of rows."""
    torch.manual_seed(0)
    return gradient_step(torch, lambda x: x.cumsum(1), torch.randn(1000, 1000, requires_grad=True))


@workload("indexing")
def gather_1e5(torch: Any) -> Step:
    """Elements by their places."""
    torch.manual_seed(0)
    places = torch.randint(0, 1000, (100, 1000))
    return gradient_step(torch, lambda x: x.gather(1, places), torch.randn(100, 1000, requires_grad=True))


@workload("indexing")
def index_add_1e5(torch: Any) -> Step:
    """Rows added at places of a table."""
    torch.manual_seed(0)
    places = torch.randint(0, 1000, (1000,))
    pair = (torch.randn(1000, 100, requires_grad=True) for _ in range(2))
    return gradient_step(torch, lambda x, source: x.index_add(0, places, source), *pair)


@workload("indexing")
def mask_1e5(torch: Any) -> Step:
    """Elements chosen by a mask."""
    torch.manual_seed(0)
    x = torch.randn(100000, requires_grad=True)
    mask = x.detach() > 0
    return gradient_step(torch, lambda x: x[mask], x)


@workload("indexing")
def embedding(torch: Any) -> Step:
    """4,096 rows of a table of 10,000."""
    torch.manual_seed(0)
    table = torch.nn.Embedding(10000, 128)
    rows = torch.randint(0, 10000, (64, 64))
    return gradient_step(torch, lambda weight: table(rows), table.weight)


@workload("join")
def cat_stack(torch: Any) -> Step:
    """Eight matrices joined and stacked."""
    torch.manual_seed(0)
    parts = [torch.randn(100, 100, requires_grad=True) for _ in range(8)]
    return gradient_step(torch, lambda *ts: torch.cat(ts).sum() + torch.stack(ts).sum(), *parts)


@workload("view")
def views_small(torch: Any) -> Step:
    """Views of a small tensor, and their backward."""
    x = torch.ones(4, 6, requires_grad=True)
    return gradient_step(torch, lambda x: x.t().reshape(3, 8)[1:].unsqueeze(0).transpose(1, 2)[0, 2], x)


@workload("normalization")
def layernorm(torch: Any) -> Step:
    """4,096 rows of 512."""
    torch.manual_seed(0)
    return gradient_step(torch, torch.nn.LayerNorm(512), torch.randn(4096, 512, requires_grad=True))


@workload("loss")
def cross_entropy(torch: Any) -> Step:
    """4,096 rows of 1,000 scores."""
    torch.manual_seed(0)
    x, y = torch.randn(4096, 1000, requires_grad=True), torch.randint(0, 1000, (4096,))
    return gradient_step(torch, lambda x: torch.nn.functional.cross_entropy(x, y), x)


@workload("convolution")
def conv2d(torch: Any) -> Step:
    """A 3 x 3 convolution of 64 channels, eight planes of 16 x 16."""
    torch.manual_seed(0)
    module = torch.nn.Conv2d(64, 64, 3, padding=1)
    x = torch.randn(8, 64, 16, 16, requires_grad=True)
    return gradient_step(torch, lambda x, w: module(x), x, module.weight)


@workload("pooling")
def max_pool2d(torch: Any) -> Step:
    """Maxima of 2 x 2 windows."""
    torch.manual_seed(0)
    pool = torch.nn.functional.max_pool2d
    return gradient_step(torch, lambda x: pool(x, 2), torch.randn(8, 64, 32, 32, requires_grad=True))


@workload("random")
def randn_1e6(torch: Any) -> Step:
    """A million normal numbers."""
    torch.manual_seed(0)
    return lambda: torch.randn(1000000)


@workload("scalar")
def item_small(torch: Any) -> Step:
    """One number read back into Python."""
    x = torch.tensor(1.5)
    return lambda: x.item()


@workload("scalar")
def index_small(torch: Any) -> Step:
    """One element of a small tensor."""
    x = torch.ones(4)
    return lambda: x[2]


@workload("scalar")
def tensor_small(torch: Any) -> Step:
    """A tensor of one Python number."""
    return lambda: torch.tensor(1.0)


@workload("scalar")
def iadd_small(torch: Any) -> Step:
    """Adding in place."""
    x, y = torch.zeros(4), torch.ones(4)
    return lambda: x.add_(y)


@workload("scalar")
def compare_small(torch: Any) -> Step:
    """A comparison and its truth."""
    x = torch.tensor(1.5)
    return lambda: bool(x > 1)


@workload("scalar")
def iterate_small(torch: Any) -> Step:
    """The elements of a small tensor, one by one."""
    x = torch.ones(4)
    return lambda: list(x)


@workload("scalar")
def shape_small(torch: Any) -> Step:
    """The sizes of a tensor."""
    x = torch.ones(4, 3)
    return lambda: x.shape


@workload("scalar")
def setitem_small(torch: Any) -> Step:
    """One element of a small tensor written."""
    x = torch.ones(4)

    def step() -> None:
        x[1] = 0.5

    return step


@workload("reduction")
def sum_small(torch: Any) -> Step:
    """The sum of four numbers."""
    x = torch.ones(4)
    return lambda: x.sum()


@workload("product")
def einsum_small(torch: Any) -> Step:
    """A batch of small products by an equation."""
    torch.manual_seed(0)
    a, b = torch.randn(8, 16, 12), torch.randn(8, 12, 16)
    return lambda: torch.einsum("bij,bjk->bik", a, b)


def _function(call: Callable[[Any, Any], Any], double: bool) -> Any:
    def build(torch: Any) -> Step:
        torch.manual_seed(0)
        x = torch.rand(100000, dtype=torch.float64 if double else torch.float32) * 4 + 0.1
        return lambda: call(torch, x).sum()

    return build


_FUNCTIONS: dict[str, tuple[Callable[[Any, Any], Any], bool]] = {
    "exp": (lambda torch, x: torch.exp(x), False),
    "log": (lambda torch, x: torch.log(x), False),
    "sin": (lambda torch, x: torch.sin(x), False),
    "sin_double": (lambda torch, x: torch.sin(x), True),
    "sigmoid": (lambda torch, x: torch.sigmoid(x), False),
    "power": (lambda torch, x: x**2.5, False),
    "remainder": (lambda torch, x: x % 0.3, False),
    "erf": (lambda torch, x: torch.erf(x), False),
    "erf_double": (lambda torch, x: torch.erf(x), True),
    "erfinv": (lambda torch, x: torch.erfinv(x * 0.2), False),
    "lgamma": (lambda torch, x: torch.lgamma(x), False),
    "digamma": (lambda torch, x: torch.digamma(x), False),
    "i0": (lambda torch, x: torch.i0(x), False),
    "logaddexp": (lambda torch, x: torch.logaddexp(x, x.flip(0)), False),
    "hypot_double": (lambda torch, x: torch.hypot(x, x.flip(0)), True),
    "gelu": (lambda torch, x: torch.nn.functional.gelu(x - 2), False),
    "mish": (lambda torch, x: torch.nn.functional.mish(x - 2), False),
}
for _name, (_call, _double) in _FUNCTIONS.items():
    workload("function", f"{_name}_1e5")(_function(_call, _double))
