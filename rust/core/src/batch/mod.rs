//! Many observations in one call: hashed in one sweep, then decided with the memory fetched ahead.
//!
//! A batch is cut into rounds. In each round
//! 1. *prepare*: rows are hashed;
//! 2. *admit*: their times are held against the gate's clock, in the order of the rows;
//! 3. *decide*: each shard takes the rows of its own attributes, in the order of the rows.
//!
//! A decision depends on its attribute's rows and the clock alone, so neither the cut into batches
//! nor the number of threads changes any. Where the memory limit is reached it depends on what was
//! reclaimed by then, too: so rounds begin at the same rows of the stream however that is cut, and
//! memory is reclaimed at their beginning only. With several threads each goes through all rows: it hashes
//! every attribute, keeps the clock for itself, and goes on with the rows of its own shard only.
//! Nobody waits for anybody, which is worth more than hashing no attribute twice.

mod decide;
mod levels;
mod part;

use crate::admission::Admission;
use crate::column::Column;
use crate::crew::{Crew, Task};
use crate::deal::Deal;
use crate::error::Error;
use crate::expiry::Epochs;
use crate::gate::{Gate, check_levels};
use crate::key::Hasher;
use crate::shard::Shard;
use decide::Round;
use part::{Part, Source};

/// Rows of a round, counted from the gate's first: their hashes stay in the cache.
const ROUND: usize = 4096;
/// A batch below this is decided on the calling thread alone.
const WORTH_THREADS: usize = 16_384;
/// Rows that threads are started for: each has so many decisions of its own.
const SPAN: usize = 1 << 20;

/// What became of an observation: the number of the level released, or this.
pub const VEILED: i8 = -1;

impl Gate {
    /// Decides observations in their order: 0 where released, [`VEILED`] where not.
    pub fn observe_many(
        &mut self,
        times: &[i64],
        users: &dyn Column,
        attributes: &dyn Column,
        decisions: &mut [i8],
    ) -> Result<(), Error> {
        let source = Source { times, users, levels: &[attributes], plain: true };
        self.run(&source, decisions)
    }

    /// Decides observations with several levels, coarsest first: the level released or [`VEILED`].
    pub fn observe_levels_many(
        &mut self,
        times: &[i64],
        users: &dyn Column,
        levels: &[&dyn Column],
        decisions: &mut [i8],
    ) -> Result<(), Error> {
        check_levels(levels.len())?;
        let source = Source { times, users, levels, plain: false };
        self.run(&source, decisions)
    }

    fn run(&mut self, source: &Source, decisions: &mut [i8]) -> Result<(), Error> {
        source.check(decisions.len())?;
        decisions.fill(VEILED);
        if let Some(census) = &mut self.census {
            census.take(&self.hasher, source.users);
        }
        if self.shards.len() == 1 || decisions.len() < WORTH_THREADS {
            let (mut worker, shards, _) = self.worker(source);
            worker.decide(0, decisions, shards, None);
            let Worker { admission, epochs, .. } = worker;
            self.admission = admission;
            self.epochs = epochs;
        } else {
            self.deal_out(source);
            for (number, span) in decisions.chunks_mut(SPAN).enumerate() {
                self.run_threads(source, number * SPAN, span);
            }
        }
        self.observed += decisions.len() as u64;
        self.released += count_released(decisions);
        Ok(())
    }

    /// Deals attributes out to the threads, as long as nobody is counted. Not where each thread has its share of
    /// a limit: what that forbids must not hang on how the stream is cut. Nor where observations were refused:
    /// only the shard that refused them knows until when its attributes may lack some.
    fn deal_out(&mut self, source: &Source) {
        let is_new = |shard: &Shard| {
            let knows_nothing = shard.holdings().attributes == 0 && shard.refused_clock == i64::MIN;
            knows_nothing && !shard.is_limited()
        };
        if self.shards.iter().all(is_new) {
            self.deal = Deal::by(&source.selectors(&self.hasher), self.shards.len());
        }
    }

    fn run_threads(&mut self, source: &Source, start: usize, decisions: &mut [i8]) {
        // A row is decided by one thread; to the others it is veiled. The memory stays: fresh pages
        // cost as much as some of the decisions.
        let mut others = std::mem::take(&mut self.others);
        others.resize_with(self.shards.len() - 1, Vec::new);
        for other in &mut others {
            other.clear();
            other.resize(decisions.len(), VEILED);
        }
        let (mut first, shards, crew) = self.worker(source);
        // One wall clock for all.
        first.admission = first.admission.frozen();
        let mut places: Vec<&mut [i8]> = others.iter_mut().map(Vec::as_mut_slice).collect();
        places.insert(0, &mut *decisions);
        let mut workers = vec![first; shards.len()];
        let tasks = shards.iter_mut().zip(places).zip(&mut workers).enumerate();
        crew.run(
            tasks
                .map(|(number, ((shard, decisions), worker))| -> Task<'_> {
                    let shard = std::slice::from_mut(shard);
                    Box::new(move || worker.decide(start, decisions, shard, Some(number)))
                })
                .collect(),
        );
        let admission = workers.swap_remove(0).admission;
        for other in &others {
            let found = decisions.iter_mut().zip(other);
            found.for_each(|(decision, found)| *decision = (*decision).max(*found));
        }
        self.admission = admission.thawed();
        self.others = others;
    }

    fn worker<'a>(&'a mut self, source: &'a Source<'a>) -> (Worker<'a>, &'a mut [Shard], &'a Crew) {
        let Self {
            hasher, deal, shards, admission, epochs, rules, settings, crew, observed, ..
        } = self;
        let round = Round {
            levels: source.levels.len(),
            plain: source.plain,
            rules: *rules,
            rule: settings.rule,
            epoch: 0,
        };
        let (admission, epochs, before) = (admission.clone(), *epochs, *observed);
        (Worker { source, hasher, round, admission, epochs, deal, before }, shards, crew)
    }
}

/// What one thread needs to decide rows.
#[derive(Clone)]
struct Worker<'a> {
    source: &'a Source<'a>,
    hasher: &'a Hasher,
    round: Round,
    admission: Admission,
    epochs: Epochs,
    deal: &'a Deal,
    /// Rows of the gate before this batch.
    before: u64,
}

impl Worker<'_> {
    /// Decides the rows from `start` on: those of all shards, or of the one whose number is `own`.
    fn decide(
        &mut self,
        start: usize,
        decisions: &mut [i8],
        shards: &mut [Shard],
        own: Option<usize>,
    ) {
        let mut part = Part::default();
        let mut rest = decisions;
        part.start = start;
        while !rest.is_empty() {
            let place = (self.before.wrapping_add(part.start as u64) % ROUND as u64) as usize;
            let (decisions, behind) = rest.split_at_mut(rest.len().min(ROUND - place));
            part.rows = decisions.len();
            part.prepare(self.hasher, self.source, self.deal, own);
            let clock = self.admission.clock;
            let epoch = self.epochs.at(clock);
            if place == 0 {
                let share = ROUND / self.deal.shards() + 1;
                shards.iter_mut().for_each(|shard| shard.reclaim(epoch, share));
            }
            part.admit(self.source.times, &mut self.admission);
            self.round.epoch = epoch as u32;
            if self.epochs.at(self.admission.clock) == epoch {
                self.round.decide(&part, part.all(), shards, own, decisions);
            } else {
                for (rows, epoch) in part.epochs(self.source.times, clock, &mut self.epochs) {
                    self.round.epoch = epoch as u32;
                    self.round.decide(&part, rows, shards, own, decisions);
                }
            }
            part.start += part.rows;
            rest = behind;
        }
    }
}

fn count_released(decisions: &[i8]) -> u64 {
    // Wrapping sums are vectorized, checked ones are not; there are fewer than 2^64 rows.
    decisions.iter().fold(0_u64, |sum, level| sum.wrapping_add(u64::from(*level != VEILED)))
}
