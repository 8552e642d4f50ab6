//! The records of a block, on one thread or on several.

use super::conveyor::{Closing, Conveyor};
use super::part::Part;
use super::{Beside, Way, WayError, blank};
use crate::gate::Gate;
use crate::pseudonym::Keyring;
use crate::text::plan::{Output, TextFormat};
use crate::text::question::Question;
use crate::text::read::{Extent, Trouble, Until};
use crate::text::render::Written;
use std::sync::Arc;

/// Rows that are read, decided and written in one go on one thread: they stay in the cache.
pub(super) const ROWS: usize = 1024;
/// A block below this is read on one thread.
const WORTH_THREADS: usize = 256 << 10;
/// Bytes of a part, where there are several threads.
const PART: usize = 128 << 10;

impl Way {
    /// Decides the records from `at` on, behind any header.
    pub(super) fn run_records(
        &mut self,
        gates: &mut [&mut Gate],
        beside: Beside<'_>,
        block: &[u8],
        at: usize,
        last: bool,
        written: &mut Vec<Written>,
    ) -> Result<usize, WayError> {
        if self.time_format().is_none() {
            self.find_time_format(block, at, last);
        }
        match &self.cut(block, at, last)[..] {
            [] => self.run_part(gates, beside, block, (at, last), written),
            extents => self.run_parts(gates, beside, block, extents, written),
        }
    }

    /// On one thread, some rows at a time.
    fn run_part(
        &mut self,
        gates: &mut [&mut Gate],
        mut beside: Beside<'_>,
        block: &[u8],
        (start, last): (usize, bool),
        written: &mut [Written],
    ) -> Result<usize, WayError> {
        let utf8 = simdutf8::basic::from_utf8(&block[start..]).is_ok();
        let mut extent = Extent { start, end: block.len(), last, utf8, most_rows: ROWS };
        // Behind what several threads may have written before a header.
        let Some(written) = written.last_mut() else { return Ok(start) };
        let mut parts = std::mem::take(&mut self.parts);
        let part = &mut *parts[0];
        let reached = loop {
            let (at, until) = part.read(block, extent);
            if let Err(error) = self.decide(gates, &mut beside, block, part) {
                break Err(error);
            }
            if self.writes() {
                part.write(&self.renderer, block, written);
            }
            extent.start = at;
            self.stopped |= until == Until::Problem;
            if until != Until::Enough {
                break Ok(at);
            }
        };
        self.parts = parts;
        reached
    }

    /// On several threads.
    fn run_parts(
        &mut self,
        gates: &mut [&mut Gate],
        mut beside: Beside<'_>,
        block: &[u8],
        extents: &[Extent],
        written: &mut Vec<Written>,
    ) -> Result<usize, WayError> {
        let time_format = self.time_format();
        let mut parts = std::mem::take(&mut self.parts);
        parts.iter_mut().for_each(|part| part.reader.time_format = time_format);
        let (crew, renderer) = (Arc::clone(&self.crew), Arc::clone(&self.renderer));
        let conveyor = Conveyor::new(block, extents, &renderer, parts);
        let outcome = crew.assisted(
            || conveyor.help(),
            || -> Result<(), WayError> {
                let _closing = Closing(&conveyor);
                for number in 0..extents.len() {
                    let mut load = conveyor.take(number);
                    let decided = self.decide(gates, &mut beside, block, &mut load.part);
                    if decided.is_ok() && self.writes() {
                        conveyor.put(load, blank(&mut self.spare));
                    } else {
                        conveyor.put_away(load);
                    }
                    decided?;
                }
                conveyor.finish();
                Ok(())
            },
        );
        let (mut of_all, reached, parts) = conveyor.into_parts();
        self.parts = parts;
        written.append(&mut of_all);
        outcome.map(|()| reached)
    }

    /// Parts that can be read by themselves: whole lines. None if there is only one.
    fn cut(&self, block: &[u8], start: usize, last: bool) -> Vec<Extent> {
        let rest = &block[start..];
        let alone = self.crew.threads() == 1
            || self.plan.stop_at_problem
            || self.time_format().is_none()
            || rest.len() < WORTH_THREADS
            || match self.plan.input {
                TextFormat::Ndjson => false,
                // A line break may be within quotes.
                TextFormat::Csv(_) => memchr::memchr(b'"', rest).is_some(),
                TextFormat::Log(format) => format.may_lack_years(),
            };
        let mut extents = Vec::new();
        if alone {
            return extents;
        }
        let (mut start, end) = (start, block.len());
        let whole = Extent { start, end, last: false, utf8: false, most_rows: usize::MAX };
        while end - start > PART {
            let near = start + PART;
            let Some(feed) = memchr::memchr(b'\n', &block[near..]) else { break };
            extents.push(Extent { start, end: near + feed + 1, ..whole });
            start = near + feed + 1;
        }
        extents.push(Extent { start, last, ..whole });
        extents
    }

    /// Asks the gates about the rows of a part, and finds the keys that their users leave under.
    fn decide(
        &mut self,
        gates: &mut [&mut Gate],
        beside: &mut Beside<'_>,
        block: &[u8],
        part: &mut Part,
    ) -> Result<(), WayError> {
        self.leave_out(beside.ids.as_deref_mut(), block, part);
        self.collect(part);
        if let Some((witness, partition)) = &mut beside.witness {
            witness.look(&self.plan, *partition, block, &part.rows);
        }
        let question = Question { plan: &self.plan, block, rows: &part.rows };
        self.swaps.begin(&self.plan, gates)?;
        question.ask(gates, &mut self.swaps, &mut part.decisions, &mut self.tally)?;
        if self.swaps.is_on() {
            self.swaps.put_into(&mut part.rows);
            self.tally.swapped = self.swaps.counts();
        }
        if self.writes() { self.name(beside.keyring.as_deref_mut(), part) } else { Ok(()) }
    }

    /// Takes over what a reader counted.
    pub(super) fn collect(&mut self, part: &mut Part) {
        let reader = &mut part.reader;
        let lines = std::mem::take(&mut reader.lines);
        let troubles = std::mem::take(&mut reader.troubles);
        for (sum, count) in self.tally.bad.iter_mut().zip(&mut reader.bad) {
            *sum += std::mem::take(count);
        }
        self.tally.passed += std::mem::take(&mut reader.passed);
        self.tally.filtered.resize(reader.filtered.len(), 0);
        for (sum, count) in self.tally.filtered.iter_mut().zip(&mut reader.filtered) {
            *sum += std::mem::take(count);
        }
        let before = self.line;
        for trouble in troubles {
            self.trouble(Trouble { line: before + trouble.line, ..trouble });
        }
        self.line += lines;
        self.tally.lines += lines;
        self.tally.records += part.rows.len() as u64;
    }

    fn writes(&self) -> bool {
        self.plan.output != Output::Nothing && !self.silent
    }

    fn name(&self, keyring: Option<&mut Keyring>, part: &mut Part) -> Result<(), WayError> {
        let Part { rows, decisions, named, .. } = part;
        part.is_named = keyring.is_some();
        if let Some(keyring) = keyring {
            keyring.name(&rows.times, |row| self.renderer.leaves(decisions, row), named)?;
        }
        Ok(())
    }
}
