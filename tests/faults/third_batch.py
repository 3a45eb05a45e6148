"""What the points of every protocol share: they are in the third batch, when two are done and nothing is on the way."""

from cells import FROM_FILES, READERS

BATCH, MORE = 200, 900
THIRD = 2
FIRST = 600
"""Messages before the query starts."""
LEAST_MESSAGE_BYTES = 100
"""Of a message on its way to the source."""


def in_the_third_batch(stage, **options):
    """Halted before Spark learns what the third batch is."""
    number = THIRD if stage.mode in READERS else THIRD * BATCH
    stage.start_until("latestOffset", number, maxMessagesPerTrigger=BATCH, **options)


def go_on(stage):
    stage.driver.halts.release("latestOffset")


def hold_third(stage, frame):
    """Hold the first of these frames that the third batch sends to the broker. Returns the batch."""
    if stage.mode in FROM_FILES:
        stage.start()
        stage.until(lambda: stage.logged("commits") == set(range(THIRD)), "the second batch")
    else:
        in_the_third_batch(stage)
    way = frame.hold(stage.sink)
    stage.input.send(MORE)
    go_on(stage)
    stage.held(way, f"a frame {frame.name} of the third batch")
    batch = max(stage.logged("offsets"))
    stage.require(batch not in stage.logged("commits"), "the batch is done")
    return batch
