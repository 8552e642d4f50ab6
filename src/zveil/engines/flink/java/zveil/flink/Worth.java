package zveil.flink;

import java.math.BigDecimal;
import java.math.MathContext;

/** What a cell is worth: users are texts, values keep their type, and each has one spelling. */
final class Worth {
    /** Up to here every whole number has a float of its own. */
    private static final double EXACT = 1L << 53;

    /** The type of a value, as a letter; 0 where there is none. */
    byte type;

    /** The value itself, without quotes. */
    final Bytes text = new Bytes();

    /** How it leaves. */
    final Bytes spelled = new Bytes();

    /** Takes a value that is decided about. */
    void takeValue(Notation notation, Cell cell) throws BadRecord {
        text.clear();
        spelled.clear();
        switch (cell.kind) {
            case ABSENT, NULL -> {
                type = 0;
                return;
            }
            case TEXT -> {
                type = 't';
                notation.text(cell, text);
                notation.put(cell, spelled);
            }
            case ESCAPED -> {
                type = 't';
                notation.text(cell, text);
                notation.quote(text.array, text.length, spelled);
            }
            case INTEGER -> {
                type = 'i';
                integer(notation, cell);
                spelled.add(text.array, 0, text.length);
            }
            case NUMBER -> {
                type = 'f';
                double number = number(notation, cell);
                // Both zeros are one value, each told as it came.
                text.add(Bytes.ascii(told(number == 0 ? 0.0 : number)));
                spelled.add(Bytes.ascii(told(number)));
            }
            case TRUE, FALSE -> {
                type = 'b';
                text.add(Bytes.ascii(cell.kind == Cell.Kind.TRUE ? "true" : "false"));
                spelled.add(text.array, 0, text.length);
            }
            default -> throw BadRecord.WRONG_TYPE;
        }
    }

    /** Takes a user id: 7, 7.0 and "7" are one person. */
    void takeUser(Notation notation, Cell cell) throws BadRecord {
        text.clear();
        type = 't';
        switch (cell.kind) {
            case ABSENT -> throw BadRecord.MISSING;
            case NULL -> type = 0;
            case TEXT, ESCAPED -> notation.text(cell, text);
            case INTEGER -> integer(notation, cell);
            case NUMBER -> {
                double number = number(notation, cell);
                if (number != Math.rint(number)) {
                    throw BadRecord.WRONG_TYPE;
                }
                if (Math.abs(number) <= EXACT) {
                    text.add(Bytes.ascii(Long.toString((long) number)));
                } else {
                    // It stands for several whole numbers, that is, for several people.
                    type = 0;
                }
            }
            default -> throw BadRecord.WRONG_TYPE;
        }
    }

    private void integer(Notation notation, Cell cell) {
        notation.put(cell, text);
        if (text.length == 2 && text.array[0] == '-' && text.array[1] == '0') {
            text.clear().add((byte) '0');
        }
    }

    private double number(Notation notation, Cell cell) throws BadRecord {
        Bytes digits = new Bytes();
        notation.put(cell, digits);
        double number = Double.parseDouble(
                new String(digits.array, 0, digits.length, java.nio.charset.StandardCharsets.US_ASCII));
        if (Double.isInfinite(number)) {
            throw BadRecord.WRONG_TYPE;
        }
        return number;
    }

    /** The fewest digits that are this number and no other, and never those of an integer. */
    static String told(double number) {
        if (number == 0) {
            return 1 / number < 0 ? "-0.0" : "0.0";
        }
        BigDecimal exact = new BigDecimal(number);
        BigDecimal brief = exact;
        for (int digits = 1; digits <= 17; digits++) {
            brief = exact.round(new MathContext(digits));
            if (brief.doubleValue() == number) {
                break;
            }
        }
        brief = brief.stripTrailingZeros();
        double size = Math.abs(number);
        if (size >= 1e-5 && size < 1e16) {
            String plain = brief.toPlainString();
            return plain.indexOf('.') < 0 ? plain + ".0" : plain;
        }
        String digits = brief.unscaledValue().abs().toString();
        int exponent = digits.length() - 1 - brief.scale();
        String head = digits.length() == 1 ? digits : digits.charAt(0) + "." + digits.substring(1);
        return (number < 0 ? "-" : "") + head + "e" + exponent;
    }
}
