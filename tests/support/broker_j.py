"""Qpid Broker-J in its own Java virtual machine: a third broker with AMQP 1.0, and no other protocol."""

import json
import time

from pyspark_jms.errors import EmbeddedBrokerError
from pyspark_jms.tools.testing.lifecycle import JavaBroker

VERSION = "10.1.0"
"""10.0 was published without its AMQP 1.0 plugin."""

_MODULES = (
    "core",
    "plugins-amqp-1-0-protocol",
    "plugins-derby-store",
    "plugins-memory-store",
    "plugins-management-amqp",
)
_EXCLUDED = (
    "com.sleepycat:je",
    "org.apache.qpid:qpid-bdbstore",
    "ch.qos.logback:logback-classic",
    "org.bouncycastle:bcutil-jdk18on",
)
"""``bcutil`` is for certificates that the broker makes, which no test needs. 9.2.1 depends on a range of its versions:
for that Ivy asks each registry for a list, and a start ends where one does not answer.
"""


def packages_of(version):
    return (*(f"org.apache.qpid:qpid-broker-{module}:{version}" for module in _MODULES), "org.slf4j:slf4j-jdk14:2.0.17")


class EmbeddedBrokerJ(JavaBroker):
    """Stores messages in Derby. Whoever sends or reads first creates a queue. Whoever sends to a name that begins
    with ``topic.`` creates a topic.
    """

    _packages = packages_of(VERSION)
    _excluded = _EXCLUDED

    def __init__(self, directory=None, port=0, user="artemis", password="artemis", *, host="127.0.0.1"):
        super().__init__(directory, port, user, password, host=host, start_timeout=60)
        self._java_options = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
        self._launcher = None

    @property
    def url(self):
        return self.amqp_url

    @property
    def amqp_url(self):
        return f"amqp://{self.host}:{self.port}"

    # --- starting ------------------------------------------------------------------------------

    def _configure(self):
        super()._configure()
        (self.directory / "initial.json").write_text(json.dumps(self._configuration()))

    def _configuration(self):
        users = [{"name": self.user, "type": "managed", "password": self.password}]
        login = {"name": "plain", "type": "Plain", "secureOnlyMechanisms": [], "users": users}
        aliases = [{"name": f"{kind}Alias", "type": f"{kind}Alias"} for kind in ("name", "hostname", "default")]
        port = {"name": "AMQP", "port": str(self.port), "bindingAddress": self.host, "protocols": ["AMQP_1_0"]}
        policies = [
            {
                "pattern": "topic[.].*",
                "createdOnPublish": "true",
                "nodeType": "exchange",
                "attributes": {"type": "fanout"},
            },
            {
                "pattern": "(?!topic[.]).*",
                "createdOnPublish": "true",
                "createdOnConsume": "true",
                "nodeType": "queue",
                "attributes": {},
            },
        ]
        host = {"name": "default", "type": "DERBY", "nodeAutoCreationPolicies": policies}
        node = {"name": "default", "type": "JSON", "defaultVirtualHostNode": "true"}
        return {
            "name": "broker",
            "modelVersion": "9.0",
            "authenticationproviders": [login],
            "ports": [port | {"authenticationProvider": "plain", "virtualhostaliases": aliases}],
            "virtualhostnodes": [node | {"virtualHostInitialConfiguration": json.dumps(host)}],
        }

    def _boot(self, jvm):
        listeners = self.gateway.new_array(jvm.org.apache.qpid.server.SystemLauncherListener, 0)
        self._launcher = jvm.org.apache.qpid.server.SystemLauncher(listeners)
        settings = jvm.java.util.HashMap()
        settings.put("type", "Memory")
        settings.put("initialConfigurationLocation", str(self.directory / "initial.json"))
        settings.put("startupLoggedToSystemOut", "false")
        context = jvm.java.util.HashMap()
        context.put("qpid.work_dir", str(self.directory / "work"))
        settings.put("context", context)
        self._launcher.startup(settings)

    def _await_ready(self, deadline):
        while not self._is_active():
            if time.monotonic() > deadline:
                raise EmbeddedBrokerError("The broker is not active.", f"See its log {self.log}.")
            time.sleep(0.05)

    def _is_active(self):
        host = self._virtual_host()
        return host is not None and str(host.getState().name()) == "ACTIVE"

    def _shut_down(self):
        self._launcher.shutdown()

    def _end(self):
        super()._end()
        self._launcher = None

    # --- queues --------------------------------------------------------------------------------

    def _virtual_host(self):
        field = self._launcher.getClass().getDeclaredField("_systemConfig")
        field.setAccessible(True)
        broker = field.get(self._launcher).getContainer()
        return broker.getVirtualHostNodes().iterator().next().getVirtualHost()

    def create_topic(self, name):
        attributes = self.jvm.java.util.HashMap()
        attributes.put("name", name)
        attributes.put("type", "fanout")
        kind = self.jvm.java.lang.Class.forName("org.apache.qpid.server.model.Exchange")
        self._virtual_host().createChild(kind, attributes)

    def _queue(self, name):
        kind = self.jvm.java.lang.Class.forName("org.apache.qpid.server.model.Queue")
        return self._virtual_host().getChildByName(kind, name)

    def has_queue(self, queue):
        return self._queue(queue) is not None

    def message_count(self, queue):
        found = self._queue(queue)
        return 0 if found is None else int(found.getQueueDepthMessages())

    def delivering_count(self, queue):
        return int(self._queue(queue).getUnacknowledgedMessages())

    def consumer_count(self, queue):
        return int(self._queue(queue).getConsumerCount())
