"""The result of a cell ↔ a line of JSON, so that the tables of a page can be made from several runs."""

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True, kw_only=True)
class Record:
    mode: str
    fault: str
    point: str
    sent: int
    lost: int
    duplicated: int
    without_id: int = 0
    verdict: str
    day: str
    """As in 2026-11-24."""

    @property
    def name(self):
        return f"{self.mode}/{self.fault}/{self.point}"

    @property
    def ok(self):
        return self.verdict == "ok"


def record_of(result, day):
    cell = result.cell
    return Record(
        mode=cell.mode, fault=cell.fault, point=cell.point, sent=result.sent, lost=result.lost,
        duplicated=result.duplicated, without_id=result.without_id, verdict=result.verdict, day=day,
    )  # fmt: skip


def append(path, record):
    with path.open("a") as file:
        file.write(f"{json.dumps(asdict(record))}\n")


def read(path):
    """The records of a file, which need not exist."""
    return [Record(**json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []
