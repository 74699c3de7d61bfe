"""Random operations under vmap: refusals, shapes, and whether samples share a draw, as in PyTorch."""

from __future__ import annotations

import builtins
from typing import Any

import pytest

import rushlight

torch = pytest.importorskip("torch", reason="the oracle is installed by .ci/run only")
pytestmark = pytest.mark.oracle

SIZE = 4
# programs over x, which is batched, and u, which is not: vectors of six ones
PROGRAMS = """
torch.rand(6)
torch.randn(6)
torch.randint(0,1000,(6,))
torch.randint(1000,(6,))
torch.randperm(50)
torch.normal(0.,1.,(6,))
torch.rand_like(u)
torch.rand_like(x)
torch.randn_like(u)
torch.randn_like(x)
torch.randint_like(u,1000)
torch.randint_like(x,1000)
torch.randint_like(x,3,1000)
torch.bernoulli(u*.5)
torch.bernoulli(x*.5)
torch.bernoulli(x,0.5)
torch.bernoulli(u,0.5)
x.bernoulli(0.5)
torch.poisson(u*50)
torch.poisson(x*50)
torch.binomial(x*100,x*.5)
torch.binomial(u*100,u*.5)
torch.multinomial(u,30,True)
torch.multinomial(x,30,True)
torch.multinomial(x,4)
torch.multinomial(x.expand(3,6),30,True)
torch.normal(x,1.)
torch.normal(0.,x)
torch.normal(x,x)
torch.normal(u,u)
torch.normal(u,1.)
torch.normal(x,u)
F.dropout(x)
F.dropout(u)
F.dropout(x,training=False)
F.dropout(x,1.)
F.dropout(x.clone(),inplace=True)
F.alpha_dropout(x,training=True)
F.alpha_dropout(u,training=True)
F.feature_alpha_dropout(x.view(1,6,1),training=True)
F.dropout1d(x.view(2,3))
F.dropout2d(x.view(1,6,1,1))
F.dropout2d(u.view(1,6,1,1))
F.dropout3d(x.view(1,6,1,1,1))
F.gumbel_softmax(x)
F.gumbel_softmax(u)
F.gumbel_softmax(x,hard=True)
x.clone().uniform_()
u.clone().uniform_()
x.clone().normal_()
u.clone().normal_()
x.clone().bernoulli_(0.5)
u.clone().bernoulli_(0.5)
x.clone().bernoulli_(x*.5)
x.clone().bernoulli_(u*.5)
u.clone().bernoulli_(x*.5)
u.clone().bernoulli_(u*.5)
x.clone().exponential_()
u.clone().exponential_()
x.clone().geometric_(0.1)
u.clone().geometric_(0.1)
x.clone().cauchy_()
u.clone().cauchy_()
x.clone().log_normal_()
u.clone().log_normal_()
x.clone().random_()
u.clone().random_()
x.clone().random_(1000)
x.clone().random_(5,1000)
u.clone().random_(5,1000)
torch._standard_gamma(x)
torch._standard_gamma(u)
torch._sample_dirichlet(x)
torch._sample_dirichlet(u)
torch.empty(6).uniform_()
torch.zeros(6).normal_()
x.new_empty(6).normal_()
u.new_empty(6).normal_()
F.fractional_max_pool2d(x.view(1,1,2,3).repeat(1,1,4,4),2,output_size=2)
F.fractional_max_pool2d(u.view(1,1,2,3).repeat(1,1,4,4),2,output_size=2)
F.scaled_dot_product_attention(x.view(1,1,2,3),x.view(1,1,2,3),x.view(1,1,2,3),dropout_p=.5)
F.scaled_dot_product_attention(u.view(1,1,2,3),u.view(1,1,2,3),u.view(1,1,2,3),dropout_p=.5)
torch.rand(6,out=torch.empty(6))
torch.randn(3,3).tril()
torch.rand_like(x,dtype=torch.float64)
torch.multinomial(x.repeat(5),7)
x.view(2, 3), F.dropout(x), torch.rand_like(u)
""".strip().splitlines()
# PyTorch refuses these, as its attention draws in place into what is not batched
MORE_THAN_PYTORCH = {("different", p) for p in PROGRAMS if "attention(u" in p}


def outcome(library: Any, program: str, randomness: str) -> tuple[Any, ...]:
    library.manual_seed(0)
    x = library.ones(SIZE, 6)
    code = compile(program, "<program>", "eval")
    names = {"torch": library, "F": library.nn.functional}

    def function(x: Any, u: Any) -> Any:
        return eval(code, {**names, "x": x, "u": u})

    try:
        results = library.func.vmap(function, in_dims=(0, None), randomness=randomness)(x, x[0].clone())
    except Exception as error:
        return (next(c for c in type(error).__mro__ if c.__module__ == builtins.__name__),)
    found = []
    for r in results if isinstance(results, tuple) else (results,):
        pairs = [bool((r[i] == r[j]).all()) for i in range(SIZE) for j in range(i)]
        found.append((tuple(r.shape), str(r.dtype), all(pairs), any(pairs)))
    return tuple(found)


@pytest.mark.parametrize("randomness", ["error", "same", "different"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_draws(program: str, randomness: str) -> None:
    ours, theirs = outcome(rushlight, program, randomness), outcome(torch, program, randomness)
    if (randomness, program) in MORE_THAN_PYTORCH:
        assert theirs == (RuntimeError,)
        assert not ours[0][2], "all samples share a draw"
    else:
        assert ours == theirs


@pytest.mark.parametrize("inner", ["error", "same", "different"])
@pytest.mark.parametrize("outer", ["error", "same", "different"])
@pytest.mark.parametrize("draw", ["torch.rand(50)", "F.dropout(x)", "F.alpha_dropout(x, training=True)"])
def test_nested_draws(draw: str, outer: str, inner: str) -> None:
    def shape_of_equality(library: Any) -> Any:
        library.manual_seed(0)
        names = {"torch": library, "F": library.nn.functional}
        one = library.func.vmap(lambda x: eval(draw, {**names, "x": x}), randomness=inner)
        try:
            r = library.func.vmap(one, randomness=outer)(library.ones(3, 2, 50))
        except RuntimeError:
            return RuntimeError
        return [
            [bool((r[i, j] == r[k, m]).all()) for i in range(3) for j in range(2)] for k in range(3) for m in range(2)
        ]

    assert shape_of_equality(rushlight) == shape_of_equality(torch)
