import java.lang.reflect.Proxy;
import org.apache.qpid.server.filter.Filterable;
import org.apache.qpid.server.filter.JMSSelectorFilter;

public final class BrokerJ implements Harness.Engine {
  public Harness.Condition parse(String selector) throws Exception {
    var parsed = new JMSSelectorFilter(selector);
    return properties -> parsed.matches((Filterable) Proxy.newProxyInstance(
        BrokerJ.class.getClassLoader(), new Class<?>[] {Filterable.class},
        (proxy, method, given) -> switch (method.getName()) {
          case "getHeader" -> properties.get(given[0]);
          case "getPriority" -> ((Number) Harness.header(properties, "JMSPriority")).byteValue();
          case "getTimestamp" -> Harness.header(properties, "JMSTimestamp");
          case "isPersistent" -> Harness.header(properties, "JMSDeliveryMode").equals("PERSISTENT");
          case "getMessageId" -> properties.get("JMSMessageID");
          case "getCorrelationId" -> properties.get("JMSCorrelationID");
          case "getType" -> properties.get("JMSType");
          default -> null;
        }));
  }
}
