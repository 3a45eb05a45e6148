#!/usr/bin/env bash
# Believed: in a LIKE pattern %% means what % means, any text (JMS 3.1 §3.8.1.1).
# So (Liberty 26.0.0.3): s LIKE '%%' selects the empty text and no other. IBM MQ's Java client (com.ibm.mq.allclient
#   9.4.2.0), whose evaluator is older, selects all texts but the empty one. LIKE '%' selects all on both.
# Why it matters here: a pattern made of a prefix, a text and a suffix, all of them empty, selects nothing there.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"

cat > pom.xml <<'XML'
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>finding</groupId><artifactId>finding</artifactId><version>1</version>
<dependencies>
<dependency><groupId>com.ibm.mq</groupId><artifactId>com.ibm.mq.allclient</artifactId><version>9.4.2.0</version></dependency>
</dependencies></project>
XML
mvn -q -B dependency:copy-dependencies -DoutputDirectory=mq
mvn -q -B dependency:copy -Dartifact=io.openliberty.features:wasJmsServer-1.0:26.0.0.3:esa -DoutputDirectory=liberty
mvn -q -B dependency:copy -Dartifact=io.openliberty:openliberty-kernel:26.0.0.3:zip -DoutputDirectory=liberty
(cd liberty; unzip -qjo ./*.esa '*com.ibm.ws.messaging.*.jar'; unzip -qjo ./*.zip '*/com.ibm.ws.logging_*.jar')

cat > InLiberty.java <<'JAVA'
import com.ibm.ws.sib.matchspace.*;
import com.ibm.ws.sib.matchspace.impl.Matching;
import com.ibm.ws.sib.matchspace.tools.Resolver;
import com.ibm.wsspi.sib.core.SelectorDomain;
import java.lang.reflect.Proxy;

public class InLiberty {
  public static void main(String[] args) throws Exception {
    var domain = SelectorDomain.JMS;
    var made = Class.forName("com.ibm.ws.sib.processor.matching.JSResolver").getDeclaredConstructor(SelectorDomain.class);
    made.setAccessible(true);
    for (String selector : new String[] {"s LIKE '%'", "s LIKE '%%'"})
      for (String text : new String[] {"", "order"}) {
        var matching = Matching.getInstance();
        var parsed = matching.primeMatchParser(null, selector, domain.toInt()).getSelector(selector);
        var resolved = Matching.getTransformer().resolve(
            parsed, (Resolver) made.newInstance(domain), matching.createPositionAssigner());
        var message = (MatchSpaceKey) Proxy.newProxyInstance(InLiberty.class.getClassLoader(),
            new Class<?>[] {MatchSpaceKey.class},
            (proxy, method, given) -> method.getName().equals("getIdentifierValue") ? text : null);
        System.out.println("Liberty, '" + text + "', " + selector + ": "
            + Matching.getEvaluator().eval(resolved, message, EvalCache.DUMMY, null, false));
      }
  }
}
JAVA
cat > InMq.java <<'JAVA'
import com.ibm.disthub2.impl.matching.*;
import com.ibm.disthub2.impl.matching.selector.*;
import java.lang.reflect.Proxy;

public class InMq {
  public static void main(String[] args) throws Exception {
    var kind = Class.forName("com.ibm.msg.client.wmq.compat.jms.internal.MQMessageSelector");
    var made = kind.getDeclaredConstructor();
    made.setAccessible(true);
    var set = kind.getDeclaredMethod("setSelector", String.class);
    set.setAccessible(true);
    var tree = kind.getDeclaredField("selectorTree");
    tree.setAccessible(true);
    for (String selector : new String[] {"s LIKE '%'", "s LIKE '%%'"})
      for (String text : new String[] {"", "order"}) {
        Object parsed = made.newInstance();
        set.invoke(parsed, selector);
        var context = new MatchingContext();
        context.setMessage((FormattedMessage) Proxy.newProxyInstance(InMq.class.getClassLoader(),
            new Class<?>[] {FormattedMessage.class},
            (proxy, method, given) -> method.getName().equals("getFieldValue") ? text : ""));
        System.out.println("IBM MQ, '" + text + "', " + selector + ": "
            + (Evaluator.eval((Selector) tree.get(parsed), context, false) == BooleanValue.TRUE));
      }
  }
}
JAVA
{ timeout 120 java -cp 'liberty/*' InLiberty.java; timeout 120 java -cp 'mq/*' InMq.java; } | tee out

diff - out <<'OUT'
Liberty, '', s LIKE '%': true
Liberty, 'order', s LIKE '%': true
Liberty, '', s LIKE '%%': true
Liberty, 'order', s LIKE '%%': false
IBM MQ, '', s LIKE '%': true
IBM MQ, 'order', s LIKE '%': true
IBM MQ, '', s LIKE '%%': false
IBM MQ, 'order', s LIKE '%%': true
OUT
echo "as stated"
