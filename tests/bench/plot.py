"""A plot of figures over time, as an SVG of one panel above the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

WIDTH, HEIGHT = 640, 160
LEFT, TOP = 70, 34
COLOURS = ("#1f5fa8", "#c4541c", "#3c8a3c")


@dataclass(frozen=True)
class Panel:
    """Lines with a common scale.

    Attributes:
        title: what is shown, with its unit.
        lines: the values of each line by its name, evenly spaced in time.
    """

    title: str
    lines: dict[str, Sequence[float]]


def save(path: Path, panels: Sequence[Panel], minutes: float) -> None:
    """Write panels into a file; each begins at zero in both directions."""
    height = len(panels) * (HEIGHT + 2 * TOP)
    drawn = "\n".join(
        f'<g transform="translate({LEFT},{TOP + n * (HEIGHT + 2 * TOP)})">\n'
        f"{panel_drawn(panel, minutes)}\n</g>"
        for n, panel in enumerate(panels)
    )
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH + 2 * LEFT}" height="{height}"'
        f' font-family="sans-serif" font-size="12">\n'
        f'<rect width="100%" height="100%" fill="white"/>\n{drawn}\n</svg>\n'
    )


def panel_drawn(panel: Panel, minutes: float) -> str:
    """Return the frame, the scale, the names and the lines of a panel."""
    top = 1.2 * max(value for values in panel.lines.values() for value in values) or 1.0
    parts = [
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#999"/>',
        f'<text y="-8">{panel.title}</text>',
        f'<text x="-8" y="12" text-anchor="end">{top:.3g}</text>',
        f'<text x="-8" y="{HEIGHT}" text-anchor="end">0</text>',
        f'<text x="{WIDTH}" y="{HEIGHT + 16}" text-anchor="end">{minutes:.3g} minutes</text>',
    ]
    for n, (name, values) in enumerate(panel.lines.items()):
        step = WIDTH / max(len(values) - 1, 1)
        points = " ".join(
            f"{i * step:.1f},{HEIGHT * (1 - v / top):.1f}" for i, v in enumerate(values)
        )
        parts.append(f'<polyline points="{points}" fill="none" stroke="{COLOURS[n]}"/>')
        parts.append(
            f'<text x="{WIDTH - 8}" y="{-8 - 14 * n}" text-anchor="end" fill="{COLOURS[n]}">'
            f"{name}</text>"
        )
    return "\n".join(parts)
