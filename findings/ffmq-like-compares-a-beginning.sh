#!/usr/bin/env bash
# Believed: LIKE compares the whole text (JMS 3.1 §3.8.1.1); a pattern without wildcards is an equality.
# So (FFMQ 4.0.14, a broker that tests embed): LIKE compares a beginning: 'blue' matches 'blu' and '_', and not 'lu'.
# Why it matters here: a test that embeds FFMQ passes with a selector that selects nothing in production. Equality is
#   written with =.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"

cat > pom.xml <<'XML'
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>finding</groupId><artifactId>finding</artifactId><version>1</version>
<dependencies>
<dependency><groupId>net.timewalker.ffmq</groupId><artifactId>ffmq4-core</artifactId><version>4.0.14</version></dependency>
<dependency><groupId>javax.jms</groupId><artifactId>javax.jms-api</artifactId><version>2.0.1</version></dependency>
</dependencies></project>
XML
mvn -q -B dependency:copy-dependencies -DoutputDirectory=lib

cat > Finding.java <<'JAVA'
import net.timewalker.ffmq4.common.message.TextMessageImpl;
import net.timewalker.ffmq4.common.message.selector.MessageSelectorParser;

public class Finding {
  public static void main(String[] args) throws Exception {
    var message = new TextMessageImpl();
    message.setStringProperty("color", "blue");
    for (String pattern : new String[] {"blue", "blu", "lu", "_", "%e", "b_"})
      System.out.println("LIKE '" + pattern + "': "
          + new MessageSelectorParser("color LIKE '" + pattern + "'").parse().evaluateBoolean(message));
  }
}
JAVA
timeout 120 java -cp 'lib/*' Finding.java 2> log | tee out

diff - out <<'OUT'
LIKE 'blue': true
LIKE 'blu': true
LIKE 'lu': false
LIKE '_': true
LIKE '%e': true
LIKE 'b_': true
OUT
echo "as stated"
