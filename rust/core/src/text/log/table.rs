//! Logs that are tables: a line is its fields, one behind the other.

use super::heading::Heading;
use super::{Wrong, plain};
use crate::text::cell::{Cell, Kind};
use crate::text::problem::Problem;

/// The fields of a request in Tstat's `log_http_complete`, by their place.
pub(super) const TSTAT_HTTP: [&str; 13] = [
    "c_ip",
    "c_port",
    "s_ip",
    "s_port",
    "time",
    "method",
    "hostname",
    "fqdn",
    "path",
    "referer",
    "user_agent",
    "cookie",
    "dnt",
];

/// A table whose header was read.
#[derive(Default)]
pub(super) struct Table {
    separator: u8,
    width: usize,
    /// Texts that say that there is no value.
    none: [Vec<u8>; 2],
    has_escapes: bool,
    /// Where the fields of the line at hand end.
    ends: Vec<usize>,
}

impl Table {
    pub(super) fn new(heading: &Heading) -> Self {
        let width = heading.names.as_ref().map_or(0, Vec::len);
        Self {
            separator: heading.separator,
            width,
            none: [heading.unset.clone(), heading.empty.clone()],
            has_escapes: heading.has_escapes,
            ends: Vec::with_capacity(width),
        }
    }

    pub(super) fn scan(
        &mut self,
        line: &[u8],
        columns: &[Option<usize>],
        cells: &mut Vec<Cell>,
    ) -> Result<(), Wrong> {
        let line = if self.separator == b' ' { line.trim_ascii_end() } else { line };
        self.ends.clear();
        self.ends.extend(memchr::memchr_iter(self.separator, line));
        self.ends.push(line.len());
        if self.ends.len() != self.width {
            let last = self.ends.len().checked_sub(2).map_or(0, |before| self.ends[before] + 1);
            return Err((Problem::WrongColumns, last));
        }
        cells.extend(columns.iter().map(|column| match column {
            Some(0) => self.cell(line, 0, self.ends[0]),
            Some(number) => self.cell(line, self.ends[number - 1] + 1, self.ends[*number]),
            None => Cell::default(),
        }));
        Ok(())
    }

    fn cell(&self, line: &[u8], start: usize, end: usize) -> Cell {
        let text = &line[start..end];
        let kind = if text.is_empty() || self.none.iter().any(|none| none == text) {
            Kind::Null
        } else if self.has_escapes && memchr::memchr(b'\\', text).is_some() {
            Kind::EscapedText
        } else {
            Kind::Text
        };
        Cell::new(start, end, kind)
    }
}

/// A request in `log_http_complete`; false for the other lines of it, which tell of answers and of
/// second segments, and for its header.
///
/// Some versions have no `fqdn`, old ones neither the cookie nor what follows it.
pub(super) fn tstat_http(line: &[u8], found: &mut Vec<Cell>) -> Result<bool, Wrong> {
    const METHOD: usize = 5;
    const FQDN: usize = 7;
    if line.first() == Some(&b'#') {
        return Ok(false);
    }
    found.clear();
    let mut start = 0;
    for end in memchr::memchr_iter(b'\t', line).chain([line.len()]) {
        found.push(plain(line, start, end));
        start = end + 1;
    }
    let method = found.get(METHOD).map_or(&b""[..], |cell| cell.of(line));
    if matches!(method, b"HTTP" | b"RES2" | b"REQ2") {
        return Ok(false);
    }
    if !(10..=TSTAT_HTTP.len()).contains(&found.len()) {
        let last = found.last().map_or(0, |cell| cell.start as usize);
        return Err((Problem::WrongColumns, last));
    }
    if found.len().is_multiple_of(2) {
        found.insert(FQDN, Cell::default());
    }
    Ok(true)
}
