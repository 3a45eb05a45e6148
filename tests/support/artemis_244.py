"""Artemis 2.44: an older release, published under another group of packages."""

from pyspark_jms.testing import EmbeddedArtemis
from pyspark_jms.tools.testing.jars import ResolverSettings, cache_directory, resolve

VERSION = "2.44.0"

_PACKAGES = (
    *(
        f"org.apache.activemq:artemis-{module}:{VERSION}"
        for module in ("server", "stomp-protocol", "amqp-protocol", "jakarta-client")
    ),
    "jakarta.jms:jakarta.jms-api:3.1.0",
    "org.slf4j:slf4j-jdk14:2.0.17",
)


class EmbeddedArtemis244(EmbeddedArtemis):
    def _classpath(self):
        return resolve(_PACKAGES, ResolverSettings.from_environment(), cache_directory())
