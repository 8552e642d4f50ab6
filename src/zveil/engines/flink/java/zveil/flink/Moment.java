package zveil.flink;

import java.math.BigInteger;
import java.time.DateTimeException;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.ZoneOffset;

/** Times in text to nanoseconds since 1970 and back, exactly. */
final class Moment {
    /** No time at all. */
    static final long NONE = Long.MIN_VALUE;

    private static final long NANOS = 1_000_000_000L;
    private static final int MOST_DIGITS = 18;

    private final String format;
    /** The power of ten from the unit to nanoseconds. */
    private final int power;

    Moment(String format) {
        this.format = format;
        this.power = switch (format) {
            case "s" -> 9;
            case "ms" -> 6;
            case "us" -> 3;
            case "ns", "iso" -> 0;
            default -> throw new IllegalArgumentException("time.format: " + format);
        };
    }

    boolean isIso() {
        return format.equals("iso");
    }

    /** Reads a time; NONE is never given back. Digits past a nanosecond are cut off to the past. */
    long read(byte[] text, int length) throws BadRecord {
        return isIso() ? iso(text, length) : number(text, length);
    }

    private long number(byte[] text, int length) throws BadRecord {
        long whole = 0;
        int decimals = -1;
        int digits = 0;
        for (int at = 0; at < length; at++) {
            byte each = text[at];
            if (each >= '0' && each <= '9') {
                whole = whole * 10 + each - '0';
                digits++;
                decimals += decimals >= 0 ? 1 : 0;
            } else if (each == '.' && decimals < 0 && at > 0 && at + 1 < length) {
                decimals = 0;
            } else {
                return decimal(text, length);
            }
        }
        int behind = power - Math.max(decimals, 0);
        // What fits is quick, and nearly all does.
        if (digits == 0 || digits > MOST_DIGITS || behind < 0) {
            return decimal(text, length);
        }
        for (int times = 0; times < behind; times++) {
            if (whole > Long.MAX_VALUE / 10) {
                throw BadRecord.TIME;
            }
            whole *= 10;
        }
        return whole;
    }

    private long decimal(byte[] text, int length) throws BadRecord {
        Decimal number = Decimal.read(
                new String(text, 0, length, java.nio.charset.StandardCharsets.ISO_8859_1));
        BigInteger nanos = number == null ? null : number.floor(power);
        if (nanos == null || nanos.longValue() == NONE) {
            throw BadRecord.TIME;
        }
        return nanos.longValue();
    }

    /** `YYYY-MM-DD`, then `T` or a space and `hh:mm`, `:ss`, a fraction, a zone. */
    private static long iso(byte[] text, int length) throws BadRecord {
        try {
            if (length < 10 || text[4] != '-' || text[7] != '-') {
                throw BadRecord.TIME;
            }
            int year = two(text, 0, length) * 100 + two(text, 2, length);
            long day = LocalDate.of(year, two(text, 5, length), two(text, 8, length)).toEpochDay();
            if (length == 10) {
                return exactly(day * 86_400, 0);
            }
            if (length < 16 || text[10] != 'T' && text[10] != ' ' || text[13] != ':') {
                throw BadRecord.TIME;
            }
            int hour = two(text, 11, length);
            int minute = two(text, 14, length);
            int second = 0;
            long nanos = 0;
            int at = 16;
            if (at < length && text[at] == ':') {
                second = two(text, at + 1, length);
                at += 3;
                if (at < length && (text[at] == '.' || text[at] == ',')) {
                    int first = ++at;
                    long step = NANOS / 10;
                    for (; at < length && text[at] >= '0' && text[at] <= '9'; at++, step /= 10) {
                        nanos += step * (text[at] - '0');
                    }
                    if (at == first) {
                        throw BadRecord.TIME;
                    }
                }
            }
            if (hour > 23 || minute > 59 || second > 59) {
                throw BadRecord.TIME;
            }
            long seconds = day * 86_400 + hour * 3_600L + minute * 60L + second;
            return exactly(seconds - zone(text, at, length), nanos);
        } catch (DateTimeException | ArithmeticException error) {
            throw BadRecord.TIME;
        }
    }

    private static long exactly(long seconds, long nanos) throws BadRecord {
        BigInteger found = BigInteger.valueOf(seconds).multiply(BigInteger.valueOf(NANOS))
                .add(BigInteger.valueOf(nanos));
        if (found.bitLength() > 63 || found.longValue() == NONE) {
            throw BadRecord.TIME;
        }
        return found.longValue();
    }

    /** Seconds ahead of UTC. */
    private static long zone(byte[] text, int at, int length) throws BadRecord {
        int left = length - at;
        if (left == 0 || left == 1 && text[at] == 'Z') {
            return 0;
        }
        boolean colon = left == 6 && text[at + 3] == ':';
        if (text[at] != '+' && text[at] != '-' || left != 3 && left != 5 && !colon) {
            throw BadRecord.TIME;
        }
        int hour = two(text, at + 1, length);
        int minute = left == 3 ? 0 : two(text, length - 2, length);
        if (hour > 23 || minute > 59) {
            throw BadRecord.TIME;
        }
        return (text[at] == '+' ? 1 : -1) * (hour * 3_600L + minute * 60L);
    }

    private static int two(byte[] text, int at, int length) throws BadRecord {
        if (at + 2 > length) {
            throw BadRecord.TIME;
        }
        int tens = text[at] - '0';
        int ones = text[at + 1] - '0';
        if (tens < 0 || tens > 9 || ones < 0 || ones > 9) {
            throw BadRecord.TIME;
        }
        return tens * 10 + ones;
    }

    /** Writes a time of whole seconds as times come in. */
    byte[] told(long nanos) {
        if (!isIso()) {
            return Bytes.ascii(BigInteger.valueOf(nanos).divide(BigInteger.TEN.pow(power))
                    .toString());
        }
        LocalDateTime moment =
                LocalDateTime.ofEpochSecond(Math.floorDiv(nanos, NANOS), 0, ZoneOffset.UTC);
        return Bytes.ascii(String.format("%04d-%02d-%02dT%02d:%02d:%02dZ", moment.getYear(),
                moment.getMonthValue(), moment.getDayOfMonth(), moment.getHour(),
                moment.getMinute(), moment.getSecond()));
    }
}
