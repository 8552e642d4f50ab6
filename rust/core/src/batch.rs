//! Many observations in one call: hashed in one sweep, then decided with the memory fetched ahead.
//!
//! A batch is cut into rounds. In each round
//! 1. *prepare*: rows are hashed (any thread takes any rows);
//! 2. *admit*: times are held against the gate's clock, in the order of the rows;
//! 3. *decide*: each shard takes the rows of its own attributes, in the order of the rows.
//!
//! A decision depends on its attribute's rows and the clock alone, so neither the cut into rounds
//! nor the number of threads changes any.

use crate::column::{Blocks, Column, Role};
use crate::crowd::Rules;
use crate::error::Error;
use crate::gate::{Gate, check_levels, walk};
use crate::key::{ABOVE_LEVELS, Hasher};
use crate::settings::Rule;
use crate::shard::Shard;
use crate::slab::Entry;
use crate::table::Key;

/// Rows of a round on one thread: their hashes stay in the cache.
const ROUND: usize = 4096;
/// Rows of a round for each of several threads: worth starting a thread for.
const ROUND_THREADED: usize = 65_536;
/// A batch below this is decided on the calling thread alone.
const WORTH_THREADS: usize = 16_384;
/// How many rows ahead slots and crowds are fetched.
const SLOT_AHEAD: usize = 32;
const CROWD_AHEAD: usize = 16;
/// Up to this size the state is in the cache anyway, and fetching ahead only costs.
const IN_CACHE: usize = 1 << 20;

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
        let rows = source.times.len();
        let threads = if rows < WORTH_THREADS { 1 } else { self.shards.len() };
        let share = if threads == 1 { ROUND } else { ROUND_THREADED };
        let mut parts: Vec<Part> = (0..threads).map(|_| Part::default()).collect();
        for start in (0..rows).step_by(share * threads) {
            let end = rows.min(start + share * threads);
            let each = (end - start).div_ceil(threads);
            for (number, part) in parts.iter_mut().enumerate() {
                part.start = end.min(start + number * each);
                part.rows = end.min(start + (number + 1) * each) - part.start;
            }
            let (hasher, shards) = (&self.hasher, self.shards.len());
            in_parallel(&mut parts, threads, |part| part.prepare(hasher, source, shards));
            let before = self.epochs.at(self.admission.clock);
            for part in &mut parts {
                for row in 0..part.rows {
                    let time = source.times[part.start + row];
                    part.admitted[row] = self.admission.admit(time, part.valid[row]);
                }
            }
            let round = Round {
                source,
                parts: &parts,
                rules: self.rules,
                rule: self.settings.rule,
                epoch: self.epochs.at(self.admission.clock) as u32,
            };
            let mut work: Vec<(usize, &mut Shard, Vec<(usize, i8)>)> = self
                .shards
                .iter_mut()
                .enumerate()
                .map(|(number, shard)| (number, shard, Vec::new()))
                .collect();
            if let [(_, shard, _)] = &mut work[..] {
                shard.reclaim(before, end - start);
                round.decide(0, shard, |row, level| decisions[row] = level);
            } else {
                in_parallel(&mut work, threads, |(number, shard, decided)| {
                    shard.reclaim(before, (end - start) / shards);
                    round.decide(*number, shard, |row, level| decided.push((row, level)));
                });
                for (row, level) in work.into_iter().flat_map(|(_, _, decided)| decided) {
                    decisions[row] = level;
                }
            }
        }
        self.observed += rows as u64;
        self.released += decisions.iter().filter(|level| **level != VEILED).count() as u64;
        Ok(())
    }
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

struct Source<'a> {
    times: &'a [i64],
    users: &'a dyn Column,
    levels: &'a [&'a dyn Column],
    /// Attributes, not levels: another name space.
    plain: bool,
}

impl Source<'_> {
    fn check(&self, decisions: usize) -> Result<(), Error> {
        let (times, users) = (self.times.len(), self.users.len());
        for level in self.levels {
            if times != users || users != level.len() || times != decisions {
                return Err(Error::Lengths { times, users, attributes: level.len() });
            }
        }
        Ok(())
    }
}

/// Some rows of a round, hashed.
#[derive(Default)]
struct Part {
    start: usize,
    rows: usize,
    users: Vec<u128>,
    /// Has a user and at least one level.
    valid: Vec<bool>,
    admitted: Vec<bool>,
    levels: Vec<Level>,
    /// For each shard the rows that belong to it.
    shards: Vec<Vec<u32>>,
}

#[derive(Default)]
struct Level {
    hashes: Vec<u128>,
    /// What stands for the row's user under this level.
    entries: Vec<u64>,
    valid: Vec<bool>,
}

impl Part {
    fn prepare(&mut self, hasher: &Hasher, source: &Source, shards: usize) {
        let (start, rows) = (self.start, self.rows);
        self.users.resize(rows, 0);
        self.admitted.resize(rows, false);
        self.valid.clear();
        self.valid.resize(rows, true);
        let role = Role::User;
        let (out, valid) = (&mut self.users[..], &mut self.valid[..]);
        source.users.blocks(Blocks { hasher, role, start, out, valid });
        self.levels.resize_with(source.levels.len(), Level::default);
        let above = vec![ABOVE_LEVELS; if source.plain { 0 } else { rows }];
        for (number, column) in source.levels.iter().enumerate() {
            let (coarser, finer) = self.levels.split_at_mut(number);
            let level = &mut finer[0];
            level.hashes.resize(rows, 0);
            level.entries.resize(rows, 0);
            level.valid.clear();
            level.valid.resize(rows, true);
            let role = Role::Attribute;
            let (out, valid) = (&mut level.hashes[..], &mut level.valid[..]);
            column.blocks(Blocks { hasher, role, start, out, valid });
            let above = match coarser.last() {
                Some(above) => Some(&above.hashes[..]),
                None if source.plain => None,
                None => Some(&above[..]),
            };
            hasher.attributes(&mut level.hashes, above);
            hasher.users(&self.users, &level.hashes, &mut level.entries);
        }
        for (row, valid) in self.valid.iter_mut().enumerate() {
            *valid &= self.levels.iter().any(|level| level.valid[row]);
        }
        self.shards.resize_with(shards, Vec::new);
        for rows in &mut self.shards {
            rows.clear();
        }
        if let [rows_of_all] = &mut self.shards[..] {
            rows_of_all.extend(0..rows as u32);
            return;
        }
        for row in 0..rows {
            let shard = self.key(0, row as u32).shard(shards);
            self.shards[shard].push(row as u32);
        }
    }

    #[inline(always)]
    fn key(&self, level: usize, row: u32) -> Key {
        let row = row as usize;
        Key::new(self.levels[level].hashes[row], self.levels[0].hashes[row])
    }

    #[inline(always)]
    fn entry(&self, level: usize, row: u32, times: &[i64]) -> Entry {
        let row = row as usize;
        Entry { user: self.levels[level].entries[row], time: times[self.start + row] }
    }
}

struct Round<'a> {
    source: &'a Source<'a>,
    parts: &'a [Part],
    rules: Rules,
    rule: Rule,
    epoch: u32,
}

impl Round<'_> {
    fn decide(&self, number: usize, shard: &mut Shard, mut put: impl FnMut(usize, i8)) {
        let times = self.source.times;
        for part in self.parts {
            let rows = &part.shards[number][..];
            let fetch = shard.bytes() > IN_CACHE;
            let levels = part.levels.len();
            let observe = |shard: &mut Shard, level: usize, row: u32| {
                let entry = part.entry(level, row, times);
                shard.observe(part.key(level, row), entry, self.epoch, &self.rules)
            };
            for (place, &row) in rows.iter().enumerate() {
                if fetch {
                    if let Some(&row) = rows.get(place + SLOT_AHEAD) {
                        (0..levels).for_each(|level| shard.prefetch_slot(part.key(level, row)));
                    }
                    if let Some(&row) = rows.get(place + CROWD_AHEAD) {
                        (0..levels).for_each(|level| shard.prefetch_crowd(part.key(level, row)));
                    }
                }
                let mut decision = VEILED;
                if part.admitted[row as usize] {
                    if self.source.plain {
                        if observe(shard, 0, row) {
                            decision = 0;
                        }
                    } else {
                        let level = walk(self.rule, levels, |level| {
                            part.levels[level].valid[row as usize] && observe(shard, level, row)
                        });
                        decision = level.map_or(VEILED, |level| level as i8);
                    }
                }
                put(part.start + row as usize, decision);
            }
        }
    }
}
