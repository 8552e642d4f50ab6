package zveil.flink;

import java.util.HashMap;
import java.util.Map;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.typeinfo.PrimitiveArrayTypeInfo;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.metrics.Counter;
import org.apache.flink.metrics.MetricGroup;
import org.apache.flink.runtime.state.StateInitializationContext;
import org.apache.flink.runtime.state.StateSnapshotContext;
import org.apache.flink.streaming.api.operators.AbstractStreamOperator;
import org.apache.flink.streaming.api.operators.OneInputStreamOperator;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.streaming.runtime.watermarkstatus.WatermarkStatus;

/**
 * Reads the records of a source's partitions, each in its order, and turns away what is late there.
 *
 * <p>A partition has a clock for each attribute, the largest time so far. It is kept with Flink's state,
 * so that what is late after a restart is what was late before. Clocks also become watermarks, by which
 * crowds are forgotten that can count no more; nothing is decided by them.
 */
public final class Reader extends AbstractStreamOperator<Observation>
        implements OneInputStreamOperator<Tuple2<Integer, byte[]>, Observation>, Reading.Admission {
    private static final long serialVersionUID = 1L;
    private static final long NANOS = 1_000_000L;
    private static final long EVERY_MS = 200;
    /** A partition from which nothing comes for so long does not hold up forgetting. */
    private static final long IDLE_NS = 60_000_000_000L;

    /** How far a partition is. */
    private static final class Partition {
        final long[] clocks;
        long seen;

        Partition(int attributes, long seen) {
            clocks = new long[attributes];
            java.util.Arrays.fill(clocks, Long.MIN_VALUE);
            this.seen = seen;
        }

        long latest() {
            long latest = Long.MIN_VALUE;
            for (long clock : clocks) {
                latest = Math.max(latest, clock);
            }
            return latest;
        }
    }

    private final Plan plan;
    private final NameFilter[] filters;
    /** Whether there are others: which of them are this task's shows only when they are heard of. */
    private final boolean several;
    private transient long opened;
    private transient Reading reading;
    private transient Map<Integer, Partition> partitions;
    private transient ListState<long[]> saved;
    private transient Partition current;
    private transient StreamRecord<Observation> leaving;
    private transient long watermark;
    private transient long horizon;
    private transient boolean active;
    private transient Counter late;
    private transient Counter future;
    private transient Counter invalid;
    private transient Counter filtered;
    private transient Map<String, Counter> bad;

    Reader(Plan plan, NameFilter[] filters, boolean several) {
        this.plan = plan;
        this.filters = filters;
        this.several = several;
    }

    @Override
    public void initializeState(StateInitializationContext context) throws Exception {
        super.initializeState(context);
        partitions = new HashMap<>();
        // Each task is given all clocks: any of them may get any partition.
        saved = context.getOperatorStateStore().getUnionListState(new ListStateDescriptor<>(
                "clocks", PrimitiveArrayTypeInfo.LONG_PRIMITIVE_ARRAY_TYPE_INFO));
        for (long[] row : saved.get()) {
            Partition partition = partitions.computeIfAbsent((int) row[0], this::fresh);
            int attribute = (int) row[1];
            if (attribute < partition.clocks.length) {
                partition.clocks[attribute] = Math.max(partition.clocks[attribute], row[2]);
            }
        }
    }

    @Override
    public void snapshotState(StateSnapshotContext context) throws Exception {
        super.snapshotState(context);
        saved.clear();
        for (Map.Entry<Integer, Partition> each : partitions.entrySet()) {
            long[] clocks = each.getValue().clocks;
            for (int attribute = 0; attribute < clocks.length; attribute++) {
                saved.add(new long[] {each.getKey(), attribute, clocks[attribute]});
            }
        }
    }

    private Partition fresh(int number) {
        return new Partition(plan.attributes.length, System.nanoTime());
    }

    @Override
    public void open() throws Exception {
        super.open();
        reading = new Reading(plan, filters);
        leaving = new StreamRecord<>(null);
        watermark = Long.MIN_VALUE;
        horizon = Long.MIN_VALUE;
        active = true;
        opened = System.nanoTime();
        MetricGroup group = getMetricGroup().addGroup("zveil");
        late = group.counter("late");
        future = group.counter("future");
        invalid = group.counter("invalid");
        filtered = group.counter("filtered");
        bad = new HashMap<>();
        again();
    }

    @Override
    public void processElement(StreamRecord<Tuple2<Integer, byte[]>> record) {
        byte[] line = record.getValue().f1;
        current = partitions.computeIfAbsent(record.getValue().f0, this::fresh);
        current.seen = Long.MAX_VALUE;
        if (line.length == 0) {
            return;
        }
        try {
            reading.read(line, this, this::leave);
        } catch (BadRecord problem) {
            String what = problem.getMessage();
            bad.computeIfAbsent(what,
                    name -> getMetricGroup().addGroup("zveil").addGroup("bad").counter(name)).inc();
        }
    }

    private void leave(Observation observation) {
        output.collect(leaving.replace(observation));
    }

    @Override
    public void leaveOut() {
        filtered.inc();
    }

    @Override
    public boolean admits(int attribute, long time, boolean complete) {
        if (!complete) {
            invalid.inc();
            return false;
        }
        if (plan.maxFuture >= 0 && time > horizon && isFuture(time)) {
            future.inc();
            return false;
        }
        long clock = current.clocks[attribute];
        if (clock != Long.MIN_VALUE && time < Saturating.minus(clock, plan.lateness)) {
            late.inc();
            return false;
        }
        current.clocks[attribute] = Math.max(clock, time);
        return true;
    }

    /** The wall clock is only read for times beyond what it allowed before. */
    private boolean isFuture(long time) {
        horizon = Saturating.plus(System.currentTimeMillis() * NANOS, plan.maxFuture);
        return time > horizon;
    }

    private void tick(long now) {
        long here = System.nanoTime();
        long least = Long.MAX_VALUE;
        for (Partition partition : partitions.values()) {
            // Marked by every record, so that none has to look at a clock.
            if (partition.seen == Long.MAX_VALUE) {
                partition.seen = here;
            }
            if (here - partition.seen < IDLE_NS) {
                least = Math.min(least, partition.latest());
            }
        }
        // A partition that has not been heard of yet may be far behind the others.
        if (several && here - opened < IDLE_NS) {
            again();
            return;
        }
        boolean wasActive = active;
        active = least != Long.MAX_VALUE;
        if (active != wasActive) {
            output.emitWatermarkStatus(active ? WatermarkStatus.ACTIVE : WatermarkStatus.IDLE);
        }
        long milliseconds = least == Long.MIN_VALUE ? Long.MIN_VALUE : Math.floorDiv(least, NANOS);
        if (active && milliseconds > watermark) {
            watermark = milliseconds;
            output.emitWatermark(new Watermark(watermark));
        }
        again();
    }

    private void again() {
        long next = getProcessingTimeService().getCurrentProcessingTime() + EVERY_MS;
        getProcessingTimeService().registerTimer(next, this::tick);
    }

    @Override
    public void processWatermark(Watermark mark) throws Exception {
        // A source says nothing about time but that it has ended.
        if (mark.equals(Watermark.MAX_WATERMARK)) {
            watermark = Long.MAX_VALUE;
            super.processWatermark(mark);
        }
    }

    @Override
    public void processWatermarkStatus(WatermarkStatus status) {}
}
