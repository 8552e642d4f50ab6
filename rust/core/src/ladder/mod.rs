//! From a value to its coarser labels: `www.example.org` → `example.org` → `news`.
//!
//! ```text
//! value ─→ step ─→ step ─→ labels, finest first
//! text     domain  table   example.org, news
//! ```
//!
//! A step makes one or more labels of the text it is given; the next step is given the last of
//! them. Everything here is a pure function of the value: nothing is kept of it. A label that a value
//! does not have is missing, and so are those of the steps behind it; the gate passes over missing
//! ones. Each label is a function of the one before, so that labels are the nodes of a tree, and it
//! has one spelling, since whoever spells it in another way would stand out from the crowd.

mod bins;
mod cells;
mod dates;
mod decimal;
mod domain;
mod prefixes;
mod punycode;
mod segments;
mod table;
#[cfg(test)]
mod tests;
mod word;

pub use bins::Bins;
pub use cells::Cells;
pub use dates::{DatePart, Dates};
pub use domain::Suffixes;
pub use prefixes::Prefixes;
pub use segments::Segments;
pub use table::Table;

use crate::column::Value;
use crate::error::Error;
use crate::settings::MOST_LEVELS;
use std::io::Write;
use std::ops::Range;

/// So many values are looked up in a table at a time.
const AT_ONCE: usize = 16;

/// Where a label lies in the text that it was appended to; `None` for a missing one.
pub type Place = Option<Range<usize>>;

/// The labels of one value, appended to text that others may lie in before.
pub struct Labels<'a> {
    pub text: &'a mut Vec<u8>,
    pub places: &'a mut Vec<Place>,
}

impl Labels<'_> {
    fn push(&mut self, label: &[u8]) {
        self.write(|text| text.extend_from_slice(label));
    }

    fn write(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.text.len();
        write(self.text);
        self.places.push(Some(start..self.text.len()));
    }

    /// Keeps a text that is no label.
    fn keep(&mut self, text: &[u8]) -> Range<usize> {
        let start = self.text.len();
        self.text.extend_from_slice(text);
        start..self.text.len()
    }

    fn miss(&mut self, levels: usize) {
        self.places.extend(std::iter::repeat_n(None, levels));
    }
}

/// One step of a ladder.
#[derive(Debug)]
pub enum Step {
    Domain(Suffixes),
    Table(Table),
    Segments(Segments),
    Bins(Bins),
    Dates(Dates),
    Prefixes(Prefixes),
    /// Of a latitude and a longitude: only the first step can be this.
    Cells(Cells),
}

impl Step {
    /// How many labels it makes.
    fn levels(&self) -> usize {
        match self {
            Step::Domain(_) => 1,
            Step::Table(table) => table.levels(),
            Step::Segments(segments) => segments.levels(),
            Step::Bins(bins) => bins.levels(),
            Step::Dates(dates) => dates.levels(),
            Step::Prefixes(prefixes) => prefixes.levels(),
            Step::Cells(cells) => cells.levels(),
        }
    }

    fn climb(&self, finer: &[u8], labels: &mut Labels) {
        match self {
            Step::Domain(suffixes) => suffixes.climb(finer, labels),
            Step::Table(table) => table.put(table.find(table.look_for(finer), finer), labels),
            Step::Segments(segments) => segments.climb(finer, labels),
            Step::Bins(bins) => bins.climb(finer, labels),
            Step::Dates(dates) => dates.climb(finer, labels),
            Step::Prefixes(prefixes) => prefixes.climb(finer, labels),
            Step::Cells(cells) => labels.miss(cells.levels()),
        }
    }
}

/// The steps that lead from a value to its coarser labels.
///
/// ```
/// # use zveil_core::ladder::{Ladder, Labels, Segments, Step};
/// # use zveil_core::Value;
/// let ladder = Ladder::new(vec![Step::Segments(Segments::new("/", 2).unwrap())]).unwrap();
/// let (mut text, mut places) = (Vec::new(), Vec::new());
/// let mut labels = Labels { text: &mut text, places: &mut places };
/// ladder.climb(Some(Value::Text(b"a/b/c")), &mut labels);
/// let found: Vec<_> = places.iter().map(|place| place.clone().map(|at| &text[at])).collect();
/// assert_eq!(found, [Some(&b"a/b"[..]), Some(&b"a"[..])]);
/// ```
#[derive(Debug)]
pub struct Ladder {
    steps: Vec<Step>,
    labels: usize,
}

impl Ladder {
    pub fn new(steps: Vec<Step>) -> Result<Self, Error> {
        let refused = |rule: String, got: usize| {
            Err(Error::Setting { parameter: "hierarchy", rule, got: got.to_string() })
        };
        let is_cells = |step: &Step| matches!(step, Step::Cells(_));
        if let Some(place) = steps.iter().skip(1).position(is_cells) {
            return refused("expected cells as the first step".to_owned(), place + 1);
        }
        let labels = steps.iter().map(Step::levels).sum();
        let ladder = Self { steps, labels };
        if labels == 0 || ladder.levels() > MOST_LEVELS {
            let rule = format!("expected 1 to {MOST_LEVELS} levels with the value itself");
            return refused(rule, ladder.levels());
        }
        Ok(ladder)
    }

    /// How many labels it makes of a value.
    pub fn labels(&self) -> usize {
        self.labels
    }

    /// How many levels the gate is given: the value itself is one, but an exact position is not.
    pub fn levels(&self) -> usize {
        self.labels + usize::from(!self.takes_position())
    }

    /// Whether it is of a latitude and a longitude, not of a value.
    pub fn takes_position(&self) -> bool {
        matches!(self.steps.first(), Some(Step::Cells(_)))
    }

    /// Appends the labels of a value, finest first, each in its place.
    pub fn climb(&self, value: Option<Value>, labels: &mut Labels) {
        let mut spelled = Vec::new();
        match value.and_then(|value| text_of(value, &mut spelled)) {
            Some(text) => self.climb_steps(&self.steps, text, labels),
            None => labels.miss(self.labels),
        }
    }

    /// Appends the labels of many values, those of one after those of the other; nothing of the values
    /// may lie in the text that is appended to.
    ///
    /// A table may be larger than the caches. So several values at a time are brought as far as the
    /// table, and what will be looked at there is fetched for all of them at once.
    pub fn climb_many<'a>(
        &self,
        values: impl Iterator<Item = Option<Value<'a>>>,
        labels: &mut Labels,
    ) {
        let Some(at) = self.steps.iter().position(|step| matches!(step, Step::Table(_))) else {
            return values.for_each(|value| self.climb(value, labels));
        };
        let (before, rest) = self.steps.split_at(at);
        let Some((Step::Table(table), behind)) = rest.split_first() else { return };
        let head: usize = before.iter().map(Step::levels).sum();
        let mut values = values.peekable();
        while values.peek().is_some() {
            let first = labels.places.len();
            let mut keys = [const { None }; AT_ONCE];
            let mut spelled = Vec::new();
            let mut count = 0;
            for (key, value) in keys.iter_mut().zip(&mut values) {
                spelled.clear();
                let text = value.and_then(|value| text_of(value, &mut spelled));
                *key = match text {
                    Some(text) if before.is_empty() => Some(labels.keep(text)),
                    Some(text) => {
                        self.climb_steps(before, text, labels);
                        labels.places.last().cloned().flatten()
                    }
                    None => {
                        labels.miss(head);
                        None
                    }
                }
                .map(|place| (table.look_for(&labels.text[place.clone()]), place));
                labels.miss(self.labels - head);
                count += 1;
            }
            let looks = &keys[..count];
            looks.iter().flatten().for_each(|(look, _)| table.fetch(*look));
            for (number, key) in looks.iter().enumerate() {
                let Some((look, place)) = key else { continue };
                let found = table.find(*look, &labels.text[place.clone()]);
                let put = labels.places.len();
                table.put(found, labels);
                self.climb_on(behind, labels);
                // What stood for them until now.
                let own = first + number * self.labels + head;
                for level in 0..self.labels - head {
                    labels.places[own + level] = labels.places[put + level].take();
                }
                labels.places.truncate(put);
            }
        }
    }

    /// Appends the labels of a position, finest first, each in its place.
    pub fn climb_position(
        &self,
        latitude: Option<Value>,
        longitude: Option<Value>,
        labels: &mut Labels,
    ) {
        let Some((Step::Cells(cells), rest)) = self.steps.split_first() else {
            return labels.miss(self.labels);
        };
        cells.climb(latitude, longitude, labels);
        let last = labels.places.last().cloned().flatten();
        match last.map(|last| labels.text[last].to_vec()) {
            Some(text) => self.climb_steps(rest, &text, labels),
            None => labels.miss(self.labels - cells.levels()),
        }
    }

    fn climb_steps(&self, steps: &[Step], text: &[u8], labels: &mut Labels) {
        let Some((first, rest)) = steps.split_first() else { return };
        first.climb(text, labels);
        self.climb_on(rest, labels);
    }

    /// Goes on from the label that was appended last.
    fn climb_on(&self, steps: &[Step], labels: &mut Labels) {
        // Copied, for the next label is appended to the text that this one lies in.
        let mut finer = Vec::new();
        for (number, step) in steps.iter().enumerate() {
            let Some(last) = labels.places.last().cloned().flatten() else {
                return labels.miss(steps[number..].iter().map(Step::levels).sum());
            };
            if let Step::Table(table) = step {
                let key = &labels.text[last];
                let found = table.find(table.look_for(key), key);
                table.put(found, labels);
                continue;
            }
            finer.clear();
            finer.extend_from_slice(&labels.text[last]);
            step.climb(&finer, labels);
        }
    }
}

/// A value as text: numbers as they are printed, text as it is. `None` where there is none.
pub fn text_of<'a>(value: Value<'a>, spelled: &'a mut Vec<u8>) -> Option<&'a [u8]> {
    // Writing to memory does not fail.
    match value {
        Value::Text(text) | Value::Digits(text) => return Some(text),
        Value::Bytes(bytes) => return std::str::from_utf8(bytes).ok().map(str::as_bytes),
        Value::Integer(number) => _ = write!(spelled, "{number}"),
        Value::Unsigned(number) => _ = write!(spelled, "{number}"),
        Value::Float(number) if number.is_finite() => _ = write!(spelled, "{number:?}"),
        Value::Bool(truth) => _ = write!(spelled, "{truth}"),
        Value::Float(_) | Value::Prepared(_) => return None,
    }
    Some(spelled)
}
