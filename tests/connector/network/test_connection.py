import threading

from waiting import wait_until

from pyspark_jms.network.connection import StateCondition


def test_a_pause_ends_when_something_arrives():
    condition, woken = StateCondition(), threading.Event()

    def wait():
        condition.pause(60)
        woken.set()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()

    def notified():
        with condition:
            condition.notify_all()
        return woken.wait(0.05)

    wait_until(notified, what="the end of the pause")
    thread.join(10)
    assert not thread.is_alive()


def test_a_pause_ends_when_nothing_arrives():
    StateCondition().pause(0.01)
