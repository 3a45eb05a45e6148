#!/usr/bin/env bash
# Believed: arithmetic in a selector groups from the left (JMS 3.1 §3.8.1.1, as in SQL): 10 - 5 - 2 is 3.
# So (com.ibm.mq.allclient 9.4.2.0, the evaluator that IBM's JMS client has for subscriptions and in WebSphere): it groups
#   from the right: 10 - 5 - 2 is 7, and 8 / 2 * 2 is 2. -0.5 after an operator is a syntax error, and - 0.5 is not.
# Why it matters here: a selector made of a SQL condition means something else there, unless each pair is in parentheses.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"

cat > pom.xml <<'XML'
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>finding</groupId><artifactId>finding</artifactId><version>1</version>
<dependencies>
<dependency><groupId>com.ibm.mq</groupId><artifactId>com.ibm.mq.allclient</artifactId><version>9.4.2.0</version></dependency>
</dependencies></project>
XML
mvn -q -B dependency:copy-dependencies -DoutputDirectory=lib

cat > Finding.java <<'JAVA'
import com.ibm.disthub2.impl.matching.*;
import com.ibm.disthub2.impl.matching.selector.*;
import java.lang.reflect.*;

public class Finding {
  public static void main(String[] args) throws Exception {
    for (String selector : new String[] {"10 - 5 - 2 = 3", "10 - 5 - 2 = 7", "(10 - 5) - 2 = 3", "8 / 2 * 2 = 2", "t > -0.5", "t > - 0.5"})
      System.out.println(selector + ": " + selects(selector));
  }

  static String selects(String selector) throws Exception {
    var kind = Class.forName("com.ibm.msg.client.wmq.compat.jms.internal.MQMessageSelector");
    var made = kind.getDeclaredConstructor();
    made.setAccessible(true);
    var set = kind.getDeclaredMethod("setSelector", String.class);
    set.setAccessible(true);
    var tree = kind.getDeclaredField("selectorTree");
    tree.setAccessible(true);
    Object parsed = made.newInstance();
    try { set.invoke(parsed, selector); } catch (InvocationTargetException refused) { return "refused"; }
    var context = new MatchingContext();
    context.setMessage((FormattedMessage) Proxy.newProxyInstance(Finding.class.getClassLoader(),
        new Class<?>[] {FormattedMessage.class},
        (proxy, method, given) -> method.getName().equals("getFieldValue") ? new NumericValue(1.0) : ""));
    return Evaluator.eval((Selector) tree.get(parsed), context, false) == BooleanValue.TRUE ? "selects" : "does not select";
  }
}
JAVA
timeout 120 java -cp 'lib/*' Finding.java | tee out

diff - out <<'OUT'
10 - 5 - 2 = 3: does not select
10 - 5 - 2 = 7: selects
(10 - 5) - 2 = 3: selects
8 / 2 * 2 = 2: selects
t > -0.5: refused
t > - 0.5: selects
OUT
echo "as stated"
