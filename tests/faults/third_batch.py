"""Brings a job to its third batch, in which the points of all protocols are: two batches are done, none is running."""

from cells import FROM_FILES, READERS

BATCH, MORE = 200, 900
THIRD = 2
FIRST = 600
"""Messages before the query starts."""
LEAST_MESSAGE_BYTES = 100
"""Of a message on its way to the source."""


def in_the_third_batch(stage, **options):
    """Start the query, which waits before Spark learns the end of the third batch."""
    number = THIRD if stage.mode in READERS else THIRD * BATCH
    stage.start_until("latestOffset", number, maxMessagesPerTrigger=BATCH, **options)


def go_on(stage):
    stage.driver.breakpoints.release("latestOffset")


def hold_third(stage, frame):
    """Hold this frame of the sink at its first occurrence in the third batch. Returns the batch."""
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
