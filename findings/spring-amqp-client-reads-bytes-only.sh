#!/usr/bin/env bash
# Believed: Spring's client for AMQP 1.0 receives what any AMQP 1.0 client sends, a text as a String.
# So (spring-amqp-client 4.1.2, ProtonJ2 1.1.0): it receives a data section (as bytes) and nothing else: a text, which
#   Qpid JMS, Artemis and others send as a value section, and a map raise an exception.
# Why it matters here: a consumer of that kind reads rows with a body in `bytes`, and none with a text.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"

cat > pom.xml <<'XML'
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>finding</groupId><artifactId>finding</artifactId><version>1</version>
<dependencies>
<dependency><groupId>org.apache.artemis</groupId><artifactId>artemis-server</artifactId><version>2.55.0</version></dependency>
<dependency><groupId>org.apache.artemis</groupId><artifactId>artemis-amqp-protocol</artifactId><version>2.55.0</version></dependency>
<dependency><groupId>org.springframework.amqp</groupId><artifactId>spring-amqp-client</artifactId><version>4.1.2</version></dependency>
<dependency><groupId>org.apache.qpid</groupId><artifactId>qpid-jms-client</artifactId><version>2.7.0</version></dependency>
<dependency><groupId>jakarta.jms</groupId><artifactId>jakarta.jms-api</artifactId><version>3.1.0</version></dependency>
<dependency><groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>2.0.17</version></dependency>
</dependencies></project>
XML
mvn -q -B dependency:copy-dependencies -DoutputDirectory=lib

cat > Finding.java <<'JAVA'
import jakarta.jms.*;
import java.util.concurrent.TimeUnit;
import org.apache.activemq.artemis.core.config.impl.ConfigurationImpl;
import org.apache.activemq.artemis.core.server.impl.ActiveMQServerImpl;
import org.apache.qpid.jms.JmsConnectionFactory;
import org.apache.qpid.protonj2.client.Client;
import org.springframework.amqp.client.*;

public class Finding {
  public static void main(String[] args) throws Exception {
    int port; try (var free = new java.net.ServerSocket(0)) { port = free.getLocalPort(); }
    var server = new ActiveMQServerImpl(new ConfigurationImpl().setPersistenceEnabled(false).setSecurityEnabled(false)
        .addAcceptorConfiguration("amqp", "tcp://127.0.0.1:" + port + "?protocols=AMQP"));
    server.start();
    try (var connection = new JmsConnectionFactory("amqp://127.0.0.1:" + port).createConnection()) {
      var session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
      var bytes = session.createBytesMessage();
      bytes.writeBytes("order".getBytes());
      var map = session.createMapMessage();
      map.setInt("id", 1);
      session.createProducer(session.createQueue("bytes")).send(bytes);
      session.createProducer(session.createQueue("text")).send(session.createTextMessage("order"));
      session.createProducer(session.createQueue("map")).send(map);
    }
    var factory = new SingleAmqpConnectionFactory(Client.create());
    factory.setHost("127.0.0.1");
    factory.setPort(port);
    var client = AmqpClient.builder(factory).build();
    for (String queue : new String[] {"bytes", "text", "map"}) {
      String found;
      try {
        found = new String(client.from(queue).receive().get(10, TimeUnit.SECONDS).getBody());
      } catch (Exception error) {
        Throwable cause = error;
        while (cause.getCause() != null && cause.getCause() != cause) cause = cause.getCause();
        found = cause.getClass().getSimpleName();
      }
      System.out.println(queue + ": " + found);
    }
    System.exit(0);
  }
}
JAVA
timeout 120 java -cp 'lib/*' Finding.java | tee out

diff - out <<'OUT'
bytes: order
text: IllegalStateException
map: IllegalStateException
OUT
echo "as stated"
