package zveil.flink;

import java.io.IOException;
import org.apache.flink.core.memory.DataInputView;
import org.apache.flink.core.memory.DataOutputView;
import org.apache.flink.types.CopyableValue;

/**
 * The users of one value that were seen last, z at the most: all that a decision can depend on.
 *
 * <p>There are z users in the window if and only if the z-th newest last-seen time lies in it.
 * Whoever is not among the z newest can change that only by being seen again, which puts them there.
 * Users are keyed hashes.
 */
public final class Crowd implements CopyableValue<Crowd> {
    private static final long serialVersionUID = 1L;
    private static final int FEWEST = 2;

    /** The attribute that the value is of. */
    int attribute;

    /** The largest time that was seen of the value. */
    long clock;

    private int size;
    private long[] users = new long[FEWEST];
    /** When each was last seen, oldest first; those of one time in the order in which they came. */
    private long[] times = new long[FEWEST];

    public Crowd() {}

    Crowd(int attribute, long clock) {
        this.attribute = attribute;
        this.clock = clock;
    }

    /** Counts an observation, and says whether z users were seen within the window. */
    boolean observe(long time, long user, int z, long window) {
        if (time >= clock) {
            clock = time;
        } else if (time < Saturating.minus(clock, window)) {
            return false;
        }
        count(time, user, z);
        return size == z && times[0] >= Saturating.minus(clock, window);
    }

    private void count(long time, long user, int z) {
        int known = size - 1;
        while (known >= 0 && users[known] != user) {
            known--;
        }
        if (known >= 0 && times[known] > time) {
            return;
        }
        int place = size;
        while (place > 0 && times[place - 1] > time) {
            place--;
        }
        if (known >= 0) {
            // Those between move down into the place that is left.
            move(known + 1, known, place - 1 - known);
            put(place - 1, time, user);
        } else if (size == z) {
            if (place == 0) {
                return;
            }
            move(1, 0, place - 1);
            put(place - 1, time, user);
        } else {
            if (size == users.length) {
                int more = Math.min(z, 2 * size);
                users = java.util.Arrays.copyOf(users, more);
                times = java.util.Arrays.copyOf(times, more);
            }
            move(place, place + 1, size - place);
            put(place, time, user);
            size++;
        }
    }

    private void move(int from, int to, int count) {
        System.arraycopy(users, from, users, to, count);
        System.arraycopy(times, from, times, to, count);
    }

    private void put(int place, long time, long user) {
        users[place] = user;
        times[place] = time;
    }

    @Override
    public void write(DataOutputView out) throws IOException {
        out.writeInt(attribute);
        out.writeLong(clock);
        out.writeInt(size);
        for (int place = 0; place < size; place++) {
            out.writeLong(users[place]);
            out.writeLong(times[place]);
        }
    }

    @Override
    public void read(DataInputView in) throws IOException {
        attribute = in.readInt();
        clock = in.readLong();
        size = in.readInt();
        if (size > users.length) {
            users = new long[size];
            times = new long[size];
        }
        for (int place = 0; place < size; place++) {
            users[place] = in.readLong();
            times[place] = in.readLong();
        }
    }

    @Override
    public int getBinaryLength() {
        return -1;
    }

    @Override
    public void copyTo(Crowd target) {
        target.attribute = attribute;
        target.clock = clock;
        target.size = size;
        target.users = users.clone();
        target.times = times.clone();
    }

    @Override
    public Crowd copy() {
        Crowd copy = new Crowd();
        copyTo(copy);
        return copy;
    }

    @Override
    public void copy(DataInputView source, DataOutputView target) throws IOException {
        target.writeInt(source.readInt());
        target.writeLong(source.readLong());
        int count = source.readInt();
        target.writeInt(count);
        for (int place = 0; place < 2 * count; place++) {
            target.writeLong(source.readLong());
        }
    }
}
