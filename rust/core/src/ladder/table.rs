//! Labels that someone wrote down: value, parent, grandparent, and so on, as CSV.

use super::Labels;
use super::word::Words;
use crate::error::Error;
use crate::text::{CsvScanner, CsvStep, Kind, unquote_csv};
use std::collections::HashMap;
use std::ops::Range;

/// For each value, by its exact text, its coarser labels.
#[derive(Debug)]
pub struct Table {
    /// Where the labels of a value begin in `labels`.
    rows: Words<usize>,
    labels: Vec<Option<Range<usize>>>,
    text: Vec<u8>,
    levels: usize,
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
            rows: Words::default(),
            labels: Vec::new(),
            text: Vec::new(),
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
        if let Some(first) = self.rows.get(&value[..]) {
            let known = &self.labels[*first..first + self.levels];
            let same = known.iter().zip(labels).all(|(place, label)| {
                place.clone().map_or(&b""[..], |place| &self.text[place]) == &label[..]
            });
            return if same {
                Ok(())
            } else {
                Err(refused(line, "a value has another parent on a line before"))
            };
        }
        self.rows.insert(value.clone().into(), self.labels.len());
        for label in labels {
            let start = self.text.len();
            self.text.extend_from_slice(label);
            self.labels.push((!label.is_empty()).then_some(start..self.text.len()));
        }
        Ok(())
    }

    pub(super) fn levels(&self) -> usize {
        self.levels
    }

    /// Where the labels of a value are.
    pub(super) fn find(&self, value: &[u8]) -> Option<usize> {
        self.rows.get(value).copied()
    }

    /// Appends the labels that were found.
    pub(super) fn put(&self, found: Option<usize>, labels: &mut Labels) {
        let Some(first) = found else { return labels.miss(self.levels) };
        for place in &self.labels[first..first + self.levels] {
            match place {
                Some(place) => labels.push(&self.text[place.clone()]),
                None => labels.miss(1),
            }
        }
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
