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
mod threads;

use crate::column::Column;
use crate::error::Error;
use crate::gate::{Gate, check_levels};
use decide::{Plain, Round};
use part::{Part, Source};

/// Rows of a round on one thread: their hashes stay in the cache.
const ROUND: usize = 4096;
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
        } else if self.shards.len() == 1 || rows < WORTH_THREADS {
            self.run_rounds(source, decisions);
        } else {
            self.run_threads(source, decisions);
        }
        self.observed += rows as u64;
        self.released += count_released(decisions);
        Ok(())
    }

    /// Plain attributes in one shard: the shortest way.
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

    /// Several shards or levels on the calling thread.
    fn run_rounds(&mut self, source: &Source, decisions: &mut [i8]) {
        let mut part = Part::default();
        let mut admitted = Vec::new();
        for (number, decisions) in decisions.chunks_mut(ROUND).enumerate() {
            part.start = number * ROUND;
            part.rows = decisions.len();
            part.prepare(&self.hasher, source, self.shards.len());
            let before = self.epochs.at(self.admission.clock);
            part.admit(source.times, &mut self.admission, &mut admitted);
            let round = self.round(source);
            let share = part.rows / self.shards.len() + 1;
            for (shard, seen) in self.shards.iter_mut().zip(&part.seen) {
                shard.reclaim(before, share);
                round.decide(seen, &admitted, shard, |row, level| decisions[row as usize] = level);
            }
        }
    }

    /// How rows are decided at the clock as it stands, behind the last row admitted.
    fn round(&mut self, source: &Source) -> Round {
        Round {
            levels: source.levels.len(),
            plain: source.plain,
            rules: self.rules,
            rule: self.settings.rule,
            epoch: self.epochs.at(self.admission.clock) as u32,
        }
    }
}

fn count_released(decisions: &[i8]) -> u64 {
    // Wrapping sums are vectorized, checked ones are not; there are fewer than 2^64 rows.
    decisions.iter().fold(0_u64, |sum, level| sum.wrapping_add(u64::from(*level != VEILED)))
}
