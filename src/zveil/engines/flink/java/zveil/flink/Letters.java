package zveil.flink;

import java.io.Serializable;
import java.util.BitSet;
import java.util.HashMap;
import java.util.Map;

/** Texts in small letters, by the tables that `zveil flink` has told: those of Java may be others. */
final class Letters implements Serializable {
    private static final long serialVersionUID = 1L;
    private static final int CAPITAL_SIGMA = 0x3A3;
    private static final int SMALL_SIGMA = 0x3C3;
    private static final int LAST_SIGMA = 0x3C2;

    private final Map<Integer, String> lower = new HashMap<>();
    private final BitSet cased = new BitSet();
    private final BitSet ignored = new BitSet();

    Letters(Plan.Said said) {
        for (String each : said.text("lower").split(",")) {
            String[] points = each.split("-");
            StringBuilder form = new StringBuilder();
            for (int place = 1; place < points.length; place++) {
                form.appendCodePoint(Integer.parseInt(points[place], 16));
            }
            lower.put(Integer.parseInt(points[0], 16), form.toString());
        }
        set(cased, said.text("cased"));
        set(ignored, said.text("ignored"));
        // What a host name has of ASCII.
        cased.set('A', 'Z' + 1);
        cased.set('a', 'z' + 1);
        ignored.set('.');
    }

    private static void set(BitSet bits, String spans) {
        for (String span : spans.split(",")) {
            String[] ends = span.split("-");
            bits.set(Integer.parseInt(ends[0], 16), Integer.parseInt(ends[1], 16) + 1);
        }
    }

    String lower(String text) {
        StringBuilder made = new StringBuilder(text.length());
        int[] points = text.codePoints().toArray();
        for (int at = 0; at < points.length; at++) {
            int point = points[at];
            if (point == CAPITAL_SIGMA) {
                boolean ends = meetsLetter(points, at, -1) && !meetsLetter(points, at, 1);
                made.appendCodePoint(ends ? LAST_SIGMA : SMALL_SIGMA);
            } else if (point < 0x80) {
                made.append(point >= 'A' && point <= 'Z' ? (char) (point + 'a' - 'A') : (char) point);
            } else {
                String form = lower.get(point);
                if (form == null) {
                    made.appendCodePoint(point);
                } else {
                    made.append(form);
                }
            }
        }
        return made.toString();
    }

    /** Whether a letter of two sizes comes next, past what is no part of a word's letters. */
    private boolean meetsLetter(int[] points, int from, int step) {
        int at = from + step;
        while (at >= 0 && at < points.length && ignored.get(points[at])) {
            at += step;
        }
        return at >= 0 && at < points.length && cased.get(points[at]);
    }
}
