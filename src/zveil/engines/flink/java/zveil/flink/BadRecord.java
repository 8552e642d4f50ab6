package zveil.flink;

/** What came is no record that could be decided. It says what is wrong, and nothing of what came. */
final class BadRecord extends Exception {
    private static final long serialVersionUID = 1L;

    static final BadRecord SYNTAX = new BadRecord("syntax");
    static final BadRecord NOT_UTF8 = new BadRecord("not UTF-8");
    static final BadRecord DUPLICATE = new BadRecord("a field twice");
    static final BadRecord TOO_DEEP = new BadRecord("nested too deep");
    static final BadRecord TOO_LONG = new BadRecord("too long");
    static final BadRecord MISSING = new BadRecord("a field is missing");
    static final BadRecord WRONG_TYPE = new BadRecord("wrong type");
    static final BadRecord TIME = new BadRecord("no time");
    static final BadRecord COLUMNS = new BadRecord("number of columns");

    private BadRecord(String what) {
        // Thrown for every bad record: where it comes from is of no use, and costly.
        super(what, null, false, false);
    }
}
