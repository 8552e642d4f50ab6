package zveil.flink;

import java.io.Serializable;

/** Which values of an attribute count at all, before anything is decided. */
final class NameFilter implements Serializable {
    private static final long serialVersionUID = 1L;

    /** Null where there is no list, which is not one without names. */
    private final NameList only;
    private final NameList except;

    private NameFilter(NameList only, NameList except) {
        this.only = only;
        this.except = except;
    }

    /** One for each attribute. They are no part of the plan: lists are long, and readers' alone. */
    static NameFilter[] of(Plan.Said said) {
        NameFilter[] filters = new NameFilter[(int) said.number("attributes")];
        for (int number = 0; number < filters.length; number++) {
            Plan.Said attribute = said.below("attribute." + number);
            filters[number] = new NameFilter(list(attribute.text("only")), list(attribute.text("except")));
        }
        return filters;
    }

    private static NameList list(String told) {
        return told.isEmpty() ? null : new NameList(told);
    }

    /** Whether a value counts. One that is no text is in no list. */
    boolean passes(Worth worth) {
        boolean text = worth.type == 't';
        return (only == null || text && only.holds(worth.text))
                && (except == null || !text || !except.holds(worth.text));
    }
}
