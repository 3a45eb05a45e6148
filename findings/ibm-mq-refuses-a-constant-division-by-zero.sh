#!/usr/bin/env bash
# Believed: 100 / 0 is evaluated for a message, and is unknown or an exception there; a selector with it can be given.
# So (com.ibm.mq.allclient 9.4.2.0): the parser calculates what is constant, and refuses the selector with an
#   ArithmeticException. 100 / 0.0 is accepted, and is an infinity. Of a property, the exception comes with the message.
# Why it matters here: the constructor of a consumer fails with an exception that is no InvalidSelectorException.
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
    for (String selector : new String[] {"100 / 0 > 1 OR i = 1", "100 / 0.0 > 1", "100 / i > 1"})
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
    try { set.invoke(parsed, selector); } catch (InvocationTargetException refused) { return "refused with " + refused.getCause().getClass().getName(); }
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
100 / 0 > 1 OR i = 1: refused with java.lang.ArithmeticException
100 / 0.0 > 1: selects
100 / i > 1: selects
OUT
echo "as stated"
