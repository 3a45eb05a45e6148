#!/usr/bin/env bash
# Believed: a stream message that Qpid JMS sends arrives as one at an OpenWire client, with all types of JMS.
# So (Artemis 2.55.0, ActiveMQ Classic 6.3.1, Qpid JMS 2.7.0): not if an element is a byte array. Artemis closes the
#   connection of an OpenWire consumer to which it delivers such a message. On Classic the consumer gets a bytes message,
#   which has the whole message as AMQP encodes it. A map with a byte array arrives on both.
# Why it matters here: a row with a stream that has bytes, written over AMQP, stops consumers of that kind.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"

cat > pom.xml <<'XML'
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>finding</groupId><artifactId>finding</artifactId><version>1</version>
<dependencies>
<dependency><groupId>org.apache.activemq</groupId><artifactId>activemq-broker</artifactId><version>6.3.1</version></dependency>
<dependency><groupId>org.apache.activemq</groupId><artifactId>activemq-amqp</artifactId><version>6.3.1</version></dependency>
<dependency><groupId>org.apache.artemis</groupId><artifactId>artemis-server</artifactId><version>2.55.0</version></dependency>
<dependency><groupId>org.apache.artemis</groupId><artifactId>artemis-amqp-protocol</artifactId><version>2.55.0</version></dependency>
<dependency><groupId>org.apache.artemis</groupId><artifactId>artemis-openwire-protocol</artifactId><version>2.55.0</version>
<exclusions><exclusion><groupId>org.apache.artemis</groupId><artifactId>artemis-jms-client</artifactId></exclusion></exclusions></dependency>
<dependency><groupId>javax.jms</groupId><artifactId>javax.jms-api</artifactId><version>2.0.1</version></dependency>
<dependency><groupId>jakarta.jms</groupId><artifactId>jakarta.jms-api</artifactId><version>3.1.0</version></dependency>
<dependency><groupId>org.apache.qpid</groupId><artifactId>qpid-jms-client</artifactId><version>2.7.0</version></dependency>
<dependency><groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>2.0.17</version></dependency>
</dependencies></project>
XML
mvn -q -B dependency:copy-dependencies -DoutputDirectory=lib

cat > Finding.java <<'JAVA'
import jakarta.jms.*;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.activemq.artemis.core.config.impl.ConfigurationImpl;
import org.apache.activemq.artemis.core.server.impl.ActiveMQServerImpl;
import org.apache.activemq.broker.BrokerService;
import org.apache.qpid.jms.JmsConnectionFactory;

public class Finding {
  static int free() throws Exception {
    try (var socket = new java.net.ServerSocket(0)) { return socket.getLocalPort(); }
  }

  public static void main(String[] args) throws Exception {
    int artemis = free(), amqp = free(), openwire = free();
    new ActiveMQServerImpl(new ConfigurationImpl().setPersistenceEnabled(false).setSecurityEnabled(false)
        .addAcceptorConfiguration("all", "tcp://127.0.0.1:" + artemis + "?protocols=AMQP,OPENWIRE")).start();
    var classic = new BrokerService();
    classic.setPersistent(false);
    classic.setUseJmx(false);
    classic.addConnector("amqp://127.0.0.1:" + amqp + "?transport.transformer=jms");
    classic.addConnector("tcp://127.0.0.1:" + openwire);
    classic.start();
    classic.waitUntilStarted();
    tried("Artemis", artemis, artemis);
    tried("Classic", amqp, openwire);
    System.exit(0);
  }

  interface Make { Message of(Session session) throws JMSException; }

  static void tried(String broker, int amqp, int openwire) throws Exception {
    sent(broker, "stream of an int", amqp, openwire, session -> stream(session, 5));
    sent(broker, "stream of bytes", amqp, openwire, session -> stream(session, new byte[] {0, 1}));
    sent(broker, "map of bytes", amqp, openwire, session -> {
      var map = session.createMapMessage();
      map.setBytes("b", new byte[] {0, 1});
      return map;
    });
  }

  static Message stream(Session session, Object element) throws JMSException {
    var stream = session.createStreamMessage();
    stream.writeObject(element);
    return stream;
  }

  static void sent(String broker, String name, int amqp, int openwire, Make make) throws Exception {
    var queue = name.replace(" ", ".");
    try (var connection = new JmsConnectionFactory("amqp://127.0.0.1:" + amqp).createConnection()) {
      var session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
      session.createProducer(session.createQueue(queue)).send(make.of(session));
    }
    String found;
    try (var connection = new ActiveMQConnectionFactory("tcp://127.0.0.1:" + openwire).createConnection()) {
      connection.start();
      var session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
      found = body(session.createConsumer(session.createQueue(queue)).receive(10000));
    } catch (JMSException error) {
      found = "the connection ends, " + error.getCause().getClass().getSimpleName();
    }
    System.out.println(broker + ", " + name + ": " + found);
  }

  static String body(Message message) throws JMSException {
    if (message instanceof BytesMessage) return "a bytes message";
    if (message instanceof MapMessage map) return "map, " + map.getBytes("b").length + " bytes";
    return "stream, " + ((StreamMessage) message).readObject();
  }
}
JAVA
timeout 120 java -cp 'lib/*' Finding.java | tee out

diff - out <<'OUT'
Artemis, stream of an int: stream, 5
Artemis, stream of bytes: the connection ends, EOFException
Artemis, map of bytes: map, 2 bytes
Classic, stream of an int: stream, 5
Classic, stream of bytes: a bytes message
Classic, map of bytes: map, 2 bytes
OUT
echo "as stated"
