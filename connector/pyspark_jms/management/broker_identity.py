"""Which broker has answered: an id that brokers with one store have in common, and others do not."""

import logging
from collections.abc import Callable
from dataclasses import replace

from pyspark_jms.errors import JMSError
from pyspark_jms.management.link import ManagementLink
from pyspark_jms.network.address import Address
from pyspark_jms.network.settings import ConnectionSettings

__all__ = ["broker_identity"]

_log = logging.getLogger("pyspark_jms.link")
_PATIENCE_SECONDS = 5.0
"""Limit for the connection and for the request."""


def broker_identity(
    open_link: Callable[[ConnectionSettings], ManagementLink], settings: ConnectionSettings, address: Address
) -> str | None:
    """Of the broker at one address of the list. None: it does not tell, for instance without the permission manage."""
    impatient = replace(settings.impatient(_PATIENCE_SECONDS), addresses=(address,))
    try:
        with open_link(impatient) as link:
            return str(link.attribute(link.words.broker_resource, link.words.identity)) or None
    except JMSError as error:
        _log.debug("= %s does not tell which broker it is: %s", address, error)
        return None
