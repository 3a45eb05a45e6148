"""Explores a model: every state that a world can reach, or random walks. ``moves`` gives the successors of a state.

A *violation* is what ``fault`` returns for a state: a sentence, or None. The first path to each violation is kept.
"""

import random
from collections import deque
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field

State = Hashable
Moves = Callable[[State], Iterable[tuple[str, State]]]


@dataclass
class Exploration:
    states: int = 0
    depth: int = 0
    complete: bool = True
    violations: dict[str, list[str]] = field(default_factory=dict)
    """The sentence → the labels of the moves that lead to it."""

    def __str__(self):
        found = "; ".join(f"{what} after {len(path)} moves" for what, path in self.violations.items()) or "none"
        return (
            f"{self.states:,} states, depth {self.depth}, {'complete' if self.complete else 'cut'}, violations: {found}"
        )


def explore(start, moves, fault, *, canonical=lambda state: state, limit=10_000_000, enough=1):
    """Breadth first, so that the path to a violation is a shortest one. Ends early with ``enough`` violations.

    ``canonical``: one state for all states that differ in names only.
    """
    came_from = {start: None}
    depth_of = {start: 0}
    waiting, found = deque([start]), Exploration()
    while waiting:
        state = waiting.popleft()
        depth = depth_of.pop(state)
        found.depth = max(found.depth, depth)
        for label, moved in moves(state):
            after = canonical(moved)
            if after in came_from:
                continue
            came_from[after] = (label, state)
            what = fault(after)
            if what is None:
                depth_of[after] = depth + 1
                waiting.append(after)
                continue
            found.violations.setdefault(what, _path(came_from, after))
            if len(found.violations) >= enough:
                found.states, found.complete = len(came_from), False
                return found
        if len(came_from) >= limit:
            found.complete = False
            break
    found.states = len(came_from)
    return found


def _path(came_from, state):
    labels = []
    while came_from[state] is not None:
        label, state = came_from[state]
        labels.append(label)
    return labels[::-1]


def walk(start, moves, fault, seed, *, violation=lambda state: state.violation, probability=0.12, length=400):
    """A random path: a fault (its label begins with ``!``) with the probability, where one is possible.

    Return what is wrong and the labels. ``violation`` is asked after every move, ``fault`` at the end.
    """
    choose = random.Random(seed)
    state, labels = start, []
    for _ in range(length):
        steps = list(moves(state))
        faults = [step for step in steps if step[0].startswith("!")]
        others = [step for step in steps if not step[0].startswith("!")]
        if not steps:
            break
        take_fault = faults and (not others or choose.random() < probability)
        label, state = choose.choice(faults if take_fault else others)
        labels.append(label)
        if violation(state) is not None:
            return violation(state), labels
    return fault(state), labels
