"""A line chart as SVG, complete in itself: enough for a curve of training, without a plotting package."""

import math
from collections.abc import Mapping, Sequence
from html import escape

WIDTH, HEIGHT = 640, 400
LEFT, RIGHT, TOP, BOTTOM = 64, 20, 44, 52  # margins around the axes
COLOURS = ("#3f7fb5", "#c9582f", "#5d9a4d", "#7d5ba6")
FONT = "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif"

Series = Sequence[tuple[float, float]]


def line_chart(series: Mapping[str, Series], title: str, x_label: str, y_label: str) -> str:
    """The text of an SVG file with one line per series, ticks at round numbers, and the series' names.

    ValueError if there is no point at all or a coordinate is not finite.
    """
    points = [point for line in series.values() for point in line]
    if not points:
        raise ValueError("expected at least one point to draw")
    if not all(math.isfinite(x) and math.isfinite(y) for x, y in points):
        raise ValueError("expected finite coordinates")
    x_ticks = round_ticks(min(x for x, _ in points), max(x for x, _ in points))
    y_ticks = round_ticks(min(0.0, *(y for _, y in points)), max(y for _, y in points))

    def place(x: float, y: float) -> tuple[float, float]:
        right = (x - x_ticks[0]) / (x_ticks[-1] - x_ticks[0])
        up = (y - y_ticks[0]) / (y_ticks[-1] - y_ticks[0])
        return LEFT + right * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="{FONT}" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="6" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="24" font-size="15" font-weight="bold" fill="#222222">{escape(title)}</text>',
        '<g stroke="#e0e0e0">',
    ]
    for tick in y_ticks:
        _, y = place(x_ticks[0], tick)
        lines.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
    lines.append('</g><g fill="#555555">')
    for tick in y_ticks:
        _, y = place(x_ticks[0], tick)
        lines.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
    for tick in x_ticks:
        x, _ = place(tick, y_ticks[0])
        lines.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{tick:g}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2, (TOP + HEIGHT - BOTTOM) / 2
    lines += [
        f'<text x="{middle[0]:.1f}" y="{HEIGHT - 12}" text-anchor="middle">{escape(x_label)}</text>',
        f'<text transform="translate(18,{middle[1]:.1f}) rotate(-90)" text-anchor="middle">{escape(y_label)}</text>',
        "</g>",
    ]
    for number, (name, line) in enumerate(series.items()):
        colour = COLOURS[number % len(COLOURS)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*point) for point in line))
        lines += [
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2" stroke-linejoin="round"/>',
            f'<text x="{WIDTH - RIGHT - 6}" y="{TOP + 16 + 18 * number}" text-anchor="end" fill="{colour}">'
            f"{escape(name)}</text>",
        ]
    return "\n".join([*lines, "</svg>"]) + "\n"


def round_ticks(low: float, high: float, about: int = 6) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten that enclose the interval, about so many."""
    if low == high:
        low, high = low - 0.5, high + 0.5
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if rough <= factor * power * 1.0001)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(number * step, 12) for number in range(first, last + 1)]
