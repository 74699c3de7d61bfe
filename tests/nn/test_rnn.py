"""Recurrent networks against their equations in NumPy, step by step; packed sequences."""

import copy
import itertools
import math
import pickle

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.autograd import gradcheck, gradgradcheck
from rushlight.nn.utils.rnn import (
    PackedSequence,
    invert_permutation,
    pack_padded_sequence,
    pack_sequence,
    pad_packed_sequence,
    pad_sequence,
    unpack_sequence,
    unpad_sequence,
)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def step(mode, x, state, w):
    """One step of one sample; `w` holds w_ih, w_hh, b_ih, b_hh and maybe w_hr."""
    h = state[0]
    given, kept = w[0] @ x + w[2], w[1] @ h + w[3]
    if mode == "LSTM":
        i, f, g, o = np.split(given + kept, 4)
        c = sigmoid(f) * state[1] + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        return [w[4] @ h if len(w) > 4 else h, c]
    if mode == "GRU":
        (a, b, n), (p, q, m) = np.split(given, 3), np.split(kept, 3)
        z = sigmoid(b + q)
        return [(1 - z) * np.tanh(n + sigmoid(a + p) * m) + z * h]
    return [np.tanh(given + kept) if mode == "RNN_TANH" else np.maximum(given + kept, 0)]


def network(module, x, states):
    """All layers over one sample's sequence: outputs and last states."""
    weights = [[w.detach().numpy() for w in ws] for ws in module.all_weights]
    if not module.bias:
        weights = [[*w[:2], np.zeros(len(w[0])), np.zeros(len(w[0])), *w[2:]] for w in weights]
    directions = 2 if module.bidirectional else 1
    last = []
    for layer in range(module.num_layers):
        outputs = []
        for d in range(directions):
            k = layer * directions + d
            state, seen = [s[k] for s in states], []
            for row in x[::-1] if d else x:
                state = step(module.mode, row, state, weights[k])
                seen.append(state[0])
            outputs.append(np.array(seen[::-1] if d else seen))
            last.append(state)
        x = np.concatenate(outputs, 1)
    return x, [np.array(s) for s in zip(*last, strict=True)]


def build(name, **options):
    torch.manual_seed(0)
    return getattr(nn, name)(3, 4, dtype=torch.float64, **options)


def draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def states_of(module, batch, seed=1):
    rows = module.num_layers * (2 if module.bidirectional else 1)
    shapes = [(rows, batch, module.proj_size or 4)] + [(rows, batch, 4)] * (module.mode == "LSTM")
    return [draw(*s, seed=seed + i) for i, s in enumerate(shapes)]


def given(states):
    tensors = tuple(torch.tensor(s) for s in states)
    return tensors if len(tensors) == 2 else tensors[0]


def listed(state):
    return list(state) if isinstance(state, tuple) else [state]


KINDS = [("RNN", {}), ("RNN", {"nonlinearity": "relu"}), ("GRU", {}), ("LSTM", {}), ("LSTM", {"proj_size": 2})]


@pytest.mark.parametrize("layers,bidirectional,bias", list(itertools.product([1, 2], [False, True], [True, False])))
@pytest.mark.parametrize("name,options", KINDS)
def test_equations(name, options, layers, bidirectional, bias):
    module = build(name, num_layers=layers, bidirectional=bidirectional, bias=bias, **options)
    x, states = draw(5, 2, 3), states_of(module, 2)
    y, last = module(torch.tensor(x), given(states))
    for n in range(2):
        expected, ends = network(module, x[:, n], [s[:, n] for s in states])
        np.testing.assert_allclose(y.detach().numpy()[:, n], expected)
        for found, end in zip(listed(last), ends, strict=True):
            np.testing.assert_allclose(found.detach().numpy()[:, n], end)


@pytest.mark.parametrize("name,options", KINDS)
def test_layouts_agree(name, options):
    x = torch.tensor(draw(5, 2, 3))
    module, first = build(name, num_layers=2, **options), build(name, num_layers=2, batch_first=True, **options)
    y, last = module(x)
    z, end = first(x.transpose(0, 1))
    np.testing.assert_array_equal(z.transpose(0, 1).detach().numpy(), y.detach().numpy())
    for a, b in zip(listed(last), listed(end), strict=True):
        np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())
    one, state = module(x[:, 0])
    np.testing.assert_allclose(one.detach().numpy(), y[:, 0].detach().numpy())
    assert all(a.dim() == 2 for a in listed(state))


@pytest.mark.parametrize("lengths", [[5, 3, 1], [2, 2, 2], [1, 5, 3]])
@pytest.mark.parametrize("name,options", KINDS)
def test_packed_is_each_sample_alone(name, options, lengths):
    module = build(name, num_layers=2, bidirectional=True, **options)
    x, states = draw(5, 3, 3), states_of(module, 3)
    packed = pack_padded_sequence(torch.tensor(x), lengths, enforce_sorted=False)
    y, last = module(packed, given(states))
    padded, found = pad_packed_sequence(y, padding_value=9.0)
    assert found.tolist() == lengths
    for n, length in enumerate(lengths):
        expected, ends = network(module, x[:length, n], [s[:, n] for s in states])
        np.testing.assert_allclose(padded.detach().numpy()[:length, n], expected)
        assert (padded[length:, n] == 9.0).all()
        for state, end in zip(listed(last), ends, strict=True):
            np.testing.assert_allclose(state.detach().numpy()[:, n], end)


@pytest.mark.parametrize("name,options", KINDS)
def test_derivatives(name, options):
    module = build(name, bidirectional=True, **options)
    x = torch.tensor(draw(3, 2, 3), requires_grad=True)
    states = [torch.tensor(s, requires_grad=True) for s in states_of(module, 2)]
    weights = list(module.parameters())
    names = [n for n, _ in module.named_parameters()]

    def run(x, *rest):
        hx = rest[:2] if len(states) == 2 else rest[0]
        given = dict(zip(names, rest[len(states) :], strict=True))
        y, last = torch.func.functional_call(module, given, (x, tuple(hx) if len(states) == 2 else hx))
        return y, *listed(last)

    assert gradcheck(run, (x, *states, *(w.detach().requires_grad_() for w in weights)))


def test_initial_values_and_names():
    module = build("LSTM", num_layers=2, bidirectional=True, proj_size=2)
    names = [n for n, _ in module.named_parameters()]
    assert names[:5] == ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0", "weight_hr_l0"]
    assert names[5] == "weight_ih_l0_reverse"
    assert module.weight_ih_l1.shape == (16, 4)
    assert module.weight_hh_l1_reverse.shape == (16, 2)
    bound = 1 / math.sqrt(4)
    assert all(w.abs().max().item() <= bound for w in module.parameters())
    assert repr(module) == "LSTM(3, 4, proj_size=2, num_layers=2, bidirectional=True)"
    assert repr(nn.GRUCell(2, 3, bias=False)) == "GRUCell(2, 3, bias=False)"


def test_dropout_between_layers_in_training_only():
    module = build("GRU", num_layers=2, dropout=1.0)
    x = torch.tensor(draw(4, 2, 3))
    second = build("GRU", num_layers=1)
    assert not torch.equal(module(x)[0], module.eval()(x)[0])
    module.train()
    # the second layer sees zeros
    second.load_state_dict(
        {k.replace("l1", "l0"): v for k, v in module.state_dict().items() if "l1" in k}
        | {"weight_ih_l0": torch.zeros(12, 3)}
    )
    np.testing.assert_allclose(module(x)[0].detach().numpy(), second(x)[0].detach().numpy())
    with pytest.warns(UserWarning, match="num_layers greater than 1"):
        nn.LSTM(2, 3, dropout=0.5)


@pytest.mark.parametrize("name", ["RNN", "GRU", "LSTM"])
def test_refusals(name):
    module = getattr(nn, name)(2, 3, 2)
    state = (lambda *s: (torch.zeros(s), torch.zeros(s))) if name == "LSTM" else (lambda *s: torch.zeros(s))
    x = torch.zeros(4, 5, 2)
    with pytest.raises(ValueError, match=f"{name}: Expected input to be 2D or 3D, got 4D"):
        module(x[None])
    with pytest.raises(RuntimeError, match=r"must be equal to input_size. Expected 2, got 3"):
        module(torch.zeros(4, 5, 3))
    with pytest.raises(RuntimeError, match=r"size \(2, 5, 3\), got \[2, 4, 3\]"):
        module(x, state(2, 4, 3))
    with pytest.raises(RuntimeError, match="For batched 3-D input"):
        module(x, state(2, 3))
    with pytest.raises(ValueError, match="does not match weight dtype"):
        module(x.double())
    with pytest.raises(RuntimeError, match="sequence length to be larger than 0"):
        module(x[:0])
    with pytest.raises(RuntimeError, match=r"size \(2, 3, 3\), got"):
        module(pack_padded_sequence(x[:, :3], [4, 2, 1]), state(2, 2, 3))


@pytest.mark.parametrize(
    "name,options", [("RNNCell", {}), ("RNNCell", {"nonlinearity": "relu"}), ("GRUCell", {}), ("LSTMCell", {})]
)
def test_cells_are_one_step(name, options):
    torch.manual_seed(0)
    cell = getattr(nn, name)(3, 4, dtype=torch.float64, **options)
    mode = {"GRUCell": "GRU", "LSTMCell": "LSTM"}.get(name, "RNN_" + options.get("nonlinearity", "tanh").upper())
    x, states = draw(2, 3), [draw(2, 4, seed=1), draw(2, 4, seed=2)][: 2 if mode == "LSTM" else 1]
    found = listed(cell(torch.tensor(x), given(states)))
    weights = [w.detach().numpy() for w in cell.parameters()]
    for n in range(2):
        for a, b in zip(found, step(mode, x[n], [s[n] for s in states], weights), strict=True):
            np.testing.assert_allclose(a.detach().numpy()[n], b)
    alone = listed(cell(torch.tensor(x[0]), given([s[0] for s in states])))
    np.testing.assert_allclose(alone[0].detach().numpy(), found[0][0].detach().numpy())
    zeros = listed(cell(torch.tensor(x)))
    np.testing.assert_allclose(zeros[0][0].detach().numpy(), step(mode, x[0], [np.zeros(4)] * 2, weights)[0])
    with pytest.raises(RuntimeError, match="inconsistent input_size: got 2 expected 3"):
        cell(torch.zeros(2, 2, dtype=torch.float64))
    with pytest.raises(ValueError, match=f"{name}: Expected input to be 1D or 2D, got 3D"):
        cell(torch.zeros(1, 2, 3, dtype=torch.float64))


def test_copies_and_replaced_weights():
    module = build("LSTM")
    x = torch.tensor(draw(3, 2, 3))
    y = module(x)[0]
    for other in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert torch.equal(other(x)[0], y)
    module.weight_ih_l0 = nn.Parameter(torch.zeros(16, 3, dtype=torch.float64))
    assert not torch.equal(module(x)[0], y)
    assert module._flat_weights[0] is module.weight_ih_l0
    half = copy.deepcopy(module).float()
    assert half(x.float())[0].dtype is torch.float32


# sequences ------------------------------------------------------------------------------------------------------------


def test_packing_order():
    x = torch.arange(12.0).reshape(4, 3)
    packed = pack_padded_sequence(x, [4, 2, 1])
    assert packed.data.tolist() == [0, 1, 2, 3, 4, 6, 9]
    assert packed.batch_sizes.tolist() == [3, 2, 1, 1]
    assert packed.sorted_indices is None
    unsorted = pack_padded_sequence(x, [1, 4, 2], enforce_sorted=False)
    assert unsorted.data.tolist() == [1, 2, 0, 4, 5, 7, 10]
    assert unsorted.sorted_indices.tolist() == [1, 2, 0]
    assert unsorted.unsorted_indices.tolist() == [2, 0, 1]


def test_packing_derivative():
    x = torch.tensor(draw(4, 3, 2), requires_grad=True)

    def round_trip(x):
        return pad_packed_sequence(pack_padded_sequence(x, [1, 4, 2], enforce_sorted=False), True)[0]

    assert gradcheck(round_trip, x)
    y = round_trip(x)
    assert y.shape == (3, 4, 2)
    y.sum().backward()
    assert x.grad[..., 0].tolist() == [[1, 1, 1], [0, 1, 1], [0, 1, 0], [0, 1, 0]]


def test_padding_sides():
    parts = [torch.tensor([1, 2, 3]), torch.tensor([4])]
    assert pad_sequence(parts, True, -1).tolist() == [[1, 2, 3], [4, -1, -1]]
    assert pad_sequence(parts, True, -1, "left").tolist() == [[1, 2, 3], [-1, -1, 4]]
    assert pad_sequence(parts).tolist() == [[1, 4], [2, 0], [3, 0]]
    back = unpad_sequence(pad_sequence(parts), torch.tensor([3, 1]))
    assert [p.tolist() for p in back] == [[1, 2, 3], [4]]
    x = [torch.tensor(draw(n, 2), requires_grad=True) for n in (3, 1, 2)]
    assert gradcheck(lambda *p: pad_sequence(list(p), padding_side="left"), x)


def test_lists_there_and_back():
    parts = [torch.tensor(draw(n, 2)) for n in (2, 4, 1)]
    back = unpack_sequence(pack_sequence(parts, enforce_sorted=False))
    assert all(torch.equal(a, b) for a, b in zip(parts, back, strict=True))
    with pytest.raises(RuntimeError, match="must be sorted in decreasing order"):
        pack_sequence(parts)


def test_packed_sequence():
    packed = pack_padded_sequence(torch.ones(4, 3, 2), [4, 2, 1])
    assert packed.to(torch.float32) is packed
    assert packed.double().data.dtype is torch.float64
    assert packed.long().batch_sizes is packed.batch_sizes
    assert not packed.is_cuda
    assert len(packed) == 4
    assert isinstance(copy.deepcopy(packed), PackedSequence)
    with pytest.raises(AssertionError, match="list or tuple of length 2"):
        PackedSequence(torch.ones(3))
    assert PackedSequence((torch.ones(3), torch.tensor([2, 1]))).batch_sizes.tolist() == [2, 1]
    assert invert_permutation(None) is None
    assert invert_permutation(torch.tensor([2, 0, 1])).tolist() == [1, 2, 0]


def test_sequence_refusals():
    x = torch.zeros(4, 3, 2)
    for lengths, phrase in [
        ([1, 2, 1], "must be sorted in decreasing order"),
        ([2, 2], r"got 2 \(batch_size=3\)"),
        ([2, 1, 0], "has to be greater than 0"),
        ([5, 1, 1], "at most 4"),
        ([[2, 2, 1]], "1D CPU int64 tensor"),
    ]:
        with pytest.raises(RuntimeError, match=phrase):
            pack_padded_sequence(x, lengths)
    packed = pack_padded_sequence(x, [4, 2, 1])
    with pytest.raises(ValueError, match="total_length=3 and max sequence length being 4"):
        pad_packed_sequence(packed, total_length=3)
    assert pad_packed_sequence(packed, total_length=6)[0].shape == (6, 3, 2)
    with pytest.raises(RuntimeError, match="empty list of sequences"):
        pad_sequence([])
    with pytest.raises(TypeError, match="expected Tensor as element 1"):
        pad_sequence([torch.ones(1), 2])


@pytest.mark.parametrize("name", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("packed", [False, True])
def test_second_derivatives(name, packed):
    """They come from the same equations in recorded operators, the first ones from the kernel."""
    module = build(name, bidirectional=True)
    x = torch.tensor(draw(3, 2, 3), requires_grad=True)
    states = [torch.tensor(s, requires_grad=True) for s in states_of(module, 2)]
    weights = list(module.parameters())

    def run(x, *rest):
        hx = tuple(rest[: len(states)]) if name == "LSTM" else rest[0]
        own = dict(zip([n for n, _ in module.named_parameters()], rest[len(states) :], strict=True))
        data = pack_padded_sequence(x, [3, 2]) if packed else x
        output, last = torch.func.functional_call(module, own, (data, hx))
        return (output.data if packed else output, *(last if name == "LSTM" else (last,)))

    assert gradcheck(run, (x, *states, *weights), fast_mode=True)
    assert gradgradcheck(run, (x, *states, *weights), fast_mode=True)


def test_states_that_depend_on_the_input_count_apart():
    module = build("GRU")
    x = torch.tensor(draw(2, 2, 3), requires_grad=True)

    def run(x):
        return module(x, x.sum(0).sum(-1, keepdim=True).expand(2, 4).unsqueeze(0))[0]

    assert gradgradcheck(run, (x,))


@pytest.mark.parametrize("name", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("batch", [1, 2, 13, 40])
def test_same_bits_on_any_number_of_threads(name, batch):
    torch.manual_seed(0)
    module = getattr(nn, name)(33, 70)
    x = torch.randn(40, batch, 33)
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            h = x.clone().requires_grad_()
            output, _ = module(h)
            found.append([output.detach()])
    finally:
        torch.set_num_threads(before)
    assert torch.equal(found[0][0], found[1][0]) and torch.equal(found[0][0], found[2][0])


@pytest.mark.parametrize("hidden", [1, 5, 16, 33])
@pytest.mark.parametrize("dtype, bound", [(torch.float32, 2e-5), (torch.float64, 1e-12)])
def test_widths_that_fill_no_panel(hidden, dtype, bound):
    torch.manual_seed(0)
    module = nn.LSTM(7, hidden, dtype=dtype)
    x = draw(4, 9, 7)
    expected = [network(module, x[:, n], [np.zeros((1, hidden))] * 2)[0] for n in range(9)]
    output, _ = module(torch.tensor(x, dtype=dtype))
    np.testing.assert_allclose(output.detach().numpy(), np.stack(expected, 1), rtol=bound, atol=bound)


def test_expanded_and_strided_gradients():
    module = build("LSTM", batch_first=True)
    x = torch.tensor(draw(2, 3, 3), requires_grad=True)
    weights = torch.tensor(draw(2, 3, 4))
    for factor in (
        torch.ones(1, dtype=torch.float64).expand(2, 3, 4),
        weights,
        weights.transpose(0, 1).clone().transpose(0, 1),
    ):
        (g,) = torch.autograd.grad(module(x)[0], x, factor)
        (expected,) = torch.autograd.grad((module(x)[0] * factor.clone()).sum(), x)
        assert torch.allclose(g, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name, gates", [("lstm", 4), ("gru", 3), ("rnn_tanh", 1), ("rnn_relu", 1)])
def test_cells_take_one_bias_alone(name, gates):
    cell = getattr(torch, f"{name}_cell")
    x, h = torch.tensor(draw(2, 3)), torch.tensor(draw(2, 4, seed=1))
    hx = (h, h) if name == "lstm" else h
    w_ih, w_hh, bias = (torch.tensor(draw(4 * gates, *n, seed=2)) for n in ((3,), (4,), ()))
    zeros = torch.zeros_like(bias)
    for one, other in (((bias, None), (bias, zeros)), ((None, bias), (zeros, bias))):
        found, expected = cell(x, hx, w_ih, w_hh, *one), cell(x, hx, w_ih, w_hh, *other)
        assert torch.equal(
            torch.stack(found if name == "lstm" else (found,)), torch.stack(expected if name == "lstm" else (expected,))
        )
