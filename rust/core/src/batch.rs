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
        decisions.fill(VEILED);
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
                parts: &parts,
                levels: source.levels.len(),
                plain: source.plain,
                rules: self.rules,
                rule: self.settings.rule,
                epoch: self.epochs.at(self.admission.clock) as u32,
            };
            let share = (end - start) / shards;
            if let [shard] = &mut self.shards[..] {
                shard.reclaim(before, share);
                round.decide(0, shard, |row, level| decisions[row] = level);
                continue;
            }
            let shards = self.shards.iter_mut().enumerate();
            let mut work: Vec<_> =
                shards.map(|(number, shard)| (number, shard, Vec::with_capacity(share))).collect();
            in_parallel(&mut work, threads, |(number, shard, released)| {
                shard.reclaim(before, share);
                round.decide(*number, shard, |row, level| released.push((row, level)));
            });
            for (row, level) in work.into_iter().flat_map(|(_, _, released)| released) {
                decisions[row] = level;
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
    /// For each shard the rows that belong to it, one behind the other, with all their levels.
    seen: Vec<Vec<Seen>>,
}

#[derive(Default)]
struct Level {
    hashes: Vec<u128>,
    /// What stands for the row's user under this level.
    entries: Vec<u64>,
    valid: Vec<bool>,
}

/// A row at one of its levels, ready to be counted.
#[derive(Clone, Copy)]
struct Seen {
    key: Key,
    /// Within the part.
    row: u32,
    entry: Entry,
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
        self.seen.resize_with(shards, Vec::new);
        self.seen.iter_mut().for_each(Vec::clear);
        self.collect(&source.times[start..start + rows], shards);
    }

    fn collect(&mut self, times: &[i64], shards: usize) {
        let Self { levels, valid, seen, .. } = self;
        if let ([level], [seen]) = (&levels[..], &mut seen[..]) {
            // The common case by itself: one level, one shard.
            let values = level.hashes.iter().zip(&level.entries).zip(times);
            seen.extend(values.enumerate().map(|(row, ((hash, user), time))| Seen {
                key: Key::new(*hash, *hash),
                row: row as u32,
                entry: Entry { user: *user, time: *time },
            }));
            valid.iter_mut().zip(&level.valid).for_each(|(valid, level)| *valid &= level);
            return;
        }
        for (row, time) in times.iter().enumerate() {
            valid[row] &= levels.iter().any(|level| level.valid[row]);
            let coarsest = levels[0].hashes[row];
            let shard = &mut seen[Key::new(coarsest, coarsest).shard(shards)];
            shard.extend(levels.iter().map(|level| Seen {
                key: if level.valid[row] {
                    Key::new(level.hashes[row], coarsest)
                } else {
                    Key::MISSING
                },
                row: row as u32,
                entry: Entry { user: level.entries[row], time: *time },
            }));
        }
    }
}

struct Round<'a> {
    parts: &'a [Part],
    levels: usize,
    plain: bool,
    rules: Rules,
    rule: Rule,
    epoch: u32,
}

impl Round<'_> {
    /// Decides the rows of one shard; `put` gets those that are released, with their level.
    fn decide(&self, number: usize, shard: &mut Shard, mut put: impl FnMut(usize, i8)) {
        let rules = self.rules;
        for part in self.parts {
            let seen = &part.seen[number][..];
            let fetch = shard.bytes() > IN_CACHE;
            if self.plain {
                for (place, one) in seen.iter().enumerate() {
                    if fetch {
                        fetch_ahead(shard, seen, place);
                    }
                    if part.admitted[one.row as usize]
                        && shard.observe(one.key, one.entry, self.epoch, &rules)
                    {
                        put(part.start + one.row as usize, 0);
                    }
                }
                continue;
            }
            for (place, levels) in seen.chunks_exact(self.levels).enumerate() {
                if fetch {
                    let place = place * self.levels;
                    (place..place + self.levels).for_each(|at| fetch_ahead(shard, seen, at));
                }
                let row = levels[0].row as usize;
                if !part.admitted[row] {
                    continue;
                }
                let level = walk(self.rule, self.levels, |level| {
                    let Seen { key, entry, .. } = levels[level];
                    key != Key::MISSING && shard.observe(key, entry, self.epoch, &rules)
                });
                if let Some(level) = level {
                    put(part.start + row, level as i8);
                }
            }
        }
    }
}

#[inline(always)]
fn fetch_ahead(shard: &Shard, seen: &[Seen], place: usize) {
    if let Some(later) = seen.get(place + SLOT_AHEAD) {
        shard.prefetch_slot(later.key);
    }
    if let Some(soon) = seen.get(place + CROWD_AHEAD) {
        shard.prefetch_crowd(soon.key);
    }
}
