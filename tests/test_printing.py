"""Fixed texts of tensors; tests/oracle/test_printing_oracle.py compares random ones with PyTorch."""

import math

import pytest

import rushlight as torch
from rushlight import _tensor_str

NAN, INF = math.nan, math.inf


@pytest.fixture(autouse=True)
def default_options():
    torch.set_printoptions(profile="default")
    yield
    torch.set_printoptions(profile="default")


def lines(*parts):
    return "\n".join(parts)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([], "tensor([])"),
        ([1.5, 2.25], "tensor([1.5000, 2.2500])"),
        ([1.0, -2.0], "tensor([ 1., -2.])"),
        ([0.0, -0.0], "tensor([0., -0.])"),
        ([NAN], "tensor([nan])"),
        ([INF, 1.0], "tensor([inf, 1.])"),
        ([NAN, INF, -INF, 1.5], "tensor([   nan,    inf,   -inf, 1.5000])"),
        ([1e10, NAN], "tensor([1.0000e+10,        nan])"),
        ([1.0, 1000.0], "tensor([   1., 1000.])"),
        ([1.0, 1001.0], "tensor([1.0000e+00, 1.0010e+03])"),
        ([0.5, 501.0], "tensor([5.0000e-01, 5.0100e+02])"),
        ([1e8], "tensor([100000000.])"),
        ([1e9], "tensor([1.0000e+09])"),
        ([0.5, 1e-5], "tensor([5.0000e-01, 1.0000e-05])"),
        ([1e-40], "tensor([9.9999e-41])"),
        (7.0, "tensor(7.)"),
        (-INF, "tensor(-inf)"),
        (1e-8, "tensor(1.0000e-08)"),
    ],
)
def test_floats_are_whole_fixed_or_scientific(values, text):
    assert repr(torch.tensor(values)) == text


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (5, "tensor(5)"),
        ([1, -20, 300], "tensor([  1, -20, 300])"),
        ([2**63 - 1, -(2**63)], "tensor([ 9223372036854775807, -9223372036854775808])"),
        (True, "tensor(True)"),
        ([True, False], "tensor([ True, False])"),
        ([True, True], "tensor([True, True])"),
    ],
)
def test_integers_and_booleans_are_right_aligned(values, text):
    assert repr(torch.tensor(values)) == text


@pytest.mark.parametrize("name", ["uint8", "int8", "int16", "int32"])
def test_small_integers_name_their_dtype(name):
    assert repr(torch.tensor([1, 2, 100], dtype=getattr(torch, name))) == f"tensor([  1,   2, 100], dtype=torch.{name})"


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (1 + 2j, "tensor(1.+2.j)"),
        (complex(NAN, -INF), "tensor(nan-infj)"),
        ([1 + 2j, 1.5 - 200j], "tensor([1.0000+2.j, 1.5000-200.j])"),
        ([1e10 + 2j, 0.5 - 0.25j], "tensor([1.0000e+10+2.0000j, 5.0000e-01-0.2500j])"),
        ([complex(0, INF), 1e5 + 3j], "tensor([     0.+infj, 100000.+3.j])"),
        ([complex(1, -0.0), complex(2, NAN)], "tensor([1.-0.j, 2.+nanj])"),
        ([1.5 + 1e10j, complex(NAN, 0)], "tensor([1.5000+1.0000e+10j,    nan+0.0000e+00j])"),
    ],
)
def test_complex_parts_have_formats_of_their_own(values, text):
    assert repr(torch.tensor(values)) == text


@pytest.mark.parametrize(
    ("values", "dtype", "text"),
    [
        ([65504.0, 1e-7], "float16", "tensor([6.5504e+04, 1.1921e-07], dtype=torch.float16)"),
        ([1.1, 2.7], "bfloat16", "tensor([1.1016, 2.7031], dtype=torch.bfloat16)"),
        (-1.1, "bfloat16", "tensor(-1.1016, dtype=torch.bfloat16)"),
        ([NAN, -INF, 0.0], "bfloat16", "tensor([nan, -inf, 0.], dtype=torch.bfloat16)"),
        ([1e300, 1.0], "float64", "tensor([1.0000e+300,  1.0000e+00], dtype=torch.float64)"),
        ([1j], "complex128", "tensor([0.+1.j], dtype=torch.complex128)"),
    ],
)
def test_other_float_types(values, dtype, text):
    assert repr(torch.tensor(values, dtype=getattr(torch, dtype))) == text


def test_strided_bfloat16_is_read_through_its_strides():
    x = torch.arange(6).reshape(2, 3).to(torch.bfloat16).t()
    assert repr(x) == lines("tensor([[0., 3.],", "        [1., 4.],", "        [2., 5.]], dtype=torch.bfloat16)")


def test_dtype_suffix_follows_the_default_dtype():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        assert repr(torch.tensor([1.0])) == "tensor([1.])"
        assert repr(torch.tensor([1.0], dtype=torch.float32)) == "tensor([1.], dtype=torch.float32)"
        assert repr(torch.tensor([1j])) == "tensor([0.+1.j])"
        assert repr(torch.tensor([1j], dtype=torch.complex64)) == "tensor([0.+1.j], dtype=torch.complex64)"
    finally:
        torch.set_default_dtype(before)


@pytest.mark.parametrize(
    ("shape", "dtype", "text"),
    [
        ((0,), "float32", "tensor([])"),
        ((0,), "int64", "tensor([], dtype=torch.int64)"),
        ((0,), "bool", "tensor([], dtype=torch.bool)"),
        ((0, 3), "float32", "tensor([], size=(0, 3))"),
        ((2, 0, 3), "int64", "tensor([], size=(2, 0, 3), dtype=torch.int64)"),
    ],
)
def test_empty_tensors_show_size_and_dtype(shape, dtype, text):
    assert repr(torch.empty(shape, dtype=getattr(torch, dtype))) == text


def test_nested_brackets_are_separated_by_one_blank_line_more_per_dimension():
    assert repr(torch.arange(8.0).reshape(2, 2, 2, 1)) == lines(
        "tensor([[[[0.],",
        "          [1.]],",
        "",
        "         [[2.],",
        "          [3.]]],",
        "",
        "",
        "        [[[4.],",
        "          [5.]],",
        "",
        "         [[6.],",
        "          [7.]]]])",
    )


def test_long_vectors_are_wrapped_at_the_line_width():
    assert repr(torch.arange(20.0)) == lines(
        "tensor([ 0.,  1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10., 11., 12., 13.,",
        "        14., 15., 16., 17., 18., 19.])",
    )


def test_more_elements_than_the_threshold_are_summarised():
    assert repr(torch.arange(1000)).count(",") == 999
    assert repr(torch.arange(1001)) == "tensor([   0,    1,    2,  ...,  998,  999, 1000])"
    assert repr(torch.zeros(1001, 2)) == lines(
        "tensor([[0., 0.],",
        "        [0., 0.],",
        "        [0., 0.],",
        "        ...,",
        "        [0., 0.],",
        "        [0., 0.],",
        "        [0., 0.]])",
    )


def test_hidden_elements_do_not_choose_the_format():
    x = torch.zeros(5001)
    x[2500] = 1.5e9
    assert repr(x) == "tensor([0., 0., 0.,  ..., 0., 0., 0.])"


def test_edgeitems_zero_hides_everything_and_shows_the_size():
    torch.set_printoptions(edgeitems=0, threshold=2)
    assert repr(torch.zeros(3, 4)) == "tensor([...], size=(3, 4))"
    assert repr(torch.zeros(2)) == "tensor([0., 0.], size=(2,))"
    assert repr(torch.tensor(7)) == "tensor(7, size=())"


def test_requires_grad_and_grad_fn():
    x = torch.ones(2, requires_grad=True)
    assert repr(x) == "tensor([1., 1.], requires_grad=True)"
    assert repr(x * 2) == "tensor([2., 2.], grad_fn=<MulBackward0>)"
    assert repr(x.detach()) == "tensor([1., 1.])"
    assert repr(torch.empty(0, 2, requires_grad=True)) == "tensor([], size=(0, 2), requires_grad=True)"
    with torch.no_grad():
        assert repr(x) == "tensor([1., 1.], requires_grad=True)"


def test_grad_fn_of_copies_into_views_and_of_user_functions():
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    base = torch.zeros(2, requires_grad=True) * 1
    base[0] = 2
    assert repr(base) == "tensor([2., 0.], grad_fn=<CopySlices>)"
    assert repr(Double.apply(base)) == "tensor([4., 0.], grad_fn=<DoubleBackward>)"


def test_view_with_a_lost_history_is_printed_as_invalid():
    first, _ = (torch.zeros(4, requires_grad=True) * 1).split(2)
    with torch.no_grad():
        first.mul_(2)
    assert repr(first) == "tensor([0., 0.], grad_fn=<Invalid>)"


def test_suffixes_that_do_not_fit_start_a_line():
    x = torch.ones(3, dtype=torch.float64, requires_grad=True) * 2
    torch.set_printoptions(linewidth=48)
    assert repr(x) == lines("tensor([2., 2., 2.], dtype=torch.float64,", "       grad_fn=<MulBackward0>)")
    torch.set_printoptions(linewidth=20)
    assert repr(x) == lines("tensor([2., 2., 2.],", "       dtype=torch.float64,", "       grad_fn=<MulBackward0>)")


def test_printing_records_nothing_and_keeps_the_tensor():
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    version, node = y._version, y.grad_fn
    repr(y)
    assert (y._version, y.grad_fn) == (version, node)
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


def test_parameters_announce_themselves():
    parameter = torch.nn.Parameter(torch.zeros(2))
    assert repr(parameter) == "Parameter containing:\ntensor([0., 0.], requires_grad=True)"


def test_subclasses_are_printed_by_their_name():
    class Point(torch.Tensor):
        pass

    assert repr(torch.ones(2, 2).as_subclass(Point)) == lines("Point([[1., 1.],", "       [1., 1.]])")


def test_contents_may_be_given():
    assert torch.ones(2).__repr__(tensor_contents="here") == "tensor(here)"
    assert torch.ones(2, dtype=torch.int16).__repr__(tensor_contents="here") == "tensor(here, dtype=torch.int16)"


def test_conjugated_views_show_their_values():
    assert repr(torch.tensor([1 + 2j, 3 - 1j]).conj()) == "tensor([1.-2.j, 3.+1.j])"


def test_tangents_are_printed():
    forward_ad = torch.autograd.forward_ad
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(torch.ones(2), torch.tensor([3.0, 4.0]))
        assert repr(dual) == "tensor([1., 1.], tangent=tensor([3., 4.]))"


def test_tensors_inside_transforms():
    inner = _tensor_str.transform_str("BatchedTensor", 1, repr(torch.ones(2, 2)), batch_dim=0)
    assert inner == lines("BatchedTensor(lvl=1, bdim=0, value=", "    tensor([[1., 1.],", "            [1., 1.]])", ")")
    assert _tensor_str.transform_str("GradTrackingTensor", 2, inner) == lines(
        "GradTrackingTensor(lvl=2, value=",
        "    BatchedTensor(lvl=1, bdim=0, value=",
        "        tensor([[1., 1.],",
        "                [1., 1.]])",
        "    )",
        ")",
    )


# --- options --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"precision": 2}, "tensor([ 1.50, -2.25])"),
        ({"precision": 0}, "tensor([ 2, -2])"),
        ({"sci_mode": True}, "tensor([ 1.5000e+00, -2.2500e+00])"),
        ({"sci_mode": True, "precision": 1}, "tensor([ 1.5e+00, -2.2e+00])"),
        ({"linewidth": 10}, "tensor([ 1.5000,\n        -2.2500])"),
        ({"threshold": 1, "edgeitems": 1}, "tensor([ 1.5000, -2.2500])"),
        ({"profile": "short"}, "tensor([ 1.50, -2.25])"),
        ({"profile": "short", "precision": 3}, "tensor([ 1.500, -2.250])"),
    ],
)
def test_options_change_the_text(options, text):
    torch.set_printoptions(**options)
    assert repr(torch.tensor([1.5, -2.25])) == text


def test_scientific_mode_may_be_refused():
    torch.set_printoptions(sci_mode=False)
    assert repr(torch.tensor([1.5, -1e5])) == "tensor([      1.5000, -100000.0000])"


def test_scientific_mode_leaves_zeros_and_integers_alone():
    torch.set_printoptions(sci_mode=True)
    assert repr(torch.zeros(2)) == "tensor([0., 0.])"
    assert repr(torch.tensor([3.0])) == "tensor([3.0000e+00])"
    assert repr(torch.tensor([3])) == "tensor([3])"


def test_profiles():
    torch.set_printoptions(profile="full")
    assert _tensor_str.get_printoptions() == {
        "precision": 4,
        "threshold": INF,
        "edgeitems": 3,
        "linewidth": 80,
        "sci_mode": None,
    }
    assert "..." not in repr(torch.zeros(1001))
    torch.set_printoptions(profile="short")
    assert repr(torch.arange(1001)) == "tensor([   0,    1,  ...,  999, 1000])"


def test_options_that_are_not_given_stay_except_sci_mode():
    torch.set_printoptions(precision=6, sci_mode=True)
    torch.set_printoptions(linewidth=100)
    options = _tensor_str.get_printoptions()
    assert (options["precision"], options["linewidth"], options["sci_mode"]) == (6, 100, None)


def test_unknown_options_are_refused():
    before = _tensor_str.get_printoptions()
    with pytest.raises(TypeError, match="unexpected keyword argument 'digits'"):
        torch.set_printoptions(digits=3)
    assert _tensor_str.get_printoptions() == before


def test_printoptions_restores_after_an_exception():
    before = _tensor_str.get_printoptions()
    with pytest.raises(KeyError), _tensor_str.printoptions(precision=1, sci_mode=True):
        assert repr(torch.tensor(1.25)) == "tensor(1.2e+00)"
        raise KeyError
    assert _tensor_str.get_printoptions() == before
