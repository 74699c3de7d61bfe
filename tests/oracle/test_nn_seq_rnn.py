"""Recurrent networks and packed sequences against PyTorch's."""

import itertools

import pytest

torch = pytest.importorskip("torch", reason="the oracle is installed by .ci/run only")

from nn_twin import Twins, assert_same, importable, same, same_error, same_module, same_warning  # noqa: E402

import rushlight  # noqa: E402

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

importable("nn.utils.rnn")
RNN = "nn.utils.rnn."
F64 = torch.float64


def randn(*shape, dtype=F64):
    return torch.randn(shape, dtype=dtype).requires_grad_()


def state(name, layers, batch, hidden, projected=None):
    h = randn(layers, batch, projected or hidden)
    return (h, randn(layers, batch, hidden)) if name == "LSTM" else h


KINDS = [
    ("RNN", {"nonlinearity": "tanh"}),
    ("RNN", {"nonlinearity": "relu"}),
    ("GRU", {}),
    ("LSTM", {}),
    ("LSTM", {"proj_size": 2}),
]


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("name,options", KINDS)
def test_sequences(name, options, layers, bidirectional):
    torch.manual_seed(0)
    for bias, batch_first in itertools.product([True, False], repeat=2):
        settings = {
            "num_layers": layers,
            "bias": bias,
            "batch_first": batch_first,
            "bidirectional": bidirectional,
            "dtype": F64,
            **options,
        }
        rows = layers * (2 if bidirectional else 1)
        x = randn(5, 3, 3)
        same_module(name, (3, 4), settings, [x])
        hx = state(name, rows, 5 if batch_first else 3, 4, options.get("proj_size"))
        same_module(name, (3, 4), settings, [x, hx])


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("lengths", [[5, 3, 1], [2, 2, 2], [1, 5, 3]])
@pytest.mark.parametrize("name,options", KINDS)
def test_packed(name, options, lengths, bidirectional):
    torch.manual_seed(0)

    def run(package, x, hx):
        package.manual_seed(0)
        settings = {"num_layers": 2, "bidirectional": bidirectional, "dtype": package.float64}
        module = getattr(package.nn, name)(3, 4, **settings, **options)
        rnn = package.nn.utils.rnn
        packed = rnn.pack_padded_sequence(x, lengths, enforce_sorted=False)
        y, last = module(packed, hx)
        return *rnn.pad_packed_sequence(y), y.data, last

    x, rows = randn(5, 3, 3), 4 if bidirectional else 2
    same(run, x, None)
    same(run, x, state(name, rows, 3, 4, options.get("proj_size")))


@pytest.mark.parametrize("name,options", KINDS)
def test_one_sample(name, options):
    same_module(name, (3, 4), {"num_layers": 2, "dtype": F64, **options}, [randn(5, 3)])
    hx = state(name, 2, 1, 4, options.get("proj_size"))
    one = tuple(s.detach()[:, 0].requires_grad_() for s in hx) if name == "LSTM" else hx.detach()[:, 0].requires_grad_()
    same_module(name, (3, 4), {"num_layers": 2, "dtype": F64, "batch_first": True, **options}, [randn(5, 3), one])


@pytest.mark.parametrize("name", ["RNN", "GRU", "LSTM"])
def test_empty_batch_and_float32(name):
    same_module(name, (3, 4), {}, [randn(5, 0, 3, dtype=torch.float32)])
    same_module(name, (3, 4), {"bidirectional": True}, [randn(7, 2, 3, dtype=torch.float32)])


@pytest.mark.parametrize("name", ["RNN", "GRU", "LSTM"])
def test_dropout_draws_the_same_numbers(name):
    options = {"num_layers": 3, "dropout": 0.5}
    same_module(name, (3, 4), options, [randn(5, 2, 3, dtype=torch.float32)], training=True, seed=3)
    same_module(name, (3, 4), options, [randn(5, 2, 3, dtype=torch.float32)], training=False)


@pytest.mark.parametrize("name,options", KINDS[:4])
def test_second_derivative(name, options):
    same_module(name, (2, 3), {"dtype": F64, "bidirectional": True, **options}, [randn(3, 2, 2)], second=True)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    "name,options", [("RNNCell", {}), ("RNNCell", {"nonlinearity": "relu"}), ("GRUCell", {}), ("LSTMCell", {})]
)
def test_cells(name, options, bias):
    for shape in [(5,), ()]:
        x, h = randn(*shape, 3), randn(*shape, 4)
        hx = (h, randn(*shape, 4)) if name == "LSTMCell" else h
        settings = {"bias": bias, "dtype": F64, **options}
        same_module(name, (3, 4), settings, [x], second=True)
        same_module(name, (3, 4), settings, [x, hx], second=True)


def test_constructor_refusals():
    for name in ("LSTM", "GRU", "RNN"):
        f = "nn." + name
        same_error(f, 2, 3, dropout=2.0, phrase="dropout should be a number in range [0, 1]")
        same_error(f, 2, 3, dropout=True, phrase="dropout should be a number in range [0, 1]")
        same_error(f, 2, 3.0, phrase="hidden_size should be of type int, got: float")
        same_error(f, 2.5, 3, phrase="input_size should be of type int, got: float")
        same_error(f, 2, 0, phrase="hidden_size must be greater than zero")
        same_error(f, 0, 2, phrase="input_size must be greater than zero")
        same_error(f, 2, 3, 0, phrase="num_layers must be greater than zero")
        same_error(f, 2, 3, bias=None, phrase="bias should be of type bool, got: NoneType")
        same_warning(f, 2, 3, dropout=0.5, phrase="expects num_layers greater than 1")
    same_error("nn.LSTM", 2, 3, proj_size=3, phrase="proj_size has to be smaller than hidden_size")
    same_error("nn.LSTM", 2, 3, proj_size=-1, phrase="proj_size should be a positive integer or zero")
    same_error("nn.GRU", 2, 3, proj_size=1, phrase="proj_size argument is only supported for LSTM")
    same_error("nn.RNN", 2, 3, proj_size=1, phrase="proj_size argument is only supported for LSTM")
    same_error("nn.RNN", 2, 3, nonlinearity="x", phrase="Unknown nonlinearity 'x'")
    same_error("nn.RNNBase", "x", 2, 3, phrase="Unrecognized RNN mode: x")


@pytest.mark.parametrize("name", ["RNN", "GRU", "LSTM"])
def test_input_refusals(name):
    def call(package, x, hx=None):
        return getattr(package.nn, name)(2, 3, 2)(x, hx)

    def h(*shape):
        return (torch.zeros(shape), torch.zeros(shape)) if name == "LSTM" else torch.zeros(shape)

    x = torch.zeros(4, 5, 2)
    hidden = "hidden[0]" if name == "LSTM" else "hidden"
    same_error(call, x[None], phrase=f"{name}: Expected input to be 2D or 3D, got 4D")
    same_error(call, torch.zeros(2), phrase=f"{name}: Expected input to be 2D or 3D, got 1D")
    same_error(call, torch.zeros(4, 5, 3), phrase="input.size(-1) must be equal to input_size. Expected 2, got 3")
    same_error(call, x, h(2, 4, 3), phrase=f"Expected {hidden} size (2, 5, 3), got [2, 4, 3]")
    same_error(call, x, h(2, 3), phrase="For batched 3-D input, hx")
    same_error(call, torch.zeros(4, 2), h(2, 1, 3), phrase="For unbatched 2-D input, hx")
    same_error(call, x.double(), phrase="RNN input dtype (torch.float64) does not match weight dtype (torch.float32)")
    same_error(call, torch.zeros(0, 5, 2), phrase="Expected sequence length to be larger than 0 in RNN")
    if name == "LSTM":
        same_error(call, x, (torch.zeros(2, 5, 3), torch.zeros(2, 5, 4)), phrase="Expected hidden[1] size (2, 5, 3)")


@pytest.mark.parametrize("name", ["RNNCell", "GRUCell", "LSTMCell"])
def test_cell_refusals(name):
    def call(package, x, hx=None):
        return getattr(package.nn, name)(2, 3)(x, hx)

    def h(*shape):
        return (torch.zeros(shape), torch.zeros(shape)) if name == "LSTMCell" else torch.zeros(shape)

    x = torch.zeros(4, 2)
    same_error(call, x[None], phrase=f"{name}: Expected input to be 1D or 2D, got 3D instead")
    same_error(call, torch.zeros(()), phrase=f"{name}: Expected input to be 1D or 2D, got 0D instead")
    same_error(call, torch.zeros(4, 3), phrase="input has inconsistent input_size: got 3 expected 2")
    same_error(call, x, h(5, 3), phrase="Input batch size 4 doesn't match hidden0 batch size 5")
    same_error(call, x, h(4, 4), phrase="hidden0 has inconsistent hidden_size: got 4, expected 3")
    same_error(call, x, h(1, 4, 3), phrase="to be 1D or 2D, got 3D instead")


def test_attributes_that_programs_use():
    ours, theirs = (p.nn.LSTM(2, 3, 2, bidirectional=True, proj_size=2) for p in (rushlight, torch))
    assert ours._flat_weights_names == theirs._flat_weights_names
    assert ours._all_weights == theirs._all_weights
    assert [[tuple(w.shape) for w in ws] for ws in ours.all_weights] == [
        [tuple(w.shape) for w in ws] for ws in theirs.all_weights
    ]
    ours.flatten_parameters()
    ours.weight_hh_l0 = rushlight.nn.Parameter(rushlight.zeros(12, 2))
    assert ours._flat_weights[1] is ours.weight_hh_l0


# sequences ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("lengths", [[4, 2, 1], [3, 3, 3], [4, 4, 1]])
def test_packing(lengths, batch_first):
    x = randn(3, 4, 2) if batch_first else randn(4, 3, 2)
    for given in (lengths, torch.tensor(lengths), torch.tensor(lengths, dtype=torch.int32)):
        same(RNN + "pack_padded_sequence", x, given, batch_first)
    same(RNN + "pack_padded_sequence", x, lengths[::-1], batch_first, enforce_sorted=False)

    def round_trip(package, x, total, value):
        rnn = package.nn.utils.rnn
        packed = rnn.pack_padded_sequence(x, lengths[::-1], batch_first, enforce_sorted=False)
        return rnn.pad_packed_sequence(packed, batch_first, value, total)

    for total in (None, 4, 6):
        same(round_trip, x, total, 0.0)
        same(round_trip, x, total, -1.5)
    same_error(round_trip, x, 1, 0.0, phrase="Expected total_length to be at least the length of the longest")


def test_packing_refusals():
    f, x = RNN + "pack_padded_sequence", torch.zeros(4, 3, 2)
    same_error(f, x, [1, 2, 1], phrase="`lengths` array must be sorted in decreasing order when `enforce_sorted`")
    same_error(f, x, [2, 2], phrase="but got 2 (batch_size=3)")
    same_error(f, x, [2, 2, 0], phrase="Length of all samples has to be greater than 0")
    same_error(f, x, torch.tensor([[2, 2, 1]]), phrase="'lengths' argument should be a 1D CPU int64 tensor")
    same_error(f, torch.zeros(4, 0, 2), [], phrase="Cannot pack empty tensors.")


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("side", ["right", "left"])
def test_padding(side, batch_first):
    parts = [randn(3, 2), randn(1, 2), randn(4, 2)]
    options = {"batch_first": batch_first, "padding_side": side}
    same(RNN + "pad_sequence", parts, padding_value=1.5, **options)
    same(RNN + "pad_sequence", [p.detach()[:, 0] for p in parts], **options)
    same(RNN + "pad_sequence", [torch.tensor([1, 2]), torch.tensor([3])], padding_value=-1, **options)
    same(RNN + "pad_sequence", [torch.ones(2), torch.ones(3, dtype=F64)], **options)
    same(RNN + "pad_sequence", randn(3, 2), **options)
    same(RNN + "pad_sequence", [torch.ones(0, 2), torch.ones(3, 2)], **options)


def test_padding_refusals():
    f = RNN + "pad_sequence"
    same_error(f, [], phrase="received an empty list of sequences")
    same_error(
        f, [torch.ones(2)], padding_side="x", phrase="Expected padding_side to be one of left or right, but got x."
    )
    same_error(f, [torch.ones(2, 3), torch.ones(2, 4)])
    same_error(f, [torch.ones(2), 1], phrase="expected Tensor as element 1 in argument 0, but got int")
    same_error(f, "abc", phrase="expected Tensor as element 0 in argument 0, but got str")


def test_lists_of_sequences():
    parts = [randn(3, 2), randn(1, 2), randn(4, 2)]
    same(RNN + "pack_sequence", parts, enforce_sorted=False)
    same(RNN + "pack_sequence", sorted(parts, key=len, reverse=True))
    same_error(RNN + "pack_sequence", parts, phrase="must be sorted in decreasing order")

    def unpad(package, x, lengths):
        return package.nn.utils.rnn.unpad_sequence(x * 1, lengths)  # PyTorch transposes its argument in place

    same(unpad, randn(4, 3, 2), torch.tensor([3, 1, 4]))
    same(RNN + "unpad_sequence", randn(3, 4, 2), torch.tensor([3, 1, 4]), batch_first=True)
    same(RNN + "invert_permutation", torch.tensor([2, 0, 1]))

    def round_trip(package, *parts):
        rnn = package.nn.utils.rnn
        return rnn.unpack_sequence(rnn.pack_sequence(list(parts), enforce_sorted=False))

    same(round_trip, *parts)


def test_packed_sequence_type():
    ours, theirs = (p.nn.utils.rnn.PackedSequence for p in (rushlight, torch))
    data, sizes, order = torch.ones(3), torch.tensor([2, 1]), torch.tensor([1, 0])
    twins = Twins()
    for args in ((data, sizes), (data, sizes, order), (data, sizes, None, order)):
        a, b = ours(*twins(args)), theirs(*args)
        assert [x is None for x in a] == [x is None for x in b]
        for x, y in zip(a, b, strict=True):
            if y is not None:
                assert_same(x, y)
    a, b = ours(twins(data), twins(sizes)), theirs(data, sizes)
    assert a._fields == b._fields
    assert a.to(rushlight.float32) is a
    for method in ("double", "float", "half", "long", "int", "short", "char", "byte"):
        assert_same(getattr(a, method)().data, getattr(b, method)().data, method)
    assert a.cpu().is_cuda is False
    assert a.is_pinned() is False
    with pytest.raises(AssertionError, match="list or tuple of length 2"):
        ours(twins(data))
    assert isinstance(ours((twins(data), twins(sizes))), tuple)
