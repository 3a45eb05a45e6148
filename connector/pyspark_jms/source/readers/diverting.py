"""Messages that will not become rows: accepted, and sent to the dead-letter queue in the same transaction.

So a dead letter is sent exactly once. ``onBadMessage=deadLetter`` and ``onTooLarge``.
"""

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.diverting import log_dead_letters, log_dropped, oversized_dead_letter, unmappable
from pyspark_jms.source.readers.links import ReaderLink

__all__ = ["divert_oversized", "divert_unmappable"]


def divert_unmappable(
    link: ReaderLink, number: int, block: MessageBlock, upto: int, options: SourceOptions
) -> dict[int, str]:
    """Returns which of the block's first messages went to the dead-letter queue, and why."""
    source = link.sources[number]
    bad = unmappable(source, block, upto, options)
    if bad:
        letters = [source.dead_letter(block, index, reason) for index, reason in bad.items()]
        link.send_away(number, [block.ids[index] or b"" for index in bad], options.dead_letter_queue, letters)
        log_dead_letters(source.subscription.destination, options.dead_letter_queue, letters)
    return bad


def divert_oversized(link: ReaderLink, number: int, options: SourceOptions) -> tuple[int, int]:
    """Of the messages above maxMessageBytes, how many went to the dead-letter queue, and how many were skipped."""
    source, letters, skipped = link.sources[number], 0, 0
    for message in source.take_oversized():
        with message:
            if message.is_kept:
                letter = oversized_dead_letter(source, message, options)
                link.send_away(number, [message.identifier], options.dead_letter_queue, [letter])
                log_dead_letters(source.subscription.destination, options.dead_letter_queue, [letter])
                letters += 1
            else:
                link.send_away(number, [message.identifier], None, [])
                skipped += 1
                log_dropped(source.subscription.destination, message, source.message_id(message.identifier))
    return letters, skipped
