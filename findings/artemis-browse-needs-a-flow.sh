#!/usr/bin/env bash
# Believed: a browser (distribution-mode copy) with credit gets a message as soon as one arrives, like a consumer.
# So (Artemis 2.55.0, AMQP 1.0): a browser looks at its queue when a flow arrives, and only then. Credit that stands when a
#   message is sent brings nothing; one more credit brings it at once. And the browser has looked ahead: a message that
#   another consumer has taken since is shown all the same.
# Why it matters here: a query cannot wait with standing credit for news of a queue that it only looks at; it asks again,
#   and less often the longer nothing comes. What a browse has shown may be gone when a task comes to receive it.
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
import java.util.concurrent.TimeUnit;
import org.apache.activemq.artemis.api.core.QueueConfiguration;
import org.apache.activemq.artemis.api.core.RoutingType;
import org.apache.activemq.artemis.core.config.impl.ConfigurationImpl;
import org.apache.activemq.artemis.core.server.impl.ActiveMQServerImpl;
import org.apache.qpid.protonj2.client.*;

public class Finding {
  public static void main(String[] args) throws Exception {
    int port; try (var free = new java.net.ServerSocket(0)) { port = free.getLocalPort(); }
    var server = new ActiveMQServerImpl(new ConfigurationImpl().setPersistenceEnabled(false).setSecurityEnabled(false)
        .addAcceptorConfiguration("amqp", "tcp://127.0.0.1:" + port + "?protocols=AMQP"));
    server.start();
    server.createQueue(QueueConfiguration.of("prices").setRoutingType(RoutingType.ANYCAST));
    System.out.println("version " + server.getVersion().getFullVersion());
    try (var client = Client.create(); var connection = client.connect("127.0.0.1", port)) {
      var copy = new ReceiverOptions().creditWindow(0).autoAccept(false);
      copy.sourceOptions().distributionMode(DistributionMode.COPY);
      var browser = connection.openReceiver("prices", copy);
      var sender = connection.openSender("prices");
      browser.addCredit(1);
      System.out.println("credit, empty queue: " + shown(browser));
      for (int i = 1; i <= 3; i++) sender.send(Message.create("price " + i)).awaitSettlement();
      System.out.println("three messages sent: " + shown(browser));
      browser.addCredit(1);
      System.out.println("one more credit: " + shown(browser) + ", " + shown(browser) + ", " + shown(browser));
      var consumer = connection.openReceiver("prices");
      for (int i = 1; i <= 3; i++) consumer.receive(5, TimeUnit.SECONDS).accept();
      consumer.close();
      Thread.sleep(500);  // the broker counts after it has answered
      System.out.println("left: " + server.locateQueue("prices").getMessageCount());
      browser.addCredit(1);
      System.out.println("and one more credit: " + shown(browser));
    }
    server.stop();
    System.exit(0);
  }

  static Object shown(Receiver browser) throws Exception {
    var delivery = browser.receive(2, TimeUnit.SECONDS);
    return delivery == null ? "nothing" : delivery.message().body();
  }
}
JAVA
timeout 120 java -cp 'lib/*' Finding.java | tee out

diff - out <<'OUT'
version 2.55.0
credit, empty queue: nothing
three messages sent: nothing
one more credit: price 1, price 2, nothing
left: 0
and one more credit: price 3
OUT
echo "as stated"
