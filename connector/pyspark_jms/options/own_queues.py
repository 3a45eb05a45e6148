"""The queues that the options of one read name: no two of the names may be one, or the query would destroy itself."""

from collections.abc import Iterable, Mapping
from typing import Any

from pyspark_jms.errors import InvalidOptionError, OptionConflictError
from pyspark_jms.jms.model import DurableSubscription
from pyspark_jms.jms.names import may_receive

__all__ = ["require_distinct_queues"]

_OWN_PREFIX = "pyspark-jms."
_PARSED = ("::", "*", "#", ">", "?")
"""What a broker takes for more than a part of a plain name."""
_REMEDY = "Name another queue."


def require_distinct_queues(values: Mapping[str, Any]) -> None:
    """``OptionConflictError`` if a name is, or as a pattern includes, the name of another option."""
    read = [("queue", name) for name in values["queue"] or ()]
    if values["topic"] is not None:
        read.append(("topic", values["topic"]))
    dead, staging = values["deadLetterQueue"], values["stagingQueue"]
    if dead is not None:
        _require_plain("deadLetterQueue", dead, parsed=_PARSED[1:])
        _require_not_own("deadLetterQueue", dead)
        _refuse_reading_dead_letters([name for option, name in read if option == "queue"], dead)
        _refuse_dead_letters_of_subscription(values["clientId"], values["subscriptionName"], dead)
    if staging is None:
        return
    _require_plain("stagingQueue", staging, parsed=_PARSED)
    own = [staging, *(f"{staging}.{reader}" for reader in range(values["readers"] or 1))]
    if values["clientId"] is not None and (name := values["subscriptionName"]) in own:
        raise OptionConflictError(
            f"Option subscriptionName={name} and stagingQueue={staging} would have the same queue,"
            f" {values['clientId']}.{name}.",
            _REMEDY,
        )
    others = read if dead is None else [*read, ("deadLetterQueue", dead)]
    for option, name in others:
        if any(may_receive(name, each) for each in own):
            raise OptionConflictError(
                f"Option {option}={name} is also stagingQueue={staging}, or another queue that begins with this name.",
                f"{_REMEDY} The messages of a staging queue are the connector's own.",
            )


def _require_plain(option: str, name: str, *, parsed: Iterable[str]) -> None:
    found = next((text for text in parsed if text in name), None)
    if found is not None or name != name.strip():
        what = "a blank at an end" if found is None else found
        raise InvalidOptionError(f"Option {option}={name!r} has {what}.", "Give one plain name of a queue.")


def _require_not_own(option: str, name: str) -> None:
    if any(part.startswith(_OWN_PREFIX) for part in name.split("::")):
        raise OptionConflictError(f"Option {option}={name} is a queue of the connector's own.", _REMEDY)


def _refuse_reading_dead_letters(sources: Iterable[str], dead_letter_queue: str) -> None:
    source = next((name for name in sources if may_receive(name, dead_letter_queue)), None)
    if source is not None:
        raise OptionConflictError(
            f"Queue {dead_letter_queue} is both read and deadLetterQueue."
            if source == dead_letter_queue
            else f"Option queue={source} also reads deadLetterQueue={dead_letter_queue}: the query would read its own"
            " dead letters again and again.",
            _REMEDY,
        )


def _refuse_dead_letters_of_subscription(client_id: str | None, name: str | None, dead_letter_queue: str) -> None:
    """``TOPIC::QUEUE`` names the queue of a subscription, which no plain name of a queue does."""
    _, separator, queue = dead_letter_queue.rpartition("::")
    if not separator or name is None:
        return
    own = str(DurableSubscription(name, client_id))
    if queue in {own, f"{own}:global"}:
        raise OptionConflictError(
            f"Option deadLetterQueue={dead_letter_queue} is the queue of the subscription that is read: the query would"
            " read its own dead letters again and again.",
            _REMEDY,
        )
