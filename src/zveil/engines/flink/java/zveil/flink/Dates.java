package zveil.flink;

import java.nio.charset.StandardCharsets;
import java.time.LocalDateTime;
import java.time.ZoneOffset;

/** Parts of a date: 2024-02-29T12:30:00Z, 2024-02-29, 2024-02, 2024. */
final class Dates implements Ladder.Step {
    private static final long serialVersionUID = 1L;
    private static final long NANOS = 1_000_000_000L;

    /** How much of a date is told, from the finest. */
    private final String[] parts;
    /** What numbers are; each by itself, if not stated. */
    private final String format;

    Dates(Plan.Said said) {
        parts = said.list("part");
        format = said.text("format");
    }

    @Override
    public int levels() {
        return parts.length;
    }

    @Override
    public void climb(String text, String[] labels, int from) {
        String found = detected(text);
        if (found == null) {
            return;
        }
        // A date says so itself, whatever numbers are.
        String unit = format.isEmpty() || found.equals("iso") ? found : format;
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        long time;
        try {
            time = new Moment(unit).read(bytes, bytes.length);
        } catch (BadRecord problem) {
            return;
        }
        LocalDateTime moment =
                LocalDateTime.ofEpochSecond(Math.floorDiv(time, NANOS), 0, ZoneOffset.UTC);
        for (int level = 0; level < parts.length; level++) {
            labels[from + level] = told(moment, parts[level]);
        }
    }

    private static String told(LocalDateTime moment, String part) {
        // Years have four digits here: those of times are from 1677 to 2262.
        String whole = moment.toString();
        return switch (part) {
            case "minute" -> whole.substring(0, 16);
            case "hour" -> whole.substring(0, 13);
            case "day" -> whole.substring(0, 10);
            case "month" -> whole.substring(0, 7);
            case "year" -> whole.substring(0, 4);
            default -> throw new IllegalArgumentException("part: " + part);
        };
    }

    /** The format of one text: a date if it looks like one, else a number by its size; null for none. */
    private static String detected(String text) {
        if (text.length() >= 10 && text.charAt(4) == '-' && text.charAt(7) == '-') {
            return text.substring(0, 10).matches("[0-9]{4}-[0-9]{2}-[0-9]{2}") ? "iso" : null;
        }
        Decimal number = Decimal.read(text);
        if (number == null) {
            return null;
        }
        long digits = number.wholeDigits();
        return digits <= 11 ? "s" : digits <= 14 ? "ms" : digits <= 17 ? "us" : "ns";
    }
}
