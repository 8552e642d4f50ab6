package zveil.flink;

import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * Names, each of which stands for itself and for all below it. A list may be of millions, so they are one
 * piece of memory, with a table of where each begins.
 */
final class NameList implements Serializable {
    private static final long serialVersionUID = 1L;
    /** Longer ones are no names. */
    private static final int LONGEST = 0xFFFF;

    /** In small letters, with a comma behind each. */
    private final byte[] names;
    /** Open addressing: where a name begins, plus one; 0 is free. Made where it is used. */
    private transient int[] table;

    /** Takes names with commas between, a letter for each byte. */
    NameList(String told) {
        names = (told + ",").getBytes(StandardCharsets.ISO_8859_1);
    }

    /** Whether a value is one of the names or below one. A dot and a port at its end do not matter. */
    boolean holds(Bytes value) {
        if (table == null) {
            table = made();
        }
        byte[] name = value.copy();
        int end = name.length;
        end -= end > 0 && name[end - 1] == '.' ? 1 : 0;
        int colon = 0;
        while (colon < end && name[colon] != ':') {
            colon++;
        }
        end = digits(name, colon + 1, end) ? colon : end;
        if (end > LONGEST) {
            return false;
        }
        for (int at = 0; at < end; at++) {
            name[at] += name[at] >= 'A' && name[at] <= 'Z' ? 'a' - 'A' : 0;
        }
        for (int start = 0; start <= end; start++) {
            boolean begins = start == 0 || name[start - 1] == '.';
            if (begins && table[slot(table, name, start, end)] != 0) {
                return true;
            }
        }
        return false;
    }

    private static boolean digits(byte[] text, int start, int end) {
        for (int at = start; at < end; at++) {
            if (text[at] < '0' || text[at] > '9') {
                return false;
            }
        }
        return true;
    }

    private int[] made() {
        int count = 0;
        for (byte each : names) {
            count += each == ',' ? 1 : 0;
        }
        int[] made = new int[Integer.highestOneBit(Math.max(count, 1)) << 2];
        int start = 0;
        for (int at = 0; at < names.length; at++) {
            if (names[at] == ',') {
                made[slot(made, names, start, at)] = start + 1;
                start = at + 1;
            }
        }
        return made;
    }

    /** The slot that holds a name, or the free one that it would be put into. One is always free. */
    private int slot(int[] slots, byte[] text, int start, int end) {
        // Nobody can flood it: what comes from outside is only looked for.
        int hash = 0;
        for (int at = start; at < end; at++) {
            hash = (hash ^ text[at]) * 0x01000193;
        }
        int slot = (hash ^ hash >>> 15) & slots.length - 1;
        while (slots[slot] != 0 && !isAt(slots[slot] - 1, text, start, end)) {
            slot = slot + 1 & slots.length - 1;
        }
        return slot;
    }

    private boolean isAt(int place, byte[] text, int start, int end) {
        int behind = place + end - start;
        return behind < names.length && names[behind] == ','
                && Arrays.equals(names, place, behind, text, start, end);
    }
}
