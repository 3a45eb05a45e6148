import org.hornetq.api.core.SimpleString;
import org.hornetq.core.filter.impl.FilterImpl;
import org.hornetq.core.server.impl.ServerMessageImpl;

public final class HornetQ implements Harness.Engine {
  public Harness.Condition parse(String selector) throws Exception {
    var parsed = FilterImpl.createFilter(selector);
    return properties -> {
      var message = new ServerMessageImpl(1, 256);
      for (var each : properties.entrySet()) message.putObjectProperty(new SimpleString(each.getKey()), each.getValue());
      return parsed.match(message);
    };
  }
}
