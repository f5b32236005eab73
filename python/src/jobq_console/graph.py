"""The layout of a graph: its jobs and arrows, in layers from left to right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

MOST_NODES: Final = 60  # drawn at most, those nearest to the job
WIDTH: Final = 168
HEIGHT: Final = 40
ACROSS: Final = 224
DOWN: Final = 54
MARGIN: Final = 6


@dataclass(frozen=True, slots=True)
class Box:
    """A job in the picture, and its upper left corner; `is_here` is the job whose page this is."""

    node: dict[str, Any]
    x: int
    y: int
    is_here: bool


@dataclass(frozen=True, slots=True)
class Picture:
    """The layout of a graph.

    Attributes:
        boxes: the jobs.
        arrows: a path for each edge, and whether the child still waits for it.
        width: total width.
        height: total height.
        is_whole: whether these are all jobs of the graph.
    """

    boxes: list[Box]
    arrows: list[tuple[str, bool]]
    width: int
    height: int
    is_whole: bool


def drawn(graph: dict[str, Any]) -> Picture | None:
    """Return the layout of a result of show_graph(), or None for a single job."""
    nodes = {node["job_id"]: node for node in graph["nodes"]}
    edges = [e for e in graph["edges"] if e["parent_id"] in nodes and e["child_id"] in nodes]
    if not edges:
        return None
    parents: dict[str, list[str]] = {name: [] for name in nodes}
    for edge in edges:
        parents[edge["child_id"]].append(edge["parent_id"])
    layers = layered(parents)
    ways = [way(e["parent_id"], e["child_id"], layers, parents) for e in edges]
    places = ordered(layers, parents)
    at = {name: (MARGIN + layers[name] * ACROSS, MARGIN + places[name] * DOWN) for name in layers}
    boxes = [Box(node, *at[name], name == graph["job_id"]) for name, node in nodes.items()]
    arrows = [
        (arrow([at[name] for name in passed]), edge["is_open"])
        for passed, edge in zip(ways, edges, strict=True)
    ]
    width = max(x for x, _ in at.values()) + WIDTH + MARGIN
    height = max(y for _, y in at.values()) + HEIGHT + MARGIN
    return Picture(boxes, arrows, width, height, graph["is_whole"])


def way(
    parent: str, child: str, layers: dict[str, int], parents: dict[str, list[str]]
) -> list[str]:
    """Return the nodes on the path of an edge: its ends, and a position in each layer between them.

    The places are added to the layers and parents, so that nothing is drawn over them.
    """
    passed = [parent]
    for layer in range(layers[parent] + 1, layers[child]):
        place = f"{parent} {child} {layer}"
        layers[place] = layer
        parents[place] = [passed[-1]]
        passed.append(place)
    return [*passed, child]


def layered(parents: dict[str, list[str]]) -> dict[str, int]:
    """Return for each job one more than the deepest of its parents, 0 without any."""
    layers = dict.fromkeys(parents, 0)
    for _ in parents:
        deeper = {
            name: max((layers[parent] + 1 for parent in above), default=0)
            for name, above in parents.items()
        }
        if deeper == layers:
            break
        layers = deeper
    return layers


def ordered(layers: dict[str, int], parents: dict[str, list[str]]) -> dict[str, int]:
    """Return the position of each job in its layer, near its parents."""
    places: dict[str, int] = {}

    def wish(name: str) -> float:
        above = [places[parent] for parent in parents[name] if parent in places]
        return sum(above) / len(above) if above else 0

    for layer in range(max(layers.values()) + 1):
        here = sorted((name for name in parents if layers[name] == layer), key=wish)
        places.update((name, n) for n, name in enumerate(here))
    return places


def arrow(points: list[tuple[int, int]]) -> str:
    """Return the path of an edge, from the right of its first box to the left of its last."""
    x, y = points[0][0] + WIDTH, points[0][1] + HEIGHT // 2
    path = f"M{x} {y}"
    for n, (left, top) in enumerate(points[1:], start=2):
        is_last = n == len(points)
        to_x, to_y = left - (5 if is_last else 0), top + HEIGHT // 2
        bend = (to_x - x) // 2
        path += f"C{x + bend} {y} {to_x - bend} {to_y} {to_x} {to_y}"
        if not is_last:
            path += f"h{WIDTH}"
        x, y = left + WIDTH, to_y
    return path
