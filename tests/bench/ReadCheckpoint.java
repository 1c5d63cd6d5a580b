import java.io.File;

import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.record.FileLogInputStream;
import org.apache.kafka.common.record.FileRecords;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.metadata.MetadataRecordSerde;

/** Reads a checkpoint with Kafka's own classes, each batch checked, and tells sums over what it holds. */
public class ReadCheckpoint {
    public static void main(String[] args) throws Exception {
        long topics = 0, partitions = 0, sum = 0;
        try (FileRecords records = FileRecords.open(new File(args[0]), false)) {
            for (FileLogInputStream.FileChannelRecordBatch batch : records.batches()) {
                batch.ensureValid();
                if (batch.isControlBatch()) continue;
                for (Record record : batch) {
                    ApiMessage message = MetadataRecordSerde.INSTANCE
                        .read(new ByteBufferAccessor(record.value()), record.valueSize()).message();
                    if (message instanceof TopicRecord) topics++;
                    if (!(message instanceof PartitionRecord)) continue;
                    PartitionRecord row = (PartitionRecord) message;
                    partitions++;
                    sum += row.partitionId() + row.leader() + row.leaderEpoch() + row.partitionEpoch();
                    for (int replica : row.replicas()) sum += replica;
                    for (int replica : row.isr()) sum += 3L * replica;
                }
            }
        }
        System.out.println(topics + " " + partitions + " " + sum);
    }
}
