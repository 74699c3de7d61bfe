"""Pytrees with paths to their leaves: the same programs on rushlight and on PyTorch."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, defaultdict, deque, namedtuple
from importlib import import_module
from typing import Any

import pytest

import rushlight

torch = pytest.importorskip("torch", reason="the oracle is installed by .ci/run only")
pytestmark = pytest.mark.oracle

Pair = namedtuple("Pair", "p q")
TREE = [Pair(1, 2), OrderedDict(z=1), deque([1]), defaultdict(int, {"k": 2}), {"a": (1, [2, None])}, 5]


class Box:
    def __init__(self, x: Any) -> None:
        self.x = x


class Named:
    def __init__(self, x: Any) -> None:
        self.x = x


@dataclasses.dataclass
class Point:
    a: int
    b: list[int]
    c: int = 7


@dataclasses.dataclass
class Half:
    a: int
    b: int = 5


def paths(P: Any) -> Any:
    found, spec = P.tree_flatten_with_path(TREE)
    assert spec == P.tree_structure(TREE)
    return [(P.keystr(path), repr(path), leaf, P.key_get(TREE, path)) for path, leaf in found]


def leaves_by_choice(P: Any) -> Any:
    return [P.keystr(path) for path, _ in P.tree_leaves_with_path(TREE, is_leaf=lambda x: isinstance(x, dict | list))]


def mapped(P: Any) -> Any:
    return P.tree_map_with_path(lambda k, x, y: (P.keystr(k), x + y), {"a": [1, 2], "b": 3}, {"a": [10, 20], "b": 30})


def mapped_over_another_structure(P: Any) -> Any:
    return P.tree_map_with_path(lambda k, x, y: x, {"a": 1}, {"b": 2})


def registered_without_keys(P: Any) -> Any:
    P.register_pytree_node(Box, lambda box: ([box.x], None), lambda children, _: Box(*children))
    assert P.tree_leaves(Box([1, 2])) == [1, 2]
    return P.tree_leaves_with_path(Box(1))


def registered_with_keys(P: Any) -> Any:
    P.register_pytree_node(
        Named,
        lambda tree: ([tree.x], None),
        lambda children, _: Named(*children),
        flatten_with_keys_fn=lambda tree: ([(P.GetAttrKey("x"), tree.x)], None),
    )
    return [P.keystr(path) for path, _ in P.tree_leaves_with_path(Named([1, 2]))]


def dataclass(P: Any) -> Any:
    P.register_dataclass(Point)
    point = Point(1, [2, 3])
    return P.tree_map(lambda x: x * 2, point), [P.keystr(path) for path, _ in P.tree_leaves_with_path(point)]


def dropped_fields(P: Any) -> Any:
    P.register_dataclass(Half, field_names=["a"], drop_field_names=["b"])
    return P.tree_leaves(Half(1, 2)), P.tree_map(lambda x: x, Half(1, 2))


def wrong_fields(P: Any) -> Any:
    return P.register_dataclass(dataclasses.make_dataclass("Made", ["a"]), field_names=["x"])


def no_dataclass(P: Any) -> Any:
    return P.register_dataclass(type("Plain", (), {}))


def kinds(P: Any) -> Any:
    objects = (Pair, Pair(1, 2), (1,), tuple)
    return [[f(o) for o in objects] for f in (P.is_namedtuple, P.is_namedtuple_instance, P.is_structseq)]


def specs(P: Any) -> Any:
    leaf = P.treespec_leaf()
    return (
        P.treespec_pprint(P.tree_structure([1, {"a": (2,)}])),
        P.treespec_tuple([leaf, leaf]).unflatten([1, 2]),
        P.treespec_dict({"a": leaf}, b=leaf).unflatten([1, 2]),
        P.arg_tree_leaves(1, [2], k=3),
        [P.map_only(int)(lambda x: x + 1)(x) for x in (3, "a")],
    )


PROGRAMS = [
    paths,
    leaves_by_choice,
    mapped,
    mapped_over_another_structure,
    registered_without_keys,
    registered_with_keys,
    dataclass,
    dropped_fields,
    wrong_fields,
    no_dataclass,
    kinds,
    specs,
]


def outcome(program: Any, package: Any) -> Any:
    try:
        return program(import_module(f"{package.__name__}.utils._pytree"))
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_the_outcome_is_pytorchs(program: Any) -> None:
    expected = outcome(program, torch)
    assert outcome(program, rushlight) == expected
