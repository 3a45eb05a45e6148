#!/usr/bin/env bash
# Believed: a consumer that detaches in order gives its unsettled messages back untouched; only `modified` with delivery-failed
#   raises the delivery-count (AMQP 1.0 §3.2.1, §3.4.5).
# So (Qpid Broker-J 10.1.0): a detach raises the delivery-count of each unsettled message by one. `released` before
#   the detach does not.
# Why it matters here: a reader that stops must release what it has before it detaches, or each stop costs its messages one of
#   the deliveries after which the broker discards them.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"

cat > pom.xml <<'XML'
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>finding</groupId><artifactId>finding</artifactId><version>1</version>
<dependencies>
<dependency><groupId>org.apache.qpid</groupId><artifactId>qpid-broker-core</artifactId><version>10.1.0</version></dependency>
<dependency><groupId>org.apache.qpid</groupId><artifactId>qpid-broker-plugins-amqp-1-0-protocol</artifactId><version>10.1.0</version></dependency>
<dependency><groupId>org.apache.qpid</groupId><artifactId>qpid-broker-plugins-memory-store</artifactId><version>10.1.0</version></dependency>
<dependency><groupId>org.apache.qpid</groupId><artifactId>protonj2-client</artifactId><version>1.1.0</version></dependency>
<dependency><groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>2.0.17</version></dependency>
</dependencies></project>
XML
mvn -q -B dependency:copy-dependencies -DoutputDirectory=lib

cat > Finding.java <<'JAVA'
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.TimeUnit;
import org.apache.qpid.protonj2.client.*;
import org.apache.qpid.server.SystemLauncher;

public class Finding {
  public static void main(String[] args) throws Exception {
    int port; try (var free = new java.net.ServerSocket(0)) { port = free.getLocalPort(); }
    var host = "{\\\"type\\\": \\\"Memory\\\", \\\"nodeAutoCreationPolicies\\\": [{\\\"pattern\\\": \\\".*\\\", \\\"nodeType\\\": \\\"queue\\\","
        + " \\\"createdOnPublish\\\": \\\"true\\\", \\\"createdOnConsume\\\": \\\"true\\\", \\\"attributes\\\": {}}]}";
    Files.writeString(Path.of("initial.json"), "{\"name\": \"broker\", \"modelVersion\": \"9.0\","
        + "\"authenticationproviders\": [{\"name\": \"anyone\", \"type\": \"Anonymous\"}],"
        + "\"ports\": [{\"name\": \"AMQP\", \"port\": \"" + port + "\", \"bindingAddress\": \"127.0.0.1\", \"protocols\": [\"AMQP_1_0\"],"
        + " \"authenticationProvider\": \"anyone\", \"virtualhostaliases\": [{\"name\": \"nameAlias\", \"type\": \"nameAlias\"}]}],"
        + "\"virtualhostnodes\": [{\"name\": \"default\", \"type\": \"Memory\", \"defaultVirtualHostNode\": \"true\","
        + " \"virtualHostInitialConfiguration\": \"" + host + "\"}]}");
    var settings = new HashMap<String, Object>(Map.of("type", "Memory", "initialConfigurationLocation", "initial.json",
        "startupLoggedToSystemOut", "false", "context", Map.of("qpid.work_dir", "work")));
    var launcher = new SystemLauncher();
    launcher.startup(settings);
    try (var client = Client.create(); var connection = connected(client, port)) {
      connection.openSender("prices").send(Message.create("price")).awaitSettlement();
      System.out.println("first delivery: " + look(connection, "release"));
      System.out.println("after a release: " + look(connection, "detach"));
      System.out.println("after a detach: " + look(connection, "detach"));
      System.out.println("after another: " + look(connection, "release"));
    }
    launcher.shutdown();
    System.exit(0);
  }

  static Connection connected(Client client, int port) throws Exception {
    for (int attempt = 0; ; attempt++) {
      try {
        return client.connect("127.0.0.1", port, new ConnectionOptions().virtualHost("default")).openFuture().get(10, TimeUnit.SECONDS);
      } catch (Exception error) {
        if (attempt == 50) throw error;
        Thread.sleep(200);
      }
    }
  }

  static long look(Connection connection, String end) throws Exception {
    var receiver = connection.openReceiver("prices", new ReceiverOptions().autoAccept(false).creditWindow(0));
    receiver.addCredit(1);
    var delivery = receiver.receive(10, TimeUnit.SECONDS);
    long count = delivery.message().toAdvancedMessage().deliveryCount();
    if (end.equals("release")) delivery.release();
    receiver.close();
    return count;
  }
}
JAVA
timeout 120 java -cp 'lib/*' Finding.java 2> log | tee out

diff - out <<'OUT'
first delivery: 0
after a release: 0
after a detach: 1
after another: 2
OUT
echo "as stated"
