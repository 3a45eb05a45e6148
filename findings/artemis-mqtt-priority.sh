#!/usr/bin/env bash
# Believed: a message without a priority has priority 4 (JMS 3.1 §3.4.10, AMQP 1.0 §3.2.1), whichever protocol sent it.
# So: an MQTT publisher states none, and its message has priority 0 on Artemis 2.55.0. On ActiveMQ Classic 6.3.1 it is 4.
# Why it matters here: on a queue that MQTT and JMS producers share, the MQTT messages are behind all others, and a
#   selector JMSPriority >= 4 finds none of them.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"

cat > pom.xml <<'XML'
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>finding</groupId><artifactId>finding</artifactId><version>1</version>
<dependencies>
<dependency><groupId>org.apache.artemis</groupId><artifactId>artemis-server</artifactId><version>2.55.0</version></dependency>
<dependency><groupId>org.apache.artemis</groupId><artifactId>artemis-amqp-protocol</artifactId><version>2.55.0</version></dependency>
<dependency><groupId>org.apache.artemis</groupId><artifactId>artemis-mqtt-protocol</artifactId><version>2.55.0</version></dependency>
<dependency><groupId>org.apache.activemq</groupId><artifactId>activemq-broker</artifactId><version>6.3.1</version></dependency>
<dependency><groupId>org.apache.activemq</groupId><artifactId>activemq-mqtt</artifactId><version>6.3.1</version></dependency>
<dependency><groupId>org.apache.activemq</groupId><artifactId>activemq-client</artifactId><version>6.3.1</version></dependency>
<dependency><groupId>org.eclipse.paho</groupId><artifactId>org.eclipse.paho.client.mqttv3</artifactId><version>1.2.5</version></dependency>
<dependency><groupId>org.apache.qpid</groupId><artifactId>qpid-jms-client</artifactId><version>2.7.0</version></dependency>
<dependency><groupId>jakarta.jms</groupId><artifactId>jakarta.jms-api</artifactId><version>3.1.0</version></dependency>
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
import org.eclipse.paho.client.mqttv3.MqttClient;
import org.eclipse.paho.client.mqttv3.persist.MemoryPersistence;

public class Finding {
  public static void main(String[] args) throws Exception {
    int mqtt = port(), amqp = port();
    var server = new ActiveMQServerImpl(new ConfigurationImpl().setPersistenceEnabled(false).setSecurityEnabled(false)
        .addAcceptorConfiguration("mqtt", "tcp://127.0.0.1:" + mqtt + "?protocols=MQTT")
        .addAcceptorConfiguration("amqp", "tcp://127.0.0.1:" + amqp + "?protocols=AMQP"));
    server.start();
    System.out.println("Artemis " + server.getVersion().getFullVersion() + ": "
        + priority(new JmsConnectionFactory("amqp://127.0.0.1:" + amqp), mqtt));
    server.stop();
    int classicMqtt = port(), openwire = port();
    var classic = new BrokerService();
    classic.setPersistent(false);
    classic.setUseJmx(false);
    classic.addConnector("mqtt://127.0.0.1:" + classicMqtt);
    classic.addConnector("tcp://127.0.0.1:" + openwire);
    classic.start();
    classic.waitUntilStarted();
    System.out.println("Classic " + BrokerService.class.getPackage().getImplementationVersion() + ": "
        + priority(new ActiveMQConnectionFactory("tcp://127.0.0.1:" + openwire), classicMqtt));
    System.exit(0);
  }

  static int port() throws Exception { try (var free = new java.net.ServerSocket(0)) { return free.getLocalPort(); } }

  static int priority(ConnectionFactory jms, int mqtt) throws Exception {
    try (var connection = jms.createConnection()) {
      connection.start();
      var session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
      var consumer = session.createConsumer(session.createTopic("news"));
      var publisher = new MqttClient("tcp://127.0.0.1:" + mqtt, "publisher", new MemoryPersistence());
      publisher.connect();
      publisher.publish("news", "hello".getBytes(), 1, false);
      publisher.disconnect();
      return consumer.receive(5000).getJMSPriority();
    }
  }
}
JAVA
timeout 120 java -cp 'lib/*' Finding.java | tee out

diff - out <<'OUT'
Artemis 2.55.0: 0
Classic 6.3.1: 4
OUT
echo "as stated"
