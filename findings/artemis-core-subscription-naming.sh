#!/usr/bin/env bash
# Believed: over AMQP the queue of a durable subscription is CONTAINER.LINK at its topic, and whoever names the queue as
#   TOPIC::CONTAINER.LINK reads that queue or is refused.
# So (Artemis 2.55.0, amqp-use-core-subscription-naming=true, which sites with CORE and AMQP clients set):
#   the broker escapes the dots of both parts (a\.b.c\.d). A receiver on the usual full name does not find the queue
#   and is not refused: the broker makes a second durable queue, which from then on collects every message of the topic.
# Why it matters here: a probe or a check that names such a queue leaves a queue that nobody reads and that grows for
#   ever. Names without dots are the same in both modes.
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
import org.apache.activemq.artemis.core.config.impl.ConfigurationImpl;
import org.apache.activemq.artemis.core.server.impl.ActiveMQServerImpl;
import org.apache.qpid.protonj2.client.*;
import java.util.*;

public class Finding {
  public static void main(String[] args) throws Exception {
    for (boolean core : new boolean[] {false, true}) {
      int port; try (var free = new java.net.ServerSocket(0)) { port = free.getLocalPort(); }
      var config = new ConfigurationImpl().setPersistenceEnabled(false).setSecurityEnabled(false)
          .addAcceptorConfiguration("amqp", "tcp://127.0.0.1:" + port + "?protocols=AMQP")
          .setAmqpUseCoreSubscriptionNaming(core);
      var server = new ActiveMQServerImpl(config);
      server.start();
      if (!core) System.out.println("version " + server.getVersion().getFullVersion());
      try (var client = Client.create(new ClientOptions().id("a.b")); var connection = client.connect("127.0.0.1", port)) {
        var subscription = connection.openDurableReceiver("news", "c.d");
        subscription.openFuture().get();
        System.out.println("core naming " + core + ": subscribed, queues " + queues(server));
        subscription.detach();
        try (var other = Client.create().connect("127.0.0.1", port)) {
          var options = new ReceiverOptions();
          options.sourceOptions().capabilities("topic");
          var looker = other.openReceiver("news::a.b.c.d", options);
          looker.openFuture().get();
          looker.close();
          other.openSender("news", senderOptions()).send(Message.create("x")).awaitSettlement();
        } catch (Exception refused) {
          System.out.println("  a receiver on news::a.b.c.d is refused");
        }
        System.out.println("  then queues " + queues(server));
      }
      server.stop();
    }
    System.exit(0);
  }

  static SenderOptions senderOptions() {
    var options = new SenderOptions();
    options.targetOptions().capabilities("topic");
    return options;
  }

  static Map<String, Long> queues(ActiveMQServerImpl server) throws Exception {
    var found = new TreeMap<String, Long>();
    for (var name : server.getActiveMQServerControl().getQueueNames())
      if (name.contains("c")) found.put(name, server.locateQueue(name).getMessageCount());
    return found;
  }
}
JAVA
timeout 120 java -cp 'lib/*' Finding.java | tee out

diff - out <<'OUT'
version 2.55.0
core naming false: subscribed, queues {a.b.c.d=0}
  then queues {a.b.c.d=1}
core naming true: subscribed, queues {a\.b.c\.d=0}
  then queues {a.b.c.d=1, a\.b.c\.d=1}
OUT
echo "as stated"
