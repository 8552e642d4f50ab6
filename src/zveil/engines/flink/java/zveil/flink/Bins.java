package zveil.flink;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Numbers in bins that begin at zero and hold their lower edge: [30,40), [0,100). */
final class Bins implements Ladder.Step {
    private static final long serialVersionUID = 1L;
    private static final Pattern NUMBER =
            Pattern.compile("([+-]?)([0-9]+)(?:\\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?");
    /** The range of the core: beyond it there is no label. */
    private static final int MOST_BITS = 127;
    private static final BigInteger MOST_EXPONENT = BigInteger.valueOf(5_000);

    /** In units of 10^-scale, each a multiple of the one before. */
    private final BigInteger[] widths;
    private final int scale;

    Bins(Plan.Said said) {
        String[] written = said.list("width");
        int finest = 0;
        for (String width : written) {
            finest = Math.max(finest, new BigDecimal(width).scale());
        }
        scale = finest;
        widths = new BigInteger[written.length];
        for (int level = 0; level < written.length; level++) {
            widths[level] = new BigDecimal(written[level]).setScale(scale).unscaledValue();
        }
    }

    @Override
    public int levels() {
        return widths.length;
    }

    @Override
    public void climb(String text, String[] labels, int from) {
        BigInteger units = units(text);
        for (int level = 0; units != null && level < widths.length; level++) {
            // From the finest bin, so that a coarser one is a function of it.
            BigInteger width = widths[level];
            BigInteger lower = floor(units, width.divide(widths[0])).multiply(width);
            BigInteger upper = lower.add(width);
            if (fits(lower) && fits(upper)) {
                labels[from + level] = "[" + told(lower) + "," + told(upper) + ")";
            }
        }
    }

    /** The number of whole finest widths in a number, rounded down; null for what is none. */
    private BigInteger units(String text) {
        Matcher number = NUMBER.matcher(text);
        if (!number.matches()) {
            return null;
        }
        String decimals = number.group(3) == null ? "" : number.group(3);
        String power = number.group(4) == null ? "0" : number.group(4);
        // The least that is too long for any of it, before it is made a number of.
        String whole = (number.group(2) + decimals).replaceFirst("^0+(?=.)", "");
        String exponents = power.replaceFirst("^([+-]?)0+(?=.)", "$1");
        if (whole.length() > 39 || exponents.length() > 5) {
            return null;
        }
        BigInteger digits = new BigInteger(whole);
        BigInteger exponent = new BigInteger(exponents);
        if (!fits(digits) || exponent.abs().compareTo(MOST_EXPONENT) > 0) {
            return null;
        }
        if (number.group(1).equals("-")) {
            digits = digits.negate();
        }
        int shift = scale - decimals.length() + exponent.intValue();
        if (digits.signum() == 0) {
            return digits;
        }
        if (shift >= 0) {
            BigInteger moved = digits.multiply(BigInteger.TEN.pow(shift));
            return fits(moved) ? floor(moved, widths[0]) : null;
        }
        return floor(digits, widths[0].multiply(BigInteger.TEN.pow(-shift)));
    }

    private static boolean fits(BigInteger number) {
        return number.bitLength() <= MOST_BITS;
    }

    private static BigInteger floor(BigInteger number, BigInteger unit) {
        BigInteger[] parts = number.divideAndRemainder(unit);
        return parts[1].signum() < 0 ? parts[0].subtract(BigInteger.ONE) : parts[0];
    }

    private String told(BigInteger edge) {
        BigDecimal number = new BigDecimal(edge, scale);
        return number.signum() == 0 ? "0" : number.stripTrailingZeros().toPlainString();
    }
}
