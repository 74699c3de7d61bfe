"""func's transforms: the same programs on rushlight and on PyTorch, results and refusals."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rushlight

torch = pytest.importorskip("torch", reason="the oracle is installed by .ci/run only")
pytestmark = pytest.mark.oracle


class Setting:
    """A library, its transforms, and numbers that are the same in both."""

    def __init__(self, library: Any) -> None:
        self.t = library
        self.F = library.nn.functional
        self.func = library.func
        for name in ("grad", "grad_and_value", "vjp", "jvp", "jacrev", "jacfwd", "hessian", "vmap", "linearize"):
            setattr(self, name, getattr(library.func, name))
        random = np.random.default_rng(7)

        def made(*shape: int) -> Any:
            return library.tensor(random.normal(size=shape))

        self.x, self.y, self.v = made(4, 3), made(4, 3), made(3)
        self.w, self.m, self.b = made(3, 3), made(5, 3), made(5)
        self.cube, self.image = made(2, 4, 3), made(3, 2, 5, 5)
        self.i = library.tensor([2, 0, 1, 2])
        self.mask = library.tensor([True, False, True, True])


def numbers(result: Any) -> Any:
    """Nested results as lists of (type, shape, numbers)."""
    if isinstance(result, dict):
        return {k: numbers(v) for k, v in result.items()}
    if isinstance(result, (tuple, list)):
        return [type(result).__name__, *[numbers(r) for r in result]]
    if hasattr(result, "detach"):
        return (str(result.dtype), tuple(result.shape), result.detach().tolist(), bool(result.requires_grad))
    return result


def outcome(library: Any, program: Callable[[Any], Any]) -> Any:
    setting = Setting(library)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return numbers(program(setting))
        except Exception as error:
            return type(error)


def compare(ours: Any, theirs: Any) -> None:
    if isinstance(theirs, list):
        assert isinstance(ours, list) and len(ours) == len(theirs) and ours[0] == theirs[0], (ours, theirs)
        for a, b in zip(ours[1:], theirs[1:]):
            compare(a, b)
    elif isinstance(theirs, dict):
        assert ours.keys() == theirs.keys()
        for key in theirs:
            compare(ours[key], theirs[key])
    elif isinstance(theirs, tuple):
        assert ours[:2] == theirs[:2] and ours[3] == theirs[3], (ours, theirs)
        np.testing.assert_allclose(ours[2], theirs[2], rtol=1e-9, atol=1e-10)
    elif isinstance(theirs, type):
        assert isinstance(ours, type) and issubclass(ours, theirs), f"{ours}, expected {theirs}"
    else:
        assert ours == theirs


def scalar(s: Any, w: Any, x: Any) -> Any:
    return s.t.tanh(w @ x).sum() + (x**3).sum() * 0.1


def net(s: Any) -> Any:
    s.t.manual_seed(0)
    module = s.t.nn.Sequential(s.t.nn.Linear(3, 4), s.t.nn.Tanh(), s.t.nn.Linear(4, 2)).double()
    for i, p in enumerate(module.parameters()):
        p.data.copy_(s.t.arange(p.numel(), dtype=s.t.float64).view(p.shape).mul(0.37 + i).sin())
    return module


def ensemble(s: Any) -> Any:
    models = [net(s) for _ in range(3)]
    for k, m in enumerate(models):
        for p in m.parameters():
            p.data.mul_(k + 1)
    params, buffers = s.func.stack_module_state(models)
    base = models[0]
    call = lambda p, b, x: s.func.functional_call(base, (p, b), (x,))  # noqa: E731
    return s.vmap(call, in_dims=(0, 0, None))(params, buffers, s.x)


def per_sample(s: Any) -> Any:
    module = net(s)
    params = {k: p.detach() for k, p in module.named_parameters()}

    def loss(p: Any, x: Any, target: Any) -> Any:
        out = s.func.functional_call(module, p, (x.unsqueeze(0),))
        return s.F.cross_entropy(out, target.unsqueeze(0))

    return s.vmap(s.grad(loss), in_dims=(None, 0, 0))(params, s.x, s.i % 2)


def closed_over(s: Any) -> Any:
    module = net(s)
    return s.grad(lambda x: module(x).sum())(s.v)


def inside_no_grad(s: Any) -> Any:
    with s.t.no_grad():
        outer = s.grad(lambda x: (x**2).sum())(s.v)

    def f(x: Any) -> Any:
        with s.t.no_grad():
            c = (x**2).sum()
        return (x * 3).sum() - c

    return outer, s.grad(f)(s.v)


def outer_requires_grad(s: Any) -> Any:
    x = s.v.clone().requires_grad_()
    g = s.grad(lambda a: (a**3).sum())(x)
    g.sum().backward()
    return g, x.grad


def custom(s: Any, generate: bool) -> Any:
    class Cube(s.t.autograd.Function):
        generate_vmap_rule = generate

        @staticmethod
        def forward(x: Any, k: Any) -> Any:
            return k * x**3, x * 2

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(inputs[0])
            ctx.k = inputs[1]

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g * 3 * ctx.k * x**2 + 2 * h, None

        if not generate:

            @staticmethod
            def vmap(info: Any, in_dims: Any, x: Any, k: Any) -> Any:
                assert info.randomness == "error" and in_dims[1] is None
                a, b = Cube.apply(x, k)
                return (a, b), (in_dims[0], in_dims[0])

    f = lambda x: Cube.apply(x, 2)[0].sum() + Cube.apply(x, 2)[1].sin().sum()  # noqa: E731
    batched = s.vmap(lambda x: Cube.apply(x, 2))(s.x)
    return batched, s.vmap(s.grad(f))(s.x), s.grad(lambda x: s.vmap(f)(x).sum())(s.x)


def in_place(s: Any) -> Any:
    def f(x: Any) -> Any:
        y = x.clone()
        y[0] = x.sum()
        y[1:].mul_(2)
        y.add_(1)
        z = s.t.zeros_like(x)
        z.copy_(y)
        z.unsqueeze_(0)
        return z, x.new_zeros(2).fill_(3.0)

    return s.vmap(f)(s.x)


def control_flow_in_jacrev(s: Any) -> Any:
    def f(x: Any) -> Any:
        return x**2 if x.sum() > 100 else x**3

    return s.jacrev(f)(s.v), s.jacfwd(f)(s.v)


def batched_cotangents(s: Any) -> Any:
    out, pull = s.vjp(lambda w, x: s.t.tanh(w @ x), s.w, s.v)
    basis = s.t.eye(3, dtype=s.t.float64)
    return out, s.vmap(pull)(basis), s.vmap(s.vmap(pull))(s.t.stack([basis, basis * 2]))


def linear_map(s: Any) -> Any:
    out, push = s.linearize(lambda x, y: (x * y, x.sin()), s.v, s.v * 2)
    return out, push(s.v, s.v), s.vmap(push)(s.x, s.y)


def different(s: Any) -> Any:
    draws = s.vmap(lambda x: s.t.rand(2) + 0 * x.sum(), randomness="different")(s.x)
    same = s.vmap(lambda x: s.t.rand(2) + 0 * x.sum(), randomness="same")(s.x)
    dropped = s.vmap(lambda x: s.F.dropout(x, 0.5), randomness="same")(s.t.ones(4, 30))
    return bool((draws[0] != draws[1]).any()), bool((same[0] == same[1]).all()), bool((dropped == dropped[0]).all())


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "grad": lambda s: s.grad(lambda x: scalar(s, s.w, x))(s.v),
    "grad of a dict": lambda s: s.grad(lambda d: scalar(s, d["w"], d["x"][0]))({"w": s.w, "x": [s.v]}),
    "grad, several argnums": lambda s: s.grad(lambda w, x: scalar(s, w, x), argnums=(0, 1))(s.w, s.v),
    "grad, negative argnum": lambda s: s.grad(lambda w, x: scalar(s, w, x), argnums=-1)(s.w, s.v),
    "grad with aux": lambda s: s.grad(lambda x: (x.sin().sum(), {"a": x * 2}), has_aux=True)(s.v),
    "grad_and_value": lambda s: s.grad_and_value(lambda x: (x.sin().sum(), x * 2), has_aux=True)(s.v),
    "grad of a keyword": lambda s: s.grad(lambda x, k: (x * k).sum())(s.v, k=s.v),
    "grad of a constant": lambda s: s.grad(lambda x: s.t.tensor(1.0))(s.v),
    "grad with an unused argument": lambda s: s.grad(lambda a, b: a.sum(), argnums=(0, 1))(s.v, s.w),
    "grad over grad": lambda s: s.grad(lambda x: s.grad(lambda y: scalar(s, s.w, y))(x).sin().sum())(s.v),
    "third derivative": lambda s: s.grad(s.grad(s.grad(s.t.sin)))(s.t.tensor(0.7)),
    "inner grad of an outer variable": lambda s: s.grad(lambda x: s.grad(lambda y: (x * y**2).sum())(x).sum())(s.v),
    "grad of a module": closed_over,
    "grad and no_grad": inside_no_grad,
    "grad of what requires grad": outer_requires_grad,
    "in-place on an argument": lambda s: s.grad(lambda x: x.mul_(2).sum())(s.v),
    "in-place on a copy": lambda s: s.grad(lambda x: x.clone().mul_(x).sum())(s.v),
    "vjp": lambda s: s.vjp(lambda w, x: w @ x, s.w, s.v)[1](s.v),
    "vjp of a structure": lambda s: s.vjp(lambda x: {"a": x.sin(), "b": [x.cos()]}, s.v)[1]({"a": s.v, "b": [s.v]}),
    "vjp with aux": lambda s: s.vjp(lambda x: (x.sin(), x.cos()), s.v, has_aux=True)[2],
    "vjp under vmap": batched_cotangents,
    "jvp": lambda s: s.jvp(lambda w, x: s.t.tanh(w @ x), (s.w, s.v), (s.w * 2, s.v)),
    "jvp of a structure": lambda s: s.jvp(lambda d: (d["a"] * 2, {"b": s.t.ones(2)}), ({"a": s.v},), ({"a": s.v},)),
    "jvp with aux": lambda s: s.jvp(lambda x: (x.sin(), x), (s.v,), (s.v,), has_aux=True),
    "jvp over jvp": lambda s: s.jvp(lambda x: s.jvp(s.t.sin, (x,), (x,))[1], (s.v,), (s.v,)),
    "jvp over grad": lambda s: s.jvp(s.grad(lambda x: scalar(s, s.w, x)), (s.v,), (s.v,)),
    "grad over jvp": lambda s: s.grad(lambda x: s.jvp(lambda y: scalar(s, s.w, y), (x,), (s.v,))[1])(s.v),
    "vmap over jvp": lambda s: s.vmap(lambda x, t: s.jvp(s.t.sin, (x,), (t,)))(s.x, s.y),
    "jvp over vmap": lambda s: s.jvp(s.vmap(lambda x: s.t.tanh(s.w @ x)), (s.x,), (s.y,)),
    "vmap over jvp of one point": lambda s: s.vmap(lambda t: s.jvp(lambda x: s.w @ x.exp(), (s.v,), (t,)))(s.x),
    "linearize": linear_map,
    "jacrev": lambda s: s.jacrev(lambda x: s.t.tanh(s.w @ x))(s.v),
    "jacrev of several": lambda s: s.jacrev(lambda w, x: (w @ x, x.sum()), argnums=(0, 1))(s.w, s.v),
    "jacrev of a structure": lambda s: s.jacrev(lambda d: {"u": d["k"] ** 2})({"k": s.v}),
    "jacrev in chunks": lambda s: s.jacrev(lambda x: s.t.tanh(s.w @ x), chunk_size=2)(s.v),
    "jacrev with aux": lambda s: s.jacrev(lambda x: (x**2, x), has_aux=True)(s.v),
    "jacfwd": lambda s: s.jacfwd(lambda w, x: (s.t.tanh(w @ x), x.sum()), argnums=(0, 1))(s.w, s.v),
    "jacfwd with aux": lambda s: s.jacfwd(lambda x: (x**2, x), has_aux=True)(s.v),
    "jacrev over jacfwd": lambda s: s.jacrev(s.jacfwd(lambda x: s.t.tanh(s.w @ x)))(s.v),
    "jacfwd over jacrev": lambda s: s.jacfwd(s.jacrev(lambda x: s.t.tanh(s.w @ x)))(s.v),
    "jacrev over jacrev": lambda s: s.jacrev(s.jacrev(lambda x: s.t.tanh(s.w @ x)))(s.v),
    "jacfwd over jacfwd": lambda s: s.jacfwd(s.jacfwd(lambda x: s.t.tanh(s.w @ x)))(s.v),
    "hessian": lambda s: s.hessian(lambda x: scalar(s, s.w, x))(s.v),
    "hessian of several": lambda s: s.hessian(lambda w, x: scalar(s, w, x), argnums=(0, 1))(s.w, s.v),
    "vmap over hessian": lambda s: s.vmap(s.hessian(lambda x: scalar(s, s.w, x)))(s.x),
    "vmap over jacrev": lambda s: s.vmap(s.jacrev(lambda x: s.t.tanh(s.w @ x)))(s.x),
    "vmap over jacfwd": lambda s: s.vmap(s.jacfwd(lambda x: s.t.tanh(s.w @ x)))(s.x),
    "jacrev over vmap": lambda s: s.jacrev(s.vmap(lambda x: s.t.tanh(s.w @ x)))(s.x),
    "control flow on values in jacobians": control_flow_in_jacrev,
    "vmap over grad": lambda s: s.vmap(s.grad(lambda x: scalar(s, s.w, x)))(s.x),
    "vmap over grad of what is shared": lambda s: s.vmap(s.grad(lambda w, x: scalar(s, w, x)), (None, 0))(s.w, s.x),
    "grad over vmap": lambda s: s.grad(lambda w: s.vmap(lambda x: scalar(s, w, x))(s.x).sum())(s.w),
    "grad within vmap within grad": lambda s: s.grad(
        lambda w: s.vmap(lambda x: s.grad(lambda y: scalar(s, w, y))(x).sum())(s.x).sum()
    )(s.w),
    "vmap within vmap": lambda s: s.vmap(s.vmap(lambda x, y: x * y.sum(), (0, None)), (0, 0))(s.cube, s.cube),
    "vmap of different levels": lambda s: s.vmap(lambda x: s.vmap(lambda y: s.t.outer(x, y).sum(0))(s.y))(s.x),
    "grad in two levels of vmap": lambda s: s.vmap(
        lambda x: s.vmap(lambda y: s.grad(lambda w: scalar(s, w, x * y))(s.w))(s.y)
    )(s.x),
    "per-sample gradients": per_sample,
    "ensemble": ensemble,
    "in_dims": lambda s: s.vmap(lambda a, b: a @ b, in_dims=(1, None))(s.x, s.t.ones(4, dtype=s.t.float64)),
    "negative in_dims": lambda s: s.vmap(lambda a: a * 2, in_dims=-1)(s.x),
    "nested in_dims": lambda s: s.vmap(lambda d, k: d["a"] + d["b"] * k, ({"a": 0, "b": None}, None))(
        {"a": s.x, "b": s.v}, 3.0
    ),
    "out_dims": lambda s: s.vmap(lambda a: (a, {"s": a.sum()}), out_dims=(1, 0))(s.x),
    "negative out_dims": lambda s: s.vmap(lambda a: s.t.outer(a, a), out_dims=-1)(s.x),
    "out_dims None": lambda s: s.vmap(lambda a: (a, s.v), out_dims=(0, None))(s.x),
    "unbatched output": lambda s: s.vmap(lambda a: s.v)(s.x),
    "keyword arguments": lambda s: s.vmap(lambda a, b: a + b)(s.x, b=s.y),
    "chunks": lambda s: s.vmap(lambda a: (a.sum(), [a * 2]), chunk_size=3)(s.x),
    "chunks of out_dims": lambda s: s.vmap(lambda a: a * 2, out_dims=1, chunk_size=3)(s.x),
    "in-place within vmap": in_place,
    "indexing by batched positions": lambda s: s.vmap(lambda a, i: (a[i], a[i : i + 1] if False else a[..., i]))(
        s.x, s.i
    ),
    "indexing a shared tensor": lambda s: s.vmap(lambda i: s.m[i])(s.i),
    "indexing two dimensions": lambda s: s.vmap(lambda a, i: a[:, i], (0, None))(s.cube, s.i[:2]),
    "indexing apart": lambda s: s.vmap(lambda a: a[s.i[:2], None, s.i[1:3]])(s.cube),
    "embedding": lambda s: s.vmap(lambda i: s.F.embedding(i, s.m))(s.i.view(2, 2)),
    "where and masks": lambda s: s.vmap(lambda a, m: s.t.where(m, a, -a).masked_fill(m, 0.5))(s.x, s.mask),
    "convolution of samples": lambda s: s.vmap(lambda a, k: s.F.conv2d(a, k, padding=1))(
        s.image, s.image[:, :, :3, :3].unsqueeze(1)
    ),
    "batch norm": lambda s: s.vmap(lambda a: s.F.batch_norm(a, None, None, training=True))(s.t.stack([s.image] * 2)),
    "sorting": lambda s: s.vmap(lambda a: (a.sort(), a.topk(2), a.argmax()))(s.x),
    "einsum": lambda s: s.vmap(lambda a: s.t.einsum("i,ij->j", a, s.w))(s.x),
    "promotion of samples without dimensions": lambda s: s.vmap(lambda a, b: a * b)(s.t.ones(3), s.i[:3].double()),
    "promotion of a single number": lambda s: s.vmap(lambda a, b: a * b)(s.t.ones(3, 2), s.i[:3].double()),
    "randomness": different,
    "random by default": lambda s: s.vmap(lambda x: x + s.t.rand(1))(s.x),
    "random of a batched tensor, same": lambda s: s.vmap(s.t.bernoulli, randomness="same")(s.x.sigmoid()),
    "Function with vmap": lambda s: custom(s, False),
    "Function with a generated rule": lambda s: custom(s, True),
    "functionalize": lambda s: s.func.functionalize(lambda x: x.clone().add_(1))(s.v),
    "batched grads": lambda s: s.t.autograd.grad(
        (lambda x: (setattr(s, "leaf", x), s.t.tanh(s.w @ x))[1])(s.v.clone().requires_grad_()),
        s.leaf,
        s.t.eye(3, dtype=s.t.float64),
        is_grads_batched=True,
    ),
    "functional.jacobian": lambda s: s.t.autograd.functional.jacobian(
        lambda w, x: (w @ x, x.sum()), (s.w, s.v), vectorize=True
    ),
    "functional.jacobian, forward": lambda s: [  # PyTorch gives lists here, against its own page
        tuple(row)
        for row in s.t.autograd.functional.jacobian(
            lambda w, x: (w @ x, x.sum()), (s.w, s.v), vectorize=True, strategy="forward-mode"
        )
    ],
    "functional.hessian": lambda s: s.t.autograd.functional.hessian(lambda x: scalar(s, s.w, x), s.v, vectorize=True),
    "functional.hessian, forward": lambda s: s.t.autograd.functional.hessian(
        lambda x: scalar(s, s.w, x), s.v, vectorize=True, outer_jacobian_strategy="forward-mode"
    ).detach(),  # PyTorch's requires grad, though create_graph is off
}

REFUSALS: dict[str, Callable[[Any], Any]] = {
    "no inputs": lambda s: s.vmap(lambda: s.v)(),
    "in_dims of a wrong type": lambda s: s.vmap(lambda a: a, in_dims="s")(s.x),
    "in_dims None": lambda s: s.vmap(lambda a: a, in_dims=None)(s.x),
    "in_dims of a wrong structure": lambda s: s.vmap(lambda a: a, in_dims=(0, 0))(s.x),
    "in_dims that is no int": lambda s: s.vmap(lambda a: a, in_dims=(0.5,))(s.x),
    "in_dims of a number": lambda s: s.vmap(lambda a, b: a, in_dims=(0, 0))(s.x, 3),
    "in_dims out of range": lambda s: s.vmap(lambda a: a, in_dims=2)(s.x),
    "sizes that differ": lambda s: s.vmap(lambda a, b: a)(s.x, s.v),
    "a result that is no tensor": lambda s: s.vmap(lambda a: 3)(s.x),
    "out_dims of a wrong structure": lambda s: s.vmap(lambda a: a, out_dims=(0, 0))(s.x),
    "out_dims out of range": lambda s: s.vmap(lambda a: a, out_dims=3)(s.x),
    "out_dims that is no int": lambda s: s.vmap(lambda a: a, out_dims="s")(s.x),
    "out_dims None of a batched result": lambda s: s.vmap(lambda a: a, out_dims=None)(s.x),
    "randomness unknown": lambda s: s.vmap(lambda a: a, randomness="x")(s.x),
    "chunk_size 0": lambda s: s.vmap(lambda a: a, chunk_size=0)(s.x),
    "item": lambda s: s.vmap(lambda a: a.sum().item())(s.x),
    "bool": lambda s: s.vmap(lambda a: a if a.sum() > 0 else -a)(s.x),
    "tolist": lambda s: s.vmap(lambda a: a.tolist())(s.x),
    "numpy": lambda s: s.vmap(lambda a: a.numpy())(s.x),
    "nonzero": lambda s: s.vmap(lambda a: a.nonzero())(s.x),
    "a batched mask as index": lambda s: s.vmap(lambda a: a[a > 0])(s.x),
    "unique": lambda s: s.vmap(lambda a: a.unique())(s.x),
    "equal": lambda s: s.vmap(lambda a: s.t.equal(a, a))(s.x),
    "requires_grad_": lambda s: s.vmap(lambda a: a.requires_grad_())(s.x),
    "requires_grad_ in grad": lambda s: s.vmap(s.grad(lambda a: (a.requires_grad_() * 2).sum()))(s.x),
    "backward": lambda s: s.vmap(lambda a: a.sum().backward())(s.x),
    "backward in grad": lambda s: s.grad(lambda a: (a.sum().backward(), a.sum())[1])(s.v),
    "in-place on a shared tensor": lambda s: s.vmap(lambda a: s.v.add_(a))(s.x),
    "copy_ into a shared tensor": lambda s: s.vmap(lambda a: s.v.copy_(a))(s.x),
    "out=": lambda s: s.vmap(lambda a: s.t.add(a, a, out=s.t.empty(3, dtype=s.t.float64)))(s.x),
    "grad of a vector": lambda s: s.grad(lambda a: a)(s.v),
    "grad of a number": lambda s: s.grad(lambda a: 3.0)(s.v),
    "grad of integers": lambda s: s.grad(lambda a: a.sum())(s.i),
    "grad of a number's argument": lambda s: s.grad(lambda a, b: b.sum())(3, s.v),
    "argnums out of range": lambda s: s.grad(lambda a: a.sum(), argnums=1)(s.v),
    "argnums repeated": lambda s: s.grad(lambda a, b: a.sum(), argnums=(0, 0))(s.v, s.v),
    "argnums of a wrong type": lambda s: s.grad(lambda a: a.sum(), argnums="s")(s.v),
    "no argnums": lambda s: s.grad(lambda a: a.sum(), argnums=())(s.v),
    "aux missing": lambda s: s.grad(lambda a: a.sum(), has_aux=True)(s.v),
    "aux that is no tensor": lambda s: s.grad(lambda a: (a.sum(), 3), has_aux=True)(s.v),
    "cotangent of a wrong shape": lambda s: s.vjp(lambda a: a * 2, s.v)[1](s.b),
    "cotangent of a wrong structure": lambda s: s.vjp(lambda a: (a, a), s.v)[1](s.v),
    "vjp of a number": lambda s: s.vjp(lambda a: 3, s.v),
    "primals that are no tuple": lambda s: s.jvp(lambda a: a, s.v, s.v),
    "tangent of a wrong shape": lambda s: s.jvp(lambda a: a, (s.v,), (s.b,)),
    "tangents of a wrong structure": lambda s: s.jvp(lambda a: a, (s.v,), (s.v, s.v)),
    "no primals": lambda s: s.jvp(lambda: s.v, (), ()),
    "tangent of integers": lambda s: s.jvp(lambda a: a, (s.i,), (s.i,)),
    "jvp of a number": lambda s: s.jvp(lambda a: 3, (s.v,), (s.v,)),
    "strict": lambda s: s.jvp(lambda a: s.t.ones(2), (s.v,), (s.v,), strict=True),
    "jacrev in chunks of 0": lambda s: s.jacrev(lambda a: a, chunk_size=0)(s.v),
    "jacrev of a number": lambda s: s.jacrev(lambda a: 3)(s.v),
    "jacfwd that draws": lambda s: s.jacfwd(lambda a: a * s.t.rand(3))(s.v),
    "linearize: tangent of a wrong shape": lambda s: s.linearize(lambda a: a, s.v)[1](s.b),
    "linearize: too many tangents": lambda s: s.linearize(lambda a: a, s.v)[1](s.v, s.v),
    "functionalize: remove unknown": lambda s: s.func.functionalize(lambda a: a, remove="x"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    compare(outcome(rushlight, PROGRAMS[name]), outcome(torch, PROGRAMS[name]))


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals(name: str) -> None:
    theirs = outcome(torch, REFUSALS[name])
    assert isinstance(theirs, type), f"the oracle gives {theirs}"
    compare(outcome(rushlight, REFUSALS[name]), theirs)


# ---- axes by name, and the smaller tools

REARRANGED = [
    ("a b c -> c a b", {}),
    ("a b c -> (a b) c", {}),
    ("a (b1 b2) c -> b1 b2 (a c)", {"b1": 3}),
    ("a b (h w) -> a h w b", {"h": 2}),
    ("... c -> c ...", {}),
    ("a ... -> (a ...)", {}),
    ("a b c -> a 1 b c 1", {}),
    ("a  b c->a b c", {}),
]


@pytest.mark.parametrize(("pattern", "lengths"), REARRANGED)
def test_rearrange(pattern, lengths):
    x = rushlight.arange(24.0).view(2, 3, 4)
    expected = torch.func.rearrange(torch.arange(24.0).view(2, 3, 4), pattern, **lengths)
    assert np.array_equal(rushlight.func.rearrange(x, pattern, **lengths).numpy(), expected.numpy())


@pytest.mark.parametrize(
    ("pattern", "lengths"),
    [
        ("a b", {}),
        ("a -> a -> a", {}),
        ("a a -> a a", {}),
        ("a b -> a c", {}),
        ("a b -> a", {}),
        ("a b c -> a b c", {}),
        ("a b c ... -> a b c ...", {}),
        ("a b -> a b", {"c": 4}),
        ("((a b)) c -> a b c", {"a": 2}),
        ("(a b -> a b", {}),
        ("a! b -> a b", {}),
        ("a -> a ...", {}),
        ("2 3 -> 3 2", {}),
    ],
)
def test_patterns_that_rearrange_refuses(pattern, lengths):
    for t in (rushlight, torch):
        with pytest.raises(ValueError):
            t.func.rearrange(t.ones(2, 3), pattern, **lengths)


def test_rearrange_needs_sizes_that_fit():
    for pattern, lengths in (("(a b) -> a b", {}), ("(a b) -> a b", {"a": 4}), ("a -> a", {"a": 4})):
        with pytest.raises(ValueError, match="cannot be told|is not made of"):
            rushlight.func.rearrange(rushlight.ones(6), pattern, **lengths)


def test_replaced_batch_norm_keeps_no_statistics():
    for t in (rushlight, torch):
        model = t.nn.Sequential(t.nn.BatchNorm1d(2), t.nn.Sequential(t.nn.BatchNorm2d(3)))
        assert t.func.replace_all_batch_norm_modules_(model) is model
        for layer in (model[0], model[1][0]):
            assert layer.running_mean is layer.running_var is layer.num_batches_tracked is None
            assert not layer.track_running_stats
        assert t.func.vmap(model[:1])(t.ones(4, 3, 2)).shape == (4, 3, 2)


def test_unwrapped_tensors_show_all_samples():
    for t in (rushlight, torch):
        shapes = []

        def outer(y, t=t, shapes=shapes):
            return t.func.vmap(lambda x: (shapes.append(t.func.debug_unwrap(x).shape), x)[1])(y)

        t.func.vmap(outer)(t.ones(2, 3))
        assert shapes == [(2, 3)]


def test_states_that_differ_in_what_they_learn_are_not_stacked():
    for t in (rushlight, torch):
        models = [t.nn.Linear(1, 1), t.nn.Linear(1, 1).requires_grad_(False)]
        with pytest.raises(RuntimeError, match="the same .requires_grad"):
            t.func.stack_module_state(models)
        frozen, _ = t.func.stack_module_state(models[1:] * 2)
        assert not frozen["weight"].requires_grad


def test_tangents_of_linearize_have_the_dtypes_of_the_primals():
    for t in (rushlight, torch):
        _, push = t.func.linearize(lambda x: x.sin(), t.ones(2))
        with pytest.raises(RuntimeError, match="doesn't match the dtype"):
            push(t.ones(2, dtype=t.float64))


# ---- Functions inside of several transforms


def cube(t: Any, calls: list[str]) -> Any:
    """x ** 3 with a generated batching rule and a derivative for both modes."""

    class Cube(t.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x**3, (x > 0).long()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)
            ctx.mark_non_differentiable(output[1])

        @staticmethod
        def backward(ctx, gradient, _):
            calls.append("backward")
            (x,) = ctx.saved_tensors
            return gradient * 3 * x**2

        @staticmethod
        def jvp(ctx, tangent):
            calls.append("jvp")
            (x,) = ctx.saved_tensors
            return tangent * 3 * x**2, None

    return lambda x: Cube.apply(x)[0]


TRANSFORMED = {
    "vmap of grad": lambda t, f, x: t.func.vmap(t.func.grad(f))(x),
    "jacrev": lambda t, f, x: t.func.jacrev(f)(x),
    "jacfwd": lambda t, f, x: t.func.jacfwd(f)(x),
    "hessian": lambda t, f, x: t.func.hessian(lambda x: f(x).sum())(x),
    "vmap of vmap": lambda t, f, x: t.func.vmap(t.func.vmap(f))(t.stack([x, 2 * x])),
    "vmap of jvp": lambda t, f, x: t.func.vmap(lambda x: t.func.jvp(f, (x,), (t.ones(()),))[1])(x),
    "jvp of vmap": lambda t, f, x: t.func.jvp(t.func.vmap(f), (x,), (x.cos(),))[1],
    "jacfwd of jacrev": lambda t, f, x: t.func.jacfwd(t.func.jacrev(f))(x),
    "jacrev of jacrev": lambda t, f, x: t.func.jacrev(t.func.jacrev(f))(x),
    "grad of vmap": lambda t, f, x: t.func.grad(lambda x: t.func.vmap(f)(x).sum())(x),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_a_function_with_a_generated_rule_inside_of(name):
    results, calls = [], [[], []]
    for t, made in zip((rushlight, torch), calls, strict=True):
        result = TRANSFORMED[name](t, cube(t, made), t.tensor([1.0, -2.0, 3.0]))
        results.append(result.detach().numpy())
    np.testing.assert_allclose(*results, rtol=1e-6)
    assert set(calls[0]) == set(calls[1])


def test_jacrev_needs_no_batching_rule_of_a_function():
    for t in (rushlight, torch):

        class Scaled(t.autograd.Function):
            @staticmethod
            def forward(x):
                return x.exp() * x

            @staticmethod
            def setup_context(ctx, inputs, output):
                ctx.save_for_backward(*inputs)

            @staticmethod
            def backward(ctx, gradient):
                (x,) = ctx.saved_tensors
                return gradient * (x.exp() + x.exp() * x)

        x = t.tensor([1.0, 2.0])
        jacobian = t.func.jacrev(Scaled.apply)(x)
        np.testing.assert_allclose(jacobian.numpy(), np.diag((x.exp() * (1 + x)).numpy()), rtol=1e-6)
        with pytest.raises(RuntimeError, match="does not have vmap support"):
            t.func.vmap(Scaled.apply)(x)


def test_functional_is_refused_inside_of_a_transform_that_would_take_its_result_for_a_constant():
    for t in (rushlight, torch):
        with pytest.raises(RuntimeError, match="inside of a function being transformed"):
            t.func.grad(lambda x, t=t: t.autograd.functional.jacobian(lambda y: y**2 * x, t.ones(2)).sum())(
                t.tensor(2.0)
            )


def test_what_is_returned_beside_a_vjp_are_tensors():
    for t in (rushlight, torch):
        with pytest.raises(RuntimeError, match="Expected tensors, got unsupported type"):
            t.func.vjp(lambda x: (x, 3), t.ones(2), has_aux=True)


def test_a_checkpoint_carries_tangents():
    for t in (rushlight, torch):
        forward_ad = t.autograd.forward_ad
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(t.ones(2), t.ones(2))
            out = t.utils.checkpoint.checkpoint(lambda x: x.sin().exp(), dual, use_reentrant=False)
            tangent = forward_ad.unpack_dual(out).tangent
        np.testing.assert_allclose(tangent.numpy(), np.cos(np.ones(2)) * np.exp(np.sin(np.ones(2))), rtol=1e-6)
