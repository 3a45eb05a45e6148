"""Delta, Iceberg and Lance: the page's programs, killed in the middle, on each release that the table format supports.

`make test-spark` runs them. For the newest release there is only Lance, which needs no jar: `make test-all` runs it.
"""

import contextlib
import itertools
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

import pages
import pyspark
import pytest
from session import kill_session
from waiting import wait_until

from pyspark_jms.tools.testing.jars import ARTEMIS_VERSION

pytestmark = [pytest.mark.slow, pytest.mark.releases, pytest.mark.timeout(1500)]

PAGE = "recipes/tables.md"
RELEASE = pyspark.__version__.rpartition(".")[0]


class Lake(NamedTuple):
    name: str
    program: str
    releases: dict[str, str]
    """Release of Spark -> version of the table format, as the page says."""
    versions: str
    """The files of which each commit to the table adds one."""


LAKES = [
    Lake(
        "Delta",
        "json_to_delta.py",
        {"4.0": "4.4.0", "4.1": "4.4.0", "4.2": "4.4.0"},
        "orders/_delta_log/*.json",
    ),
    Lake(
        "Iceberg",
        "iceberg_exactly_once.py",
        {"4.1": "1.12.0"},
        "lake/shop/orders/metadata/*.metadata.json",
    ),
    Lake(
        "Lance",
        "lance_exactly_once.py",
        {"4.3": "14.0.2"},
        "orders.lance/_versions/*.manifest",
    ),
]


@pytest.fixture(params=[lake for lake in LAKES if RELEASE in lake.releases], ids=lambda lake: lake.name)
def lake(request):
    return request.param


@pytest.fixture
def address(recipes_broker):
    if recipes_broker.has_queue("orders.json.dead"):  # of the test before
        recipes_broker.purge("orders.json.dead")
    return {"JMS_BROKER_URL": recipes_broker.amqp_url}


def counted(stdout):
    return "".join(f"{line}\n" for line in stdout.splitlines() if line.startswith("rows: "))


def block_a_commit(commits, first):
    """Let Spark fail to write the next entry of its commit log: as if it died right after the commit of the table.

    Returns the entry, and the number of batches from ``first`` to its own.
    """
    for number in itertools.count(first):
        entry = commits / str(number)
        with contextlib.suppress(FileExistsError):
            entry.mkdir()
            break
    return entry, number - first + 1


def test_each_message_is_in_the_table_once_whenever_the_process_is_killed(run, start, lake, address, tmp_path, tested):
    commits = tmp_path / "data/checkpoint/commits"

    def versions():
        return list((tmp_path / "data").glob(lake.versions))

    pair = f"| {pyspark.__version__} | {lake.name} {lake.releases[RELEASE]} |"
    assert pair in (pages.FOLDER / PAGE).read_text()
    first = run(lake.program, "send", "read", "count", "send", **address)
    assert counted(first) == pages.output(PAGE, lake.program)

    done, before = {path.name for path in commits.iterdir()}, len(versions())
    reader = start(sys.executable, Path(__file__).with_name(lake.program), "read", **address)
    wait_until(lambda: {path.name for path in commits.iterdir()} > done, 500, "the first batch")
    entry, batches = block_a_commit(commits, 1 + max(int(name) for name in done if name.isdigit()))
    wait_until(lambda: len(versions()) == before + batches, 500, "the commit of the table")
    kill_session(reader.pid)
    entry.rmdir()

    assert counted(run(lake.program, "read", "count", **address)) == pages.output(PAGE, f"{lake.program} after a kill")
    assert entry.is_file(), "the batch was not repeated"
    assert len(versions()) > before + batches, "the kill did not come in the middle"
    tested(lake.name, lake.releases[RELEASE])
    tested("artemis", ARTEMIS_VERSION)


@pytest.mark.skipif(RELEASE not in LAKES[0].releases, reason="no Delta for this release of Spark")
def test_a_new_checkpoint_loses_nothing(run, address, tmp_path):
    """Delta skips a number that it has of the same application: a query with a new checkpoint is another one."""
    delta = LAKES[0].program
    before = counted(run(delta, "send", "read", "count", **address))
    shutil.rmtree(tmp_path / "data/checkpoint")
    after = counted(run(delta, "send", "read", "count", **address))
    assert [line.partition(", dead")[0] for line in (before, after)] == [
        f"rows: {n}, different messages: {n}" for n in (900, 1800)
    ]
