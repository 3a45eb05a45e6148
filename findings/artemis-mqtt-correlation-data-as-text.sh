#!/usr/bin/env bash
# Believed: a property that a client sets does not decide whether a subscriber gets the message.
# So (Artemis 2.55.0): an MQTT 5 subscriber gets no message that has the property mqtt.correlation.data as a text. Its
#   producer is told nothing. Artemis itself sets this property, as bytes, of what an MQTT client publishes.
# Why it matters here: over STOMP every property is a text. A copy of an MQTT message with all its properties reached no
#   MQTT subscriber, so the sink leaves this one out.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"

cat > pom.xml <<'XML'
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>finding</groupId><artifactId>finding</artifactId><version>1</version>
<dependencies>
<dependency><groupId>org.apache.artemis</groupId><artifactId>artemis-server</artifactId><version>2.55.0</version></dependency>
<dependency><groupId>org.apache.artemis</groupId><artifactId>artemis-amqp-protocol</artifactId><version>2.55.0</version></dependency>
<dependency><groupId>org.apache.artemis</groupId><artifactId>artemis-mqtt-protocol</artifactId><version>2.55.0</version></dependency>
<dependency><groupId>org.eclipse.paho</groupId><artifactId>org.eclipse.paho.mqttv5.client</artifactId><version>1.2.5</version></dependency>
<dependency><groupId>org.apache.qpid</groupId><artifactId>qpid-jms-client</artifactId><version>2.7.0</version></dependency>
<dependency><groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>2.0.17</version></dependency>
</dependencies></project>
XML
mvn -q -B dependency:copy-dependencies -DoutputDirectory=lib

cat > Finding.java <<'JAVA'
import jakarta.jms.Session;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.activemq.artemis.core.config.impl.ConfigurationImpl;
import org.apache.activemq.artemis.core.server.impl.ActiveMQServerImpl;
import org.apache.qpid.jms.JmsConnectionFactory;
import org.eclipse.paho.mqttv5.client.IMqttMessageListener;
import org.eclipse.paho.mqttv5.client.MqttClient;
import org.eclipse.paho.mqttv5.client.persist.MemoryPersistence;
import org.eclipse.paho.mqttv5.common.MqttSubscription;

public class Finding {
  public static void main(String[] args) throws Exception {
    int mqtt = port(), amqp = port();
    var server = new ActiveMQServerImpl(new ConfigurationImpl().setPersistenceEnabled(false).setSecurityEnabled(false)
        .addAcceptorConfiguration("mqtt", "tcp://127.0.0.1:" + mqtt + "?protocols=MQTT")
        .addAcceptorConfiguration("amqp", "tcp://127.0.0.1:" + amqp + "?protocols=AMQP"));
    server.start();
    System.out.println("Artemis " + server.getVersion().getFullVersion());
    for (var property : new String[] {"none", "mqtt.content.type", "mqtt.correlation.data"}) {
      var topic = property.substring(property.lastIndexOf('.') + 1);  // a dot separates the levels of an address
      var received = new LinkedBlockingQueue<String>();
      var subscriber = new MqttClient("tcp://127.0.0.1:" + mqtt, property, new MemoryPersistence());
      subscriber.connect();
      IMqttMessageListener listener = (name, message) -> received.add(new String(message.getPayload()));
      subscriber.subscribe(new MqttSubscription[] {new MqttSubscription(topic, 1)}, new IMqttMessageListener[] {listener});
      var url = "amqp://127.0.0.1:" + amqp + "?jms.validatePropertyNames=false";
      try (var connection = new JmsConnectionFactory(url).createConnection()) {
        var session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        var message = session.createTextMessage("hello");
        message.setStringProperty(property, "Yw==");
        session.createProducer(session.createTopic(topic)).send(message);
      }
      System.out.println(property + ": " + received.poll(5, TimeUnit.SECONDS));
    }
    System.exit(0);
  }

  static int port() throws Exception { try (var free = new java.net.ServerSocket(0)) { return free.getLocalPort(); } }
}
JAVA
timeout 120 java -cp 'lib/*' Finding.java | tee out

diff - out <<'OUT'
Artemis 2.55.0
none: hello
mqtt.content.type: hello
mqtt.correlation.data: null
OUT
echo "as stated"
