package zveil.flink;

/** Strings of JSON: what they mean, and how a text is spelled as one. */
final class JsonText {
    private JsonText() {}

    /** Adds what a string means that is known to be one; it begins and ends with its quotes. */
    static void unescape(byte[] line, int start, int end, Bytes out) {
        int at = start + 1;
        while (at < end - 1) {
            byte each = line[at++];
            if (each != '\\') {
                out.add(each);
                continue;
            }
            byte kind = line[at++];
            switch (kind) {
                case 'b' -> out.add((byte) 8);
                case 'f' -> out.add((byte) 12);
                case 'n' -> out.add((byte) '\n');
                case 'r' -> out.add((byte) '\r');
                case 't' -> out.add((byte) '\t');
                case 'u' -> {
                    int unit = unit(line, at);
                    at += 4;
                    if (Character.isHighSurrogate((char) unit)) {
                        unit = Character.toCodePoint((char) unit, (char) unit(line, at + 2));
                        at += 6;
                    }
                    out.add(Bytes.utf8(Character.toString(unit)));
                }
                default -> out.add(kind);
            }
        }
    }

    private static int unit(byte[] line, int at) {
        int unit = 0;
        for (int place = at; place < at + 4; place++) {
            unit = unit << 4 | Character.digit(line[place], 16);
        }
        return unit;
    }

    /** Adds a text in the one way in which it leaves. */
    static void quote(byte[] text, int length, Bytes out) {
        out.add((byte) '"');
        for (int at = 0; at < length; at++) {
            byte each = text[at];
            if (each == '"' || each == '\\') {
                out.add((byte) '\\');
                out.add(each);
            } else if (each >= 0x20 || each < 0) {
                out.add(each);
            } else {
                out.add((byte) '\\');
                switch (each) {
                    case 8 -> out.add((byte) 'b');
                    case 12 -> out.add((byte) 'f');
                    case '\n' -> out.add((byte) 'n');
                    case '\r' -> out.add((byte) 'r');
                    case '\t' -> out.add((byte) 't');
                    default -> out.add(Bytes.ascii(String.format("u%04x", each)));
                }
            }
        }
        out.add((byte) '"');
    }
}
