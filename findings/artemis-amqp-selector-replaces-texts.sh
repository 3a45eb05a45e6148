#!/usr/bin/env bash
# Believed: a selector compares a property with the text that it names.
# So (Artemis 2.55.0): in the selector of an AMQP client the broker replaces 'PERSISTENT' by 'DURABLE' and 'NON_PERSISTENT'
#   by 'NON_DURABLE', which are meant for JMSDeliveryMode, whatever they are compared with. So s = 'PERSISTENT' selects
#   the messages whose property s is 'DURABLE', and not those where it is 'PERSISTENT'. Over STOMP the text is compared as written.
# Why it matters here: a selector that is right by JMS leaves messages in the queue, over one of the two protocols.
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
import org.apache.activemq.artemis.api.core.QueueConfiguration;
import org.apache.activemq.artemis.api.core.RoutingType;
import org.apache.activemq.artemis.core.config.impl.ConfigurationImpl;
import org.apache.activemq.artemis.core.server.impl.ActiveMQServerImpl;
import org.apache.qpid.jms.JmsConnectionFactory;

public class Finding {
  static final String[] TEXTS = {"PERSISTENT", "DURABLE", "NON_PERSISTENT", "NON_DURABLE"};
  static int port;

  public static void main(String[] args) throws Exception {
    try (var free = new java.net.ServerSocket(0)) { port = free.getLocalPort(); }
    var server = new ActiveMQServerImpl(new ConfigurationImpl().setPersistenceEnabled(false).setSecurityEnabled(false)
        .addAcceptorConfiguration("all", "tcp://127.0.0.1:" + port + "?protocols=AMQP,STOMP"));
    server.start();
    server.createQueue(QueueConfiguration.of("q").setRoutingType(RoutingType.ANYCAST));
    System.out.println("version " + server.getVersion().getFullVersion());
    try (var connection = new JmsConnectionFactory("amqp://127.0.0.1:" + port).createConnection()) {
      connection.start();
      var session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
      var producer = session.createProducer(session.createQueue("q"));
      for (var text : TEXTS) {
        var message = session.createTextMessage();
        message.setStringProperty("s", text);
        producer.send(message);
      }
      for (var text : TEXTS) {
        var browser = session.createBrowser(session.createQueue("q"), "s = '" + text + "'");
        var found = new StringBuilder();
        for (var each = browser.getEnumeration(); each.hasMoreElements(); )
          found.append(" " + ((TextMessage) each.nextElement()).getStringProperty("s"));
        browser.close();
        System.out.println("AMQP, s = '" + text + "' selects" + found);
      }
    }
    for (var text : TEXTS) System.out.println("STOMP, s = '" + text + "' selects " + overStomp(text));
    System.exit(0);
  }

  static String overStomp(String text) throws Exception {
    try (var socket = new Socket("127.0.0.1", port)) {
      var out = socket.getOutputStream();
      String head = "SUBSCRIBE\nid:1\nack:client-individual\ndestination:q\nselector:s = '" + text + "'\n\n\0";
      out.write(("CONNECT\naccept-version:1.2\nhost:x\n\n\0" + head).getBytes());
      out.flush();
      var seen = new StringBuilder();
      for (int each; !seen.toString().matches("(?s).*MESSAGE\n.*\0.*") && (each = socket.getInputStream().read()) >= 0; )
        seen.append((char) each);
      var found = java.util.regex.Pattern.compile("\ns:(\\w+)").matcher(seen);
      return found.find() ? found.group(1) : "none";
    }
  }
}
JAVA
timeout 120 java -cp 'lib/*' Finding.java | tee out

diff - out <<'OUT'
version 2.55.0
AMQP, s = 'PERSISTENT' selects DURABLE
AMQP, s = 'DURABLE' selects DURABLE
AMQP, s = 'NON_PERSISTENT' selects NON_DURABLE
AMQP, s = 'NON_DURABLE' selects NON_DURABLE
STOMP, s = 'PERSISTENT' selects PERSISTENT
STOMP, s = 'DURABLE' selects DURABLE
STOMP, s = 'NON_PERSISTENT' selects NON_PERSISTENT
STOMP, s = 'NON_DURABLE' selects NON_DURABLE
OUT
echo "as stated"
