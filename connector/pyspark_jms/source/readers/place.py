"""Whether the broker that answers is that of the checkpoint (L16): asked of its management, if the user may use it."""

from pyspark_jms.delivery.register.plan import require_place
from pyspark_jms.delivery.register.token import Offset
from pyspark_jms.management.broker_identity import broker_identity
from pyspark_jms.network.address import Address
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.source.links import SourceProtocol

__all__ = ["require_broker"]


def require_broker(
    protocol: SourceProtocol, settings: ConnectionSettings, address: Address, named: str | None
) -> str | None:
    """The identity of the broker at the address. ``OtherBrokerError``: it is not the one that is named.

    None, on either side: nobody knows.
    """
    here = broker_identity(protocol.open_management, settings, address)
    if stop := require_place(Offset(broker=named), "", here):
        raise stop.reason.error()
    return here
