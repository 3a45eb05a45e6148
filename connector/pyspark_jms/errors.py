"""Every error of the connector. Facts in, one message out: ``[JMS_CODE] what happened. What to do.``

    JMSError                          JMSException: the root
    ├── OptionError                   what the user asked for; raised before anything connects
    │   ├── UnknownOptionError        [JMS_UNKNOWN_OPTION]
    │   ├── InvalidOptionError        [JMS_INVALID_OPTION]
    │   ├── MissingOptionError        [JMS_MISSING_OPTION]
    │   ├── OptionConflictError       [JMS_OPTION_CONFLICT]
    │   ├── InvalidSelectorError      [JMS_INVALID_SELECTOR]  InvalidSelectorException
    │   ├── SelectorResidualError     [JMS_SELECTOR_RESIDUAL] a part of it the broker cannot evaluate
    │   ├── SchemaError               [JMS_SCHEMA]
    │   └── UnsupportedError          [JMS_UNSUPPORTED]       what this release, Spark or broker cannot do
    ├── LinkError                     the way to the broker
    │   ├── BrokerUnreachableError    [JMS_BROKER_UNREACHABLE]  transient
    │   ├── ConnectionLostError       [JMS_CONNECTION_LOST]     transient
    │   ├── ReceiptTimeoutError       [JMS_RECEIPT_TIMEOUT]     transient
    │   ├── TlsError                  [JMS_TLS]
    │   ├── JMSSecurityError          [JMS_SECURITY]            JMSSecurityException
    │   ├── InvalidDestinationError   [JMS_INVALID_DESTINATION] InvalidDestinationException
    │   ├── SubscriptionInUseError    [JMS_SUBSCRIPTION_IN_USE] InvalidClientIDException, transient
    │   ├── BrokerError               [JMS_BROKER_ERROR]        an ERROR frame that says none of the above
    │   ├── UnknownBrokerError        [JMS_UNKNOWN_BROKER]
    │   └── MalformedFrameError       [JMS_MALFORMED_FRAME]     the bytes are not STOMP 1.2
    ├── SelectorIgnoredError          [JMS_SELECTOR_IGNORED]    the broker delivered what was not asked for
    ├── SelectorChangedError          [JMS_SELECTOR_CHANGED]    a durable subscription has another selector
    ├── MessageError                  one message or row
    │   ├── MessageTooLargeError      [JMS_MESSAGE_TOO_LARGE]
    │   ├── MessageFormatError        [JMS_MESSAGE_FORMAT]      MessageFormatException
    │   ├── MessageEOFError           [JMS_MESSAGE_EOF]         MessageEOFException
    │   ├── NumberFormatError         [JMS_NUMBER_FORMAT]       Java's NumberFormatException, a ValueError
    │   ├── NullValueError            [JMS_NULL_VALUE]          Java's NullPointerException, a ValueError
    │   └── BadMessageError           [JMS_BAD_MESSAGE]         onBadMessage=fail met a body_error
    ├── TransactionRolledBackError    [JMS_TRANSACTION_ROLLED_BACK]  TransactionRolledBackException, transient
    ├── CommitInDoubtError            [JMS_COMMIT_IN_DOUBT]     nobody can say what became of a COMMIT, transient
    ├── ReplayMismatchError           [JMS_REPLAY_MISMATCH]     a repeated batch has other rows or partitions
    ├── DataLossError                 [JMS_DATA_LOSS]           the journal does not hold what the checkpoint asks for
    ├── OtherBrokerError              [JMS_OTHER_BROKER]        a message id came back with other content
    ├── JournalError                  [JMS_JOURNAL_IO]          the folder of journalLocation cannot be written or read
    │   ├── JournalLockedError        [JMS_JOURNAL_LOCKED]      another query writes this journal
    │   └── CorruptJournalError       [JMS_JOURNAL_CORRUPT]     a file is torn, altered or missing
    ├── IllegalStateError             [JMS_ILLEGAL_STATE]       IllegalStateException: a fault of ours
    ├── StoppedError                  [JMS_STOPPED]             the query is being stopped
    └── EmbeddedBrokerError           [JMS_EMBEDDED_BROKER]     pyspark_jms.testing could not run a broker

JMS 3.1 names stand beside the classes that carry their meaning. A *transient* error may pass when the
same thing is tried again; the others need a person.
"""

from typing import ClassVar


class JMSError(Exception):
    """``JMSException``. ``fact`` says what happened, ``remedy`` what the reader of the message can do."""

    code: ClassVar[str] = "JMS_ERROR"
    transient: ClassVar[bool] = False

    def __init__(self, fact: str, remedy: str = "") -> None:
        super().__init__(fact, remedy)
        self.fact = fact
        self.remedy = remedy

    def __str__(self) -> str:
        return f"[{self.code}] {self.fact} {self.remedy}".rstrip()


class OptionError(JMSError):
    code = "JMS_OPTION"


class UnknownOptionError(OptionError):
    """The key is not an option, or not an option of this side (read or write). The message names the nearest one."""

    code = "JMS_UNKNOWN_OPTION"


class InvalidOptionError(OptionError):
    """The option cannot have this value. The message says which values it can have."""

    code = "JMS_INVALID_OPTION"


class MissingOptionError(OptionError):
    """A required option is missing."""

    code = "JMS_MISSING_OPTION"


class OptionConflictError(OptionError):
    """Two options exclude each other, or an option needs another one."""

    code = "JMS_OPTION_CONFLICT"


class InvalidSelectorError(OptionError):
    """``InvalidSelectorException``: the broker cannot read the selector."""

    code = "JMS_INVALID_SELECTOR"


class SelectorResidualError(OptionError):
    """The broker cannot evaluate the whole selector, and selectorResidual=fail; the message says which part."""

    code = "JMS_SELECTOR_RESIDUAL"


class SchemaError(OptionError):
    """A column the sink does not know or of another type, or a schema given to readStream."""

    code = "JMS_SCHEMA"


class UnsupportedError(OptionError):
    """What this release, this Spark or this broker cannot do; the message says what to use."""

    code = "JMS_UNSUPPORTED"


class LinkError(JMSError):
    code = "JMS_LINK"


class BrokerUnreachableError(LinkError):
    """``ResourceAllocationException``: no address of the list could be connected."""

    code = "JMS_BROKER_UNREACHABLE"
    transient = True


class ConnectionLostError(LinkError):
    """The connection ended, and a source could not get it back within reconnectTimeout."""

    code = "JMS_CONNECTION_LOST"
    transient = True


class ReceiptTimeoutError(LinkError):
    """The broker did not confirm within receiptTimeout."""

    code = "JMS_RECEIPT_TIMEOUT"
    transient = True


class TlsError(LinkError):
    """Certificates cannot be read, are not accepted, or there was no handshake."""

    code = "JMS_TLS"


class JMSSecurityError(LinkError):
    """``JMSSecurityException``: the broker refused the user, or the user may not do this."""

    code = "JMS_SECURITY"


class InvalidDestinationError(LinkError):
    """``InvalidDestinationException``: the address does not exist and may not be created, or a row has no destination,
    or has one that rows must not name.
    """

    code = "JMS_INVALID_DESTINATION"


class SubscriptionInUseError(LinkError):
    """``InvalidClientIDException``: another connection has this client id or reads this durable subscription, or the
    broker has not noticed yet that it is gone.
    """

    code = "JMS_SUBSCRIPTION_IN_USE"
    transient = True


class BrokerError(LinkError):
    """An ERROR frame whose text says none of the others; the broker's log has the reason."""

    code = "JMS_BROKER_ERROR"


class UnknownBrokerError(LinkError):
    """No dialect knows the server that answered; option broker can name one."""

    code = "JMS_UNKNOWN_BROKER"


class MalformedFrameError(LinkError):
    """What came is not STOMP 1.2: another protocol on that port, or a broken proxy."""

    code = "JMS_MALFORMED_FRAME"


class SelectorIgnoredError(JMSError):
    """A queue delivered a message that cannot match the selector. Without a journal nothing of the batch is
    acknowledged; with one its messages stay in the journal.
    """

    code = "JMS_SELECTOR_IGNORED"


class SelectorChangedError(JMSError):
    """A durable subscription was made with another selector than the query has now. Nothing was read."""

    code = "JMS_SELECTOR_CHANGED"


class MessageError(JMSError):
    code = "JMS_MESSAGE"


class MessageTooLargeError(MessageError):
    """A message is larger than maxMessageBytes. On read, it stays on the broker. On write, nothing was sent."""

    code = "JMS_MESSAGE_TOO_LARGE"


class MessageFormatError(MessageError):
    """``MessageFormatException``: a row or property that JMS or the broker's protocol cannot hold."""

    code = "JMS_MESSAGE_FORMAT"


class MessageEOFError(MessageError):
    """``MessageEOFException``: a StreamMessage has no element of that number."""

    code = "JMS_MESSAGE_EOF"


class NumberFormatError(MessageError, ValueError):
    """``NumberFormatException``: a string or a null, to be read as a number, is none or out of its range."""

    code = "JMS_NUMBER_FORMAT"


class NullValueError(MessageError, ValueError):
    """``NullPointerException``: a null read as float, double or char. ``valueOf`` throws it, and so JMS does."""

    code = "JMS_NULL_VALUE"


class BadMessageError(MessageError):
    """With onBadMessage=fail: a message that cannot be mapped. Without a journal nothing of its batch is acknowledged;
    with one its messages stay in the journal.
    """

    code = "JMS_BAD_MESSAGE"


class TransactionRolledBackError(JMSError):
    """``TransactionRolledBackException``: the broker refused a task's COMMIT, or did not confirm it in time."""

    code = "JMS_TRANSACTION_ROLLED_BACK"
    transient = True


class CommitInDoubtError(JMSError):
    """What became of a task's COMMIT could not be learnt: the next attempt looks before it sends."""

    code = "JMS_COMMIT_IN_DOUBT"
    transient = True


class ReplayMismatchError(JMSError):
    """A batch or write that was carried out before is repeated with other rows, in other partitions or in another
    batch; nothing was sent this time.
    """

    code = "JMS_REPLAY_MISMATCH"


class DataLossError(JMSError):
    """The journal is not the one of the checkpoint, is an older copy, or does not hold what the checkpoint asks for.

    ``failOnDataLoss=false`` continues with what there is, but never with the journal of another checkpoint.
    """

    code = "JMS_DATA_LOSS"


class OtherBrokerError(JMSError):
    """A known message id came again with other content: another broker or store. Nothing of it is acknowledged."""

    code = "JMS_OTHER_BROKER"


class JournalError(JMSError):
    """The operating system refused: disk full, no permission, folder gone."""

    code = "JMS_JOURNAL_IO"


class JournalLockedError(JournalError):
    """Another process uses this journal; only one may."""

    code = "JMS_JOURNAL_LOCKED"


class CorruptJournalError(JournalError):
    """Part of the journal is not what was written. It was the only copy of messages that were acknowledged."""

    code = "JMS_JOURNAL_CORRUPT"

    def __init__(
        self,
        fact: str,
        remedy: str = "Restore the folder as it was, or start with an empty journalLocation and failOnDataLoss=false:"
        " the messages that only this journal held are then lost.",
    ) -> None:
        super().__init__(fact, remedy)


class IllegalStateError(JMSError):
    """``IllegalStateException``: a checkpoint of another source, or a fault of ours, to be reported."""

    code = "JMS_ILLEGAL_STATE"


class StoppedError(JMSError):
    """The query is being stopped; seen in Spark's log only."""

    code = "JMS_STOPPED"


class EmbeddedBrokerError(JMSError):
    """The broker of pyspark_jms.testing could not run; the end of its log is in the message."""

    code = "JMS_EMBEDDED_BROKER"
