"""Builds a container image of Artemis from the machine's Java and bash and the jars of the embedded broker.

For machines that reach no image registry. It answers to the official image's name, variables, ports and volume
(https://github.com/apache/artemis-images), so docker-compose.yml and the tests take either; it has no console.

    python tests/support/artemis_image.py [NAME]
"""

import shutil
import sys
from pathlib import Path

import root_fs

from pyspark_jms.tools.testing.config import Acceptor, AddressSettings, User, broker_xml
from pyspark_jms.tools.testing.jars import ARTEMIS_PACKAGES, ARTEMIS_VERSION, resolve

NAME = f"apache/artemis:{ARTEMIS_VERSION}-alpine"
"""The version in docker-compose.yml."""

INSTANCE = "/var/lib/artemis-instance"
USER = 1001
PROGRAMS = ("bash", "mkdir", "cat", "sleep", "id", "ls")

# As in the official image, the variables apply at the first start, which creates the instance.
ENTRY = f"""#!/bin/bash
set -eu
if [ ! -e {INSTANCE}/etc/broker.xml ]; then
  mkdir -p {INSTANCE}/etc
  cat /opt/artemis/broker.xml > {INSTANCE}/etc/broker.xml
  echo "$ARTEMIS_USER = $ARTEMIS_PASSWORD" > {INSTANCE}/etc/users.properties
  echo "amq = $ARTEMIS_USER" > {INSTANCE}/etc/roles.properties
fi
[ ! -e {INSTANCE}/etc-override/broker.xml ] || cat {INSTANCE}/etc-override/broker.xml > {INSTANCE}/etc/broker.xml
cat {INSTANCE}/etc/broker.xml > {INSTANCE}/broker.xml
exec /opt/java/bin/java -Xmx512m -XX:+UseSerialGC -cp '/opt/artemis/lib/*' \\
  -Djava.util.logging.config.file=/opt/artemis/logging.properties \\
  -Djava.security.auth.login.config=/opt/artemis/login.config ${{EXTRA_ARGS:-}} \\
  org.apache.activemq.artemis.core.server.embedded.Main {INSTANCE}
"""

LOGIN = f"""activemq {{
  org.apache.activemq.artemis.spi.core.security.jaas.PropertiesLoginModule required
    baseDir="{INSTANCE}/etc"
    org.apache.activemq.jaas.properties.user="users.properties"
    org.apache.activemq.jaas.properties.role="roles.properties";
}};
"""

LOGGING = """handlers=java.util.logging.ConsoleHandler
.level=WARNING
org.apache.activemq.artemis.core.server.level=INFO
java.util.logging.ConsoleHandler.level=ALL
java.util.logging.SimpleFormatter.format=%1$tF %1$tT.%1$tL %4$s [%3$s] %5$s%6$s%n
"""


def build(name: str = NAME) -> None:
    """Import the root file system as image ``name``. About 15 s."""
    changes = [
        'ENTRYPOINT ["/opt/artemis/entry"]',
        "ENV ARTEMIS_USER=artemis ARTEMIS_PASSWORD=artemis PATH=/opt/java/bin:/bin",
        f"VOLUME {INSTANCE}",
        f"WORKDIR {INSTANCE}",
        "EXPOSE 5672 61613 61616",
        f"USER {USER}",
    ]
    root_fs.imported(name, _lay_out, changes)


def configuration(data: Path) -> str:
    """The broker.xml of a broker that stores its messages in ``data``."""
    domain = {"securityDomain": "activemq"}  # the entry of login.config
    stomp = Acceptor(name="stomp", host="0.0.0.0", port=61613, options={"protocols": "STOMP", **domain})
    amqp = Acceptor(name="amqp", host="0.0.0.0", port=5672, options={"protocols": "AMQP", **domain})
    core = Acceptor(name="artemis", host="0.0.0.0", port=61616, options={"protocols": "CORE", **domain})
    settings = AddressSettings(match="#", dead_letter_address="DLQ", expiry_address="ExpiryQueue")
    return broker_xml(data, [core, amqp, stomp], [User("amq", "")], [settings])


def _lay_out(root: root_fs.RootFileSystem) -> None:
    root.users({"root": 0, "artemis": USER})
    root.folder(INSTANCE, USER)
    root.programs(*PROGRAMS)
    root.java("opt/java")
    library = root.folder("/opt/artemis/lib")
    for jar in resolve(ARTEMIS_PACKAGES):
        shutil.copy(jar, library)
    (root / "opt/artemis/broker.xml").write_text(configuration(Path(INSTANCE) / "data"))
    (root / "opt/artemis/login.config").write_text(LOGIN)
    (root / "opt/artemis/logging.properties").write_text(LOGGING)
    root.script("opt/artemis/entry", ENTRY)


if __name__ == "__main__":
    build(*sys.argv[1:])
