package zveil.flink;

import java.util.Properties;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.KafkaSourceBuilder;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.connector.kafka.source.reader.deserializer.KafkaRecordDeserializationSchema;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.Collector;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;

/** Topics of Kafka. */
final class KafkaEnds implements Ends {
    /** As long as brokers allow by default: what a job that is down had not committed waits so long. */
    private static final String LONGEST_TRANSACTION_MS = "900000";
    private static final long NANOS = 1_000_000L;

    @Override
    public SingleOutputStreamOperator<Tuple2<Integer, byte[]>> source(
            StreamExecutionEnvironment environment, Plan plan, Plan.Said said) {
        Properties settings = settings(said, "consumer");
        settings.setProperty("isolation.level", "read_committed");
        KafkaSourceBuilder<Tuple2<Integer, byte[]>> builder =
                KafkaSource.<Tuple2<Integer, byte[]>>builder()
                        .setBootstrapServers(said.text("brokers"))
                        .setTopics(said.text("topic"))
                        .setGroupId(said.text("group"))
                        .setStartingOffsets(said.text("start").equals("latest")
                                ? OffsetsInitializer.latest() : OffsetsInitializer.earliest())
                        .setDeserializer(new Partitions())
                        .setProperties(settings);
        if (said.text("once").equals("true")) {
            builder.setBounded(OffsetsInitializer.latest());
        }
        return environment.fromSource(
                builder.build(), WatermarkStrategy.noWatermarks(), "topic", Job.LINE);
    }

    @Override
    public void sink(DataStream<Tuple2<byte[], byte[]>> leaving, Plan plan, Plan.Said said) {
        Properties settings = settings(said, "producer");
        settings.putIfAbsent("transaction.timeout.ms", LONGEST_TRANSACTION_MS);
        boolean once = said.text("delivery").equals("exactly-once");
        var builder = KafkaSink.<Tuple2<byte[], byte[]>>builder()
                .setBootstrapServers(said.text("brokers"))
                .setKafkaProducerConfig(settings)
                .setRecordSerializer(new Messages(said.text("topic"), plan.step))
                .setDeliveryGuarantee(
                        once ? DeliveryGuarantee.EXACTLY_ONCE : DeliveryGuarantee.AT_LEAST_ONCE);
        if (once) {
            builder.setTransactionalIdPrefix(said.text("group"));
        }
        leaving.sinkTo(builder.build()).name("to topic").uid("sink");
    }

    private static Properties settings(Plan.Said said, String role) {
        Properties found = new Properties();
        for (String each : said.list(role)) {
            int equals = each.indexOf('=');
            found.setProperty(each.substring(0, equals), each.substring(equals + 1));
        }
        return found;
    }

    /** Messages as records of their partition. */
    static final class Partitions
            implements KafkaRecordDeserializationSchema<Tuple2<Integer, byte[]>> {
        private static final long serialVersionUID = 1L;

        @Override
        public void deserialize(
                ConsumerRecord<byte[], byte[]> message, Collector<Tuple2<Integer, byte[]>> out) {
            if (message.value() != null) {
                out.collect(Tuple2.of(message.partition(), oneLine(message.value())));
            }
        }

        /** One line break at the end is no part of a record, and within one of JSON it is space. */
        private static byte[] oneLine(byte[] value) {
            int end = value.length;
            end -= end > 0 && value[end - 1] == '\n' ? 1 : 0;
            end -= end > 0 && value[end - 1] == '\r' ? 1 : 0;
            byte[] line = end == value.length ? value : java.util.Arrays.copyOf(value, end);
            for (int at = 0; at < end; at++) {
                if (line[at] == '\n') {
                    line[at] = '\r';
                }
            }
            return line;
        }

        @Override
        public TypeInformation<Tuple2<Integer, byte[]>> getProducedType() {
            return Job.LINE;
        }
    }

    /** Records that leave, as messages: without headers, and with the time at which they are sent. */
    static final class Messages
            implements KafkaRecordSerializationSchema<Tuple2<byte[], byte[]>> {
        private static final long serialVersionUID = 1L;
        private final String topic;
        private final long step;

        Messages(String topic, long step) {
            this.topic = topic;
            this.step = step;
        }

        @Override
        public ProducerRecord<byte[], byte[]> serialize(
                Tuple2<byte[], byte[]> leaving, KafkaSinkContext context, Long timestamp) {
            byte[] key = leaving.f0.length == 0
                    ? null : java.util.Arrays.copyOfRange(leaving.f0, 1, leaving.f0.length);
            long now = System.currentTimeMillis();
            // A policy that rounds times would be of little use if messages told them.
            long told = step > 0 ? now - Math.floorMod(now, step / NANOS) : now;
            return new ProducerRecord<>(topic, null, told, key, leaving.f1);
        }
    }
}
