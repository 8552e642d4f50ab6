//! Lines become rows: each is scanned, its fields are taken, and what is wrong is noted.

use super::cell::Cell;
use super::csv::{CsvScanner, CsvStep};
use super::json::JsonScanner;
use super::log::{Heading, LogLine, LogScanner};
use super::plan::{Plan, TextFormat};
use super::problem::Problem;
use super::rows::{Rows, SpotKind};
use super::take::{Taken, Taking};
use super::time::TimeFormat;
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
    taken: Taken,
    max_line: usize,
    stop_at_problem: bool,
    pub(crate) time_format: Option<TimeFormat>,
    /// Lines read since the counter was last taken.
    pub(crate) lines: u64,
    /// The first bad ones of these.
    pub(crate) troubles: Vec<Trouble>,
    /// All of them, by [`Problem`].
    pub(crate) bad: [u64; Problem::ALL.len()],
    /// Lines that are no records of this kind, and not bad.
    pub(crate) passed: u64,
    /// Values of each attribute that a filter took out.
    pub(crate) filtered: Vec<u64>,
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
    Log {
        scanner: LogScanner,
        cells: Vec<Cell>,
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
                let paths: Vec<_> =
                    plan.read_in_json().iter().map(|name| plan.path(name)).collect();
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
            TextFormat::Log(format) => {
                Scan::Log { scanner: LogScanner::new(format), cells: Vec::new() }
            }
        };
        let mut positions = 0;
        let ladders = plan.hierarchies.iter().map(|hierarchy| {
            let hierarchy = hierarchy.as_ref()?;
            let beside = hierarchy.position.as_ref().map(|_| positions);
            positions += usize::from(beside.is_some());
            Some((Arc::clone(&hierarchy.ladder), beside))
        });
        let taken = Taken {
            input: plan.input,
            attributes: plan.attributes,
            ladders: ladders.collect(),
            fields: plan.fields.len(),
            filters: plan.filters.clone(),
            is_guessed: plan.time_format.is_none(),
            // A log leaves out what has no value, and a column of CSV is there or not.
            is_sparse: match plan.input {
                TextFormat::Ndjson => plan.flat,
                TextFormat::Csv(_) => false,
                TextFormat::Log(_) => true,
            },
            id: plan.id_cell(),
        };
        Self {
            scan,
            taken,
            max_line: plan.max_line,
            stop_at_problem: plan.stop_at_problem,
            time_format: plan.time_format,
            lines: 0,
            troubles: Vec::new(),
            bad: Default::default(),
            passed: 0,
            filtered: vec![0; plan.filters.len()],
        }
    }

    /// Another file begins; see [`LogScanner::start_file`].
    pub(crate) fn start_file(&mut self, latest: i64, year: Option<i64>) {
        if let Scan::Log { scanner, .. } = &mut self.scan {
            scanner.start_file(latest, year);
        }
    }

    /// Where the years of a log stand; see [`LogScanner::years`].
    pub(crate) fn years(&self) -> Option<(i64, Option<i64>)> {
        match &self.scan {
            Scan::Log { scanner, .. } => Some(scanner.years()),
            _ => None,
        }
    }

    pub(crate) fn set_years(&mut self, (latest, before): (i64, Option<i64>)) {
        if let Scan::Log { scanner, .. } = &mut self.scan {
            scanner.set_years(latest, before);
        }
    }

    /// Forgets what was counted.
    pub(crate) fn reset(&mut self) {
        self.lines = 0;
        self.troubles.clear();
        self.bad = Default::default();
        self.passed = 0;
        self.filtered.fill(0);
    }

    /// Says in which column each field is, from a file's header on.
    /// The first `fields` of them are those that leave.
    pub(crate) fn set_columns(
        &mut self,
        heading: Option<&Heading>,
        header_width: usize,
        found: Vec<Option<usize>>,
        fields: usize,
    ) {
        self.taken.fields = fields;
        if self.taken.id.is_some() {
            self.taken.id = found.len().checked_sub(1);
        }
        match (&mut self.scan, heading) {
            (Scan::Csv { width, columns, .. }, _) => {
                *width = header_width;
                *columns = found;
            }
            (Scan::Log { scanner, .. }, Some(heading)) => scanner.set_columns(heading, found),
            _ => {}
        }
    }

    /// Reads records into `rows`; says where it got to, and why no further.
    pub(crate) fn read(&mut self, block: &[u8], part: Extent, rows: &mut Rows) -> (usize, Until) {
        match self.scan {
            Scan::Json { .. } | Scan::Log { .. } => self.read_lines(block, part, rows),
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
            let read = match self.scan {
                Scan::Log { .. } => self.read_log_line(line, at, block, part.utf8, rows),
                _ => self.read_line(line, at, block, part.utf8, rows),
            };
            if let Err((problem, column)) = read {
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
        let taking = Taking::<true> { of: &self.taken, start, block, time: None };
        taking.take(cells, &mut self.time_format, rows)?;
        count_filtered(&mut self.filtered, rows);
        rows.cells.extend_from_slice(cells);
        if *keeps_rest {
            rows.rest.extend_from_slice(scanner.rest());
            rows.rest_ends.push(rows.rest.len() as u32);
        }
        Ok(())
    }

    /// A line of a log.
    fn read_log_line(
        &mut self,
        line: &[u8],
        start: usize,
        block: &[u8],
        utf8: bool,
        rows: &mut Rows,
    ) -> Result<(), (Problem, usize)> {
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        if line.len() > self.max_line {
            return Err((Problem::TooLong, self.max_line));
        }
        if !utf8 && let Err(wrong) = simdutf8::compat::from_utf8(line) {
            return Err((Problem::NotUtf8, wrong.valid_up_to()));
        }
        let Scan::Log { scanner, cells } = &mut self.scan else { return Ok(()) };
        let LogLine::Record(time) = scanner.scan(line, cells)? else {
            self.passed += 1;
            return Ok(());
        };
        let taking = Taking::<false> { of: &self.taken, start, block, time };
        taking.take(cells, &mut self.time_format, rows)?;
        count_filtered(&mut self.filtered, rows);
        rows.cells.extend_from_slice(cells);
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
        let taking = Taking::<false> { of: &self.taken, start, block, time: None };
        let taken = taking.take(found, &mut self.time_format, rows);
        if taken.is_ok() {
            count_filtered(&mut self.filtered, rows);
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

impl Reader {
    /// Takes back what was counted of records that came before, of those that were read.
    pub(crate) fn uncount(&mut self, rows: &Rows, kept: &[bool]) {
        for (count, spots) in self.filtered.iter_mut().zip(&rows.attributes) {
            let gone = spots.iter().zip(kept).filter(|(_, kept)| !**kept);
            let filtered = gone.filter(|(spot, _)| spot.kind() == SpotKind::Filtered);
            *count -= filtered.count() as u64;
        }
    }
}

/// Counts the values of the last row that a filter took out.
#[inline(always)]
fn count_filtered(filtered: &mut [u64], rows: &Rows) {
    for (count, spots) in filtered.iter_mut().zip(&rows.attributes) {
        *count += u64::from(spots.last().is_some_and(|spot| spot.kind() == SpotKind::Filtered));
    }
}
