package zveil.flink;

/** Labels of names in letters beyond ASCII, as the domain name system writes them (RFC 3492). */
final class Punycode {
    private static final int BASE = 36;
    private static final int T_MIN = 1;
    private static final int T_MAX = 26;
    private static final int SKEW = 38;
    private static final int DAMP = 700;
    private static final int FIRST_BIAS = 72;
    private static final int FIRST_POINT = 128;

    private Punycode() {}

    /** Adds one label: as it is if it is ASCII, behind xn-- if not. Names are short: nothing overflows. */
    static void encode(String label, StringBuilder out) {
        int[] letters = label.codePoints().toArray();
        int start = out.length();
        int plain = 0;
        for (int letter : letters) {
            if (letter < FIRST_POINT) {
                out.append((char) letter);
                plain++;
            }
        }
        if (plain == letters.length) {
            return;
        }
        out.insert(start, "xn--");
        if (plain > 0) {
            out.append('-');
        }
        int point = FIRST_POINT;
        int bias = FIRST_BIAS;
        long delta = 0;
        int done = plain;
        while (done < letters.length) {
            int next = Integer.MAX_VALUE;
            for (int letter : letters) {
                next = letter >= point ? Math.min(next, letter) : next;
            }
            delta += (long) (next - point) * (done + 1);
            point = next;
            for (int letter : letters) {
                if (letter < point) {
                    delta++;
                } else if (letter == point) {
                    number(delta, bias, out);
                    bias = adapted(delta, done + 1, done == plain);
                    delta = 0;
                    done++;
                }
            }
            delta++;
            point++;
        }
    }

    /** Digits of a number whose every place has a base of its own, the lowest first. */
    private static void number(long number, int bias, StringBuilder out) {
        long rest = number;
        for (int place = 1; ; place++) {
            int least = Math.max(T_MIN, Math.min(T_MAX, BASE * place - bias));
            if (rest < least) {
                out.append(digit(rest));
                return;
            }
            out.append(digit(least + (rest - least) % (BASE - least)));
            rest = (rest - least) / (BASE - least);
        }
    }

    private static char digit(long value) {
        return (char) (value < 26 ? 'a' + value : '0' + value - 26);
    }

    private static int adapted(long delta, int count, boolean first) {
        long left = first ? delta / DAMP : delta / 2;
        left += left / count;
        int places = 0;
        while (left > (BASE - T_MIN) * T_MAX / 2) {
            left /= BASE - T_MIN;
            places += BASE;
        }
        return places + (int) ((BASE - T_MIN + 1) * left / (left + SKEW));
    }
}
