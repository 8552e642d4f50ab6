package zveil.flink;

import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** From a value to its coarser labels, finest first; a label that a value does not have is null. */
final class Ladder implements Serializable {
    private static final long serialVersionUID = 1L;

    /** One step: labels of the text that the one before made last. */
    interface Step extends Serializable {
        int levels();

        void climb(String text, String[] labels, int from);
    }

    private final List<Step> steps;
    final int labels;

    Ladder(List<Step> steps) {
        this.steps = new ArrayList<>(steps);
        this.labels = steps.stream().mapToInt(Step::levels).sum();
    }

    String[] climb(Bytes value) {
        String[] found = new String[labels];
        String text = new String(value.array, 0, value.length, StandardCharsets.UTF_8);
        int from = 0;
        for (Step step : steps) {
            step.climb(text, found, from);
            from += step.levels();
            text = found[from - 1];
            if (text == null) {
                break;
            }
        }
        return found;
    }

    /** The first segments of a path: /a/b/c, /a/b, /a. */
    record Segments(String separator, int levels) implements Step {
        @Override
        public void climb(String path, String[] labels, int from) {
            boolean rooted = path.startsWith(separator);
            StringBuilder label = new StringBuilder(rooted ? separator : "");
            List<String> found = new ArrayList<>();
            int start = 0;
            while (start <= path.length() && found.size() < levels) {
                int cut = path.indexOf(separator, start);
                String segment = path.substring(start, cut < 0 ? path.length() : cut);
                start = cut < 0 ? path.length() + 1 : cut + separator.length();
                if (!segment.isEmpty()) {
                    label.append(found.isEmpty() ? "" : separator).append(segment);
                    found.add(label.toString());
                }
            }
            if (found.isEmpty() && rooted) {
                found.add(separator);
            }
            for (int level = 0; level < levels && !found.isEmpty(); level++) {
                labels[from + level] = found.get(Math.min(levels - 1 - level, found.size() - 1));
            }
        }
    }

    /** Labels that someone wrote down, by the exact text of the value. */
    record Table(HashMap<String, String[]> rows, int levels) implements Step {
        static Table of(Map<String, String[]> rows, int levels) {
            return new Table(new HashMap<>(rows), levels);
        }

        @Override
        public void climb(String text, String[] labels, int from) {
            String[] row = rows.get(text);
            if (row != null) {
                System.arraycopy(row, 0, labels, from, row.length);
            }
        }
    }
}
