import org.objectweb.joram.shared.messages.Message;
import org.objectweb.joram.shared.selectors.Selector;

public final class Joram implements Harness.Engine {
  public Harness.Condition parse(String selector) throws Exception {
    Selector.checks(selector);
    return properties -> {
      var message = new Message();
      message.properties = new fr.dyade.aaa.common.stream.Properties();
      for (var each : properties.entrySet())
        if (!Harness.isHeader(each.getKey())) message.setProperty(each.getKey(), each.getValue());
      message.priority = ((Number) Harness.header(properties, "JMSPriority")).intValue();
      message.timestamp = (Long) Harness.header(properties, "JMSTimestamp");
      message.persistent = Harness.header(properties, "JMSDeliveryMode").equals("PERSISTENT");
      message.id = (String) properties.get("JMSMessageID");
      message.correlationId = (String) properties.get("JMSCorrelationID");
      message.jmsType = (String) properties.get("JMSType");
      return Selector.matches(message, selector);
    };
  }
}
