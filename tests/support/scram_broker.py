"""An Artemis whose AMQP clients log in by SCRAM."""

from pyspark_jms.testing import EmbeddedArtemis

_MODULES = "org.apache.activemq.artemis.spi.core.security.jaas"
_FILES = (
    'org.apache.activemq.jaas.properties.user="users.properties"'
    ' org.apache.activemq.jaas.properties.role="roles.properties";'
)
_LOGINS = f"""
activemq {{
  {_MODULES}.PropertiesLoginModule sufficient {_FILES}
  {_MODULES}.SCRAMLoginModule sufficient;
}};
scram {{ {_MODULES}.SCRAMPropertiesLoginModule required {_FILES} }};
"""


class ScramArtemis(EmbeddedArtemis):
    """Offers these SASL mechanisms. Clients of STOMP, such as the readiness probe, log in by the password."""

    def __init__(self, directory, *mechanisms):
        options = {"saslMechanisms": ",".join(mechanisms), "saslLoginConfigScope": "scram"}
        super().__init__(directory, acceptor_options=options)

    def _boot(self, jvm):
        for name, line in (("users", "{0.name}={0.password}\n"), ("roles", "{0.name}={0.name}\n")):
            (self.directory / f"{name}.properties").write_text("".join(map(line.format, self._users)))
        (self.directory / "login.config").write_text(_LOGINS)
        jvm.java.lang.System.setProperty("java.security.auth.login.config", str(self.directory / "login.config"))
        artemis = jvm.org.apache.activemq.artemis
        self._embedded = artemis.core.server.embedded.EmbeddedActiveMQ()
        self._embedded.setConfigResourcePath((self.directory / "broker.xml").as_uri())
        self._embedded.setSecurityManager(artemis.spi.core.security.ActiveMQJAASSecurityManager("activemq"))
        self._embedded.start()
        self._server = self._embedded.getActiveMQServer()
