#!/usr/bin/env bash
# Believed: a queue browser of ActiveMQ Classic shows at most 400 messages (maxBrowsePageSize), or, from a test with a
#   broker of its own, all messages.
# So (Classic 6.3.1): without any policy it shows all. As soon as any policy entry matches the queue, even one that sets
#   nothing, it shows 400 and ends as a browse ends that has shown all. The activemq.xml of the distribution has such
#   entries. -1, which the broker's schema allows, is no unlimited page: the first browse shows nothing.
# Why it matters here: a batch read browses. On nearly every broker in production a table of a queue would have 400 rows
#   and look complete, and on the brokers of tests it is complete.
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
import java.util.*;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.activemq.broker.BrokerService;
import org.apache.activemq.broker.region.policy.*;

public class Finding {
  public static void main(String[] args) throws Exception {
    System.out.println("version " + BrokerService.class.getPackage().getImplementationVersion());
    for (Integer page : new Integer[] {null, 400, -1, 2147483647}) {
      var broker = new BrokerService();
      broker.setPersistent(false);
      broker.setUseJmx(false);
      broker.setBrokerName("b" + page);
      if (page != null) {
        var entry = new PolicyEntry();
        entry.setQueue(">");
        if (page != 400) entry.setMaxBrowsePageSize(page);
        var map = new PolicyMap();
        map.setPolicyEntries(List.of(entry));
        broker.setDestinationPolicy(map);
      }
      broker.start();
      broker.waitUntilStarted();
      try (var connection = new ActiveMQConnectionFactory("vm://b" + page + "?create=false").createConnection()) {
        connection.start();
        var session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        var queue = session.createQueue("orders");
        var producer = session.createProducer(queue);
        for (int i = 0; i < 1000; i++) producer.send(session.createTextMessage("order " + i));
        int shown = 0;
        for (var each = session.createBrowser(queue).getEnumeration(); each.hasMoreElements(); each.nextElement()) shown++;
        System.out.println((page == null ? "no policy: " : page == 400 ? "an empty policy entry: " : "maxBrowsePageSize " + page + ": ") + shown + " of 1000");
      }
      broker.stop();
    }
    System.exit(0);
  }
}
JAVA
timeout 120 java -cp 'lib/*' Finding.java | tee out

diff - out <<'OUT'
version 6.3.1
no policy: 1000 of 1000
an empty policy entry: 400 of 1000
maxBrowsePageSize -1: 0 of 1000
maxBrowsePageSize 2147483647: 1000 of 1000
OUT
echo "as stated"
