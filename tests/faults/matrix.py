"""The fault matrix: counts lost and duplicated messages for each mode, fault and point.

    python tests/faults/matrix.py --list
    python tests/faults/matrix.py --mode journal --fault kill-driver --jobs 2
    python tests/faults/matrix.py --mode journal --results build/faults.jsonl --resume
    python tests/faults/matrix.py --results build/faults.jsonl --markdown docs/fault-matrix.md

Ends with 1 if a cell lost a message, duplicated one against its guarantee, or did not reach its point, or if a
section of the page was not written because some of its cells have no result yet. SIGTERM ends the run when the
cells that have begun are over; ``--resume`` goes on from there.
"""

import argparse
import datetime as dt
import queue
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent.parent / "support")]

import in_docs  # noqa: E402 - found by the line above
import records  # noqa: E402
from cells import FAULTS, MODES, POINTS, cells  # noqa: E402
from play import play  # noqa: E402
from say import say  # noqa: E402
from stage import Slot  # noqa: E402

_QUICK_WORKERS = {"spark.python.daemon.module": "pyspark_jms.spark.daemon"}
"""The connector's daemon forks workers that have imported everything: a cell needs less CPU time."""
_END_DRIVERS = ("sigterm", "kill-driver")
"""These faults end the driver. The start of another one takes more CPU time than a cell, so their cells run last."""
_LINE = "{:<14} {:<13} {:<12} {:>6} {:>6} {:>5} {:>5} {:>5} {:>4} {:>5}  {}"


def say_row(*values):
    say(_LINE.format(*values).rstrip())


def show(result):
    cell = result.cell
    endings = ", ".join(result.endings) or "went on"
    evidence = "; ".join(filter(None, result.evidence))
    say_row(
        cell.mode, cell.fault, cell.point, result.sent, result.seen, result.lost, result.duplicated, result.queue,
        result.dead, f"{result.seconds:.0f}s", f"{result.verdict} | {endings} | {evidence}",
    )  # fmt: skip
    if not result.ok:
        say(*result.errors)


def run(wanted, jobs, options, done):
    """Results in the order of the cells. ``done`` gets each one as soon as it is there."""
    slots = queue.SimpleQueue()
    opened = []

    def one(cell):
        try:
            slot = slots.get_nowait()
        except queue.Empty:
            slot = Slot(options, _QUICK_WORKERS)
            opened.append(slot)
        result = play(slot, cell)
        slots.put(slot)
        done(result)
        return result

    try:
        with ThreadPoolExecutor(jobs) as pool:
            return list(pool.map(one, wanted))
    finally:
        for slot in opened:
            slot.close()


def main():
    options = arguments()
    chosen = [
        cell
        for cell in cells()
        if cell.mode in (options.mode or MODES) and cell.fault in (options.fault or FAULTS)
        and cell.point in (options.point or POINTS)
    ]  # fmt: skip
    wanted = [cell for cell in chosen if cell.reason is None]
    if options.list:
        for cell in chosen:
            say(f"{cell.name:<40} {cell.reason or 'run'}")
        say(f"{len(wanted)} cells to run, {len(chosen) - len(wanted)} skipped")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped by SIGTERM"))
    began = time.monotonic()
    say_row("mode", "fault", "point", "sent", "seen", "lost", "dup", "left", "dead", "time", "")
    noted = records.read(options.results) if options.results else []
    if options.resume:
        passed = {record.name for record in noted if record.ok}
        wanted = [cell for cell in wanted if cell.name not in passed]
    wanted.sort(key=lambda cell: cell.fault in _END_DRIVERS and 1 + _END_DRIVERS.index(cell.fault))

    def done(result):
        show(result)
        noted.append(records.record_of(result, f"{dt.datetime.now(dt.UTC):%Y-%m-%d}"))
        if options.results:
            records.append(options.results, noted[-1])

    results = run(wanted, options.jobs, options.option, done)
    left = in_docs.write(options.markdown, noted, partial=options.partial) if options.markdown else []
    bad = [result for result in results if not result.ok]
    took, skipped = time.monotonic() - began, sum(cell.reason is not None for cell in chosen)
    say(f"{len(results)} cells in {took:.0f} s, {len(bad)} failed, {skipped} skipped")
    for result in bad:
        say(f"FAILED {result.cell.name}: {result.verdict}")
    say(*(f"{options.markdown}: not written: {section}" for section in left))
    return bool(bad or left)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--mode", action="append", choices=MODES)
    parser.add_argument("--fault", action="append", choices=FAULTS)
    parser.add_argument("--point", action="append", choices=POINTS)
    parser.add_argument(
        "--option", action="append", default=[], type=lambda given: given.split("=", 1), metavar="NAME=VALUE",
        help="an option of each source: connections=2",
    )  # fmt: skip
    parser.add_argument("--jobs", type=int, default=1, help="cells at the same time, each with a broker and drivers")
    parser.add_argument("--results", type=Path, metavar="FILE", help="append each result; --markdown uses all of them")
    parser.add_argument("--resume", action="store_true", help="leave out cells that passed, by the file of --results")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables whose cells all have a result")
    parser.add_argument("--partial", action="store_true", help="write tables that lack cells too, as not run")
    parser.add_argument("--list", action="store_true", help="the cells, and why some are not run")
    options = parser.parse_args()
    if options.resume and not options.results:
        parser.error("--resume needs --results")
    return options


if __name__ == "__main__":
    sys.exit(main())
