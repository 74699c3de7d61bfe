"""The committed table of promotion rules is PyTorch's."""

import pytest

from promotion_table import NUMBERS, tables

torch = pytest.importorskip("torch", reason="the oracle is installed by .ci/run only")
pytestmark = pytest.mark.oracle

TABLES = tables()


def made(name, dims):
    return torch.ones((2,) * dims, dtype=getattr(torch, name))


@pytest.mark.parametrize(("a", "b"), list(TABLES["same"]))
def test_pairs_of_types(a, b):
    for dims in ((0, 0), (1, 1), (2, 1)):
        assert torch.result_type(made(a, dims[0]), made(b, dims[1])) is getattr(torch, TABLES["same"][a, b])
    assert torch.promote_types(getattr(torch, a), getattr(torch, b)) is getattr(torch, TABLES["same"][a, b])
    mixed = getattr(torch, TABLES["mixed"][a, b])
    assert torch.result_type(made(a, 1), made(b, 0)) is torch.result_type(made(b, 0), made(a, 2)) is mixed
    assert torch.can_cast(getattr(torch, a), getattr(torch, b)) is (TABLES["can_cast"][a, b] == "yes")


@pytest.mark.parametrize(("name", "kind"), list(TABLES["numbers"]))
def test_python_numbers(name, kind):
    assert torch.result_type(made(name, 1), NUMBERS[kind]) is getattr(torch, TABLES["numbers"][name, kind])
    without = getattr(torch, TABLES["numbers without dimensions"][name, kind])
    assert torch.result_type(made(name, 0), NUMBERS[kind]) is without
