package zveil.flink;

import java.math.BigInteger;

/** A decimal number as it is written, of any length: its digits, times ten to an exponent. */
final class Decimal {
    /** The most digits that a 64-bit number has. */
    private static final int MOST_DIGITS = 19;
    /** Far past anything that lengths of text could balance. */
    private static final long FAR = 1L << 56;

    private final boolean negative;
    /** Without zeros at the beginning. */
    private final String digits;
    /** How many of them are behind the point, and what is added to it. */
    private final long decimals;
    private final long exponent;

    private Decimal(boolean negative, String digits, long decimals, long exponent) {
        this.negative = negative;
        this.digits = digits;
        this.decimals = decimals;
        this.exponent = exponent;
    }

    /** Reads -12, 0.50 or 1e3, with digits on both sides of the point; null for anything else. */
    static Decimal read(String text) {
        int start = signs(text, 0);
        int point = behindDigits(text, start);
        int end = point;
        if (end < text.length() && text.charAt(end) == '.') {
            end = behindDigits(text, point + 1);
            if (end == point + 1) {
                return null;
            }
        }
        if (point == start) {
            return null;
        }
        long exponent = 0;
        if (end < text.length()) {
            int first = signs(text, end + 1);
            boolean marked = text.charAt(end) == 'e' || text.charAt(end) == 'E';
            if (!marked || first == text.length() || behindDigits(text, first) < text.length()) {
                return null;
            }
            for (int at = first; at < text.length(); at++) {
                exponent = Math.min(exponent * 10 + text.charAt(at) - '0', FAR);
            }
            exponent = text.charAt(end + 1) == '-' ? -exponent : exponent;
        }
        String behind = end > point ? text.substring(point + 1, end) : "";
        String all = text.substring(start, point) + behind;
        int zeros = 0;
        while (zeros < all.length() && all.charAt(zeros) == '0') {
            zeros++;
        }
        boolean negative = text.charAt(0) == '-';
        return new Decimal(negative, all.substring(zeros), behind.length(), exponent);
    }

    private static int signs(String text, int at) {
        boolean has = at < text.length() && (text.charAt(at) == '-' || text.charAt(at) == '+');
        return has ? at + 1 : at;
    }

    private static int behindDigits(String text, int from) {
        int at = from;
        while (at < text.length() && text.charAt(at) >= '0' && text.charAt(at) <= '9') {
            at++;
        }
        return at;
    }

    /** How many digits there are before the point once the exponent is applied; 0 or less below 1. */
    long wholeDigits() {
        return digits.isEmpty() ? 0 : digits.length() - decimals + exponent;
    }

    /** The number times ten to a power, rounded down; null where 64 bits do not hold it. */
    BigInteger floor(int power) {
        long count = wholeDigits() + power;
        if (count > MOST_DIGITS) {
            return null;
        }
        int taken = (int) Math.max(0, Math.min(count, digits.length()));
        String whole = digits.substring(0, taken) + "0".repeat((int) Math.max(0, count - taken));
        BigInteger size = new BigInteger("0" + whole);
        if (negative) {
            boolean rest = digits.substring(taken).chars().anyMatch(digit -> digit != '0');
            size = rest ? size.not() : size.negate();
        }
        return size.bitLength() > 63 ? null : size;
    }
}
