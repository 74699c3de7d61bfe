"""A picture in Graphviz's language, for those who have it and want its layout."""

from .picture import Picture
from .svg import STYLES


def dot(picture: Picture) -> str:
    """The picture as the text of a DOT file."""
    lines = [
        "digraph graph_of_functions {",
        "  rankdir=TB;",
        f"  label={_quoted(picture.caption)};",
        '  node [shape=box, style="filled,rounded", fontname="Helvetica", fontsize=12];',
        '  edge [fontname="Helvetica", fontsize=10, color="#666666", fontcolor="#555555"];',
    ]
    for number, box in enumerate(picture.boxes):
        fill, border, ink = STYLES[box.style]
        text = _quoted("\n".join([box.heading, *box.details]))
        colours = f'fillcolor="{fill}", color="{border}", fontcolor="{ink}"'
        lines.append(f'  n{number} [label={text}, class="{box.style}", {colours}];')
    for arrow in picture.arrows:
        label = f" [label={_quoted(arrow.label)}]" if arrow.label else ""
        lines.append(f"  n{arrow.source} -> n{arrow.target}{label};")
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
