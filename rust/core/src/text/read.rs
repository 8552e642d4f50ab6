//! Lines become rows: each is scanned, its fields are taken, and what is wrong is noted.

use super::cell::{Cell, Kind};
use super::csv::{CsvScanner, CsvStep, unquote_csv};
use super::json::{JsonScanner, unescape_json};
use super::plan::{ATTRIBUTES, Plan, TIME, TextFormat, USER, path};
use super::problem::Problem;
use super::rows::{Rows, Spot, SpotKind, number, value};
use super::time::TimeFormat;
use crate::column::Value;
use crate::ladder::{Labels, Ladder};
use std::sync::Arc;

/// A line that is not good, and never leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// Counted from 1 within its file.
    pub line: u64,
    pub problem: Problem,
    /// The byte of the line where it shows, counted from 1.
    pub column: u64,
}

/// Bad lines that are kept to be told of at one time; more are only counted.
pub(crate) const MOST_TROUBLES: usize = 1000;

/// Reads lines of one format. It keeps nothing of them but what the plan had left open.
pub(crate) struct Reader {
    scan: Scan,
    attributes: usize,
    /// For each attribute its ladder, and for a position where its longitude is among the cells that
    /// are read beside those of the fields.
    ladders: Vec<Option<(Arc<Ladder>, Option<usize>)>>,
    /// Cells of the fields that leave; those read beside them follow.
    fields: usize,
    max_line: usize,
    stop_at_problem: bool,
    pub(crate) time_format: Option<TimeFormat>,
    /// The format of times was not stated: a number that is of another unit by its size is bad.
    is_guessed: bool,
    /// Lines read since the counter was last taken.
    pub(crate) lines: u64,
    /// The first bad ones of these.
    pub(crate) troubles: Vec<Trouble>,
    /// All of them, by [`Problem`].
    pub(crate) bad: [u64; Problem::ALL.len()],
}

enum Scan {
    Json {
        scanner: JsonScanner,
        keeps_rest: bool,
        /// The fields of the line at hand.
        cells: Vec<Cell>,
    },
    Csv {
        scanner: CsvScanner,
        /// How many columns there are, and which of them each field is in.
        width: usize,
        columns: Vec<Option<usize>>,
        cells: Vec<Cell>,
        /// The fields of the record at hand.
        found: Vec<Cell>,
    },
}

/// What a part of a block is, and how much of it may be read in one go.
#[derive(Clone, Copy)]
pub(crate) struct Extent {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Nothing comes behind `end`.
    pub(crate) last: bool,
    /// The whole of it is known to be UTF-8.
    pub(crate) utf8: bool,
    pub(crate) most_rows: usize,
}

/// Why reading ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// There are as many rows as were asked for.
    Enough,
    /// The rest is not a whole record.
    End,
    /// The first bad line, where that ends it all.
    Problem,
}

impl Reader {
    pub(crate) fn new(plan: &Plan) -> Self {
        let scan = match plan.input {
            TextFormat::Ndjson => {
                let paths: Vec<_> = plan.read_in_json().iter().map(|name| path(name)).collect();
                Scan::Json {
                    scanner: JsonScanner::new(&paths, plan.keep_rest),
                    keeps_rest: plan.keep_rest,
                    cells: vec![Cell::default(); paths.len()],
                }
            }
            TextFormat::Csv(delimiter) => Scan::Csv {
                scanner: CsvScanner::new(delimiter),
                width: 0,
                columns: Vec::new(),
                cells: Vec::new(),
                found: Vec::new(),
            },
        };
        let mut positions = 0;
        let ladders = plan.hierarchies.iter().map(|hierarchy| {
            let hierarchy = hierarchy.as_ref()?;
            let beside = hierarchy.position.as_ref().map(|_| positions);
            positions += usize::from(beside.is_some());
            Some((Arc::clone(&hierarchy.ladder), beside))
        });
        Self {
            scan,
            ladders: ladders.collect(),
            fields: plan.fields.len(),
            attributes: plan.attributes,
            max_line: plan.max_line,
            stop_at_problem: plan.stop_at_problem,
            time_format: plan.time_format,
            is_guessed: plan.time_format.is_none(),
            lines: 0,
            troubles: Vec::new(),
            bad: Default::default(),
        }
    }

    /// Says in which column each field is, from a file's header on.
    /// The first `fields` of them are those that leave.
    pub(crate) fn set_columns(
        &mut self,
        header_width: usize,
        found: Vec<Option<usize>>,
        fields: usize,
    ) {
        self.fields = fields;
        if let Scan::Csv { width, columns, .. } = &mut self.scan {
            *width = header_width;
            *columns = found;
        }
    }

    /// Reads records into `rows`; says where it got to, and why no further.
    pub(crate) fn read(&mut self, block: &[u8], part: Extent, rows: &mut Rows) -> (usize, Until) {
        match self.scan {
            Scan::Json { .. } => self.read_lines(block, part, rows),
            Scan::Csv { .. } => self.read_records(block, part, rows),
        }
    }

    fn read_lines(&mut self, block: &[u8], part: Extent, rows: &mut Rows) -> (usize, Until) {
        let mut at = part.start;
        while at < part.end {
            if rows.len() >= part.most_rows {
                return (at, Until::Enough);
            }
            let text = &block[at..part.end];
            let (line, next) = match memchr::memchr(b'\n', text) {
                Some(end) => (&text[..end], at + end + 1),
                None if part.last => (text, part.end),
                None => break,
            };
            self.lines += 1;
            if let Err((problem, column)) = self.read_line(line, at, block, part.utf8, rows) {
                self.note(problem, column);
                if self.stop_at_problem {
                    return (next, Until::Problem);
                }
            }
            at = next;
        }
        (at, Until::End)
    }

    /// A line with nothing in it is no record and nothing bad.
    #[inline(always)]
    fn read_line(
        &mut self,
        line: &[u8],
        start: usize,
        block: &[u8],
        utf8: bool,
        rows: &mut Rows,
    ) -> Result<(), (Problem, usize)> {
        if line.len() > self.max_line {
            return Err((Problem::TooLong, self.max_line));
        }
        if !utf8 && let Err(wrong) = simdutf8::compat::from_utf8(line) {
            return Err((Problem::NotUtf8, wrong.valid_up_to()));
        }
        let Scan::Json { scanner, keeps_rest, cells } = &mut self.scan else { return Ok(()) };
        if let Err(wrong) = scanner.scan(line, cells) {
            let is_blank = line.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r'));
            return if is_blank { Ok(()) } else { Err(wrong) };
        }
        let taking = Taking::<true> {
            start,
            block,
            attributes: self.attributes,
            ladders: &self.ladders,
            fields: self.fields,
            is_guessed: self.is_guessed,
        };
        taking.take(cells, &mut self.time_format, rows)?;
        rows.cells.extend_from_slice(cells);
        if *keeps_rest {
            rows.rest.extend_from_slice(scanner.rest());
            rows.rest_ends.push(rows.rest.len() as u32);
        }
        Ok(())
    }

    fn read_records(&mut self, block: &[u8], part: Extent, rows: &mut Rows) -> (usize, Until) {
        let mut at = part.start;
        while at < part.end {
            if rows.len() >= part.most_rows {
                return (at, Until::Enough);
            }
            let text = &block[at..part.end];
            let (end, outcome) = self.read_record(text, at, block, part, rows);
            let Some(end) = end else { break };
            let read = &text[..end];
            // Only a record with quotes can hold several lines.
            let lines = if outcome.is_ok() && memchr::memchr(b'"', read).is_none() {
                1
            } else {
                memchr::memchr_iter(b'\n', read).count().max(1) as u64
            };
            self.lines += 1;
            if let Err((problem, column)) = outcome {
                self.note(problem, column);
                if self.stop_at_problem {
                    return (at + end, Until::Problem);
                }
            }
            self.lines += lines - 1;
            at += end;
        }
        (at, Until::End)
    }

    #[inline(always)]
    fn read_record(
        &mut self,
        text: &[u8],
        start: usize,
        block: &[u8],
        part: Extent,
        rows: &mut Rows,
    ) -> (Option<usize>, Result<(), (Problem, usize)>) {
        let Scan::Csv { scanner, width, columns, cells, found } = &mut self.scan else {
            return (None, Ok(()));
        };
        let end = match scanner.scan(text, part.last, self.max_line, cells) {
            CsvStep::Record { end } => end,
            CsvStep::Blank { end } => return (Some(end), Ok(())),
            CsvStep::Incomplete => return (None, Ok(())),
            CsvStep::Bad { problem, at, resume } => return (Some(resume), Err((problem, at))),
        };
        if !part.utf8
            && let Err(wrong) = simdutf8::compat::from_utf8(&text[..end])
        {
            return (Some(end), Err((Problem::NotUtf8, wrong.valid_up_to())));
        }
        if cells.len() != *width {
            let column = cells.last().map_or(0, |cell| cell.start as usize);
            return (Some(end), Err((Problem::WrongColumns, column)));
        }
        let absent = Cell::default();
        found.clear();
        found.extend(columns.iter().map(|column| column.map_or(absent, |at| cells[at])));
        let taking = Taking::<false> {
            start,
            block,
            attributes: self.attributes,
            ladders: &self.ladders,
            fields: self.fields,
            is_guessed: self.is_guessed,
        };
        let taken = taking.take(found, &mut self.time_format, rows);
        if taken.is_ok() {
            rows.cells.extend_from_slice(found);
        }
        (Some(end), taken)
    }

    fn note(&mut self, problem: Problem, column: usize) {
        self.bad[problem as usize] += 1;
        if self.troubles.len() < MOST_TROUBLES {
            self.troubles.push(Trouble { line: self.lines, problem, column: column as u64 + 1 });
        }
    }
}

/// A record whose values are taken for the gate.
struct Taking<'a, const JSON: bool> {
    start: usize,
    block: &'a [u8],
    attributes: usize,
    ladders: &'a [Option<(Arc<Ladder>, Option<usize>)>],
    fields: usize,
    is_guessed: bool,
}

impl<const JSON: bool> Taking<'_, JSON> {
    /// Takes all or nothing.
    #[inline(always)]
    fn take(
        &self,
        cells: &[Cell],
        format: &mut Option<TimeFormat>,
        rows: &mut Rows,
    ) -> Result<(), (Problem, usize)> {
        let found = &cells[ATTRIBUTES..ATTRIBUTES + self.attributes];
        if cells[USER].kind == Kind::Absent || found.iter().all(|cell| cell.kind == Kind::Absent) {
            return Err((Problem::MissingField, 0));
        }
        let time = self.time(&cells[TIME], format, &mut rows.scratch)?;
        let user = self.spot(&cells[USER], &mut rows.decoded);
        if !is_user(user) {
            return Err((Problem::WrongType, cells[USER].start as usize));
        }
        for (number, cell) in found.iter().enumerate() {
            let spot = self.spot(cell, &mut rows.decoded);
            if spot.kind() == SpotKind::Unfit {
                return Err(rows.take_back(cell));
            }
            rows.attributes[number].push(spot);
        }
        if !self.ladders.is_empty() {
            self.climb(cells, rows)?;
        }
        rows.times.push(time);
        rows.users.push(user);
        rows.starts.push(self.start as u32);
        Ok(())
    }

    /// Adds the coarser labels of the attributes that have any.
    fn climb(&self, cells: &[Cell], rows: &mut Rows) -> Result<(), (Problem, usize)> {
        let row = rows.times.len();
        let mut column = 0;
        for (number, ladder) in self.ladders.iter().enumerate() {
            let Some((ladder, beside)) = ladder else { continue };
            let spot = rows.attributes[number][row];
            let mut places = std::mem::take(&mut rows.places);
            let mut scratch = std::mem::take(&mut rows.scratch);
            places.clear();
            // Labels go to where the value itself may be: it is copied from there.
            scratch.clear();
            if spot.kind() == SpotKind::Decoded {
                scratch.extend_from_slice(spot.of(&rows.decoded));
            }
            let finest = match spot.kind() {
                SpotKind::Decoded => Some(Value::Text(&scratch)),
                _ => value(spot, self.block, &[]),
            };
            if let Some(beside) = beside {
                let cell = &cells[self.fields + beside];
                let other = self.spot(cell, &mut rows.decoded);
                if other.kind() == SpotKind::Unfit {
                    return Err(rows.take_back(cell));
                }
                let text =
                    (other.kind() == SpotKind::Decoded).then(|| other.of(&rows.decoded).to_vec());
                let other = match &text {
                    Some(text) => Some(Value::Text(text)),
                    None => value(other, self.block, &[]),
                };
                let mut labels = Labels { text: &mut rows.decoded, places: &mut places };
                ladder.climb_position(finest, other, &mut labels);
            } else {
                let mut labels = Labels { text: &mut rows.decoded, places: &mut places };
                ladder.climb(finest, &mut labels);
            }
            let mut spots = places.iter().map(|place| match place {
                Some(place) => Spot::text(SpotKind::Decoded, place.start, place.end),
                None => Spot::default(),
            });
            if beside.is_some() {
                // The exact position is no level.
                rows.attributes[number][row] = spots.next().unwrap_or_default();
            }
            for spot in spots {
                rows.coarser[column].push(spot);
                column += 1;
            }
            rows.places = places;
            rows.scratch = scratch;
        }
        Ok(())
    }

    /// Where the text of a cell lies, without its quotes.
    #[inline(always)]
    fn inside(&self, cell: &Cell) -> (usize, usize) {
        let is_text = matches!(cell.kind, Kind::Text | Kind::EscapedText);
        let quote = usize::from(JSON && is_text);
        let (start, end) = (cell.start as usize, cell.end as usize);
        (self.start.wrapping_add(start + quote), self.start.wrapping_add(end).wrapping_sub(quote))
    }

    #[inline(always)]
    fn time(
        &self,
        cell: &Cell,
        format: &mut Option<TimeFormat>,
        scratch: &mut Vec<u8>,
    ) -> Result<i64, (Problem, usize)> {
        let column = cell.start as usize;
        let (start, end) = self.inside(cell);
        let text = match cell.kind {
            Kind::Text | Kind::Integer | Kind::Number => &self.block[start..end],
            Kind::EscapedText => {
                scratch.clear();
                decode(JSON, &self.block[start..end], scratch);
                &scratch[..]
            }
            Kind::Absent => return Err((Problem::MissingField, 0)),
            Kind::Null => return Ok(i64::MIN),
            _ => return Err((Problem::WrongType, column)),
        };
        if format.is_none() {
            *format = TimeFormat::detect(text);
        }
        let time = format.and_then(|format| {
            let time = format.parse(text)?;
            (!self.is_guessed || format.is_likely(time)).then_some(time)
        });
        time.ok_or((Problem::Time, column))
    }

    #[inline(always)]
    fn spot(&self, cell: &Cell, decoded: &mut Vec<u8>) -> Spot {
        let (start, end) = self.inside(cell);
        match cell.kind {
            Kind::Text => Spot::text(SpotKind::Text, start, end),
            Kind::EscapedText => {
                let first = decoded.len();
                decode(JSON, &self.block[start..end], decoded);
                Spot::text(SpotKind::Decoded, first, decoded.len())
            }
            Kind::Integer | Kind::Number => number(cell.kind, &self.block[start..end], start),
            Kind::True => Spot::word(SpotKind::Bool, 1),
            Kind::False => Spot::word(SpotKind::Bool, 0),
            Kind::Null | Kind::Absent => Spot::default(),
            Kind::Object | Kind::Array => Spot::word(SpotKind::Unfit, 0),
        }
    }
}

/// No truth value is anybody's id, and no number with a fraction.
fn is_user(user: Spot) -> bool {
    match user.kind() {
        SpotKind::Bool | SpotKind::Unfit => false,
        SpotKind::Float => user.float().fract() == 0.0,
        _ => true,
    }
}

/// Decodes what stands between the quotes.
pub(crate) fn decode(is_json: bool, inside: &[u8], out: &mut Vec<u8>) {
    if is_json { unescape_json(inside, out) } else { unquote_csv(inside, out) }
}
