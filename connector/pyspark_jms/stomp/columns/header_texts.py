"""Header lines and their layout → the text of one header in all frames. Does not know what a header means."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_jms.columns.strings import Ints, Mask
from pyspark_jms.stomp.columns.layout import Layout
from pyspark_jms.stomp.columns.lines import Lines

__all__ = ["HeaderTexts"]

_FALSE = pa.scalar(value=False, type=pa.bool_())


@dataclass(frozen=True, slots=True)
class HeaderTexts:
    """The headers of all frames by role: a column, or ``@name`` of the dialect."""

    lines: Lines
    layout: Layout

    def __len__(self) -> int:
        return len(self.lines.first) - 1

    def line(self, role: str) -> Ints:
        """The line of each frame, -1 for none."""
        line = self.layout.roles.get(role)
        return np.full(len(self), -1) if line is None else line

    def text(self, role: str) -> pa.Array:
        """The text of each frame, null for none."""
        line = self.layout.roles.get(role)
        return pa.nulls(len(self), pa.string()) if line is None else self.lines.values(line)

    def equals(self, role: str, text: str | None) -> Mask:
        """Which frames have the header with this text. None: no frame has it."""
        if text is None or role not in self.layout.roles:
            return np.zeros(len(self), np.bool_)
        equal = pc.equal(self.text(role), pa.scalar(text, pa.string())).fill_null(_FALSE)
        mask: Mask = equal.to_numpy(zero_copy_only=False)
        return mask
