package zveil.flink;

import java.io.IOException;
import java.util.Arrays;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.serialization.BulkWriter;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.connector.file.sink.FileSink;
import org.apache.flink.connector.file.src.FileSource;
import org.apache.flink.core.fs.FSDataOutputStream;
import org.apache.flink.core.fs.Path;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.filesystem.OutputFileConfig;
import org.apache.flink.streaming.api.functions.sink.filesystem.bucketassigners.BasePathBucketAssigner;

/** Files: read once, in the order in which they are named; written to a folder, part by part. */
final class FileEnds implements Ends {
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
        // A file is closed with each checkpoint: what is in one that has its name is never taken back.
        FileSink<Tuple2<byte[], byte[]>> sink = FileSink
                .<Tuple2<byte[], byte[]>>forBulkFormat(new Path(said.text("folder")), Part::new)
                .withBucketAssigner(new BasePathBucketAssigner<>())
                .withOutputFileConfig(OutputFileConfig.builder()
                        .withPartPrefix("part").withPartSuffix("." + plan.format).build())
                .build();
        leaving.sinkTo(sink).name("to files").uid("sink");
    }

    /** Lines of a file, written by the buffer: the file system would be asked for each. */
    private static final class Part implements BulkWriter<Tuple2<byte[], byte[]>> {
        private static final int FULL = 1 << 16;

        private final FSDataOutputStream stream;
        private final Bytes buffer = new Bytes();

        Part(FSDataOutputStream stream) {
            this.stream = stream;
        }

        @Override
        public void addElement(Tuple2<byte[], byte[]> record) throws IOException {
            buffer.add(record.f1);
            buffer.add((byte) '\n');
            if (buffer.length >= FULL) {
                flush();
            }
        }

        @Override
        public void flush() throws IOException {
            stream.write(buffer.array, 0, buffer.length);
            buffer.clear();
        }

        @Override
        public void finish() throws IOException {
            flush();
        }
    }
}
