//! Records that leave, written: released values as they came, veiled ones as null or as a text.

mod plain;
mod record;
mod watch;
mod written;

use super::csv::quote_csv;
use super::json::quote_json;
use super::pen::Piece;
use super::plan::{ATTRIBUTES, Empty, Hierarchy, Output, Plan, Template, TextFormat, path};
use super::rows::{Rows, Spot, value};
use super::stamp::Step;
use super::time::TimeFormat;
use crate::batch::VEILED;
use crate::pseudonym::Named;
use plain::{Leaving, Plain};
use record::{Record, write_spot};
pub(crate) use watch::Watch;
pub use written::{Marks, TextColumn, Written};

/// Writes records of one stream.
#[derive(Clone)]
pub(crate) struct Renderer {
    input: TextFormat,
    /// Names of fields are no paths.
    flat: bool,
    output: Output,
    template: Template,
    /// Fields that leave, and cells of a record: those and what is read beside them.
    fields: usize,
    cells: usize,
    /// Of each attribute that has coarser labels.
    ladders: Vec<Option<Labelled>>,
    /// Some values leave as others.
    swaps: bool,
    empty: Empty,
    /// For each attribute what stands for a value that is veiled.
    veils: Vec<Veil>,
    /// None: times leave as they came.
    step: Option<Step>,
    /// Every value leaves as it came, veiled or as a pseudonym.
    plain: Option<Plain>,
    /// It is noted where each record ends.
    marks: bool,
    /// What leaves is looked at too.
    pub(super) watch: Option<Watch>,
}

/// What stands for a veiled value.
#[derive(Clone, Debug)]
struct Veil {
    is_null: bool,
    /// Spelled as the output spells it.
    spelled: Piece,
}

impl Veil {
    fn new(text: Option<&str>, output: Output) -> Self {
        let plain = text.unwrap_or_default().as_bytes();
        let mut spelled = Vec::new();
        match output {
            Output::Text(TextFormat::Ndjson) if text.is_none() => spelled.extend(b"null"),
            Output::Text(TextFormat::Ndjson) => quote_json(plain, &mut spelled),
            Output::Text(TextFormat::Csv(delimiter)) => quote_csv(plain, delimiter, &mut spelled),
            Output::Text(TextFormat::Log(_)) | Output::Columns | Output::Nothing => {
                spelled.extend(plain);
            }
        }
        Self { is_null: text.is_none(), spelled: Piece::new(spelled) }
    }
}

/// Where the labels of an attribute are.
#[derive(Clone, Copy, Debug)]
struct Labelled {
    /// In [`Rows::coarser`].
    first: usize,
    levels: usize,
    /// The finest level is the value as it came, not a label.
    is_exact: bool,
}

impl Renderer {
    pub(crate) fn new(plan: &Plan) -> Self {
        let mut renderer = Self {
            input: plan.input,
            flat: plan.flat,
            output: plan.output,
            template: Template::new(&[]),
            fields: 0,
            cells: 0,
            ladders: labelled(plan),
            swaps: plan.swaps.iter().any(|share| *share > 0.0),
            empty: plan.empty,
            veils: (0..plan.attributes)
                .map(|number| plan.veiled.get(number).and_then(Option::as_deref))
                .map(|text| Veil::new(text, plan.output))
                .collect(),
            step: plan.leaving_step(),
            plain: Plain::new(plan),
            marks: false,
            watch: None,
        };
        renderer.set_fields(&plan.fields, plan.read_in_json().len());
        renderer
    }

    /// From here on it is noted where each record ends, and what its key is.
    pub(crate) fn marks_records(&mut self) {
        self.marks = true;
    }

    /// The same, that writes everything in the general way.
    #[cfg(test)]
    pub(crate) fn general(&self) -> Self {
        Self { plain: None, ..self.clone() }
    }

    /// The names of the fields that leave, and how many cells a record has.
    pub(crate) fn set_fields(&mut self, names: &[String], cells: usize) {
        let paths: Vec<_> = match self.input {
            TextFormat::Ndjson if !self.flat => names.iter().map(|name| path(name)).collect(),
            _ => names.iter().map(|name| vec![name.clone()]).collect(),
        };
        self.template = Template::new(&paths);
        if let Some(plain) = &mut self.plain {
            plain.set_fields(names.len(), &self.template);
        }
        self.fields = names.len();
        self.cells = cells;
    }

    /// The names of the fields, where the format begins with them.
    pub(crate) fn header(&self, names: &[String], out: &mut Vec<u8>) {
        let Output::Text(TextFormat::Csv(delimiter)) = self.output else { return };
        for (number, name) in names.iter().enumerate() {
            if number > 0 {
                out.push(delimiter);
            }
            quote_csv(name.as_bytes(), delimiter, out);
        }
        out.push(b'\n');
    }

    /// Whether a row leaves, by what was decided about it.
    pub(crate) fn leaves(&self, decisions: &[Vec<i8>], row: usize) -> bool {
        self.empty == Empty::Blank
            || decisions.is_empty()
            || decisions.iter().any(|column| column[row] != VEILED)
    }

    /// Writes the rows that leave. `decisions` are by attribute; the time format is that of the rows.
    /// Users leave under the keys that were found for them, or as they are.
    pub(crate) fn render(
        &self,
        block: &[u8],
        rows: &Rows,
        decisions: &[Vec<i8>],
        time_format: Option<TimeFormat>,
        named: Option<&Named>,
        written: &mut Written,
    ) {
        if self.output == Output::Columns {
            written.columns.resize_with(self.fields, TextColumn::default);
        }
        let is_released = |row: usize, column: &Vec<i8>| column[row] != VEILED;
        let leaving = self.leaving(decisions, rows.len());
        written.records += leaving.len() as u64;
        if self.marks {
            self.mark(block, rows, decisions, &leaving, &mut written.marks);
        }
        let mut made = Vec::new();
        if let Some(named) = named {
            let user = |row: &u32| {
                let row = *row as usize;
                (row, value(rows.users[row], block, &rows.decoded))
            };
            named.pseudonyms(leaving.iter().map(user), &mut made);
        }
        if self.plain.is_some() || self.watch.is_some() {
            let (leaving, made) = (&leaving[..], named.map(|_| &made[..]));
            let leaving = Leaving { block, rows, leaving, decisions, made };
            if let Some(watch) = &self.watch {
                watch.look(self, &leaving, &mut written.sights);
            }
            if let Some(plain) = &self.plain {
                let ends = self.marks.then_some(&mut written.marks.ends);
                return plain.render(self, &leaving, &mut written.text, ends);
            }
        }
        let mut scratch = Vec::new();
        for (place, row) in leaving.into_iter().enumerate() {
            let row = row as usize;
            let start = rows.starts[row];
            let cells = &rows.cells_of(row, self.cells)[..self.fields];
            let pseudonym = made.get(place).copied();
            let scratch = &mut scratch;
            let mut record = Record {
                of: self,
                block,
                rows,
                row,
                decisions,
                start,
                time_format,
                pseudonym,
                scratch,
            };
            let shown = |field: usize| {
                let attribute = field.wrapping_sub(ATTRIBUTES);
                decisions.get(attribute).is_none_or(|column| is_released(row, column))
            };
            match self.output {
                Output::Text(TextFormat::Ndjson) => {
                    record.json(cells, shown, &mut written.text);
                }
                Output::Text(TextFormat::Csv(delimiter)) => {
                    record.csv(cells, shown, delimiter, &mut written.text);
                }
                Output::Columns => record.columns(cells, shown, &mut written.columns),
                Output::Text(TextFormat::Log(_)) | Output::Nothing => {}
            }
            if self.marks {
                written.marks.ends.push(written.text.len());
            }
        }
    }

    /// Notes where the rows that leave came from, and their keys.
    fn mark(
        &self,
        block: &[u8],
        rows: &Rows,
        decisions: &[Vec<i8>],
        leaving: &[u32],
        marks: &mut Marks,
    ) {
        for row in leaving {
            let row = *row as usize;
            marks.starts.push(rows.starts[row]);
            let mut released =
                (0..decisions.len()).filter(|number| decisions[*number][row] != VEILED);
            let spot = released.next().and_then(|attribute| {
                let label = self.label(rows, row, attribute, decisions);
                label.or_else(|| rows.attributes[attribute].get(row).copied())
            });
            let found = spot.is_some_and(|spot| rows.spell(spot, block, &mut marks.keys.bytes));
            marks.keys.close(!found);
        }
    }
}

impl Renderer {
    /// The label, or the other value, that an attribute of a row leaves as where it is not the value as
    /// it came.
    #[inline(always)]
    fn label(
        &self,
        rows: &Rows,
        row: usize,
        attribute: usize,
        decisions: &[Vec<i8>],
    ) -> Option<Spot> {
        if self.swaps {
            let spot = rows.attributes.get(attribute)?.get(row).copied();
            if let Some(other) = spot.filter(|spot| spot.is_swapped()) {
                return Some(other);
            }
        }
        let Labelled { first, levels, is_exact } = (*self.ladders.get(attribute)?)?;
        // Levels are counted from the coarsest; what nobody decided about leaves as it is.
        let released = decisions.get(attribute).map_or(levels - 1, |column| column[row] as usize);
        match (levels - 1).saturating_sub(released) {
            0 if is_exact => None,
            0 => rows.attributes[attribute].get(row).copied(),
            above => rows.coarser[first + above - 1].get(row).copied(),
        }
    }
}

/// Where the labels of each attribute are among the coarser ones of a plan.
fn labelled(plan: &Plan) -> Vec<Option<Labelled>> {
    let mut first = 0;
    let one = |hierarchy: &Option<Hierarchy>| {
        let ladder = &hierarchy.as_ref()?.ladder;
        let found = Labelled { first, levels: ladder.levels(), is_exact: !ladder.takes_position() };
        first += ladder.levels() - 1;
        Some(found)
    };
    plan.hierarchies.iter().map(one).collect()
}
