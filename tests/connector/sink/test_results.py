from pyspark_jms.sink.results import Sent, log_dropped_rows


def test_the_driver_logs_how_many_rows_a_write_dropped(caplog):
    log_dropped_rows("batch 7", [Sent(5), Sent(2, 1), Sent(0, 3)])
    assert [record.message for record in caplog.records] == ["= batch 7: 4 of 11 rows were dropped (onBadRow=drop)"]
    log_dropped_rows("batch 8", [Sent(5)])
    assert len(caplog.records) == 1
