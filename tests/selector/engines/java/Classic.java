import org.apache.activemq.command.ActiveMQMessage;
import org.apache.activemq.filter.MessageEvaluationContext;
import org.apache.activemq.selector.SelectorParser;

public final class Classic implements Harness.Engine {
  public Harness.Condition parse(String selector) throws Exception {
    var parsed = SelectorParser.parse(selector);
    return properties -> {
      var message = new ActiveMQMessage();
      for (var each : properties.entrySet()) message.setObjectProperty(each.getKey(), each.getValue());
      var context = new MessageEvaluationContext();
      context.setMessageReference(message);
      return parsed.matches(context);
    };
  }
}
