#!/usr/bin/env bash
# Believed: a consumer of a non-destructive queue cannot change the queue, so a message that it gives back just stays.
# So (Artemis 2.55.0, AMQP 1.0): each disposition `released`, and each `modified`, puts a further copy of the message
#   into the queue; the queue of 3 messages has 6 after one pass of releases and 9 after one of modifications. A
#   browser (distribution-mode copy) changes nothing.
# Why it matters here: a reader gives back what it received beyond a batch. On such a queue it must detach instead, and
#   an exactly-once read, which receives with a new consumer for each batch, reads the same messages for ever.
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
    server.createQueue(QueueConfiguration.of("prices").setRoutingType(RoutingType.ANYCAST).setNonDestructive(true));
    try (var client = Client.create(); var connection = client.connect("127.0.0.1", port)) {
      var sender = connection.openSender("prices");
      for (int i = 0; i < 3; i++) sender.send(Message.create("price " + i)).awaitSettlement();
      System.out.println("version " + server.getVersion().getFullVersion());
      System.out.println("sent " + count(server));
      browse(connection);
      System.out.println("browsed " + count(server));
      pass(connection, 3, "accept");
      System.out.println("accepted " + count(server));
      pass(connection, 3, "release");
      System.out.println("released " + count(server));
      pass(connection, 3, "modify");
      System.out.println("modified " + count(server));
    }
    server.stop();
    System.exit(0);
  }

  static long count(ActiveMQServerImpl server) throws Exception {
    Thread.sleep(500);  // the broker counts after it has answered
    return server.locateQueue("prices").getMessageCount();
  }

  static void browse(Connection connection) throws Exception {
    var options = new ReceiverOptions().autoAccept(false);
    options.sourceOptions().distributionMode(DistributionMode.COPY);
    try (var receiver = connection.openReceiver("prices", options)) {
      for (int i = 0; i < 3; i++) receiver.receive(5, TimeUnit.SECONDS).release();
    }
  }

  static void pass(Connection connection, int messages, String outcome) throws Exception {
    try (var receiver = connection.openReceiver("prices", new ReceiverOptions().autoAccept(false).creditWindow(0))) {
      receiver.addCredit(messages);
      for (int i = 0; i < messages; i++) {
        var delivery = receiver.receive(5, TimeUnit.SECONDS);
        switch (outcome) {
          case "accept" -> delivery.accept();
          case "release" -> delivery.release();
          default -> delivery.modified(true, false);
        }
      }
    }
  }
}
JAVA
timeout 120 java -cp 'lib/*' Finding.java | tee out

diff - out <<'OUT'
version 2.55.0
sent 3
browsed 3
accepted 3
released 6
modified 9
OUT
echo "as stated"
