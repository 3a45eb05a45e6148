#!/usr/bin/env bash
# Believed: a browser with a selector shows all messages of the queue that match, and the same again if it is repeated.
# So (Classic 6.3.1): a browse loads the next 200 messages of the queue (maxPageSize), and ends as one that has shown all
#   if none of them matches. The next browse goes on behind them: the only match among 900 messages is shown by the fifth
#   of five equal browses. A browse without a selector loads the messages, and one with a selector then shows the match.
# Why it matters here: a batch read with a selector is empty, and looks complete.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"

cat > pom.xml <<'XML'
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>finding</groupId><artifactId>finding</artifactId><version>1</version>
<dependencies>
<dependency><groupId>org.apache.activemq</groupId><artifactId>activemq-broker</artifactId><version>6.3.1</version></dependency>
<dependency><groupId>org.apache.activemq</groupId><artifactId>activemq-client</artifactId><version>6.3.1</version></dependency>
<dependency><groupId>jakarta.jms</groupId><artifactId>jakarta.jms-api</artifactId><version>3.1.0</version></dependency>
<dependency><groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>2.0.17</version></dependency>
</dependencies></project>
XML
mvn -q -B dependency:copy-dependencies -DoutputDirectory=lib

cat > Finding.java <<'JAVA'
import jakarta.jms.*;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.activemq.broker.BrokerService;

public class Finding {
  public static void main(String[] args) throws Exception {
    System.out.println("version " + BrokerService.class.getPackage().getImplementationVersion());
    var broker = new BrokerService();
    broker.setPersistent(false);
    broker.setUseJmx(false);
    broker.setBrokerName("b");
    broker.start();
    broker.waitUntilStarted();
    try (var connection = new ActiveMQConnectionFactory("vm://b?create=false").createConnection()) {
      connection.start();
      var session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
      for (var selectors : new String[][] {{"n = 850", "n = 850", "n = 850", "n = 850", "n = 850"}, {null, "n = 850"}}) {
        var queue = session.createQueue("orders" + selectors.length);
        var producer = session.createProducer(queue);
        for (int i = 0; i < 900; i++) {
          var message = session.createTextMessage();
          message.setIntProperty("n", i);
          producer.send(message);
        }
        for (var selector : selectors) {
          int shown = 0;
          var browser = session.createBrowser(queue, selector);
          for (var each = browser.getEnumeration(); each.hasMoreElements(); each.nextElement()) shown++;
          browser.close();
          System.out.println((selector == null ? "no selector" : selector) + ": " + shown);
        }
      }
    }
    System.exit(0);
  }
}
JAVA
timeout 120 java -cp 'lib/*' Finding.java | tee out

diff - out <<'OUT'
version 6.3.1
n = 850: 0
n = 850: 0
n = 850: 0
n = 850: 0
n = 850: 1
no selector: 900
n = 850: 1
OUT
echo "as stated"
