"""A picture as SVG, complete in itself: no font, script or style sheet from elsewhere."""

from dataclasses import dataclass
from html import escape
from itertools import pairwise

from .layout import Layout, Point, lay_out
from .picture import Box, Picture

MARGIN = 16.0
TITLE_SIZE = 13.0
DETAIL_SIZE = 10.5
LINE = 15.0  # height of a line of details
CARD = 4.0  # offset of the cards behind a repetition

# fill, border, and colour of the text
STYLES = {
    "leaf": ("#cfe4f7", "#3f7fb5", "#12344f"),
    "accumulate": ("#f1f1f1", "#a5a5a5", "#4a4a4a"),
    "function": ("#e3e3e3", "#8a8a8a", "#222222"),
    "module": ("#ececec", "#5f5f5f", "#222222"),
    "output": ("#d5edcb", "#5d9a4d", "#1d3f14"),
}
BOLD = ("leaf", "module", "output")  # titles that are names given by the user
FONT = "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif"


def svg(picture: Picture) -> str:
    """The picture as the text of an SVG file."""
    sizes = [_reserved_size(box, _label_of(picture, number)) for number, box in enumerate(picture.boxes)]
    layout = lay_out(sizes, [(arrow.source, arrow.target) for arrow in picture.arrows])
    return _Writer(picture, layout).text()


# ---- measures --------------------------------------------------------------------------------------------------------

_NARROW, _WIDE = frozenset("iljtfrI.,:;'|()[]{}/! ·"), frozenset("mwMWGOQCDHNU@%×—")


def text_width(text: str, size: float, bold: bool = False) -> float:
    """About the width of a text in the fonts named here: no font is there to be asked."""
    ems = sum(0.32 if character in _NARROW else 0.78 if character in _WIDE else 0.57 for character in text)
    return ems * size * (1.06 if bold else 1.0)


def box_size(box: Box) -> tuple[float, float]:
    """Width and height of what is drawn of a box, without the cards behind it."""
    widths = [text_width(box.heading, TITLE_SIZE, box.style in BOLD)] + [
        text_width(line, DETAIL_SIZE) for line in box.details
    ]
    height = 28.0 + (len(box.details) * LINE + 3.0 if box.details else 0.0)
    return max(max(widths) + 24.0, 58.0), height


def _reserved_size(box: Box, label: str) -> tuple[float, float]:
    """The box with its cards, and room for the label of its result beside the arrow that leaves it."""
    width, height = box_size(box)
    cards = 2 * CARD if box.count > 1 else 0.0
    return max(width + cards, 2 * text_width(label, DETAIL_SIZE) + 20.0), height + cards


def _label_of(picture: Picture, box: int) -> str:
    """The longest label among the arrows that leave a box."""
    return max((arrow.label for arrow in picture.arrows if arrow.source == box), key=len, default="")


# ---- writing ---------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Writer:
    picture: Picture
    layout: Layout

    def text(self) -> str:
        caption = text_width(self.picture.caption, DETAIL_SIZE)
        inner = max(self.layout.width, caption)
        width, height = inner + 2 * MARGIN, self.layout.height + 2 * MARGIN + 26.0
        shift = MARGIN + (inner - self.layout.width) / 2
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_n(width)}" height="{_n(height)}" '
            f'viewBox="0 0 {_n(width)} {_n(height)}" font-family="{FONT}" text-anchor="middle">',
            f"<title>Graph of {escape(self.picture.caption)}</title>",
            '<defs><marker id="arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
            'orient="auto"><path d="M0,0.8 L10,5 L0,9.2 z" fill="#666666"/></marker></defs>',
            f'<rect width="{_n(width)}" height="{_n(height)}" rx="6" fill="#ffffff"/>',
            f'<g transform="translate({_n(shift)},{_n(MARGIN)})">',
            '<g fill="none" stroke="#666666" stroke-width="1.2">',
        ]
        lines += [f'<path class="edge" d="{_curve(route)}" marker-end="url(#arrow)"/>' for route in self.layout.routes]
        lines.append("</g>")
        for box, centre in zip(self.picture.boxes, self.layout.centres, strict=True):
            lines += _box_lines(box, centre)
        lines += self._labels()
        lines += [
            "</g>",
            f'<text class="caption" x="{_n(width / 2)}" y="{_n(height - 14)}" font-size="{DETAIL_SIZE}" '
            f'fill="#777777">{escape(self.picture.caption)}</text>',
            "</svg>",
        ]
        return "\n".join(lines) + "\n"

    def _labels(self) -> list[str]:
        """The shapes of results: once below a box whose arrows all carry the same, else on each arrow."""
        lines = []
        for box, centre in enumerate(self.layout.centres):
            leaving = [
                (arrow.label, route)
                for arrow, route in zip(self.picture.arrows, self.layout.routes, strict=True)
                if arrow.source == box
            ]
            labels = {label for label, _ in leaving if label}
            if len(labels) == 1:
                place = _place_below_box([route for _, route in leaving], centre[0])
                lines.append(_label(labels.pop(), *place))
            else:
                lines += [line for label, route in leaving if label for line in _label_on_arrow(label, route)]
        return lines


Place = tuple[float, float, str]  # with the text's anchor
_BEND = 20.0  # an arrow that goes less far to a side is as good as straight


def _label(text: str, x: float, y: float, anchor: str) -> str:
    return (
        f'<text class="shape" x="{_n(x)}" y="{_n(y)}" font-size="{DETAIL_SIZE}" text-anchor="{anchor}" '
        f'fill="#555555" stroke="#ffffff" stroke-width="3" paint-order="stroke">{escape(text)}</text>'
    )


def _place_below_box(routes: list[list[Point]], centre: float) -> Place:
    """On the side from which the arrows bend away; lower, where they have parted, if they bend to both sides."""
    routes = sorted(routes, key=lambda route: route[0][0])
    bends = [_bend(route) for route in routes]
    (left, y), right = routes[0][0], routes[-1][0][0]
    free_left, free_right = min(bends) > -_BEND, max(bends) < _BEND
    if free_left and free_right:  # straight: towards the middle of the box, where room is kept
        free_right = left <= centre
    if free_right:
        return right + 6.0, y + 16.0, "start"
    if free_left:
        return left - 6.0, y + 16.0, "end"
    middle = next((route[0][0] + 6.0 for route, bend in zip(routes, bends, strict=True) if abs(bend) < _BEND), None)
    if middle is not None:
        return middle, y + 32.0, "start"
    return (left + right) / 2, y + 32.0, "middle"


def _label_on_arrow(text: str, route: list[Point]) -> list[str]:
    """In the middle of the arrow's widest curve, of its first stretch if it is straight; the line is interrupted."""
    stretches = list(pairwise(route))
    (x, y), (next_x, next_y) = max(stretches, key=lambda ends: abs(ends[1][0] - ends[0][0]))
    x, y, width = (x + next_x) / 2, (y + next_y) / 2, text_width(text, DETAIL_SIZE)
    return [
        f'<rect x="{_n(x - width / 2 - 1)}" y="{_n(y - 7)}" width="{_n(width + 2)}" height="14" fill="#ffffff"/>',
        _label(text, x, y + 3.5, "middle"),
    ]


def _bend(route: list[Point]) -> float:
    """How far to the right an arrow has gone when it reaches the next rank."""
    return next((x - route[0][0] for x, _ in route if x != route[0][0]), 0.0)


def _curve(route: list[Point]) -> str:
    """A line that enters and leaves every point vertically."""
    (x, y), *rest = route
    parts = [f"M{_n(x)},{_n(y)}"]
    for next_x, next_y in rest:
        if abs(next_x - x) < 0.05:
            parts.append(f"L{_n(next_x)},{_n(next_y)}")
        else:
            middle = (y + next_y) / 2
            parts.append(f"C{_n(x)},{_n(middle)} {_n(next_x)},{_n(middle)} {_n(next_x)},{_n(next_y)}")
        x, y = next_x, next_y
    return " ".join(parts)


def _box_lines(box: Box, centre: Point) -> list[str]:
    fill, border, ink = STYLES[box.style]
    width, height = box_size(box)
    shift = CARD if box.count > 1 else 0.0  # the front card stands where arrows arrive
    left, top = centre[0] - width / 2 - shift, centre[1] - height / 2 - shift
    lines = [f'<g class="{box.style}">']
    for card in (2, 1, 0) if box.count > 1 else (0,):
        lines.append(
            f'<rect x="{_n(left + card * CARD)}" y="{_n(top + card * CARD)}" width="{_n(width)}" '
            f'height="{_n(height)}" rx="4" fill="{fill}" stroke="{border}"/>'
        )
    weight = ' font-weight="bold"' if box.style in BOLD else ""
    lines.append(
        f'<text x="{_n(left + width / 2)}" y="{_n(top + 18.5)}" font-size="{TITLE_SIZE:g}"{weight} fill="{ink}">'
        f"{escape(box.heading)}</text>"
    )
    for number, line in enumerate(box.details):
        lines.append(
            f'<text x="{_n(left + width / 2)}" y="{_n(top + 33.0 + number * LINE)}" '
            f'font-size="{DETAIL_SIZE}" fill="{ink}">'
            f"{escape(line)}</text>"
        )
    return [*lines, "</g>"]


def _n(number: float) -> str:
    """A coordinate with one digit after the point, as short as it goes."""
    return f"{number:.1f}".removesuffix(".0") if abs(number) >= 0.05 else "0"
