"""The tools of nn.utils against PyTorch's: values, random draws, names, refusals."""

import itertools

import pytest

torch = pytest.importorskip("torch", reason="the oracle is installed by .ci/run only")

from nn_twin import Twins, assert_same, find, importable, same, same_error, tensors  # noqa: E402

import rushlight  # noqa: E402

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

for name in ("parametrize", "parametrizations", "prune", "stateless"):
    importable("nn.utils." + name)


def layer(package, name="Linear", args=(4, 3), seed=0, **options):
    package.manual_seed(seed)
    return getattr(package.nn, name)(*args, **options)


def same_state(build):
    """A module made with either package: names, values, printed form."""
    theirs, ours = build(torch), build(rushlight)
    assert repr(ours) == repr(theirs)
    assert [n for n, _ in ours.named_parameters()] == [n for n, _ in theirs.named_parameters()]
    assert [n for n, _ in ours.named_buffers()] == [n for n, _ in theirs.named_buffers()]
    assert list(ours.state_dict()) == list(theirs.state_dict())
    for key, value in theirs.state_dict().items():
        assert_same(ours.state_dict()[key], value, key)
    return ours, theirs


# clipping -------------------------------------------------------------------------------------------------------------


def with_gradients(package, gradients):
    made = []
    for gradient in gradients:
        parameter = package.nn.Parameter(package.zeros(2, dtype=gradient.dtype))
        parameter.grad = gradient * 1
        made.append(parameter)
    return made


@pytest.mark.parametrize("norm_type", [0.5, 1, 2, 3.0, "inf", float("inf"), -float("inf"), 0])
def test_clip_grad_norm(norm_type):
    def clip(package, limit, *gradients):
        made = with_gradients(package, gradients)
        total = package.nn.utils.clip_grad_norm_(made, limit, norm_type)
        return total, [p.grad for p in made]

    gradients = torch.randn(2), torch.randn(2), torch.randn(2, dtype=torch.float64)
    for limit in (0.1, 2.0, 100.0, -1.0):
        same(clip, limit, *gradients)
        same(clip, limit, torch.tensor([1.0, float("nan")]), gradients[0])


def test_other_clipping():
    def values(package, limit, *gradients):
        made = with_gradients(package, gradients)
        package.nn.utils.clip_grad_value_(made, limit)
        return [p.grad for p in made]

    def with_norm(package, limit, norm, *gradients):
        made = with_gradients(package, gradients)
        package.nn.utils.clip_grads_with_norm_(made, limit, norm)
        return [p.grad for p in made]

    gradients = torch.randn(2), torch.randn(2)
    for limit in (0.1, 2, -1):
        same(values, limit, *gradients)
        same(with_norm, limit, torch.tensor(3.0), *gradients)
    for tensors_ in ([], list(gradients), gradients[0]):
        same("nn.utils.get_total_norm", tensors_)
    infinite = [torch.tensor([1.0, float("inf")])]
    same_error(
        "nn.utils.get_total_norm", infinite, error_if_nonfinite=True, phrase="is non-finite, so it cannot be clipped"
    )


def test_vectors():
    same("nn.utils.parameters_to_vector", [torch.randn(2, 3).requires_grad_(), torch.randn(4).requires_grad_()])
    same_error("nn.utils.parameters_to_vector", [torch.ones(3, 2).t()])
    same_error("nn.utils.vector_to_parameters", [1, 2], [torch.ones(2)], phrase="expected torch.Tensor, but got: list")


# parametrizations -----------------------------------------------------------------------------------------------------

SHAPES = [(4, 4), (3, 5), (5, 3)]


@pytest.mark.parametrize("trivial", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", [None, "matrix_exp", "cayley", "householder"])
def test_orthogonal(kind, shape, trivial):
    def build(package):
        module = layer(package, args=(shape[1], shape[0]), dtype=package.float64)
        f = package.nn.utils.parametrizations.orthogonal
        return f(module, orthogonal_map=kind, use_trivialization=trivial)

    ours, theirs = same_state(build)
    assert_same(ours.weight, theirs.weight)
    cotangent = torch.randn(shape, dtype=torch.float64)
    theirs.weight.backward(cotangent)
    ours.weight.backward(Twins()(cotangent))
    assert_same(ours.parametrizations.weight.original.grad, theirs.parametrizations.weight.original.grad)


@pytest.mark.parametrize("dim", [0, 1, -1, None])
def test_weight_norm(dim):
    for name, args in (("Linear", (4, 3)), ("Conv2d", (2, 3, 2)), ("ConvTranspose1d", (2, 3, 2))):

        def new(package):
            return package.nn.utils.parametrizations.weight_norm(layer(package, name, args), dim=dim)

        def old(package):
            return package.nn.utils.weight_norm(layer(package, name, args), dim=dim)

        for build in (new, old):
            ours, theirs = same_state(build)
            assert_same(ours.weight, theirs.weight)


def test_spectral_norm():
    for name, args in (("Linear", (4, 3)), ("Conv2d", (2, 3, 2)), ("ConvTranspose2d", (3, 4, 2))):
        for steps in (1, 3):

            def new(package):
                f = package.nn.utils.parametrizations.spectral_norm
                return f(layer(package, name, args), n_power_iterations=steps)

            def old(package):
                return package.nn.utils.spectral_norm(layer(package, name, args), n_power_iterations=steps)

            for build in (new, old):
                ours, theirs = same_state(build)
                x = torch.randn(2, args[0], *[4] * (2 if name.endswith("2d") else 0))
                for mode in (True, True, False):
                    ours.train(mode), theirs.train(mode)
                    assert_same(ours(Twins()(x)), theirs(x))
                assert_same(ours.weight, theirs.weight)
                for key, value in theirs.state_dict().items():
                    assert_same(ours.state_dict()[key], value, key)


def test_parametrization_refusals():
    def call(function, *args, **options):
        def run(package):
            module = layer(package)
            return find(package, "nn.utils." + function)(module, *args, **options)

        return run

    same_error(call("parametrizations.orthogonal", "bias"), phrase="Expected a matrix or batch of matrices")
    same_error(call("parametrizations.orthogonal", "foo"), phrase="has no parameter or buffer with name 'foo'")
    same_error(call("parametrizations.orthogonal", orthogonal_map="x"), phrase="orthogonal_map has to be one of")
    same_error(call("parametrizations.spectral_norm", n_power_iterations=0), phrase="n_power_iterations to be positive")
    same_error(call("parametrizations.spectral_norm", dim=5), phrase="Dimension out of range")
    same_error(
        call("parametrize.remove_parametrizations", "weight"), phrase="does not have a parametrization on weight"
    )
    same_error(call("remove_weight_norm"), phrase="weight_norm of 'weight' not found in")
    same_error(call("remove_spectral_norm"), phrase="spectral_norm of 'weight' not found in")
    same_error(call("spectral_norm", n_power_iterations=0), phrase="n_power_iterations to be positive")


# pruning --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("amount", [0, 1, 5, 0.3, 0.0, 1.0, 12])
def test_unstructured(amount):
    for name in ("l1_unstructured", "random_unstructured"):

        def build(package):
            return find(package, "nn.utils.prune." + name)(layer(package), "weight", amount)

        ours, theirs = same_state(build)
        assert_same(ours.weight, theirs.weight)


@pytest.mark.parametrize("amount", [0, 1, 0.5, 3])
def test_structured(amount):
    for dim, n in itertools.product([0, 1, -1], [1, 2, float("inf"), "fro"]):

        def norm(package):
            return package.nn.utils.prune.ln_structured(layer(package), "weight", amount, n, dim)

        def chance(package):
            return package.nn.utils.prune.random_structured(layer(package), "weight", amount, dim)

        same_state(norm)
        same_state(chance)


def test_several_prunings():
    def build(package):
        prune = package.nn.utils.prune
        module = prune.l1_unstructured(layer(package, args=(6, 5)), "weight", 7)
        prune.random_unstructured(module, "weight", 0.2)
        prune.ln_structured(module, "weight", 2, 2, 0)
        prune.random_structured(module, "weight", 1, 1)
        prune.l1_unstructured(module, "bias", 2)
        return module

    same_state(build)

    def removed(package):
        module = build(package)
        package.nn.utils.prune.remove(module, "weight")
        return module

    same_state(removed)

    def everywhere(package):
        prune = package.nn.utils.prune
        model = package.nn.Sequential(layer(package), layer(package, args=(3, 5), seed=1))
        pairs = [(model[0], "weight"), (model[1], "weight"), (model[1], "bias")]
        prune.global_unstructured(pairs, prune.L1Unstructured, amount=9)
        prune.global_unstructured(pairs[:2], prune.RandomUnstructured, amount=0.3)
        return model

    same_state(everywhere)


def test_pruning_refusals():
    def call(function, *args):
        return lambda package: find(package, "nn.utils.prune." + function)(layer(package), *args)

    same_error(
        call("l1_unstructured", "weight", 13), phrase="amount=13 should be smaller than the number of parameters"
    )
    same_error(call("l1_unstructured", "weight", -1), phrase="amount=-1 should either be a float in the range [0, 1]")
    same_error(call("l1_unstructured", "weight", 1.5), phrase="amount=1.5 should either be a float in the range [0, 1]")
    same_error(call("l1_unstructured", "weight", "x"), phrase="Invalid type for amount: x. Must be int or float.")
    same_error(call("ln_structured", "weight", 1, 2, 5), phrase="Invalid index 5 for tensor of size")
    same_error(
        call("ln_structured", "bias", 1, 2, 0), phrase="Structured pruning can only be applied to multidimensional"
    )
    same_error(call("remove", "weight"), phrase="has to be pruned before pruning can be removed")
    same_error(call("l1_unstructured", "foo", 1))


# fusion, calls --------------------------------------------------------------------------------------------------------


def test_fusion():
    def fused(package, w, b, mean, var, gain, shift, transpose):
        return package.nn.utils.fuse_conv_bn_weights(w, b, mean, var, 1e-3, gain, shift, transpose)

    mean, var, gain, shift = torch.randn(3), torch.rand(3) + 0.5, torch.randn(3), torch.randn(3)
    for b, g, s in itertools.product([None, torch.randn(3)], [None, gain], [None, shift]):
        same(fused, torch.randn(3, 2, 2, 2), b, mean, var, g, s, False)
        same(fused, torch.randn(2, 3, 2), b, mean, var, g, s, True)
        if g is not None and s is not None:
            same("nn.utils.fuse_linear_bn_weights", torch.randn(3, 2), b, mean, var, 1e-5, g, s)


def test_functional_call():
    def call(package, *args, **options):
        return package.func.functional_call(layer(package, args=(2, 2)), *args, **options)

    x, w, b = torch.ones(1, 2), torch.randn(2, 2).requires_grad_(), torch.randn(2).requires_grad_()
    same(call, {"weight": w}, x)
    same(call, ({"weight": w}, {"bias": b}), (x,))
    same(call, {"weight": w, "foo": b}, x)
    same_error(call, {"weight": w}, x, strict=True, phrase="Missing key(s): 'bias'.")
    same_error(call, {"weight": w, "bias": b, "x": b}, x, strict=True, phrase="Unexpected key(s): 'x'.")
    same_error(call, ({"weight": w}, {"weight": w}), x, phrase="appeared in multiple dictionaries")
    same_error(call, 3, x, phrase="Expected parameter_and_buffer_dicts to be a dict")
    same_error(call, {"weight": 3}, x, phrase="3 is not an instance of torch.Tensor")


def test_stacked_states():
    def stack(package, count):
        models = [layer(package, seed=i) for i in range(count)]
        return package.func.stack_module_state(models)

    theirs, ours = stack(torch, 3), stack(rushlight, 3)
    assert list(ours[0]) == list(theirs[0])
    for a, b in zip(tensors(list(ours[0].values())), tensors(list(theirs[0].values())), strict=True):
        assert_same(a, b)
        assert (a.requires_grad, a.is_leaf) == (b.requires_grad, b.is_leaf)
    same_error(stack, 0, phrase="Expected at least one model, got 0")
