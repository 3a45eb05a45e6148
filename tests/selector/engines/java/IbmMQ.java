import com.ibm.disthub2.impl.matching.FormattedMessage;
import com.ibm.disthub2.impl.matching.MatchingContext;
import com.ibm.disthub2.impl.matching.selector.BooleanValue;
import com.ibm.disthub2.impl.matching.selector.Evaluator;
import com.ibm.disthub2.impl.matching.selector.NumericValue;
import com.ibm.disthub2.impl.matching.selector.Selector;
import java.lang.reflect.Proxy;
import java.util.Map;

/** The evaluator in IBM MQ's Java client, not that of a queue manager. */
public final class IbmMQ implements Harness.Engine {
  public Harness.Condition parse(String selector) throws Exception {
    var kind = Class.forName("com.ibm.msg.client.wmq.compat.jms.internal.MQMessageSelector");
    var made = kind.getDeclaredConstructor();
    made.setAccessible(true);
    Object parsed = made.newInstance();
    var set = kind.getDeclaredMethod("setSelector", String.class);
    set.setAccessible(true);
    set.invoke(parsed, selector);
    var tree = kind.getDeclaredField("selectorTree");
    tree.setAccessible(true);
    var root = (Selector) tree.get(parsed);
    return properties -> {
      var context = new MatchingContext();
      context.setMessage((FormattedMessage) Proxy.newProxyInstance(
          IbmMQ.class.getClassLoader(), new Class<?>[] {FormattedMessage.class},
          (proxy, method, given) -> method.getName().equals("getFieldValue") ? field(properties, (String) given[0]) : ""));
      return Evaluator.eval(root, context, false) == BooleanValue.TRUE;
    };
  }

  static Object field(Map<String, Object> properties, String name) {
    Object value = properties.get(name.startsWith("JMS.") ? name.substring(4) : name);
    if (value instanceof Boolean truth) return BooleanValue.valueOf(truth);
    return value instanceof Number number ? new NumericValue(number) : value;
  }
}
