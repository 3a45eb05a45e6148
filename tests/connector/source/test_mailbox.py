import os
import sys
from dataclasses import replace

import pytest

from pyspark_jms.source.mailbox import Mailbox, post

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the kernel's files in memory, and /proc")


@pytest.fixture
def mailbox():
    mailbox = Mailbox()
    yield mailbox
    mailbox.close()


def test_records_are_taken_once_and_in_order(mailbox):
    address = mailbox.address()
    assert mailbox.take() == b""
    assert post(address, b"one")
    assert post(address, b"two")
    assert mailbox.take() == b"onetwo"
    assert post(address, b"three")
    assert mailbox.take() == b"three"


def test_nothing_is_posted_to_another_file_of_the_same_number(mailbox):
    assert not post(replace(mailbox.address(), inode=1), b"one")
    assert not post(replace(mailbox.address(), path="/proc/self/no/such/file"), b"one")
    assert mailbox.take() == b""


def test_there_is_no_address_where_there_is_no_such_memory(mailbox, monkeypatch):
    monkeypatch.delattr(os, "memfd_create")
    assert mailbox.address() is None
    assert mailbox.take() == b""
