"""Every error of the connector. Its text is ``[JMS_CODE] fact. remedy.``

The docstring of a class names its exception of JMS 3.1. A *transient* error may pass by itself; any other needs a
change by a person.
"""

from typing import ClassVar

from pyspark_jms.sentences import one_full_stop

__all__ = [
    "BadMessageError",
    "BrokerError",
    "BrokerUnreachableError",
    "CommitInDoubtError",
    "ConnectionLostError",
    "CorruptJournalError",
    "DataLossError",
    "EmbeddedBrokerError",
    "IllegalStateError",
    "InvalidDestinationError",
    "InvalidOptionError",
    "InvalidSelectorError",
    "JMSError",
    "JMSSecurityError",
    "JournalError",
    "JournalLockedError",
    "LinkError",
    "MalformedFrameError",
    "MaxConsumersError",
    "MessageEOFError",
    "MessageError",
    "MessageFormatError",
    "MessageTooLargeError",
    "MissingOptionError",
    "NotDeliveredError",
    "NullValueError",
    "NumberFormatError",
    "OptionConflictError",
    "OptionError",
    "OtherBrokerError",
    "PoisonLoopError",
    "PrefetchExceededError",
    "ReceiptTimeoutError",
    "ReplayMismatchError",
    "SchemaError",
    "SelectorChangedError",
    "SelectorIgnoredError",
    "SelectorResidualError",
    "SinkFencedError",
    "SourceFencedError",
    "StoppedError",
    "SubscriptionInUseError",
    "TlsError",
    "TokenMissingError",
    "TransactionRolledBackError",
    "UnconvertibleMessageError",
    "UnknownBrokerError",
    "UnknownOptionError",
    "UnsupportedConditionError",
    "UnsupportedError",
    "WriteIdentityError",
]


class JMSError(Exception):
    """``JMSException``. ``fact`` is what happened, ``remedy`` what the user can do."""

    code: ClassVar[str] = "JMS_ERROR"
    transient: ClassVar[bool] = False
    usual_remedy: ClassVar[str] = ""

    def __init__(self, fact: str, remedy: str | None = None) -> None:
        self.fact, self.remedy = one_full_stop(fact), one_full_stop(self.usual_remedy if remedy is None else remedy)
        self.missing = False
        """Whether a queue or an address is not there, and was not created: the user may not, or the broker never does.
        One that was there may be again: RabbitMQ (4.0) refuses a stream for some seconds after its start."""
        super().__init__(self.fact, self.remedy)

    def __str__(self) -> str:
        return f"[{self.code}] {self.fact} {self.remedy}".rstrip()

    def name_destination(self, destination: str, name: str) -> None:
        """Put the destination that was asked for in front, unless the broker's text has its name."""
        if name not in self.fact:
            self.fact = f"{destination}: {self.fact}"
            self.args = (self.fact, self.remedy)


class OptionError(JMSError):
    code = "JMS_OPTION"


class UnknownOptionError(OptionError):
    """No option of this side (read or write) has this name."""

    code = "JMS_UNKNOWN_OPTION"


class InvalidOptionError(OptionError):
    """The option cannot have this value."""

    code = "JMS_INVALID_OPTION"


class MissingOptionError(OptionError):
    """A required option is missing."""

    code = "JMS_MISSING_OPTION"


class OptionConflictError(OptionError):
    """Two options exclude each other, or an option needs another one."""

    code = "JMS_OPTION_CONFLICT"


class InvalidSelectorError(OptionError):
    """``InvalidSelectorException``: the selector is not valid at the broker."""

    code = "JMS_INVALID_SELECTOR"


class SelectorResidualError(OptionError):
    """The broker cannot evaluate the whole selector, and selectorInSpark is not residual."""

    code = "JMS_SELECTOR_RESIDUAL"


class UnsupportedConditionError(OptionError):
    """A part of the SQL condition cannot be in a selector."""

    code = "JMS_UNSUPPORTED_CONDITION"
    usual_remedy = "Filter by this part in Spark, with where(), and leave it out of the selector."


class SchemaError(OptionError):
    """The source or the sink does not have the column, or the column has another type."""

    code = "JMS_SCHEMA"


class UnsupportedError(OptionError):
    """The release, Spark or the broker cannot do it."""

    code = "JMS_UNSUPPORTED"


class LinkError(JMSError):
    code = "JMS_LINK"


class BrokerUnreachableError(LinkError):
    """``ResourceAllocationException``: no address of brokerUrl accepted a connection."""

    code = "JMS_BROKER_UNREACHABLE"
    transient = True


class ConnectionLostError(LinkError):
    """The connection ended, and the source could not reconnect within reconnectTimeout."""

    code = "JMS_CONNECTION_LOST"
    transient = True


class ReceiptTimeoutError(LinkError):
    """The broker did not confirm an operation within receiptTimeout."""

    code = "JMS_RECEIPT_TIMEOUT"
    transient = True


class TlsError(LinkError):
    """A certificate cannot be read or is not trusted, or the TLS handshake failed."""

    code = "JMS_TLS"


class JMSSecurityError(LinkError):
    """``JMSSecurityException``: the broker refused the user, or the user lacks a permission."""

    code = "JMS_SECURITY"


class InvalidDestinationError(LinkError):
    """``InvalidDestinationException``: an address that neither exists nor is created, or a row without a usable one."""

    code = "JMS_INVALID_DESTINATION"


class SubscriptionInUseError(LinkError):
    """``InvalidClientIDException``: another connection, alive or just lost, has this client id or subscription."""

    code = "JMS_SUBSCRIPTION_IN_USE"
    transient = True


class UnconvertibleMessageError(LinkError):
    """The broker ended the subscription because it cannot convert a message of the queue to STOMP."""

    code = "JMS_UNCONVERTIBLE_MESSAGE"


class BrokerError(LinkError):
    """The broker reported an error (STOMP: an ERROR frame) that no other class stands for."""

    code = "JMS_BROKER_ERROR"


class UnknownBrokerError(LinkError):
    """No dialect matches the server that answered."""

    code = "JMS_UNKNOWN_BROKER"


class PrefetchExceededError(LinkError):
    """The broker delivered more unacknowledged messages than the prefetch window, or the AMQP credit, allows."""

    code = "JMS_PREFETCH_EXCEEDED"


class MalformedFrameError(LinkError):
    """The bytes are not STOMP 1.2 or AMQP 1.0: the port has another protocol, or a proxy changed the bytes."""

    code = "JMS_MALFORMED_FRAME"
    usual_remedy = "Report this with the broker's version."


class SelectorIgnoredError(JMSError):
    """A queue delivered a message that cannot match the selector. Its batch is not acknowledged; a journal keeps it."""

    code = "JMS_SELECTOR_IGNORED"


class SelectorChangedError(JMSError):
    """The durable subscription has another selector than the query. Nothing was read."""

    code = "JMS_SELECTOR_CHANGED"


class MessageError(JMSError):
    code = "JMS_MESSAGE"


class MessageTooLargeError(MessageError):
    """A message is larger than maxMessageBytes. On read, it stays on the broker. On write, nothing was sent."""

    code = "JMS_MESSAGE_TOO_LARGE"


class MessageFormatError(MessageError):
    """``MessageFormatException``: JMS or the broker's protocol cannot represent a row or a property."""

    code = "JMS_MESSAGE_FORMAT"


class MessageEOFError(MessageError):
    """``MessageEOFException``: a StreamMessage has no element of that number."""

    code = "JMS_MESSAGE_EOF"


class NumberFormatError(MessageError, ValueError):
    """``NumberFormatException``: a string or a null was read as a number, and is not a number of that range."""

    code = "JMS_NUMBER_FORMAT"


class NullValueError(MessageError, ValueError):
    """``NullPointerException``: a null was read as float, double or char."""

    code = "JMS_NULL_VALUE"


class BadMessageError(MessageError):
    """With onBadMessage=fail: a message that cannot become a row. Its batch is not acknowledged; a journal keeps it."""

    code = "JMS_BAD_MESSAGE"


class TransactionRolledBackError(JMSError):
    """``TransactionRolledBackException``: the broker refused a task's COMMIT, or did not confirm the COMMIT in time."""

    code = "JMS_TRANSACTION_ROLLED_BACK"
    transient = True


class CommitInDoubtError(JMSError):
    """It is not known whether a task's rows are committed."""

    code = "JMS_COMMIT_IN_DOUBT"
    transient = True


class WriteIdentityError(JMSError):
    """It is not known whose an exactly-once write is, or its ledger belongs to another owner. Nothing was sent."""

    code = "JMS_WRITE_IDENTITY"


class ReplayMismatchError(JMSError):
    """A batch or write is repeated with other rows, in other partitions or as another batch. Nothing was sent."""

    code = "JMS_REPLAY_MISMATCH"


class DataLossError(JMSError):
    """The journal is of another checkpoint or an older copy, or journal, staging queue or stream lack messages."""

    code = "JMS_DATA_LOSS"


class SourceFencedError(JMSError):
    """Another run of the query has received a later batch, or another query uses its staging queue."""

    code = "JMS_SOURCE_FENCED"


class SinkFencedError(JMSError):
    """Another run of the query has written a later batch. Nothing was sent this time."""

    code = "JMS_SINK_FENCED"


class TokenMissingError(JMSError):
    """The message that records the committed partitions of a query is not at the broker. Nothing was sent."""

    code = "JMS_TOKEN_MISSING"


class MaxConsumersError(JMSError):
    """A queue that exactly-once over AMQP needs as a lock was created with another max-consumers than 1."""

    code = "JMS_MAX_CONSUMERS"


class NotDeliveredError(JMSError):
    """A queue of exactly-once over AMQP shows its token, and the broker does not deliver it. Nothing was lost."""

    code = "JMS_NOT_DELIVERED"


class PoisonLoopError(JMSError):
    """The broker has delivered a message so often that it will soon move it to the dead-letter queue."""

    code = "JMS_POISON_LOOP"


class OtherBrokerError(JMSError):
    """The broker or its store is another one. Nothing is acknowledged.

    A known message id has other content, or the checkpoint names the id of another broker.
    """

    code = "JMS_OTHER_BROKER"


class JournalError(JMSError):
    """The operating system refused access to the journal: disk full, no permission, or folder missing."""

    code = "JMS_JOURNAL_IO"


class JournalLockedError(JournalError):
    """Another process uses this journal."""

    code = "JMS_JOURNAL_LOCKED"


class CorruptJournalError(JournalError):
    """A part of the journal differs from what was written. It was the only copy of acknowledged messages."""

    code = "JMS_JOURNAL_CORRUPT"
    usual_remedy = "Restore the folder, or use an empty journalLocation and failOnDataLoss=false: messages are lost."


class IllegalStateError(JMSError):
    """``IllegalStateException``: a checkpoint of another source, or a bug of this connector."""

    code = "JMS_ILLEGAL_STATE"


class StoppedError(JMSError):
    """The query is being stopped."""

    code = "JMS_STOPPED"


class EmbeddedBrokerError(JMSError):
    """The broker of pyspark_jms.testing cannot run. The message has the end of the broker's log."""

    code = "JMS_EMBEDDED_BROKER"
