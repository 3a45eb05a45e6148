"""Explores a model: every state that a world can reach, or random walks.

A world has a ``first`` state; ``moves`` gives the successors of a state with their labels, and ``fault`` a sentence on
what is wrong in it, or None: a *violation*.
"""

import random
from collections import deque
from dataclasses import dataclass, field


@dataclass
class Exploration:
    states: int = 0
    depth: int = 0
    violation: str | None = None
    path: list[str] = field(default_factory=list)
    """The labels of the moves that lead to the violation."""


def explore(world):
    """Breadth first, so that the path to a violation is a shortest one, until the end or the first violation.

    ``world.canonical`` gives one state for all states that differ in names only.
    """
    came_from = {world.first: None}
    depth_of = {world.first: 0}
    waiting, found = deque([world.first]), Exploration()
    while waiting:
        state = waiting.popleft()
        depth = depth_of.pop(state)
        found.depth = max(found.depth, depth)
        for label, moved in world.moves(state):
            after = world.canonical(moved)
            if after in came_from:
                continue
            came_from[after] = (label, state)
            found.violation = world.fault(after)
            if found.violation is not None:
                found.path = _path(came_from, after)
                return found
            depth_of[after] = depth + 1
            waiting.append(after)
    found.states = len(came_from)
    return found


def _path(came_from, state):
    labels = []
    while came_from[state] is not None:
        label, state = came_from[state]
        labels.append(label)
    return labels[::-1]


def walk(world, seed):
    """A random path: a fault (its label begins with ``!``) at about every eighth move, where one is possible.

    Return what is wrong and the labels. ``violation`` of the state is asked after every move, ``fault`` at the end.
    """
    choose = random.Random(seed)
    state, labels = world.first, []
    for _ in range(400):
        steps = list(world.moves(state))
        faults = [step for step in steps if step[0].startswith("!")]
        others = [step for step in steps if not step[0].startswith("!")]
        if not steps:
            break
        take_fault = faults and (not others or choose.random() < 0.12)
        label, state = choose.choice(faults if take_fault else others)
        labels.append(label)
        if state.violation is not None:
            return state.violation, labels
    return world.fault(state), labels
