import threading

from streaming import left


def test_two_attempts_at_a_time_wait_for_each_other(broker, queue, put, query):
    """A stream that is united with itself, and speculation: each has the same rows."""
    put(broker, queue, *map(str, range(100)))
    running = query()
    running.plan()
    [task] = running.tasks()
    found = []
    threads = [threading.Thread(target=lambda: found.append(running.read(task))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(found) == 4
    assert all(rows == found[0] for rows in found)
    assert len(found[0]) == 100
    assert left(broker, queue) == 0
