//! Labels that someone wrote down: value, parent, grandparent, and so on, as CSV.

use super::Labels;
use super::word::hash;
use crate::error::Error;
use crate::memory::fetch;
use crate::text::{CsvScanner, CsvStep, Kind, unquote_csv};
use std::collections::HashMap;

/// For each value, by its exact text, its coarser labels.
///
/// A look goes to two places in memory and no more, for a table may be larger than the caches: a slot
/// that says where the value's row is, and the row, with the value and its labels in one piece.
#[derive(Debug)]
pub struct Table {
    /// A power of two, at most half of them taken.
    slots: Vec<Slot>,
    rows: Vec<u8>,
    /// How many rows there are.
    values: usize,
    levels: usize,
}

/// Where a row begins, counted from one, above a part of its value's hash; zero where none is.
#[derive(Debug, Clone, Copy, Default)]
struct Slot(u64);

/// A look for a value that has begun: the value's hash.
#[derive(Clone, Copy)]
pub(super) struct Look(u64);

/// Bits of the hash in a slot.
const TOLD: u32 = 24;

/// The length of a label that is missing.
const MISSING: u32 = u32::MAX;

impl Slot {
    fn new(row: usize, hash: u64) -> Self {
        Self((row as u64 + 1) << TOLD | hash & ((1 << TOLD) - 1))
    }

    fn is_free(self) -> bool {
        self.0 == 0
    }

    fn tells(self, hash: u64) -> bool {
        (self.0 ^ hash) & ((1 << TOLD) - 1) == 0
    }

    fn row(self) -> usize {
        (self.0 >> TOLD) as usize - 1
    }
}

const LONGEST_LINE: usize = 1 << 20;

/// The number of a line, and its fields.
type Line = (usize, Vec<Vec<u8>>);

impl Table {
    /// Reads lines of `value,parent,grandparent`, as many levels as the longest has. A field that is
    /// empty or not there is a missing label. A line that names columns does no harm: it is about a
    /// value that is called so.
    ///
    /// A value has one parent, and a label one parent of its own, or it would not be a tree.
    pub fn read(csv: &[u8]) -> Result<Self, Error> {
        let csv = csv.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(csv);
        let lines = records(csv)?;
        let levels = lines.iter().map(|(_, fields)| fields.len()).max().unwrap_or(0);
        if levels < 2 {
            return Err(refused(1, "no line has a value and its parent"));
        }
        let mut table = Self {
            slots: vec![Slot::default(); 16],
            rows: Vec::new(),
            values: 0,
            levels: levels - 1,
        };
        let mut above: HashMap<(usize, Vec<u8>), Vec<u8>> = HashMap::new();
        for (line, mut fields) in lines {
            fields.resize(levels, Vec::new());
            for (level, pair) in fields[1..].windows(2).enumerate() {
                let [finer, coarser] = pair else { continue };
                if finer.is_empty() {
                    // What is above would hang in the air.
                    if !coarser.is_empty() {
                        return Err(refused(line, "a label is missing below another"));
                    }
                    continue;
                }
                let known = above.entry((level, finer.clone())).or_insert_with(|| coarser.clone());
                if known != coarser {
                    return Err(refused(line, "a label has another parent on a line before"));
                }
            }
            table.add(line, fields)?;
        }
        Ok(table)
    }

    fn add(&mut self, line: usize, fields: Vec<Vec<u8>>) -> Result<(), Error> {
        let Some((value, labels)) = fields.split_first().filter(|(value, _)| !value.is_empty())
        else {
            return Ok(());
        };
        let look = self.look_for(value);
        if let Some(row) = self.find(look, value) {
            let same =
                self.labels(row).zip(labels).all(|(known, label)| known.unwrap_or(b"") == label);
            return if same {
                Ok(())
            } else {
                Err(refused(line, "a value has another parent on a line before"))
            };
        }
        if 2 * (self.values + 1) > self.slots.len() {
            self.grow();
        }
        let row = self.rows.len();
        // A line is not that long.
        let length = |label: &[u8]| if label.is_empty() { MISSING } else { label.len() as u32 };
        self.rows.extend_from_slice(&(value.len() as u32).to_ne_bytes());
        labels.iter().for_each(|label| self.rows.extend_from_slice(&length(label).to_ne_bytes()));
        fields.iter().for_each(|field| self.rows.extend_from_slice(field));
        let hash = hash(value);
        let free = self.places(hash).find(|place| self.slots[*place].is_free());
        if let Some(place) = free {
            self.slots[place] = Slot::new(row, hash);
            self.values += 1;
        }
        Ok(())
    }

    fn grow(&mut self) {
        let held: Vec<_> = self.slots.iter().copied().filter(|slot| !slot.is_free()).collect();
        self.slots = vec![Slot::default(); 2 * self.slots.len()];
        for slot in held {
            let hash = hash(self.value(slot.row()));
            let free = self.places(hash).find(|place| self.slots[*place].is_free());
            if let Some(place) = free {
                self.slots[place] = slot;
            }
        }
    }

    /// All places of slots, beginning with the one where a hash is at home.
    fn places(&self, hash: u64) -> impl Iterator<Item = usize> + use<> {
        let (home, mask) = (self.home(hash), self.slots.len() - 1);
        (0..=mask).map(move |step| (home + step) & mask)
    }

    fn home(&self, hash: u64) -> usize {
        (hash >> TOLD) as usize & (self.slots.len() - 1)
    }

    pub(super) fn levels(&self) -> usize {
        self.levels
    }

    /// Begins to look for a value: the slot where it is at home is fetched.
    #[inline(always)]
    pub(super) fn look_for(&self, value: &[u8]) -> Look {
        let hash = hash(value);
        fetch(&self.slots[self.home(hash)]);
        Look(hash)
    }

    /// Goes on: the row that is probably the value's is fetched.
    #[inline(always)]
    pub(super) fn fetch(&self, Look(hash): Look) {
        let slot = self.slots[self.home(hash)];
        if !slot.is_free() {
            fetch(&self.rows[slot.row()]);
        }
    }

    /// Where the row of a value begins.
    pub(super) fn find(&self, Look(hash): Look, value: &[u8]) -> Option<usize> {
        for place in self.places(hash) {
            let slot = self.slots[place];
            if slot.is_free() {
                return None;
            }
            if slot.tells(hash) && self.value(slot.row()) == value {
                return Some(slot.row());
            }
        }
        None
    }

    /// Appends the labels of the row that was found.
    pub(super) fn put(&self, found: Option<usize>, labels: &mut Labels) {
        let Some(row) = found else { return labels.miss(self.levels) };
        for label in self.labels(row) {
            match label {
                Some(label) => labels.push(label),
                None => labels.miss(1),
            }
        }
    }

    fn length(&self, at: usize) -> u32 {
        self.rows[at..].first_chunk().map_or(MISSING, |length| u32::from_ne_bytes(*length))
    }

    fn value(&self, row: usize) -> &[u8] {
        let start = row + 4 * (1 + self.levels);
        &self.rows[start..start + self.length(row) as usize]
    }

    fn labels(&self, row: usize) -> impl Iterator<Item = Option<&[u8]>> {
        let mut start = row + 4 * (1 + self.levels) + self.length(row) as usize;
        (1..=self.levels).map(move |level| match self.length(row + 4 * level) {
            MISSING => None,
            length => {
                let label = &self.rows[start..start + length as usize];
                start += label.len();
                Some(label)
            }
        })
    }
}

/// The fields of each line, without spaces around them, and the line's number.
fn records(csv: &[u8]) -> Result<Vec<Line>, Error> {
    let mut scanner = CsvScanner::new(b',');
    let (mut found, mut cells) = (Vec::new(), Vec::new());
    let (mut rest, mut line) = (csv, 1);
    while !rest.is_empty() {
        let end = match scanner.scan(rest, true, LONGEST_LINE, &mut cells) {
            CsvStep::Record { end } => {
                let fields = cells.iter().map(|cell| {
                    let mut field = Vec::new();
                    match cell.kind {
                        Kind::EscapedText => unquote_csv(cell.of(rest), &mut field),
                        _ => field.extend_from_slice(cell.of(rest)),
                    }
                    field.trim_ascii().to_vec()
                });
                let fields: Vec<_> = fields.collect();
                if fields.iter().any(|field| std::str::from_utf8(field).is_err()) {
                    return Err(refused(line, "it is not valid UTF-8"));
                }
                found.push((line, fields));
                end
            }
            CsvStep::Blank { end } => end,
            CsvStep::Bad { problem, .. } => return Err(refused(line, problem.sentence())),
            CsvStep::Incomplete => return Err(refused(line, "it ends in the middle")),
        };
        let (read, behind) = rest.split_at(end.clamp(1, rest.len()));
        line += memchr::memchr_iter(b'\n', read).count();
        rest = behind;
    }
    Ok(found)
}

fn refused(line: usize, wrong: &str) -> Error {
    Error::Setting {
        parameter: "table",
        rule: "expected lines of value,parent,grandparent with one parent for each".to_owned(),
        got: format!("line {line}: {wrong}"),
    }
}
