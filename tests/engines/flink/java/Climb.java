package zveil.flink;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.Reader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Properties;

/**
 * For tests: the labels of texts, without Flink. It is told the number of an attribute, a file of texts
 * and one for their labels, all of it in digits; and says when these are written. Of an attribute that
 * has no levels it tells which texts count.
 */
final class Climb {
    private Climb() {}

    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        try (Reader file = Files.newBufferedReader(Path.of(arguments[0]), StandardCharsets.UTF_8)) {
            properties.load(file);
        }
        Plan plan = new Plan(properties);
        NameFilter[] filters = NameFilter.of(new Plan.Said(properties, ""));
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in));
        for (String order = orders.readLine(); order != null; order = orders.readLine()) {
            String[] told = order.split(" ");
            int number = Integer.parseInt(told[0]);
            Ladder ladder = plan.attributes[number].ladder;
            List<String> labels = new ArrayList<>();
            for (String text : Files.readAllLines(Path.of(told[1]))) {
                Worth worth = new Worth();
                worth.type = 't';
                worth.text.add(HexFormat.of().parseHex(text));
                labels.add(ladder == null
                        ? Boolean.toString(filters[number].passes(worth)) : climbed(ladder, worth));
            }
            Files.write(Path.of(told[2]), labels);
            System.out.println("written");
        }
    }

    private static String climbed(Ladder ladder, Worth worth) {
        StringBuilder told = new StringBuilder();
        for (String label : ladder.climb(worth.text)) {
            // A label is never empty.
            told.append(label == null ? "-" : HexFormat.of().formatHex(Bytes.utf8(label))).append(' ');
        }
        return told.toString();
    }
}
