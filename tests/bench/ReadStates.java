import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicReference;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.ZooKeeper;

/**
 * Reads every partition's state from a ZooKeeper with its own client, and tells sums over them, once for each line that
 * comes in. Arguments: address, and how many reads are under way.
 */
public class ReadStates {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String TOPICS = "/brokers/topics";

    public static void main(String[] args) throws Exception {
        int many = Integer.parseInt(args[1]);
        ZooKeeper client = new ZooKeeper(args[0], 60_000, event -> { });
        java.io.BufferedReader lines = new java.io.BufferedReader(new java.io.InputStreamReader(System.in));
        while (lines.readLine() != null) System.out.println(sums(client, many));
        client.close();
    }

    private static String sums(ZooKeeper client, int many) throws Exception {
        List<String> topics = new ArrayList<>();
        for (String name : client.getChildren(TOPICS, false)) topics.add(TOPICS + "/" + name);
        List<String> states = new ArrayList<>();
        long[] found = new long[2];
        List<byte[]> assigned = windowed(client, topics, many);
        for (int i = 0; i < topics.size(); i++) {
            for (Map.Entry<String, JsonNode> entry : JSON.readTree(assigned.get(i)).get("partitions").properties()) {
                found[0]++;
                found[1] += Integer.parseInt(entry.getKey());
                for (JsonNode replica : entry.getValue()) found[1] += 5L * replica.asInt();
                states.add(topics.get(i) + "/partitions/" + entry.getKey() + "/state");
            }
        }
        for (byte[] data : windowed(client, states, many)) {
            JsonNode state = JSON.readTree(data);
            found[1] += state.get("leader").asInt() + 7L * state.get("leader_epoch").asInt();
            for (JsonNode replica : state.get("isr")) found[1] += 3L * replica.asInt();
        }
        return found[0] + " " + found[1];
    }

    /** As Kafka's ZooKeeperClient.handleRequests: a permit for each read under way. */
    private static List<byte[]> windowed(ZooKeeper client, List<String> paths, int many) throws Exception {
        byte[][] found = new byte[paths.size()][];
        Semaphore permits = new Semaphore(many);
        AtomicReference<KeeperException> failed = new AtomicReference<>();
        for (int i = 0; i < found.length; i++) {
            permits.acquire();
            client.getData(paths.get(i), false, (code, path, at, data, stat) -> {
                found[(Integer) at] = data;
                if (code != 0) failed.set(KeeperException.create(KeeperException.Code.get(code), path));
                permits.release();
            }, i);
        }
        permits.acquire(many);
        if (failed.get() != null) throw failed.get();
        return List.of(found);
    }
}
