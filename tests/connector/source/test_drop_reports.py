import sys

import pytest

from pyspark_jms.source.drop_reports import DropReports, report_dropped

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the kernel's files in memory, and /proc")


@pytest.fixture
def reports():
    reports = DropReports()
    yield reports
    reports.close()


def test_reports_are_added_up_and_logged_once(reports, caplog):
    assert reports.total() == 0
    report_dropped(reports.address(), 0, 3)
    report_dropped(reports.address(), 10, 4)
    assert reports.total() == 7
    report_dropped(reports.address(), 20, 1)
    assert reports.total() == 8
    assert caplog.text.count("do not match the selector") == 1


def test_a_task_that_runs_twice_counts_once(reports):
    report_dropped(reports.address(), 0, 3)
    report_dropped(reports.address(), 0, 3)
    assert reports.total() == 3
    reports.release(10)
    report_dropped(reports.address(), 0, 3)  # a late attempt
    report_dropped(reports.address(), 10, 2)
    assert reports.total() == 5


def test_a_task_that_cannot_report_logs(caplog):
    report_dropped(None, 40, 3)
    assert "3 messages that do not match the selector are dropped (from sequence 40)" in caplog.text
