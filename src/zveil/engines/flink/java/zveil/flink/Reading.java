package zveil.flink;

import java.util.function.Consumer;

/** From a record to its observations: what is decided by, and what would leave. */
final class Reading {
    private static final byte[] MISSING = {'n'};

    private final Plan plan;
    private final NameFilter[] filters;
    private final Notation notation;
    private final Moment moment;
    private final Pseudonyms pseudonyms;
    private final Code users;
    private final Code[] values;
    private final Cell[] cells;
    private final Worth user = new Worth();
    private final Worth[] worths;
    private final Bytes text = new Bytes();
    private final Bytes name = new Bytes();

    /** The time of the record that was read last. */
    private long time;

    Reading(Plan plan, NameFilter[] filters) {
        this.plan = plan;
        this.filters = filters;
        notation = Notation.of(plan);
        moment = new Moment(plan.timeFormat);
        pseudonyms = plan.pseudonym.equals("raw")
                ? null : new Pseudonyms(plan.pseudonym, plan.userKey, plan.rotate);
        users = new Code(Code.derive(plan.gateKey, "flink users", 16));
        values = new Code[plan.attributes.length];
        worths = new Worth[plan.attributes.length];
        for (int number = 0; number < values.length; number++) {
            String purpose = "flink values " + plan.attributes[number].label;
            values[number] = new Code(Code.derive(plan.gateKey, purpose, 16));
            worths[number] = new Worth();
        }
        cells = new Cell[Math.max(plan.paths.length, plan.places.length)];
        for (int field = 0; field < cells.length; field++) {
            cells[field] = new Cell();
        }
    }

    /** Decides by times which observations count. */
    interface Admission {
        boolean admits(int attribute, long time, boolean complete);

        /** A value that a list leaves out: as if there were none. */
        void leaveOut();
    }

    /** Reads a record, all of it or nothing. */
    void read(byte[] line, Admission admission, Consumer<Observation> out) throws BadRecord {
        if (line.length > plan.maxLine) {
            throw BadRecord.TOO_LONG;
        }
        notation.read(line, cells);
        boolean any = false;
        for (int number = 0; number < worths.length; number++) {
            any |= cells[Plan.ATTRIBUTES + number].kind != Cell.Kind.ABSENT;
        }
        if (!any) {
            throw BadRecord.MISSING;
        }
        time = time(cells[Plan.TIME]);
        user.takeUser(notation, cells[Plan.USER]);
        for (int number = 0; number < worths.length; number++) {
            worths[number].takeValue(notation, cells[Plan.ATTRIBUTES + number]);
        }
        for (int number = 0; number < worths.length; number++) {
            boolean complete = user.type != 0 && worths[number].type != 0 && time != Moment.NONE;
            boolean admitted = counts(number, admission) && admission.admits(number, time, complete);
            if (admitted || plan.blank) {
                out.accept(observation(number, !admitted));
            }
        }
    }

    private boolean counts(int number, Admission admission) {
        boolean counts = worths[number].type == 0 || filters[number].passes(worths[number]);
        if (!counts) {
            admission.leaveOut();
        }
        return counts;
    }

    private long time(Cell cell) throws BadRecord {
        text.clear();
        switch (cell.kind) {
            case ABSENT -> throw BadRecord.MISSING;
            case NULL -> {
                return Moment.NONE;
            }
            case TEXT, ESCAPED -> notation.text(cell, text);
            case INTEGER, NUMBER -> notation.put(cell, text);
            default -> throw BadRecord.WRONG_TYPE;
        }
        return moment.read(text.array, text.length);
    }

    private Observation observation(int attribute, boolean veiled) {
        Observation made = new Observation();
        made.attribute = attribute;
        made.veiled = veiled;
        made.time = time;
        Worth worth = worths[attribute];
        int levels = veiled ? 0 : plan.levels(attribute);
        made.codes = new long[3 * levels];
        made.labels = new byte[levels][];
        if (!veiled) {
            Ladder ladder = plan.attributes[attribute].ladder;
            Bytes plain = worth.type == 'f' ? worth.spelled : worth.text;
            String[] labels = ladder == null ? new String[0] : ladder.climb(plain);
            users.of(user.text.array, 0, user.text.length);
            code(made, values[attribute], worth, labels);
        } else {
            // Anywhere, but always there: records of one text stay in their order.
            values[attribute].of(worth.text.array, 0, worth.text.length);
            made.high = values[attribute].high;
            made.low = values[attribute].low;
        }
        render(made, attribute);
        return made;
    }

    /** A level is known by its whole path from the coarsest: each hash takes in the one before. */
    private void code(Observation made, Code code, Worth worth, String[] labels) {
        long high = 0;
        long low = 0;
        boolean split = false;
        for (int level = labels.length; level >= 0; level--) {
            text.clear();
            put(high);
            put(low);
            boolean missing = level > 0 && labels[level - 1] == null;
            if (missing) {
                text.add(MISSING);
            } else if (level > 0) {
                byte[] label = Bytes.utf8(labels[level - 1]);
                text.add((byte) 't');
                text.add(label);
                name.clear();
                notation.quote(label, label.length, name);
                made.labels[level] = name.copy();
            } else {
                text.add(worth.type);
                text.add(worth.text.array, 0, worth.text.length);
                made.labels[0] = worth.spelled.copy();
            }
            code.of(text.array, 0, text.length);
            high = code.high;
            low = code.low;
            if (missing) {
                continue;
            }
            if (!split) {
                made.high = high;
                made.low = low;
                split = true;
            }
            made.codes[3 * level] = high;
            made.codes[3 * level + 1] = low;
            // The same person has another hash for each value.
            text.clear();
            put(users.high ^ high);
            put(users.low ^ low);
            code.of(text.array, 0, text.length);
            made.codes[3 * level + 2] = code.high;
        }
    }

    private void put(long word) {
        for (int shift = 56; shift >= 0; shift -= 8) {
            text.add((byte) (word >>> shift));
        }
    }

    private void render(Observation made, int attribute) {
        text.clear();
        for (int piece = 0; piece < plan.pieces.length; piece++) {
            text.add(plan.pieces[piece]);
            int field = plan.fields[piece];
            int number = field - Plan.ATTRIBUTES;
            if (number == attribute) {
                made.before = text.copy();
                text.clear();
            } else if (field == Plan.TIME && plan.step > 0) {
                putTime(cells[field]);
            } else if (field == Plan.USER && pseudonyms != null) {
                putUser();
            } else if (number >= 0 && number < plan.attributes.length) {
                // It is decided, and leaves, by itself.
                text.add(plan.attributes[number].veil);
            } else {
                notation.put(cells[field], text);
            }
        }
        text.add(plan.end);
        made.behind = text.copy();
    }

    private void putUser() {
        if (user.type == 0 || time == Moment.NONE && plan.rotate > 0) {
            text.add(notation.nothing());
            return;
        }
        name.clear();
        pseudonyms.put(user.text.array, user.text.length, time, name);
        notation.quotePlain(name.array, name.length, text);
    }

    private void putTime(Cell cell) {
        if (time == Moment.NONE || time < Long.MIN_VALUE + plan.step) {
            text.add(notation.nothing());
            return;
        }
        byte[] told = moment.told(time - Math.floorMod(time, plan.step));
        boolean wasText = cell.kind == Cell.Kind.TEXT || cell.kind == Cell.Kind.ESCAPED;
        if (wasText || moment.isIso()) {
            notation.quotePlain(told, told.length, text);
        } else {
            text.add(told);
        }
    }
}
