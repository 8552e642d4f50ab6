//! Messages that hold one record each, put one behind the other as lines: what reads lines reads them.
//!
//! A message is one record and nothing of another: it can neither be two, nor go on in the next one.

use super::cell::Cell;
use super::csv::{CsvScanner, CsvStep};
use super::plan::TextFormat;
use super::problem::Problem;

/// A block is closed once it has so many bytes: places in it are counted in 32 bits.
const FULL: usize = 64 << 20;

/// Some messages, in the order in which they came.
pub struct Messages {
    format: TextFormat,
    max_line: usize,
    pub(crate) blocks: Vec<Block>,
    /// How many there are.
    len: usize,
    /// How many hold nothing at all.
    pub(crate) blank: u64,
    /// Those that are seen to be no record before they are read: number, problem, byte.
    pub(crate) bad: Vec<(usize, Problem, usize)>,
    /// Scratch for the fields of one that is looked at by itself.
    cells: Vec<Cell>,
}

/// Messages that lie one behind the other.
#[derive(Default)]
pub(crate) struct Block {
    pub(crate) text: Vec<u8>,
    /// The number of the first of them.
    pub(crate) first: usize,
    /// Where each begins, and how many lines are before it.
    starts: Vec<u32>,
    lines: Vec<u32>,
    /// Line breaks in the text.
    breaks: u32,
}

impl Block {
    /// The number of the message that a record begins in.
    pub(crate) fn message_at(&self, start: u32) -> usize {
        self.first + self.starts.partition_point(|other| *other <= start).saturating_sub(1)
    }

    /// Where a message begins, by its number; `None` behind the last of the block.
    pub(crate) fn begins(&self, number: usize) -> Option<u32> {
        self.starts.get(number.checked_sub(self.first)?).copied()
    }

    /// The number of the message that a line belongs to, counted from 1 within the block.
    pub(crate) fn message_of_line(&self, line: u64) -> usize {
        let before = line.saturating_sub(1);
        let found = self.lines.partition_point(|other| u64::from(*other) <= before);
        self.first + found.saturating_sub(1)
    }
}

impl Messages {
    /// None yet, of one format. Those of more bytes are bad.
    pub(crate) fn new(format: TextFormat, max_line: usize) -> Self {
        Self {
            format,
            max_line,
            blocks: Vec::new(),
            len: 0,
            blank: 0,
            bad: Vec::new(),
            cells: Vec::new(),
        }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds one; without a value it holds nothing.
    pub fn push(&mut self, value: Option<&[u8]>) {
        let number = self.len;
        self.len += 1;
        // One line break at the end is no part of the record.
        let value = value.unwrap_or_default();
        let value = value.strip_suffix(b"\n").unwrap_or(value);
        let mut value = value.strip_suffix(b"\r").unwrap_or(value);
        // Of what is too long, so much is read that it still is.
        if let Some(beginning) = value.get(..self.max_line.saturating_add(1)) {
            value = beginning;
        }
        self.blank += u64::from(value.is_empty());
        let is_csv = matches!(self.format, TextFormat::Csv(_));
        if is_csv && let Some((problem, at)) = self.csv_trouble(value) {
            self.bad.push((number, problem, at));
            value = b"";
        }
        let block = match self.blocks.last_mut() {
            Some(block) if block.text.len() < FULL => block,
            _ => {
                self.blocks.push(Block { first: number, ..Block::default() });
                let last = self.blocks.len() - 1;
                &mut self.blocks[last]
            }
        };
        let start = block.text.len();
        block.starts.push(start as u32);
        block.lines.push(block.breaks);
        block.text.extend_from_slice(value);
        for at in memchr::memchr_iter(b'\n', value) {
            if is_csv {
                block.breaks += 1;
            } else {
                // Between two values it is space, and so is this; within a text both are wrong.
                block.text[start + at] = b'\r';
            }
        }
        block.text.push(b'\n');
        block.breaks += 1;
    }

    /// What is wrong with a record that others may be read into: one with quotes or line breaks.
    fn csv_trouble(&mut self, value: &[u8]) -> Option<(Problem, usize)> {
        let TextFormat::Csv(delimiter) = self.format else { return None };
        memchr::memchr2(b'"', b'\n', value)?;
        if value.len() > self.max_line {
            return Some((Problem::TooLong, self.max_line));
        }
        match CsvScanner::new(delimiter).scan(value, true, self.max_line, &mut self.cells) {
            CsvStep::Record { end } if end == value.len() => None,
            CsvStep::Record { end } | CsvStep::Blank { end } => Some((Problem::Syntax, end)),
            CsvStep::Incomplete => Some((Problem::CutOff, value.len())),
            CsvStep::Bad { problem, at, .. } => Some((problem, at)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_line_of_json_whatever_is_in_it() {
        let mut messages = Messages::new(TextFormat::Ndjson, 100);
        for value in [&b"{\"a\":\n1}\n"[..], b"", b"{}", b"\r\n"] {
            messages.push(Some(value));
        }
        messages.push(None);
        let block = &messages.blocks[0];
        assert_eq!(block.text, b"{\"a\":\r1}\n\n{}\n\n\n");
        assert_eq!((messages.len(), messages.blank), (5, 3));
        assert_eq!(block.message_at(0), 0);
        assert_eq!(block.message_at(10), 2);
        assert_eq!(block.message_of_line(1), 0);
        assert_eq!(block.message_of_line(3), 2);
    }

    #[test]
    fn no_message_of_csv_reaches_into_another() {
        let mut messages = Messages::new(TextFormat::Csv(b','), 20);
        let values: [&[u8]; 7] = [
            b"1,\"a\nb\",x",
            b"1,\"open",
            b"1,a\n2,b",
            b"1,a\n",
            b"1,\"a\"\"b\"",
            b"0123456789012345678901,a",
            b"\"012345678901234567890\"",
        ];
        values.iter().for_each(|value| messages.push(Some(value)));
        let bad: Vec<_> =
            messages.bad.iter().map(|(number, problem, _)| (*number, *problem)).collect();
        let wanted = [(1, Problem::CutOff), (2, Problem::Syntax), (6, Problem::TooLong)];
        assert_eq!(bad, wanted);
        let block = &messages.blocks[0];
        let text = b"1,\"a\nb\",x\n\n\n1,a\n1,\"a\"\"b\"\n012345678901234567890\n\n";
        assert_eq!(block.text, text);
        let of_lines: Vec<_> = (1..=8).map(|line| block.message_of_line(line)).collect();
        assert_eq!(of_lines, [0, 0, 1, 2, 3, 4, 5, 6]);
    }
}
