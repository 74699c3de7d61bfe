"""Parametrizations, norms of weights by hooks, pruning."""

import copy
import pickle

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn import utils
from rushlight.nn.utils import parametrizations, parametrize, prune


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).mT

    def right_inverse(self, x):
        return x.triu()


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor([2.0]))

    def forward(self, x):
        return x * self.scale


class Sum(nn.Module):
    def forward(self, a, b):
        return a + b

    def right_inverse(self, x):
        return x / 2, x / 2


def symmetric():
    torch.manual_seed(0)
    return parametrize.register_parametrization(nn.Linear(3, 3), "weight", Symmetric())


def test_registered_tensor_is_computed():
    layer = symmetric()
    assert torch.equal(layer.weight, layer.weight.mT)
    assert list(layer.state_dict()) == ["bias", "parametrizations.weight.original"]
    assert isinstance(layer, nn.Linear)
    assert repr(layer).startswith("ParametrizedLinear(\n  in_features=3, out_features=3, bias=True")
    layer(torch.ones(1, 3)).sum().backward()
    assert layer.parametrizations.weight.original.grad is not None
    assert parametrize.is_parametrized(layer)
    assert not parametrize.is_parametrized(layer, "bias")
    assert parametrize.type_before_parametrizations(layer) is nn.Linear


def test_assignment_inverts():
    layer = symmetric()
    layer.weight = torch.ones(3, 3)
    assert layer.weight.tolist() == [[1] * 3] * 3
    assert layer.parametrizations.weight.original[1, 0].item() == 0
    one_way = parametrize.register_parametrization(nn.Linear(2, 2), "weight", Scaled())
    with pytest.raises(RuntimeError, match="Scaled does not implement right_inverse"):
        one_way.weight = torch.ones(2, 2)
    with pytest.raises(ValueError, match=r"has dtype torch.float64 while `original` has dtype torch.float32"):
        layer.weight = torch.ones(3, 3, dtype=torch.float64)


def test_chains_and_caches():
    layer = symmetric()
    alone = layer.weight
    parametrize.register_parametrization(layer, "weight", Scaled())
    assert torch.equal(layer.weight, alone * 2)
    assert layer.weight is not layer.weight
    with parametrize.cached():
        first = layer.weight
        assert layer.weight is first
        with parametrize.cached():
            assert layer.weight is first
        assert layer.weight is first
    assert layer.weight is not first


def test_several_originals():
    layer = nn.Linear(2, 2)
    before = layer.weight.detach().clone()
    parametrize.register_parametrization(layer, "weight", Sum())
    assert "parametrizations.weight.original1" in layer.state_dict()
    assert torch.equal(layer.weight, before)
    with pytest.raises(ValueError, match="Cannot leave unparametrized"):
        parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False)
    parametrize.remove_parametrizations(layer, "weight")
    assert torch.equal(layer.weight, before)
    assert isinstance(layer.weight, nn.Parameter)


@pytest.mark.parametrize("leave", [True, False])
def test_removal(leave):
    layer = symmetric()
    original, computed = layer.parametrizations.weight.original, layer.weight.detach().clone()
    raw = original.detach().clone()
    parametrize.register_parametrization(layer, "bias", Scaled())
    parametrize.remove_parametrizations(layer, "weight", leave)
    assert layer.weight is original
    assert torch.equal(layer.weight, computed if leave else raw)
    assert parametrize.is_parametrized(layer, "bias")
    parametrize.remove_parametrizations(layer, "bias")
    assert type(layer) is nn.Linear
    assert not hasattr(layer, "parametrizations")
    with pytest.raises(ValueError, match="does not have a parametrization on weight"):
        parametrize.remove_parametrizations(layer, "weight")


def test_copies_do_not_share_what_is_removed():
    layer = symmetric()
    twin = copy.deepcopy(layer)
    parametrize.remove_parametrizations(layer, "weight")
    assert torch.equal(twin.weight, twin.weight.mT)
    assert parametrize.is_parametrized(twin, "weight")
    with pytest.raises(RuntimeError, match="only supported through state_dict"):
        pickle.dumps(twin)


def test_buffers_state_dicts_and_transfer():
    module = nn.Module()
    module.register_buffer("matrix", torch.randn(2, 2))
    parametrize.register_parametrization(module, "matrix", Symmetric())
    assert [n for n, _ in module.named_buffers()] == ["parametrizations.matrix.original"]
    layer, other = symmetric(), parametrize.register_parametrization(nn.Linear(3, 3), "weight", Symmetric())
    other.load_state_dict(layer.state_dict())
    assert torch.equal(other.weight, layer.weight)
    plain = nn.Linear(3, 3)
    parametrize.transfer_parametrizations_and_params(layer, plain)
    assert torch.equal(plain.weight, layer.weight)


class Cut(nn.Module):
    def forward(self, x):
        return x[:2]


class Doubled(nn.Module):
    def forward(self, x):
        return x.double()


def test_parametrization_refusals():
    for module, phrase in [(Cut(), "may not change the shape"), (Doubled(), "may not change the dtype")]:
        layer = nn.Linear(3, 3)
        with pytest.raises(ValueError, match=phrase):
            parametrize.register_parametrization(layer, "weight", module)
        assert type(layer) is nn.Linear
        assert isinstance(layer.weight, nn.Parameter)
        with pytest.raises(ValueError, match=phrase):
            parametrize.register_parametrization(symmetric(), "weight", module)
        assert parametrize.register_parametrization(nn.Linear(3, 3), "weight", module, unsafe=True).weight is not None
    for name in ("foo", "in_features"):
        with pytest.raises(ValueError, match=f"with name '{name}'"):
            parametrize.register_parametrization(nn.Linear(3, 3), name, Symmetric())


# the three that come along --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("trivial", [True, False])
@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (5, 3)])
@pytest.mark.parametrize("kind", [None, "matrix_exp", "cayley", "householder"])
def test_orthogonal(kind, shape, trivial):
    torch.manual_seed(0)
    layer = nn.Linear(shape[1], shape[0]).double()
    parametrizations.orthogonal(layer, orthogonal_map=kind, use_trivialization=trivial)
    optimizer_step = torch.randn(*shape, dtype=torch.float64)
    for _ in range(2):
        q = layer.weight.detach().numpy()
        product = q.T @ q if shape[0] >= shape[1] else q @ q.T
        np.testing.assert_allclose(product, np.eye(min(shape)), atol=1e-10)
        with torch.no_grad():
            original = layer.parametrizations.weight.original
            original += 0.1 * optimizer_step.tril(-1) if shape[0] >= shape[1] else 0.1 * optimizer_step.triu(1)
    target, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(max(shape), min(shape))))
    target = target if shape[0] >= shape[1] else target.T
    skew = kind in ("matrix_exp", "cayley") or (kind is None and shape[0] == shape[1])
    if skew and not trivial:
        with pytest.raises(NotImplementedError, match="use_trivialization=False"):
            layer.weight = torch.tensor(target)
    else:
        layer.weight = torch.tensor(target)
        np.testing.assert_allclose(layer.weight.detach().numpy(), target, atol=1e-10)


def test_weight_norm():
    torch.manual_seed(0)
    for dim in (0, 1, None):
        layer = nn.Conv2d(2, 3, 2)
        before = layer.weight.detach().clone()
        parametrizations.weight_norm(layer, dim=dim)
        torch.testing.assert_close(layer.weight, before)
        with torch.no_grad():
            layer.parametrizations.weight.original1 *= 7.0
        torch.testing.assert_close(layer.weight, before)
    layer = parametrizations.weight_norm(nn.Linear(3, 2))
    saved = {"bias": torch.zeros(2), "weight_g": torch.ones(2, 1), "weight_v": torch.ones(2, 3)}
    layer.load_state_dict(saved)
    torch.testing.assert_close(layer.weight, torch.full((2, 3), 3**-0.5))


def test_spectral_norm():
    torch.manual_seed(0)
    layer = parametrizations.spectral_norm(nn.Linear(5, 4), n_power_iterations=30)
    assert np.linalg.norm(layer.weight.detach().numpy(), 2) == pytest.approx(1, abs=1e-3)
    layer.eval()
    assert torch.equal(layer.weight, layer.weight)
    u = layer.parametrizations.weight[0]._u.clone()
    layer(torch.ones(1, 5))
    assert torch.equal(u, layer.parametrizations.weight[0]._u)
    transposed = parametrizations.spectral_norm(nn.ConvTranspose2d(3, 4, 2))
    assert transposed.parametrizations.weight[0]._u.shape == (4,)
    vector = parametrizations.spectral_norm(nn.Linear(3, 4), "bias")
    assert vector.bias.norm().item() == pytest.approx(1)
    with pytest.raises(ValueError, match="n_power_iterations to be positive"):
        parametrizations.spectral_norm(nn.Linear(3, 4), n_power_iterations=0)
    with pytest.raises(ValueError, match="no parameter or buffer with name 'foo'"):
        parametrizations.spectral_norm(nn.Linear(3, 4), "foo")
    with pytest.raises(IndexError, match="Dimension out of range"):
        parametrizations.spectral_norm(nn.Linear(3, 4), dim=2)


@pytest.mark.filterwarnings("ignore:.*weight_norm:FutureWarning")
def test_weight_norm_by_a_hook():
    torch.manual_seed(0)
    layer = nn.Linear(3, 2)
    before = layer.weight.detach().clone()
    utils.weight_norm(layer)
    assert [n for n, _ in layer.named_parameters()] == ["bias", "weight_g", "weight_v"]
    torch.testing.assert_close(layer.weight, before)
    with torch.no_grad():
        layer.weight_g *= 2
    layer(torch.ones(1, 3)).sum().backward()
    torch.testing.assert_close(layer.weight, before * 2)
    assert layer.weight_v.grad is not None
    with pytest.raises(RuntimeError, match="Cannot register two weight_norm hooks"):
        utils.weight_norm(layer)
    utils.remove_weight_norm(layer)
    assert isinstance(layer.weight, nn.Parameter)
    torch.testing.assert_close(layer.weight.detach(), before * 2)
    with pytest.raises(ValueError, match="weight_norm of 'weight' not found"):
        utils.remove_weight_norm(layer)


def test_spectral_norm_by_a_hook():
    torch.manual_seed(0)
    layer = utils.spectral_norm(nn.Linear(5, 4))
    assert list(layer.state_dict()) == ["bias", "weight_orig", "weight_u", "weight_v"]
    for _ in range(50):
        layer(torch.ones(1, 5))
    assert np.linalg.norm(layer.weight.detach().numpy(), 2) == pytest.approx(1, abs=1e-3)
    u = layer.weight_u.clone()
    layer.eval()(torch.ones(1, 5))
    assert torch.equal(layer.weight_u, u)
    with pytest.raises(RuntimeError, match="Cannot register two spectral_norm hooks"):
        utils.spectral_norm(layer)
    weight = layer.weight.detach().clone()
    utils.remove_spectral_norm(layer)
    torch.testing.assert_close(layer.weight.detach(), weight)
    with pytest.raises(ValueError, match="not found"):
        utils.remove_spectral_norm(layer)


# pruning --------------------------------------------------------------------------------------------------------------


def numbered():
    layer = nn.Linear(4, 3)
    with torch.no_grad():
        layer.weight.copy_(torch.arange(1.0, 13).reshape(3, 4) * torch.tensor([1.0, -1, 1, -1]))
    return layer


def test_least_numbers():
    for amount in (5, 5 / 12):
        layer = prune.l1_unstructured(numbered(), "weight", amount)
        assert layer.weight.abs().flatten().tolist() == [0] * 5 + [6, 7, 8, 9, 10, 11, 12]
        assert [n for n, _ in layer.named_parameters()] == ["bias", "weight_orig"]
        assert layer.weight_mask.dtype is torch.float32
    scores = torch.arange(12.0, 0, -1).reshape(3, 4)
    layer = prune.l1_unstructured(numbered(), "weight", 2, importance_scores=scores)
    assert layer.weight.flatten().tolist()[-2:] == [0, 0]


def test_pruned_numbers_do_not_learn():
    layer = prune.l1_unstructured(numbered(), "weight", 3)
    layer(torch.ones(1, 4)).sum().backward()
    assert layer.weight_orig.grad.flatten().tolist() == [0] * 3 + [1] * 9
    with torch.no_grad():
        layer.weight_orig.fill_(5.0)
    layer(torch.ones(1, 4))
    assert layer.weight.flatten().tolist() == [0] * 3 + [5] * 9


def test_slices():
    layer = prune.ln_structured(numbered(), "weight", 1, 2, 0)
    assert layer.weight[0].tolist() == [0] * 4
    assert bool(layer.weight[1:].all())
    layer = prune.ln_structured(numbered(), "weight", 0.5, 1, -1)
    assert layer.weight_mask[0].tolist() == [0, 0, 1, 1]
    torch.manual_seed(0)
    layer = prune.random_structured(numbered(), "weight", 2, 1)
    assert sorted(layer.weight_mask.sum(0).tolist()) == [0, 0, 3, 3]
    layer = prune.random_unstructured(numbered(), "weight", 4)
    assert layer.weight_mask.sum().item() == 8


def test_pruning_again_chooses_of_what_is_left():
    layer = prune.l1_unstructured(numbered(), "weight", 3)
    prune.l1_unstructured(layer, "weight", 2)
    assert layer.weight_mask.flatten().tolist() == [0] * 5 + [1] * 7
    prune.ln_structured(layer, "weight", 1, 1, 0)
    assert layer.weight_mask.sum(1).tolist() == [0, 0, 4]  # the first row was pruned already
    prune.ln_structured(layer, "weight", 0.5, 1, 1)
    assert layer.weight_mask[2].tolist() == [0, 0, 1, 1]
    (hook,) = layer._forward_pre_hooks.values()
    assert isinstance(hook, prune.PruningContainer)
    assert [type(m).__name__ for m in hook] == ["L1Unstructured"] * 2 + ["LnStructured"] * 2
    assert len(hook) == 4


def test_custom_masks_and_removal():
    layer = prune.custom_from_mask(numbered(), "weight", torch.eye(3, 4))
    assert torch.equal(layer.weight != 0, torch.eye(3, 4) != 0)
    prune.identity(layer, "bias")
    assert prune.is_pruned(nn.Sequential(layer))
    original, values = layer.weight_orig, layer.weight.detach().clone()
    prune.remove(layer, "weight")
    assert layer.weight is original
    assert torch.equal(layer.weight, values)
    assert [n for n, _ in layer.named_buffers()] == ["bias_mask"]
    prune.remove(layer, "bias")
    assert not prune.is_pruned(layer)
    with pytest.raises(ValueError, match="has to be pruned before pruning can be removed"):
        prune.remove(layer, "weight")


def test_global_pruning():
    first, second = numbered(), numbered()
    with torch.no_grad():
        second.weight *= 10
    prune.global_unstructured([(first, "weight"), (second, "weight")], prune.L1Unstructured, amount=13)
    assert first.weight_mask.sum().item() == 0 or first.weight_mask.sum().item() == 1
    assert first.weight_mask.sum().item() + second.weight_mask.sum().item() == 11
    with pytest.raises(TypeError, match="unstructured"):
        prune.global_unstructured([(first, "weight")], prune.LnStructured, amount=1, n=2)
    with pytest.raises(TypeError, match="not an Iterable"):
        prune.global_unstructured(3, prune.L1Unstructured, amount=1)


class EveryOther(prune.BasePruningMethod):
    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t, default_mask):
        mask = default_mask.clone()
        mask.view(-1)[::2] = 0
        return mask


class Unknown(EveryOther):
    PRUNING_TYPE = "sometimes"


def test_methods_of_ones_own():
    layer = numbered()
    EveryOther.apply(layer, "weight")
    assert layer.weight_mask.flatten().tolist() == [0, 1] * 6
    assert EveryOther().prune(torch.ones(4)).tolist() == [0, 1, 0, 1]
    with pytest.raises(ValueError, match="Unrecognized PRUNING_TYPE sometimes"):
        Unknown.apply(layer, "weight")
    assert prune.is_pruned(layer)
    assert layer.weight_mask.flatten().tolist() == [0, 1] * 6
    with pytest.raises(TypeError, match="abstract"):
        prune.BasePruningMethod()


def test_pruning_refusals_leave_the_layer_alone():
    layer = numbered()
    for call, kind, phrase in [
        (lambda: prune.l1_unstructured(layer, "weight", 13), ValueError, "amount=13 should be smaller"),
        (lambda: prune.l1_unstructured(layer, "weight", -1), ValueError, "amount=-1 should either be a float"),
        (lambda: prune.l1_unstructured(layer, "weight", 1.5), ValueError, "amount=1.5 should either be a float"),
        (lambda: prune.l1_unstructured(layer, "weight", "all"), TypeError, "Invalid type for amount: all"),
        (lambda: prune.ln_structured(layer, "weight", 1, 2, 5), IndexError, "Invalid index 5"),
        (lambda: prune.ln_structured(layer, "bias", 1, 2, 0), ValueError, "multidimensional tensors"),
        (lambda: prune.custom_from_mask(layer, "weight", torch.eye(3)), AssertionError, "must match self.mask shape"),
        (lambda: prune.l1_unstructured(layer, "weight", 1, torch.ones(12)), AssertionError, "same shape as parameter"),
        (lambda: prune.l1_unstructured(layer, "foo", 1), AttributeError, "foo"),
    ]:
        with pytest.raises(kind, match=phrase):
            call()
    assert [n for n, _ in layer.named_parameters()] == ["weight", "bias"]
    assert not prune.is_pruned(layer)
