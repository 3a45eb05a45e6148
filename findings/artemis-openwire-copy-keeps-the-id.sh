#!/usr/bin/env bash
# Believed: a JMS client that copies the properties of a received message to a new one sends a new message, with an id of
#   its own; the provider's properties are JMSX… and those of the broker that begin with _AMQ.
# So (Artemis 2.55.0, activemq-client 5.19.7 over OpenWire, read over AMQP with Qpid JMS 1.13.0): every message of an
#   OpenWire producer has properties __HDR_…, also with other protocols. Copied by name, they decide the headers that an
#   OpenWire consumer gets: two copies of one message both have the id of the original, so a consumer that audits
#   duplicates takes the second one for a redelivery.
# Why it matters here: a row has the properties of its message. Of two rows that a query makes of one message, a consumer
#   with a failover: address gets one, and the other goes to the dead-letter queue.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"

cat > pom.xml <<'XML'
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>finding</groupId><artifactId>finding</artifactId><version>1</version>
<dependencies>
<dependency><groupId>org.apache.artemis</groupId><artifactId>artemis-server</artifactId><version>2.55.0</version></dependency>
<dependency><groupId>org.apache.artemis</groupId><artifactId>artemis-amqp-protocol</artifactId><version>2.55.0</version></dependency>
<dependency><groupId>org.apache.artemis</groupId><artifactId>artemis-openwire-protocol</artifactId><version>2.55.0</version>
<exclusions><exclusion><groupId>org.apache.artemis</groupId><artifactId>artemis-jms-client</artifactId></exclusion></exclusions></dependency>
<dependency><groupId>org.apache.qpid</groupId><artifactId>qpid-jms-client</artifactId><version>1.13.0</version></dependency>
<dependency><groupId>javax.jms</groupId><artifactId>javax.jms-api</artifactId><version>2.0.1</version></dependency>
<dependency><groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>2.0.17</version></dependency>
</dependencies></project>
XML
mvn -q -B dependency:copy-dependencies -DoutputDirectory=lib

cat > Finding.java <<'JAVA'
import javax.jms.*;
import java.util.*;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.activemq.artemis.core.config.impl.ConfigurationImpl;
import org.apache.activemq.artemis.core.server.impl.ActiveMQServerImpl;
import org.apache.qpid.jms.JmsConnectionFactory;

public class Finding {
  public static void main(String[] args) throws Exception {
    int port; try (var free = new java.net.ServerSocket(0)) { port = free.getLocalPort(); }
    var config = new ConfigurationImpl().setPersistenceEnabled(false).setSecurityEnabled(false)
        .addAcceptorConfiguration("both", "tcp://127.0.0.1:" + port + "?protocols=AMQP,OPENWIRE");
    var server = new ActiveMQServerImpl(config);
    server.start();
    System.out.println("version " + server.getVersion().getFullVersion() + ", client "
        + ActiveMQConnectionFactory.class.getPackage().getImplementationVersion());
    var openwire = new ActiveMQConnectionFactory("tcp://127.0.0.1:" + port).createConnection();
    var amqp = new JmsConnectionFactory("amqp://127.0.0.1:" + port).createConnection();
    openwire.start();
    amqp.start();
    Session there = openwire.createSession(false, Session.AUTO_ACKNOWLEDGE), here = amqp.createSession(false, Session.AUTO_ACKNOWLEDGE);
    Message sent = there.createTextMessage("order");
    there.createProducer(there.createQueue("in")).send(sent);
    Message read = here.createConsumer(here.createQueue("in")).receive(5000);
    var names = new TreeSet<String>();
    for (Enumeration<?> each = read.getPropertyNames(); each.hasMoreElements(); ) names.add((String) each.nextElement());
    System.out.println("properties " + names);
    MessageProducer copies = here.createProducer(here.createQueue("out"));
    for (int i = 0; i < 2; i++) {
      Message copy = here.createTextMessage("order " + i);
      for (String name : names)
        if (!name.startsWith("JMS")) copy.setObjectProperty(name, read.getObjectProperty(name));
      copies.send(copy);
    }
    MessageConsumer consumer = there.createConsumer(there.createQueue("out"));
    for (int i = 0; i < 2; i++) {
      Message got = consumer.receive(5000);
      System.out.println(((TextMessage) got).getText() + " has the id of the original: " + got.getJMSMessageID().equals(sent.getJMSMessageID()));
    }
    System.exit(0);
  }
}
JAVA
timeout 120 java -cp 'lib/*' Finding.java | tee out

diff - out <<'OUT'
version 2.55.0, client 5.19.7
properties [JMSXDeliveryCount, __HDR_ARRIVAL, __HDR_BROKER_IN_TIME, __HDR_COMMAND_ID, __HDR_DROPPABLE, __HDR_MESSAGE_ID, __HDR_PRODUCER_ID]
order 0 has the id of the original: true
order 1 has the id of the original: true
OUT
echo "as stated"
