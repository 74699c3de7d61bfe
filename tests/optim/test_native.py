"""The native step: it agrees with the formula, takes what it can, and leaves the rest whole."""

import pytest
from test_rules import CASES, gradients

import rushlight as torch
from rushlight import optim
from rushlight._C import _optim
from rushlight.nn import Parameter
from rushlight.optim._rule import UpdateRule

CASES = [
    *((cls, options) for cls, _, options in CASES),
    (optim.Adafactor, {"weight_decay": 0.1}),
    (optim.Adafactor, {"eps": (0.1, 0.2), "d": 1.5, "maximize": True}),
]


def start(dtype, shapes):
    torch.manual_seed(0)
    return [Parameter(torch.randn(*shape, dtype=dtype)) for shape in shapes]


def train(cls, options, dtype, shapes=((3, 5), (7,), (2, 3, 2), (1,)), steps=5):
    params = start(dtype, shapes)
    opt = cls(params, **options)
    for step in range(1, steps + 1):
        for p in params:
            flat = torch.view_as_real(p.detach()) if dtype.is_complex else p.detach()
            g = torch.tensor(gradients(flat.flatten().tolist(), step), dtype=flat.dtype).reshape(flat.shape)
            p.grad = torch.view_as_complex(g) if dtype.is_complex else g
        if step == 3:
            params[1].grad = None
        opt.step()
    return params, opt


def by_formula(monkeypatch, cls):
    monkeypatch.setattr(cls, "_native", lambda self, params, group: [p for p in params if p.grad is not None])


@pytest.mark.parametrize(
    ("cls", "options", "dtype"),
    [
        (*case, dtype)
        for case in CASES
        for dtype in (torch.float32, torch.float64, torch.complex64)
        if case[0] is not optim.Adafactor or not dtype.is_complex
    ],
)
def test_kernel_agrees_with_the_formula(cls, options, dtype, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(UpdateRule, "_update", None)  # the kernel takes every parameter
        params, opt = train(cls, options, dtype)
    by_formula(monkeypatch, cls)
    expected, reference = train(cls, options, dtype)
    tolerance = {"rtol": 1e-4, "atol": 1e-5} if dtype != torch.float64 else {"rtol": 1e-6, "atol": 1e-8}
    for p, q in zip(params, expected, strict=True):
        torch.testing.assert_close(p.detach(), q.detach(), **tolerance)
        assert list(opt.state[p]) == list(reference.state[q])
        for key, value in opt.state[p].items():
            torch.testing.assert_close(value, reference.state[q][key], **tolerance)


@pytest.mark.parametrize(("cls", "options"), CASES)
def test_threads_do_not_change_bits(cls, options):
    shapes = ((300, 200), (5,), (70000,))
    threads = torch.get_num_threads()
    results = []
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            params = start(torch.float32, shapes)
            opt = cls(params, **options)
            for step in range(3):
                for i, p in enumerate(params):
                    p.grad = p.detach() * (step - i + 0.5)
                opt.step()
            results.append([p.detach() for p in params])
    finally:
        torch.set_num_threads(threads)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))


def test_what_has_no_kernel_or_no_state_is_left():
    params = [
        Parameter(torch.ones(2, 3)),
        Parameter(torch.ones(2, 3, dtype=torch.float16)),
        Parameter(torch.ones(4, 3)[::2]),
        Parameter(torch.ones(2, 3)),
        Parameter(torch.ones(2, 3)),
        Parameter(torch.ones(2, 3)),
    ]
    for p in params:
        p.grad = torch.ones(p.shape, dtype=p.dtype)
    params[2].data = torch.ones(2, 6)[:, ::2]
    params[3].grad = torch.ones(3, 2).T  # another order of memory
    params[4].grad = None
    left = _optim.sgd(params, {}, 0.5, 0, 0, 0, False, False)
    assert [i for i, p in enumerate(params) if any(p is q for q in left)] == [1, 2, 3]
    assert [p[0, 0].item() for p in params] == [0.5, 1.0, 1.0, 1.0, 1.0, 0.5]
    state = {params[0]: {"step": torch.tensor(4.0), "exp_avg": torch.zeros(2, 3), "exp_avg_sq": torch.zeros(3)}}
    left = _optim.adam(params[:1], state, 0.5, 0.9, 0.9, 0, 0, False, False, False)
    assert left[0] is params[0]
    assert state[params[0]]["step"].item() == 4.0
    assert _optim.sgd(params[4:5], {}, 0.5, 0, 0, 0, False, False) is None


def test_transposed_memory_is_updated_where_all_of_it_agrees():
    p = Parameter(torch.arange(6.0).reshape(2, 3).T)
    p.grad = torch.ones(2, 3).T
    assert _optim.sgd([p], {}, 1.0, 0, 0, 0, False, False) is None
    assert p.tolist() == [[-1.0, 2.0], [0.0, 3.0], [1.0, 4.0]]


@pytest.mark.parametrize("size", [3, 200000])
@pytest.mark.parametrize(("cls", "options"), CASES)
def test_a_parameter_that_comes_twice_is_updated_twice(cls, options, size):
    p, q = Parameter(torch.ones(size)), Parameter(torch.ones(size))
    p.grad = q.grad = torch.linspace(-1, 1, size)
    with pytest.warns(UserWarning, match="duplicate parameters"):
        cls([p, p], **options).step()
    opt = cls([q], **options)
    for _ in range(2):
        # In the first step both of SGD's updates find no momentum, as in PyTorch, which looks before it begins.
        (cls([q], **options) if cls is optim.SGD else opt).step()
    assert torch.equal(p.detach(), q.detach())


def test_results_that_wait_for_their_computation_see_the_old_parameter():
    p = Parameter(torch.ones(200000))
    with torch.no_grad():
        doubled = p * 2 + 1
    p.grad = torch.ones(200000)
    optim.SGD([p], lr=1.0).step()
    assert doubled.unique().tolist() == [3.0]
    assert p.unique().tolist() == [0.0]


def test_inference_tensors_are_refused_before_anything_changes():
    with torch.inference_mode():
        locked = torch.ones(2)
    p = Parameter(torch.ones(2))
    p.grad = torch.ones(2)
    state = {p: {"momentum_buffer": locked}}
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
        _optim.sgd([p], state, 1.0, 0.9, 0, 0, False, False)
    assert p.tolist() == [1.0, 1.0]
    assert locked.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: _optim.sgd([], {}, 1.0), "_optim.sgd takes 8 arguments, got 3"),
        (lambda: _optim.sgd([3], {}, 1.0, 0, 0, 0, False, False), "optimizer can only optimize Tensors"),
        (lambda: _optim.sgd(3, {}, 1.0, 0, 0, 0, False, False), "the parameters of an optimizer must be a list"),
        (lambda: _optim.sgd([], [], 1.0, 0, 0, 0, False, False), "the states must be a dict, not list"),
        (lambda: _optim.sgd([], {}, "x", 0, 0, 0, False, False), "must be real number"),
        (lambda: _optim.clear_grads([3]), "optimizer can only optimize Tensors"),
    ],
)
def test_wrong_calls(call, message):
    with pytest.raises(TypeError, match=message):
        call()


def test_empty_parameters():
    for cls, options in CASES:
        p = Parameter(torch.ones(0, 3))
        p.grad = torch.ones(0, 3)
        cls([p], **options).step()
        assert tuple(p.shape) == (0, 3)
