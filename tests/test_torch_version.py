"""Version strings compared with strings, tuples and versions."""

import itertools

import pytest

from rushlight.torch_version import TorchVersion


@pytest.mark.parametrize(
    "larger",
    ["2.14", "2.13.1", "3", "2.13.0.post1", "2.13.0+cpu", "2.100", "1!0", (2, 14), (2, 13, 1), [3], ("2", "13", "1")],
)
def test_smaller_than(larger):
    version = TorchVersion("2.13.0")
    assert version < larger
    assert version <= larger
    assert version != larger
    assert not version >= larger
    assert not version > larger
    assert larger > version


@pytest.mark.parametrize(
    "smaller", ["2.12.9", "2.9", "2.13.0rc1", "2.13a0", "2.13.0.dev20250101", "2.13rc1.post2", (2,), (2, 9), (2, 12, 1)]
)
def test_larger_than(smaller):
    version = TorchVersion("2.13.0")
    assert version > smaller
    assert version >= smaller
    assert version != smaller
    assert not version <= smaller
    assert not version < smaller
    assert smaller < version


@pytest.mark.parametrize("same", ["2.13", "2.13.0", "v2.13", "0!2.13.0.0", (2, 13), (2, 13, 0), TorchVersion("2.13")])
def test_equal_to(same):
    version = TorchVersion("2.13.0")
    assert version == same
    assert version <= same
    assert version >= same
    assert (version != same) is False
    assert not version < same


def test_order_of_phases():
    order = [
        "1.dev1",
        "1a1.dev2",
        "1a1",
        "1alpha2",
        "1b1",
        "1c1",
        "1rc2",
        "1",
        "1+abc",
        "1+abc.5",
        "1+5",
        "1-1",
        "1.post2",
    ]
    versions = [TorchVersion(text) for text in order]
    assert all(a < b for a, b in itertools.pairwise(versions))


def test_local_part_counts():
    assert TorchVersion("2.13.0+cpu") >= (2, 13)
    assert TorchVersion("2.13.0+cpu") != "2.13.0"
    assert TorchVersion("2.13.0+cpu") == "2.13.0+CPU"


def test_what_is_no_version_is_compared_as_text():
    version = TorchVersion("2.13.0")
    assert version < "parrot"
    assert version != "parrot"
    assert TorchVersion("parrot") == "parrot"
    assert TorchVersion("x") > "2"
    assert version != 2
    assert version is not None
    assert version != None  # noqa: E711  (the operator is what is tested)
    for other in (2, 2.13, None, (), ("a",)):
        with pytest.raises(TypeError, match="not supported between instances"):
            assert version < other


def test_it_is_a_string():
    version = TorchVersion("2.13.0+cpu")
    assert isinstance(version, str)
    assert version.split(".") == ["2", "13", "0+cpu"]
    assert str(version) == "2.13.0+cpu"
    assert hash(version) == hash("2.13.0+cpu")
    assert {version: 1}["2.13.0+cpu"] == 1


def test_version_objects():
    packaging = pytest.importorskip("packaging.version", reason="packaging is no dependency")
    assert TorchVersion("1.10.0a") == packaging.Version("1.10.0a")
    assert TorchVersion("1.10") > packaging.Version("1.10.0a")
    assert packaging.Version("1.9") < TorchVersion("1.10")
