from pyspark_jms.source.staged.progress import figures as figures_of_a_staged_read


def _figures(source, reached):
    return figures_of_a_staged_read(source._owner, source._intake, source._counts, {}, reached=reached, dropped=0)


def test_the_figures_of_a_staged_read(broker, queue, put, query):
    put(broker, queue, "a", "b", "c")
    running = query(maxMessagesPerTrigger=2)
    assert running.source.progress() == {}
    running.plan()
    while not running.plan():
        pass
    figures = running.source.progress()
    assert (figures["seq"], figures["staged"], figures["moved"], figures["retired"]) == (2, 2, 2, 0)
    assert figures["backlog"] == 2
    assert _figures(running.source, reached=1)["backlog"] == 1  # the commit log has one of the two staged messages
    assert 0 <= figures["oldestStagedSeconds"] < 60
    assert figures["guarantee"] == "exactly-once into Spark"
    assert figures["broker"].startswith("apache-activemq-artemis/")
    running.rows()
    running.commit()
    running.plan()
    assert running.source.progress()["moved"] == 3
