package zveil.flink;

/** Networks that an address lies in: 192.0.2.7, 192.0.2.0/24, 192.0.0.0/16. */
final class Networks implements Ladder.Step {
    private static final long serialVersionUID = 1L;
    private static final int WORDS = 8;

    /** Bits, finest first; where there are none, addresses of that kind have no labels. */
    private final int[] v4;
    private final int[] v6;

    Networks(Plan.Said said) {
        v4 = numbers(said.list("v4"));
        v6 = numbers(said.list("v6"));
    }

    private static int[] numbers(String[] texts) {
        return java.util.Arrays.stream(texts).mapToInt(Integer::parseInt).toArray();
    }

    @Override
    public int levels() {
        return Math.max(v4.length, v6.length);
    }

    @Override
    public void climb(String text, String[] labels, int from) {
        // What is behind it is the name of an interface.
        int percent = text.indexOf('%');
        String written = percent < 0 ? text : text.substring(0, percent);
        long four = four(written);
        int[] words = four < 0 ? words(written) : null;
        if (words != null && isMapped(words)) {
            four = (long) words[6] << 16 | words[7];
        }
        if (four >= 0) {
            for (int level = 0; level < v4.length; level++) {
                long network = v4[level] == 0 ? 0 : four >>> 32 - v4[level] << 32 - v4[level];
                labels[from + level] = told(network) + "/" + v4[level];
            }
        } else if (words != null) {
            for (int level = 0; level < v6.length; level++) {
                labels[from + level] = told(masked(words, v6[level])) + "/" + v6[level];
            }
        }
    }

    /** An IPv4 address that is written as an IPv6 one counts as IPv4. */
    private static boolean isMapped(int[] words) {
        int before = words[0] | words[1] | words[2] | words[3] | words[4];
        return before == 0 && words[5] == 0xFFFF;
    }

    private static int[] masked(int[] words, int bits) {
        int[] network = new int[WORDS];
        for (int place = 0; place < WORDS; place++) {
            int kept = Math.max(0, Math.min(16, bits - 16 * place));
            network[place] = words[place] & 0xFFFF << 16 - kept;
        }
        return network;
    }

    /** Reads four numbers up to 255, without zeros before them; -1 for anything else. */
    private static long four(String text) {
        String[] parts = text.split("\\.", -1);
        if (parts.length != 4) {
            return -1;
        }
        long address = 0;
        for (String part : parts) {
            int number = number(part, 10, 3);
            if (number < 0 || number > 255 || part.length() > 1 && part.charAt(0) == '0') {
                return -1;
            }
            address = address << 8 | number;
        }
        return address;
    }

    /** Reads the eight words of an IPv6 address; null for anything else. */
    private static int[] words(String text) {
        int gap = text.indexOf("::");
        int[] words = new int[WORDS];
        if (gap < 0) {
            return groups(text, words) == WORDS ? words : null;
        }
        int before = groups(text.substring(0, gap), words);
        int[] end = new int[WORDS];
        int behind = groups(text.substring(gap + 2), end);
        // Four numbers end an address, and the gap stands for one group at least.
        boolean fits = before >= 0 && behind >= 0 && before + behind < WORDS;
        if (!fits || text.lastIndexOf('.', gap) >= 0) {
            return null;
        }
        System.arraycopy(end, 0, words, WORDS - behind, behind);
        return words;
    }

    /** Reads groups with colons between, and counts them; -1 for anything else. */
    private static int groups(String text, int[] words) {
        if (text.isEmpty()) {
            return 0;
        }
        String[] parts = text.split(":", -1);
        int count = 0;
        for (int place = 0; place < parts.length; place++) {
            long four = place + 1 == parts.length ? four(parts[place]) : -1;
            int group = four < 0 ? number(parts[place], 16, 4) : 0;
            if (group < 0 || count + (four < 0 ? 1 : 2) > WORDS) {
                return -1;
            }
            if (four >= 0) {
                words[count++] = (int) (four >> 16);
                words[count++] = (int) (four & 0xFFFF);
            } else {
                words[count++] = group;
            }
        }
        return count;
    }

    private static int number(String text, int radix, int longest) {
        if (text.isEmpty() || text.length() > longest) {
            return -1;
        }
        int number = 0;
        for (int at = 0; at < text.length(); at++) {
            char each = text.charAt(at);
            int digit = each < 0x80 ? Character.digit(each, radix) : -1;
            if (digit < 0) {
                return -1;
            }
            number = number * radix + digit;
        }
        return number;
    }

    private static String told(long four) {
        return (four >> 24) + "." + (four >> 16 & 0xFF) + "." + (four >> 8 & 0xFF) + "." + (four & 0xFF);
    }

    /** Writes an address with the first of its longest runs of zeros left out (RFC 5952). */
    private static String told(int[] words) {
        int start = -1;
        int longest = 1;
        for (int place = 0; place < WORDS; place++) {
            int end = place;
            while (end < WORDS && words[end] == 0) {
                end++;
            }
            if (end - place > longest) {
                start = place;
                longest = end - place;
            }
            place = Math.max(place, end - 1);
        }
        StringBuilder text = new StringBuilder();
        for (int place = 0; place < WORDS; place++) {
            if (place == start) {
                text.append("::");
                place += longest - 1;
                continue;
            }
            if (!text.isEmpty() && text.charAt(text.length() - 1) != ':') {
                text.append(':');
            }
            text.append(Integer.toHexString(words[place]));
        }
        return text.toString();
    }
}
