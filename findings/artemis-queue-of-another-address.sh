#!/usr/bin/env bash
# Believed: what is sent to the name of an existing queue arrives in it, or the send fails.
# So (Artemis 2.55.0): a queue may have another name than its address. What is sent to the name of such a queue makes a
#   new address of that name, without a queue, and is confirmed and dropped, over AMQP and STOMP; a consumer of the same
#   name reads the queue. What is sent as to a queue to the full name of a subscription's queue is dropped, too, and the
#   topic becomes a queue as well. ADDRESS::QUEUE, as to the kind that the queue has, arrives.
# Why it matters here: a job that reads a queue writes to it by the same name, sees no error, and each row is lost.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"

cat > pom.xml <<'XML'
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>finding</groupId><artifactId>finding</artifactId><version>1</version>
<dependencies>
<dependency><groupId>org.apache.artemis</groupId><artifactId>artemis-server</artifactId><version>2.55.0</version></dependency>
<dependency><groupId>org.apache.artemis</groupId><artifactId>artemis-amqp-protocol</artifactId><version>2.55.0</version></dependency>
<dependency><groupId>org.apache.artemis</groupId><artifactId>artemis-stomp-protocol</artifactId><version>2.55.0</version></dependency>
<dependency><groupId>org.apache.qpid</groupId><artifactId>qpid-jms-client</artifactId><version>2.7.0</version></dependency>
<dependency><groupId>jakarta.jms</groupId><artifactId>jakarta.jms-api</artifactId><version>3.1.0</version></dependency>
<dependency><groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>2.0.17</version></dependency>
</dependencies></project>
XML
mvn -q -B dependency:copy-dependencies -DoutputDirectory=lib

cat > Finding.java <<'JAVA'
import jakarta.jms.*;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import org.apache.activemq.artemis.api.core.*;
import org.apache.activemq.artemis.core.config.impl.ConfigurationImpl;
import org.apache.activemq.artemis.core.server.impl.ActiveMQServerImpl;
import org.apache.qpid.jms.JmsConnectionFactory;

public class Finding {
  static ActiveMQServerImpl server;
  static int port, number;

  public static void main(String[] args) throws Exception {
    try (var free = new java.net.ServerSocket(0)) { port = free.getLocalPort(); }
    server = new ActiveMQServerImpl(new ConfigurationImpl().setPersistenceEnabled(false).setSecurityEnabled(false)
        .addAcceptorConfiguration("all", "tcp://127.0.0.1:" + port + "?protocols=AMQP,STOMP"));
    server.start();
    System.out.println("version " + server.getVersion().getFullVersion());
    for (var kind : new RoutingType[] {RoutingType.ANYCAST, RoutingType.MULTICAST})
      for (var protocol : new String[] {"AMQP", "STOMP"})
        for (boolean full : new boolean[] {false, true})
          if (kind == RoutingType.ANYCAST || full) show(kind, protocol, full);
    System.exit(0);
  }

  static void show(RoutingType kind, String protocol, boolean full) throws Exception {
    String address = "address" + ++number, queue = "queue" + number, name = full ? address + "::" + queue : queue;
    server.createQueue(QueueConfiguration.of(queue).setAddress(address).setRoutingType(kind), true);
    if (protocol.equals("AMQP")) sendAmqp(name); else sendStomp(name);
    System.out.println(kind + ", " + protocol + " to queue " + name.replaceAll("[0-9]", "") + ": confirmed, "
        + server.locateQueue(SimpleString.of(queue)).getMessageCount() + " arrived, the address is "
        + server.getAddressInfo(SimpleString.of(address)).getRoutingTypes());
  }

  static void sendAmqp(String name) throws Exception {
    try (var connection = new JmsConnectionFactory("amqp://127.0.0.1:" + port).createConnection()) {
      var session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
      session.createProducer(session.createQueue(name)).send(session.createTextMessage("order"));
    }
  }

  static void sendStomp(String name) throws Exception {
    try (var socket = new Socket("127.0.0.1", port)) {
      var out = socket.getOutputStream();
      String to = name.replace(":", "\\c"), connect = "CONNECT\naccept-version:1.2\nhost:x\n\n\0";
      out.write((connect + "SEND\ndestination:" + to + "\ndestination-type:ANYCAST\nreceipt:sent\n\norder\0").getBytes());
      out.flush();
      var seen = new StringBuilder();
      for (int each; seen.indexOf("receipt-id:sent") < 0 && (each = socket.getInputStream().read()) >= 0; ) {
        seen.append((char) each);
        if (seen.indexOf("ERROR") >= 0) throw new RuntimeException(seen.toString());
      }
    }
  }
}
JAVA
timeout 120 java -cp 'lib/*' Finding.java | tee out

diff - out <<'OUT'
version 2.55.0
ANYCAST, AMQP to queue queue: confirmed, 0 arrived, the address is [ANYCAST]
ANYCAST, AMQP to queue address::queue: confirmed, 1 arrived, the address is [ANYCAST]
ANYCAST, STOMP to queue queue: confirmed, 0 arrived, the address is [ANYCAST]
ANYCAST, STOMP to queue address::queue: confirmed, 1 arrived, the address is [ANYCAST]
MULTICAST, AMQP to queue address::queue: confirmed, 0 arrived, the address is [MULTICAST, ANYCAST]
MULTICAST, STOMP to queue address::queue: confirmed, 0 arrived, the address is [MULTICAST, ANYCAST]
OUT
echo "as stated"
