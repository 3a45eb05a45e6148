#!/usr/bin/env bash
# Believed: a STOMP client acknowledges any message that the broker has delivered to it.
# So (Classic 6.3.1, Qpid JMS 2.7.0): a message whose AMQP producer gave it a message-id cannot be acknowledged over STOMP.
#   The broker parses the id as one of its own; that fails (NumberFormatException), and it closes the connection without
#   an ERROR. The message stays. Without a message-id (setDisableMessageID) the broker gives its own, and all is well.
# Why it matters here: a reader that reconnects gets the message again and again, and the broker names no cause.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"

cat > pom.xml <<'XML'
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>finding</groupId><artifactId>finding</artifactId><version>1</version>
<dependencies>
<dependency><groupId>org.apache.activemq</groupId><artifactId>activemq-broker</artifactId><version>6.3.1</version></dependency>
<dependency><groupId>org.apache.activemq</groupId><artifactId>activemq-amqp</artifactId><version>6.3.1</version></dependency>
<dependency><groupId>org.apache.activemq</groupId><artifactId>activemq-stomp</artifactId><version>6.3.1</version></dependency>
<dependency><groupId>org.apache.qpid</groupId><artifactId>qpid-jms-client</artifactId><version>2.7.0</version></dependency>
<dependency><groupId>jakarta.jms</groupId><artifactId>jakarta.jms-api</artifactId><version>3.1.0</version></dependency>
<dependency><groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>2.0.17</version></dependency>
</dependencies></project>
XML
mvn -q -B dependency:copy-dependencies -DoutputDirectory=lib

cat > Finding.java <<'JAVA'
import jakarta.jms.*;
import java.io.*;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import org.apache.activemq.broker.BrokerService;
import org.apache.qpid.jms.JmsConnectionFactory;

public class Finding {
  static String receive(InputStream in) throws IOException {
    var frame = new ByteArrayOutputStream();
    for (int each; (each = in.read()) > 0; ) frame.write(each);
    String text = frame.toString(StandardCharsets.UTF_8).strip();
    return text.isEmpty() ? "the end of the connection" : text;
  }

  static void send(OutputStream out, String frame) throws IOException {
    out.write((frame + "\n\n\0").getBytes(StandardCharsets.UTF_8));
    out.flush();
  }

  public static void main(String[] args) throws Exception {
    System.out.println("version " + BrokerService.class.getPackage().getImplementationVersion());
    var broker = new BrokerService();
    broker.setPersistent(false);
    broker.setUseJmx(false);
    int amqp = broker.addConnector("amqp://127.0.0.1:0?transport.transformer=jms").getConnectUri().getPort();
    int stomp = broker.addConnector("stomp://127.0.0.1:0").getConnectUri().getPort();
    broker.start();
    broker.waitUntilStarted();
    for (String ids : new String[] {"DEFAULT", "UUID", "UUID_STRING", "PREFIXED_UUID_STRING", "none"}) {
      String policy = ids.equals("none") ? "" : "?jms.messageIDPolicy.messageIDType=" + ids;
      try (var connection = new JmsConnectionFactory("amqp://127.0.0.1:" + amqp + policy).createConnection()) {
        var session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        var producer = session.createProducer(session.createQueue(ids));
        producer.setDisableMessageID(ids.equals("none"));
        producer.send(session.createTextMessage("order"));
      }
      try (var socket = new Socket("127.0.0.1", stomp)) {
        socket.setSoTimeout(20_000);
        var in = socket.getInputStream();
        var out = socket.getOutputStream();
        send(out, "CONNECT\naccept-version:1.2\nhost:x");
        receive(in);
        send(out, "SUBSCRIBE\nid:1\nack:client-individual\ndestination:/queue/" + ids);
        String ack = receive(in).lines().filter(line -> line.startsWith("ack:")).findFirst().get().substring(4);
        send(out, "ACK\nid:" + ack + "\nreceipt:r");
        System.out.println(ids + ": " + receive(in).lines().findFirst().get());
      }
    }
    System.exit(0);
  }
}
JAVA
timeout 120 java -cp 'lib/*' Finding.java | tee out

diff - out <<'OUT'
version 6.3.1
DEFAULT: the end of the connection
UUID: the end of the connection
UUID_STRING: the end of the connection
PREFIXED_UUID_STRING: the end of the connection
none: RECEIPT
OUT
echo "as stated"
