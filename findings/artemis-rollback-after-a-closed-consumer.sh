#!/usr/bin/env bash
# Believed: when a transaction is rolled back, a message that it had accepted is on its queue again, whatever became of
#   the consumer that had received it.
# So (Artemis 2.55.0, AMQP 1.0): if the acceptance was sent unsettled (as python-qpid-proton 0.40.0 does by itself), and
#   somebody closes the consumer (closeConsumerWithID, as an operator does), a rollback gives the message to the
#   consumer that has ended: it counts as being delivered, and the next consumer does not get it. The end of
#   the connection instead of a rollback puts it back on the queue, and so does a rollback of a settled acceptance.
# Why it matters here: an exactly-once read has its last acceptance answered, because the broker would ignore those of a
#   closed consumer. After an error it must end the connection, or a message is missing.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"

python3 -m venv venv
venv/bin/pip install -q python-qpid-proton==0.40.0
cat > pom.xml <<'XML'
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>finding</groupId><artifactId>finding</artifactId><version>1</version>
<dependencies>
<dependency><groupId>org.apache.artemis</groupId><artifactId>artemis-server</artifactId><version>2.55.0</version></dependency>
<dependency><groupId>org.apache.artemis</groupId><artifactId>artemis-amqp-protocol</artifactId><version>2.55.0</version></dependency>
<dependency><groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>2.0.17</version></dependency>
</dependencies></project>
XML
mvn -q -B dependency:copy-dependencies -DoutputDirectory=lib

# A broker. For each name that it reads it closes the consumers of that queue.
cat > Broker.java <<'JAVA'
import org.apache.activemq.artemis.api.core.QueueConfiguration;
import org.apache.activemq.artemis.api.core.RoutingType;
import org.apache.activemq.artemis.core.config.impl.ConfigurationImpl;
import org.apache.activemq.artemis.core.server.ServerConsumer;
import org.apache.activemq.artemis.core.server.impl.ActiveMQServerImpl;

public class Broker {
  public static void main(String[] args) throws Exception {
    int port; try (var free = new java.net.ServerSocket(0)) { port = free.getLocalPort(); }
    var config = new ConfigurationImpl().setPersistenceEnabled(false).setSecurityEnabled(false)
        .addAcceptorConfiguration("amqp", "tcp://127.0.0.1:" + port + "?protocols=AMQP");
    var server = new ActiveMQServerImpl(config);
    server.start();
    for (var name : args) server.createQueue(QueueConfiguration.of(name).setRoutingType(RoutingType.ANYCAST));
    System.out.println(port + " " + server.getVersion().getFullVersion());
    for (var line : (Iterable<String>) new java.io.BufferedReader(new java.io.InputStreamReader(System.in)).lines()::iterator) {
      var queue = server.locateQueue(line);
      for (var each : queue.getConsumers()) {
        var one = (ServerConsumer) each;
        server.getActiveMQServerControl().closeConsumerWithID(one.getSessionID(), "" + one.sequentialID());
      }
      while (queue.getConsumerCount() > 0) Thread.sleep(10);
      System.out.println("closed");
    }
    System.exit(0);
  }
}
JAVA
cat > finding.py <<'PY'
import subprocess
import sys

from proton import Message
from proton.handlers import MessagingHandler, TransactionHandler
from proton.reactor import Container
from proton.utils import BlockingConnection

CASES = [("settled", "rollback"), ("unsettled", "end of the connection"), ("unsettled", "rollback")]
QUEUES = ["-".join(case).replace(" ", "-") for case in CASES]


class Case(MessagingHandler, TransactionHandler):
    """Accept one message in a transaction, have its consumer closed, and end the transaction."""

    def __init__(self, url, queue, settled, by_rollback):
        super().__init__(prefetch=1, auto_accept=False)
        self.url, self.queue, self.settled, self.by_rollback = url, queue, settled, by_rollback

    def on_start(self, event):
        self.container, self.connection = event.container, event.container.connect(self.url)
        self.container.declare_transaction(self.connection, handler=self, settle_before_discharge=self.settled)

    def on_transaction_declared(self, event):
        self.transaction = event.transaction
        self.container.create_receiver(self.connection, self.queue)

    def on_message(self, event):
        self.transaction.accept(event.delivery)
        if self.settled:
            event.delivery.settle()
        self.container.schedule(1, self)

    def on_timer_task(self, event):
        broker.stdin.write(self.queue + "\n")
        broker.stdin.flush()
        assert broker.stdout.readline() == "closed\n"
        self.transaction.abort() if self.by_rollback else self.connection.close()

    def on_link_error(self, event):
        pass  # the broker tells that the consumer was closed

    def on_transaction_aborted(self, event):
        self.connection.close()


broker = subprocess.Popen(
    ["java", "-cp", "lib/*", "Broker.java", *QUEUES], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
)
port, version = broker.stdout.readline().split()
print("version", version)
url = f"127.0.0.1:{port}"
for (kind, end), queue in zip(CASES, QUEUES):
    connection = BlockingConnection(url, timeout=10)
    connection.create_sender(queue).send(Message(body="price", durable=True))
    Container(Case(url, queue, kind == "settled", end == "rollback")).run()
    receiver = connection.create_receiver(queue)
    try:
        got = receiver.receive(timeout=3).body
    except Exception as error:
        got = type(error).__name__
    connection.close()
    print(f"{kind}, {end}: {got}")
broker.stdin.close()
PY
timeout 120 venv/bin/python finding.py | tee out

diff - out <<'OUT'
version 2.55.0
settled, rollback: price
unsettled, end of the connection: price
unsettled, rollback: Timeout
OUT
echo "as stated"
