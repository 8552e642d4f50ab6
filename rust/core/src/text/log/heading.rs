//! The lines that begin with `#` in logs of Zeek and Tstat: which column is which, and how values
//! are written. They may come again in the middle, where logs were put one behind the other.

use super::{LogFormat, unescape};
use crate::codec::{Body, Out, Outcome};
use crate::error::SnapshotError;
use crate::text::header::Header;
use crate::text::problem::Problem;

/// What the header of a log said so far.
#[derive(Clone, Debug)]
pub(crate) struct Heading {
    format: LogFormat,
    pub(super) separator: u8,
    pub(super) unset: Vec<u8>,
    pub(super) empty: Vec<u8>,
    pub(super) has_escapes: bool,
    /// The columns, once they were named.
    pub(super) names: Option<Vec<String>>,
}

/// Why a log cannot be read at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Headless {
    Bad(Problem),
    /// A record comes before the columns are named.
    Nameless,
    /// Fields are separated by more than one character.
    Separator,
}

impl Headless {
    pub(crate) fn sentence(self) -> &'static str {
        match self {
            Headless::Bad(problem) => problem.sentence(),
            Headless::Nameless => {
                "a record comes before the lines with # that name the columns; give the log as it was written"
            }
            Headless::Separator => "its #separator is not a single character",
        }
    }
}

impl Heading {
    pub(crate) fn new(format: LogFormat) -> Self {
        let is_zeek = format == LogFormat::Zeek;
        Self {
            format,
            separator: if is_zeek { b'\t' } else { b' ' },
            unset: b"-".to_vec(),
            empty: if is_zeek { b"(empty)".to_vec() } else { b"-".to_vec() },
            has_escapes: is_zeek,
            names: None,
        }
    }

    /// Whether it is in the log: columns are known by their place otherwise.
    pub(crate) fn is_told(&self) -> bool {
        self.format.columns().is_none()
    }

    /// How many columns were named; `None` before, and where columns are known by their place.
    pub(crate) fn told(&self) -> Option<usize> {
        self.names.as_ref().map(Vec::len)
    }

    /// As it is kept.
    pub(crate) fn write(&self, out: &mut Vec<u8>) -> Outcome<()> {
        out.bytes(&[self.separator])?;
        out.text(&self.unset)?;
        out.text(&self.empty)?;
        out.number(u64::from(self.has_escapes))?;
        out.optional(self.names.as_ref().map(|names| names.len() as u64))?;
        self.names.iter().flatten().try_for_each(|name| out.text(name.as_bytes()))
    }

    pub(crate) fn read_back(body: &mut &[u8], format: LogFormat) -> Outcome<Self> {
        const LONGEST: usize = 1 << 20;
        let [separator] = body.array()?;
        let mut heading = Self {
            format,
            separator,
            unset: body.text(LONGEST)?,
            empty: body.text(LONGEST)?,
            has_escapes: body.truth()?,
            names: None,
        };
        if let Some(count) = body.optional()? {
            let mut names = Vec::new();
            for _ in 0..count {
                let name = String::from_utf8(body.text(LONGEST)?);
                names.push(name.map_err(|_| SnapshotError::Damaged)?);
            }
            heading.names = Some(names);
        }
        Ok(heading)
    }

    /// Where the next header in a block begins; the block's end if there is none.
    pub(crate) fn next(block: &[u8], from: usize) -> usize {
        let found = memchr::memmem::find(&block[from..], b"\n#");
        found.map_or(block.len(), |at| from + at + 1)
    }

    /// Reads all lines of the header, and empty ones, from the beginning of a line on. The columns
    /// are told once a record follows.
    pub(crate) fn read(&mut self, text: &[u8], last: bool) -> Result<Header, Headless> {
        let mut read = Header::default();
        if let Some(columns) = self.format.columns() {
            read.names = Some(columns.iter().map(|name| (*name).to_owned()).collect());
            return Ok(read);
        }
        while read.end < text.len() {
            let rest = &text[read.end..];
            let is_blank = matches!(rest, [b'\n', ..] | [b'\r', b'\n', ..]);
            if rest[0] != b'#' && !is_blank {
                read.names = Some(self.names.clone().ok_or(Headless::Nameless)?);
                return Ok(read);
            }
            let (line, next) = match memchr::memchr(b'\n', rest) {
                Some(end) => (&rest[..end], end + 1),
                None if last => (rest, rest.len()),
                None => break,
            };
            self.take(line.strip_suffix(b"\r").unwrap_or(line))?;
            read.end += next;
            read.lines += 1;
        }
        Ok(read)
    }

    fn take(&mut self, line: &[u8]) -> Result<(), Headless> {
        let Ok(line) = std::str::from_utf8(line) else {
            return Err(Headless::Bad(Problem::NotUtf8));
        };
        if self.format == LogFormat::Zeek {
            self.take_zeek(line)?
        } else {
            self.take_tstat(line)
        }
        Ok(())
    }

    fn take_zeek(&mut self, line: &str) -> Result<(), Headless> {
        // The first line of a log: what others before it said is over.
        if let Some(separator) = line.strip_prefix("#separator ") {
            *self = Self::new(self.format);
            let mut text = Vec::new();
            unescape(separator.as_bytes(), false, &mut text);
            let [separator] = text[..] else { return Err(Headless::Separator) };
            self.separator = separator;
            return Ok(());
        }
        let separator = self.separator as char;
        let (name, rest) = line.split_once(separator).unwrap_or((line, ""));
        match name {
            "#unset_field" => self.unset = rest.as_bytes().to_vec(),
            "#empty_field" => self.empty = rest.as_bytes().to_vec(),
            "#fields" => self.names = Some(rest.split(separator).map(str::to_owned).collect()),
            _ => {}
        }
        Ok(())
    }

    /// `#15#c_ip:1 c_port:2 ...`: a name is followed by its place, the first led by where the
    /// server's columns begin.
    fn take_tstat(&mut self, line: &str) {
        let Some((_, names)) = line.rsplit_once('#') else { return };
        self.separator = if names.contains('\t') { b'\t' } else { b' ' };
        let name = |name: &str| match name.rsplit_once(':') {
            Some((name, place)) if place.bytes().all(|b| b.is_ascii_digit()) => name.to_owned(),
            _ => name.to_owned(),
        };
        self.names = Some(names.trim_end().split(self.separator as char).map(name).collect());
    }
}
