package fuse_index.spark.java.statements;

import java.lang.invoke.MethodType;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.*;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.codehaus.commons.compiler.CompileException;
import org.codehaus.janino.SimpleCompiler;

/**
 * What stands in a parser's place and throws what the parser throws: of Scala, whose methods throw checked exceptions that they do not
 * declare. Java's own proxy wraps those. So this one is compiled: versions and other libraries add methods.
 */
public final class ParserProxy {
  private static final Map<Set<Class<?>>, Constructor<?>> COMPILED = new ConcurrentHashMap<Set<Class<?>>, Constructor<?>>();
  /** The class of this version of ours alone: another's may stand in the place of the same parser. */
  private static final String NAME = ParserProxy.class.getName().replace('.', '_');

  private ParserProxy() {}

  /** A proxy with all interfaces of a parser: whoever looks for one of another library, as Iceberg does, still finds it. */
  public static Object make(Object parser, InvocationHandler handler) {
    Set<Class<?>> interfaces = new LinkedHashSet<Class<?>>();
    interfaces.add(ParserInterface.class);
    for (Class<?> each = parser.getClass(); each != null; each = each.getSuperclass()) {
      for (Class<?> known : each.getInterfaces()) if (Modifier.isPublic(known.getModifiers())) interfaces.add(known);
    }
    interfaces.remove(Supplier.class); // of a proxy, which the next one has anyway
    Method[] methods = methods(interfaces);
    try {
      Constructor<?> known = (Constructor<?>) COMPILED.get(interfaces);
      if (known == null) COMPILED.put(interfaces, known = compile(interfaces, methods, parser.getClass().getClassLoader()));
      return known.newInstance(new Object[] {handler, methods});
    } catch (CompileException other) {
      throw new IllegalStateException(other);
    } catch (ReflectiveOperationException other) {
      throw new IllegalStateException(other);
    }
  }

  /** Who handles the calls of a proxy; null of any other parser. */
  public static Object handler(Object parser) {
    return parser.getClass().getName().equals(NAME) ? ((Supplier<?>) parser).get() : null;
  }

  /** What the parser gives, or throws. */
  public static Object call(Object parser, Method method, Object[] arguments) throws Throwable {
    try {
      return method.invoke(parser, arguments);
    } catch (InvocationTargetException failure) {
      throw failure.getCause();
    }
  }

  private static Method[] methods(Set<Class<?>> interfaces) {
    Map<String, Method> methods = new TreeMap<String, Method>();
    for (Class<?> each : interfaces) {
      for (Method method : each.getMethods()) {
        if (!Modifier.isStatic(method.getModifiers())) methods.put(method.getName() + Arrays.toString(method.getParameterTypes()), method);
      }
    }
    return (Method[]) methods.values().toArray(new Method[0]);
  }

  private static Constructor<?> compile(Set<Class<?>> interfaces, Method[] methods, ClassLoader loader)
      throws CompileException, ReflectiveOperationException {
    StringBuilder text = new StringBuilder("public class " + NAME + " implements java.util.function.Supplier");
    for (Class<?> each : interfaces) text.append(", ").append(each.getCanonicalName());
    text.append(" {\nprivate final java.lang.reflect.InvocationHandler handler;\nprivate final java.lang.reflect.Method[] methods;\n")
        .append("public " + NAME + "(java.lang.reflect.InvocationHandler handler, java.lang.reflect.Method[] methods) {\n")
        .append("this.handler = handler;\nthis.methods = methods;\n}\n")
        .append("public Object get() { return handler; }\n")
        .append("private Object call(int method, Object[] arguments) {\ntry { return handler.invoke(this, methods[method], arguments); }\n")
        .append("catch (Throwable raised) { org.apache.spark.unsafe.Platform.throwException(raised); return null; }\n}\n");
    for (int i = 0; i < methods.length; i++) text.append(source(methods[i], i));
    SimpleCompiler compiler = new SimpleCompiler();
    compiler.setParentClassLoader(loader);
    compiler.cook(text.append("}\n").toString());
    return compiler.getClassLoader().loadClass(NAME).getConstructors()[0];
  }

  private static String source(Method method, int number) {
    StringBuilder parameters = new StringBuilder();
    StringBuilder arguments = new StringBuilder();
    Class<?>[] types = method.getParameterTypes();
    for (int i = 0; i < types.length; i++) {
      parameters.append(i == 0 ? "" : ", ").append(types[i].getCanonicalName()).append(" a" + i);
      arguments.append(i == 0 ? "a" : ", a").append(i);
    }
    Class<?> type = method.getReturnType();
    String boxed = MethodType.methodType(type).wrap().returnType().getCanonicalName();
    return "public " + type.getCanonicalName() + " " + method.getName() + "(" + parameters + ") { "
        + (type == void.class ? "" : "return (" + boxed + ") ") + "call(" + number + ", new Object[] {" + arguments + "}); }\n";
  }
}
