package zveil.flink;

import java.time.Duration;
import java.util.Arrays;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.configuration.MemorySize;
import org.apache.flink.connector.file.sink.FileSink;
import org.apache.flink.connector.file.src.FileSource;
import org.apache.flink.core.fs.Path;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.filesystem.OutputFileConfig;
import org.apache.flink.streaming.api.functions.sink.filesystem.bucketassigners.BasePathBucketAssigner;
import org.apache.flink.streaming.api.functions.sink.filesystem.rollingpolicies.DefaultRollingPolicy;

/** Files: read once, in the order in which they are named; written to a folder, part by part. */
final class FileEnds implements Ends {
    private static final String LARGEST = "256mb";

    @Override
    public SingleOutputStreamOperator<Tuple2<Integer, byte[]>> source(
            StreamExecutionEnvironment environment, Plan plan, Plan.Said said) {
        Path[] paths = Arrays.stream(said.list("file")).map(Path::new).toArray(Path[]::new);
        Lines lines = new Lines(plan.maxLine, said.text("header").equals("true"));
        FileSource<Tuple2<Integer, byte[]>> source = FileSource.forRecordStreamFormat(lines, paths)
                .setFileEnumerator(Lines.Files::new)
                .setSplitAssigner(Lines.InOrder::new)
                .build();
        return environment.fromSource(source, WatermarkStrategy.noWatermarks(), "files", Job.LINE)
                .setParallelism(1);
    }

    @Override
    public void sink(DataStream<Tuple2<byte[], byte[]>> leaving, Plan plan, Plan.Said said) {
        FileSink<Tuple2<byte[], byte[]>> sink = FileSink
                .<Tuple2<byte[], byte[]>>forRowFormat(new Path(said.text("folder")), (record, stream) -> {
                    stream.write(record.f1);
                    stream.write('\n');
                })
                .withBucketAssigner(new BasePathBucketAssigner<>())
                .withRollingPolicy(DefaultRollingPolicy.builder()
                        .withMaxPartSize(MemorySize.parse(LARGEST))
                        .withRolloverInterval(Duration.ofMinutes(1))
                        .withInactivityInterval(Duration.ofMinutes(1))
                        .build())
                .withOutputFileConfig(OutputFileConfig.builder()
                        .withPartPrefix("part").withPartSuffix("." + plan.format).build())
                .build();
        leaving.sinkTo(sink).name("to files").uid("sink");
    }
}
