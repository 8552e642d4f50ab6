package zveil.flink;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/** Finds the fields of a record of JSON, and checks every byte of it on the way. */
final class JsonRecord extends JsonScanner {
    private static final byte[] NOTHING = Bytes.ascii("null");
    private static final int DEEPEST = 128;
    /** With more keys than these an object is not searched one by one for repetitions. */
    private static final int FEW = 24;

    /** A member that is looked for, or in which others are. */
    private static final class Member {
        final byte[] name;
        int field = -1;
        final List<Member> inside = new ArrayList<>();

        Member(byte[] name) {
            this.name = name;
        }

        Member find(byte[] key, int start, int end) {
            for (Member member : inside) {
                if (Arrays.equals(member.name, 0, member.name.length, key, start, end)) {
                    return member;
                }
            }
            return null;
        }
    }

    private final Member root = new Member(new byte[0]);
    private final Bytes decoded = new Bytes();
    private Cell[] cells;
    /** The keys of the objects that are open: from where to where. */
    private int[] keys = new int[64];
    private int keyCount;

    JsonRecord(String[][] paths) {
        for (int field = 0; field < paths.length; field++) {
            Member place = root;
            for (String part : paths[field]) {
                byte[] name = Bytes.utf8(part);
                Member next = place.find(name, 0, name.length);
                if (next == null) {
                    next = new Member(name);
                    place.inside.add(next);
                }
                place = next;
            }
            place.field = field;
        }
    }

    @Override
    void read(byte[] line, Cell[] cells) throws BadRecord {
        begin(line);
        this.cells = cells;
        this.keyCount = 0;
        for (Cell cell : cells) {
            cell.kind = Cell.Kind.ABSENT;
        }
        space();
        if (peek() != '{') {
            throw BadRecord.SYNTAX;
        }
        object(root, 1);
        space();
        if (at < length) {
            throw BadRecord.SYNTAX;
        }
    }

    private void object(Member member, int depth) throws BadRecord {
        if (depth > DEEPEST) {
            throw BadRecord.TOO_DEEP;
        }
        at++;
        space();
        if (peek() == '}') {
            at++;
            return;
        }
        int first = keyCount;
        while (true) {
            if (peek() != '"') {
                throw BadRecord.SYNTAX;
            }
            int start = at;
            boolean escaped = string();
            Member found = member(member, start, at, escaped);
            note(start, at, escaped);
            space();
            if (peek() != ':') {
                throw BadRecord.SYNTAX;
            }
            at++;
            space();
            value(found, depth);
            space();
            int next = peek();
            at++;
            if (next == '}') {
                break;
            }
            if (next != ',') {
                throw BadRecord.SYNTAX;
            }
            space();
        }
        requireDifferent(first);
        keyCount = first;
    }

    private Member member(Member of, int start, int end, boolean escaped) {
        if (of == null || of.inside.isEmpty()) {
            return null;
        }
        if (!escaped) {
            return of.find(line, start + 1, end - 1);
        }
        JsonText.unescape(line, start, end, decoded.clear());
        return of.find(decoded.array, 0, decoded.length);
    }

    private void note(int start, int end, boolean escaped) {
        if (keyCount + 3 > keys.length) {
            keys = Arrays.copyOf(keys, 2 * keys.length);
        }
        keys[keyCount++] = start;
        keys[keyCount++] = end;
        keys[keyCount++] = escaped ? 1 : 0;
    }

    private void requireDifferent(int first) throws BadRecord {
        int count = (keyCount - first) / 3;
        boolean plain = count <= FEW;
        for (int key = first; plain && key < keyCount; key += 3) {
            plain = keys[key + 2] == 0;
        }
        if (plain) {
            for (int one = first; one < keyCount; one += 3) {
                for (int two = first; two < one; two += 3) {
                    if (Arrays.equals(line, keys[one], keys[one + 1], line, keys[two], keys[two + 1])) {
                        throw BadRecord.DUPLICATE;
                    }
                }
            }
            return;
        }
        Set<ByteBuffer> seen = new HashSet<>();
        for (int key = first; key < keyCount; key += 3) {
            Bytes name = new Bytes();
            JsonText.unescape(line, keys[key], keys[key + 1], name);
            if (!seen.add(ByteBuffer.wrap(name.copy()))) {
                throw BadRecord.DUPLICATE;
            }
        }
    }

    private void value(Member member, int depth) throws BadRecord {
        int start = at;
        Cell.Kind kind;
        switch (peek()) {
            case '"' -> kind = string() ? Cell.Kind.ESCAPED : Cell.Kind.TEXT;
            case '{' -> {
                object(member != null && member.field < 0 ? member : null, depth + 1);
                kind = Cell.Kind.NESTED;
            }
            case '[' -> {
                array(depth + 1);
                kind = Cell.Kind.NESTED;
            }
            case 't' -> kind = word("true", Cell.Kind.TRUE);
            case 'f' -> kind = word("false", Cell.Kind.FALSE);
            case 'n' -> kind = word("null", Cell.Kind.NULL);
            default -> kind = number();
        }
        if (member != null && member.field >= 0) {
            cells[member.field].set(kind, start, at);
        }
    }

    private void array(int depth) throws BadRecord {
        if (depth > DEEPEST) {
            throw BadRecord.TOO_DEEP;
        }
        at++;
        space();
        if (peek() == ']') {
            at++;
            return;
        }
        while (true) {
            value(null, depth);
            space();
            int next = peek();
            at++;
            if (next == ']') {
                return;
            }
            if (next != ',') {
                throw BadRecord.SYNTAX;
            }
            space();
        }
    }

    @Override
    void text(Cell cell, Bytes out) {
        if (cell.kind == Cell.Kind.ESCAPED) {
            JsonText.unescape(line, cell.start, cell.end, out);
        } else {
            out.add(line, cell.start + 1, cell.end - cell.start - 2);
        }
    }

    @Override
    void put(Cell cell, Bytes out) {
        if (cell.kind == Cell.Kind.ABSENT) {
            out.add(NOTHING);
        } else {
            out.add(line, cell.start, cell.end - cell.start);
        }
    }

    @Override
    byte[] nothing() {
        return NOTHING;
    }

    @Override
    byte[] unquoted(byte[] spelled) {
        if (spelled.length < 2 || spelled[0] != '"') {
            return spelled;
        }
        Bytes plain = new Bytes();
        JsonText.unescape(spelled, 0, spelled.length, plain);
        return plain.copy();
    }

    @Override
    void quotePlain(byte[] text, int length, Bytes out) {
        out.add((byte) '"');
        out.add(text, 0, length);
        out.add((byte) '"');
    }

    @Override
    void quote(byte[] text, int length, Bytes out) {
        JsonText.quote(text, length, out);
    }
}
