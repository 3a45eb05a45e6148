"""Classic as people run it: with ``conf/activemq.xml`` of the distribution, and with a policy map of a production."""

import re

from ivy_archive import archive

from pyspark_jms.errors import EmbeddedBrokerError
from pyspark_jms.testing import EmbeddedClassic
from pyspark_jms.tools.testing.jars import CLASSIC_PACKAGES, CLASSIC_VERSION
from pyspark_jms.tools.testing.java import tail
from pyspark_jms.tools.testing.ports import free_port

_PACKAGES = (
    *CLASSIC_PACKAGES,
    f"org.apache.activemq:activemq-spring:{CLASSIC_VERSION}",
    "org.springframework:spring-context:7.0.8",
)

POLICY = """<policyEntry queue=">" producerFlowControl="true" memoryLimit="64 mb" maxPageSize="200"
  maxBrowsePageSize="400" gcInactiveDestinations="true" inactiveTimeoutBeforeGC="1000"
  optimizedDispatch="true" expireMessagesPeriod="30000">
  <deadLetterStrategy>
    <individualDeadLetterStrategy queuePrefix="DLQ." useQueueForQueueMessages="true"/>
  </deadLetterStrategy>
</policyEntry>
"""
"""What productions set for all queues."""


def distributed(name="activemq.xml"):
    """A file of the folder ``conf`` of the distribution: the sources of the release have it."""
    sources = archive("org.apache.activemq", "activemq-parent", CLASSIC_VERSION, "source-release")
    return sources.read(f"activemq-parent-{CLASSIC_VERSION}/assembly/src/release/conf/{name}").decode()


class ClassicAsRun(EmbeddedClassic):
    """The distribution's ``activemq.xml``: its connectors for STOMP and AMQP are no comments, the web console is left
    out, and host and ports differ. Everybody may log in.
    """

    _packages = _PACKAGES

    def _configure(self):
        super()._configure()
        self.configuration = self.directory / "conf" / "activemq.xml"
        self.configuration.parent.mkdir(exist_ok=True)
        self.configuration.write_text(self.configured(distributed()))
        for name in ("credentials.properties", "login.config", "users.properties", "groups.properties"):
            (self.configuration.parent / name).write_text(distributed(name))

    def configured(self, xml):
        xml = re.sub(r"<!-- (<transportConnector name=\"(?:amqp|stomp)\" .*/>) -->", r"\1", xml)
        xml = xml.replace('<import resource="jetty-spring.xml"/>', "")
        ports = {"61616": free_port(self.host), "5672": self.amqp_port, "61613": self.port}
        return re.sub(r"0\.0\.0\.0:(61616|5672|61613)\b", lambda found: f"{self.host}:{ports[found[1]]}", xml)

    def _boot(self, jvm):
        properties = jvm.java.lang.System
        properties.setProperty("activemq.conf", str(self.configuration.parent))
        properties.setProperty("activemq.data", str(self.directory / "data"))
        properties.setProperty("java.security.auth.login.config", str(self.configuration.parent / "login.config"))
        uri = "xbean:" + self.configuration.as_uri().replace("///", "/")  # others are remote files to Classic
        self._server = jvm.org.apache.activemq.broker.BrokerFactory.createBroker(uri)
        self._server.setUseShutdownHook(False)
        self._server.start()
        if not self._server.waitUntilStarted():
            raise EmbeddedBrokerError("The broker did not start.", tail(self.log))

    def connection_factory(self):
        return self.jvm.org.apache.activemq.ActiveMQConnectionFactory("vm://localhost?create=false")


class ClassicInProduction(ClassicAsRun):
    """With logins, as the distribution's file has them in a comment, a scheduler, a transformer, and ``POLICY``."""

    def configured(self, xml):
        xml = re.sub(r"<!--\s*(<plugins>.*?</plugins>)\s*-->", r"\1", xml, flags=re.DOTALL)
        broker = 'schedulerSupport="true" schedulePeriodForDestinationPurge="1000" '
        xml = xml.replace("<policyEntries>", f"<policyEntries>{POLICY}").replace('id="broker"', f'{broker}id="broker"')
        xml = super().configured(xml)
        return re.sub(r"(amqp://[^?]*\?)", r"\1transport.transformer=jms&amp;", xml)
