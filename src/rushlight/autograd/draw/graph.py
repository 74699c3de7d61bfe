"""The graph behind tensors, copied into plain data: nothing of it keeps the tensors or their history alive."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import rushlight

from .cost import Cost, Costs

if TYPE_CHECKING:
    from rushlight import Tensor

Shape = tuple[int, ...]
Edge = tuple[int, int]  # node that computed the tensor, and which of its results it is


@dataclass(slots=True)
class Saved:
    """A tensor kept for backward; `shape` is None once backward has freed it."""

    label: str
    shape: Shape | None
    dtype: str
    bytes: int


@dataclass(slots=True)
class Node:
    """A leaf, its accumulation, a backward function, or an output.

    `inputs` are the edges towards the leaves, that is, where the forward operation took its tensors from; `shapes`
    those of the forward operation's results, one for each slot that `inputs` of other nodes may name.
    """

    kind: str  # "leaf", "accumulate", "function" or "output"
    name: str
    shapes: list[Shape | None] = field(default_factory=list)
    inputs: list[Edge] = field(default_factory=list)
    saved: list[Saved] = field(default_factory=list)
    dtype: str = ""
    cost: Cost | None = None

    def shape(self, slot: int) -> Shape | None:
        return self.shapes[slot] if slot < len(self.shapes) else None


@dataclass(slots=True)
class Graph:
    """Nodes in an order in which the forward operations can have run: inputs before users, branches kept together."""

    nodes: list[Node]

    def of_kind(self, kind: str) -> list[int]:
        return [index for index, node in enumerate(self.nodes) if node.kind == kind]

    def users(self) -> list[list[int]]:
        """For each node those that use its results, once each, in order."""
        users: list[list[int]] = [[] for _ in self.nodes]
        for index, node in enumerate(self.nodes):
            for source in dict.fromkeys(source for source, _ in node.inputs):
                users[source].append(index)
        return users


def collect(
    roots: "Sequence[Tensor]",
    names: "Mapping[str, Tensor] | Iterable[tuple[str, Tensor]] | None",
    costs: Costs | None = None,
) -> Graph:
    """Walks from `roots` to the leaves, without recursion, and describes every node met, with what it costs.

    RuntimeError if a root neither requires grad nor was computed from something that does.
    """
    for index, root in enumerate(roots):
        if not isinstance(root, rushlight.Tensor):
            raise TypeError(f"expected tensors to draw the graph of, found {type(root).__name__} as element {index}")
        if not root.requires_grad:
            raise RuntimeError(f"element {index} of tensors does not require grad and does not have a grad_fn")
    return _Walk(names, costs).run(roots)


class _Walk:
    def __init__(
        self, names: "Mapping[str, Tensor] | Iterable[tuple[str, Tensor]] | None", costs: Costs | None = None
    ) -> None:
        self.costs = costs
        pairs = list(names.items() if isinstance(names, Mapping) else names or ())
        self.names = {id(tensor): name for name, tensor in pairs}
        self.keep = [tensor for _, tensor in pairs]  # an id means something only while its object lives
        self.nodes: list[Node] = []
        self.function_index: dict[Any, int] = {}
        self.leaf_index: dict[int, int] = {}

    def run(self, roots: "Sequence[Tensor]") -> Graph:
        edges = []
        for root in roots:
            function = root.grad_fn
            edges.append((self.leaf(root), 0) if function is None else (self.visit(function), root.output_nr))
        for number, (root, edge) in enumerate(zip(roots, edges, strict=True)):
            default = "output" if len(roots) == 1 else f"output {number}"
            name = self.names.get(id(root), default) if root.grad_fn is not None else default
            self.nodes.append(Node("output", name, [tuple(root.shape)], [edge], dtype=_dtype(root)))
        return Graph(self.nodes)

    def visit(self, root: Any) -> int:
        """Adds what lies behind a backward function, then the function; returns its index."""
        if root in self.function_index:
            return self.function_index[root]
        stack: list[tuple[Any, Iterator[Any], list[tuple[Any, int]]]] = []
        self._open(root, stack)
        while stack:
            function, pending, edges = stack[-1]
            behind = next((f for f in pending if f not in self.function_index), None)
            if behind is not None:
                self._open(behind, stack)
                continue
            stack.pop()
            self.function_index[function] = self._add(function, edges)
        return self.function_index[root]

    @staticmethod
    def _open(function: Any, stack: list[tuple[Any, Iterator[Any], list[tuple[Any, int]]]]) -> None:
        edges = [(behind, slot) for behind, slot in function.next_functions if behind is not None]
        stack.append((function, iter([behind for behind, _ in edges]), edges))

    def _add(self, function: Any, edges: list[tuple[Any, int]]) -> int:
        inputs = [(self.function_index[behind], slot) for behind, slot in edges]
        name = function.name().rpartition("::")[2]
        if name == "AccumulateGrad":
            inputs.append((self.leaf(function.variable), 0))
            node = Node("accumulate", name, [tuple(function.variable.shape)], inputs)
        else:
            node = Node("function", name, _result_shapes(function), inputs, _saved_tensors(function))
        node.cost = self.costs.of(function) if self.costs is not None else None
        self.nodes.append(node)
        return len(self.nodes) - 1

    def leaf(self, tensor: "Tensor") -> int:
        """Adds a leaf once; returns its index."""
        if id(tensor) not in self.leaf_index:
            self.keep.append(tensor)
            self.leaf_index[id(tensor)] = len(self.nodes)
            name = self.names.get(id(tensor), "")
            self.nodes.append(Node("leaf", name, [tuple(tensor.shape)], dtype=_dtype(tensor)))
        return self.leaf_index[id(tensor)]


def _dtype(tensor: "Tensor") -> str:
    return str(tensor.dtype).removeprefix("torch.").removeprefix("rushlight.")


def _result_shapes(function: Any) -> list[Shape | None]:
    if hasattr(function, "_input_shapes"):
        return [tuple(shape) for shape in function._input_shapes()]
    return [tuple(metadata.shape) for metadata in getattr(function, "_input_metadata", ())]


def _saved_tensors(function: Any) -> list[Saved]:
    if hasattr(function, "_describe_saved"):
        return [
            Saved(label, None if shape is None else tuple(shape), dtype, size)
            for label, shape, dtype, size in function._describe_saved()
        ]
    saved = []
    for attribute in dir(function):
        if attribute.startswith("_saved_"):
            saved += _saved_attribute(function, attribute)
    return saved


def _saved_attribute(function: Any, attribute: str) -> list[Saved]:
    label = attribute.removeprefix("_saved_")
    try:
        value = getattr(function, attribute)
    except RuntimeError:  # freed by backward
        return [Saved(label, None, "", 0)]
    values = value if isinstance(value, (tuple, list)) else [value]
    return [
        Saved(label, tuple(tensor.shape), _dtype(tensor), tensor.numel() * tensor.element_size())
        for tensor in values
        if isinstance(tensor, rushlight.Tensor)
    ]
