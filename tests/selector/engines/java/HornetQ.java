import java.util.Set;
import org.hornetq.api.core.SimpleString;
import org.hornetq.core.filter.impl.FilterImpl;
import org.hornetq.core.server.impl.ServerMessageImpl;

public final class HornetQ implements Harness.Engine {
  static final Set<String> PARTS = Set.of("JMSPriority", "JMSTimestamp", "JMSDeliveryMode");

  /** As the JMS client does it. The id of a message is a UUID there: here it stays a property. */
  static String translated(String selector) {
    return selector.replaceAll("\\bJMSPriority\\b", "HQPriority").replaceAll("\\bJMSTimestamp\\b", "HQTimestamp")
        .replaceAll("\\bJMSDeliveryMode\\b", "HQDurable").replaceAll("'(NON_)?PERSISTENT'", "'$1DURABLE'");
  }

  public Harness.Condition parse(String selector) throws Exception {
    var parsed = FilterImpl.createFilter(translated(selector));
    return properties -> {
      var message = new ServerMessageImpl(1, 256);
      for (var each : properties.entrySet())
        if (!PARTS.contains(each.getKey()))
          message.putObjectProperty(new SimpleString(each.getKey()), each.getValue());
      message.setPriority(((Number) Harness.header(properties, "JMSPriority")).byteValue());
      message.setTimestamp((Long) Harness.header(properties, "JMSTimestamp"));
      message.setDurable(Harness.header(properties, "JMSDeliveryMode").equals("PERSISTENT"));
      return parsed.match(message);
    };
  }
}
