//! Records that come as messages of their own: decided many at a time, each told apart from the others.

use super::part::Part;
use super::{Beside, Way, WayError, blank};
use crate::batch::VEILED;
use crate::gate::Gate;
use crate::text::csv::quote_csv;
use crate::text::messages::{Block, Messages};
use crate::text::plan::TextFormat;
use crate::text::problem::Problem;
use crate::text::read::{Extent, MOST_TROUBLES, Trouble, Until};
use crate::text::render::{TextColumn, Written};
use crate::text::rows::Spot;

use super::records::ROWS;
use std::sync::Arc;

/// What leaves of some messages.
#[derive(Debug, Default)]
pub struct Left {
    /// The number of the message that each record is from, counted from 0.
    pub places: Vec<usize>,
    /// The records, one behind the other; where each ends and its key are in the marks.
    pub parts: Vec<Written>,
    /// What is wrong with bad messages; the line is the number of the message, counted from 1.
    pub troubles: Vec<Trouble>,
}

/// Messages with the keys that they belong under.
#[derive(Debug, Default)]
pub struct Keyed {
    pub places: Vec<usize>,
    /// What is left of each message for one of its attributes; null for the message as it is.
    pub values: TextColumn,
    pub keys: TextColumn,
    pub troubles: Vec<Trouble>,
}

impl Way {
    /// From here on messages come. CSV needs the names of its columns, since none has a header.
    pub fn begin_messages(&mut self, columns: &[String]) -> Result<(), WayError> {
        self.at_start = false;
        self.header_written = true;
        Arc::make_mut(&mut self.renderer).marks_records();
        if let TextFormat::Csv(delimiter) = self.plan.input {
            let mut header = Vec::new();
            for (number, name) in columns.iter().enumerate() {
                header.extend((number > 0).then_some(delimiter));
                quote_csv(name.as_bytes(), delimiter, &mut header);
            }
            header.push(b'\n');
            self.read_header(&header, true)?;
            self.line = 0;
            self.tally.lines = 0;
        }
        Ok(())
    }

    /// To be filled and decided.
    pub fn messages(&self) -> Messages {
        Messages::new(self.plan.input, self.plan.max_line)
    }

    /// Decides messages in their order. `gates` are as for [`Way::feed`]. `silent`: they are decided
    /// to know what was seen, and nothing leaves.
    pub fn decide_messages(
        &mut self,
        gates: &mut [&mut Gate],
        mut beside: Beside<'_>,
        messages: &Messages,
        silent: bool,
    ) -> Result<Left, WayError> {
        let mut left = Left::default();
        for block in &messages.blocks {
            let before = self.line;
            let mut written = vec![blank(&mut self.spare)];
            self.silent = silent;
            let outcome =
                self.run_records(gates, beside.again(), &block.text, 0, true, &mut written);
            self.silent = false;
            self.parts.iter_mut().for_each(|part| part.named.clear());
            outcome?;
            for part in &written {
                place(block, &part.marks.starts, &mut left.places);
            }
            left.parts.append(&mut written);
            self.settle_troubles(block, before, &mut left.troubles);
        }
        if let Some(keyring) = beside.keyring {
            keyring.settle()?;
        }
        self.count_bad(messages, &mut left.troubles);
        Ok(left)
    }

    /// Finds the key of each message: the text of its attribute, at the coarsest level. A message with
    /// several attributes becomes one for each that has a value, with the others taken out of it.
    /// Nothing is decided.
    pub fn key_messages(&mut self, messages: &Messages) -> Result<Keyed, WayError> {
        let mut keyed = Keyed::default();
        for block in &messages.blocks {
            let before = self.line;
            let text = &block.text[..];
            let utf8 = simdutf8::basic::from_utf8(text).is_ok();
            if self.time_format().is_none() {
                self.find_time_format(text, 0, true);
            }
            let end = text.len();
            let mut extent = Extent { start: 0, end, last: true, utf8, most_rows: ROWS };
            let mut parts = std::mem::take(&mut self.parts);
            loop {
                let (at, until) = parts[0].read(text, extent);
                self.collect(&mut parts[0]);
                self.key_rows(block, &parts[0], &mut keyed);
                extent.start = at;
                if until != Until::Enough {
                    break;
                }
            }
            self.parts = parts;
            self.settle_troubles(block, before, &mut keyed.troubles);
        }
        self.count_bad(messages, &mut keyed.troubles);
        Ok(keyed)
    }

    fn key_rows(&self, block: &Block, part: &Part, keyed: &mut Keyed) {
        let (rows, plan) = (&part.rows, &self.plan);
        let text = &block.text[..];
        let has = |attribute: usize, row: usize| rows.coarsest(plan, attribute)[row].is_value();
        let mut key = |spot: Option<Spot>| {
            let found = spot.is_some_and(|spot| rows.spell(spot, text, &mut keyed.keys.bytes));
            keyed.keys.close(!found);
        };
        // Whatever has no value, or only one that it could have, stays as it is.
        let several = plan.attributes > 1;
        for row in 0..rows.len() {
            let has_none = !(0..plan.attributes).any(|attribute| has(attribute, row));
            if !several || has_none {
                place(block, &rows.starts[row..=row], &mut keyed.places);
                keyed.values.close(true);
                key((!has_none).then(|| rows.coarsest(plan, 0)[row]));
            }
        }
        if !several {
            return;
        }
        let finest: Vec<_> = plan.coarser_of_each().map(|above| above.unwrap_or(0) as i8).collect();
        for attribute in 0..plan.attributes {
            let decide = |other: usize, row: usize| {
                if other == attribute && has(attribute, row) { finest[attribute] } else { VEILED }
            };
            let decisions: Vec<Vec<i8>> = (0..plan.attributes)
                .map(|other| (0..rows.len()).map(|row| decide(other, row)).collect())
                .collect();
            let mut written = Written::default();
            let format = part.reader.time_format;
            self.renderer.render(text, rows, &decisions, format, None, &mut written);
            place(block, &written.marks.starts, &mut keyed.places);
            for record in written.records() {
                keyed.values.bytes.extend_from_slice(record);
                keyed.values.close(false);
            }
            (0..rows.len())
                .filter(|row| decisions[attribute][*row] != VEILED)
                .for_each(|row| key(Some(rows.coarsest(plan, attribute)[row])));
        }
    }

    /// Tells which messages the bad lines of a block were.
    fn settle_troubles(&mut self, block: &Block, before: u64, troubles: &mut Vec<Trouble>) {
        for trouble in self.take_troubles() {
            let line = block.message_of_line(trouble.line.saturating_sub(before)) as u64 + 1;
            troubles.push(Trouble { line, ..trouble });
        }
    }

    /// Counts what was told of messages before they were read.
    fn count_bad(&mut self, messages: &Messages, troubles: &mut Vec<Trouble>) {
        self.tally.passed += messages.blank;
        for (number, problem, at) in &messages.bad {
            self.tally.bad[*problem as usize] += 1;
            let (line, column) = (*number as u64 + 1, *at as u64 + 1);
            troubles.push(Trouble { line, problem: *problem, column });
        }
        troubles.sort_by_key(|trouble| trouble.line);
        troubles.truncate(MOST_TROUBLES);
        debug_assert!(Problem::ALL.len() == self.tally.bad.len());
    }
}

/// Adds the numbers of the messages that records begin in, which begin one behind the other.
fn place(block: &Block, starts: &[u32], places: &mut Vec<usize>) {
    let Some(first) = starts.first() else { return };
    let mut at = block.message_at(*first);
    for start in starts {
        while block.begins(at + 1).is_some_and(|next| next <= *start) {
            at += 1;
        }
        places.push(at);
    }
}
