import java.util.Map;
import org.apache.activemq.artemis.api.core.SimpleString;
import org.apache.activemq.artemis.selector.filter.Filterable;
import org.apache.activemq.artemis.selector.impl.SelectorParser;
import org.apache.activemq.artemis.utils.SelectorTranslator;

public final class Artemis implements Harness.Engine {
  public Harness.Condition parse(String selector) throws Exception {
    var parsed = SelectorParser.parse(SelectorTranslator.convertToActiveMQFilterString(selector));
    return properties -> parsed.matches(new Properties(properties));
  }

  record Properties(Map<String, Object> byName) implements Filterable {
    public Object getProperty(SimpleString name) {
      return switch (name.toString()) { // as FilterImpl of the broker has them
        case "AMQPriority" -> Harness.header(byName, "JMSPriority");
        case "AMQTimestamp" -> Harness.header(byName, "JMSTimestamp");
        case "AMQUserID" -> byName.get("JMSMessageID");
        case "AMQDurable" -> Harness.header(byName, "JMSDeliveryMode").equals("PERSISTENT") ? "DURABLE" : "NON_DURABLE";
        default -> byName.get(name.toString());
      };
    }

    public <T> T getBodyAs(Class<T> kind) {
      return null;
    }

    public Object getLocalConnectionId() {
      return null;
    }
  }
}
