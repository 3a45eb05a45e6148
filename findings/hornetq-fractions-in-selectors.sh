#!/usr/bin/env bash
# Believed: a selector compares a fraction with a whole number by their values (JMS 3.1 §3.8.1.1), as Artemis does, which
#   comes from HornetQ.
# So (HornetQ 2.4.7.Final): >= and BETWEEN cut the fraction of the property before they compare it with a whole number, and
#   < does not. A message with t = -0.25 matches t >= 0, and t < 0, and t BETWEEN 0 AND 1. With a point in the number
#   (t >= 0.0) it does not.
# Why it matters here: a selector that moves with its queues from HornetQ (JBoss EAP 6) to Artemis selects other messages,
#   and a text that is the same on both has a point in every number.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"

cat > pom.xml <<'XML'
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>finding</groupId><artifactId>finding</artifactId><version>1</version>
<dependencies>
<dependency><groupId>org.hornetq</groupId><artifactId>hornetq-server</artifactId><version>2.4.7.Final</version></dependency>
</dependencies></project>
XML
mvn -q -B dependency:copy-dependencies -DoutputDirectory=lib

cat > Finding.java <<'JAVA'
import org.hornetq.api.core.SimpleString;
import org.hornetq.core.filter.impl.FilterImpl;
import org.hornetq.core.server.impl.ServerMessageImpl;

public class Finding {
  public static void main(String[] args) throws Exception {
    var message = new ServerMessageImpl(1, 64);
    message.putDoubleProperty(new SimpleString("t"), -0.25);
    for (String selector : new String[] {"t >= 0", "t < 0", "t BETWEEN 0 AND 1", "t >= 0.0", "t BETWEEN 0.0 AND 1.0"})
      System.out.println(selector + ": " + FilterImpl.createFilter(selector).match(message));
    System.exit(0);
  }
}
JAVA
timeout 120 java -cp 'lib/*' Finding.java 2> log | tee out

diff - out <<'OUT'
t >= 0: true
t < 0: true
t BETWEEN 0 AND 1: true
t >= 0.0: false
t BETWEEN 0.0 AND 1.0: false
OUT
echo "as stated"
