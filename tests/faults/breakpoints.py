"""Breakpoints: places where a job waits while a test causes a fault.

    in the job:      breakpoints.wait_at("partitions", 400)       returns at once, unless the breakpoint is set
    in the test:     breakpoints.set("partitions", 400)           the job waits if its number is 400 or more
                     breakpoints.is_reached("partitions")         the job waits there
                     breakpoints.release()

A breakpoint is two files in a folder that the job and the test share. So processes of any kind can wait at one, and can
be killed there.
"""

import os
import time
from pathlib import Path

VARIABLE = "JMS_TEST_BREAKPOINTS"
_LONGEST_SECONDS = 120
_POLL_SECONDS = 0.01


class Breakpoints:
    def __init__(self, folder):
        self._folder = Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)

    @classmethod
    def of_this_job(cls):
        return cls(os.environ[VARIABLE])

    def set(self, place, number=0):
        """The job waits at the place if its number is this one or a larger one. Releases a job with a smaller one."""
        self._reached(place).unlink(missing_ok=True)
        _write(self._set(place), number)

    def is_reached(self, place):
        return self._reached(place).exists()

    def release(self, *places):
        """Remove the breakpoints at these places, or all. The jobs that wait there go on."""
        for path in sorted(self._folder.iterdir(), reverse=True):  # .set before .reached
            if not places or path.stem in places:
                path.unlink(missing_ok=True)

    def wait_at(self, place, number=0):
        """Wait until the breakpoint is released, at most two minutes. Returns at once if it is not set."""
        if not self._holds(place, number):
            return
        _write(self._reached(place), number)
        until = time.monotonic() + _LONGEST_SECONDS
        while self._holds(place, number) and time.monotonic() < until:
            time.sleep(_POLL_SECONDS)

    def _holds(self, place, number):
        try:
            return number >= int(self._set(place).read_text())
        except FileNotFoundError:
            return False

    def _set(self, place):
        return self._folder / f"{place}.set"

    def _reached(self, place):
        return self._folder / f"{place}.reached"


def _write(path, number):
    draft = path.with_suffix(f"{path.suffix}.draft")
    draft.write_text(str(number))
    draft.replace(path)
