"""What each dialect means by a selector: flags and names only. The parser and the rules of ``meaning`` read them.

Measured on the selector classes of Artemis 2.44 and 2.55, Classic 6.3 and 6.4; IBM MQ from its documentation. A dialect
states where it differs from the specification (Jakarta Messaging 3.1 §3.8.1), which is :data:`SPEC`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from jms_selector.errors import UnsupportedSelectorError
from jms_selector.syntax.kinds import Kind, Value

__all__ = ["ARTEMIS", "CLASSIC", "DIALECTS", "IBM", "SPEC", "Dialect", "dialect_of", "intended"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dialect:
    name: str

    # --- reading -----------------------------------------------------------------------------

    activemq: bool = False
    """The ActiveMQ grammar and rules.

    In the grammar NOT binds tighter than comparison, and there are chains, ``%``, NULL, XPATH and ASCII names. ``<>``
    on unlike types is TRUE. Two strings, or two booleans, may be compared with ``<`` in Java's order. ``/``, ``%`` and
    all calculations with a float are done in double.
    """

    prefixes: tuple[str, ...] = ()
    """What may stand before the selector at offset 0."""

    sends_prefix: bool = False
    """A STOMP reader asks for conversion by the prefix."""

    always_converts: bool = False
    """STOMP selectors are converted without being asked: the broker adds the prefix itself."""

    functions: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Name -> fewest and most arguments."""

    quoted_names: bool = True

    # --- comparing ---------------------------------------------------------------------------

    null_on_the_right: bool = False
    """``x = missing`` is FALSE, ``x <> missing`` TRUE, ``missing = missing`` TRUE."""

    total_order: bool = False
    """Floats compare by ``compareTo``: NaN equals itself and tops all, -0.0 is below 0.0."""

    left_widens: bool = False
    """Byte and short are converted on the left only; on the right they equal nothing."""

    like_is_two_valued: bool = False
    """``5 NOT LIKE 'x'`` is TRUE: NOT LIKE is NOT applied to LIKE."""

    in_is_unknown: bool = False
    """IN and NOT IN are unknown for what is no string."""

    boolean_throws: bool = False
    """With conversion, a boolean on the left of a string is a ClassCastException."""

    double_throws: bool = False
    """A double on the left of a float is a ClassCastException."""

    null_decides_between: bool = False
    """A NULL makes BETWEEN false and NOT BETWEEN true."""

    # --- calculating -------------------------------------------------------------------------

    narrow_literals: bool = False
    """A literal within int range is an int whatever its suffix; a float literal is a double."""

    converts_arithmetic: bool = False
    """With conversion, a string operand of arithmetic is read as a long, or a double if it has a point."""

    null_minus: bool = False
    """``-x`` is unknown for what is no number, and throws for byte and short."""

    # --- failing -----------------------------------------------------------------------------

    faults_escape: bool = False
    """Arithmetic on what is no number throws; in the specification's reading it only matches nothing."""

    faults_decide: bool = False
    """Unlike types or arithmetic on NULL make the whole selector false, and NOT does not help."""

    # --- headers -----------------------------------------------------------------------------

    aliases: Mapping[str, str] = field(default_factory=dict)
    """The broker's name of a header -> its JMS name."""

    words: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Under an alias: the JMS word -> the broker's."""

    never_seen: frozenset[str] = frozenset()
    """Headers and properties that are NULL to this broker's selectors."""

    defaults: Mapping[str, Value] = field(default_factory=dict)
    """Headers that are never NULL to this broker's selectors, as they are in a message that does not state them."""

    zero_ids_match: bool = False
    """``JMSMessageID`` or ``JMSCorrelationID`` = 'ID:' and 48 zeros matches any message."""

    # --- what a reader of frames knows ---------------------------------------------------------

    null_texts: frozenset[str] = frozenset()
    """Texts in a frame that may stand for a property set to null."""

    hidden: frozenset[str] = frozenset()
    """Names that the broker may know and no frame has: a reader cannot evaluate conditions on them."""

    hidden_prefixes: tuple[str, ...] = ()

    unknown_when_absent: frozenset[str] = frozenset()
    """Headers that the broker may know although the frame lacks them."""

    def shows(self, name: str) -> bool:
        """Whether a reader of frames may know ``name``."""
        return name not in self.hidden and not name.startswith(self.hidden_prefixes)


SPEC = Dialect(name="spec")

_ACTIVEMQ = Dialect(
    name="activemq",
    activemq=True,
    prefixes=("convert_string_expressions:",),
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
    prefixes=(
        "convert_string_expressions:",
        "hyphenated_props:",
        "no_convert_string_expressions:",
        "no_hyphenated_props:",
    ),
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
    null_texts=frozenset({""}),
    # SEND headers that Artemis stores as properties of the same name, and that a reader takes for plumbing.
    hidden=frozenset(
        {
            "AMQAddress",
            "AMQSize",
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
    hidden_prefixes=("_AMQ", "__AMQ"),
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
    # JMSXDeliveryCount is the redelivery counter and one: this is the first delivery.
    defaults=MappingProxyType(
        {
            "JMSXDeliveryCount": Value(Kind.INT, 1),
            "JMSXGroupSeq": Value(Kind.INT, 0),
            "JMSRedelivered": Value(Kind.BOOLEAN, value=False),
        }
    ),
    null_texts=frozenset({"null"}),
    hidden=frozenset(
        {"JMSXDeliveryCount", "JMSXGroupFirstForConsumer", "JMSXGroupID", "JMSXGroupSeq", "JMSXProducerTXID"}
    ),
    hidden_prefixes=("JMSActiveMQ",),
)

IBM = replace(SPEC, name="ibm", null_decides_between=True, faults_decide=True, zero_ids_match=True)


def intended(dialect: "Dialect") -> "Dialect":
    """The broker's rules without the flaw a pushed text works around: a NULL on the right is a NULL."""
    return replace(dialect, null_on_the_right=False)


DIALECTS: Mapping[str, Dialect] = MappingProxyType({d.name: d for d in (SPEC, ARTEMIS, CLASSIC, IBM)})


def dialect_of(dialect: "str | Dialect") -> Dialect:
    if isinstance(dialect, Dialect):
        return dialect
    try:
        return DIALECTS[dialect]
    except KeyError:
        raise UnsupportedSelectorError(
            f"There is no selector dialect {dialect!r}. Known: {', '.join(DIALECTS)}."
        ) from None
