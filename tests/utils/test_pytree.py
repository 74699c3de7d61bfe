"""Nested containers: apart, together, and functions over their leaves."""

from collections import OrderedDict, defaultdict, deque, namedtuple

import pytest

import rushlight as torch
from rushlight.utils import _pytree as pytree

Point = namedtuple("Point", "x y")
Other = namedtuple("Other", "x y")


def nested():
    return {
        "b": [1, (2, 3)],
        "a": Point(4, None),
        "c": OrderedDict(z=5, y=6),
        "d": defaultdict(list, q=7),
        "e": deque([8, 9], maxlen=3),
        "f": torch.Size([10, 11]),
        "g": [],
    }


def test_leaves_come_in_insertion_order():
    leaves, spec = pytree.tree_flatten(nested())
    assert leaves == [1, 2, 3, 4, None, 5, 6, 7, 8, 9, 10, 11]
    assert (spec.num_leaves, spec.num_children, spec.type, spec.context) == (12, 7, dict, list("bacdefg"))
    assert spec.num_nodes == 12 + 9
    assert pytree.tree_leaves(nested()) == leaves
    assert list(pytree.tree_iter(nested())) == leaves


def test_unflatten_restores_types_and_contexts():
    tree = pytree.tree_unflatten(*pytree.tree_flatten(nested()))
    assert tree == nested()
    assert [type(child) for child in tree.values()] == [type(child) for child in nested().values()]
    assert type(tree["b"][1]) is tuple
    assert tree["d"].default_factory is list
    assert tree["e"].maxlen == 3


@pytest.mark.parametrize(
    "leaf", [None, 3, "text", torch.ones(2), {1, 2}, range(3), object()], ids=lambda x: type(x).__name__
)
def test_everything_else_is_a_leaf(leaf):
    leaves, spec = pytree.tree_flatten(leaf)
    assert len(leaves) == 1
    assert leaves[0] is leaf
    assert spec.is_leaf()
    assert pytree.tree_is_leaf(leaf)
    assert pytree.tree_unflatten(leaves, spec) is leaf


def test_subclasses_of_containers_are_leaves_but_of_named_tuples_are_not():
    class Words(list):
        pass

    class Labelled(Point):
        pass

    assert pytree.tree_structure(Words([1, 2])).is_leaf()
    mapped = pytree.tree_map(lambda x: x + 1, Labelled(1, 2))
    assert type(mapped) is Labelled
    assert mapped == (2, 3)


def test_is_leaf_stops_the_descent():
    leaves, spec = pytree.tree_flatten([1, (2, 3)], is_leaf=lambda node: isinstance(node, tuple))
    assert leaves == [1, (2, 3)]
    assert spec == pytree.tree_structure([0, 0])
    assert pytree.tree_is_leaf((1,), is_leaf=lambda node: True)
    assert not pytree.tree_is_leaf(())


def test_specs_are_compared_by_structure():
    structure = pytree.tree_structure
    assert structure([1, (2,)]) == structure(["a", (None,)])
    assert hash(structure({"a": [1]})) == hash(structure({"a": [2]}))
    assert structure([1]) != structure((1,))
    assert structure([1]) != structure([1, 2])
    assert structure({"a": 1}) != structure({"b": 1})
    assert structure(Point(1, 2)) != structure(Other(1, 2))
    assert structure(1) == pytree.LeafSpec()
    assert isinstance(structure(1), pytree.LeafSpec)
    assert not isinstance(structure([1]), pytree.LeafSpec)
    assert structure([1]) == pytree.TreeSpec(list, None, [pytree.LeafSpec()])
    assert structure([1]) != [1]


def test_specs_show_their_nesting():
    assert repr(pytree.tree_structure(5)) == "*"
    assert repr(pytree.tree_structure([])) == "TreeSpec(list, None, [])"
    assert repr(pytree.tree_structure({"b": [1, (2, 3)], "a": 4})) == (
        "TreeSpec(dict, ['b', 'a'], [TreeSpec(list, None, [*,\n    TreeSpec(tuple, None, [*,\n      *])]),\n  *])"
    )


def test_children_of_a_spec():
    spec = pytree.tree_structure([1, (2, 3)])
    assert spec.children() == [pytree.LeafSpec(), pytree.tree_structure((0, 0))]
    assert spec.child(1).num_leaves == 2
    with pytest.raises(IndexError):
        spec.child(2)


@pytest.mark.parametrize("leaves", [[], [1], [1, 2, 3], iter([1, 2, 3])])
def test_wrong_number_of_leaves(leaves):
    with pytest.raises(ValueError, match=r"`leaves` has length \d but the spec refers to a pytree that holds 2 items"):
        pytree.tree_unflatten(leaves, pytree.tree_structure([0, 0]))


def test_unflatten_takes_any_iterable_and_needs_a_spec():
    assert pytree.tree_unflatten(iter([7, 8]), pytree.tree_structure([0, [0]])) == [7, [8]]
    with pytest.raises(TypeError, match="Expected `treespec` to be an instance of"):
        pytree.tree_unflatten([1], [1])


def test_map_over_several_trees_takes_subtrees_of_the_others():
    assert pytree.tree_map(lambda a, b: a + b, {"a": 1, "b": [2]}, {"a": 10, "b": [20]}) == {"a": 11, "b": [22]}
    assert pytree.tree_map(lambda a, b: [a, *b], [5, 6], [[7, 9], [1, 2]]) == [[5, 7, 9], [6, 1, 2]]


def test_dicts_are_matched_by_key_whatever_their_kind():
    pairs = pytree.tree_map(lambda a, b: (a, b), {"a": 1, "b": 2}, OrderedDict(b=20, a=10))
    assert pairs == {"a": (1, 10), "b": (2, 20)}
    pairs = pytree.tree_map(lambda a, b: (a, b), defaultdict(int, a=1), {"a": 3})
    assert type(pairs) is defaultdict
    assert pairs == {"a": (1, 3)}


def test_deques_of_other_maximal_length_match():
    assert list(pytree.tree_map(lambda a, b: a + b, deque([1]), deque([2], maxlen=5))) == [3]


@pytest.mark.parametrize(
    ("tree", "other", "message"),
    [
        ([1, [2]], [3, 4], "Node type mismatch; expected <class 'list'>, but got <class 'int'>"),
        ([1, 2], (3, 4), "Node type mismatch; expected <class 'list'>, but got <class 'tuple'>"),
        (Point(1, 2), (1, 2), "Node type mismatch"),
        ([1, 2], [3], "Node arity mismatch; expected 2, but got 1"),
        ({}, {"a": 1}, "Node arity mismatch; expected 0, but got 1"),
        ({"a": 1, "b": 2}, {"b": 1, "c": 2}, r"missing key\(s\): {'a'}; extra key\(s\): {'c'}"),
        (Point(1, 2), Other(1, 2), "Node context mismatch"),
    ],
)
def test_structures_that_differ_are_refused(tree, other, message):
    with pytest.raises(ValueError, match=message):
        pytree.tree_map(lambda a, b: a, tree, other)


def test_map_only():
    tree = [1, 2.5, "x", True]
    assert pytree.tree_map_only(float, lambda x: x * 2, tree) == [1, 5.0, "x", True]
    assert pytree.tree_map_only((float, str), lambda x: x * 2, tree) == [1, 5.0, "xx", True]
    assert pytree.tree_map_only(float | str, lambda x: x * 2, tree) == [1, 5.0, "xx", True]
    assert pytree.tree_map_only(lambda x: x == 1, lambda x: 0, tree) == [0, 2.5, "x", 0]
    with pytest.raises(TypeError, match="Argument must be a type, a tuple of types, or a callable"):
        pytree.tree_map_only(5, lambda x: x, tree)


def test_maps_for_the_effect_return_the_tree():
    tree, seen = [1, {"a": "x"}], []
    assert pytree.tree_map_(seen.append, tree) is tree
    assert seen == [1, "x"]
    assert pytree.tree_map_only_(str, seen.append, tree) is tree
    assert seen == [1, "x", "x"]


def test_any_and_all():
    assert pytree.tree_any(bool, [0, (0, 1)])
    assert not pytree.tree_any(bool, [0, (0, [])])
    assert pytree.tree_all(bool, [1, (2, [])])
    assert not pytree.tree_all(bool, [1, (0,)])
    assert pytree.tree_all_only(int, bool, ["", 1])
    assert not pytree.tree_all_only((int, str), bool, ["", 1])
    assert pytree.tree_any_only(str, bool, [0, "a"])
    assert not pytree.tree_any_only(int, bool, [0, "a"])


def test_tensors_are_leaves_and_are_mapped():
    tree = {"w": torch.ones(2), "b": [torch.zeros(1)]}
    doubled = pytree.tree_map(lambda x: x + 1, tree)
    assert doubled["w"].tolist() == [2.0, 2.0]
    assert doubled["b"][0].tolist() == [1.0]


def test_registered_types():
    class Pair:
        def __init__(self, left, right, tag=None):
            self.left, self.right, self.tag = left, right, tag

    assert pytree.tree_structure(Pair(1, 2)).is_leaf()
    pytree.register_pytree_node(Pair, lambda p: ([p.left, p.right], p.tag), lambda c, tag: Pair(*c, tag))
    try:
        mapped = pytree.tree_map(lambda x: x + 1, [Pair(1, (2,), "t")])[0]
        assert (mapped.left, mapped.right, mapped.tag) == (2, (3,), "t")
        with pytest.raises(ValueError, match="Node context mismatch"):
            pytree.tree_map(lambda a, b: a, Pair(1, 2, "t"), Pair(1, 2, "u"))
        with pytest.raises(ValueError, match="is already registered as pytree node"):
            pytree.register_pytree_node(Pair, lambda p: ([], None), lambda c, _: None)
    finally:
        del pytree.SUPPORTED_NODES[Pair]


def test_broadcast_of_prefixes():
    spec = pytree.tree_structure([1, [2, 3]])
    assert pytree._broadcast_to_and_flatten(7, spec) == [7, 7, 7]
    assert pytree._broadcast_to_and_flatten([0, None], spec) == [0, None, None]
    assert pytree._broadcast_to_and_flatten([0, [1, 2]], spec) == [0, 1, 2]
    assert pytree._broadcast_to_and_flatten([0, [1]], spec) is None
    assert pytree._broadcast_to_and_flatten((0, 1), spec) is None
    assert pytree._broadcast_to_and_flatten([0], pytree.LeafSpec()) is None
