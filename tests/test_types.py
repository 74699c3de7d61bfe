"""The names of ``torch.types``."""

import io
import pathlib

import pytest

import rushlight as torch
from rushlight import types


@pytest.mark.parametrize(("value", "is_number"), [(1, True), (2.5, True), (True, True), (1j, False), ("1", False)])
def test_number(value, is_number):
    assert isinstance(value, types.Number) is is_number
    assert isinstance(value, types._Number) is is_number


def test_device_is_what_device_arguments_take():
    for value in (torch.device("cpu"), "cpu", 0, None):
        assert isinstance(value, types.Device)
    assert not isinstance(2.5, types.Device)


def test_aliases_are_the_types_themselves():
    assert isinstance(torch.zeros(1).dtype, types._dtype)
    assert isinstance(torch.zeros(1).device, types._device)
    assert isinstance(torch.zeros(1).layout, types._layout)
    assert (types._int, types._float, types._bool, types._complex) == (int, float, bool, complex)
    assert (types._str, types._bytes) == (str, bytes)


def test_unions_name_their_members():
    assert torch.Size in types._size.__args__
    assert torch.Tensor in types._TensorOrTensors.__args__
    assert str in types.FileLike.__args__
    assert types.__all__ == ["Device", "FileLike", "Number"]
    assert isinstance(pathlib.Path("x"), types.FileLike.__args__[1].__origin__)
    assert not isinstance(io.BytesIO(), str)
