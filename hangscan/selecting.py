"""Which operations are worth a stop of the replay: those that weigh in an action that is or would be slow."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence

from hangscan.behind import Behind, projected
from hangscan.environments import Environment
from hangscan.loops import WaitGroup
from hangscan.model import Operation
from hangscan.options import Options

_ALIKE = 4
_ENOUGH = 0.2
_LEAST = 0.005


def choose(
    operations: Sequence[Operation],
    groups: dict[int, list[WaitGroup]],
    behind: dict[int, Behind],
    environments: Sequence[Environment],
    options: Options,
) -> tuple[list[Operation], int]:
    """The operations whose stacks are wanted, and how many more would be worth one.

    Until stacks tell loops from blocking waits, any wait that repeats is taken as the end of an action.
    """
    bounds = {
        task: sorted(event for group in found for event in group.events if len(group.events) > 1)
        for task, found in groups.items()
    }
    everything = bool(options.critical or options.threads or options.startup)
    weights: list[tuple[float, Operation, tuple[int, int]]] = []
    totals: Counter[tuple[int, int]] = Counter()
    for one in operations:
        weight = one.observed_ms
        for environment in environments:
            weight = max(weight, projected(environment, one, behind.get(one.event)).tail_ms)
        action = (one.task, bisect_right(bounds.get(one.task, []), one.event))
        if one.until is not None and not action[1] and not everything:
            continue
        totals[action] += int(weight * 1000)
        weights.append((weight, one, action))
    enough = options.threshold_ms * _ENOUGH * 1000
    least = options.threshold_ms * _LEAST
    worth = [
        (weight, one)
        for weight, one, action in weights
        if weight >= least and (totals[action] >= enough or everything)
    ]
    worth.sort(key=lambda item: (-item[0], item[1].event))
    alike: Counter[object] = Counter()
    chosen: list[Operation] = []
    for _weight, one in worth:
        key = (one.task, one.name, one.detail.get("ip"), str(one.resource))
        alike[key] += 1
        if (one.until is not None or alike[key] <= _ALIKE) and len(chosen) < options.most_stops:
            chosen.append(one)
    return chosen, len(worth) - len(chosen)
