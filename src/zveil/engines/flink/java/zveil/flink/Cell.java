package zveil.flink;

/** Where a value lies in its record, quotes included, and what it is. */
final class Cell {
    enum Kind { ABSENT, NULL, TEXT, ESCAPED, INTEGER, NUMBER, TRUE, FALSE, NESTED }

    Kind kind = Kind.ABSENT;
    int start;
    int end;

    void set(Kind kind, int start, int end) {
        this.kind = kind;
        this.start = start;
        this.end = end;
    }
}
