import com.sun.messaging.jmq.util.selector.Selector;
import java.util.HashMap;
import java.util.Hashtable;
import java.util.List;
import java.util.Map;

public final class OpenMQ implements Harness.Engine {
  static final List<String> HEADERS =
      List.of("JMSPriority", "JMSTimestamp", "JMSDeliveryMode", "JMSMessageID", "JMSCorrelationID", "JMSType");

  public Harness.Condition parse(String selector) throws Exception {
    var parsed = Selector.compile(selector);
    return properties -> {
      Map<Object, Object> own = new Hashtable<>(properties), fields = new HashMap<>();
      own.keySet().removeIf(name -> Harness.isHeader((String) name));
      for (var name : HEADERS)
        if (Harness.header(properties, name) != null) fields.put(name, Harness.header(properties, name));
      return parsed.match(own, fields);
    };
  }
}
