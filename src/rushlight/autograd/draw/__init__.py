"""Pictures of the graph that backward walks.

    picture = rushlight.autograd.graph.draw(loss, model.named_parameters())
    picture                      # shows itself in a notebook
    picture.save("graph.svg")    # or .dot, .png, .pdf

Backward functions are grey, leaves blue, outputs green; arrows follow the forward computation.
"""

import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import rushlight

from .dot import dot
from .graph import collect
from .picture import Picture, compose
from .svg import svg

if TYPE_CHECKING:
    from rushlight import Tensor

__all__ = ["Drawing", "draw"]


def draw(
    tensors: "Tensor | Sequence[Tensor]",
    params: "Mapping[str, Tensor] | Iterable[tuple[str, Tensor]] | None" = None,
    *,
    max_boxes: int = 30,
    shapes: bool = True,
    saved: bool = True,
    profile: Any = None,
) -> "Drawing":
    """Draws the graph of the functions that backward from `tensors` would call.

    `params` names leaves (and outputs): `dict(a=a, b=b)` or `model.named_parameters()`.  `shapes` shows the shapes of
    tensors, `saved` what each function keeps for backward and its bytes; a tensor that two functions keep is counted
    in both.  `profile`, a profiler that has recorded the forward, the backward (with `retain_graph=True`), or both, adds
    the time of each and the bytes that it allocated, less what it freed.  A graph of more than `max_boxes` boxes is folded: by the modules of its parameters' names where that
    is enough, else by repetition (`× N`), else into stretches of equal length.

    TypeError if something else than tensors, or than a finished profiler, is given, RuntimeError if a tensor has no graph.
    """
    if max_boxes < 1:
        raise ValueError(f"expected max_boxes to be at least 1, found {max_boxes}")
    roots = [tensors] if isinstance(tensors, rushlight.Tensor) else list(tensors)
    if not roots:
        raise ValueError("expected at least one tensor to draw the graph of")
    costs = None
    if profile is not None:
        from .cost import Costs

        costs = Costs(profile)
    return Drawing(compose(collect(roots, params, costs), max_boxes, shapes, saved))


class Drawing:
    """A picture of a graph; it holds text only, so it keeps neither tensors nor their history alive."""

    def __init__(self, picture: Picture) -> None:
        self._picture = picture
        self._svg: str | None = None

    @property
    def svg(self) -> str:
        """The picture as the text of an SVG file."""
        if self._svg is None:
            self._svg = svg(self._picture)
        return self._svg

    @property
    def dot(self) -> str:
        """The picture in Graphviz's language."""
        return dot(self._picture)

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<Drawing: {self._picture.caption}>"

    def __str__(self) -> str:
        """The picture as lines of text, inputs before users."""
        boxes = self._picture.boxes
        sources: list[list[str]] = [[] for _ in boxes]
        for arrow in self._picture.arrows:
            sources[arrow.target].append(f"[{arrow.source}]" + (f" {arrow.label}" if arrow.label else ""))
        lines = []
        for number, box in enumerate(boxes):
            line = f"[{number}] {box.heading}"
            if box.details:
                line += f" ({'; '.join(box.details)})"
            if sources[number]:
                line += " <- " + ", ".join(sources[number])
            lines.append(line)
        return "\n".join([*lines, self._picture.caption])

    def save(self, path: "str | os.PathLike[str]") -> None:
        """Writes the picture to a file, in the format that its name ends with: .svg, .dot, .png or .pdf.

        .png and .pdf need the package cairosvg or one of the programs rsvg-convert and dot (Graphviz), looked for in
        this order.  ValueError for another ending, RuntimeError if none of the three is there or it fails.
        """
        name = os.fspath(path)
        ending = os.path.splitext(name)[1].lower().removeprefix(".")
        if ending in ("svg", "dot"):
            with open(name, "w", encoding="utf-8") as file:
                file.write(self.svg if ending == "svg" else self.dot)
        elif ending in ("png", "pdf"):
            _convert(self, ending, name)
        else:
            raise ValueError(f"expected a file name that ends with .svg, .dot, .png or .pdf, found {name!r}")


def _convert(drawing: Drawing, ending: str, name: str) -> None:
    try:
        import cairosvg  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        pass
    else:
        write = cairosvg.svg2png if ending == "png" else cairosvg.svg2pdf
        write(bytestring=drawing.svg.encode(), write_to=name)
        return
    if shutil.which("rsvg-convert"):
        command, text = ["rsvg-convert", f"--format={ending}", "--zoom=2", f"--output={name}"], drawing.svg
    elif shutil.which("dot"):
        command, text = ["dot", f"-T{ending}", "-Gdpi=144", f"-o{name}"], drawing.dot
    else:
        raise RuntimeError(
            f"a .{ending} file needs the package cairosvg or one of the programs rsvg-convert and dot, and none of "
            "them is installed; .svg and .dot need nothing"
        )
    result = subprocess.run(command, input=text, text=True, encoding="utf-8", capture_output=True, check=False)
    if result.returncode:
        raise RuntimeError(f"{command[0]} could not write {name!r}: {result.stderr.strip()}")
