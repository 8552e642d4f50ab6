//! Many observations in one call: hashed in one sweep, then decided with the memory fetched ahead.
//!
//! A batch is cut into rounds. In each round
//! 1. *prepare*: rows are hashed (any thread takes any rows);
//! 2. *admit*: times are held against the gate's clock, in the order of the rows;
//! 3. *decide*: each shard takes the rows of its own attributes, in the order of the rows.
//!
//! A decision depends on its attribute's rows and the clock alone, so neither the cut into rounds
//! nor the number of threads changes any.

mod decide;
mod part;

use crate::column::Column;
use crate::error::Error;
use crate::gate::{Gate, check_levels};
use decide::{Plain, Round};
use part::{Part, Source};

/// Rows of a round on one thread: their hashes stay in the cache.
const ROUND: usize = 4096;
/// Rows of a round for each of several threads: worth starting a thread for.
const ROUND_THREADED: usize = 65_536;
/// A batch below this is decided on the calling thread alone.
const WORTH_THREADS: usize = 16_384;
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
        let rows = source.times.len();
        if source.plain && self.shards.len() == 1 {
            self.run_plain(source, decisions);
        } else {
            self.run_sharded(source, decisions);
        }
        self.observed += rows as u64;
        self.released += count_released(decisions);
        Ok(())
    }

    #[inline(never)]
    fn run_plain(&mut self, source: &Source, decisions: &mut [i8]) {
        let mut part = Part::default();
        for (number, decisions) in decisions.chunks_mut(ROUND).enumerate() {
            part.start = number * ROUND;
            part.rows = decisions.len();
            part.prepare(&self.hasher, source, 1);
            let epoch = self.epochs.at(self.admission.clock);
            let Self { admission, epochs, shards, rules, .. } = self;
            let shard = &mut shards[0];
            shard.reclaim(epoch, part.rows);
            Plain { admission, epochs, rules: *rules, shard }.decide(&part, decisions);
        }
    }

    fn run_sharded(&mut self, source: &Source, decisions: &mut [i8]) {
        let rows = source.times.len();
        let shards = self.shards.len();
        let threads = if rows < WORTH_THREADS { 1 } else { shards };
        let share = if threads == 1 { ROUND } else { ROUND_THREADED };
        let mut parts: Vec<Part> = (0..threads).map(|_| Part::default()).collect();
        for start in (0..rows).step_by(share * threads) {
            let end = rows.min(start + share * threads);
            let each = (end - start).div_ceil(threads);
            for (number, part) in parts.iter_mut().enumerate() {
                part.start = end.min(start + number * each);
                part.rows = end.min(start + (number + 1) * each) - part.start;
            }
            in_parallel(&mut parts, threads, |part| part.prepare(&self.hasher, source, shards));
            let before = self.epochs.at(self.admission.clock);
            for part in &mut parts {
                part.admit(source, &mut self.admission);
            }
            let round = Round {
                parts: &parts,
                levels: source.levels.len(),
                plain: source.plain,
                rules: self.rules,
                rule: self.settings.rule,
                epoch: self.epochs.at(self.admission.clock) as u32,
            };
            let share = (end - start) / shards;
            let mut work: Vec<_> = self
                .shards
                .iter_mut()
                .enumerate()
                .map(|(number, shard)| (number, shard, Vec::with_capacity(share)))
                .collect();
            in_parallel(&mut work, threads, |(number, shard, released)| {
                shard.reclaim(before, share);
                round.decide(*number, shard, |row, level| released.push((row, level)));
            });
            for (row, level) in work.into_iter().flat_map(|(_, _, released)| released) {
                decisions[row] = level;
            }
        }
    }
}

fn count_released(decisions: &[i8]) -> u64 {
    // Wrapping sums are vectorized, checked ones are not; there are fewer than 2^64 rows.
    decisions.iter().fold(0_u64, |sum, level| sum.wrapping_add(u64::from(*level != VEILED)))
}

/// Gives each item to a thread, the last to the calling one.
fn in_parallel<T: Send>(items: &mut [T], threads: usize, work: impl Fn(&mut T) + Sync) {
    let Some((last, others)) = items.split_last_mut() else { return };
    if threads == 1 {
        others.iter_mut().for_each(&work);
        work(last);
        return;
    }
    let work = &work;
    std::thread::scope(|scope| {
        for item in others {
            scope.spawn(move || work(item));
        }
        work(last);
    });
}
