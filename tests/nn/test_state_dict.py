"""State dicts: their keys, what loading refuses, hooks, extra state, versions."""

from collections import OrderedDict

import pytest

import rushlight as torch
from rushlight import nn


def net():
    return nn.Sequential(OrderedDict(a=nn.Linear(2, 3), b=nn.BatchNorm1d(3)))


KEYS = ["a.weight", "a.bias", "b.weight", "b.bias", "b.running_mean", "b.running_var", "b.num_batches_tracked"]


def test_keys_and_values():
    module = net()
    state = module.state_dict()
    assert type(state) is OrderedDict and list(state) == KEYS
    assert state._metadata == {"": {"version": 1}, "a": {"version": 1}, "b": {"version": 2}}
    assert state["a.weight"].data_ptr() == module.a.weight.data_ptr()
    assert not state["a.weight"].requires_grad
    assert module.state_dict(keep_vars=True)["a.weight"] is module.a.weight


def test_prefix_and_destination():
    given = {"other": 1}
    assert net().state_dict(destination=given, prefix="p.") is given
    assert list(given) == ["other", *["p." + key for key in KEYS]]


def test_positional_arguments_are_deprecated():
    given = OrderedDict()
    with pytest.warns(FutureWarning, match="Positional args are being deprecated"):
        assert net().state_dict(given, "p.", True) is given
    assert list(given) == ["p." + key for key in KEYS]
    assert isinstance(given["p.a.weight"], nn.Parameter)


def test_loading_copies():
    source, target = net(), net()
    with torch.no_grad():
        source.b.running_mean.fill_(5)
    weight = target.a.weight
    result = target.load_state_dict(source.state_dict())
    assert repr(result) == str(result) == "<All keys matched successfully>"
    assert target.a.weight is weight and torch.equal(weight, source.a.weight)
    assert weight.data_ptr() != source.a.weight.data_ptr() and weight.requires_grad
    assert target.b.running_mean.tolist() == [5.0] * 3


def test_loading_converts_dtypes():
    target = net()
    target.load_state_dict(net().double().state_dict())
    assert target.a.weight.dtype == torch.float32


def test_one_error_lists_everything():
    state = dict(net().state_dict())
    del state["a.bias"], state["b.running_var"]
    state.update({"a.weight": torch.ones(3), "b.weight": 3, "extra": torch.ones(1), "b.more.x": torch.ones(1)})
    with pytest.raises(RuntimeError) as caught:
        net().load_state_dict(state)
    assert str(caught.value) == (
        "Error(s) in loading state_dict for Sequential:\n"
        '\tMissing key(s) in state_dict: "a.bias", "b.running_var". \n'
        '\tUnexpected key(s) in state_dict: "extra", "b.more.x". \n'
        "\tsize mismatch for a.weight: copying a param with shape torch.Size([3]) from checkpoint, the shape in "
        "current model is torch.Size([3, 2]).\n"
        '\tWhile copying the parameter named "b.weight", expected torch.Tensor or Tensor-like object from checkpoint '
        "but received <class 'int'>"
    )


def test_not_strict():
    result = net().load_state_dict({"a.bias": torch.zeros(3), "zz": torch.ones(1)}, strict=False)
    assert result.missing_keys == [key for key in KEYS if key not in ("a.bias", "b.num_batches_tracked")]
    assert result.unexpected_keys == ["zz"]
    assert repr(result).startswith("_IncompatibleKeys(missing_keys=['a.weight'")
    missing, unexpected = result
    assert unexpected == ["zz"] and missing is result.missing_keys
    with pytest.raises(RuntimeError, match=r"size mismatch for a.bias"):
        net().load_state_dict({"a.bias": torch.zeros(4)}, strict=False)


def test_a_name_that_is_the_start_of_another():
    module = nn.ModuleDict({"a": nn.Linear(1, 1), "ab": nn.Linear(1, 1)})
    assert repr(module.load_state_dict(module.state_dict())) == "<All keys matched successfully>"
    with pytest.raises(RuntimeError, match=r'Unexpected key.s. in state_dict: "abc.weight"'):
        module.load_state_dict({**module.state_dict(), "abc.weight": torch.ones(1)})


def test_only_mappings_are_loaded():
    with pytest.raises(TypeError, match="Expected state_dict to be dict-like, got <class 'int'>"):
        net().load_state_dict(3)


def test_assign_takes_the_tensors_themselves():
    module = net()
    module.a.bias.requires_grad_(False)
    state = {key: value.double() if value.is_floating_point() else value for key, value in net().state_dict().items()}
    state["a.bias"] = nn.Parameter(torch.ones(3))
    module.load_state_dict(state, assign=True)
    assert module.a.weight.dtype == torch.float64 and isinstance(module.a.weight, nn.Parameter)
    assert module.a.weight.requires_grad and module.a.weight.data_ptr() == state["a.weight"].data_ptr()
    assert module.a.bias is state["a.bias"] and not module.a.bias.requires_grad
    assert module.b.running_mean is state["b.running_mean"]
    with pytest.raises(RuntimeError, match="size mismatch"):
        module.load_state_dict({**state, "a.bias": torch.ones(4)}, assign=True)


def test_scalars_of_early_versions():
    module = nn.BatchNorm1d(3)
    state = module.state_dict()
    state["num_batches_tracked"] = torch.tensor([7])
    module.load_state_dict(state)
    assert module.num_batches_tracked.item() == 7 and module.num_batches_tracked.shape == ()


def test_batch_norm_of_version_one_has_no_count():
    module = nn.BatchNorm1d(3)
    state = {key: value for key, value in module.state_dict().items() if key != "num_batches_tracked"}
    assert not module.load_state_dict(state).missing_keys
    versioned = OrderedDict(state)
    versioned._metadata = {"": {"version": 2}}
    with pytest.raises(RuntimeError, match="num_batches_tracked"):
        module.load_state_dict(versioned)


class Extra(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = None

    def get_extra_state(self):
        return {"step": 3}

    def set_extra_state(self, state):
        self.seen = state


def test_extra_state():
    module = nn.Sequential(Extra())
    assert module.state_dict() == {"0._extra_state": {"step": 3}}
    module.load_state_dict({"0._extra_state": {"step": 9}})
    assert module[0].seen == {"step": 9}
    with pytest.raises(RuntimeError, match=r'Missing key.s. in state_dict: "0._extra_state"'):
        module.load_state_dict({})
    with pytest.raises(RuntimeError, match=r'Unexpected key.s. in state_dict: "0._extra_state"'):
        nn.Sequential(nn.Module()).load_state_dict({"0._extra_state": 1})


def test_extra_state_needs_both_methods():
    class Half(nn.Module):
        def set_extra_state(self, state):
            self.state = state

    class Other(nn.Module):
        def get_extra_state(self):
            return 1

    Half().load_state_dict({"_extra_state": 1})
    assert Half().state_dict() == {}
    with pytest.raises(RuntimeError, match="set_extra_state"):
        Half().get_extra_state()
    with pytest.raises(RuntimeError, match="Unexpected key"):
        Other().load_state_dict({"_extra_state": 1})


def test_hooks_around_saving():
    linear = nn.Linear(1, 1)
    seen = []
    linear.register_state_dict_pre_hook(lambda m, prefix, keep: seen.append((m, prefix, keep)))
    linear.register_state_dict_post_hook(lambda m, state, prefix, meta: state.pop(prefix + "bias") and None)
    assert list(linear.state_dict(prefix="p.")) == ["p.weight"]
    assert seen == [(linear, "p.", False)]
    linear._register_state_dict_hook(lambda m, state, prefix, meta: {"all": meta})
    assert linear.state_dict() == {"all": {"version": 1}}


def test_a_public_hook_returns_nothing():
    linear = nn.Linear(1, 1)

    def hook(module, state, prefix, meta):
        return state

    handle = linear.register_state_dict_post_hook(hook)
    with pytest.raises(RuntimeError, match="state_dict post-hook must return None"):
        linear.state_dict()
    handle.remove()
    linear.state_dict()
    with pytest.raises(RuntimeError, match="previously registered via register_state_dict_post_hook"):
        linear._register_state_dict_hook(hook)


def test_hooks_around_loading():
    module = nn.Sequential(nn.Linear(1, 1))
    seen = []

    def rename(owner, state, prefix, meta, strict, missing, unexpected, errors):
        seen.append((owner, prefix, strict))
        state[prefix + "weight"] = state.pop(prefix + "w")

    module[0].register_load_state_dict_pre_hook(rename)
    module[0]._register_load_state_dict_pre_hook(lambda state, prefix, *rest: seen.append(len(rest)))
    module[0].register_load_state_dict_post_hook(lambda owner, keys: keys.missing_keys.clear())
    module.load_state_dict({"0.w": torch.full((1, 1), 4.0)})
    assert seen == [(module[0], "0.", True), 5]
    assert module[0].weight.item() == 4
    module[0].register_load_state_dict_post_hook(lambda owner, keys: 3)
    with pytest.raises(AssertionError, match="not expected to return new values"):
        module.load_state_dict({"0.w": torch.ones(1, 1)})


def test_loading_leaves_the_given_dictionary_alone():
    state = nn.BatchNorm1d(3).state_dict()
    del state["num_batches_tracked"]
    state._metadata[""] = {"version": 1}
    nn.BatchNorm1d(3).load_state_dict(state)
    assert "num_batches_tracked" not in state


def test_an_error_while_copying_is_reported_with_its_key():
    module = nn.Linear(2, 2)

    class Broken(torch.Tensor):
        @property
        def shape(self):
            return torch.Size([2, 2])

    broken = torch.ones(3).as_subclass(Broken)
    with pytest.raises(RuntimeError, match='While copying the parameter named "weight", whose dimensions in the model'):
        module.load_state_dict({"weight": broken, "bias": torch.ones(2)})
