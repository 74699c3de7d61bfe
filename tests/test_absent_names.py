"""The list of absent names tells the truth."""

import importlib

import pytest

import rushlight
from absent_names import ABSENT


def exists(path: str) -> bool:
    *parents, name = path.split(".")
    try:
        place = rushlight
        for parent in parents:
            place = getattr(place, parent)
        getattr(place, name)
    except (AttributeError, ImportError):
        try:
            importlib.import_module("rushlight." + path)
        except ImportError:
            return False
    return True


@pytest.mark.parametrize("path", sorted(ABSENT.values()))
def test_listed_names_are_absent(path):
    assert not exists(path), f"torch.{path} is there now: take it from the list"


def test_a_name_that_exists_is_seen():
    assert exists("sum") and exists("Tensor.sum") and exists("autograd.functional")
