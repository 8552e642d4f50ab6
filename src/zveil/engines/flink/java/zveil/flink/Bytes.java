package zveil.flink;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** Bytes that are added to. */
final class Bytes {
    byte[] array = new byte[64];
    int length;

    static byte[] ascii(String text) {
        return text.getBytes(StandardCharsets.US_ASCII);
    }

    static byte[] utf8(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    Bytes clear() {
        length = 0;
        return this;
    }

    void add(byte one) {
        if (length == array.length) {
            array = Arrays.copyOf(array, 2 * length);
        }
        array[length++] = one;
    }

    void add(byte[] more) {
        add(more, 0, more.length);
    }

    void add(byte[] more, int start, int count) {
        if (length + count > array.length) {
            array = Arrays.copyOf(array, Math.max(2 * array.length, length + count));
        }
        System.arraycopy(more, start, array, length, count);
        length += count;
    }

    byte[] copy() {
        return Arrays.copyOf(array, length);
    }

    boolean startsWith(byte[] text, int from) {
        return from + text.length <= length
                && Arrays.equals(array, from, from + text.length, text, 0, text.length);
    }
}
