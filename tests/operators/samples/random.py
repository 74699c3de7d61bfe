"""Samples of what draws random numbers: compared with themselves, from one seed."""

from __future__ import annotations

from collections.abc import Iterator

import rushlight

from .sample import FLOATS, Maker, Sample, samples

SHAPES = ((), (3,), (2, 3), (0,))


@samples("rand", "randn", random=True)
def _by_size(m: Maker) -> Iterator[Sample]:
    for shape in SHAPES:
        yield Sample((shape,), {"dtype": getattr(rushlight, m.dtype)})
    yield Sample(((2,),))


@samples("rand_like", "randn_like", random=True)
def _like(m: Maker) -> Iterator[Sample]:
    for shape in SHAPES:
        yield Sample((m(*shape),))
    yield Sample((m(2),), {"dtype": rushlight.float64})


@samples("randint", random=True)
def _whole(m: Maker) -> Iterator[Sample]:
    dtype = {"dtype": getattr(rushlight, m.dtype)}
    yield Sample((2, (3,)), dtype)
    yield Sample((0, 2, (2, 3)), dtype)
    yield Sample((5, (2,)))


@samples("randint_like", random=True)
def _whole_like(m: Maker) -> Iterator[Sample]:
    for shape in SHAPES:
        yield Sample((m(*shape), 2))
        yield Sample((m(*shape), 0, 2))


@samples("randperm", random=True)
def _permutation(m: Maker) -> Iterator[Sample]:
    for n in (0, 1, 5):
        yield Sample((n,))
    if m.dtype != "bool":
        yield Sample((5,), {"dtype": getattr(rushlight, m.dtype)})


@samples("uniform_", "normal_", "cauchy_", "log_normal_", "exponential_", random=True)
def _fill(m: Maker) -> Iterator[Sample]:
    for shape in SHAPES:
        yield Sample((m(*shape),))


@samples("geometric_", random=True)
def _geometric(m: Maker) -> Iterator[Sample]:
    for shape in SHAPES:
        yield Sample((m(*shape), 0.25))


@samples("random_", random=True)
def _random(m: Maker) -> Iterator[Sample]:
    for shape in SHAPES:
        yield Sample((m(*shape),))
    yield Sample((m(2, 3), 2))
    yield Sample((m(2, 3), 0, 2))


@samples("bernoulli_", random=True)
def _bernoulli(m: Maker) -> Iterator[Sample]:
    yield Sample((m(2, 3),))
    yield Sample((m(2, 3), 0.25))
    yield Sample((m(2, 3), m(3, low=0, high=1, dtype="float32")))


@samples("bernoulli", dtypes=FLOATS, random=True)
def _drawn(m: Maker) -> Iterator[Sample]:
    for shape in SHAPES:
        yield Sample((m(*shape, low=0, high=1),))
        yield Sample((m(*shape), 0.5), derivatives=False)


@samples("multinomial", dtypes=FLOATS, random=True)
def _multinomial(m: Maker) -> Iterator[Sample]:
    yield Sample((m(3, low=0.1, high=1), 2))
    yield Sample((m(2, 3, low=0.1, high=1), 4, True))


@samples("normal", dtypes=FLOATS, random=True)
def _normal(m: Maker) -> Iterator[Sample]:
    yield Sample((m(2, 3), m(2, 3, low=0.1, high=1)), derivatives=False)
    yield Sample((m(2, 3), 2.0), derivatives=False)
    yield Sample((1.0, m(2, 3, low=0.1, high=1)), derivatives=False)
    yield Sample((1.0, 2.0, (2, 3)), {"dtype": getattr(rushlight, m.dtype)})


@samples("poisson", dtypes=FLOATS, random=True)
def _poisson(m: Maker) -> Iterator[Sample]:
    for shape in SHAPES:
        yield Sample((m(*shape, low=0, high=3),))


@samples("binomial", dtypes=FLOATS, random=True)
def _binomial(m: Maker) -> Iterator[Sample]:
    for shape in SHAPES:
        yield Sample((m(*shape, low=0, high=3).round(), m(*shape, low=0, high=1)), derivatives=False)


@samples("_standard_gamma", "_sample_dirichlet", dtypes=FLOATS, random=True)
def _gamma(m: Maker) -> Iterator[Sample]:
    yield Sample((m(3, low=0.5, high=3),), derivatives=False)
    yield Sample((m(2, 3, low=0.5, high=3),), derivatives=False)


@samples("dropout", "alpha_dropout", random=True, dtypes=FLOATS)
def _dropout(m: Maker) -> Iterator[Sample]:
    for shape in SHAPES:
        yield Sample((m(*shape), 0.5, True))
    yield Sample((m(2, 3), 0.5, False))
    yield Sample((m(2, 3), 0.0, True))
    yield Sample((m(2, 3), 1.0, True))


@samples("feature_dropout", "feature_alpha_dropout", random=True, dtypes=FLOATS)
def _feature_dropout(m: Maker) -> Iterator[Sample]:
    yield Sample((m(2, 3, 2), 0.5, True))
    yield Sample((m(2, 3), 0.5, False))
    yield Sample((m(2, 3), 0.25, True))


@samples("native_dropout", random=True, dtypes=FLOATS)
def _native_dropout(m: Maker) -> Iterator[Sample]:
    yield from _dropout(m)
    yield Sample((m(2, 3), 0.5, None))


@samples("rrelu", random=True, dtypes=FLOATS)
def _rrelu(m: Maker) -> Iterator[Sample]:
    for shape in SHAPES:
        yield Sample((m(*shape),))
        yield Sample((m(*shape), 0.1, 0.5, True))


@samples("rrelu_with_noise", random=True, dtypes=FLOATS, writes=1)
def _rrelu_with_noise(m: Maker) -> Iterator[Sample]:
    yield Sample((m(2, 3), m(2, 3)))
    yield Sample((m(2, 3), m(2, 3), 0.1, 0.5, True), variables=1)


@samples("_standard_gamma_grad", dtypes=FLOATS)
def _gamma_grad(m: Maker) -> Iterator[Sample]:
    yield Sample((m(3, low=0.5, high=3), m(3, low=0.1, high=3)), derivatives=False)


@samples("_dirichlet_grad", dtypes=FLOATS)
def _dirichlet_grad(m: Maker) -> Iterator[Sample]:
    alpha = m(2, 3, low=0.5, high=3)
    x = m(2, 3, low=0.1, high=0.4)
    yield Sample((x, alpha, alpha.sum(-1, True).expand(2, 3)), derivatives=False)
