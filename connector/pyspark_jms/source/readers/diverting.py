"""Messages that will not become rows: accepted, and sent to the dead-letter queue in the same transaction.

So a dead letter is sent exactly once. ``onBadMessage=deadLetter`` and ``onTooLarge``.
"""

import logging
from collections.abc import Sequence

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.links import DeadLetter
from pyspark_jms.source.readers.links import ReaderLink

__all__ = ["divert_oversized", "divert_unmappable"]

_log = logging.getLogger("pyspark_jms.source")


def divert_unmappable(
    link: ReaderLink, number: int, block: MessageBlock, upto: int, options: SourceOptions
) -> dict[int, str]:
    """Returns which of the block's first messages went to the dead-letter queue, and why."""
    if options.on_bad_message != "deadLetter" or not upto:
        return {}
    source = link.sources[number]
    bad = source.unmappable(block, upto, options.body_type, options.max_elements, options.columns)
    if bad:
        letters = [source.dead_letter(block, index, reason) for index, reason in bad.items()]
        link.send_away(number, [block.ids[index] or b"" for index in bad], options.dead_letter_queue, letters)
        _log_letters(source.subscription.destination, options, letters)
    return bad


def divert_oversized(link: ReaderLink, number: int, options: SourceOptions) -> tuple[int, int]:
    """Of the messages above maxMessageBytes, how many went to the dead-letter queue, and how many were skipped."""
    source, letters, skipped = link.sources[number], 0, 0
    limit = options.connection.max_message_bytes
    for message in source.take_oversized():
        with message:
            if message.is_kept:
                reason = f"{message.size:,} bytes exceed maxMessageBytes ({limit:,})"
                letter = source.oversized_dead_letter(message, reason)
                link.send_away(number, [message.identifier], options.dead_letter_queue, [letter])
                _log_letters(source.subscription.destination, options, [letter])
                letters += 1
            else:
                link.send_away(number, [message.identifier], None, [])
                skipped += 1
                _log.warning(
                    "! a message of %d bytes from %s is acknowledged and dropped (onTooLarge=drop), id %s",
                    message.size,
                    source.subscription.destination,
                    source.message_id(message.identifier),
                )
    return letters, skipped


def _log_letters(source: object, options: SourceOptions, letters: Sequence[DeadLetter]) -> None:
    _log.warning(
        "! %d messages from %s went to queue %s: %s",
        len(letters),
        source,
        options.dead_letter_queue,
        letters[0].reason,
    )
