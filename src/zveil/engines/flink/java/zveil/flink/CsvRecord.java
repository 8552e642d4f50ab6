package zveil.flink;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.CharsetDecoder;
import java.nio.charset.StandardCharsets;

/** Finds the fields of a record of CSV (RFC 4180), which is one line. */
final class CsvRecord extends Notation {
    private static final byte[] NOTHING = new byte[0];

    private final byte delimiter;
    /** The field that each column is, or -1. */
    private final int[] fields;
    private final CharsetDecoder utf8 = StandardCharsets.UTF_8.newDecoder();
    private final Bytes scratch = new Bytes();

    CsvRecord(byte delimiter, int[] places, int columns) {
        this.delimiter = delimiter;
        this.fields = new int[columns];
        java.util.Arrays.fill(fields, -1);
        for (int field = 0; field < places.length; field++) {
            fields[places[field]] = field;
        }
    }

    @Override
    void read(byte[] line, Cell[] cells) throws BadRecord {
        this.line = line;
        try {
            utf8.decode(ByteBuffer.wrap(line));
        } catch (CharacterCodingException error) {
            throw BadRecord.NOT_UTF8;
        }
        int at = 0;
        for (int column = 0; ; column++) {
            int start = at;
            boolean quoted = at < line.length && line[at] == '"';
            boolean escaped = quoted;
            at = quoted ? behindQuotes(at) : behind(at);
            if (column >= fields.length) {
                throw BadRecord.COLUMNS;
            }
            if (fields[column] >= 0) {
                boolean empty = quoted ? at - start == 2 : at == start;
                Cell.Kind kind = escaped ? Cell.Kind.ESCAPED : Cell.Kind.TEXT;
                cells[fields[column]].set(empty ? Cell.Kind.NULL : kind, start, at);
            }
            if (at == line.length) {
                if (column + 1 != fields.length) {
                    throw BadRecord.COLUMNS;
                }
                return;
            }
            if (line[at] != delimiter) {
                throw BadRecord.SYNTAX;
            }
            at++;
        }
    }

    private int behind(int at) throws BadRecord {
        while (at < line.length && line[at] != delimiter) {
            if (line[at] == 0) {
                throw BadRecord.SYNTAX;
            }
            at++;
        }
        return at;
    }

    private int behindQuotes(int at) throws BadRecord {
        at++;
        while (at < line.length) {
            if (line[at] == 0) {
                throw BadRecord.SYNTAX;
            }
            if (line[at] == '"') {
                if (at + 1 == line.length || line[at + 1] != '"') {
                    return at + 1;
                }
                at++;
            }
            at++;
        }
        throw BadRecord.SYNTAX;
    }

    @Override
    void text(Cell cell, Bytes out) {
        text(line, cell.start, cell.end, cell.kind == Cell.Kind.ESCAPED, out);
    }

    private static void text(byte[] from, int start, int end, boolean quoted, Bytes out) {
        if (!quoted) {
            out.add(from, start, end - start);
            return;
        }
        for (int at = start + 1; at < end - 1; at++) {
            out.add(from[at]);
            at += from[at] == '"' ? 1 : 0;
        }
    }

    @Override
    void put(Cell cell, Bytes out) {
        if (cell.kind == Cell.Kind.ABSENT || cell.kind == Cell.Kind.NULL) {
            return;
        }
        scratch.clear();
        text(cell, scratch);
        if (cell.kind == Cell.Kind.TEXT && !holdsReturn(scratch)) {
            out.add(scratch.array, 0, scratch.length);
        } else {
            quote(scratch.array, scratch.length, out);
        }
    }

    /** Some readers take a CR for the end of a line. */
    private static boolean holdsReturn(Bytes text) {
        for (int at = 0; at < text.length; at++) {
            if (text.array[at] == '\r') {
                return true;
            }
        }
        return false;
    }

    @Override
    void quote(byte[] text, int length, Bytes out) {
        boolean special = length > 0 && (text[0] == ' ' || text[length - 1] == ' ');
        for (int at = 0; at < length && !special; at++) {
            byte each = text[at];
            special = each == delimiter || each == '"' || each == '\r' || each == '\n';
        }
        if (!special) {
            out.add(text, 0, length);
            return;
        }
        out.add((byte) '"');
        for (int at = 0; at < length; at++) {
            if (text[at] == '"') {
                out.add((byte) '"');
            }
            out.add(text[at]);
        }
        out.add((byte) '"');
    }

    @Override
    void quotePlain(byte[] text, int length, Bytes out) {
        out.add(text, 0, length);
    }

    @Override
    byte[] nothing() {
        return NOTHING;
    }

    @Override
    byte[] unquoted(byte[] spelled) {
        Bytes plain = new Bytes();
        text(spelled, 0, spelled.length, spelled.length > 0 && spelled[0] == '"', plain);
        return plain.copy();
    }
}
