//! The way of text: bytes in, decided, bytes out. What has arrived is decided at once.
//!
//! ```text
//! feed ─→ read ─→ gates ─→ render ─→ written
//! bytes   rows    one for each       released records
//!                 attribute
//! ```
//!
//! A line that is not complete waits for the next bytes. With several threads a large block is cut
//! at line breaks, and while a part of it is decided others are read and written (see `conveyor`).
//! The output is the same bytes either way.

mod beginning;
mod conveyor;
mod fresh;
mod messages;
mod overlong;
mod part;
mod records;
mod state;

use super::log::{Heading, Headless};
use super::plan::{Plan, TextFormat};
use super::problem::Problem;
use super::read::{MOST_TROUBLES, Trouble};
use super::render::{Renderer, Watch, Written};
use super::swaps::Swaps;
use super::time::TimeFormat;
use super::witness::Witness;
use crate::crew::Crew;
use crate::error::Error;
use crate::gate::Gate;
use crate::ids::EventIds;
use crate::meter::Lens;
use crate::pseudonym::Keyring;
use part::{Part, Parts};
use std::sync::Arc;

/// No more memory is kept for what is written next: it was for an unusual block.
const MOST_SPARE: usize = 8 << 20;

pub use messages::{Keyed, Left};

const BOM: &[u8] = b"\xEF\xBB\xBF";

/// What a stream came to so far.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub lines: u64,
    /// Good ones.
    pub records: u64,
    /// Records that left, for each set of gates.
    pub leaving: Vec<u64>,
    /// Values released at each level, coarsest first: for each gate; none for one without levels.
    pub levels: Vec<Vec<u64>>,
    /// Values that left as others, for each attribute; empty where none may.
    pub swapped: Vec<u64>,
    /// By [`Problem`].
    pub bad: [u64; Problem::ALL.len()],
    /// Lines of a log that are no records of the kind that is read.
    pub passed: u64,
    /// Values of each attribute that its filter took out, where it has one.
    pub filtered: Vec<u64>,
    /// Good ones whose id came before: they count as nothing else.
    pub repeated: u64,
}

/// What goes with a stream beside its gates.
#[derive(Default)]
pub struct Beside<'a> {
    /// Without one user ids leave as they are.
    pub keyring: Option<&'a mut Keyring>,
    /// Records that came before are left out, where the plan has a field of ids.
    pub ids: Option<&'a mut EventIds>,
    /// Is shown the values, with the number of the partition that they came on.
    pub witness: Option<(&'a mut Witness, u32)>,
}

impl Beside<'_> {
    /// The same, for a while.
    fn again(&mut self) -> Beside<'_> {
        Beside {
            keyring: self.keyring.as_deref_mut(),
            ids: self.ids.as_deref_mut(),
            witness: self.witness.as_mut().map(|(witness, partition)| (&mut **witness, *partition)),
        }
    }
}

/// Why a stream cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum WayError {
    #[error(transparent)]
    Gate(#[from] Error),
    /// The header of a file lacks a column, or has it twice.
    #[error("the header does not have the column {wanted:?} exactly once")]
    Column { wanted: String, found: Vec<String> },
    #[error("the header is not a line of CSV: {}", .0.sentence())]
    Header(Problem),
    #[error("{}", .0.sentence())]
    Log(Headless),
}

/// A stream of text on its way.
pub struct Way {
    plan: Plan,
    crew: Arc<Crew>,
    /// Fields as they leave: the plan's, and for CSV what else is kept.
    fields: Vec<String>,
    /// One, or some for each thread.
    parts: Parts,
    renderer: Arc<Renderer>,
    swaps: Swaps,
    /// Memory for what is written next.
    spare: Vec<Vec<u8>>,
    /// The beginning of a line whose end has not come.
    carry: Vec<u8>,
    /// Nothing of the file was read yet.
    at_start: bool,
    /// The header of the file was read, or there is none.
    past_header: bool,
    /// What the header of a log said.
    heading: Option<Heading>,
    header_written: bool,
    /// Which column each cell is read from, of how many: by the last header.
    columns: (usize, Vec<Option<usize>>),
    /// In a line that is too long: everything up to its end is dropped.
    skipping: bool,
    /// Nothing is written of what is decided.
    silent: bool,
    /// Bytes of this file that came; the last of them may be in `carry`.
    came: u64,
    /// Lines of this file so far.
    line: u64,
    pub stopped: bool,
    pub tally: Tally,
    troubles: Vec<Trouble>,
}

impl Way {
    pub fn new(plan: Plan, threads: usize) -> Self {
        let threads = threads.max(1);
        let parts = if threads == 1 { 1 } else { threads * conveyor::FOR_EACH };
        let mut way = Self {
            crew: Arc::new(Crew::new(threads)),
            fields: plan.fields.clone(),
            parts: (0..parts).map(|_| Box::new(Part::new(&plan))).collect(),
            renderer: Arc::new(Renderer::new(&plan)),
            swaps: Swaps::default(),
            spare: Vec::new(),
            carry: Vec::new(),
            at_start: true,
            past_header: true,
            heading: None,
            header_written: false,
            columns: (0, Vec::new()),
            skipping: false,
            silent: false,
            came: 0,
            line: 0,
            stopped: false,
            tally: Tally::default(),
            troubles: Vec::new(),
            plan,
        };
        way.start_file(i64::MAX);
        way
    }

    /// Another file begins: with its own line numbers, and its own header. `written` is when it was
    /// written, in nanoseconds since 1970: by that the year of a time without one is told.
    pub fn start_file(&mut self, written: i64) {
        for part in &mut self.parts {
            part.reader.start_file(written, self.plan.year);
        }
        self.at_start = true;
        self.past_header = self.plan.input == TextFormat::Ndjson;
        if let TextFormat::Log(format) = self.plan.input {
            self.heading = Some(Heading::new(format));
        }
        self.skipping = false;
        self.came = 0;
        self.line = 0;
        self.carry.clear();
    }

    /// Bytes of this file that are done with: all complete records. What follows is to be given again
    /// to a way that resumes.
    pub fn consumed(&self) -> u64 {
        self.came - self.carry.len() as u64
    }

    /// Looks at what leaves with a meter's lens from now on, or no more: [`Written`] then brings what
    /// is to be counted.
    pub fn watch(&mut self, lens: Option<&Arc<Lens>>) {
        let renderer = Arc::make_mut(&mut self.renderer);
        let known = renderer.watch.take();
        renderer.watch = lens.map(|lens| {
            let known = known.filter(|watch| watch.is_of(lens));
            known.unwrap_or_else(|| Watch::new(Arc::clone(lens), &self.plan))
        });
    }

    /// Names of the fields as they leave.
    pub fn fields(&self) -> &[String] {
        &self.fields
    }

    /// Stated or found out.
    pub fn time_format(&self) -> Option<TimeFormat> {
        self.parts[0].reader.time_format
    }

    /// The first bad lines since this was last called, a thousand at most.
    pub fn take_troubles(&mut self) -> Vec<Trouble> {
        std::mem::take(&mut self.troubles)
    }

    /// Takes the next bytes of a file and writes what can be decided: all complete records. `last`
    /// is true for the end of the file.
    ///
    /// `gates` has one gate for each attribute, in their order; or several sets of them one behind
    /// the other, where only the first decides what is written. Without any, nothing is decided
    /// and nothing veiled.
    pub fn feed(
        &mut self,
        gates: &mut [&mut Gate],
        mut beside: Beside<'_>,
        data: &[u8],
        last: bool,
    ) -> Result<Vec<Written>, WayError> {
        let mut written = vec![blank(&mut self.spare)];
        if self.plan.input == TextFormat::Ndjson && !self.header_written {
            self.write_header(&mut written[0]);
        }
        self.came += data.len() as u64;
        let data = self.skip(data);
        let first_end = memchr::memchr(b'\n', data);
        let nothing_whole = first_end.is_none() && !last;
        if nothing_whole && self.carry.len() + data.len() <= self.plan.max_line {
            self.carry.extend_from_slice(data);
            return Ok(written);
        }
        let mut held = std::mem::take(&mut self.carry);
        let mut data = data;
        let mut outcome = Ok(());
        if let Some(end) = first_end
            && !held.is_empty()
            && self.may_cut()
        {
            // Only the line that was begun is put together; what follows is read where it is.
            let (rest_of_line, behind) = data.split_at(end + 1);
            held.extend_from_slice(rest_of_line);
            let run = self.run(gates, beside.again(), &held, false, &mut written);
            outcome = run.map(|at| drop(held.drain(..at)));
            data = behind;
        }
        let outcome = outcome.and_then(|()| {
            if self.stopped {
                held.extend_from_slice(data);
                self.carry = held;
            } else if held.is_empty() {
                let at = self.run(gates, beside.again(), data, last, &mut written)?;
                self.carry = held;
                self.carry.extend_from_slice(&data[at..]);
            } else {
                held.extend_from_slice(data);
                let at = self.run(gates, beside.again(), &held, last, &mut written)?;
                held.drain(..at);
                self.carry = held;
            }
            Ok(())
        });
        self.parts.iter_mut().for_each(|part| part.named.clear());
        outcome?;
        if let Some(keyring) = beside.keyring {
            keyring.settle()?;
        }
        // A line of CSV is measured without its line break, of which the first half may be here.
        let is_csv = matches!(self.plan.input, TextFormat::Csv(_));
        if !self.stopped && self.carry.len() > self.plan.max_line + usize::from(is_csv) {
            if !self.past_header {
                return Err(WayError::Header(Problem::TooLong));
            }
            self.drop_long_line();
        }
        if self.stopped {
            // Nothing of it is decided.
            self.came -= self.carry.len() as u64;
        }
        if last || self.stopped {
            self.carry.clear();
        }
        Ok(written)
    }

    /// Takes back a text that `feed` gave, so that its memory is used again.
    pub fn reuse(&mut self, mut text: Vec<u8>) {
        let held: usize = self.spare.iter().map(Vec::capacity).sum();
        if text.capacity() > 0 && held.saturating_add(text.capacity()) <= MOST_SPARE {
            text.clear();
            self.spare.push(text);
        }
    }

    /// Whether every line is a record, or none, and can be read without those behind it.
    fn may_cut(&self) -> bool {
        self.plan.input == TextFormat::Ndjson && self.time_format().is_some()
    }

    fn trouble(&mut self, trouble: Trouble) {
        if self.troubles.len() < MOST_TROUBLES {
            self.troubles.push(trouble);
        }
    }

    /// Decides all complete records of a block, and says where the rest begins.
    fn run(
        &mut self,
        gates: &mut [&mut Gate],
        mut beside: Beside<'_>,
        block: &[u8],
        last: bool,
        written: &mut Vec<Written>,
    ) -> Result<usize, WayError> {
        let mut at = 0;
        if self.at_start {
            if block.starts_with(BOM) {
                at = BOM.len();
            }
            self.at_start = false;
        }
        loop {
            // Logs that were put one behind the other have a header each.
            let has_headers = self.heading.as_ref().is_some_and(Heading::is_told);
            self.past_header &= !(has_headers && block.get(at) == Some(&b'#'));
            if !self.past_header {
                at += self.read_header(&block[at..], last)?;
                if !self.past_header {
                    return Ok(at);
                }
                if !self.header_written {
                    self.write_header(&mut written[0]);
                }
            }
            let end = if has_headers { Heading::next(block, at) } else { block.len() };
            let is_whole = end == block.len();
            let (beside, last) = (beside.again(), last || !is_whole);
            let reached = self.run_records(gates, beside, &block[..end], at, last, written)?;
            if is_whole || self.stopped {
                return Ok(reached);
            }
            at = end;
        }
    }
}

/// Something to write into, with memory that was used before.
fn blank(spare: &mut Vec<Vec<u8>>) -> Written {
    Written { text: spare.pop().unwrap_or_default(), ..Written::default() }
}
