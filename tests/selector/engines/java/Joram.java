import org.objectweb.joram.shared.messages.Message;
import org.objectweb.joram.shared.selectors.Selector;

public final class Joram implements Harness.Engine {
  public Harness.Condition parse(String selector) throws Exception {
    Selector.checks(selector);
    return properties -> {
      var message = new Message();
      message.properties = new fr.dyade.aaa.common.stream.Properties();
      for (var each : properties.entrySet()) message.setProperty(each.getKey(), each.getValue());
      return Selector.matches(message, selector);
    };
  }
}
