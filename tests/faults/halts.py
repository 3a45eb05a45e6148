"""Places in a job where it stops and waits, on request, so that a fault hits its point.

    in the job:   halts.here("partitions", 400)      goes on, unless somebody wants it to halt here
    outside:      halts.want("partitions", 400)      from 400 on
                  halts.reached("partitions")        it stands there
                  halts.release()

Two files in a folder both see, so that processes of any kind can halt, and be killed while they do.
"""

import os
import time
from pathlib import Path

VARIABLE = "JMS_TEST_HALTS"
_LONGEST_SECONDS = 120
_POLL_SECONDS = 0.01


class Halts:
    def __init__(self, folder):
        self._folder = Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)

    @classmethod
    def of_this_job(cls):
        return cls(os.environ[VARIABLE])

    def want(self, place, number=0):
        """Halt at the place when it is passed with this number or a larger one; who stands there below it goes on."""
        (self._folder / f"{place}.reached").unlink(missing_ok=True)
        draft = self._folder / f"{place}.draft"
        draft.write_text(str(number))
        draft.replace(self._wanted(place))

    def reached(self, place):
        return (self._folder / f"{place}.reached").exists()

    def number(self, place):
        """With which number it was passed; while it is reached."""
        return int((self._folder / f"{place}.reached").read_text())

    def release(self, *places):
        """Of these places, or of all: what stands there goes on, what comes there passes."""
        for path in sorted(self._folder.iterdir(), reverse=True):  # .wanted before .reached
            if not places or path.stem in places:
                path.unlink(missing_ok=True)

    def here(self, place, number=0):
        if not self._holds(place, number):
            return
        draft = self._folder / f"{place}.at"
        draft.write_text(str(number))
        draft.replace(self._folder / f"{place}.reached")
        until = time.monotonic() + _LONGEST_SECONDS
        while self._holds(place, number) and time.monotonic() < until:
            time.sleep(_POLL_SECONDS)

    def _holds(self, place, number):
        try:
            return number >= int(self._wanted(place).read_text())
        except FileNotFoundError:
            return False

    def _wanted(self, place):
        return self._folder / f"{place}.wanted"
