#!/usr/bin/env bash
# Believed: Camel's JMS component reads and sends all bodies of JMS, as its option mapJmsMessage says.
# So (camel-jms 4.22.0): an ObjectMessage is refused in both directions unless objectMessageEnabled is true: Camel does
#   not read one, and does not send an Integer.
# Why it matters here: a row with body_type object that is written to the queue of such a route stops it.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"

cat > pom.xml <<'XML'
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>finding</groupId><artifactId>finding</artifactId><version>1</version>
<dependencies>
<dependency><groupId>org.apache.camel</groupId><artifactId>camel-core-engine</artifactId><version>4.22.0</version></dependency>
<dependency><groupId>org.apache.camel</groupId><artifactId>camel-core-languages</artifactId><version>4.22.0</version></dependency>
<dependency><groupId>org.apache.camel</groupId><artifactId>camel-jms</artifactId><version>4.22.0</version></dependency>
<dependency><groupId>org.apache.artemis</groupId><artifactId>artemis-server</artifactId><version>2.55.0</version></dependency>
<dependency><groupId>org.apache.artemis</groupId><artifactId>artemis-amqp-protocol</artifactId><version>2.55.0</version></dependency>
<dependency><groupId>org.apache.qpid</groupId><artifactId>qpid-jms-client</artifactId><version>2.7.0</version></dependency>
<dependency><groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>2.0.17</version></dependency>
</dependencies></project>
XML
mvn -q -B dependency:copy-dependencies -DoutputDirectory=lib

cat > Finding.java <<'JAVA'
import jakarta.jms.Message;
import jakarta.jms.Session;
import org.apache.activemq.artemis.core.config.impl.ConfigurationImpl;
import org.apache.activemq.artemis.core.server.impl.ActiveMQServerImpl;
import org.apache.camel.component.jms.JmsComponent;
import org.apache.camel.impl.DefaultCamelContext;
import org.apache.qpid.jms.JmsConnectionFactory;

public class Finding {
  interface Make { Message of(Session session) throws Exception; }

  public static void main(String[] args) throws Exception {
    int amqp;
    try (var free = new java.net.ServerSocket(0)) { amqp = free.getLocalPort(); }
    var server = new ActiveMQServerImpl(new ConfigurationImpl().setPersistenceEnabled(false).setSecurityEnabled(false)
        .addAcceptorConfiguration("amqp", "tcp://127.0.0.1:" + amqp + "?protocols=AMQP"));
    server.start();
    var factory = new JmsConnectionFactory("amqp://127.0.0.1:" + amqp);
    for (boolean enabled : new boolean[] {false, true}) {
      var camel = new DefaultCamelContext();
      var jms = JmsComponent.jmsComponentAutoAcknowledge(factory);
      if (enabled) jms.getConfiguration().setObjectMessageEnabled(true);
      camel.addComponent("jms", jms);
      camel.start();
      System.out.println((enabled ? "enabled" : "default") + ":");
      read(factory, camel, "text", session -> session.createTextMessage("x"));
      read(factory, camel, "object", session -> session.createObjectMessage(1));
      try {
        camel.createProducerTemplate().sendBody("jms:queue:sent" + enabled, 1);
        System.out.println("  sent an Integer");
      } catch (Exception error) {
        System.out.println("  an Integer is not sent: " + name(error));
      }
      camel.stop();
    }
    System.exit(0);
  }

  static void read(JmsConnectionFactory factory, DefaultCamelContext camel, String kind, Make make) throws Exception {
    var queue = kind + System.nanoTime();
    try (var connection = factory.createConnection()) {
      var session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
      session.createProducer(session.createQueue(queue)).send(make.of(session));
    }
    try {
      System.out.println("  " + kind + " is read: "
          + camel.createConsumerTemplate().receive("jms:queue:" + queue, 5000).getIn().getBody());
    } catch (Exception error) {
      System.out.println("  " + kind + " is not read: " + name(error));
    }
  }

  static String name(Throwable error) {
    while (error.getCause() != null) error = error.getCause();
    return error.getClass().getSimpleName() + ": " + error.getMessage();
  }
}
JAVA
timeout 120 java -cp 'lib/*' Finding.java | tee out

diff - out <<'OUT'
default:
  text is read: x
  object is not read: IllegalStateException: JMS ObjectMessage is disabled by default for security reasons (receiving ObjectMessage). Set objectMessageEnabled=true on the JMS endpoint or component to enable it.
  an Integer is not sent: IllegalStateException: JMS ObjectMessage is disabled by default for security reasons (creating ObjectMessage). Set objectMessageEnabled=true on the JMS endpoint or component to enable it.
enabled:
  text is read: x
  object is read: 1
  sent an Integer
OUT
echo "as stated"
