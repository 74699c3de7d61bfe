"""The base of the optimizers: groups, names, refusals, hooks, state dicts, copies."""

import copy
import pickle
import warnings

import pytest

import rushlight as torch
from rushlight import optim
from rushlight.nn import Parameter
from rushlight.optim.optimizer import (
    Optimizer,
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
    required,
)


def param(value=1.0, shape=(2, 3)):
    p = Parameter(torch.full(shape, value))
    p.grad = torch.ones(shape)
    return p


def values(*params):
    return [p.detach().tolist() for p in params]


# --- parameters and groups ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        (
            lambda: torch.ones(2),
            TypeError,
            "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
            "torch.FloatTensor",
        ),
        (list, ValueError, "optimizer got an empty parameter list"),
        (lambda: iter(()), ValueError, "optimizer got an empty parameter list"),
        (lambda: [1], TypeError, "optimizer can only optimize Tensors, but one of the params is int"),
        (lambda: "abc", TypeError, "optimizer can only optimize Tensors, but one of the params is str"),
        (lambda: {"a": param()}, TypeError, "optimizer can only optimize Tensors, but one of the params is str"),
        (lambda: [["a", param()]], TypeError, "optimizer can only optimize Tensors, but one of the params is list"),
        (lambda: [param() * 2], ValueError, "can't optimize a non-leaf Tensor"),
        (lambda: [{"params": [param()]}, param()], TypeError, "param_group must be a dict, but got "),
        (
            lambda: [{"params": {param()}}],
            TypeError,
            "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets "
            "will change between runs. Please use a list instead.",
        ),
        (
            lambda: [("a", param()), param()],
            ValueError,
            "all optimizer params should be with/without names. Some param names are missing",
        ),
        (
            lambda: [{"params": [("a", param())]}, {"params": [param()]}],
            ValueError,
            "all optimizer param groups should be with/without names. cannot add param group without names to the "
            "optimizer",
        ),
        (
            lambda: [{"params": [param()]}, {"params": [("a", param())]}],
            ValueError,
            "all optimizer param groups should be with/without names. cannot add param group with names to the "
            "optimizer",
        ),
    ],
)
def test_refused_parameters(params, error, message):
    with pytest.raises(error) as info:
        optim.SGD(params(), lr=0.1)
    assert info.type is error
    assert str(info.value).startswith(message)


def test_group_without_parameters_is_refused():
    with pytest.raises(KeyError, match="params"):
        optim.SGD([{"lr": 1}])


def test_parameter_in_two_groups_is_refused_and_not_added():
    p, q = param(), param()
    opt = optim.SGD([p], lr=0.1)
    with pytest.raises(ValueError, match="some parameters appear in more than one parameter group"):
        opt.add_param_group({"params": [q, p]})
    assert len(opt.param_groups) == 1


def test_parameter_twice_in_a_group_warns():
    p = param()
    with pytest.warns(UserWarning, match="optimizer contains a parameter group with duplicate parameters"):
        optim.SGD([p, p], lr=0.1)


def test_refused_group_is_left_as_it_was():
    opt = optim.SGD([param()], lr=0.1)
    group = {"params": [param() * 2]}
    with pytest.raises(ValueError, match="non-leaf"):
        opt.add_param_group(group)
    assert list(group) == ["params"]


def test_required_option():
    with pytest.raises(
        ValueError, match="parameter group didn't specify a value of required optimization parameter rate"
    ):
        Optimizer([param()], {"rate": required})
    assert Optimizer([{"params": [param()], "rate": 3}], {"rate": required}).param_groups[0]["rate"] == 3
    assert repr(required) == "<required parameter>"


def test_groups_have_their_own_options_and_defaults():
    p, q, r = param(), param(), param()
    opt = optim.SGD([{"params": p, "lr": 0.5}, {"params": iter([q])}], lr=0.25)
    opt.add_param_group({"params": (r,), "momentum": 0.5})
    assert [g["lr"] for g in opt.param_groups] == [0.5, 0.25, 0.25]
    assert [g["momentum"] for g in opt.param_groups] == [0, 0, 0.5]
    assert [type(g["params"]) for g in opt.param_groups] == [list] * 3
    opt.step()
    assert values(p, q, r) == [[[0.5] * 3] * 2, [[0.75] * 3] * 2, [[0.75] * 3] * 2]


def test_groups_may_be_changed_between_steps():
    p, q = param(), param()
    opt = optim.SGD([p], lr=0.25, momentum=0.5)
    opt.step()
    # A parameter is replaced by another, which takes over its state: as programs do that grow their model.
    opt.state[q] = opt.state.pop(p)
    opt.param_groups[0]["params"][0] = q
    opt.param_groups[0]["lr"] = 0.5
    opt.step()
    assert values(p, q) == [[[0.75] * 3] * 2, [[0.25] * 3] * 2]
    opt.state[q]["momentum_buffer"] = torch.zeros(2, 3)
    opt.step()
    assert values(q) == [[[-0.25] * 3] * 2]


def test_names():
    opt = optim.SGD([("w", param()), ("b", param())], lr=0.1)
    assert opt.param_groups[0]["param_names"] == ["w", "b"]
    assert "    param_names: ['w', 'b']\n" in repr(opt)
    assert opt.state_dict()["param_groups"][0]["param_names"] == ["w", "b"]


def test_printed_form():
    opt = optim.SGD([{"params": [param()]}, {"params": [param()], "lr": 2}], lr=1)
    group = (
        "    dampening: 0\n    differentiable: False\n    foreach: None\n    fused: None\n    lr: {}\n"
        "    maximize: False\n    momentum: 0\n    nesterov: False\n    weight_decay: 0\n"
    )
    assert repr(opt) == f"SGD (\nParameter Group 0\n{group.format(1)}\nParameter Group 1\n{group.format(2)})"


def test_parameters_without_gradient_stay():
    p, q = param(), param()
    q.grad = None
    opt = optim.Adam([p, q], lr=0.1)
    opt.step()
    assert values(q) == [[[1.0] * 3] * 2]
    assert q not in opt.state
    assert values(p) != values(q)


def test_steps_count_as_changes_in_place():
    p = param()
    opt = optim.SGD([p], lr=0.1)
    loss = (p * p).sum()
    opt.step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_steps_are_not_recorded():
    p = param()
    optim.SGD([p], lr=0.1).step()
    assert p.is_leaf
    assert p.requires_grad
    assert p.grad_fn is None


# --- step, closures and hooks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("grad_mode", [True, False])
def test_closure_runs_with_gradients_and_its_loss_is_returned(grad_mode):
    p = param(2.0)
    p.grad = None
    opt = optim.SGD([p], lr=0.5)

    def closure():
        opt.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    with torch.set_grad_enabled(grad_mode):
        assert opt.step(closure).item() == 24.0
    assert values(p) == [[[0.0] * 3] * 2]
    assert opt.step() is None


def test_base_has_no_step():
    with pytest.raises(NotImplementedError, match="Optimizer"):
        Optimizer([param()], {}).step()


def test_hooks_run_around_the_step_in_order():
    p, seen = param(), []
    opt = optim.SGD([p], lr=0.5)

    def note(name):
        return lambda optimizer, args, kwargs: seen.append((name, optimizer is opt, args[1:], kwargs, p[0, 0].item()))

    handles = [
        opt.register_step_pre_hook(note("pre")),
        register_optimizer_step_pre_hook(note("global pre")),
        opt.register_step_post_hook(note("post")),
        register_optimizer_step_post_hook(note("global post")),
    ]
    opt.step(closure=None)
    assert [s[0] for s in seen] == ["global pre", "pre", "post", "global post"]
    assert all(s[1] for s in seen)
    assert seen[0][2:] == ((), {"closure": None}, 1.0)
    assert seen[2][4] == 0.5
    for handle in handles:
        handle.remove()
    opt.step()
    assert len(seen) == 4


def test_pre_hook_may_change_the_arguments():
    opt = optim.SGD([param()], lr=0.5)
    handle = opt.register_step_pre_hook(lambda optimizer, args, kwargs: ((optimizer, lambda: 5), {}))
    assert opt.step(lambda: 3) == 5
    handle.remove()
    assert opt.step(lambda: 3) == 3


@pytest.mark.parametrize("result", [3, (1, 2, 3), []])
def test_pre_hook_that_returns_something_else(result):
    p = param()
    opt = optim.SGD([p], lr=0.5)
    opt.register_step_pre_hook(lambda *_: result)
    with pytest.raises(RuntimeError, match=r"must return None or a tuple of \(new_args, new_kwargs\), but got"):
        opt.step()
    assert values(p) == [[[1.0] * 3] * 2]


def test_hooks_run_for_optimizers_of_users():
    seen = []

    class Halve(Optimizer):
        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    p.data.mul_(group["factor"])
            return "done"

    p = param()
    opt = Halve([p], {"factor": 0.5})
    opt.register_step_post_hook(lambda *_: seen.append(p[0, 0].item()))
    assert opt.step() == "done"
    assert seen == [0.5]
    assert Halve.step.__name__ == "step"


def test_state_dict_hooks():
    opt, seen = optim.SGD([param()], lr=0.5), []
    opt.register_state_dict_pre_hook(lambda o: seen.append("pre"))
    opt.register_state_dict_pre_hook(lambda o: seen.append("first"), prepend=True)
    opt.register_state_dict_post_hook(lambda o, s: seen.append("post"))
    opt.register_state_dict_post_hook(lambda o, s: {**s, "extra": 1})
    saved = opt.state_dict()
    assert seen == ["first", "pre", "post"]
    assert saved["extra"] == 1

    def rename(o, s):
        assert s is not saved
        seen.append("load")
        return {"state": s["state"], "param_groups": [{**s["param_groups"][0], "lr": 7}]}

    opt.register_load_state_dict_pre_hook(rename)
    opt.register_load_state_dict_post_hook(lambda o: seen.append(o.param_groups[0]["lr"]))
    opt.load_state_dict(saved)
    assert seen == ["first", "pre", "post", "load", 7]
    assert saved["param_groups"][0]["lr"] == 0.5


# --- zero_grad ------------------------------------------------------------------------------------------------------


def test_zero_grad_removes_gradients():
    p, q = param(), param()
    q.grad = None
    optim.SGD([p, q]).zero_grad()
    assert p.grad is None
    assert q.grad is None


def test_zero_grad_keeps_the_tensor_when_told():
    p = param()
    grad = p.grad
    optim.SGD([p]).zero_grad(set_to_none=False)
    assert p.grad is grad
    assert grad.tolist() == [[0.0] * 3] * 2


def test_zero_grad_detaches_gradients_with_a_history():
    p = Parameter(torch.ones(2))
    (p**3).sum().backward(create_graph=True)
    assert p.grad.grad_fn is not None
    optim.SGD([p]).zero_grad(set_to_none=False)
    assert p.grad.grad_fn is None
    assert not p.grad.requires_grad
    assert p.grad.tolist() == [0.0, 0.0]


# --- state dicts, copies --------------------------------------------------------------------------------------------


def trained(cls=optim.Adam, steps=2, **options):
    torch.manual_seed(0)
    params = [Parameter(torch.randn(3, 2)), Parameter(torch.randn(4, 3))]
    opt = cls([{"params": [params[0]]}, {"params": [params[1]], "lr": 0.2}], **options)
    run(opt, steps)
    return opt


def run(opt, steps):
    for _ in range(steps):
        for group in opt.param_groups:
            for p in group["params"]:
                p.grad = p.detach() * 0.5 + 0.1
        opt.step()


def all_values(opt):
    return [p.detach().tolist() for g in opt.param_groups for p in g["params"]]


def test_state_dict_numbers_parameters():
    opt = trained()
    saved = opt.state_dict()
    assert list(saved) == ["state", "param_groups"]
    assert [g["params"] for g in saved["param_groups"]] == [[0], [1]]
    assert [g["lr"] for g in saved["param_groups"]] == [1e-3, 0.2]
    assert list(saved["state"]) == [0, 1]
    first = opt.param_groups[0]["params"][0]
    assert saved["state"][0]["exp_avg"] is opt.state[first]["exp_avg"]
    assert saved["state"][0]["step"].item() == 2
    assert saved["state"][0]["step"].dtype == torch.float32


ALL = [
    (optim.SGD, {"momentum": 0.9, "lr": 0.1}),
    (optim.Adam, {"amsgrad": True}),
    (optim.AdamW, {}),
    (optim.Adamax, {}),
    (optim.NAdam, {}),
    (optim.RAdam, {}),
    (optim.Adagrad, {}),
    (optim.Adadelta, {}),
    (optim.RMSprop, {"momentum": 0.5, "centered": True}),
    (optim.Rprop, {}),
    (optim.ASGD, {"t0": 1}),
    (optim.Adafactor, {}),
    (optim.Muon, {}),
]


@pytest.mark.parametrize(("cls", "options"), ALL)
@pytest.mark.parametrize("way", ["state_dict", "deepcopy", "pickle"])
def test_training_goes_on_where_it_was(cls, options, way):
    opt = trained(cls, **options)
    if way == "state_dict":
        other = trained(cls, steps=0, **options)
        for p, q in zip(
            [p for g in opt.param_groups for p in g["params"]],
            [p for g in other.param_groups for p in g["params"]],
            strict=True,
        ):
            q.data.copy_(p)
        other.load_state_dict(copy.deepcopy(opt.state_dict()))
    else:
        other = copy.deepcopy(opt) if way == "deepcopy" else pickle.loads(pickle.dumps(opt))
        assert other.param_groups[0]["params"][0] is not opt.param_groups[0]["params"][0]
    before = all_values(opt)
    assert all_values(other) == before
    run(other, 3)
    assert all_values(opt) == before  # nothing is shared
    run(opt, 3)
    assert all_values(other) == all_values(opt)


@pytest.mark.parametrize(("cls", "options"), ALL)
def test_counts_of_old_checkpoints_were_numbers(cls, options):
    opt = trained(cls, **options)
    saved = copy.deepcopy(opt.state_dict())
    for state in saved["state"].values():
        for key in ("step", "mu_product", "eta", "mu"):
            if key in state:
                state[key] = state[key].item()
    other = trained(cls, steps=0, **options)
    other.load_state_dict(saved)
    run(other, 1)
    assert all(
        isinstance(state[key], torch.Tensor) and state[key].dtype == torch.float32
        for state in other.state.values()
        for key in ("step", "mu_product", "eta", "mu")
        if key in state
    )


def test_options_that_an_old_checkpoint_lacks():
    opt = trained()
    saved = copy.deepcopy(opt.state_dict())
    for group in saved["param_groups"]:
        for key in (
            "maximize",
            "foreach",
            "fused",
            "capturable",
            "differentiable",
            "amsgrad",
            "decoupled_weight_decay",
        ):
            del group[key]
    opt.load_state_dict(saved)
    assert {k: opt.param_groups[1][k] for k in ("maximize", "foreach", "lr")} == {
        "maximize": False,
        "foreach": None,
        "lr": 0.2,
    }
    run(opt, 1)


def test_loaded_state_takes_the_dtype_of_the_parameter_but_counts_do_not():
    saved = trained().state_dict()
    saved["state"][0]["more"] = [torch.ones(2, dtype=torch.float64), {"x": torch.ones(1)}, "text", 3]
    params = [Parameter(torch.zeros(3, 2, dtype=torch.float64)), Parameter(torch.zeros(4, 3, dtype=torch.float16))]
    opt = optim.Adam([{"params": [params[0]]}, {"params": [params[1]]}])
    opt.load_state_dict(saved)
    assert opt.state[params[0]]["exp_avg"].dtype == torch.float64
    assert opt.state[params[1]]["exp_avg"].dtype == torch.float16
    assert opt.state[params[1]]["step"].dtype == torch.float32
    more = opt.state[params[0]]["more"]
    assert [more[0].dtype, more[1]["x"].dtype, *more[2:]] == [torch.float64, torch.float64, "text", 3]


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([[(3, 2)]], "loaded state dict has a different number of parameter groups"),
        (
            [[(3, 2), (1,)], [(4, 3)]],
            "loaded state dict contains a parameter group that doesn't match the size of optimizer's group",
        ),
    ],
)
def test_state_dicts_of_other_groups_are_refused(groups, message):
    opt = optim.Adam([{"params": [param(shape=s) for s in shapes]} for shapes in groups], lr=5)
    with pytest.raises(ValueError, match=message):
        opt.load_state_dict(trained().state_dict())
    assert opt.param_groups[0]["lr"] == 5


def test_names_survive_loading():
    named = optim.SGD([("w", param())], lr=1)
    plain = optim.SGD([param()], lr=2)
    named.load_state_dict(plain.state_dict())
    assert (named.param_groups[0]["param_names"], named.param_groups[0]["lr"]) == (["w"], 2)
    plain.load_state_dict(named.state_dict())
    assert plain.param_groups[0]["param_names"] == ["w"]


def test_swap_in_optimizer_params_and_state():
    p, other = param(), param(3.0)
    opt = optim.SGD([p], lr=0.5, momentum=0.5)
    with pytest.raises(RuntimeError, match="requires initialized optimizer state"):
        optim.swap_in_optimizer_params_and_state(opt, {"p": other}, {}).__enter__()
    opt.step()
    saved = copy.deepcopy(opt.state_dict())
    saved["param_groups"][0]["lr"] = 1.0
    with optim.swap_in_optimizer_params_and_state(opt, {"p": other}, saved):
        opt.step()
        opt.param_groups[0]["lr"] = 77
    assert values(p, other) == [[[0.5] * 3] * 2, [[1.5] * 3] * 2]
    assert saved["state"][0]["momentum_buffer"].tolist() == [[1.5] * 3] * 2
    assert opt.state[p]["momentum_buffer"].tolist() == [[1.0] * 3] * 2
    assert opt.param_groups[0]["lr"] == 0.5
    for params, state, message in [
        ({}, saved, "match optimizer.param_groups ordering"),
        ({"p": other}, {"state": {}}, "to be a list of param-group dicts, got NoneType"),
        ({"p": other}, {"state": {}, "param_groups": []}, "has a different number of parameter groups"),
        ({"p": other}, {"state": {}, "param_groups": [{"params": [0, 1]}]}, "param group 0 has a different number"),
    ]:
        with pytest.raises(RuntimeError, match=message):
            optim.swap_in_optimizer_params_and_state(opt, params, state).__enter__()
    assert opt.param_groups[0]["params"] == [p]


def test_sparse_adam_is_left_out_by_name():
    with pytest.raises(NotImplementedError, match="SparseAdam is not part of rushlight"):
        optim.SparseAdam([param()])


def test_construction_is_quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for cls, options in ALL:
            cls([param()], **options)
