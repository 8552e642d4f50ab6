//! Logs as programs write them: one line, one record, or one that is none of this log's records.
//!
//! ```text
//! line ─→ table: Zeek, Tstat       ─→ cells of the wanted columns
//!         combined: web servers
//!         dns: dnsmasq, unbound    ─→ cells, and the time
//! ```
//!
//! A line is taken apart where it lies, as with the other scanners. Lines that belong into the log
//! but are no records of the kind that is read (an answer between queries) are passed over: they are
//! neither records nor bad.

mod combined;
mod dns;
mod escape;
mod heading;
mod moment;
mod table;

pub(crate) use escape::unescape;
pub(crate) use heading::Heading;
pub use heading::Headless;

use super::cell::{Cell, Kind};
use super::problem::Problem;
use super::time::TimeFormat;
use moment::Years;
use table::Table;

/// Whose log it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// Zeek's own tab-separated logs, with their header.
    Zeek,
    /// `log_tcp_complete` of Tstat.
    TstatTcp,
    /// `log_http_complete` of Tstat.
    TstatHttp,
    /// The combined log of Apache and nginx; the common one too.
    Combined,
    Dnsmasq,
    Unbound,
}

impl LogFormat {
    const ALL: [LogFormat; 6] = [
        LogFormat::Zeek,
        LogFormat::TstatTcp,
        LogFormat::TstatHttp,
        LogFormat::Combined,
        LogFormat::Dnsmasq,
        LogFormat::Unbound,
    ];

    pub fn name(self) -> &'static str {
        match self {
            LogFormat::Zeek => "zeek",
            LogFormat::TstatTcp => "tstat-tcp",
            LogFormat::TstatHttp => "tstat-http",
            LogFormat::Combined => "combined",
            LogFormat::Dnsmasq => "dnsmasq",
            LogFormat::Unbound => "unbound",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// The fields of a log that has no header, or none that tells them.
    pub(crate) fn columns(self) -> Option<&'static [&'static str]> {
        match self {
            LogFormat::Zeek | LogFormat::TstatTcp => None,
            LogFormat::TstatHttp => Some(&table::TSTAT_HTTP),
            LogFormat::Combined => Some(&combined::COLUMNS),
            LogFormat::Dnsmasq | LogFormat::Unbound => Some(&dns::COLUMNS),
        }
    }

    /// What times are; ISO 8601 where the scanner reads them, since they leave as that.
    pub(crate) fn time_format(self) -> TimeFormat {
        match self {
            LogFormat::Zeek | LogFormat::TstatHttp => TimeFormat::Seconds,
            LogFormat::TstatTcp => TimeFormat::Millis,
            LogFormat::Combined | LogFormat::Dnsmasq | LogFormat::Unbound => TimeFormat::Iso,
        }
    }

    /// Times are written in a way of the program's own: the scanner reads them, and they leave as
    /// ISO 8601.
    pub(crate) fn has_own_times(self) -> bool {
        matches!(self, LogFormat::Combined | LogFormat::Dnsmasq | LogFormat::Unbound)
    }

    /// Times may lack the year, which the lines before then tell: they are read in their order.
    pub(crate) fn may_lack_years(self) -> bool {
        matches!(self, LogFormat::Dnsmasq | LogFormat::Unbound)
    }
}

/// Finds the fields of lines of a log.
pub struct LogScanner {
    format: LogFormat,
    table: Table,
    /// The column of each wanted field.
    columns: Vec<Option<usize>>,
    years: Years,
    /// The fields of the line at hand, where they are known by their place.
    found: Vec<Cell>,
}

/// What a line of a log is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLine {
    /// The inner value: nanoseconds, where the scanner read the time.
    Record(Option<i64>),
    /// It belongs into the log, but is no record of this kind.
    Passed,
}

/// A problem and where it shows.
pub(crate) type Wrong = (Problem, usize);

impl LogScanner {
    pub fn new(format: LogFormat) -> Self {
        Self {
            format,
            table: Table::default(),
            columns: Vec::new(),
            years: Years::default(),
            found: Vec::new(),
        }
    }

    /// Says in which column each wanted field is, and what the header said about how values are
    /// written.
    pub(crate) fn set_columns(&mut self, heading: &Heading, columns: Vec<Option<usize>>) {
        self.table = Table::new(heading);
        self.columns = columns;
    }

    /// Another file begins. Where times lack a year the first is the last one that is not past
    /// `latest` by more than a day; or it is of the year that is stated.
    pub(crate) fn start_file(&mut self, latest: i64, year: Option<i64>) {
        self.years.start_file(latest, year);
    }

    /// Where the years of times stand that are written without one: the latest first time, in seconds,
    /// and the time of the last line.
    pub(crate) fn years(&self) -> (i64, Option<i64>) {
        (self.years.latest, self.years.before)
    }

    pub(crate) fn set_years(&mut self, latest: i64, before: Option<i64>) {
        self.years.latest = latest;
        self.years.before = before;
    }

    /// Scans a line without its line break; `cells` become those of the wanted fields.
    pub fn scan(&mut self, line: &[u8], cells: &mut Vec<Cell>) -> Result<LogLine, Wrong> {
        if let Some(at) = memchr::memchr(0, line) {
            return Err((Problem::NulByte, at));
        }
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        cells.clear();
        match self.format {
            LogFormat::Zeek | LogFormat::TstatTcp => {
                self.table.scan(line, &self.columns, cells)?;
                return Ok(LogLine::Record(None));
            }
            LogFormat::TstatHttp => {
                if !table::tstat_http(line, &mut self.found)? {
                    return Ok(LogLine::Passed);
                }
                self.pick(cells);
                return Ok(LogLine::Record(None));
            }
            LogFormat::Combined => {
                let time = combined::scan(line, &mut self.found)?;
                self.pick(cells);
                return Ok(LogLine::Record(Some(time)));
            }
            LogFormat::Dnsmasq => dns::dnsmasq(line, &mut self.found)?,
            LogFormat::Unbound => dns::unbound(line, &mut self.found)?,
        }
        .map_or(Ok(LogLine::Passed), |stamp| {
            let time = self.years.settle(stamp).ok_or((Problem::Time, 0))?;
            self.pick(cells);
            Ok(LogLine::Record(Some(time)))
        })
    }

    fn pick(&self, cells: &mut Vec<Cell>) {
        let cell = |column: &Option<usize>| column.and_then(|at| self.found.get(at).copied());
        cells.extend(self.columns.iter().map(|column| cell(column).unwrap_or_default()));
    }
}

/// A value at a place in its line: none if it is empty or a dash, which is how these logs say so.
fn value(line: &[u8], start: usize, end: usize) -> Cell {
    let kind = match line.get(start..end).unwrap_or_default() {
        b"" | b"-" => Kind::Null,
        text if memchr::memchr(b'\\', text).is_some() => Kind::EscapedText,
        _ => Kind::Text,
    };
    Cell::new(start, end, kind)
}

/// The same where a backslash is one.
fn plain(line: &[u8], start: usize, end: usize) -> Cell {
    let kind = match line.get(start..end).unwrap_or_default() {
        b"" | b"-" => Kind::Null,
        _ => Kind::Text,
    };
    Cell::new(start, end, kind)
}

#[cfg(test)]
mod tests;
