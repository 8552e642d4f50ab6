package zveil.flink;

import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/** Where records come from, and where they go. */
interface Ends {
    /** Gives records with the number of the partition that each is of, in its order. */
    SingleOutputStreamOperator<Tuple2<Integer, byte[]>> source(
            StreamExecutionEnvironment environment, Plan plan, Plan.Said said);

    /** Takes the keys and records that leave. */
    void sink(DataStream<Tuple2<byte[], byte[]>> leaving, Plan plan, Plan.Said said);

    static Ends of(String name) throws ReflectiveOperationException {
        // By name: the classes of Kafka need not be there where none is read or written.
        String place = name.equals("kafka") ? "zveil.flink.KafkaEnds" : "zveil.flink.FileEnds";
        return (Ends) Class.forName(place).getDeclaredConstructor().newInstance();
    }
}
