"""The cheapest interface: a minimum cut between the environment and the program.

Nodes are the environment, the components of libraries (functions that share state are cut together or not at
all: isolation; see components.py) and the program. An edge says what flows from one to the other: bytes and
calls. Its capacity is what logging it would cost. An edge that nobody can log has no limit, so the cut goes
around it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any
from xml.sax.saxutils import escape

from interfaces.libspec.errors import MissingPackageError

ENVIRONMENT = "environment"
PROGRAM = "program"
CALL_COST = 8
"""Bytes that one event takes in a trace, beside its payload: 96 bytes, compressed. Measured: 5 to 12."""
OCTET_COST = 0.45
"""Bytes that a byte of payload takes in a trace. Measured: 0.2 (text) to 0.8 (base64 of random bytes)."""


@dataclass(frozen=True, slots=True)
class Flow:
    """What crossed from one node to another in the profiled runs.

    `interface` is the interface file at which it can be logged, "" for none; `component` is which of its
    components it leaves.
    """

    source: str
    target: str
    calls: int
    octets: int
    interface: str
    component: str = ""

    @property
    def cost(self) -> float:
        return self.octets * OCTET_COST + self.calls * CALL_COST if self.interface else math.inf


@dataclass(frozen=True, slots=True)
class Choice:
    """The flows that are cut, what logging them costs, and all flows it was chosen from."""

    cut: tuple[Flow, ...]
    inside: frozenset[str]
    cost: float
    flows: tuple[Flow, ...] = ()

    @property
    def interfaces(self) -> tuple[str, ...]:
        return tuple(sorted({flow.interface for flow in self.cut}))

    def components(self, interface: str) -> frozenset[str]:
        """The components of an interface that are cut."""
        return frozenset(flow.component for flow in self.cut if flow.interface == interface)


def without(flows: Sequence[Flow], interface: str) -> list[Flow]:
    """The same flows where an interface is not to be had: its nodes are part of what they flow into."""
    kept, merged = [], {flow.source for flow in flows if flow.interface == interface}
    for flow in flows:
        if flow.interface != interface:
            kept.append(replace(flow, target=PROGRAM) if flow.target in merged else flow)
    return kept


def choose(flows: Iterable[Flow]) -> Choice:
    """The minimum cut. `inside` are the nodes on the environment's side, which replay does not enter."""
    try:
        import networkx
    except ImportError:
        raise MissingPackageError("networkx") from None
    graph: Any = networkx.DiGraph()
    graph.add_nodes_from((ENVIRONMENT, PROGRAM))
    flows = [flow for flow in flows if flow.source != flow.target]
    for flow in flows:
        if graph.has_edge(flow.source, flow.target):
            graph[flow.source][flow.target]["capacity"] += flow.cost
        elif math.isinf(flow.cost):
            graph.add_edge(flow.source, flow.target)
            graph[flow.source][flow.target]["capacity"] = math.inf
        else:
            graph.add_edge(flow.source, flow.target, capacity=flow.cost)
    cost, (inside, _) = networkx.minimum_cut(graph, ENVIRONMENT, PROGRAM)
    cut = tuple(flow for flow in flows if flow.source in inside and flow.target not in inside)
    return Choice(cut, frozenset(inside) - {ENVIRONMENT}, float(cost), tuple(flows))


def choices(flows: Sequence[Flow], near: float = 1.5) -> list[Choice]:
    """The minimum cut, and others that cost up to `near` times as much, cheapest first.

    The others are the minimum cuts where a single interface, or none, may be cut besides those that can do
    without: costs are estimates, and measuring tells which is smallest.
    """
    best = choose(flows)
    found = {best.cut: best}
    names = {flow.interface for flow in flows if flow.source != ENVIRONMENT}
    for dropped in [*({name} for name in names), *(names - {name} for name in names), names]:
        fewer = list(flows)
        for name in dropped:
            fewer = without(fewer, name)
        choice = choose(fewer)
        if choice.cost <= near * best.cost:
            found.setdefault(choice.cut, choice)
    return sorted(found.values(), key=lambda choice: choice.cost)


def picture(flows: Sequence[Flow], choice: Choice) -> str:
    """The graph with the cut as SVG: the environment on the left, the program on the right."""
    nodes = sorted({flow.source for flow in flows} | {flow.target for flow in flows})
    middle = [node for node in nodes if node not in (ENVIRONMENT, PROGRAM)]
    height = max(160, 70 * len(middle) + 40)
    place = {ENVIRONMENT: (110, height / 2), PROGRAM: (790, height / 2)}
    for i, node in enumerate(middle):
        left = node in choice.inside
        place[node] = (370 if left else 540, 55 + 70 * i)
    cut = set(choice.cut)
    most = max((flow.octets + flow.calls for flow in flows), default=1)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 900 {height:.0f}" font-family="sans-serif" '
        'font-size="13">',
        '<rect width="100%" height="100%" fill="#fff"/>',
    ]
    for flow in flows:
        (x1, y1), (x2, y2) = place[flow.source], place[flow.target]
        width = 1 + 5 * math.log1p(flow.octets + flow.calls) / math.log1p(most)
        colour, dash = ("#c0392b", ' stroke-dasharray="7 4"') if flow in cut else ("#7f8c8d", "")
        parts.append(
            f'<line x1="{x1:.0f}" y1="{y1:.0f}" x2="{x2:.0f}" y2="{y2:.0f}" stroke="{colour}" '
            f'stroke-width="{width:.1f}"{dash}>'
            f"<title>{escape(f'{flow.calls} calls, {flow.octets} bytes')}</title></line>"
        )
        if flow in cut:
            parts.append(
                f'<text x="{(x1 + x2) / 2:.0f}" y="{(y1 + y2) / 2 - 6:.0f}" text-anchor="middle" '
                f'fill="{colour}">'
                f"{escape(flow.interface)}</text>"
            )
    for node, (x, y) in place.items():
        fill = "#d6eaf8" if node in choice.inside or node == ENVIRONMENT else "#d5f5e3"
        parts.append(
            f'<rect x="{x - 85:.0f}" y="{y - 18:.0f}" width="170" height="36" rx="8" fill="{fill}" '
            'stroke="#566573"/>'
            f'<text x="{x:.0f}" y="{y + 5:.0f}" text-anchor="middle">{escape(node)}</text>'
        )
    return "\n".join([*parts, "</svg>", ""])
