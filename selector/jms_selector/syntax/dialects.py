"""The dialects of selectors as data: flags and names, used by the parser, the rules of ``meaning`` and the targets.

The ActiveMQ dialects are measured on the selector classes of Artemis 2.44 and 2.55 and of Classic 6.3 and 6.4. The IBM
MQ dialect follows the documentation of IBM MQ. A dialect states where it differs from the specification (Jakarta
Messaging 3.1 §3.8.1), which is :data:`SPEC`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from jms_selector.errors import UnsupportedSelectorError
from jms_selector.syntax.kinds import Kind, Value

__all__ = [
    "AMQP",
    "ARTEMIS",
    "ARTEMIS_AMQP",
    "CLASSIC",
    "CLASSIC_AMQP",
    "CONVERT_PREFIX",
    "DIALECTS",
    "HYPHENS_PREFIX",
    "IBM",
    "NO_PREFIX",
    "SPEC",
    "Dialect",
    "dialect_of",
    "with_null_on_both_sides",
]

CONVERT_PREFIX = "convert_string_expressions:"
"""ActiveMQ's request to compare strings that hold numbers as numbers, at the start of a selector."""

HYPHENS_PREFIX = "hyphenated_props:"
"""Artemis: after this prefix, names may have hyphens."""

NO_PREFIX = "no_"
"""Artemis: this word switches off the prefix that follows."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dialect:
    name: str

    # --- reading -----------------------------------------------------------------------------

    unknown_broker: bool = False
    """The broker's rules for selectors are unknown, so the reader sends no selector to the broker."""

    activemq: bool = False
    """The ActiveMQ grammar and rules.

    In the grammar, NOT binds tighter than comparison, comparisons may be chained (``a = 5 = TRUE``), names are ASCII,
    and ``%``, NULL and XPATH exist. ``<>`` on unlike types is TRUE. Two strings, or two booleans, may be compared with
    ``<`` in Java's order. ``/``, ``%`` and all calculations with a float are done in double.
    """

    prefixes: tuple[str, ...] = ()
    """Prefixes that may precede the selector."""

    sends_prefix: bool = False
    """A STOMP reader requests conversion with the prefix."""

    always_converts: bool = False
    """The broker converts every STOMP selector: it adds the prefix itself."""

    functions: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Name -> minimum and maximum number of arguments."""

    quoted_names: bool = True
    """A name may be written in double quotes."""

    # --- comparing ---------------------------------------------------------------------------

    null_on_the_right: bool = False
    """``x = missing`` is FALSE, ``x <> missing`` TRUE, ``missing = missing`` TRUE."""

    total_order: bool = False
    """Floats compare by ``compareTo``: NaN equals NaN and is above all numbers, and -0.0 is below 0.0."""

    left_widens: bool = False
    """Byte and short are widened on the left only; on the right, they never equal a number of a wider type."""

    like_is_two_valued: bool = False
    """``5 NOT LIKE 'x'`` is TRUE: NOT LIKE is NOT applied to LIKE."""

    in_is_unknown: bool = False
    """IN and NOT IN are unknown for a value that is not a string."""

    boolean_throws: bool = False
    """With conversion, a boolean on the left of a string causes a ClassCastException."""

    double_throws: bool = False
    """A double on the left of a float causes a ClassCastException."""

    null_decides_between: bool = False
    """A NULL makes BETWEEN false and NOT BETWEEN true."""

    # --- calculating -------------------------------------------------------------------------

    narrow_literals: bool = False
    """A literal within int range is an int whatever its suffix; a float literal is a double."""

    converts_arithmetic: bool = False
    """With conversion, a string operand of arithmetic is parsed as a long, or as a double if it has a point."""

    null_minus: bool = False
    """``-x`` is unknown if ``x`` is not a number, and throws for byte and short."""

    # --- failing -----------------------------------------------------------------------------

    faults_escape: bool = False
    """Arithmetic on a value that is not a number throws; under the specification it matches nothing."""

    faults_decide: bool = False
    """Unlike types or arithmetic on NULL make the whole selector false, also under NOT."""

    # --- headers -----------------------------------------------------------------------------

    aliases: Mapping[str, str] = field(default_factory=dict)
    """The broker's name of a header -> its JMS name."""

    words: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Alias -> (the JMS word of a value -> the broker's word)."""

    never_seen: frozenset[str] = frozenset()
    """Headers and properties that are NULL to this broker's selectors."""

    defaults: Mapping[str, Value] = field(default_factory=dict)
    """Headers that are never NULL to this broker's selectors, and their value in a message without them."""

    null_without_jms_client: frozenset[str] = frozenset()
    """Headers that are NULL to this broker's selectors in messages that no JMS client sent."""

    zero_ids_match: bool = False
    """``JMSMessageID`` or ``JMSCorrelationID`` = 'ID:' and 48 zeros matches any message."""

    # --- what delivered messages contain -------------------------------------------------------

    null_texts: frozenset[str] = frozenset()
    """Texts in a delivered message that may represent a property with the value null."""

    hidden: frozenset[str] = frozenset()
    """Names with a value at the broker but in no delivered message: a reader cannot evaluate conditions on them."""

    hidden_prefixes: tuple[str, ...] = ()
    """Prefixes of further hidden names."""

    unknown_when_absent: frozenset[str] = frozenset()
    """Headers that may have a value at the broker although the delivered message lacks them."""

    typed_messages: bool = False
    """Delivered messages contain the type of each property.

    Over STOMP they contain texts. The types that an envelope states are not those that the broker compares.
    """

    respelled_ids: str = ""
    """A prefix of ids in delivered messages that the broker's selectors spell otherwise; empty: there are none."""

    replaced_texts: Mapping[str, str] = field(default_factory=dict)
    """Texts that the broker replaces in a selector, whatever they are compared with."""

    def shows(self, name: str) -> bool:
        """Return whether delivered messages contain the value of ``name``."""
        return name not in self.hidden and not name.startswith(self.hidden_prefixes)


_ADDED = frozenset(
    {
        "NATIVE_MESSAGE_ID",
        "ActiveMQ.MQTT.QoS",
        "ActiveMQ.Retain",
        "ActiveMQ.Retained",
        "mqtt.message.retain",
        "mqtt.qos.level",
        "scheduledJobId",
    }
)
_ADDED_PREFIXES = ("JMS_AMQP_", "__HDR_")
"""Names of properties that brokers add when they convert a message between protocols, and that rows do not have."""

SPEC = Dialect(name="spec")

_ACTIVEMQ = Dialect(
    name="activemq",
    activemq=True,
    prefixes=(CONVERT_PREFIX,),
    null_on_the_right=True,
    total_order=True,
    left_widens=True,
    like_is_two_valued=True,
    in_is_unknown=True,
    narrow_literals=True,
    null_minus=True,
    faults_escape=True,
    unknown_when_absent=frozenset({"JMSMessageID", "JMSCorrelationID"}),
)

ARTEMIS = replace(
    _ACTIVEMQ,
    name="artemis",
    prefixes=(CONVERT_PREFIX, HYPHENS_PREFIX, NO_PREFIX + CONVERT_PREFIX, NO_PREFIX + HYPHENS_PREFIX),
    converts_arithmetic=True,
    sends_prefix=True,
    aliases=MappingProxyType(
        {
            "AMQPriority": "JMSPriority",
            "AMQTimestamp": "JMSTimestamp",
            "AMQExpiration": "JMSExpiration",
            "AMQDurable": "JMSDeliveryMode",
            "AMQUserID": "JMSMessageID",
            "AMQGroupID": "JMSXGroupID",
        }
    ),
    words={"AMQDurable": {"PERSISTENT": "DURABLE", "NON_PERSISTENT": "NON_DURABLE"}},
    never_seen=frozenset({"JMSDestination", "JMSRedelivered", "JMSXDeliveryCount", "JMSXGroupSeq", "JMSXUserID"}),
    null_without_jms_client=frozenset({"JMSMessageID"}),
    null_texts=frozenset({""}),
    # SEND headers that Artemis stores as properties of the same name, and that a STOMP reader ignores.
    hidden=_ADDED
    | frozenset(
        {
            "AMQAddress",
            "AMQSize",
            "mqtt.correlation.data",
            "ack",
            "destination",
            "expires",
            "id",
            "persistent",
            "priority",
            "receipt",
            "redelivered",
            "subscription",
            "timestamp",
            "transaction",
            "type",
        }
    ),
    hidden_prefixes=("_AMQ", "__AMQ", *_ADDED_PREFIXES),
)

CLASSIC = replace(
    _ACTIVEMQ,
    name="classic",
    quoted_names=False,
    boolean_throws=True,
    double_throws=True,
    always_converts=True,
    functions=MappingProxyType(
        {
            "REGEX": (2, 2),
            "INLIST": (2, 2),
            "MAKELIST": (0, 1 << 16),
            "SPLIT": (2, 3),
            "REPLACE": (3, 3),
        }
    ),
    # JMSXDeliveryCount is the redelivery counter plus one; 1 is the first delivery.
    defaults=MappingProxyType(
        {
            "JMSXDeliveryCount": Value(Kind.INT, 1),
            "JMSXGroupSeq": Value(Kind.INT, 0),
            "JMSRedelivered": Value(Kind.BOOLEAN, value=False),
        }
    ),
    null_texts=frozenset({"null"}),
    hidden=_ADDED
    | frozenset(
        {
            "JMSXDeliveryCount",
            "JMSXGroupFirstForConsumer",
            "JMSXGroupID",
            "JMSXGroupSeq",
            "JMSXProducerTXID",
            "transformation",
        }
    ),
    hidden_prefixes=("JMSActiveMQ", *_ADDED_PREFIXES),
)

# Over AMQP 1.0 the broker and the rows have the types that producers set. To a selector, a message without a
# creation-time has the time 0, and JMSReplyTo is NULL or has a different spelling for each kind of producer.
_NO_TIME = {"JMSTimestamp": Value(Kind.LONG, 0)}

# Rows spell ids as the AMQP-JMS binding does. To selectors of Artemis a message-id "x" is ID:x and a uuid ID:UUID; to
# selectors of Classic a uuid as correlation-id has no prefix.
_BINDING_IDS = "ID:AMQP_"

ARTEMIS_AMQP = replace(
    ARTEMIS,
    name="artemis-amqp",
    typed_messages=True,
    null_texts=frozenset(),
    defaults=MappingProxyType(_NO_TIME),
    never_seen=ARTEMIS.never_seen | {"JMSReplyTo"},
    respelled_ids=_BINDING_IDS,
    # Meant for JMSDeliveryMode (SelectorTranslator, 2.55). Over STOMP selectors are left as they are.
    replaced_texts=MappingProxyType({"PERSISTENT": "DURABLE", "NON_PERSISTENT": "NON_DURABLE"}),
    # The broker adds a ttl to the time of arrival, which no message contains.
    hidden=ARTEMIS.hidden | {"AMQExpiration", "JMSExpiration"},
    unknown_when_absent=frozenset({"JMSMessageID"}),
)

CLASSIC_AMQP = replace(
    CLASSIC,
    name="classic-amqp",
    typed_messages=True,
    # The prefix would corrupt the broker's cache: later selectors without it would convert too.
    always_converts=False,
    null_texts=frozenset(),
    defaults=MappingProxyType({**CLASSIC.defaults, **_NO_TIME}),
    never_seen=CLASSIC.never_seen | {"JMSReplyTo"},
    respelled_ids=_BINDING_IDS,
    unknown_when_absent=frozenset({"JMSMessageID"}),
)

AMQP = replace(
    SPEC,
    name="amqp",
    unknown_broker=True,
    hidden=_ADDED,
    hidden_prefixes=("_AMQ_", *_ADDED_PREFIXES),
    typed_messages=True,
)
"""Any other AMQP broker."""

IBM = replace(SPEC, name="ibm", null_decides_between=True, faults_decide=True, zero_ids_match=True)
"""What IBM's pages say of a queue manager, which was not run. The evaluator in IBM's Java client (9.4.5) is another,
and closer to ``SPEC``: docs/selectors.md has the counts. It groups ``a - b - c`` from the right, and reads ``010`` as
octal only as the last number of a comparison.
"""


def with_null_on_both_sides(dialect: "Dialect") -> "Dialect":
    """The broker's rules without ``null_on_the_right``: pushed texts work around that flaw."""
    return replace(dialect, null_on_the_right=False)


DIALECTS: Mapping[str, Dialect] = MappingProxyType(
    {d.name: d for d in (SPEC, ARTEMIS, CLASSIC, ARTEMIS_AMQP, CLASSIC_AMQP, AMQP, IBM)}
)


def dialect_of(dialect: "str | Dialect") -> Dialect:
    if isinstance(dialect, Dialect):
        return dialect
    try:
        return DIALECTS[dialect]
    except KeyError:
        raise UnsupportedSelectorError(
            f"Unknown selector dialect {dialect!r}. Known dialects: {', '.join(DIALECTS)}."
        ) from None
