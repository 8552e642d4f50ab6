package zveil.flink;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.CharsetDecoder;
import java.nio.charset.StandardCharsets;

/** Passes over the words, numbers and strings of a record of JSON, and checks every byte of them. */
abstract class JsonScanner extends Notation {
    private final CharsetDecoder utf8 = StandardCharsets.UTF_8.newDecoder();
    protected int length;
    /** What is read next. */
    protected int at;

    /** Takes another record, which has to be UTF-8 all through. */
    protected final void begin(byte[] line) throws BadRecord {
        this.line = line;
        this.length = line.length;
        this.at = 0;
        requireUtf8();
    }

    private void requireUtf8() throws BadRecord {
        int or = 0;
        for (byte each : line) {
            or |= each;
        }
        if (or >= 0) {
            return;
        }
        try {
            utf8.decode(ByteBuffer.wrap(line));
        } catch (CharacterCodingException error) {
            throw BadRecord.NOT_UTF8;
        }
    }

    protected final int peek() {
        return at < length ? line[at] : 0;
    }

    protected final void space() {
        while (at < length && (line[at] == ' ' || line[at] == '\t' || line[at] == '\r')) {
            at++;
        }
    }

    protected final Cell.Kind word(String word, Cell.Kind kind) throws BadRecord {
        for (int place = 0; place < word.length(); place++, at++) {
            if (peek() != word.charAt(place)) {
                throw BadRecord.SYNTAX;
            }
        }
        return kind;
    }

    protected final Cell.Kind number() throws BadRecord {
        Cell.Kind kind = Cell.Kind.INTEGER;
        if (peek() == '-') {
            at++;
        }
        int first = at;
        digits();
        if (line[first] == '0' && at > first + 1) {
            throw BadRecord.SYNTAX;
        }
        if (peek() == '.') {
            at++;
            digits();
            kind = Cell.Kind.NUMBER;
        }
        if (peek() == 'e' || peek() == 'E') {
            at++;
            if (peek() == '+' || peek() == '-') {
                at++;
            }
            digits();
            kind = Cell.Kind.NUMBER;
        }
        return kind;
    }

    private void digits() throws BadRecord {
        int start = at;
        while (at < length && line[at] >= '0' && line[at] <= '9') {
            at++;
        }
        if (at == start) {
            throw BadRecord.SYNTAX;
        }
    }

    /** Skips a string; says whether it holds escapes. */
    protected final boolean string() throws BadRecord {
        boolean escaped = false;
        at++;
        while (at < length) {
            byte each = line[at];
            if (each == '"') {
                at++;
                return escaped;
            }
            if (each == '\\') {
                escaped = true;
                escape();
            } else if (each >= 0 && each < 0x20) {
                throw BadRecord.SYNTAX;
            } else {
                at++;
            }
        }
        throw BadRecord.SYNTAX;
    }

    private void escape() throws BadRecord {
        int kind = at + 1 < length ? line[at + 1] : 0;
        if (kind != 'u') {
            if ("\"\\/bfnrt".indexOf(kind) < 0 || kind == 0) {
                throw BadRecord.SYNTAX;
            }
            at += 2;
            return;
        }
        int unit = hex(at + 2);
        at += 6;
        if (unit < 0xD800 || unit > 0xDFFF) {
            return;
        }
        // Half a pair has no form in UTF-8.
        if (unit > 0xDBFF || at + 1 >= length || line[at] != '\\' || line[at + 1] != 'u') {
            throw BadRecord.NOT_UTF8;
        }
        int other = hex(at + 2);
        if (other < 0xDC00 || other > 0xDFFF) {
            throw BadRecord.NOT_UTF8;
        }
        at += 6;
    }

    private int hex(int start) throws BadRecord {
        int unit = 0;
        for (int place = start; place < start + 4; place++) {
            int digit = place < length ? Character.digit(line[place], 16) : -1;
            if (digit < 0) {
                throw BadRecord.SYNTAX;
            }
            unit = unit << 4 | digit;
        }
        return unit;
    }
}
