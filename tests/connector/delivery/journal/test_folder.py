import errno
import os
import stat
import subprocess
import sys

import pytest

from pyspark_jms.delivery.journal.folder import Appender, Folder, map_file, refusals
from pyspark_jms.errors import JournalError


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_created_for_its_owner_only_whatever_the_umask(tmp_path):
    before = os.umask(0)
    try:
        folder = Folder(tmp_path / "new" / "deep" / "journal")
        folder.write("file", [b"x"])
    finally:
        os.umask(before)
    assert mode(folder.path) == 0o700
    assert mode(folder.path / "file") == 0o600


def test_a_folder_that_is_there_keeps_its_mode(tmp_path):
    (tmp_path / "j").mkdir(mode=0o750)
    Folder(tmp_path / "j")
    assert mode(tmp_path / "j") == 0o750


def test_parts_are_written_one_after_the_other(tmp_path):
    folder = Folder(tmp_path)
    big = os.urandom(3 << 20)
    assert folder.write("file", [b"head", bytearray(b""), memoryview(big)]) == len(big) + 4
    assert folder.read("file") == b"head" + big
    assert bytes(map_file(tmp_path / "file")) == b"head" + big
    assert folder.names() == ["file"]
    folder.write("file", [b"other"])
    assert folder.read("file") == b"other"
    folder.delete("file")
    folder.delete("file")
    assert folder.names() == []


def test_a_mapped_file_outlives_its_deletion(tmp_path):
    folder = Folder(tmp_path)
    folder.write("file", [b"bytes"])
    view = map_file(tmp_path / "file")
    folder.delete("file")
    assert bytes(view) == b"bytes"


def test_an_empty_file_maps_to_nothing(tmp_path):
    (tmp_path / "file").touch()
    assert len(map_file(tmp_path / "file")) == 0


def test_append(tmp_path):
    (tmp_path / "file").write_bytes(b"a")
    appender = Appender(tmp_path / "file")
    appender.append(b"b", durable=True)
    appender.append(b"c", durable=False)
    appender.close()
    assert (tmp_path / "file").read_bytes() == b"abc"


def test_every_refusal_says_what_to_do(tmp_path):
    with pytest.raises(JournalError, match=r"\[JMS_JOURNAL_IO\].*/gone: No such file"):
        map_file(tmp_path / "gone")
    for number, remedy in [
        (errno.ENOSPC, "Make room"),
        (errno.EDQUOT, "Make room"),
        (errno.EROFS, "query's user"),
        (errno.EIO, "POSIX file system"),
    ]:
        with pytest.raises(JournalError, match=remedy), refusals("write x"):
            raise OSError(number, os.strerror(number))


def test_a_file_instead_of_a_folder(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(JournalError, match="folder"):
        Folder(tmp_path / "file" / "journal")


TOO_BIG = """
import resource, signal, sys
from pathlib import Path
from pyspark_jms.errors import JournalError
from pyspark_jms.delivery.journal.folder import Folder
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
folder = Folder(Path(sys.argv[1]))
folder.write("file", [b"old"])
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
try:
    folder.write("file", [b"head", bytes(2 << 20)])
except JournalError as error:
    print(error)
"""


def test_a_write_that_does_not_fit_leaves_what_was_there(tmp_path):
    done = subprocess.run([sys.executable, "-c", TOO_BIG, tmp_path / "j"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("[JMS_JOURNAL_IO] Could not write")
    assert "Make room on the disk" in done.stdout
    assert {path.name: path.read_bytes() for path in (tmp_path / "j").iterdir()} == {"file": b"old"}


def test_a_folder_that_every_user_may_write_is_refused(tmp_path):
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o1777)
    with pytest.raises(JournalError, match="chmod o-w"):
        Folder(tmp_path / "open")
    (tmp_path / "open").chmod(0o2770)  # as Kubernetes prepares a volume for a group
    Folder(tmp_path / "open")


@pytest.mark.parametrize("write", ["write", "create"])
def test_a_symbolic_link_is_never_written_through(tmp_path, write):
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    folder = Folder(tmp_path / "j")
    for name in ("file.tmp", "file"):
        (folder.path / name).symlink_to(victim)
    if write == "write":
        folder.write("file", [b"ours"])
        assert folder.read("file") == b"ours"
    else:
        with pytest.raises(JournalError, match="nother process"):
            folder.create("file", [b"ours"])
    assert victim.read_bytes() == b"precious"


def test_a_symbolic_link_is_not_read_or_appended_to(tmp_path):
    (tmp_path / "victim").write_bytes(b"precious")
    (tmp_path / "link").symlink_to(tmp_path / "victim")
    for use in (map_file, Appender):
        with pytest.raises(JournalError, match="symbolic link"):
            use(tmp_path / "link")
    with pytest.raises(JournalError, match="symbolic link"):
        Folder(tmp_path).read("link")


@pytest.fixture(params=[True, False], ids=["hard links", "no hard links"])
def folder(request, tmp_path, monkeypatch):
    """On a file system with hard links, and on one without, as some network file systems are."""

    def refuse(*_):
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    if not request.param:
        monkeypatch.setattr(os, "link", refuse)
    return Folder(tmp_path / "j")


def test_create_replaces_nothing(folder):
    assert folder.create("file", [b"first"]) == 5
    with pytest.raises(JournalError, match="nother process"):
        folder.create("file", [b"second"])
    assert folder.read("file") == b"first"
    assert folder.names() == ["file"]


def test_a_file_is_told_from_another_one_of_its_name(tmp_path):
    folder = Folder(tmp_path)
    assert folder.identity("file") is None
    folder.write("file", [b"x"])
    first = folder.identity("file")
    assert first == folder.identity("file")
    folder.write("file", [b"x"])
    assert folder.identity("file") not in (first, None)
