//! Records that leave, written: released values as they came, veiled ones as null or as a text.

mod plain;
mod watch;

use super::cell::{Cell, Kind};
use super::csv::quote_csv;
use super::json::quote_json;
use super::pen::Piece;
use super::plan::{
    ATTRIBUTES, Empty, Hierarchy, Output, Plan, TIME, Template, TextFormat, USER, path,
};
use super::rows::{Rows, Spot, SpotKind, value};
use super::stamp::{self, Step};
use super::time::TimeFormat;
use crate::batch::VEILED;
use crate::meter::Sight;
use crate::pseudonym::{Named, Pseudonym};
use plain::{Leaving, Plain};
use std::io::Write;
pub(crate) use watch::Watch;

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

/// One field of the records that leave, for formats made of columns: text, or nothing.
#[derive(Clone, Debug, Default)]
pub struct TextColumn {
    /// Where each value ends in `bytes`.
    pub ends: Vec<u64>,
    pub is_null: Vec<bool>,
    pub bytes: Vec<u8>,
}

impl TextColumn {
    pub(crate) fn close(&mut self, is_null: bool) {
        self.ends.push(self.bytes.len() as u64);
        self.is_null.push(is_null);
    }
}

/// What leaves.
#[derive(Debug, Default)]
pub struct Written {
    pub text: Vec<u8>,
    /// For [`Output::Columns`]: the fields, in the plan's order.
    pub columns: Vec<TextColumn>,
    /// Records in it.
    pub records: u64,
    /// What an observer sees of it, where one is watched for.
    pub sights: Vec<Sight>,
    /// Of each record, where they are asked for.
    pub marks: Marks,
}

/// What is told of records beside their text.
#[derive(Debug, Default)]
pub struct Marks {
    /// Where each came from: the place in its block.
    pub(crate) starts: Vec<u32>,
    /// Where it ends in the text, behind its line break.
    pub(crate) ends: Vec<usize>,
    /// The first of its values that is released, as text and as it leaves.
    pub keys: TextColumn,
}

impl Written {
    /// Each record without its line break, where they were marked.
    pub fn records(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.marks.ends.iter().map(move |end| {
            let record = &self.text[start..end.saturating_sub(1).max(start)];
            start = *end;
            record
        })
    }
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

    /// Writes the rows that leave. `decisions` are by attribute, and those of this part begin at
    /// `first`; the time format is that of the rows. Users leave under the keys that were found for
    /// them, or as they are.
    pub(crate) fn render(
        &self,
        block: &[u8],
        rows: &Rows,
        (decisions, first): (&[Vec<i8>], usize),
        time_format: Option<TimeFormat>,
        named: Option<&Named>,
        written: &mut Written,
    ) {
        if self.output == Output::Columns {
            written.columns.resize_with(self.fields, TextColumn::default);
        }
        let is_released = |row: usize, column: &Vec<i8>| column[first + row] != VEILED;
        let leaving = self.leaving(decisions, first, rows.len());
        written.records += leaving.len() as u64;
        if self.marks {
            self.mark(block, rows, (decisions, first), &leaving, &mut written.marks);
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
            let decisions = (decisions, first);
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
            let decided = (decisions, first + row);
            let mut record = Record {
                of: self,
                block,
                rows,
                row,
                decided,
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
        (decisions, first): (&[Vec<i8>], usize),
        leaving: &[u32],
        marks: &mut Marks,
    ) {
        for row in leaving {
            let row = *row as usize;
            marks.starts.push(rows.starts[row]);
            let mut released =
                (0..decisions.len()).filter(|number| decisions[*number][first + row] != VEILED);
            let spot = released.next().and_then(|attribute| {
                let label = self.label(rows, row, attribute, (decisions, first + row));
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
        (decisions, at): (&[Vec<i8>], usize),
    ) -> Option<Spot> {
        if self.swaps {
            let spot = rows.attributes.get(attribute)?.get(row).copied();
            if let Some(other) = spot.filter(|spot| spot.is_swapped()) {
                return Some(other);
            }
        }
        let Labelled { first, levels, is_exact } = (*self.ladders.get(attribute)?)?;
        // Levels are counted from the coarsest; what nobody decided about leaves as it is.
        let released = decisions.get(attribute).map_or(levels - 1, |column| column[at] as usize);
        match (levels - 1).saturating_sub(released) {
            0 if is_exact => None,
            0 => rows.attributes[attribute].get(row).copied(),
            above => rows.coarser[first + above - 1].get(row).copied(),
        }
    }
}

/// A record that is being written.
struct Record<'a> {
    of: &'a Renderer,
    block: &'a [u8],
    rows: &'a Rows,
    row: usize,
    /// The decisions of all rows by attribute, and the place of this row's.
    decided: (&'a [Vec<i8>], usize),
    start: u32,
    time_format: Option<TimeFormat>,
    /// What the user leaves as; the inner `None` where there is none. The outer: as it is.
    pseudonym: Option<Option<Pseudonym>>,
    scratch: &'a mut Vec<u8>,
}

impl Record<'_> {
    #[inline(always)]
    fn json(&mut self, cells: &[Cell], shown: impl Fn(usize) -> bool, out: &mut Vec<u8>) {
        for (before, field) in &self.of.template.values {
            before.put(out);
            if !shown(*field) {
                self.of.veils[*field - ATTRIBUTES].spelled.put(out);
            } else if *field == TIME && self.of.step.is_some() {
                self.json_time(&cells[TIME], out);
            } else if let (USER, Some(pseudonym)) = (*field, &self.pseudonym) {
                match pseudonym {
                    Some(name) => {
                        out.push(b'"');
                        name.put(out);
                        out.push(b'"');
                    }
                    None => out.extend_from_slice(b"null"),
                }
            } else if let Some(spot) = self.respelled(*field) {
                write_spot(spot, self.rows, true, out);
            } else {
                self.json_value(&cells[*field], *field == TIME, out);
            }
        }
        self.of.template.end.put(out);
        for (key, value) in self.rows.rest_of(self.row) {
            if out.last() != Some(&b'{') {
                out.push(b',');
            }
            out.extend_from_slice(Rows::raw(self.block, self.start, key));
            out.push(b':');
            out.extend_from_slice(Rows::raw(self.block, self.start, value));
        }
        out.extend_from_slice(b"}\n");
    }

    /// A rounded time, within quotes if it was, or is no number.
    #[inline(never)]
    fn json_time(&self, cell: &Cell, out: &mut Vec<u8>) {
        let Some((format, time)) = self.rounded() else {
            return out.extend_from_slice(b"null");
        };
        let was_quoted = self.of.input == TextFormat::Ndjson
            && matches!(cell.kind, Kind::Text | Kind::EscapedText);
        let quotes: &[u8] = if was_quoted || format == TimeFormat::Iso { b"\"" } else { b"" };
        out.extend_from_slice(quotes);
        stamp::write(format, time, out);
        out.extend_from_slice(quotes);
    }

    /// The time as it leaves where it is rounded; `None` where there is none.
    fn rounded(&self) -> Option<(TimeFormat, i64)> {
        let time = self.of.step?.floor(self.rows.times[self.row])?;
        Some((self.time_format?, time))
    }

    #[inline(always)]
    fn json_value(&mut self, cell: &Cell, is_time: bool, out: &mut Vec<u8>) {
        if self.of.input == TextFormat::Ndjson && cell.kind != Kind::Absent {
            return Rows::put(out, self.block, self.start, cell);
        }
        let raw = Rows::raw(self.block, self.start, cell);
        match cell.kind {
            Kind::Absent | Kind::Null => out.extend_from_slice(b"null"),
            // CSV knows no types; of a time it is known that it is a number, or that it is not.
            Kind::Text if is_time && is_json_number(raw) => out.extend_from_slice(raw),
            Kind::Text => quote_json(raw, out),
            _ => {
                self.scratch.clear();
                self.of.input.decode(raw, self.scratch);
                quote_json(self.scratch, out);
            }
        }
    }

    fn csv(
        &mut self,
        cells: &[Cell],
        shown: impl Fn(usize) -> bool,
        delimiter: u8,
        out: &mut Vec<u8>,
    ) {
        let same = self.of.input == TextFormat::Csv(delimiter);
        for (field, cell) in cells.iter().enumerate() {
            if field > 0 {
                out.push(delimiter);
            }
            if !shown(field) {
                self.of.veils[field - ATTRIBUTES].spelled.put(out);
            } else if field == TIME && self.of.step.is_some() {
                if let Some((format, time)) = self.rounded() {
                    stamp::write(format, time, out);
                }
            } else if let (USER, Some(pseudonym)) = (field, &self.pseudonym) {
                pseudonym.iter().for_each(|name| name.put(out));
            } else if same
                && !cell.quoted
                && self.label(field).is_none()
                && !self.holds_return(cell)
            {
                Rows::put(out, self.block, self.start, cell);
            } else if let Some(spot) = self.respelled(field) {
                self.scratch.clear();
                let mut text = std::mem::take(self.scratch);
                write_spot(spot, self.rows, false, &mut text);
                quote_csv(&text, delimiter, out);
                *self.scratch = text;
            } else if let Some(text) = self.text(cell) {
                let text = text.to_vec();
                quote_csv(&text, delimiter, out);
            }
        }
        out.push(b'\n');
    }

    fn columns(
        &mut self,
        cells: &[Cell],
        shown: impl Fn(usize) -> bool,
        columns: &mut [TextColumn],
    ) {
        for (field, (cell, column)) in cells.iter().zip(columns).enumerate() {
            let text = if !shown(field) {
                let veil = &self.of.veils[field - ATTRIBUTES];
                veil.spelled.put(&mut column.bytes);
                !veil.is_null
            } else if let (USER, Some(pseudonym)) = (field, &self.pseudonym) {
                pseudonym.iter().for_each(|name| name.put(&mut column.bytes));
                pseudonym.is_some()
            } else if field == TIME {
                // Told in one way: nanoseconds. The caller makes a time of it.
                let exact = Some(self.rows.times[self.row]).filter(|time| *time != i64::MIN);
                let time = match self.of.step {
                    Some(step) => exact.and_then(|time| step.floor(time)),
                    None => exact,
                };
                column.bytes.extend_from_slice(&time.unwrap_or(i64::MIN).to_le_bytes());
                time.is_some()
            } else if let Some(spot) = self.respelled(field) {
                write_spot(spot, self.rows, false, &mut column.bytes);
                spot.kind() != SpotKind::Missing
            } else if let Some(text) = self.text(cell) {
                column.bytes.extend_from_slice(text);
                true
            } else {
                false
            };
            column.close(!text);
        }
    }

    /// As [`Renderer::label`], of a field.
    #[inline(always)]
    fn label(&self, field: usize) -> Option<Spot> {
        self.of.label(self.rows, self.row, field.checked_sub(ATTRIBUTES)?, self.decided)
    }

    /// The value of an attribute that JSON can spell in several ways. It leaves in one: whoever
    /// spells it in a way of their own would stand out from the crowd that they are released with.
    #[inline(always)]
    fn respelled(&self, field: usize) -> Option<Spot> {
        if let Some(label) = self.label(field) {
            return Some(label);
        }
        if self.of.input != TextFormat::Ndjson {
            return None;
        }
        let spot = *self.rows.attributes.get(field.checked_sub(ATTRIBUTES)?)?.get(self.row)?;
        spot.has_spellings().then_some(spot)
    }

    /// Some readers take a CR for the end of a line, all of them one before a line feed.
    fn holds_return(&self, cell: &Cell) -> bool {
        memchr::memchr(b'\r', Rows::raw(self.block, self.start, cell)).is_some()
    }

    /// A value as plain text; `None` where there is none. JSON that is no string stays JSON.
    fn text(&mut self, cell: &Cell) -> Option<&[u8]> {
        let is_json = self.of.input == TextFormat::Ndjson;
        let raw = Rows::raw(self.block, self.start, cell);
        match cell.kind {
            Kind::Absent | Kind::Null => None,
            Kind::Text if is_json => Some(&raw[1..raw.len() - 1]),
            Kind::EscapedText => {
                self.scratch.clear();
                self.of.input.decode(raw, self.scratch);
                Some(self.scratch)
            }
            _ => Some(raw),
        }
    }
}

/// Writes a value in the one way it leaves.
fn write_spot(spot: Spot, rows: &Rows, quoted: bool, out: &mut Vec<u8>) {
    match spot.kind() {
        SpotKind::SwappedWord => out.extend_from_slice(spot.of(&rows.decoded)),
        SpotKind::Decoded | SpotKind::SwappedText => {
            let text = spot.of(&rows.decoded);
            if quoted { quote_json(text, out) } else { out.extend_from_slice(text) }
        }
        // As Python prints it, near enough: the fewest digits, and never those of an integer.
        // Writing to memory does not fail.
        SpotKind::Missing if quoted => out.extend_from_slice(b"null"),
        SpotKind::Missing => {}
        SpotKind::Float => _ = write!(out, "{:?}", spot.float()),
        _ => out.push(b'0'),
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

fn is_json_number(text: &[u8]) -> bool {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let (whole, fraction) = match memchr::memchr(b'.', digits) {
        Some(dot) => (&digits[..dot], Some(&digits[dot + 1..])),
        None => (digits, None),
    };
    let all_digits = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    all_digits(whole) && (whole.len() == 1 || whole[0] != b'0') && fraction.is_none_or(all_digits)
}
