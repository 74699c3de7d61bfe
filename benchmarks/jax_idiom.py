"""Some workloads as JAX writes them, the whole step compiled by ``jax.jit``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .workload import Step

BUILDERS: dict[str, Callable[[], Step]] = {}


def _jitted(gradient: Any, *inputs: Any) -> Step:
    import jax

    compiled = jax.jit(gradient)
    return lambda: jax.block_until_ready(compiled(*inputs))


def builder(build: Callable[[], Step]) -> Callable[[], Step]:
    """Enter a builder under the name of its workload."""
    BUILDERS[build.__name__] = build
    return build


@builder
def chain100_small() -> Step:
    import jax
    import jax.numpy as jnp

    def chain(x: Any, y: Any) -> Any:
        z = x
        for _ in range(100):
            z = z * y
        return z.sum()

    x = jnp.ones(4)
    return _jitted(jax.grad(chain, (0, 1)), x, x)


@builder
def mixed50_small() -> Step:
    import jax
    import jax.numpy as jnp

    def mixed(x: Any, y: Any) -> Any:
        z = x
        for _ in range(12):
            z = (jnp.sin(z * y) + 1.0) / 2.0
        return z.sum()

    x = jnp.ones(4)
    return _jitted(jax.grad(mixed, (0, 1)), x, x)


def _rosenbrock_like(transform: str) -> Step:
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)

    def value(x: Any) -> Any:
        return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()

    return _jitted(getattr(jax, transform)(value), jnp.full(10, 0.5))


@builder
def rosenbrock() -> Step:
    return _rosenbrock_like("grad")


@builder
def hessian_small() -> Step:
    return _rosenbrock_like("hessian")


def _elementwise(n: int) -> Step:
    import jax
    import jax.numpy as jnp

    def gelu(x: Any) -> Any:
        return (0.5 * x * (1 + jnp.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))).sum()

    return _jitted(jax.grad(gelu), jax.random.normal(jax.random.key(0), (n,)))


for _digits in (4, 6, 7):
    BUILDERS[f"elementwise_1e{_digits}"] = lambda n=10**_digits: _elementwise(n)  # type: ignore[misc]


def _matmul(n: int) -> Step:
    import jax
    import jax.numpy as jnp

    a, b = (jax.random.normal(jax.random.key(i), (n, n)) for i in range(2))

    def both(a: Any, b: Any, cotangent: Any) -> Any:
        y, pull = jax.vjp(jnp.matmul, a, b)
        return y.sum(), pull(cotangent)  # a cotangent of any kind: with ones the products would be folded away

    return _jitted(both, a, b, jnp.ones((n, n)))


for _n in (64, 1024):
    BUILDERS[f"matmul_{_n}"] = lambda n=_n: _matmul(n)  # type: ignore[misc]


def _perceptron(update: Callable[..., Any], state: Callable[[Any], Any]) -> Step:
    import jax
    import jax.numpy as jnp

    keys = iter(jax.random.split(jax.random.key(0), 8))
    shapes = ((64, 64), (64,), (64, 64), (64,), (64, 4), (4,))
    weights = [0.1 * jax.random.normal(next(keys), shape) for shape in shapes]
    x, target = jax.random.normal(next(keys), (32, 64)), jax.random.normal(next(keys), (32, 4))

    def loss(w: Any) -> Any:
        hidden = jnp.tanh(jnp.tanh(x @ w[0] + w[1]) @ w[2] + w[3])
        return ((hidden @ w[4] + w[5] - target) ** 2).mean()

    compiled = jax.jit(lambda w, s: update(w, jax.grad(loss)(w), s))
    held = [weights, state([jnp.zeros_like(w) for w in weights])]

    def step() -> None:
        held[:] = compiled(*held)
        jax.block_until_ready(held[0])

    return step


@builder
def mlp_sgd() -> Step:
    def update(weights: Any, gradients: Any, momenta: Any) -> Any:
        momenta = [0.9 * m + g for m, g in zip(momenta, gradients, strict=True)]
        return [w - 1e-2 * m for w, m in zip(weights, momenta, strict=True)], momenta

    return _perceptron(update, lambda zeros: zeros)


@builder
def mlp_adam() -> Step:
    def update(weights: Any, gradients: Any, state: Any) -> Any:
        first, second, count = state
        count = count + 1
        first = [0.9 * m + 0.1 * g for m, g in zip(first, gradients, strict=True)]
        second = [0.999 * v + 0.001 * g * g for v, g in zip(second, gradients, strict=True)]
        steps = [
            (m / (1 - 0.9**count)) / ((v / (1 - 0.999**count)) ** 0.5 + 1e-8)
            for m, v in zip(first, second, strict=True)
        ]
        return [w - 1e-3 * s for w, s in zip(weights, steps, strict=True)], (first, second, count)

    return _perceptron(update, lambda zeros: (zeros, zeros, 0.0))
