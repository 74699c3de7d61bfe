"""The same call in both packages, side by side: results, gradients, second derivatives, warnings, exceptions."""

import importlib
import warnings

import numpy as np
import pytest

import rushlight

torch = pytest.importorskip("torch", reason="the oracle is installed by .ci/run only")

TOLERANCE = {"float64": (1e-7, 1e-9), "float32": (1e-4, 1e-5), "float16": (1e-2, 1e-3), "bfloat16": (5e-2, 1e-2)}
TOLERANCE |= {"complex64": TOLERANCE["float32"], "complex128": TOLERANCE["float64"]}


class Twins:
    """Carries PyTorch's tensors over, each once, so that equal objects stay equal."""

    def __init__(self):
        self.known = {}

    def __call__(self, value):
        if isinstance(value, torch.Tensor):
            if id(value) not in self.known:
                # the original is kept too: its id must not be given to another
                self.known[id(value)] = value, self._tensor(value)
            return self.known[id(value)][1]
        if isinstance(value, torch.nn.utils.rnn.PackedSequence):
            return rushlight.nn.utils.rnn.PackedSequence(*(self(part) for part in value))
        if isinstance(value, torch.dtype):
            return getattr(rushlight, str(value).removeprefix("torch."))
        if isinstance(value, (list, tuple)):
            return type(value)(self(part) for part in value)
        if isinstance(value, dict):
            return {key: self(part) for key, part in value.items()}
        return value

    @staticmethod
    def _tensor(value):
        copy = rushlight.from_numpy(np.array(array(value)))
        name = str(value.dtype).removeprefix("torch.")
        if str(copy.dtype).rpartition(".")[2] != name:
            copy = copy.to(getattr(rushlight, name))
        return copy.requires_grad_() if value.requires_grad else copy


def array(tensor):
    tensor = tensor.detach().clone()  # PyTorch's tensors of only zeros become plain ones
    return tensor.float().numpy() if str(tensor.dtype).endswith("bfloat16") else tensor.numpy()


def tensors(result):
    """The tensors in a nested result, in order."""
    if isinstance(result, (list, tuple)):
        return [t for part in result for t in tensors(part)]
    return [] if result is None else [result]


def assert_same(ours, theirs, what=""):
    """Two tensors of equal shape and dtype, with close numbers."""
    name = str(theirs.dtype).rpartition(".")[2]
    assert tuple(ours.shape) == tuple(theirs.shape), what
    assert str(ours.dtype).rpartition(".")[2] == name, what
    rtol, atol = TOLERANCE.get(name, (0, 0))
    a, b = array(ours), array(theirs)
    scale = max(1.0, float(np.abs(b[np.isfinite(b)]).max(initial=0))) if b.dtype.kind == "f" else 1.0
    np.testing.assert_allclose(a, b, rtol=rtol, atol=atol * scale, equal_nan=True, err_msg=what)


def find(package, path):
    found = package
    for part in path.split("."):
        found = getattr(found, part)
    return found


def same(path, *args, second=False, seed=0, **kwargs):
    """Calls ``torch.path`` and ``rushlight.path``; results and gradients must agree, with `second` also second ones.

    `path` may be a function of the package instead.
    """
    twins = Twins()
    our_args, our_kwargs = twins(args), twins(kwargs)
    call = path if callable(path) else (lambda package, *a, **k: find(package, path)(*a, **k))
    torch.manual_seed(seed)
    theirs = call(torch, *args, **kwargs)
    rushlight.manual_seed(seed)
    ours = call(rushlight, *our_args, **our_kwargs)
    leaves = [
        t for t in tensors([list(args), list(kwargs.values())]) if isinstance(t, torch.Tensor) and t.requires_grad
    ]
    same_derivatives(tensors(ours), tensors(theirs), [twins(t) for t in leaves], leaves, second)


def same_derivatives(ours, theirs, our_leaves, leaves, second=False):
    """Results agree, and so do the gradients of random combinations of them."""
    assert len(ours) == len(theirs)
    for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        assert_same(a, b, f"result {i}")
    picked = [i for i, t in enumerate(theirs) if t.requires_grad]
    if not picked or not leaves:
        return
    generator = torch.Generator().manual_seed(1)
    cotangents = [torch.randn(theirs[i].shape, generator=generator, dtype=theirs[i].dtype) for i in picked]
    twins = Twins()
    expected = torch.autograd.grad(
        [theirs[i] for i in picked], leaves, cotangents, allow_unused=True, create_graph=second
    )
    found = rushlight.autograd.grad(
        [ours[i] for i in picked], our_leaves, [twins(c) for c in cotangents], allow_unused=True, create_graph=second
    )
    for i, (a, b) in enumerate(zip(found, expected, strict=True)):
        if a is not None and b is not None:
            assert_same(a, b, f"gradient {i}")
        elif a is not None or b is not None:  # the other one knows that it is zero
            assert not np.any(array(b if a is None else a)), f"gradient {i}"
    if second:
        both = zip(found, expected, strict=True)
        kept = [i for i, pair in enumerate(both) if all(t is not None and t.requires_grad for t in pair)]
        same_derivatives([found[i] for i in kept], [expected[i] for i in kept], our_leaves, leaves)


def same_module(name, args, kwargs, inputs, training=True, second=False, seed=0, **call):
    """A module of both packages: printed form, initial values, state, results, gradients, and buffers afterwards."""
    torch.manual_seed(seed)
    theirs = getattr(torch.nn, name)(*args, **kwargs).train(training)
    twins = Twins()
    rushlight.manual_seed(seed)
    ours = getattr(rushlight.nn, name)(*twins(list(args)), **twins(kwargs)).train(training)
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    for key, value in theirs.state_dict().items():
        assert_same(ours.state_dict()[key], value, key)
    torch.manual_seed(seed)
    expected = tensors(unpacked(theirs(*inputs, **call)))
    rushlight.manual_seed(seed)
    found = tensors(unpacked(ours(*twins(list(inputs)), **twins(call))))
    buffers = dict(ours.named_buffers())
    for key, value in theirs.named_buffers():
        assert_same(buffers[key], value, f"{key} afterwards")
    leaves = [t for t in tensors(list(inputs)) if isinstance(t, torch.Tensor) and t.requires_grad]
    names = [n for n, _ in theirs.named_parameters()]
    assert [n for n, _ in ours.named_parameters()] == names
    parameters = dict(ours.named_parameters())
    same_derivatives(
        found,
        expected,
        [twins(t) for t in leaves] + [parameters[n] for n in names],
        leaves + [p for _, p in theirs.named_parameters()],
        second,
    )


def unpacked(result):
    """A result with packed sequences as plain tuples, without what is None."""
    return result


def same_error(path, *args, phrase="", **kwargs):
    """Both packages refuse the call with the same class of exception; ours also says `phrase`."""
    call = path if callable(path) else (lambda package, *a, **k: find(package, path)(*a, **k))
    with pytest.raises(Exception) as theirs:
        call(torch, *args, **kwargs)
    twins = Twins()
    with pytest.raises(Exception) as ours:
        call(rushlight, *twins(list(args)), **twins(kwargs))
    assert ours.type is theirs.type, (
        f"{ours.type.__name__}: {ours.value}, expected {theirs.type.__name__}: {theirs.value}"
    )
    assert phrase in str(ours.value)
    assert phrase in str(theirs.value)


def same_warning(path, *args, phrase="", **kwargs):
    """Both packages warn, in the same category, with `phrase`."""
    seen = []
    for package, convert in ((torch, lambda x: x), (rushlight, Twins())):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            find(package, path)(*convert(list(args)), **convert(kwargs))
        seen.append({w.category for w in caught if phrase in str(w.message)})
    assert seen[0] and seen[0] == seen[1]


def importable(path):
    """Makes sure that a submodule of both packages has been imported."""
    importlib.import_module(f"torch.{path}")
    importlib.import_module(f"rushlight.{path}")
