"""Nested containers ("pytrees") taken apart into a list of leaves and a description, and put together again.

Lists, tuples, named tuples, dicts, ordered and default dicts, deques and ``Size`` are containers, by exact type;
:func:`register_pytree_node` adds others. Everything else, None included, is a leaf.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Iterator
from types import UnionType
from typing import Any, NamedTuple

import rushlight
from rushlight._missing import lazy_module

__all__ = [
    "LeafSpec",
    "PyTree",
    "TreeSpec",
    "register_pytree_node",
    "tree_all",
    "tree_all_only",
    "tree_any",
    "tree_any_only",
    "tree_flatten",
    "tree_is_leaf",
    "tree_iter",
    "tree_leaves",
    "tree_map",
    "tree_map_",
    "tree_map_only",
    "tree_map_only_",
    "tree_structure",
    "tree_unflatten",
]

PyTree = Any
Context = Any
LeafPredicate = Callable[[Any], bool]
FlattenFunc = Callable[[Any], tuple[list[Any], Context]]
UnflattenFunc = Callable[[list[Any], Context], Any]


class NodeDef(NamedTuple):
    """How one type of container is taken apart and put together."""

    type: Any
    flatten_fn: FlattenFunc
    unflatten_fn: UnflattenFunc
    flatten_with_keys_fn: Callable[[Any], tuple[list[tuple[Any, Any]], Context]] | None = None


def _flatten_dict(tree: dict[Any, Any]) -> tuple[list[Any], Context]:
    return list(tree.values()), list(tree)


def _flatten_defaultdict(tree: defaultdict[Any, Any]) -> tuple[list[Any], Context]:
    return list(tree.values()), [tree.default_factory, list(tree)]


_BUILTIN: tuple[NodeDef, ...] = (
    NodeDef(tuple, lambda tree: (list(tree), None), lambda children, _: tuple(children)),
    NodeDef(list, lambda tree: (list(tree), None), lambda children, _: list(children)),
    NodeDef(dict, _flatten_dict, lambda children, keys: dict(zip(keys, children, strict=True))),
    NodeDef(OrderedDict, _flatten_dict, lambda children, keys: OrderedDict(zip(keys, children, strict=True))),
    NodeDef(
        defaultdict,
        _flatten_defaultdict,
        lambda children, context: defaultdict(context[0], zip(context[1], children, strict=True)),
    ),
    NodeDef(deque, lambda tree: (list(tree), tree.maxlen), lambda children, maxlen: deque(children, maxlen)),
    # One entry serves all named tuples: the function `namedtuple` stands for their type, the class is the context.
    NodeDef(namedtuple, lambda tree: (list(tree), type(tree)), lambda children, cls: cls(*children)),
    NodeDef(rushlight.Size, lambda tree: (list(tree), None), lambda children, _: rushlight.Size(children)),
)

SUPPORTED_NODES: dict[Any, NodeDef] = {node.type: node for node in _BUILTIN}

# These may stand for each other where only the keys matter.
_DICTS = frozenset((dict, OrderedDict, defaultdict))


def register_pytree_node(
    cls: type,
    flatten_fn: FlattenFunc,
    unflatten_fn: UnflattenFunc,
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Callable[[Context], Any] | None = None,
    from_dumpable_context: Callable[[Any], Context] | None = None,
    flatten_with_keys_fn: Callable[[Any], Any] | None = None,
) -> None:
    """Make instances of exactly `cls` containers.

    Args:
        cls: the type.
        flatten_fn: returns the list of children of an instance and a context that can be compared with ``==``.
        unflatten_fn: builds an instance from such a list and context.
        serialized_type_name, to_dumpable_context, from_dumpable_context: describe the type to PyTorch's exporter.
            rushlight exports no specs, so that these change nothing here.
        flatten_with_keys_fn: returns pairs of a key (with ``get(parent)``) and a child, and the context; what
            :func:`tree_leaves_with_path` needs.

    Raises:
        ValueError: `cls` is registered already.
    """
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)


def is_namedtuple_class(cls: type) -> bool:
    """Return whether a class was made by ``namedtuple`` or ``NamedTuple``, or derives from such a class."""
    return issubclass(cls, tuple) and isinstance(getattr(cls, "_fields", None), tuple)


def is_struct_sequence_class(cls: type) -> bool:
    """Return whether a class is one of operators' results with names, or of the like of ``time.struct_time``."""
    return issubclass(cls, tuple) and isinstance(getattr(cls, "n_sequence_fields", None), int)


# Likewise one entry for them all, as their types are made when they are used first.
SUPPORTED_NODES[is_struct_sequence_class] = NodeDef(
    is_struct_sequence_class, lambda tree: (list(tree), type(tree)), lambda children, cls: cls(children)
)


def _node_of(tree: PyTree) -> NodeDef | None:
    """How the tree's outermost container is taken apart; None for a leaf."""
    cls = type(tree)
    node = SUPPORTED_NODES.get(cls)
    if node is not None or not issubclass(cls, tuple):
        return node
    if is_namedtuple_class(cls):
        return SUPPORTED_NODES[namedtuple]
    return SUPPORTED_NODES[is_struct_sequence_class] if is_struct_sequence_class(cls) else None


class TreeSpec:
    """The structure of a pytree: the type and context of each container, and where the leaves are.

    Args:
        type: a key of ``SUPPORTED_NODES``; None for a leaf.
        context: what the container's `flatten_fn` returned beside its children.
        children_specs: the structures of the children.
    """

    __slots__ = ("_children", "_flat", "context", "num_children", "num_leaves", "num_nodes", "type")

    def __init__(self, type: Any, context: Context, children_specs: list[TreeSpec]) -> None:
        self.type = type
        self.context = context
        self._children = children = children_specs
        self.num_children = count = len(children)
        self._flat = type is not None and children.count(_LEAF) == count  # all children are leaves, as in most trees
        self.num_nodes: int = 1 + (count if self._flat else sum([child.num_nodes for child in children]))
        self.num_leaves: int = 1 if type is None else sum([child.num_leaves for child in children])

    def is_leaf(self) -> bool:
        """Return whether the whole tree is one leaf."""
        return self.type is None

    @property
    def children_specs(self) -> list[TreeSpec]:
        """The structures of the children."""
        return list(self._children)

    def children(self) -> list[TreeSpec]:
        """Return the structures of the children."""
        return list(self._children)

    def child(self, index: int) -> TreeSpec:
        """Return the structure of one child."""
        return self._children[index]

    def unflatten(self, leaves: Iterable[Any]) -> PyTree:
        """Return the tree of this structure with these leaves.

        Raises:
            ValueError: the number of leaves is another.
        """
        leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} "
                f"but the spec refers to a pytree that holds {self.num_leaves} items ({self})."
            )
        if self.type is None:
            return leaves[0]
        if self._flat:
            return SUPPORTED_NODES[self.type].unflatten_fn(leaves, self.context)
        return self._build(iter(leaves))

    def _build(self, leaves: Iterator[Any]) -> PyTree:
        if self.type is None:
            return next(leaves)
        return SUPPORTED_NODES[self.type].unflatten_fn([child._build(leaves) for child in self._children], self.context)

    def flatten_up_to(self, tree: PyTree) -> list[PyTree]:
        """Return the subtrees that stand where this structure has its leaves.

        Raises:
            ValueError: a container differs in type, number of children, keys or context.
        """
        subtrees: list[PyTree] = []
        self._collect(tree, subtrees)
        return subtrees

    def _collect(self, tree: PyTree, subtrees: list[PyTree]) -> None:
        if self.type is None:
            subtrees.append(tree)
            return
        for child, subtree in zip(self._children, self._matching_children(tree), strict=True):
            child._collect(subtree, subtrees)

    def _matching_children(self, tree: PyTree) -> list[PyTree]:
        """Return the children of a container that must be like this one, in this one's order."""
        node = _node_of(tree)
        kind = type(tree) if node is None else node.type
        if self.type in _DICTS and kind in _DICTS:
            return self._values_by_key(tree)
        if node is None or kind != self.type:
            raise ValueError(f"Node type mismatch; expected {self.type}, but got {kind}.")
        children, context = node.flatten_fn(tree)
        if len(children) != self.num_children:
            raise ValueError(f"Node arity mismatch; expected {self.num_children}, but got {len(children)}.")
        if kind is not deque and context != self.context:  # the maximal length of a deque is no structure
            raise ValueError(f"Node context mismatch for node type {kind}; expected {self.context}, but got {context}.")
        return children

    def _values_by_key(self, tree: dict[Any, PyTree]) -> list[PyTree]:
        if len(tree) != self.num_children:
            raise ValueError(f"Node arity mismatch; expected {self.num_children}, but got {len(tree)}.")
        keys = self.context[1] if self.type is defaultdict else self.context
        if tree.keys() != set(keys):
            missing, extra = set(keys) - tree.keys(), tree.keys() - set(keys)
            raise ValueError(f"Node keys mismatch; missing key(s): {missing}; extra key(s): {extra}.")
        return [tree[key] for key in keys]

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, TreeSpec):
            return NotImplemented
        return (
            self.type == other.type
            and self.num_children == other.num_children
            and bool(self.context == other.context)
            and self._children == other._children
        )

    def __hash__(self) -> int:
        return hash((self.type, tuple(self._children)))  # contexts may be lists

    def __repr__(self) -> str:
        return self._indented(0)

    def _indented(self, indent: int) -> str:
        if self.type is None:
            return "*"
        inner = indent + 2
        children = (",\n" + " " * inner).join(child._indented(inner) for child in self._children)
        return f"TreeSpec({self.type.__name__}, {self.context}, [{children}])"


class LeafSpec(TreeSpec):
    """The structure of a tree that is one leaf."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(None, None, [])


_LEAF = LeafSpec()


# --- apart and together ---------------------------------------------------------------------------------------------


_flat: dict[tuple[Any, int], TreeSpec] = {}  # of a type without context, whose children are so many leaves


def _flatten(tree: PyTree, leaves: list[Any], is_leaf: LeafPredicate | None) -> TreeSpec:
    node = _node_of(tree)
    if node is None or (is_leaf is not None and is_leaf(tree)):
        leaves.append(tree)
        return _LEAF
    children, context = node.flatten_fn(tree)
    specs = [_flatten(child, leaves, is_leaf) for child in children]
    if context is not None or len(specs) > 16 or specs.count(_LEAF) != len(specs):
        return TreeSpec(node.type, context, specs)
    spec = _flat.get((node.type, len(specs)))
    if spec is None:
        spec = _flat[node.type, len(specs)] = TreeSpec(node.type, None, specs)
    return spec


def tree_flatten(tree: PyTree, is_leaf: LeafPredicate | None = None) -> tuple[list[Any], TreeSpec]:
    """Return the leaves of a tree, in order, and its structure.

    Args:
        tree: any nesting of containers.
        is_leaf: subtrees for which it returns True are leaves too.
    """
    leaves: list[Any] = []
    spec = _flatten(tree, leaves, is_leaf)
    return leaves, spec


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> PyTree:
    """Return the tree of this structure with these leaves; the inverse of :func:`tree_flatten`.

    Raises:
        TypeError: `treespec` is no TreeSpec.
        ValueError: the number of leaves is another.
    """
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"Expected `treespec` to be an instance of TreeSpec but got item of type {type(treespec)}.")
    return treespec.unflatten(leaves)


def tree_is_leaf(tree: PyTree, is_leaf: LeafPredicate | None = None) -> bool:
    """Return whether a tree is one leaf."""
    return (is_leaf is not None and is_leaf(tree)) or _node_of(tree) is None


def tree_iter(tree: PyTree, is_leaf: LeafPredicate | None = None) -> Iterator[Any]:
    """Yield the leaves of a tree in order."""
    node = _node_of(tree)
    if node is None or (is_leaf is not None and is_leaf(tree)):
        yield tree
        return
    for child in node.flatten_fn(tree)[0]:
        yield from tree_iter(child, is_leaf)


def tree_leaves(tree: PyTree, is_leaf: LeafPredicate | None = None) -> list[Any]:
    """Return the leaves of a tree in order."""
    return [tree] if tree_is_leaf(tree, is_leaf) else list(tree_iter(tree, is_leaf))


def tree_structure(tree: PyTree, is_leaf: LeafPredicate | None = None) -> TreeSpec:
    """Return the structure of a tree."""
    return _flatten(tree, [], is_leaf)


def _broadcast_to_and_flatten(
    tree: PyTree, treespec: TreeSpec, is_leaf: LeafPredicate | None = None
) -> list[Any] | None:
    """Return one entry per leaf of `treespec`, repeating the leaves of a `tree` that is a prefix of it.

    Returns None where `tree` is not a prefix.
    """
    if tree_is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    if treespec.is_leaf():
        return None
    try:
        children = treespec._matching_children(tree)
    except ValueError:
        return None
    entries: list[Any] = []
    for child, spec in zip(children, treespec.children(), strict=True):
        part = _broadcast_to_and_flatten(child, spec, is_leaf)
        if part is None:
            return None
        entries += part
    return entries


# --- functions over leaves ------------------------------------------------------------------------------------------


def tree_map(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: LeafPredicate | None = None) -> PyTree:
    """Return the tree with ``func(leaf, *others)`` at each leaf.

    Args:
        func: takes a leaf of `tree` and the subtrees of `rests` in its place.
        tree: the tree that gives the structure.
        rests: trees that begin with the same structure.
        is_leaf: subtrees of `tree` for which it returns True are leaves too.

    Raises:
        ValueError: one of `rests` has another structure.
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    return spec.unflatten(map(func, leaves, *[spec.flatten_up_to(rest) for rest in rests]))


def tree_map_(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: LeafPredicate | None = None) -> PyTree:
    """Call ``func(leaf, *others)`` at each leaf for its effect, and return `tree`; see :func:`tree_map`."""
    leaves, spec = tree_flatten(tree, is_leaf)
    for arguments in zip(leaves, *[spec.flatten_up_to(rest) for rest in rests], strict=True):
        func(*arguments)
    return tree


TypeOrPredicate = type | tuple[type, ...] | UnionType | LeafPredicate


def _matcher(type_or_types_or_pred: TypeOrPredicate) -> LeafPredicate:
    if isinstance(type_or_types_or_pred, (type, tuple, UnionType)):
        types = type_or_types_or_pred
        return lambda leaf: isinstance(leaf, types)
    if callable(type_or_types_or_pred):
        return type_or_types_or_pred
    raise TypeError("Argument must be a type, a tuple of types, or a callable.")


def tree_map_only(
    type_or_types_or_pred: TypeOrPredicate,
    /,
    func: Callable[[Any], Any],
    tree: PyTree,
    is_leaf: LeafPredicate | None = None,
) -> PyTree:
    """Return the tree with ``func(leaf)`` at the leaves of the given types, or that the predicate accepts."""
    matches = _matcher(type_or_types_or_pred)
    return tree_map(lambda leaf: func(leaf) if matches(leaf) else leaf, tree, is_leaf=is_leaf)


def tree_map_only_(
    type_or_types_or_pred: TypeOrPredicate,
    /,
    func: Callable[[Any], Any],
    tree: PyTree,
    is_leaf: LeafPredicate | None = None,
) -> PyTree:
    """Call ``func(leaf)`` at the leaves that :func:`tree_map_only` chooses, and return `tree`."""
    matches = _matcher(type_or_types_or_pred)
    for leaf in tree_leaves(tree, is_leaf):
        if matches(leaf):
            func(leaf)
    return tree


def tree_all(pred: LeafPredicate, tree: PyTree, is_leaf: LeafPredicate | None = None) -> bool:
    """Return whether the predicate holds for every leaf."""
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred: LeafPredicate, tree: PyTree, is_leaf: LeafPredicate | None = None) -> bool:
    """Return whether the predicate holds for some leaf."""
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(
    type_or_types: type | tuple[type, ...] | UnionType,
    /,
    pred: LeafPredicate,
    tree: PyTree,
    is_leaf: LeafPredicate | None = None,
) -> bool:
    """Return whether the predicate holds for every leaf of the given types."""
    return all(pred(leaf) for leaf in tree_iter(tree, is_leaf) if isinstance(leaf, type_or_types))


def tree_any_only(
    type_or_types: type | tuple[type, ...] | UnionType,
    /,
    pred: LeafPredicate,
    tree: PyTree,
    is_leaf: LeafPredicate | None = None,
) -> bool:
    """Return whether the predicate holds for some leaf of the given types."""
    return any(pred(leaf) for leaf in tree_iter(tree, is_leaf) if isinstance(leaf, type_or_types))


_WITH_PATH = (
    "GetAttrKey",
    "KeyEntry",
    "KeyPath",
    "MappingKey",
    "SequenceKey",
    "key_get",
    "keystr",
    "register_dataclass",
)
_TREES = ("arg_tree_leaves", "map_only", "tree_flatten_with_path", "tree_leaves_with_path", "tree_map_with_path")
_KINDS = ("is_namedtuple", "is_namedtuple_instance", "is_structseq", "is_structseq_class", "is_structseq_instance")
_SPECS = ("PyTreeSpec", "treespec_dict", "treespec_leaf", "treespec_pprint", "treespec_tuple")
__getattr__, __dir__ = lazy_module(
    __name__, names=dict.fromkeys((*_WITH_PATH, *_TREES, *_KINDS, *_SPECS), "rushlight.utils._pytree_path")
)
