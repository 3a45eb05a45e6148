import os
import threading

from bench.processes import thread_seconds
from bench.reads import by_place


def test_the_seconds_of_a_thread_are_those_since_before_by_place():
    before = {"1": ("GC Thread#0", 2.0), "2": ("Thread-1 (activ", 5.0), "3": ("VM Thread", 1.0)}
    after = {
        "1": ("GC Thread#0", 2.5),
        "2": ("Thread-1 (activ", 6.0),
        "3": ("VM Thread", 1.0),
        "4": ("Thread-9 (activ", 4.0),
    }
    assert by_place(before, after) == {"garbage collector": [0.5], "connections": [4.0, 1.0]}


def test_every_thread_of_a_process_has_its_name_and_seconds():
    found = thread_seconds(os.getpid())
    assert len(found) >= threading.active_count()
    assert found[str(os.getpid())][1] > 0
