"""A scatter plot of predicted against measured values on logarithmic axes, as SVG text."""

import math
from collections.abc import Sequence

SIZE, MARGIN = 360, 46


def scatter_svg(title: str, points: Sequence[tuple[float, float]]) -> str:
    """Plot (measured, predicted) pairs with the diagonal and its ±30 % band."""
    low = math.floor(math.log10(min(min(pair) for pair in points)))
    high = math.ceil(math.log10(max(max(pair) for pair in points)))
    scale = (SIZE - 2 * MARGIN) / (high - low)

    def x(value: float) -> float:
        return MARGIN + (math.log10(value) - low) * scale

    def y(value: float) -> float:
        return SIZE - x(value)

    ends = (10.0**low, 10.0**high)
    corners = [(value, 1.3 * value) for value in ends] + [(value, value / 1.3) for value in reversed(ends)]
    band = " ".join(f"{x(measured):.1f},{y(predicted):.1f}" for measured, predicted in corners)
    ticks = "".join(
        f'<text x="{x(10.0**d):.0f}" y="{SIZE - MARGIN + 15}" text-anchor="middle">{10.0**d:g}</text>'
        f'<text x="{MARGIN - 6}" y="{y(10.0**d) + 4:.0f}" text-anchor="end">{10.0**d:g}</text>'
        for d in range(low, high + 1)
    )
    dots = "".join(f'<circle cx="{x(measured):.1f}" cy="{y(predicted):.1f}" r="2"/>' for measured, predicted in points)
    frame = SIZE - 2 * MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIZE} {SIZE}" width="{SIZE}" height="{SIZE}" '
        f'font-family="sans-serif" font-size="11"><rect width="{SIZE}" height="{SIZE}" fill="#fff"/>'
        f'<clipPath id="f"><rect x="{MARGIN}" y="{MARGIN}" width="{frame}" height="{frame}"/></clipPath>'
        f'<text x="{SIZE / 2}" y="20" text-anchor="middle" font-size="13">{title} (n = {len(points)})</text>'
        f'<g clip-path="url(#f)"><polygon points="{band}" fill="#e4ecf5"/>'
        f'<line x1="{x(ends[0]):.0f}" y1="{y(ends[0]):.0f}" x2="{x(ends[1]):.0f}" y2="{y(ends[1]):.0f}" stroke="#567"/>'
        f'<g fill="#1f5f9f" fill-opacity="0.55">{dots}</g></g>'
        f'<rect x="{MARGIN}" y="{MARGIN}" width="{frame}" height="{frame}" fill="none" stroke="#999"/>{ticks}'
        f'<text x="{SIZE / 2}" y="{SIZE - 10}" text-anchor="middle">measured</text>'
        f'<text x="14" y="{SIZE / 2}" text-anchor="middle" transform="rotate(-90 14 {SIZE / 2})">predicted</text>'
        "</svg>\n"
    )
