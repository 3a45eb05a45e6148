"""The journal of a query, without a broker."""

import contextlib

import pytest

from pyspark_jms.delivery.journal.binding import JournalMark
from pyspark_jms.errors import OptionConflictError
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.offsets import offset
from pyspark_jms.source.stopping import StopRequest
from pyspark_jms.source.stores.journal import QueryJournal
from pyspark_jms.spark.protocols import reading_of


def journal_of(folder=None, **more):
    raw = (
        {"brokerUrl": "stomp://h", "queue": "q"}
        | ({"deliveryGuarantee": "exactly-once", "journalLocation": str(folder)} if folder else {})
        | more
    )
    return contextlib.closing(QueryJournal(reading_of(SourceOptions.parse(raw)), StopRequest()))


def test_without_the_option_there_is_no_store():
    with journal_of() as journal:
        assert (journal.store(), journal.mark(), journal.require_belongs(offset(3))) == (None, None, None)


def test_the_mark_names_the_journal_and_its_end(tmp_path):
    with journal_of(tmp_path) as journal:
        assert journal.mark() == JournalMark(journal.store().meta.id, 0)
        assert journal.require_belongs(offset(0, None, journal.mark())) is journal.store()


def test_a_checkpoint_without_a_journal_gets_none(tmp_path):
    with (
        journal_of(tmp_path / "journal") as journal,
        pytest.raises(OptionConflictError, match=r"without a journal \(at-least-once\).* new output folder"),
    ):
        journal.require_belongs(offset(4), offset(4))
    with journal_of(tmp_path / "other", failOnDataLoss="false") as journal:
        assert journal.require_belongs(offset(4)) is journal.store()


def test_a_checkpoint_with_a_journal_needs_it(tmp_path):
    with journal_of(tmp_path) as journal:
        marked = offset(0, None, journal.mark())
    with journal_of() as journal, pytest.raises(OptionConflictError, match=r"journalLocation .* new output folder"):
        journal.require_belongs(marked)
    with journal_of(failOnDataLoss="false") as journal:
        assert journal.require_belongs(marked) is None
