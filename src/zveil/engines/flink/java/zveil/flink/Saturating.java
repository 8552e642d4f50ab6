package zveil.flink;

/** Sums of times that stop at the ends of all time. */
final class Saturating {
    private Saturating() {}

    static long minus(long time, long span) {
        long found = time - span;
        return ((time ^ span) & (time ^ found)) < 0 ? (time < 0 ? Long.MIN_VALUE : Long.MAX_VALUE) : found;
    }

    static long plus(long time, long span) {
        long found = time + span;
        return ((time ^ found) & (span ^ found)) < 0 ? (time < 0 ? Long.MIN_VALUE : Long.MAX_VALUE) : found;
    }
}
