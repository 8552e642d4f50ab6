//! One CSV record: the places of its fields.
//!
//! RFC 4180, with LF or CR LF at the end of a line; a CR elsewhere is data, and so is a quote inside
//! of a field that does not begin with one.

use super::block::Block;
use super::{Cell, Kind, Problem};

/// Finds the fields of CSV records and checks their quotes.
pub struct CsvScanner {
    delimiter: u8,
}

/// What lies at the beginning of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CsvStep {
    /// A record; `end` is the offset behind its line break.
    Record { end: usize },
    /// An empty line: skip it.
    Blank { end: usize },
    /// More bytes are needed.
    Incomplete,
    /// No record. Go on at `resume`, behind the first line break after the record's start: a quote
    /// that was never meant to open a field then costs one line, not all that follow.
    Bad { problem: Problem, at: usize, resume: usize },
}

/// Why a search for the end of a record stopped short.
enum Short {
    /// The bytes ran out; within a quoted field, where its quote is.
    Out {
        quote: Option<usize>,
    },
    Bad(Problem, usize),
}

impl CsvScanner {
    /// `delimiter` is an ASCII character other than the quote and the line breaks: the caller has
    /// checked.
    pub fn new(delimiter: u8) -> Self {
        Self { delimiter }
    }

    /// Scans the record that begins at `data[0]`. Its fields go into `fields`, which is cleared
    /// first, with offsets within `data`.
    ///
    /// `last`: no more bytes will come. A record without a line break then is complete, an open quote
    /// is [`Problem::CutOff`] (at the quote). A record of more than `max_line` bytes, line break not
    /// counted, is [`Problem::TooLong`]; where no line break follows it yet the answer is
    /// [`CsvStep::Incomplete`], and a caller that holds `max_line + 2` bytes or more then skips to the
    /// next one. Without data the answer is the same.
    #[inline]
    pub fn scan(
        &mut self,
        data: &[u8],
        last: bool,
        max_line: usize,
        fields: &mut Vec<Cell>,
    ) -> CsvStep {
        fields.clear();
        // Cells count in u32. Two bytes more than a record may have, for its line break: if none is
        // found in so many, it is too long.
        let max_line = max_line.min(u32::MAX as usize - 2);
        let view = &data[..data.len().min(max_line + 2)];
        match self.record(view, fields) {
            Ok((end, line_break)) if end <= max_line => {
                let is_blank = end == 0;
                let end = end + line_break;
                if is_blank { CsvStep::Blank { end } } else { CsvStep::Record { end } }
            }
            Ok(_) => bad(data, last, Problem::TooLong, max_line),
            Err(short) => unfinished(short, data, view.len(), last, max_line, fields),
        }
    }

    /// Scans records from the beginning of a text on, as long as none of their fields is quoted and
    /// each has as many as there are `places`: those of its fields among the cells, past all of them
    /// for one that is not wanted. `ends` gets where the line break of each begins or, of two bytes, its
    /// second. The first record that is not so is left to [`scan`](Self::scan).
    ///
    /// `cells` have room for the fields of as many records as are wanted, `width` for each, all absent.
    #[inline(never)]
    pub(crate) fn skim(
        &self,
        text: &[u8],
        longest: usize,
        places: &[usize],
        width: usize,
        cells: &mut [Cell],
        ends: &mut Vec<u32>,
    ) {
        let mut at = 0;
        for cells in cells.chunks_exact_mut(width) {
            let found = self.skim_record(&text[at..], places, cells);
            let Some(end) = found.filter(|end| *end <= longest) else {
                return cells.fill(Cell::default());
            };
            at += end;
            ends.push(at as u32);
            at += 1;
        }
    }

    /// Where the line feed of one such record is.
    #[inline(always)]
    fn skim_record(&self, text: &[u8], places: &[usize], cells: &mut [Cell]) -> Option<usize> {
        let (last, others) = places.split_last()?;
        let mut others = others.iter();
        let (mut start, mut from) = (0, 0);
        // A line without anything in it is no record, and a quote may begin a field.
        if matches!(text.first()?, b'"' | b'\r' | b'\n') {
            return None;
        }
        loop {
            let block: &[u8; Block::LEN] = text.get(from..)?.first_chunk()?;
            let mut stops = Block(u128::from_le_bytes(*block)).field_ends(self.delimiter);
            while stops != 0 {
                let end = from + stops.trailing_zeros() as usize;
                stops &= stops - 1;
                match *text.get(end)? {
                    byte if byte == self.delimiter => {
                        if let Some(cell) = cells.get_mut(*others.next()?) {
                            *cell = plain(start, end);
                        }
                        start = end + 1;
                        if *text.get(start)? == b'"' {
                            return None;
                        }
                    }
                    b'\n' if others.as_slice().is_empty() => {
                        let has_return = end > start && text[end - 1] == b'\r';
                        if let Some(cell) = cells.get_mut(*last) {
                            *cell = plain(start, end - usize::from(has_return));
                        }
                        return Some(end);
                    }
                    _ => return None,
                }
            }
            from += Block::LEN;
        }
    }

    /// The record's length, and that of its line break.
    #[inline(always)]
    fn record(&self, data: &[u8], fields: &mut Vec<Cell>) -> Result<(usize, usize), Short> {
        let mut start = 0;
        // The stops from `from` on that were not looked at yet.
        let mut from = 0;
        let mut stops = Block::field_stops(data, 0, self.delimiter);
        loop {
            if data.get(start) == Some(&b'"') {
                let cell = quoted(data, start)?;
                let end = cell.end as usize + 1;
                fields.push(cell);
                match data.get(end..).unwrap_or_default() {
                    [byte, ..] if *byte == self.delimiter => start = end + 1,
                    [b'\n', ..] => return Ok((end, 1)),
                    [b'\r', b'\n', ..] => return Ok((end, 2)),
                    [] | [b'\r'] => return Err(Short::Out { quote: None }),
                    [0, ..] => return Err(Short::Bad(Problem::NulByte, end)),
                    _ => return Err(Short::Bad(Problem::Syntax, end)),
                }
                from = start;
                stops = Block::field_stops(data, from, self.delimiter);
                continue;
            }
            while stops == 0 {
                from += Block::LEN;
                stops = Block::field_stops(data, from, self.delimiter);
            }
            let end = from + stops.trailing_zeros() as usize;
            stops &= stops - 1;
            match data.get(end) {
                Some(byte) if *byte == self.delimiter => {
                    fields.push(plain(start, end));
                    start = end + 1;
                }
                Some(b'\n') => {
                    let has_return = end > start && data.get(end - 1) == Some(&b'\r');
                    let line_break = 1 + usize::from(has_return);
                    let end = end + 1 - line_break;
                    if end > 0 {
                        fields.push(plain(start, end));
                    }
                    return Ok((end, line_break));
                }
                Some(_) => return Err(Short::Bad(Problem::NulByte, end)),
                None => {
                    fields.push(plain(start, data.len()));
                    return Err(Short::Out { quote: None });
                }
            }
        }
    }
}

/// The answer for bytes that hold no whole record; `seen` of them were looked at.
#[inline(never)]
fn unfinished(
    short: Short,
    data: &[u8],
    seen: usize,
    last: bool,
    max_line: usize,
    fields: &[Cell],
) -> CsvStep {
    match short {
        Short::Bad(problem, at) => bad(data, last, problem, at),
        Short::Out { .. } if data.len() > max_line && (last || seen > max_line + 1) => {
            bad(data, last, Problem::TooLong, max_line)
        }
        _ if !last || data.is_empty() => CsvStep::Incomplete,
        Short::Out { quote: Some(at) } => bad(data, last, Problem::CutOff, at),
        Short::Out { quote: None } => {
            let end = fields.last().map_or(0, |cell| cell.end as usize + usize::from(cell.quoted));
            if end < data.len() {
                // Behind a closing quote, the CR of a line break whose LF never came.
                return bad(data, last, Problem::Syntax, end);
            }
            CsvStep::Record { end }
        }
    }
}

/// A quoted field, from its quote on.
#[inline(always)]
fn quoted(data: &[u8], quote: usize) -> Result<Cell, Short> {
    let start = quote + 1;
    let mut at = start;
    let mut kind = Kind::Text;
    loop {
        let stops = Block::quote_stops(data, at);
        if stops == 0 {
            at += Block::LEN;
            continue;
        }
        at += stops.trailing_zeros() as usize;
        match data.get(at..).unwrap_or_default() {
            [b'"', b'"', ..] => {
                kind = Kind::EscapedText;
                at += 2;
            }
            [b'"', ..] => break,
            [_, ..] => return Err(Short::Bad(Problem::NulByte, at)),
            [] => return Err(Short::Out { quote: Some(quote) }),
        }
    }
    let kind = if at == start { Kind::Null } else { kind };
    Ok(Cell { quoted: true, ..Cell::new(start, at, kind) })
}

#[inline(always)]
fn plain(start: usize, end: usize) -> Cell {
    Cell::new(start, end, if start == end { Kind::Null } else { Kind::Text })
}

#[cold]
fn bad(data: &[u8], last: bool, problem: Problem, at: usize) -> CsvStep {
    match memchr::memchr(b'\n', data) {
        Some(line_break) => CsvStep::Bad { problem, at, resume: line_break + 1 },
        None if last => CsvStep::Bad { problem, at, resume: data.len() },
        None => CsvStep::Incomplete,
    }
}

/// Appends a field that holds doubled quotes, with one of each two.
pub fn unquote_csv(raw: &[u8], out: &mut Vec<u8>) {
    let mut rest = raw;
    while let Some(quote) = memchr::memchr(b'"', rest) {
        out.extend_from_slice(&rest[..=quote]);
        rest = &rest[quote + 1..];
        rest = rest.strip_prefix(b"\"").unwrap_or(rest);
    }
    out.extend_from_slice(rest);
}

/// Appends text as a field, in quotes where it would be read as something else without: it holds the
/// delimiter, a quote, CR or LF, or begins or ends with a space.
///
/// Empty text becomes an empty field. A record of one such field is an empty line, which readers
/// skip: whoever writes records of one field quotes it themselves.
pub fn quote_csv(text: &[u8], delimiter: u8, out: &mut Vec<u8>) {
    let at_edge = text.first() == Some(&b' ') || text.last() == Some(&b' ');
    let mut blocks = (0..text.len()).step_by(Block::LEN).map(|at| Block::at(text, at));
    if !at_edge && blocks.all(|block| !block.holds_special(delimiter)) {
        out.extend_from_slice(text);
        return;
    }
    out.push(b'"');
    let mut rest = text;
    while let Some(quote) = memchr::memchr(b'"', rest) {
        out.extend_from_slice(&rest[..=quote]);
        out.push(b'"');
        rest = &rest[quote + 1..];
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

#[cfg(test)]
mod tests;
