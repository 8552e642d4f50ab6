//! Lines of JSON or CSV as most are, many at a time: all are scanned, then the times of all are read, then
//! all users and attributes are taken. Each loop has so little at hand that it stays in registers; one
//! that did everything for a line before the next took twice as long.
//!
//! Whatever is not as usual ends it, and the line is left to those who can say what it is.

use super::{Extent, Reader, Scan};
use crate::text::cell::{Cell, Kind};
use crate::text::plan::{ATTRIBUTES, TIME, TextFormat, USER};
use crate::text::rows::{Rows, Spot, SpotKind, number};
use crate::text::take::{Taken, Taking, is_user};
use crate::text::time::TimeFormat;

/// Lines at a time at most.
const MOST_LINES: usize = 1024;
/// Lines that are read the long way at most before it is tried again.
const MOST_PATIENCE: usize = 64;

/// How many lines are worth a try, by what came of those before.
#[derive(Default)]
pub(super) struct Skim {
    /// As many as went well the last time, or twice as many.
    lines: usize,
    /// Lines to be read the long way before the next try, and how many it was the last time.
    left: usize,
    patience: usize,
}

impl Skim {
    /// Whether to try it with the next lines.
    #[inline(always)]
    pub(super) fn is_due(&mut self) -> bool {
        let is_due = self.left == 0;
        self.left = self.left.saturating_sub(1);
        is_due
    }

    fn note(&mut self, taken: usize) {
        self.patience = if taken == 0 { (2 * self.patience + 1).min(MOST_PATIENCE) } else { 0 };
        self.left = self.patience;
        self.lines = (2 * taken).min(MOST_LINES);
    }
}

impl Reader {
    /// Reads lines from `at` on, as long as they are as most are; says where it got to.
    pub(super) fn skim_lines(
        &mut self,
        block: &[u8],
        at: usize,
        part: Extent,
        rows: &mut Rows,
    ) -> usize {
        let Some(format) = self.time_format else { return at };
        let Taken { ladders, filters, id, .. } = &self.taken;
        let has_positions = ladders.iter().flatten().any(|(_, beside)| beside.is_some());
        if has_positions || !filters.is_empty() || id.is_some() {
            return at;
        }
        let (first, text) = (rows.len(), &block[at..part.end]);
        let wanted = (part.most_rows - first).min(self.skim.lines.max(1));
        rows.ends.clear();
        let width = match &self.scan {
            Scan::Json { scanner, keeps_rest: false, cells } => {
                let width = cells.len();
                rows.cells.resize((first + wanted) * width, Cell::default());
                let cells = &mut rows.cells[first * width..];
                scanner.skim(text, self.max_line, width, cells, &mut rows.ends);
                width
            }
            Scan::Csv { scanner, width: header, columns, .. } => {
                let Some(places) = places(*header, columns) else { return at };
                let width = columns.len();
                rows.cells.resize((first + wanted) * width, Cell::default());
                let cells = &mut rows.cells[first * width..];
                scanner.skim(text, self.max_line, &places, width, cells, &mut rows.ends);
                width
            }
            _ => return at,
        };
        rows.starts.extend(starts(at as u32, &rows.ends));
        if self.taken.input == TextFormat::Ndjson {
            self.read_times::<true>(block, format, width, rows);
            take_values::<true>(block, width, rows);
        } else {
            self.read_times::<false>(block, format, width, rows);
            take_values::<false>(block, width, rows);
        }
        if !self.taken.ladders.is_empty() {
            let taking = Taking::<true> { of: &self.taken, start: 0, block, time: None };
            taking.climb_rows(first, rows);
        }
        let taken = rows.len() - first;
        rows.cells.truncate((first + taken) * width);
        rows.starts.truncate(first + taken);
        self.lines += taken as u64;
        self.skim.note(taken);
        match taken.checked_sub(1) {
            Some(last) => at + rows.ends[last] as usize + 1,
            None => at,
        }
    }

    /// Reads the times of the lines that were scanned, up to the first that cannot be read.
    #[inline(never)]
    fn read_times<const JSON: bool>(
        &self,
        block: &[u8],
        format: TimeFormat,
        width: usize,
        rows: &mut Rows,
    ) {
        let Rows { times, starts, cells, .. } = rows;
        let first = times.len();
        let scanned = starts[first..].iter().zip(cells[first * width..].chunks_exact(width));
        times.extend(scanned.map_while(|(start, cells)| {
            let cell = cells.get(TIME)?;
            let quote = match cell.kind {
                Kind::Integer | Kind::Number => 0,
                Kind::Text => usize::from(JSON),
                _ => return None,
            };
            let (from, to) = within(*start, cell, quote);
            let time = format.parse(block.get(from..to)?)?;
            (!self.taken.is_guessed || format.is_likely(time)).then_some(time)
        }));
    }
}

/// Takes users and attributes that are texts or numbers. The first row with another ends it, and what
/// was read behind is let go.
#[inline(never)]
fn take_values<const JSON: bool>(block: &[u8], width: usize, rows: &mut Rows) {
    let Rows { times, users, attributes, starts, cells, .. } = rows;
    let first = users.len();
    let mut taken = times.len();
    let scanned = || starts[first..].iter().zip(cells[first * width..].chunks_exact(width));
    let fitting = |spot: &Spot| is_user(*spot);
    let each = scanned().take(taken - first);
    users.extend(
        each.map_while(|(start, cells)| spot::<JSON>(block, *start, cells.get(USER)?))
            .take_while(fitting),
    );
    taken = users.len();
    for (number, spots) in attributes.iter_mut().enumerate() {
        let field = ATTRIBUTES + number;
        let each = scanned().take(taken - first);
        spots.extend(
            each.map_while(|(start, cells)| spot::<JSON>(block, *start, cells.get(field)?)),
        );
        taken = spots.len();
    }
    times.truncate(taken);
    users.truncate(taken);
    attributes.iter_mut().for_each(|spots| spots.truncate(taken));
}

/// The value of a cell; `None` where it is neither text nor a number, nor nothing.
#[inline(always)]
fn spot<const JSON: bool>(block: &[u8], start: u32, cell: &Cell) -> Option<Spot> {
    if cell.kind == Kind::Text {
        let (from, to) = within(start, cell, usize::from(JSON));
        return Some(Spot::text(SpotKind::Text, from, to));
    }
    number_spot(block, start, cell)
}

#[inline(never)]
fn number_spot(block: &[u8], start: u32, cell: &Cell) -> Option<Spot> {
    if cell.kind == Kind::Null {
        return Some(Spot::default());
    }
    let (from, to) = within(start, cell, 0);
    let is_number = matches!(cell.kind, Kind::Integer | Kind::Number);
    let found = is_number.then(|| number(cell.kind, &block[from..to], from))?;
    (found.kind() != SpotKind::Unfit).then_some(found)
}

/// Where a cell lies in the block, without its quotes.
#[inline(always)]
fn within(start: u32, cell: &Cell, quote: usize) -> (usize, usize) {
    let start = start as usize;
    let (from, to) = (cell.start as usize, cell.end as usize);
    (start.wrapping_add(from).wrapping_add(quote), start.wrapping_add(to).wrapping_sub(quote))
}

/// Which cell each column of a header is for, past all of them for none; `None` where a column is for
/// two.
fn places(header: usize, columns: &[Option<usize>]) -> Option<Vec<usize>> {
    let mut places = vec![usize::MAX; header];
    for (cell, column) in columns.iter().enumerate() {
        let Some(column) = column else { continue };
        if std::mem::replace(places.get_mut(*column)?, cell) != usize::MAX {
            return None;
        }
    }
    Some(places)
}

/// Where lines begin that end at these places of a text, which begins at `first`.
fn starts(first: u32, ends: &[u32]) -> impl Iterator<Item = u32> {
    let behind = ends.iter().map(move |end| first.wrapping_add(*end).wrapping_add(1));
    std::iter::once(first).chain(behind).take(ends.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::plan::{Output, Plan};

    #[test]
    fn usual_lines_are_skimmed_and_no_other() {
        let usual = "{\"ts\":1700000000.5,\"uid\":\"u1\",\"host\":\"example.org\"}\n";
        let other = "{\"ts\":1700000000.5,\"uid\":\"u1\",\"host\":\"caf\\u00e9\"}\n";
        let text = [usual.repeat(500), other.repeat(5), usual.repeat(500)].concat();
        let names = ["ts", "uid", "host"].map(String::from).to_vec();
        let output = Output::Text(TextFormat::Ndjson);
        let mut plan = Plan::new(TextFormat::Ndjson, output, names, 1);
        plan.time_format = Some(TimeFormat::Seconds);
        let mut reader = Reader::new(&plan);
        let mut rows = Rows::default();
        rows.clear(1, 0);
        let end = text.len();
        let part = Extent { start: 0, end, last: true, utf8: true, most_rows: usize::MAX };
        // The first line is learned from.
        let learned = usual.len();
        let first = Extent { end: learned, ..part };
        assert_eq!(reader.read(text.as_bytes(), first, &mut rows).0, learned);
        let mut at = learned;
        for _ in 0..12 {
            at = reader.skim_lines(text.as_bytes(), at, part, &mut rows);
        }
        assert_eq!(at, 500 * usual.len());
        assert_eq!(rows.len(), 500);
        // Those behind are reached all the same.
        let rest = Extent { start: at, ..part };
        assert_eq!(reader.read(text.as_bytes(), rest, &mut rows).0, end);
        assert_eq!(rows.len(), 1005);
        assert_eq!(reader.lines, 1005);
    }
}
