package zveil.flink;

/** How records are written: where fields are in one, and how values are told of it again. */
abstract class Notation {
    /** The record that was read last. */
    protected byte[] line;

    /** Finds the fields of a record. */
    abstract void read(byte[] line, Cell[] cells) throws BadRecord;

    /** Adds the text of a cell that is one. */
    abstract void text(Cell cell, Bytes out);

    /** Adds a cell as it leaves where nobody changes it. */
    abstract void put(Cell cell, Bytes out);

    /** Adds a text as a value. */
    abstract void quote(byte[] text, int length, Bytes out);

    /** Adds what needs no quotes but where every text has them. */
    abstract void quotePlain(byte[] text, int length, Bytes out);

    /** What stands where there is no value. */
    abstract byte[] nothing();

    /** Gives the text of a value as it leaves: the key of a message. */
    abstract byte[] unquoted(byte[] spelled);

    static Notation of(Plan plan) {
        return switch (plan.format) {
            case "ndjson" -> new JsonRecord(plan.paths);
            case "csv" -> new CsvRecord((byte) ',', plan.places, plan.columns);
            case "tsv" -> new CsvRecord((byte) '\t', plan.places, plan.columns);
            default -> throw new IllegalArgumentException("format: " + plan.format);
        };
    }
}
