#!/usr/bin/env bash
# Believed: a comparison with a property that the message lacks is unknown (JMS 3.1 §3.8.1.2), and so is its NOT.
# So (Qpid Broker-J 9.2.1): m = 1 is false, m <> 1 and NOT (m = 1) are true, and of two that are missing m = k is true. LIKE, IN
#   and BETWEEN are unknown, as specified.
# Why it matters here: a negation selects other messages than on Artemis and Classic. selector_for and portable() write
#   x IS NOT NULL before each.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"

cat > pom.xml <<'XML'
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>finding</groupId><artifactId>finding</artifactId><version>1</version>
<dependencies>
<dependency><groupId>org.apache.qpid</groupId><artifactId>qpid-broker-core</artifactId><version>9.2.1</version></dependency>
</dependencies></project>
XML
mvn -q -B dependency:copy-dependencies -DoutputDirectory=lib

cat > Finding.java <<'JAVA'
import java.lang.reflect.Proxy;
import org.apache.qpid.server.filter.Filterable;
import org.apache.qpid.server.filter.JMSSelectorFilter;

public class Finding {
  public static void main(String[] args) throws Exception {
    var message = (Filterable) Proxy.newProxyInstance(
        Finding.class.getClassLoader(), new Class<?>[] {Filterable.class}, (proxy, method, given) -> null);
    for (String selector : new String[] {
        "m = 1", "m <> 1", "NOT (m = 1)", "m = k", "m NOT IN ('a')", "m NOT LIKE 'a'", "m NOT BETWEEN 1 AND 2",
        "m IS NOT NULL AND NOT (m = 1)"})
      System.out.println(selector + ": " + new JMSSelectorFilter(selector).matches(message));
  }
}
JAVA
timeout 120 java -cp 'lib/*' Finding.java 2> log | tee out

diff - out <<'OUT'
m = 1: false
m <> 1: true
NOT (m = 1): true
m = k: true
m NOT IN ('a'): false
m NOT LIKE 'a': false
m NOT BETWEEN 1 AND 2: false
m IS NOT NULL AND NOT (m = 1): false
OUT
echo "as stated"
