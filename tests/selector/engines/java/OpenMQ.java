import com.sun.messaging.jmq.util.selector.Selector;
import java.util.HashMap;
import java.util.Hashtable;

public final class OpenMQ implements Harness.Engine {
  public Harness.Condition parse(String selector) throws Exception {
    var parsed = Selector.compile(selector);
    return properties -> parsed.match(new Hashtable<Object, Object>(properties), new HashMap<>());
  }
}
