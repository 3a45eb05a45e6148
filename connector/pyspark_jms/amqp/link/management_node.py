"""Requests to an AMQP management node (Qpid Broker-J): an object is named by its type and key, and a reply is a map.

The node is that of a working draft, AMQP Management 1.0; Broker-J finds objects by ``index`` and ``key``.
"""

import json
from dataclasses import replace
from typing import Any

from pyspark_jms.amqp.link.connection import connect
from pyspark_jms.amqp.link.management import AmqpManagementLink
from pyspark_jms.errors import (
    BrokerError,
    InvalidDestinationError,
    JMSSecurityError,
    MalformedFrameError,
    UnsupportedError,
)
from pyspark_jms.management.attributes import READ
from pyspark_jms.management.link import ManagementLink, unknown_resource
from pyspark_jms.network.settings import ConnectionSettings

__all__ = ["NodeManagementLink", "open_amqp_management"]

_OK, _UNAUTHORISED, _FORBIDDEN, _NOT_FOUND = 200, 401, 403, 404


def open_amqp_management(settings: ConnectionSettings) -> ManagementLink:
    """A link to the management of the broker, whichever its kind is."""
    # Without the client id: the connection of the query uses it.
    connection = connect(replace(settings, client_id=None))
    words = connection.dialect.management
    is_node = words is not None and not words.reply_address
    return (NodeManagementLink if is_node else AmqpManagementLink)(settings, connection)


class NodeManagementLink(AmqpManagementLink):
    """The resource is ``TYPE KEY``. A name of an attribute begins with ``READ``; other names are statistics."""

    def _attach(self) -> None:
        try:
            super()._attach()
        except InvalidDestinationError:
            raise UnsupportedError(
                f"{self.address} has no management node {self.words.address}.",
                "Install the broker's plugin for management over AMQP (qpid-broker-plugins-management-amqp).",
            ) from None

    def _attribute(self, resource: str, name: str) -> Any:
        is_read = name.startswith(READ)
        key = name.removeprefix(READ)
        request = {self.words.operation_header: READ.strip() if is_read else "getStatistics"}
        if not is_read:
            request[self.words.attribute_header] = json.dumps([key])
        found = self._request(resource, request, "")
        if not isinstance(found, dict) or key not in found:
            raise MalformedFrameError(
                f"The broker's management reply has no {key}.", "Report this with the broker's version."
            )
        return found[key]

    def _request(self, resource: str, request: dict[str, str], body: str) -> Any:
        kind, _, key = resource.partition(" ")
        named = {"type": kind, "index": "object-path", self.words.resource_header: key}
        try:
            properties, value = self._ask({**named, **request}, body or {})
        except (BrokerError, JMSSecurityError):
            raise self._refused() from None
        status = properties.get(self.words.success_header)
        if status in {_UNAUTHORISED, _FORBIDDEN}:
            raise self._refused()
        if status != _OK:
            raise unknown_resource(resource, " ".join(request.values()))
        return value
