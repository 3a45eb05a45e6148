"""The keys of maps as numbers: each distinct key once. Does not know what the names mean."""

import numpy as np
import pyarrow as pa

from pyspark_jms.amqp.columns.byte_reader import ByteReader
from pyspark_jms.amqp.columns.refusals import Refusals
from pyspark_jms.amqp.columns.walk import Entries
from pyspark_jms.columns.strings import Ints, is_utf8, not_utf8, strings_at

__all__ = ["Names", "names_of"]


class Names:
    """The distinct names of some entries, numbered from 0."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.codes: list[int | Ints] = []
        """By entry, the number of its name in each row; one number if the rows have the same name."""

    def number(self, name: str) -> int:
        return self.numbers.setdefault(name, len(self.numbers))

    def __len__(self) -> int:
        return len(self.numbers)

    def texts(self) -> pa.Array:
        return pa.array(list(self.numbers), pa.string())


def names_of(reader: ByteReader, entries: Entries, refusals: Refusals) -> Names:
    """The names of entries of maps. A row with a name that is not UTF-8 is refused."""
    names = Names()
    for entry in entries:
        if entry.key is not None:
            try:
                name = entry.key.decode()
            except UnicodeDecodeError:
                name = ""
                refusals.add(entry.field.rows)
            names.codes.append(names.number(name))
            continue
        assert entry.key_start is not None and entry.key_stop is not None  # noqa: PT018
        keys = strings_at(reader.buffer, entry.key_start, entry.key_stop)
        if not is_utf8(keys):
            wrong = not_utf8(keys)
            refusals.add(entry.field.rows[wrong])
            keys = strings_at(reader.buffer, entry.key_start, np.where(wrong, entry.key_start, entry.key_stop))
        encoded = keys.dictionary_encode()
        numbers = np.array([names.number(name) for name in encoded.dictionary.to_pylist()], np.int64)
        names.codes.append(numbers[encoded.indices.to_numpy()])
    return names
