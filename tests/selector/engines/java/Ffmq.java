import net.timewalker.ffmq4.common.message.TextMessageImpl;
import net.timewalker.ffmq4.common.message.selector.MessageSelectorParser;

public final class Ffmq implements Harness.Engine {
  public Harness.Condition parse(String selector) throws Exception {
    var parsed = new MessageSelectorParser(selector).parse();
    return properties -> {
      var message = new TextMessageImpl();
      for (var each : properties.entrySet())
        if (!Harness.isHeader(each.getKey())) message.setObjectProperty(each.getKey(), each.getValue());
      message.setJMSPriority(((Number) Harness.header(properties, "JMSPriority")).intValue());
      message.setJMSTimestamp((Long) Harness.header(properties, "JMSTimestamp"));
      message.setJMSDeliveryMode(Harness.header(properties, "JMSDeliveryMode").equals("PERSISTENT") ? 2 : 1);
      if (properties.get("JMSMessageID") instanceof String id) message.setJMSMessageID(id.substring(3)); // the getter adds ID:
      message.setJMSCorrelationID((String) properties.get("JMSCorrelationID"));
      message.setJMSType((String) properties.get("JMSType"));
      return Boolean.TRUE.equals(parsed.evaluateBoolean(message));
    };
  }
}
