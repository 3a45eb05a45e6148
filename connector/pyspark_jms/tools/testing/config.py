"""Settings of a test -> Artemis' ``broker.xml`` and logging file. No I/O."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from xml.sax.saxutils import escape, quoteattr

__all__ = ["LOGGING_PROPERTIES", "PERMISSIONS", "Acceptor", "AddressSettings", "Tls", "User", "broker_xml"]

PERMISSIONS = frozenset(
    {
        "browse",
        "consume",
        "createAddress",
        "createDurableQueue",
        "createNonDurableQueue",
        "deleteAddress",
        "deleteDurableQueue",
        "deleteNonDurableQueue",
        "manage",
        "send",
    }
)
"""Artemis' names of permissions. Users in production usually have ``send``, ``consume`` and ``browse`` only."""


@dataclass(frozen=True, slots=True)
class User:
    """An additional user. The broker's own user has all permissions.

    ``at`` sets the permissions for single addresses: ``User("reader", "pw", at={"orders": {"consume"}})`` can only
    consume from ``orders``, and has ``permissions`` at all other addresses. Keys are Artemis matches (``orders.#``).
    As in Artemis, only the most specific match of an address applies.
    """

    name: str
    password: str = field(repr=False)
    permissions: Collection[str] = PERMISSIONS
    at: Mapping[str, Collection[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        unknown = set(self.permissions).union(*self.at.values()) - PERMISSIONS
        if unknown:
            raise ValueError(f"unknown permissions: {', '.join(sorted(unknown))}")


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressSettings:
    """Artemis address settings for ``match``. A setting that is None is inherited from the less specific match."""

    match: str
    max_delivery_attempts: int | None = None
    redelivery_delay: int | None = None
    redelivery_delay_multiplier: float | None = None
    max_redelivery_delay: int | None = None
    dead_letter_address: str | None = None
    expiry_address: str | None = None
    expiry_delay: int | None = None
    max_expiry_delay: int | None = None
    max_size_bytes: int | None = None
    max_size_messages: int | None = None
    address_full_policy: Literal["PAGE", "DROP", "FAIL", "BLOCK"] | None = None
    redistribution_delay: int | None = None
    id_cache_size: int | None = None
    auto_create_queues: bool | None = None
    auto_create_addresses: bool | None = None
    default_ring_size: int | None = None
    default_non_destructive: bool | None = None
    default_purge_on_no_consumers: bool | None = None
    default_max_consumers: int | None = None
    default_consumers_before_dispatch: int | None = None
    page_limit_bytes: int | None = None
    page_full_policy: Literal["DROP", "FAIL"] | None = None

    def xml(self) -> str:
        names = (name for name in self.__slots__ if name != "match")
        given = {name: value for name in names if (value := getattr(self, name)) is not None}
        elements = "".join(f"<{_dashed(name)}>{_text(value)}</{_dashed(name)}>" for name, value in given.items())
        return f"<address-setting match={quoteattr(self.match)}>{elements}</address-setting>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """The PEM files of a broker. With ``client_ca`` the broker requires client certificates of that authority."""

    cert: str | Path
    key: str | Path | None = None
    """The key, if it is not in the file of the certificate."""

    client_ca: str | Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptor:
    name: str
    host: str
    port: int
    options: Mapping[str, str]

    def xml(self) -> str:
        options = ";".join(f"{name}={value}" for name, value in self.options.items())
        uri = f"tcp://{self.host}:{self.port}?{options}"
        return f"<acceptor name={quoteattr(self.name)}>{escape(uri)}</acceptor>"


# The result of `artemis create`, except: no disk-usage limit and no critical analyzer (a laptop's full disk or sleep
# must not stop a test), a shorter period for expired messages, an acceptor for clients in the broker's JVM, and a
# journal that collects writes for 0.4 ms instead of 3.3 ms (the setting is in ns), because every receipt waits for it.
_BROKER = """<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core">
  <persistence-enabled>true</persistence-enabled>
  <journal-type>NIO</journal-type>
  <journal-file-size>10M</journal-file-size>
  <journal-pool-files>10</journal-pool-files>
  <journal-buffer-timeout>400000</journal-buffer-timeout>
  <journal-directory>{directory}/journal</journal-directory>
  <bindings-directory>{directory}/bindings</bindings-directory>
  <large-messages-directory>{directory}/large-messages</large-messages-directory>
  <paging-directory>{directory}/paging</paging-directory>
  <max-disk-usage>-1</max-disk-usage>
  <critical-analyzer>false</critical-analyzer>
  <message-expiry-scan-period>1000</message-expiry-scan-period>
  <acceptors><acceptor name="in-vm">vm://0</acceptor>{acceptors}</acceptors>
  <security-settings>{security}</security-settings>
  <address-settings>{addresses}</address-settings>
  <addresses>
    <address name="DLQ"><anycast><queue name="DLQ"/></anycast></address>
    <address name="ExpiryQueue"><anycast><queue name="ExpiryQueue"/></anycast></address>
  </addresses>
</core></configuration>
"""

# The virtual machine's standard error is the log file.
LOGGING_PROPERTIES = """handlers=java.util.logging.ConsoleHandler
.level=WARNING
java.util.logging.ConsoleHandler.level=ALL
java.util.logging.SimpleFormatter.format=%1$tF %1$tT.%1$tL %4$s [%3$s] %5$s%6$s%n
"""


def broker_xml(
    directory: Path, acceptors: Iterable[Acceptor], users: Sequence[User], settings: Iterable[AddressSettings]
) -> str:
    # No auto-delete and no default routing type, as with `artemis create`: a default routing type would hide a SEND
    # without destination-type.
    base = "<auto-delete-queues>false</auto-delete-queues><auto-delete-addresses>false</auto-delete-addresses>"
    general, *others = settings
    matches = sorted({match for user in users for match in user.at} - {"#"})
    return _BROKER.format(
        directory=escape(str(directory)),
        acceptors="".join(acceptor.xml() for acceptor in acceptors),
        security="".join(_security(match, users) for match in ["#", *matches]),
        addresses=general.xml().replace("</address-setting>", f"{base}</address-setting>")
        + "".join(setting.xml() for setting in others),
    )


def _security(match: str, users: Sequence[User]) -> str:
    """Artemis does not merge security settings: each match lists what every user may do there."""
    permissions = ""
    for permission in sorted(PERMISSIONS):
        allowed = [user.name for user in users if permission in user.at.get(match, user.permissions)]
        permissions += f'<permission type="{permission}" roles={quoteattr(",".join(allowed))}/>'
    return f"<security-setting match={quoteattr(match)}>{permissions}</security-setting>"


def _dashed(name: str) -> str:
    return name.replace("_", "-")


def _text(value: object) -> str:
    return escape(str(value).lower() if isinstance(value, bool) else str(value))
