#!/usr/bin/env bash
# Believed: the receipt of UNSUBSCRIBE is the end of a subscription: no MESSAGE of it follows.
# So (Artemis 2.55.0, STOMP 1.2): messages that were being delivered come after the receipt, with the id of the
#   subscription that has ended. They are on the queue again, and the next subscription gets them, too.
# Why it matters here: many queues share a connection. What comes for nobody must be dropped, and must not be counted
#   as a message of another subscription of this connection: it would be a row of the wrong queue, and come twice.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"

cat > pom.xml <<'XML'
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>finding</groupId><artifactId>finding</artifactId><version>1</version>
<dependencies>
<dependency><groupId>org.apache.artemis</groupId><artifactId>artemis-server</artifactId><version>2.55.0</version></dependency>
<dependency><groupId>org.apache.artemis</groupId><artifactId>artemis-stomp-protocol</artifactId><version>2.55.0</version></dependency>
<dependency><groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>2.0.17</version></dependency>
</dependencies></project>
XML
mvn -q -B dependency:copy-dependencies -DoutputDirectory=lib

cat > Finding.java <<'JAVA'
import java.io.*;
import java.net.Socket;
import org.apache.activemq.artemis.api.core.QueueConfiguration;
import org.apache.activemq.artemis.api.core.RoutingType;
import org.apache.activemq.artemis.core.config.impl.ConfigurationImpl;
import org.apache.activemq.artemis.core.server.impl.ActiveMQServerImpl;

public class Finding {
  static final int MESSAGES = 20_000;
  static final byte[] BODY = "x".repeat(500).getBytes();
  static InputStream in;
  static OutputStream out;

  public static void main(String[] args) throws Exception {
    int port; try (var free = new java.net.ServerSocket(0)) { port = free.getLocalPort(); }
    var config = new ConfigurationImpl().setPersistenceEnabled(false).setSecurityEnabled(false)
        .addAcceptorConfiguration("stomp", "tcp://127.0.0.1:" + port + "?protocols=STOMP");
    var server = new ActiveMQServerImpl(config);
    server.start();
    server.createQueue(QueueConfiguration.of("orders").setRoutingType(RoutingType.ANYCAST));
    System.out.println("version " + server.getVersion().getFullVersion());
    try (var socket = new Socket("127.0.0.1", port)) {
      in = new BufferedInputStream(socket.getInputStream(), 1 << 16);
      out = new BufferedOutputStream(socket.getOutputStream());
      send("CONNECT\naccept-version:1.2\nhost:x\nheart-beat:0,0\n\n");
      frame();
      for (int n = 0; n < MESSAGES; n++) {
        out.write(("SEND\ndestination:orders\ncontent-length:500\n" + (n == MESSAGES - 1 ? "receipt:sent\n" : "") + "\n").getBytes());
        out.write(BODY);
        out.write(0);
      }
      out.flush();
      while (!frame().startsWith("RECEIPT")) { }
      int late = 0;
      for (int round = 0; round < 300 && late == 0; round++) {
        send("SUBSCRIBE\nid:s" + round + "\ndestination:orders\nack:client-individual\nconsumer-window-size:8388608\n\n");
        Thread.sleep(2 * (round % 10));
        send("UNSUBSCRIBE\nid:s" + round + "\nreceipt:left" + round + "\n\n");
        while (!frame().contains("receipt-id:left" + round)) { }
        send("BEGIN\ntransaction:t" + round + "\nreceipt:after" + round + "\n\n"); // what came before its receipt was late
        for (String next = frame(); !next.contains("receipt-id:after" + round); next = frame()) {
          late += next.startsWith("MESSAGE") && next.contains("subscription:s" + round + "\n") ? 1 : 0;
        }
        send("ABORT\ntransaction:t" + round + "\n\n");
      }
      System.out.println("messages of the subscription after the receipt of its UNSUBSCRIBE: " + (late > 0));
    }
    long end = System.nanoTime() + 10_000_000_000L;
    while (server.locateQueue("orders").getDeliveringCount() > 0 && System.nanoTime() < end) Thread.sleep(10);
    System.out.println("all are on the queue: " + (server.locateQueue("orders").getMessageCount() == MESSAGES));
    server.stop();
    System.exit(0);
  }

  static void send(String frame) throws IOException {
    out.write(frame.getBytes());
    out.write(0);
    out.flush();
  }

  /** The next frame: no body has a NUL. */
  static String frame() throws IOException {
    var found = new ByteArrayOutputStream(800);
    for (int next = in.read(); next != 0; next = in.read()) {
      if (next < 0) throw new EOFException();
      if (next != '\n' || found.size() > 0) found.write(next);
    }
    return found.toString();
  }
}
JAVA
timeout 120 java -cp 'lib/*' Finding.java | tee out

diff - out <<'OUT'
version 2.55.0
messages of the subscription after the receipt of its UNSUBSCRIBE: true
all are on the queue: true
OUT
echo "as stated"
