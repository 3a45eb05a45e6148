import java.lang.reflect.Proxy;
import org.apache.qpid.server.filter.Filterable;
import org.apache.qpid.server.filter.JMSSelectorFilter;

public final class BrokerJ implements Harness.Engine {
  public Harness.Condition parse(String selector) throws Exception {
    var parsed = new JMSSelectorFilter(selector);
    return properties -> parsed.matches((Filterable) Proxy.newProxyInstance(
        BrokerJ.class.getClassLoader(), new Class<?>[] {Filterable.class},
        (proxy, method, given) -> method.getName().equals("getHeader") ? properties.get(given[0]) : null));
  }
}
