package org.apache.kafka.server;

import java.io.DataOutputStream;
import java.io.File;
import java.io.FileOutputStream;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.AssignReplicasToDirsRequestData;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.server.common.TopicIdPartition;

/**
 * Groups and encodes assignments as a broker does, with AssignmentsManager's own builder; in its package, for the
 * builder is no public one. Reads rows of 40 bytes (broker, directory, topic, partition), writes the requests' bodies,
 * each behind its length, and tells the seconds of the last of some rounds: of the CPU, and by the clock.
 */
public class AssignReplicas {
    private static final int ROW = 40, MOST = 2250, ROUNDS = 4, FIRST_EPOCH = 4711;

    public static void main(String[] args) throws Exception {
        Map<Integer, List<Assignment>> brokers = assignments(new File(args[0]));
        com.sun.management.OperatingSystemMXBean system =
            (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        List<ByteBuffer> bodies = new ArrayList<>();
        long spent = 0, taken = 0;
        for (int round = 0; round < ROUNDS; round++) {
            bodies = new ArrayList<>();
            System.gc();
            long cpu = system.getProcessCpuTime(), clock = System.nanoTime();
            for (Map.Entry<Integer, List<Assignment>> broker : brokers.entrySet())
                encode(broker.getKey(), broker.getValue(), bodies);
            taken = System.nanoTime() - clock;
            spent = system.getProcessCpuTime() - cpu;
        }
        try (DataOutputStream out = new DataOutputStream(new FileOutputStream(args[1]))) {
            for (ByteBuffer body : bodies) {
                out.writeInt(body.remaining());
                out.write(body.array(), body.arrayOffset() + body.position(), body.remaining());
            }
        }
        System.out.println(spent / 1e9 + " " + taken / 1e9);
    }

    private static void encode(int broker, List<Assignment> all, List<ByteBuffer> bodies) {
        for (int start = 0; start < all.size(); start += MOST) {
            Map<TopicIdPartition, Assignment> some = new LinkedHashMap<>();
            for (Assignment one : all.subList(start, Math.min(start + MOST, all.size())))
                some.put(one.topicIdPartition(), one);
            AssignReplicasToDirsRequestData data =
                AssignmentsManager.buildRequestData(broker, FIRST_EPOCH + broker, some);
            bodies.add(MessageUtil.toByteBuffer(data, (short) 0));
        }
    }

    private static Map<Integer, List<Assignment>> assignments(File rows) throws Exception {
        Map<Integer, List<Assignment>> brokers = new TreeMap<>();
        Map<Uuid, Uuid> known = new HashMap<>();
        ByteBuffer raw = ByteBuffer.wrap(Files.readAllBytes(rows.toPath()));
        for (int at = 0; at < raw.limit(); at += ROW) {
            Uuid directory = id(raw, at + 4, known), topic = id(raw, at + 20, known);
            TopicIdPartition partition = new TopicIdPartition(topic, raw.getInt(at + 36));
            brokers.computeIfAbsent(raw.getInt(at), broker -> new ArrayList<>())
                .add(new Assignment(partition, directory, 0, () -> { }));
        }
        return brokers;
    }

    private static Uuid id(ByteBuffer raw, int at, Map<Uuid, Uuid> known) {
        Uuid found = new Uuid(raw.getLong(at), raw.getLong(at + 8));
        Uuid before = known.putIfAbsent(found, found);
        return before == null ? found : before;
    }
}
