#!/usr/bin/env bash
# Believed: NOT of an unknown condition is unknown (JMS 3.1 §3.8.1.2), so two negations change nothing.
# So (JORAM 5.10.0): of a message without the property m, m = 1 does not select, NOT (m = 1) does not, and
#   NOT (NOT (m = 1)) does. An empty text counts as no value: o <> 'x' does not select it.
# Why it matters here: a translator that pushes negations down, or writes them twice, selects other messages there.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"

cat > pom.xml <<'XML'
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>finding</groupId><artifactId>finding</artifactId><version>1</version>
<dependencies>
<dependency><groupId>org.ow2.joram</groupId><artifactId>joram-shared</artifactId><version>5.10.0</version></dependency>
</dependencies></project>
XML
mvn -q -B dependency:copy-dependencies -DoutputDirectory=lib

cat > Finding.java <<'JAVA'
import org.objectweb.joram.shared.messages.Message;
import org.objectweb.joram.shared.selectors.Selector;

public class Finding {
  public static void main(String[] args) throws Exception {
    var message = new Message();
    message.properties = new fr.dyade.aaa.common.stream.Properties();
    message.setProperty("o", "");
    for (String selector : new String[] {"m = 1", "NOT (m = 1)", "NOT (NOT (m = 1))", "o <> 'x'", "o IS NOT NULL"})
      System.out.println(selector + ": " + Selector.matches(message, selector));
  }
}
JAVA
timeout 120 java -cp 'lib/*' Finding.java 2> log | tee out

diff - out <<'OUT'
m = 1: false
NOT (m = 1): false
NOT (NOT (m = 1)): true
o <> 'x': false
o IS NOT NULL: false
OUT
echo "as stated"
