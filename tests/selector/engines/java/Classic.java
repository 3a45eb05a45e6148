import org.apache.activemq.command.ActiveMQMessage;
import org.apache.activemq.command.MessageId;
import org.apache.activemq.filter.MessageEvaluationContext;
import org.apache.activemq.selector.SelectorParser;

public final class Classic implements Harness.Engine {
  public Harness.Condition parse(String selector) throws Exception {
    var parsed = SelectorParser.parse(selector);
    return properties -> {
      var message = new ActiveMQMessage();
      for (var each : properties.entrySet())
        if (!Harness.isHeader(each.getKey())) message.setObjectProperty(each.getKey(), each.getValue());
      message.setPriority(((Number) Harness.header(properties, "JMSPriority")).byteValue());
      message.setTimestamp((Long) Harness.header(properties, "JMSTimestamp"));
      message.setPersistent(Harness.header(properties, "JMSDeliveryMode").equals("PERSISTENT"));
      message.setCorrelationId((String) properties.get("JMSCorrelationID"));
      message.setType((String) properties.get("JMSType"));
      if (properties.get("JMSMessageID") instanceof String id) {
        message.setMessageId(new MessageId());
        message.getMessageId().setTextView(id);
      }
      var context = new MessageEvaluationContext();
      context.setMessageReference(message);
      return parsed.matches(context);
    };
  }
}
