package zveil.flink;

import java.util.HashMap;
import java.util.Map;

/** What user ids leave as: the same as `zveil run` makes under the same key. */
final class Pseudonyms {
    private static final byte[] LETTERS = Bytes.ascii("abcdefghijklmnopqrstuvwxyz234567");
    private static final byte[] DIGITS = Bytes.ascii("0123456789abcdef");
    /** Keys of so many periods are held. */
    private static final int MOST = 64;

    private final String format;
    private final byte[] secret;
    /** How long a key lasts, in nanoseconds; 0 for ever. */
    private final long period;
    private final Code always;
    private final Map<Long, Code> codes = new HashMap<>();

    Pseudonyms(String format, byte[] secret, long period) {
        this.format = format;
        this.secret = secret;
        this.period = period;
        this.always = period == 0 ? coder(secret) : null;
    }

    /** Writes the pseudonym of a user at a time, in quotes where text has them. */
    void put(byte[] user, int length, long time, Bytes out) {
        Code code = always != null ? always : ofPeriod(Math.floorDiv(time, period));
        code.of(user, 0, length);
        switch (format) {
            case "hex" -> digits(code.high, code.low, out);
            case "uuid" -> uuid(code.high, code.low, out);
            default -> letters(code.high, code.low, out);
        }
    }

    private Code ofPeriod(long number) {
        if (codes.size() > MOST) {
            codes.clear();
        }
        return codes.computeIfAbsent(number,
                found -> coder(Code.derive(secret, "period " + period + " " + found, 32)));
    }

    private static Code coder(byte[] secret) {
        return new Code(Code.derive(secret, "pseudonyms", 16));
    }

    /** The first hundred bits, five a letter. */
    private static void letters(long high, long low, Bytes out) {
        for (int at = 0; at < 20; at++) {
            int end = 5 * at + 5;
            long bits;
            if (end <= 64) {
                bits = high >>> (64 - end);
            } else if (end - 5 < 64) {
                bits = high << (end - 64) | low >>> (128 - end);
            } else {
                bits = low >>> (128 - end);
            }
            out.add(LETTERS[(int) (bits & 31)]);
        }
    }

    private static void digits(long high, long low, Bytes out) {
        for (int at = 60; at >= 0; at -= 4) {
            out.add(DIGITS[(int) (high >>> at) & 15]);
        }
        for (int at = 60; at >= 0; at -= 4) {
            out.add(DIGITS[(int) (low >>> at) & 15]);
        }
    }

    /** RFC 9562: four bits say the version and two the variant; the others are the code's own. */
    private static void uuid(long high, long low, Bytes out) {
        Bytes all = new Bytes();
        digits(high & ~0xF000L | 0x8000L, low & ~(0x3L << 62) | 0x2L << 62, all);
        int start = 0;
        for (int end : new int[] {8, 12, 16, 20, 32}) {
            if (start > 0) {
                out.add((byte) '-');
            }
            out.add(all.array, start, end - start);
            start = end;
        }
    }
}
