"""Artemis as people run it: with the configuration that ``artemis create`` writes, and with nothing configured."""

import re
import tempfile
from pathlib import Path

from pyspark_jms.errors import EmbeddedBrokerError
from pyspark_jms.testing import EmbeddedArtemis
from pyspark_jms.tools.testing.jars import resolve
from pyspark_jms.tools.testing.java import JavaMachine, tail
from pyspark_jms.tools.testing.ports import free_port

CREATE = "2.53.0"
"""The newest ``artemis-cli`` that is published. Its ``broker.xml`` differs from the broker's release in one comment and
the permissions at the management address.
"""

_UNPUBLISHED = ("org.jline:jline-native",)
"""Only the interactive shell uses it."""


def create(folder, user, password):
    """Run ``artemis create FOLDER``."""
    jars = resolve((f"org.apache.artemis:artemis-cli:{CREATE}",), exclusions=_UNPUBLISHED)
    with tempfile.TemporaryDirectory() as logs:
        machine = JavaMachine(jars, log=Path(logs) / "create.log")
        try:
            with machine.killed_after(60):
                jvm = machine.connect().jvm
                words = ["create", str(folder), "--user", user, "--password", password, "--require-login", "--silent"]
                arguments = machine.gateway.new_array(jvm.java.lang.String, len(words))
                for position, word in enumerate(words):
                    arguments[position] = word
                home = jvm.java.io.File(logs)
                jvm.org.apache.activemq.artemis.cli.Artemis.internalExecute(False, home, None, None, arguments)
        finally:
            machine.kill()


class ArtemisAsCreated(EmbeddedArtemis):
    """``artemis create`` writes its configuration. Only host and ports differ, and what a test asks for."""

    def __init__(self, directory=None, port=0, user="artemis", password="artemis", **options):
        self._max_delivery_attempts = options.get("max_delivery_attempts", 10)
        for impossible in ("tls", "users", "plain_port", "benchmark"):
            if options.get(impossible):
                raise EmbeddedBrokerError(f"{type(self).__name__} has no {impossible}.", "Use EmbeddedArtemis.")
        super().__init__(directory, port, user, password, **options)
        self.amqp_port = self.amqp_port if options.get("amqp_port") else free_port(self.host)
        self.other_ports = {port: free_port(self.host) for port in (61613, 5445, 1883)}

    def connection_factory(self):
        """CORE over the port of ``url``: there is no acceptor for clients in the broker's machine."""
        url = f"tcp://{self.host}:{self.port}"
        return self.jvm.org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory(url)

    def _configure(self):
        super(EmbeddedArtemis, self)._configure()
        self.configuration = self.directory / "created" / "etc" / "broker.xml"
        if not self.configuration.exists():
            create(self.directory / "created", self.user, self.password)
            self.configuration.write_text(self._configured(self.configuration.read_text()))

    def _configured(self, xml):
        xml = self.relocated(xml)
        if self._acceptor_options:
            options = "".join(f";{name}={value}" for name, value in self._acceptor_options.items())
            xml = xml.replace("</acceptor>", f"{options}</acceptor>")
        if self._max_delivery_attempts != 10:  # the broker's own default
            setting = f"<max-delivery-attempts>{self._max_delivery_attempts}</max-delivery-attempts>"
            xml = xml.replace('<address-setting match="#">', f'<address-setting match="#">{setting}')
        _, *further = self._address_settings
        return xml.replace("</address-settings>", "".join(each.xml() for each in further) + "</address-settings>")

    def relocated(self, xml):
        """Replace host and ports of ``broker.xml``."""
        ports = {61616: self.port, 5672: self.amqp_port, **self.other_ports}
        return re.sub(r"tcp://0\.0\.0\.0:(\d+)", lambda found: f"tcp://{self.host}:{ports[int(found[1])]}", xml)

    def _boot(self, jvm):
        artemis, properties = jvm.org.apache.activemq.artemis, jvm.java.lang.System
        properties.setProperty("artemis.instance", str(self.directory / "created"))
        properties.setProperty("java.security.auth.login.config", str(self.configuration.parent / "login.config"))
        embedded = artemis.core.server.embedded.EmbeddedActiveMQ()
        embedded.setConfigResourcePath(self.configuration.as_uri())
        embedded.setSecurityManager(artemis.spi.core.security.ActiveMQJAASSecurityManager("activemq"))
        embedded.start()
        self._server = embedded.getActiveMQServer()
        if not self._server.isActive():
            raise EmbeddedBrokerError("The broker did not become active.", tail(self.log))


class ArtemisBuiltIn(ArtemisAsCreated):
    """Without an address setting and without the addresses that ``artemis create`` writes, also for dead letters: an
    empty queue is deleted, and the 11th delivery of a message deletes it.
    """

    def _configured(self, xml):
        xml = re.sub(r"<address-setting .*</address-setting>", "", xml, flags=re.DOTALL)
        return super()._configured(re.sub(r"<addresses>.*</addresses>", "", xml, flags=re.DOTALL))
