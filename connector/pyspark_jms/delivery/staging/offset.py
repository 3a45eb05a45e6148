"""The offset of a staged stream: a position in its numbered messages. A value with a text form; knows no broker."""

import json
from dataclasses import dataclass
from typing import Self

__all__ = ["Offset"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Offset:
    """``Offset()`` is what ``initialOffset`` answers: Spark's log names no stream yet, so nothing may be moved."""

    id: str | None = None
    """The stream: one query's reading of one source. None: there is none yet."""

    token: str | None = None
    """The name of the token that may move messages: a token is used only when Spark's offset log names it (R3)."""

    seq: int = 0
    """All messages with a number below are in this batch or an earlier one."""

    cuts: tuple[int, ...] = ()
    """The numbers at which the blocks of this batch begin, without the first: a repeated batch has the same cuts."""

    def text(self) -> str:
        values = {"id": self.id, "token": self.token, "seq": self.seq, "cuts": list(self.cuts)}
        return json.dumps(values, separators=(",", ":"))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raise ``ValueError`` if the text is not an offset."""
        match json.loads(text):
            case {"id": str() | None as id_, "token": str() | None as token, "seq": int(seq), "cuts": [*cuts]}:
                if all(isinstance(cut, int) for cut in cuts):
                    return cls(id=id_, token=token, seq=seq, cuts=tuple(cuts))
        raise ValueError("not an offset of a staged stream")
