import java.util.Map;
import org.apache.activemq.artemis.api.core.SimpleString;
import org.apache.activemq.artemis.selector.filter.Filterable;
import org.apache.activemq.artemis.selector.impl.SelectorParser;

public final class Artemis implements Harness.Engine {
  public Harness.Condition parse(String selector) throws Exception {
    var parsed = SelectorParser.parse(selector);
    return properties -> parsed.matches(new Properties(properties));
  }

  record Properties(Map<String, Object> byName) implements Filterable {
    public Object getProperty(SimpleString name) {
      return byName.get(name.toString());
    }

    public <T> T getBodyAs(Class<T> kind) {
      return null;
    }

    public Object getLocalConnectionId() {
      return null;
    }
  }
}
