import java.lang.instrument.Instrumentation;
import java.lang.reflect.Field;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;

/** Leaves the metrics of one channel to the controller without their sensor, as two channels that are remade at once do. */
public final class OrphanedMetrics {
    public static void agentmain(String words, Instrumentation unused) throws Exception {
        String[] parts = words.split("=", 2); // channel=file to write
        int orphans = 0;
        for (Thread thread : Thread.getAllStackTraces().keySet()) {
            if (!thread.getName().endsWith("-to-controller-" + parts[0] + "-channel-manager")) continue;
            Object sensors = field(field(field(thread, "networkClient"), "selector"), "sensors");
            Map<?, ?> metrics = (Map<?, ?>) field(field(sensors, "connectionClosed"), "metrics");
            int before = metrics.size();
            metrics.keySet().removeIf(name -> name.toString().contains("group=" + parts[0] + "-metrics"));
            orphans += before - metrics.size();
        }
        Files.writeString(Path.of(parts[1]), String.valueOf(orphans));
    }

    private static Object field(Object owner, String name) throws Exception {
        for (Class<?> type = owner.getClass(); type != null; type = type.getSuperclass()) {
            for (Field field : type.getDeclaredFields()) {
                if (field.getName().equals(name)) {
                    field.setAccessible(true);
                    return field.get(owner);
                }
            }
        }
        throw new NoSuchFieldException(owner.getClass() + "." + name);
    }
}
