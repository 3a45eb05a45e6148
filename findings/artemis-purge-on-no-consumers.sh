#!/usr/bin/env bash
# Believed: purge-on-no-consumers empties a queue when its last consumer leaves. A browser is a kind of consumer.
# So (Artemis 2.55.0, AMQP 1.0): a message that arrives while no consumer is attached is confirmed (`accepted`) and not
#   stored, also while a browser is attached, which then shows nothing. Only an attached consumer makes the queue keep
#   messages.
# Why it matters here: an exactly-once read attaches for each batch only, so every message that is sent between two
#   batches is lost, although its producer got the confirmation. Such a queue must be refused.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"

cat > pom.xml <<'XML'
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>finding</groupId><artifactId>finding</artifactId><version>1</version>
<dependencies>
<dependency><groupId>org.apache.artemis</groupId><artifactId>artemis-server</artifactId><version>2.55.0</version></dependency>
<dependency><groupId>org.apache.artemis</groupId><artifactId>artemis-amqp-protocol</artifactId><version>2.55.0</version></dependency>
<dependency><groupId>org.apache.qpid</groupId><artifactId>protonj2-client</artifactId><version>1.1.0</version></dependency>
<dependency><groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>2.0.17</version></dependency>
</dependencies></project>
XML
mvn -q -B dependency:copy-dependencies -DoutputDirectory=lib

cat > Finding.java <<'JAVA'
import org.apache.activemq.artemis.api.core.QueueConfiguration;
import org.apache.activemq.artemis.api.core.RoutingType;
import org.apache.activemq.artemis.core.config.impl.ConfigurationImpl;
import org.apache.activemq.artemis.core.server.impl.ActiveMQServerImpl;
import org.apache.qpid.protonj2.client.*;
import java.util.concurrent.TimeUnit;

public class Finding {
  public static void main(String[] args) throws Exception {
    int port; try (var free = new java.net.ServerSocket(0)) { port = free.getLocalPort(); }
    var config = new ConfigurationImpl().setPersistenceEnabled(false).setSecurityEnabled(false)
        .addAcceptorConfiguration("amqp", "tcp://127.0.0.1:" + port + "?protocols=AMQP");
    var server = new ActiveMQServerImpl(config);
    server.start();
    server.createQueue(QueueConfiguration.of("orders").setRoutingType(RoutingType.ANYCAST).setPurgeOnNoConsumers(true));
    try (var client = Client.create(); var connection = client.connect("127.0.0.1", port)) {
      System.out.println("version " + server.getVersion().getFullVersion());
      var sender = connection.openSender("orders");
      System.out.println("nobody: " + send(sender) + ", shown to a consumer: " + received(connection));
      var options = new ReceiverOptions();
      options.sourceOptions().distributionMode(DistributionMode.COPY);
      try (var browser = connection.openReceiver("orders", options)) {
        System.out.println("a browser: " + send(sender) + ", shown to it: " + (browser.receive(1, TimeUnit.SECONDS) != null)
            + ", shown to a consumer: " + received(connection));
      }
      try (var consumer = connection.openReceiver("orders", new ReceiverOptions().creditWindow(0))) {
        System.out.print("a consumer: " + send(sender));
        consumer.addCredit(1);
        System.out.println(", shown to it: " + (consumer.receive(5, TimeUnit.SECONDS) != null));
      }
    }
    server.stop();
    System.exit(0);
  }

  static String send(Sender sender) throws Exception {
    return sender.send(Message.create("x")).awaitSettlement().remoteState().getType().toString().toLowerCase();
  }

  static boolean received(Connection connection) throws Exception {
    try (var receiver = connection.openReceiver("orders")) {
      return receiver.receive(1, TimeUnit.SECONDS) != null;
    }
  }
}
JAVA
timeout 120 java -cp 'lib/*' Finding.java | tee out

diff - out <<'OUT'
version 2.55.0
nobody: accepted, shown to a consumer: false
a browser: accepted, shown to it: false, shown to a consumer: false
a consumer: accepted, shown to it: true
OUT
echo "as stated"
