import net.timewalker.ffmq4.common.message.TextMessageImpl;
import net.timewalker.ffmq4.common.message.selector.MessageSelectorParser;

public final class Ffmq implements Harness.Engine {
  public Harness.Condition parse(String selector) throws Exception {
    var parsed = new MessageSelectorParser(selector).parse();
    return properties -> {
      var message = new TextMessageImpl();
      for (var each : properties.entrySet()) message.setObjectProperty(each.getKey(), each.getValue());
      return Boolean.TRUE.equals(parsed.evaluateBoolean(message));
    };
  }
}
