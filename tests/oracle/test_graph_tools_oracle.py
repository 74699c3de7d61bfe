"""Checkpoints, hooks on the graph, and the profiler do what PyTorch's do: one program, run by both packages."""

import functools
import importlib
import warnings

import pytest

import rushlight

torch = pytest.importorskip("torch", reason="the oracle is installed by .ci/run only")

pytestmark = pytest.mark.oracle


def outcome(program, package):
    """What the program returns, as plain data, and its warnings; or the class of its exception and its first words."""
    checkpoint = importlib.import_module(f"{package.__name__}.utils.checkpoint")
    package.manual_seed(0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = plain(program(package, checkpoint))
        except Exception as error:
            result = type(error).__name__, str(error).split("\n")[0][:35]
    return result, sorted({str(w.message)[:60] for w in caught})


def plain(value):
    if isinstance(value, (torch.Tensor, rushlight.Tensor)):
        return [round(v, 5) for v in value.detach().double().flatten().tolist()]
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value


PROGRAMS = []


def program(function):
    PROGRAMS.append(function)
    return function


def leaf(t, *values):
    return t.tensor(list(values), dtype=t.float64, requires_grad=True)


class Runs:
    def __init__(self, function):
        self.function, self.count = function, 0

    def __call__(self, *args, **kwargs):
        self.count += 1
        return self.function(*args, **kwargs)


# --- checkpoints ----------------------------------------------------------------------------------------------------


@program
def counts_of_runs(t, c):
    found = []
    for reentrant in (True, False):
        for early_stop in (True, False):
            if reentrant and not early_stop:
                continue
            tail, body = Runs(lambda x: x + 1), Runs(lambda x: x.sin().exp())
            x = leaf(t, 0.5, 1.5)
            with c.set_checkpoint_early_stop(early_stop):
                y = c.checkpoint(lambda x, tail=tail, body=body: tail(body(x)), x, use_reentrant=reentrant)
            y.sum().backward(retain_graph=True)
            y.sum().backward()
            found.append([body.count, tail.count, x.grad])
    return found


@program
def nested(t, c):
    inner, outer = Runs(lambda x: x.sin().exp()), None
    outer = Runs(lambda x: c.checkpoint(inner, x.cos(), use_reentrant=False).tanh())
    x = leaf(t, 0.5, 1.5)
    y = c.checkpoint(outer, x, use_reentrant=False)
    y.sum().backward()
    return x.grad


@program
def dropout(t, c):
    found = []
    for reentrant in (True, False):
        x = t.ones(200, requires_grad=True)
        y = c.checkpoint(lambda x: t.nn.functional.dropout(x, 0.3) * x, x, use_reentrant=reentrant)
        y.sum().backward()
        found += [y, x.grad, t.rand(3)]
    return found


@program
def sequential(t, c):
    found = []
    for segments in (1, 2, 3):
        parts = [Runs(f) for f in (t.sin, t.exp, t.cos, t.tanh, t.sigmoid)]
        x = leaf(t, 0.5, 1.5)
        c.checkpoint_sequential(parts, segments, x, use_reentrant=True).sum().backward()
        found += [x.grad, [part.count for part in parts]]
    return found


@program
def fewer(t, c):
    runs = []

    def function(x):
        runs.append(1)
        return x.sin().cos() if len(runs) == 1 else x.sin()

    c.checkpoint(function, leaf(t, 1.0), use_reentrant=False).sum().backward()


@program
def more(t, c):
    runs = []

    def function(x):
        runs.append(1)
        return x.sin() if len(runs) == 1 else x.sin().cos()

    c.checkpoint(function, leaf(t, 1.0), use_reentrant=False, early_stop=False).sum().backward()


@program
def another_shape(t, c):
    runs = []

    def function(x):
        runs.append(1)
        return (x if len(runs) == 1 else x[:1]).sin().cos()

    c.checkpoint(function, leaf(t, 1.0, 2.0), use_reentrant=False).sum().backward()


@program
def in_place_on_an_input(t, c):
    x = leaf(t, 1.0)
    y = x * 1
    out = c.checkpoint(t.sin, y, use_reentrant=False)
    y.add_(1)
    out.sum().backward()


@program
def kept_results(t, c):
    x, w = t.randn(4, 3, requires_grad=True), t.randn(3, 3, requires_grad=True)
    seen = []

    def policy(ctx, op, *args, **kwargs):
        name = getattr(op, "__name__", str(op)).split(".")[0]
        seen.append((name, ctx.is_recompute, list(ctx.op_output.shape)))
        return c.CheckpointPolicy.MUST_SAVE if name == "mm" else c.CheckpointPolicy.PREFER_RECOMPUTE

    contexts = functools.partial(c.create_selective_checkpoint_contexts, policy)
    out = c.checkpoint(lambda x: (x @ w).sin().exp() @ w, x, use_reentrant=False, context_fn=contexts)
    out.sum().backward(retain_graph=True)
    found = [seen, x.grad, w.grad]
    with pytest.raises(RuntimeError, match="Trying to backward an extra time"):
        out.sum().backward()
    return found


@program
def kept_result_changed(t, c):
    x, w = t.randn(4, 3, requires_grad=True), t.randn(3, 3, requires_grad=True)

    def changes(x):
        h = x @ w
        s = h.sin()
        h.add_(1)
        return s.cos()

    contexts = functools.partial(c.create_selective_checkpoint_contexts, [t.ops.aten.mm.default])
    c.checkpoint(changes, x, use_reentrant=False, context_fn=contexts).sum().backward()


for _wrong in (
    {"use_reentrant": False, "determinism_check": "bad"},
    {"use_reentrant": True, "debug": True},
    {"use_reentrant": True, "extra": 1},
    {"use_reentrant": False, "extra": 1},
    {"use_reentrant": False, "debug": True, "context_fn": lambda: (None, None)},
    {},
):

    @program
    def wrong_arguments(t, c, wrong=_wrong):
        return c.checkpoint(lambda x: x.sin(), leaf(t, 1.0), **wrong)


@program
def grad_of_the_reentrant(t, c):
    return t.autograd.grad(c.checkpoint(t.sin, (x := leaf(t, 1.0)), use_reentrant=True).sum(), x)


@program
def no_input_requires_grad(t, c):
    return c.checkpoint(t.sin, t.ones(2), use_reentrant=True).requires_grad


@program
def policies_that_are_none(t, c):
    c.create_selective_checkpoint_contexts(3)


@program
def operators_that_are_none(t, c):
    c.create_selective_checkpoint_contexts(["mm"])


# --- the graph ------------------------------------------------------------------------------------------------------


@program
def multi_grad_hooks(t, c):
    seen = []
    a, b, d = leaf(t, 1.0), leaf(t, 2.0), leaf(t, 3.0)
    x, y = a * b, b * d
    handles = [
        t.autograd.graph.register_multi_grad_hook((a, x, y, d), lambda g: seen.append(["all", *g])),
        t.autograd.graph.register_multi_grad_hook((a, d), lambda g: seen.append(["any", g]), mode="any"),
    ]
    (x * 2).sum().backward(retain_graph=True)
    (x + y).sum().backward(retain_graph=True)
    for handle in handles:
        handle.remove()
    (x + y).sum().backward()
    return [[part if isinstance(part, str) or part is None else plain(part) for part in entry] for entry in seen]


for _tensors, _options in (
    (lambda t: (leaf(t, 1.0),), {"mode": "some"}),
    (lambda t: (t.ones(1),), {}),
    (lambda t: (t.ones(1),), {"mode": "any"}),
):

    @program
    def wrong_multi_grad_hooks(t, c, tensors=_tensors, options=_options):
        t.autograd.graph.register_multi_grad_hook(tensors(t), print, **options)


@program
def mutation_of_saved_tensors(t, c):
    with t.autograd.graph.allow_mutation_on_saved_tensors():
        a = leaf(t, 2.0, 3.0)
        b = a.clone()
        out = (b**2).sin().sum()
        b.mul_(100)
        out.backward()
        return a.grad


@program
def mutation_and_backward_outside(t, c):
    with t.autograd.graph.allow_mutation_on_saved_tensors():
        a = leaf(t, 2.0, 3.0)
        out = (a.clone() ** 2).sum()
    out.backward()


@program
def nested_mutation(t, c):
    with t.autograd.graph.allow_mutation_on_saved_tensors(), t.autograd.graph.allow_mutation_on_saved_tensors():
        return 1


@program
def gradient_edges(t, c):
    a = leaf(t, 2.0, 3.0)
    b = a.exp()
    edge = t.autograd.graph.get_gradient_edge(b)
    found = [edge.output_nr, type(edge.node).__name__]
    found += t.autograd.grad((b * 3).sum(), edge)
    found += t.autograd.grad(edge, a, grad_outputs=t.ones(2, dtype=t.float64))
    found.append(t.autograd.graph.get_gradient_edge(a).node.name().rpartition("::")[2])
    return found


@program
def edge_of_what_needs_none(t, c):
    t.autograd.graph.get_gradient_edge(t.ones(1))


@program
def increased_version(t, c):
    a = leaf(t, 2.0)
    b = a.exp()
    t.autograd.graph.increment_version([b])
    found = [b._version]
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        b.sum().backward()
    return found


@program
def hooks_of_saved_tensors(t, c):
    events = []

    def pack(x):
        events.append(["pack", list(x.shape)])
        return x.clone()

    def unpack(x):
        events.append(["unpack", list(x.shape)])
        return x

    a = leaf(t, 2.0, 3.0)
    with t.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = (a * a).exp()
        with t.autograd.graph.save_on_cpu():
            z = y.sin()
    z.sum().backward()
    return [events, a.grad]


@program
def disabled_hooks(t, c):
    with t.autograd.graph.disable_saved_tensors_hooks("none here"), t.autograd.graph.save_on_cpu():
        return 1


@program
def disabled_while_in_use(t, c):
    with t.autograd.graph.save_on_cpu(), t.autograd.graph.disable_saved_tensors_hooks("none here"):
        return 1


# --- anomaly mode and the profiler ----------------------------------------------------------------------------------


@program
def anomaly(t, c):
    x = leaf(t, -1.0)
    with t.autograd.set_detect_anomaly(True):
        t.sqrt(x).sum().backward()


@program
def schedules(t, c):
    schedule = t.profiler.schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1)
    later = t.profiler.schedule(wait=2, warmup=0, active=1, skip_first=2, skip_first_wait=1)
    return [[schedule(i).name for i in range(12)], [later(i).name for i in range(12)]]


@program
def steps(t, c):
    seen = []

    def ready(prof):
        seen.append(sorted(e.name for e in prof.events() if e.name.startswith(("ProfilerStep", "mine"))))

    with t.profiler.profile(
        activities=[t.profiler.ProfilerActivity.CPU],
        schedule=t.profiler.schedule(wait=1, warmup=1, active=2),
        on_trace_ready=ready,
    ) as prof:
        for _ in range(9):
            with t.profiler.record_function("mine"):
                t.ones(2)
            prof.step()
    return seen


@program
def wrong_schedule(t, c):
    t.profiler.schedule(wait=1, warmup=-1, active=1)


@program
def sums(t, c):
    x, w = t.randn(4, 3, requires_grad=True), t.randn(3, 3, requires_grad=True)
    with t.autograd.profiler.profile(record_shapes=True) as prof:
        with t.autograd.profiler.record_function("mine"):
            y = (x @ w).exp().exp().sum()
        y.backward()
    names = ("mine", "aten::matmul", "aten::exp", "aten::sum", "MmBackward0", "ExpBackward0", "SumBackward0")
    found = {a.key: a.count for a in prof.key_averages() if a.key in names}
    shapes = {str(a.input_shapes) for a in prof.key_averages(group_by_input_shape=True) if a.key == "aten::matmul"}
    header = next(line for line in prof.key_averages().table().splitlines() if "Name" in line)
    titles = [title.strip() for title in header.split("  ") if title.strip()]
    return [sorted(found.items()), sorted(shapes), titles]


@pytest.mark.parametrize("which", range(len(PROGRAMS)), ids=[f.__name__ for f in PROGRAMS])
def test_both_do_the_same(which):
    assert outcome(PROGRAMS[which], rushlight) == outcome(PROGRAMS[which], torch)
