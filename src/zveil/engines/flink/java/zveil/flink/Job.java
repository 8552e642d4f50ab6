package zveil.flink;

import java.io.Reader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Properties;
import org.apache.flink.api.common.typeinfo.PrimitiveArrayTypeInfo;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.api.java.typeutils.TupleTypeInfo;
import org.apache.flink.api.java.typeutils.ValueTypeInfo;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.PipelineOptions;
import org.apache.flink.core.execution.CheckpointingMode;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/**
 * What `zveil flink` runs.
 *
 * <pre>
 * source ─→ reader ─→ (by value) ─→ gate ─→ sink
 * bytes     hashes                  z-anon  bytes
 * </pre>
 *
 * <p>Reader and source are one task: a partition is read in its order, and all of one value goes to one
 * gate in that order.
 */
public final class Job {
    static final TypeInformation<Tuple2<Integer, byte[]>> LINE =
            new TupleTypeInfo<>(Types.INT, PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO);
    private static final TypeInformation<Tuple2<byte[], byte[]>> LEAVING = new TupleTypeInfo<>(
            PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO,
            PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO);
    private static final TypeInformation<Tuple2<Long, Long>> KEY =
            new TupleTypeInfo<>(Types.LONG, Types.LONG);

    private Job() {}

    /** Takes the file that `zveil flink` has written. */
    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        try (Reader file = Files.newBufferedReader(Path.of(arguments[0]), StandardCharsets.UTF_8)) {
            properties.load(file);
        }
        Plan plan = new Plan(properties);
        Plan.Said said = new Plan.Said(properties, "");
        StreamExecutionEnvironment environment =
                StreamExecutionEnvironment.getExecutionEnvironment();
        environment.getConfig().enableObjectReuse();
        // Whatever would be written by reflection is a mistake here, and slow.
        environment.configure(new Configuration().set(PipelineOptions.GENERIC_TYPES, false));
        environment.setBufferTimeout(said.number("buffer_ms"));
        environment.enableCheckpointing(said.number("checkpoint_ms"), CheckpointingMode.EXACTLY_ONCE);

        Plan.Said from = said.below("source");
        Plan.Said to = said.below("sink");
        SingleOutputStreamOperator<Tuple2<Integer, byte[]>> lines =
                Ends.of(from.text("kind")).source(environment, plan, from).uid("source");
        boolean keyed = to.text("kind").equals("kafka") && to.text("key").equals("released");
        SingleOutputStreamOperator<Tuple2<byte[], byte[]>> leaving = lines
                .transform("read", new ValueTypeInfo<>(Observation.class),
                        new zveil.flink.Reader(plan, NameFilter.of(said),
                                from.text("kind").equals("kafka")))
                .setParallelism(lines.getParallelism())
                .uid("reader")
                .keyBy((KeySelector<Observation, Tuple2<Long, Long>>)
                        seen -> Tuple2.of(seen.high, seen.low), KEY)
                .process(new Gate(plan, keyed), LEAVING)
                .name("decide")
                .uid("gate");
        Ends.of(to.text("kind")).sink(leaving, plan, to);
        environment.execute(said.text("name"));
    }
}
