package fuse_index.spark.java.catalyst;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.*;
import java.util.concurrent.ConcurrentHashMap;

/**
 * What other libraries keep to themselves, and what of them no compiler of ours sees. Of Spark: the catalogues that a session has loaded,
 * the rules that come after those of an analyzer, those of adaptive execution, and the partitions of an RDD of files.
 */
public class Reflection {
  /** Members by class, and by name: to look for one copies all of a class, and plans of many files ask for the same ones for each. */
  private static final Map<Class<?>, Map<String, Object>> MEMBERS = new ConcurrentHashMap<Class<?>, Map<String, Object>>();

  /** What a method without parameters gives, public or not. Raises NoSuchMethodException where there is none. */
  public static Object call(Object object, String name) throws ReflectiveOperationException {
    Map<String, Object> members = members(object.getClass());
    Method method = (Method) members.get(name + "()");
    if (method == null) members.put(name + "()", method = method(object.getClass(), name, new Class<?>[0]));
    return method.invoke(object, new Object[0]);
  }

  /** What the first of these methods that there is gives: releases call one thing by several names. */
  public static Object callFirst(Object object, String[] names) throws ReflectiveOperationException {
    Map<String, Object> members = members(object.getClass());
    for (int i = 0; i < names.length - 1; i++) {
      if (members.containsKey("without " + names[i])) continue;
      try {
        return call(object, names[i]);
      } catch (NoSuchMethodException otherRelease) {
        members.put("without " + names[i], Boolean.TRUE);
      }
    }
    return call(object, names[names.length - 1]);
  }

  /** A method of a class, of one above it, or of an interface. */
  public static Method method(Class<?> type, String name, Class<?>[] parameters) throws NoSuchMethodException {
    Method found = find(type.getMethods(), name, parameters);
    for (Class<?> each = type; each != null && found == null; each = each.getSuperclass()) found = find(each.getDeclaredMethods(), name, parameters);
    if (found == null) throw new NoSuchMethodException(type.getName() + "." + name);
    found.setAccessible(true);
    return found;
  }

  private static Method find(Method[] methods, String name, Class<?>[] parameters) {
    for (Method method : methods) {
      if (method.getName().equals(name) && Arrays.equals(method.getParameterTypes(), parameters) && !method.isBridge()) return method;
    }
    return null;
  }

  /** What an object has in a field that its own class declares. */
  public static Object get(Object object, String name) throws ReflectiveOperationException { return field(object.getClass(), name).get(object); }

  /** Puts a value into a field that a class declares. */
  public static void set(Object object, Class<?> type, String name, Object value) throws ReflectiveOperationException { field(type, name).set(object, value); }

  private static Field field(Class<?> type, String name) throws ReflectiveOperationException {
    Map<String, Object> members = members(type);
    Field field = (Field) members.get(name);
    if (field != null) return field;
    field = type.getDeclaredField(name);
    field.setAccessible(true);
    members.put(name, field);
    return field;
  }

  private static Map<String, Object> members(Class<?> type) {
    Map<String, Object> members = (Map<String, Object>) MEMBERS.get(type);
    if (members == null) MEMBERS.put(type, members = new ConcurrentHashMap<String, Object>());
    return members;
  }
}
