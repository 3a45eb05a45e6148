"""The moment of a random fault: after a time, at a frame, or at a new file. A seed determines all moments."""

import time
from dataclasses import dataclass
from pathlib import Path

from cells import TO_QUEUE, WITH_JOURNAL
from frames import AMQP_READERS, AMQP_SINK, AMQP_SINK_ONCE, AMQP_SOURCE, STOMP_SOURCE, Frame

LONGEST_SECONDS = 3.0
"""The longest wait for a moment. The frame or the file may never come."""
_FRAMES = {
    "journal": {"source": STOMP_SOURCE},
    "plain": {"source": STOMP_SOURCE},
    "amqp": {"source": AMQP_SOURCE},
    "amqp-once": {"source": AMQP_READERS},
    "amqp-sink": {"sink": AMQP_SINK},
    "amqp-sink-once": {"sink": AMQP_SINK_ONCE},
    "amqp-both-once": {"source": AMQP_READERS, "sink": AMQP_SINK_ONCE},
}
_FILES = ("checkpoint/offsets", "checkpoint/commits", "journal", "out")
_INSTEAD = {"journal": "checkpoint/offsets", "out": "checkpoint/commits"}
"""The folder for a mode without the one that was drawn."""


@dataclass(frozen=True)
class Moment:
    kind: str
    seconds: float = 0
    proxy: str = ""
    frame: Frame | None = None
    nth: int = 1
    folder: str = ""

    def __str__(self):
        if self.kind == "time":
            return f"after {self.seconds:.2f} s"
        if self.kind == "frame":
            return f"at {self.frame.name} {self.nth} of the {self.proxy}"
        return f"at a new file in {self.folder}"


def draw(rng, mode, longest=LONGEST_SECONDS, counts=(1, 1, 2, 3, 50)):
    """``longest``: seconds of the longest time that is drawn. ``counts``: which one of the frames the moment is at."""
    kind = rng.choice(("time", "frame", "file"))
    seconds = rng.uniform(0, longest)
    proxy = rng.choice(sorted(_FRAMES[mode]))
    frame, nth = rng.choice(_FRAMES[mode][proxy]), rng.choice(counts)
    folder = rng.choice(_FILES)
    if (folder == "journal" and mode not in WITH_JOURNAL) or (folder == "out" and mode in TO_QUEUE):
        folder = _INSTEAD[folder]
    return Moment(kind, seconds, proxy, frame, nth, folder)


def await_moment(stage, moment, longest=LONGEST_SECONDS):
    """Wait for the moment, at most ``longest`` seconds. Returns whether it came. Its frame stays held."""
    deadline = time.monotonic() + longest
    if moment.kind == "time":
        time.sleep(moment.seconds)
        return True
    if moment.kind == "frame":
        # If the client ends meanwhile, the held bytes are lost. Cells of the point before-ttl deliver them later.
        way = moment.frame.hold(getattr(stage, moment.proxy), nth=moment.nth, outlives=False)
        return way.held.wait(longest)
    folder = stage.folder / moment.folder
    before = _names(folder)
    while time.monotonic() < deadline:
        if _names(folder) - before:
            return True
        time.sleep(0.001)
    return False


def _names(folder: Path):
    try:
        return {path.name for path in folder.iterdir()}
    except FileNotFoundError:
        return set()
