"""Leaves of pytrees with the way to them, and what is rarely asked of structures (names of ``torch.utils._pytree``)."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Protocol

import rushlight

from . import _pytree as pytree
from ._pytree import LeafPredicate, PyTree, TreeSpec, is_namedtuple_class, is_struct_sequence_class


class KeyEntry(Protocol):
    """One step of the way to a leaf; a container that is registered may have steps of its own."""

    def __hash__(self) -> int: ...
    def __eq__(self, other: object) -> bool: ...
    def __str__(self) -> str: ...
    def get(self, parent: Any) -> Any:
        """The child of ``parent`` to which this step leads."""


class SequenceKey(NamedTuple):
    """The place in a list, tuple or deque."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        """The child of ``sequence`` at this place."""
        return sequence[self.idx]


class MappingKey(NamedTuple):
    """The key in a dict."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        """The child of ``mapping`` under this key."""
        return mapping[self.key]


class GetAttrKey(NamedTuple):
    """The attribute of a named tuple or a dataclass."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        """The child of ``obj`` in this attribute."""
        return getattr(obj, self.name)


KeyPath = tuple[KeyEntry, ...]
_SEQUENCES = (list, tuple, deque, rushlight.Size, is_struct_sequence_class)
_MAPPINGS = (dict, OrderedDict, defaultdict)


def _steps(tree: PyTree, node: pytree.NodeDef) -> list[tuple[Any, PyTree]]:
    """The children of a container, each with the step that leads to it."""
    if node.type in _MAPPINGS:
        return [(MappingKey(key), child) for key, child in tree.items()]
    if node.type is namedtuple:
        return [(GetAttrKey(name), child) for name, child in zip(tree._fields, tree, strict=True)]
    if node.type in _SEQUENCES:
        return [(SequenceKey(i), child) for i, child in enumerate(tree)]
    if node.flatten_with_keys_fn is None:
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {node.type}. Please pass a flatten_with_keys_fn argument to "
            "register_pytree_node."
        )
    return list(node.flatten_with_keys_fn(tree)[0])


def _collect(tree: PyTree, path: KeyPath, found: list[tuple[KeyPath, Any]], is_leaf: LeafPredicate | None) -> None:
    node = pytree._node_of(tree)
    if node is None or (is_leaf is not None and is_leaf(tree)):
        found.append((path, tree))
        return
    for step, child in _steps(tree, node):
        _collect(child, (*path, step), found, is_leaf)


def tree_leaves_with_path(tree: PyTree, is_leaf: LeafPredicate | None = None) -> list[tuple[KeyPath, Any]]:
    """Return ``(path, leaf)`` for every leaf, in order. ValueError for a container that does not tell its steps."""
    found: list[tuple[KeyPath, Any]] = []
    _collect(tree, (), found, is_leaf)
    return found


def tree_flatten_with_path(
    tree: PyTree, is_leaf: LeafPredicate | None = None
) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """Return ``(path, leaf)`` for every leaf, in order, and the structure."""
    return tree_leaves_with_path(tree, is_leaf), pytree.tree_structure(tree, is_leaf)


def tree_map_with_path(
    func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: LeafPredicate | None = None
) -> PyTree:
    """Return the tree with ``func(path, leaf, *others)`` at each leaf; see :func:`tree_map`."""
    found, spec = tree_flatten_with_path(tree, is_leaf)
    others = [spec.flatten_up_to(rest) for rest in rests]
    return spec.unflatten([func(path, *leaves) for (path, *leaves) in zip(*_columns(found), *others, strict=True)])


def _columns(found: list[tuple[KeyPath, Any]]) -> tuple[list[KeyPath], list[Any]]:
    return [path for path, _ in found], [leaf for _, leaf in found]


def keystr(kp: KeyPath) -> str:
    """Return a path as Python would write it: ``['a'][0].x``."""
    return "".join(map(str, kp))


def key_get(obj: Any, kp: KeyPath) -> Any:
    """Return what stands at the end of a path through ``obj``."""
    for step in kp:
        obj = step.get(obj)
    return obj


def register_dataclass(
    cls: type[Any],
    *,
    field_names: list[str] | None = None,
    drop_field_names: list[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:
    """Make instances of a dataclass containers of their fields that ``__init__`` takes.

    ``field_names`` names them, in order, but for those of ``drop_field_names``, whose values are lost: they get their
    defaults.
    ValueError where the names are not those of the fields.
    """
    known = [field.name for field in dataclasses.fields(cls) if field.init] if dataclasses.is_dataclass(cls) else None
    dropped = list(drop_field_names or ())
    if field_names is None:
        if known is None:
            raise ValueError(f"field_names must be specified with a list of all fields used to initialize {cls}.")
        names = known
    else:
        names = list(field_names)
        if known is not None and set(known) != set(names) | set(dropped):
            raise ValueError(
                f"field_names does not include all dataclass fields of {cls}, or others. Missing fields in "
                f"`field_names`: {set(known) - set(names) - set(dropped)}. Unexpected fields in `field_names`: "
                f"{set(names) - set(known)}."
            )

    def flatten(tree: Any) -> tuple[list[Any], Any]:
        return [getattr(tree, name) for name in names], [names, []]

    def unflatten(children: Iterable[Any], context: Any) -> Any:
        return cls(**dict(zip(names, children, strict=True)))

    def flatten_with_keys(tree: Any) -> tuple[list[Any], Any]:
        return [(GetAttrKey(name), getattr(tree, name)) for name in names], [names, []]

    pytree.register_pytree_node(
        cls,
        flatten,
        unflatten,
        serialized_type_name=serialized_type_name,
        flatten_with_keys_fn=flatten_with_keys,
    )


def is_namedtuple(obj: object | type) -> bool:
    """Return whether an object is a named tuple, or a class of them."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_namedtuple_instance(obj: object) -> bool:
    """Return whether an object is a named tuple."""
    return is_namedtuple_class(type(obj))


def is_structseq(obj: object | type) -> bool:
    """Return whether an object is one of operators' results with names or their like, or a class of them."""
    return is_struct_sequence_class(obj if isinstance(obj, type) else type(obj))


def is_structseq_instance(obj: object) -> bool:
    """Return whether an object is one of operators' results with names, or of the like of ``time.struct_time``."""
    return is_struct_sequence_class(type(obj))


is_structseq_class = is_struct_sequence_class
PyTreeSpec = TreeSpec


def treespec_leaf() -> TreeSpec:
    """Return the structure of a tree that is one leaf."""
    return pytree._LEAF


def treespec_tuple(iterable: Iterable[TreeSpec] = (), /) -> TreeSpec:
    """Return the structure of a tuple of trees with these structures."""
    return TreeSpec(tuple, None, list(iterable))


def treespec_dict(
    mapping: Mapping[Any, TreeSpec] | Iterable[tuple[Any, TreeSpec]] = (), /, **kwargs: TreeSpec
) -> TreeSpec:
    """Return the structure of a dict of trees with these structures."""
    children = dict(mapping, **kwargs)
    return TreeSpec(dict, list(children), list(children.values()))


def treespec_pprint(treespec: TreeSpec) -> str:
    """Return the structure as the tree that it is of, with stars for leaves."""

    class Star:
        def __repr__(self) -> str:
            return "*"

    return repr(treespec.unflatten([Star()] * treespec.num_leaves))


def arg_tree_leaves(*args: PyTree, **kwargs: PyTree) -> list[Any]:
    """Return the leaves of all arguments, in order."""
    return pytree.tree_leaves((list(args), list(kwargs.values())))


def map_only(type_or_types_or_pred: Any, /) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Return a decorator: the function applies to what is of these types, or fits the predicate, and leaves the rest."""
    matches = pytree._matcher(type_or_types_or_pred)

    def decorate(func: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda x: func(x) if matches(x) else x

    return decorate
