package zveil.flink;

import java.io.IOException;
import org.apache.flink.core.memory.DataInputView;
import org.apache.flink.core.memory.DataOutputView;
import org.apache.flink.types.Value;

/**
 * One value of a record, on its way to where its crowd is counted: hashes to decide by, and the record
 * as it leaves, but for the value. No user id is in it, unless ids leave as they are.
 */
public final class Observation implements Value {
    private static final long serialVersionUID = 1L;

    int attribute;
    /** Late, from the future, or without a user or value: it counts nowhere and is not released. */
    boolean veiled;
    long time;
    /** What crowds are split by: the keyed hash of the value, or of its coarsest label. */
    long high;
    long low;
    /** Of each level, finest first: its keyed hash in two halves, and that of the user in it. */
    long[] codes;
    /** Of each level, finest first, how it leaves; null where the value has no such label. */
    byte[][] labels;
    /** The record that leaves, before and behind the value. */
    byte[] before;
    byte[] behind;

    @Override
    public void write(DataOutputView out) throws IOException {
        out.writeByte(attribute);
        out.writeBoolean(veiled);
        out.writeLong(time);
        out.writeLong(high);
        out.writeLong(low);
        out.writeByte(labels.length);
        for (int level = 0; level < labels.length; level++) {
            put(labels[level], out);
            out.writeLong(codes[3 * level]);
            out.writeLong(codes[3 * level + 1]);
            out.writeLong(codes[3 * level + 2]);
        }
        put(before, out);
        put(behind, out);
    }

    @Override
    public void read(DataInputView in) throws IOException {
        attribute = in.readByte();
        veiled = in.readBoolean();
        time = in.readLong();
        high = in.readLong();
        low = in.readLong();
        int levels = in.readByte();
        labels = new byte[levels][];
        codes = new long[3 * levels];
        for (int level = 0; level < levels; level++) {
            labels[level] = take(in);
            codes[3 * level] = in.readLong();
            codes[3 * level + 1] = in.readLong();
            codes[3 * level + 2] = in.readLong();
        }
        before = take(in);
        behind = take(in);
    }

    private static void put(byte[] bytes, DataOutputView out) throws IOException {
        out.writeInt(bytes == null ? -1 : bytes.length);
        if (bytes != null) {
            out.write(bytes);
        }
    }

    private static byte[] take(DataInputView in) throws IOException {
        int length = in.readInt();
        if (length < 0) {
            return null;
        }
        byte[] bytes = new byte[length];
        in.readFully(bytes);
        return bytes;
    }
}
