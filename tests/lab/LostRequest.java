import java.lang.instrument.Instrumentation;
import java.lang.reflect.AccessibleObject;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Collections;
import java.util.Deque;
import java.util.IdentityHashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;

/** Leaves a broker as it is when its AlterPartition request was in flight as its channel was remade: it waits for ever. */
public final class LostRequest {
    private static final String MANAGER = "kafka.server.DefaultAlterPartitionManager";

    public static void agentmain(String words, Instrumentation tools) throws Exception {
        Module own = LostRequest.class.getModule();
        Map<String, Set<Module>> opens = Map.of("java.lang", Set.of(own));
        tools.redefineModule(Object.class.getModule(), Set.of(), Map.of(), opens, Set.of(), Map.of());
        Object manager = found(field(Class.forName("java.lang.ApplicationShutdownHooks"), null, "hooks"));
        boolean waits = manager != null;
        if (waits) ((AtomicBoolean) field(manager.getClass(), manager, "inflightRequest")).set(true);
        Files.writeString(Path.of(words.split("=", 2)[1]), waits ? "1" : "0");
    }

    /** The first object of that class that a shutdown hook leads to: Kafka's own hook holds the server. */
    private static Object found(Object hooks) throws Exception {
        Deque<Object> open = new ArrayDeque<>(((Map<?, ?>) hooks).keySet());
        Set<Object> known = Collections.newSetFromMap(new IdentityHashMap<>());
        while (!open.isEmpty()) {
            Object next = open.poll();
            if (!known.add(next)) continue;
            if (next.getClass().getName().equals(MANAGER)) return next;
            for (Class<?> type = next.getClass(); type != null; type = type.getSuperclass()) {
                for (Field field : type.getDeclaredFields()) {
                    if (field.getType().isPrimitive() || Modifier.isStatic(field.getModifiers())) continue;
                    if (!readable(field)) continue;
                    Object value = field.get(next);
                    if (value != null && followed(value.getClass().getName())) open.add(value);
                }
            }
        }
        return null;
    }

    private static boolean readable(AccessibleObject field) {
        try {
            field.setAccessible(true);
            return true;
        } catch (RuntimeException closed) {
            return false;
        }
    }

    private static boolean followed(String name) {
        return name.startsWith("kafka.") || name.startsWith("org.apache.kafka.") || name.startsWith("java.lang.Thread");
    }

    private static Object field(Class<?> type, Object owner, String name) throws Exception {
        Field field = type.getDeclaredField(name);
        field.setAccessible(true);
        return field.get(owner);
    }
}
