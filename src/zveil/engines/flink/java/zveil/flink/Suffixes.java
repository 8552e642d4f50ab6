package zveil.flink;

import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.regex.Pattern;

/** The registered domain of a host name, by rules of the public-suffix list. */
final class Suffixes implements Ladder.Step {
    private static final long serialVersionUID = 1L;

    /** A name of more bytes is none; before it is written in ASCII it may be shorter. */
    private static final int LONGEST = 253;
    /** Dots of other scripts part labels too. */
    private static final Pattern DOTS = Pattern.compile("[.\u3002\uff0e\uff61]");

    private static final byte EXACT = 1;
    /** With any label before it, it is a suffix. */
    private static final byte WILDCARD = 2;
    /** It is none, in spite of that. */
    private static final byte EXCEPTION = 4;

    private final Letters letters;
    /** By name, those that lead to a rule too. */
    private final Map<String, Byte> rules = new HashMap<>();

    Suffixes(Plan.Said said) {
        letters = new Letters(said);
        for (String rule : said.text("rules").split(",")) {
            if (rule.startsWith("!")) {
                add(rule.substring(1), EXCEPTION);
            } else if (rule.startsWith("*.")) {
                // What is below others is no domain of anybody's, and so are they.
                add(rule.substring(2), (byte) (WILDCARD | EXACT));
            } else {
                add(rule, EXACT);
            }
        }
    }

    private void add(String written, byte found) {
        String name = canonical(written);
        if (name == null) {
            return;
        }
        rules.merge(name, found, (one, other) -> (byte) (one | other));
        for (int dot = name.indexOf('.'); dot >= 0; dot = name.indexOf('.', dot + 1)) {
            rules.putIfAbsent(name.substring(dot + 1), (byte) 0);
        }
    }

    @Override
    public int levels() {
        return 1;
    }

    @Override
    public void climb(String host, String[] labels, int from) {
        String name = canonical(host);
        labels[from] = name == null ? null : registered(name);
    }

    /** Gives one label and the longest suffix behind it. */
    private String registered(String name) {
        int last = name.lastIndexOf('.') + 1;
        // An address; no name ends in a number.
        if (isNumber(name, last)) {
            return null;
        }
        // Without any rule the last label is the suffix.
        int suffix = last;
        int at = last;
        int above = 0;
        while (true) {
            Byte rule = rules.get(name.substring(at));
            if ((above & WILDCARD) != 0) {
                suffix = at;
            }
            if (rule != null && (rule & EXCEPTION) != 0) {
                return name.substring(at);
            }
            if (rule != null && (rule & EXACT) != 0) {
                suffix = at;
            }
            if (rule == null || at == 0) {
                break;
            }
            above = rule;
            at = labelBefore(name, at);
        }
        return suffix == 0 ? null : name.substring(labelBefore(name, suffix));
    }

    /** Where the label begins that a dot parts from the place. */
    private static int labelBefore(String name, int place) {
        return name.lastIndexOf('.', place - 2) + 1;
    }

    /** Decimal, or hexadecimal as some programs take it. */
    private static boolean isNumber(String name, int from) {
        return allDigits(name, from, 10) || name.startsWith("0x", from) && allDigits(name, from + 2, 16);
    }

    private static boolean allDigits(String text, int from, int radix) {
        for (int at = from; at < text.length(); at++) {
            // Digits of other scripts are none here.
            if (text.charAt(at) >= 0x80 || Character.digit(text.charAt(at), radix) < 0) {
                return false;
            }
        }
        return true;
    }

    /** Gives the one form of a host name: lower case, ASCII, no dot at the end, no port. Null for none. */
    private String canonical(String written) {
        int colon = written.lastIndexOf(':');
        boolean port = colon >= 0 && allDigits(written, colon + 1, 10);
        String host = port ? written.substring(0, colon) : written;
        int bytes = host.getBytes(StandardCharsets.UTF_8).length;
        if (bytes > 4 * LONGEST) {
            return null;
        }
        String lower = letters.lower(host);
        // All of it is ASCII: this is what most names are.
        String name = bytes == host.length() ? lower : encoded(lower);
        // A dot may end it, but for one behind another.
        name = name.endsWith(".") ? name.substring(0, name.length() - 1) : name;
        return isSpelled(name) ? name : null;
    }

    private static String encoded(String lower) {
        StringBuilder name = new StringBuilder();
        for (String label : DOTS.split(lower, -1)) {
            Punycode.encode(label, name);
            name.append('.');
        }
        name.setLength(name.length() - 1);
        return name.toString();
    }

    private static boolean isSpelled(String name) {
        char before = '.';
        for (int at = 0; at < name.length(); at++) {
            char each = name.charAt(at);
            boolean fits = each >= 'a' && each <= 'z' || each >= '0' && each <= '9' || each == '-'
                    || each == '_' || each == '.' && before != '.';
            if (!fits) {
                return false;
            }
            before = each;
        }
        return before != '.' && name.length() <= LONGEST;
    }
}
