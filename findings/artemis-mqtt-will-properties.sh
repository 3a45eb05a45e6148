#!/usr/bin/env bash
# Believed: the will of an MQTT 5 client is published with all its properties (MQTT 5.0 §3.1.3.2).
# So (Artemis 2.55.0): a subscriber gets the user properties only. Content type, response topic, correlation data, payload
#   format and message expiry are lost. The same properties of a PUBLISH arrive.
# Why it matters here: a consumer that decodes by content type, or drops what has expired, fails for wills alone.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"

cat > pom.xml <<'XML'
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>finding</groupId><artifactId>finding</artifactId><version>1</version>
<dependencies>
<dependency><groupId>org.apache.artemis</groupId><artifactId>artemis-server</artifactId><version>2.55.0</version></dependency>
<dependency><groupId>org.apache.artemis</groupId><artifactId>artemis-mqtt-protocol</artifactId><version>2.55.0</version></dependency>
<dependency><groupId>org.eclipse.paho</groupId><artifactId>org.eclipse.paho.mqttv5.client</artifactId><version>1.2.5</version></dependency>
<dependency><groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>2.0.17</version></dependency>
</dependencies></project>
XML
mvn -q -B dependency:copy-dependencies -DoutputDirectory=lib

cat > Finding.java <<'JAVA'
import java.util.*;
import java.util.concurrent.*;
import org.apache.activemq.artemis.core.config.impl.ConfigurationImpl;
import org.apache.activemq.artemis.core.server.impl.ActiveMQServerImpl;
import org.eclipse.paho.mqttv5.client.*;
import org.eclipse.paho.mqttv5.client.persist.MemoryPersistence;
import org.eclipse.paho.mqttv5.common.*;
import org.eclipse.paho.mqttv5.common.packet.*;

public class Finding {
  static final BlockingQueue<MqttProperties> received = new LinkedBlockingQueue<>();
  static String url;

  public static void main(String[] args) throws Exception {
    int port; try (var free = new java.net.ServerSocket(0)) { port = free.getLocalPort(); }
    url = "tcp://127.0.0.1:" + port;
    var server = new ActiveMQServerImpl(new ConfigurationImpl().setPersistenceEnabled(false).setSecurityEnabled(false)
        .addAcceptorConfiguration("mqtt", url + "?protocols=MQTT"));
    server.start();
    System.out.println("version " + server.getVersion().getFullVersion());
    var subscriber = client("subscriber");
    subscriber.setCallback(new Receiver());
    subscriber.connect();
    subscriber.subscribe("news", 1);
    var publisher = client("publisher");
    publisher.connect();
    publisher.publish("news", message());
    System.out.println("PUBLISH: " + shown(received.poll(10, TimeUnit.SECONDS)));
    var options = new MqttConnectionOptions();
    options.setWill("news", message());
    options.setWillMessageProperties(properties());
    var dying = client("dying");
    dying.connect(options);
    dying.disconnectForcibly(0, 0, false);
    System.out.println("will: " + shown(received.poll(10, TimeUnit.SECONDS)));
    System.exit(0);
  }

  static MqttClient client(String id) throws Exception { return new MqttClient(url, id, new MemoryPersistence()); }

  static MqttMessage message() { return new MqttMessage("hello".getBytes(), 1, false, properties()); }

  static MqttProperties properties() {
    var given = new MqttProperties();
    given.setContentType("text/plain");
    given.setResponseTopic("answers");
    given.setCorrelationData("c".getBytes());
    given.setPayloadFormat(true);
    given.setMessageExpiryInterval(3600L);
    given.setUserProperties(List.of(new UserProperty("i", "5")));
    return given;
  }

  static String shown(MqttProperties got) {
    return "content type " + got.getContentType() + ", response topic " + got.getResponseTopic() + ", correlation data "
        + (got.getCorrelationData() != null) + ", payload format " + got.getPayloadFormat() + ", expiry "
        + (got.getMessageExpiryInterval() != null) + ", user properties " + got.getUserProperties().size();
  }

  static class Receiver implements MqttCallback {
    public void messageArrived(String topic, MqttMessage message) { received.add(message.getProperties()); }
    public void disconnected(MqttDisconnectResponse response) {}
    public void mqttErrorOccurred(MqttException error) {}
    public void deliveryComplete(IMqttToken token) {}
    public void connectComplete(boolean again, String server) {}
    public void authPacketArrived(int code, MqttProperties properties) {}
  }
}
JAVA
timeout 120 java -cp 'lib/*' Finding.java | tee out

diff - out <<'OUT'
version 2.55.0
PUBLISH: content type text/plain, response topic answers, correlation data true, payload format true, expiry true, user properties 1
will: content type null, response topic null, correlation data false, payload format false, expiry false, user properties 1
OUT
echo "as stated"
