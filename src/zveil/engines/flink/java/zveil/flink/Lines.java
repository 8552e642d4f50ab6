package zveil.flink;

import java.io.IOException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.file.src.FileSourceSplit;
import org.apache.flink.connector.file.src.assigners.FileSplitAssigner;
import org.apache.flink.connector.file.src.enumerate.FileEnumerator;
import org.apache.flink.connector.file.src.reader.StreamFormat;
import org.apache.flink.connector.file.src.util.CheckpointedPosition;
import org.apache.flink.core.fs.FSDataInputStream;
import org.apache.flink.core.fs.FileStatus;
import org.apache.flink.core.fs.Path;

/** The lines of files, one file behind the other: all of them are one partition, in one order. */
public final class Lines implements StreamFormat<Tuple2<Integer, byte[]>> {
    private static final long serialVersionUID = 1L;
    private static final byte[] MARK = {(byte) 0xEF, (byte) 0xBB, (byte) 0xBF};

    private final int maxLine;
    /** Files begin with a line that names columns. */
    private final boolean header;

    Lines(int maxLine, boolean header) {
        this.maxLine = maxLine;
        this.header = header;
    }

    @Override
    public Reader createReader(Configuration config, FSDataInputStream stream, long length, long end)
            throws IOException {
        Reader reader = new Reader(stream, 0, maxLine);
        if (header) {
            reader.read();
        }
        return reader;
    }

    @Override
    public Reader restoreReader(Configuration config, FSDataInputStream stream, long offset,
            long length, long end) throws IOException {
        stream.seek(offset);
        return new Reader(stream, offset, maxLine);
    }

    @Override
    public boolean isSplittable() {
        return false;
    }

    @Override
    public TypeInformation<Tuple2<Integer, byte[]>> getProducedType() {
        return Job.LINE;
    }

    /** Reads lines as bytes; of one that is too long as many as show that it is. */
    static final class Reader implements StreamFormat.Reader<Tuple2<Integer, byte[]>> {
        private final FSDataInputStream stream;
        private final int maxLine;
        private final byte[] buffer = new byte[1 << 16];
        private int start;
        private int end;
        /** Where in the file the buffer begins. */
        private long offset;

        Reader(FSDataInputStream stream, long offset, int maxLine) {
            this.stream = stream;
            this.offset = offset;
            this.maxLine = maxLine;
        }

        @Override
        public Tuple2<Integer, byte[]> read() throws IOException {
            byte[] line = null;
            while (true) {
                if (start == end && !fill()) {
                    return line == null ? null : Tuple2.of(0, trimmed(line));
                }
                int at = start;
                while (at < end && buffer[at] != '\n') {
                    at++;
                }
                boolean whole = at < end;
                line = joined(line, start, at);
                start = whole ? at + 1 : at;
                if (whole) {
                    return Tuple2.of(0, trimmed(line));
                }
            }
        }

        private boolean fill() throws IOException {
            offset += end;
            start = 0;
            end = 0;
            // Of the beginning as much as shows a mark there, and what follows.
            int least = offset == 0 ? MARK.length + 1 : 1;
            int more;
            do {
                more = stream.read(buffer, end, buffer.length - end);
                end += Math.max(more, 0);
            } while (more > 0 && end < least);
            if (offset == 0 && isMarked()) {
                start = MARK.length;
            }
            return end > start;
        }

        /** A byte order mark at the beginning of a file is no part of its first line. */
        private boolean isMarked() {
            return end >= MARK.length && Arrays.equals(buffer, 0, MARK.length, MARK, 0, MARK.length);
        }

        private byte[] joined(byte[] line, int from, int to) {
            if (line == null) {
                return Arrays.copyOfRange(buffer, from, Math.min(to, from + maxLine + 2));
            }
            int more = Math.min(to - from, Math.max(maxLine + 2 - line.length, 0));
            byte[] whole = Arrays.copyOf(line, line.length + more);
            System.arraycopy(buffer, from, whole, line.length, more);
            return whole;
        }

        private static byte[] trimmed(byte[] line) {
            boolean has = line.length > 0 && line[line.length - 1] == '\r';
            return has ? Arrays.copyOf(line, line.length - 1) : line;
        }

        @Override
        public CheckpointedPosition getCheckpointedPosition() {
            return new CheckpointedPosition(offset + start, 0);
        }

        @Override
        public void close() throws IOException {
            stream.close();
        }
    }

    /** Gives each file whole, numbered in the order in which they were named. */
    static final class Files implements FileEnumerator {
        @Override
        public Collection<FileSourceSplit> enumerateSplits(Path[] paths, int desired)
                throws IOException {
            List<FileSourceSplit> found = new ArrayList<>();
            for (Path path : paths) {
                FileStatus status = path.getFileSystem().getFileStatus(path);
                // An empty one cannot be read, and need not be.
                if (status.getLen() > 0) {
                    String name = String.format("%010d", found.size());
                    found.add(new FileSourceSplit(name, path, 0, status.getLen(),
                            status.getModificationTime(), status.getLen()));
                }
            }
            return found;
        }
    }

    /** Hands files out in their order; one that comes back after a failure is first again. */
    static final class InOrder implements FileSplitAssigner {
        private final ArrayDeque<FileSourceSplit> waiting = new ArrayDeque<>();

        InOrder(Collection<FileSourceSplit> splits) {
            addSplits(splits);
        }

        @Override
        public Optional<FileSourceSplit> getNext(String host) {
            return Optional.ofNullable(waiting.poll());
        }

        @Override
        public void addSplits(Collection<FileSourceSplit> splits) {
            List<FileSourceSplit> all = new ArrayList<>(waiting);
            all.addAll(splits);
            all.sort(Comparator.comparing(FileSourceSplit::splitId));
            waiting.clear();
            waiting.addAll(all);
        }

        @Override
        public Collection<FileSourceSplit> remainingSplits() {
            return new ArrayList<>(waiting);
        }
    }
}
