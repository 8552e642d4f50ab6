package zveil.flink;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Properties;

/** What is read, decided and written: made of a policy by `zveil flink`, which has checked it. */
final class Plan implements Serializable {
    private static final long serialVersionUID = 1L;

    static final int TIME = 0;
    static final int USER = 1;
    static final int ATTRIBUTES = 2;

    /** A field that is decided about. */
    static final class Attribute implements Serializable {
        private static final long serialVersionUID = 1L;

        final String label;
        final int z;
        final long window;
        final String rule;
        /** With the rule "fixed": which level, counted from the finest. */
        final int level;
        /** How a veiled value is told. */
        final byte[] veil;
        final Ladder ladder;

        Attribute(Said said) {
            label = said.text("label");
            z = (int) said.number("z");
            window = said.number("window_ns");
            rule = said.text("rule");
            level = (int) said.number("level");
            veil = Bytes.utf8(said.text("veil"));
            List<Ladder.Step> steps = new ArrayList<>();
            for (int step = 0; step < said.number("steps"); step++) {
                steps.add(step(said.below("step." + step)));
            }
            ladder = steps.isEmpty() ? null : new Ladder(steps);
        }

        private static Ladder.Step step(Said said) {
            return switch (said.text("kind")) {
                case "segments" -> new Ladder.Segments(said.text("separator"), (int) said.number("levels"));
                case "bins" -> new Bins(said);
                case "table" -> {
                    int levels = (int) said.number("levels");
                    Map<String, String[]> rows = new HashMap<>();
                    for (int row = 0; row < said.number("rows"); row++) {
                        String[] fields = said.list("row." + row);
                        String[] labels = new String[levels];
                        for (int place = 1; place < fields.length; place++) {
                            labels[place - 1] = fields[place].isEmpty() ? null : fields[place];
                        }
                        rows.put(fields[0], labels);
                    }
                    yield Ladder.Table.of(rows, levels);
                }
                case "domain" -> new Suffixes(said);
                case "prefix" -> new Networks(said);
                case "time" -> new Dates(said);
                default -> throw new IllegalArgumentException("step: " + said.text("kind"));
            };
        }
    }

    final String format;
    /** Of JSON: the members that lead to each field. */
    final String[][] paths;
    /** Of CSV: the column of each field, and how many there are. */
    final int[] places;
    final int columns;
    final int maxLine;

    final String timeFormat;
    /** What times that leave are multiples of, in nanoseconds; 0 for exact ones. */
    final long step;
    final long lateness;
    /** How far past the wall clock a time may be; negative for any. */
    final long maxFuture;

    /** "raw" where ids leave as they are. */
    final String pseudonym;
    final byte[] userKey;
    final long rotate;
    final byte[] gateKey;

    final Attribute[] attributes;
    /** Records with nothing released leave too. */
    final boolean blank;
    /** The text before each value of a record that leaves, the field whose value it is, and the end. */
    final byte[][] pieces;
    final int[] fields;
    final byte[] end;

    Plan(Properties properties) {
        Said said = new Said(properties, "");
        format = said.text("format");
        maxLine = (int) said.number("max_line");
        int count = (int) said.number("fields");
        boolean json = format.equals("ndjson");
        paths = new String[json ? count : 0][];
        places = new int[json ? 0 : count];
        columns = (int) said.number("columns");
        for (int field = 0; field < count; field++) {
            if (json) {
                paths[field] = said.list("field." + field);
            } else {
                places[field] = (int) said.number("column." + field);
            }
        }
        timeFormat = said.text("time.format");
        step = said.number("time.step_ns");
        lateness = said.number("lateness_ns");
        maxFuture = said.number("max_future_ns");
        pseudonym = said.text("user.pseudonym");
        userKey = HexFormat.of().parseHex(said.text("user.key"));
        rotate = said.number("user.rotate_ns");
        gateKey = HexFormat.of().parseHex(said.text("gate.key"));
        attributes = new Attribute[(int) said.number("attributes")];
        for (int number = 0; number < attributes.length; number++) {
            attributes[number] = new Attribute(said.below("attribute." + number));
        }
        blank = said.text("empty").equals("blank");
        pieces = new byte[(int) said.number("pieces")][];
        fields = new int[pieces.length];
        for (int piece = 0; piece < pieces.length; piece++) {
            pieces[piece] = Bytes.utf8(said.text("piece." + piece + ".text"));
            fields[piece] = (int) said.number("piece." + piece + ".field");
        }
        end = Bytes.utf8(said.text("end"));
    }

    int levels(int attribute) {
        Ladder ladder = attributes[attribute].ladder;
        return ladder == null ? 1 : ladder.labels + 1;
    }

    /** Names and what is said by them, below one of them. */
    record Said(Properties properties, String above) {
        Said below(String name) {
            return new Said(properties, above + name + ".");
        }

        String text(String name) {
            String found = properties.getProperty(above + name);
            if (found == null) {
                throw new IllegalArgumentException(above + name + " is not said");
            }
            return found;
        }

        long number(String name) {
            return Long.parseLong(text(name));
        }

        String[] list(String name) {
            String[] found = new String[(int) number(name + ".length")];
            for (int place = 0; place < found.length; place++) {
                found[place] = text(name + "." + place);
            }
            return found;
        }
    }
}
