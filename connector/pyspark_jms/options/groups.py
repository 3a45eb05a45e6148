"""How the reference sorts the options (docs/options.md), and what Spark's Kafka source calls them."""

from dataclasses import dataclass

__all__ = ["GROUPS", "KAFKA", "Group"]


@dataclass(frozen=True, slots=True)
class Group:
    title: str
    text: str
    options: tuple[str, ...]


GROUPS: tuple[Group, ...] = (
    Group("Required", "Where the messages are. A source needs `brokerUrl` and either `queue` or `topic`. A sink needs"
          " `brokerUrl`, and `queue` or `topic` unless every row has a `destination`.",
          ("brokerUrl", "queue", "topic")),
    Group("Connection and login", "Who connects, and how the connection is secured.",
          ("user", "password", "passwordFile", "passwordEnv", "sslCaFile", "sslCertFile", "sslKeyFile",
           "sslKeyPassword", "sslVerifyHostname", "broker", "virtualHost")),
    Group("Read", "Which messages a source reads, and how they become rows.",
          ("selector", "selectorResidual", "selectorCheck", "subscriptionName", "clientId", "sharedSubscription",
           "streamOffset", "streamFilter", "bodyType", "maxMessages", "maxBytes", "idleTimeout")),
    Group("Write", "How rows become messages.",
          ("propertyColumns", "deliveryMode", "priority", "timeToLive", "deliveryDelay")),
    Group("Delivery", "What is guaranteed, and what becomes of messages and rows that cannot be processed.",
          ("deliveryGuarantee", "readers", "stagingQueue", "journalLocation", "maxJournalBytes", "journalShared",
           "failOnDataLoss", "writeId", "onReplayMismatch", "transaction", "onBadMessage", "onTooLarge",
           "deadLetterQueue", "onBadRow")),
    Group("Tuning", "Sizes and times. The defaults are right for most queries.",
          ("maxMessagesPerTrigger", "maxBytesPerTrigger", "minMessagesPerTrigger", "maxTriggerDelay", "windowBytes",
           "connections", "maxMessageBytes", "maxMessageElements", "partitionBytes", "connectTimeout", "receiptTimeout",
           "heartbeat", "reconnectTimeout")),
)  # fmt: skip

KAFKA: dict[str, str] = {
    "brokerUrl": "kafka.bootstrap.servers",
    "queue": "subscribe, topic",
    "topic": "subscribe, subscribePattern, topic",
    "user": "kafka.sasl.jaas.config",
    "password": "kafka.sasl.jaas.config",
    "sslCaFile": "kafka.ssl.truststore.location",
    "sslCertFile": "kafka.ssl.keystore.location",
    "sslKeyPassword": "kafka.ssl.key.password",
    "sslVerifyHostname": "kafka.ssl.endpoint.identification.algorithm",
    "subscriptionName": "kafka.group.id",
    "clientId": "kafka.client.id",
    "failOnDataLoss": "failOnDataLoss",
    "maxMessagesPerTrigger": "maxOffsetsPerTrigger",
    "minMessagesPerTrigger": "minOffsetsPerTrigger",
    "maxTriggerDelay": "maxTriggerDelay",
    "windowBytes": "kafka.fetch.max.bytes",
    "partitionBytes": "minPartitions",
    "connectTimeout": "kafka.socket.connection.setup.timeout.ms",
    "receiptTimeout": "kafkaConsumer.pollTimeoutMs",
    "reconnectTimeout": "fetchOffset.numRetries",
}
"""Option -> the option of Spark's Kafka source or sink with the same purpose. Values and defaults differ."""
