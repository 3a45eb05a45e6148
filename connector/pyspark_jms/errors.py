"""Every error of the connector. Facts in, one message out: ``[JMS_CODE] what happened. What to do.``

    JMSError                          JMSException: the root
    ├── OptionError                   what the user asked for; raised before anything connects
    │   ├── UnknownOptionError        [JMS_UNKNOWN_OPTION]
    │   ├── InvalidOptionError        [JMS_INVALID_OPTION]
    │   ├── MissingOptionError        [JMS_MISSING_OPTION]
    │   ├── OptionConflictError       [JMS_OPTION_CONFLICT]
    │   ├── InvalidSelectorError      [JMS_INVALID_SELECTOR]  InvalidSelectorException
    │   ├── SchemaError               [JMS_SCHEMA]
    │   └── UnsupportedError          [JMS_UNSUPPORTED]       what this release, Spark or broker cannot do
    ├── LinkError                     the way to the broker
    │   ├── BrokerUnreachableError    [JMS_BROKER_UNREACHABLE]  transient
    │   ├── ConnectionLostError       [JMS_CONNECTION_LOST]     transient
    │   ├── ReceiptTimeoutError       [JMS_RECEIPT_TIMEOUT]     transient
    │   ├── TlsError                  [JMS_TLS]
    │   ├── JMSSecurityError          [JMS_SECURITY]            JMSSecurityException
    │   ├── InvalidDestinationError   [JMS_INVALID_DESTINATION] InvalidDestinationException
    │   ├── BrokerError               [JMS_BROKER_ERROR]        an ERROR frame that says none of the above
    │   ├── UnknownBrokerError        [JMS_UNKNOWN_BROKER]
    │   └── MalformedFrameError       [JMS_MALFORMED_FRAME]     the octets are not STOMP 1.2
    ├── MessageError                  one message or row
    │   ├── MessageTooLargeError      [JMS_MESSAGE_TOO_LARGE]
    │   ├── MessageFormatError        [JMS_MESSAGE_FORMAT]      MessageFormatException
    │   └── BadMessageError           [JMS_BAD_MESSAGE]         onBadMessage=fail met a body_error
    ├── TransactionRolledBackError    [JMS_TRANSACTION_ROLLED_BACK]  TransactionRolledBackException, transient
    ├── OtherBrokerError              [JMS_OTHER_BROKER]        a message id came back with other content
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
    code = "JMS_UNKNOWN_OPTION"


class InvalidOptionError(OptionError):
    code = "JMS_INVALID_OPTION"


class MissingOptionError(OptionError):
    code = "JMS_MISSING_OPTION"


class OptionConflictError(OptionError):
    code = "JMS_OPTION_CONFLICT"


class InvalidSelectorError(OptionError):
    """``InvalidSelectorException``."""

    code = "JMS_INVALID_SELECTOR"


class SchemaError(OptionError):
    code = "JMS_SCHEMA"


class UnsupportedError(OptionError):
    code = "JMS_UNSUPPORTED"


class LinkError(JMSError):
    code = "JMS_LINK"


class BrokerUnreachableError(LinkError):
    """``ResourceAllocationException``: no address of the list could be connected."""

    code = "JMS_BROKER_UNREACHABLE"
    transient = True


class ConnectionLostError(LinkError):
    code = "JMS_CONNECTION_LOST"
    transient = True


class ReceiptTimeoutError(LinkError):
    code = "JMS_RECEIPT_TIMEOUT"
    transient = True


class TlsError(LinkError):
    code = "JMS_TLS"


class JMSSecurityError(LinkError):
    """``JMSSecurityException``: the broker refused the user, or the user may not do this."""

    code = "JMS_SECURITY"


class InvalidDestinationError(LinkError):
    """``InvalidDestinationException``."""

    code = "JMS_INVALID_DESTINATION"


class BrokerError(LinkError):
    code = "JMS_BROKER_ERROR"


class UnknownBrokerError(LinkError):
    code = "JMS_UNKNOWN_BROKER"


class MalformedFrameError(LinkError):
    code = "JMS_MALFORMED_FRAME"


class MessageError(JMSError):
    code = "JMS_MESSAGE"


class MessageTooLargeError(MessageError):
    code = "JMS_MESSAGE_TOO_LARGE"


class MessageFormatError(MessageError):
    """``MessageFormatException``: a row or property that JMS or the broker's protocol cannot hold."""

    code = "JMS_MESSAGE_FORMAT"


class BadMessageError(MessageError):
    code = "JMS_BAD_MESSAGE"


class TransactionRolledBackError(JMSError):
    """``TransactionRolledBackException``: nothing of the task's transaction is visible at the broker."""

    code = "JMS_TRANSACTION_ROLLED_BACK"
    transient = True


class OtherBrokerError(JMSError):
    code = "JMS_OTHER_BROKER"


class IllegalStateError(JMSError):
    """``IllegalStateException``."""

    code = "JMS_ILLEGAL_STATE"


class StoppedError(JMSError):
    code = "JMS_STOPPED"


class EmbeddedBrokerError(JMSError):
    code = "JMS_EMBEDDED_BROKER"
