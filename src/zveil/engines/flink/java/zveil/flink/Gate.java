package zveil.flink;

import java.util.Iterator;
import java.util.Map;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.MapState;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.api.java.typeutils.ValueTypeInfo;
import org.apache.flink.metrics.Counter;
import org.apache.flink.metrics.MetricGroup;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;

/**
 * Decides the observations of one value, or of all that share a coarsest label, in their order.
 *
 * <p>An observation leaves if z users were seen at its value within the window, it among them; else it is
 * tried at the next coarser label, which counts those who came that far. What is kept is Flink's state:
 * the z users of each label that were seen last, as hashes. It is forgotten once no observation can come
 * that it would count for.
 */
public final class Gate
        extends KeyedProcessFunction<Tuple2<Long, Long>, Observation, Tuple2<byte[], byte[]>> {
    private static final long serialVersionUID = 1L;
    private static final long NANOS = 1_000_000L;
    private static final byte[] NO_KEY = new byte[0];
    private static final int VEILED = -1;

    private final Plan plan;
    /** The value that is released becomes the key of its message. */
    private final boolean keyed;
    private transient Notation notation;
    private transient ValueState<Crowd> alone;
    private transient MapState<Tuple2<Long, Long>, Crowd> levels;
    private transient Counter released;
    private transient Counter veiled;

    Gate(Plan plan, boolean keyed) {
        this.plan = plan;
        this.keyed = keyed;
    }

    @Override
    public void open(OpenContext context) {
        notation = Notation.of(plan);
        ValueTypeInfo<Crowd> crowd = new ValueTypeInfo<>(Crowd.class);
        alone = getRuntimeContext().getState(new ValueStateDescriptor<>("crowd", crowd));
        levels = getRuntimeContext().getMapState(
                new MapStateDescriptor<>("levels", Types.TUPLE(Types.LONG, Types.LONG), crowd));
        MetricGroup group = getRuntimeContext().getMetricGroup().addGroup("zveil");
        released = group.counter("released");
        veiled = group.counter("veiled");
    }

    @Override
    public void processElement(Observation seen, Context context,
            Collector<Tuple2<byte[], byte[]>> out) throws Exception {
        int level = seen.veiled ? VEILED : decide(seen, context);
        if (level != VEILED) {
            released.inc();
            byte[] label = seen.labels[level];
            out.collect(Tuple2.of(keyed ? key(label) : NO_KEY, record(seen, label)));
            return;
        }
        veiled.inc();
        if (plan.blank) {
            out.collect(Tuple2.of(NO_KEY, record(seen, plan.attributes[seen.attribute].veil)));
        }
    }

    /** Gives the level that is released, counted from the finest. */
    private int decide(Observation seen, Context context) throws Exception {
        Plan.Attribute attribute = plan.attributes[seen.attribute];
        if (attribute.ladder == null) {
            Crowd crowd = alone.value();
            if (crowd == null) {
                crowd = begin(seen, context);
            }
            boolean passes = crowd.observe(seen.time, seen.codes[2], attribute.z, attribute.window);
            alone.update(crowd);
            return passes ? 0 : VEILED;
        }
        int found = VEILED;
        for (int level = 0; level < seen.labels.length; level++) {
            boolean counts = !attribute.rule.equals("fixed") || level == attribute.level;
            if (seen.labels[level] == null || !counts) {
                continue;
            }
            if (passes(seen, level, attribute, context) && found == VEILED) {
                found = level;
                if (!attribute.rule.equals("authors")) {
                    break;
                }
            }
        }
        return found;
    }

    private boolean passes(Observation seen, int level, Plan.Attribute attribute, Context context)
            throws Exception {
        Tuple2<Long, Long> name = Tuple2.of(seen.codes[3 * level], seen.codes[3 * level + 1]);
        Crowd crowd = levels.get(name);
        if (crowd == null) {
            crowd = begin(seen, context);
        }
        boolean passes =
                crowd.observe(seen.time, seen.codes[3 * level + 2], attribute.z, attribute.window);
        levels.put(name, crowd);
        return passes;
    }

    private Crowd begin(Observation seen, Context context) {
        Crowd crowd = new Crowd(seen.attribute, seen.time);
        context.timerService().registerEventTimeTimer(end(crowd));
        return crowd;
    }

    /** The first millisecond at which no clock admits an observation that the crowd would count for. */
    private long end(Crowd crowd) {
        long window = plan.attributes[crowd.attribute].window;
        long last = Saturating.plus(Saturating.plus(crowd.clock, window), plan.lateness);
        return Saturating.plus(Math.floorDiv(last, NANOS), 1);
    }

    @Override
    public void onTimer(long now, OnTimerContext context, Collector<Tuple2<byte[], byte[]>> out)
            throws Exception {
        Crowd crowd = alone.value();
        if (crowd != null) {
            long end = end(crowd);
            if (end <= now) {
                alone.clear();
            } else {
                context.timerService().registerEventTimeTimer(end);
            }
        }
        long next = Long.MAX_VALUE;
        Iterator<Map.Entry<Tuple2<Long, Long>, Crowd>> each = levels.iterator();
        while (each.hasNext()) {
            long end = end(each.next().getValue());
            if (end <= now) {
                each.remove();
            } else {
                next = Math.min(next, end);
            }
        }
        if (next != Long.MAX_VALUE) {
            context.timerService().registerEventTimeTimer(next);
        }
    }

    private static byte[] record(Observation seen, byte[] label) {
        byte[] before = seen.before;
        byte[] behind = seen.behind;
        byte[] whole = new byte[before.length + label.length + behind.length];
        System.arraycopy(before, 0, whole, 0, before.length);
        System.arraycopy(label, 0, whole, before.length, label.length);
        System.arraycopy(behind, 0, whole, before.length + label.length, behind.length);
        return whole;
    }

    /** A byte before it tells a key without letters from none. */
    private byte[] key(byte[] label) {
        byte[] plain = notation.unquoted(label);
        byte[] key = new byte[plain.length + 1];
        System.arraycopy(plain, 0, key, 1, plain.length);
        return key;
    }
}
