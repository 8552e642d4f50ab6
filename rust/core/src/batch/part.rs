//! Some rows of a batch, hashed and ready to be decided.

use crate::admission::{Admission, Admitted};
use crate::column::{Blocks, Column, Role};
use crate::deal::{Deal, SELECTORS};
use crate::error::Error;
use crate::expiry::Epochs;
use crate::key::{ABOVE_LEVELS, Hashed, Hasher, ROWS};
use crate::slab::Entry;
use crate::slot::Key;
use std::ops::Range;

/// Rows of a sample, about: each shard's share is known to half a percent.
const SAMPLE: usize = 16_384;

/// The columns of a batch.
pub(super) struct Source<'a> {
    pub(super) times: &'a [i64],
    pub(super) users: &'a dyn Column,
    pub(super) levels: &'a [&'a dyn Column],
    /// Attributes, not levels: another name space.
    pub(super) plain: bool,
}

impl Source<'_> {
    pub(super) fn check(&self, decisions: usize) -> Result<(), Error> {
        let (times, users) = (self.times.len(), self.users.len());
        for level in self.levels {
            if times != users || users != level.len() || times != decisions {
                return Err(Error::Lengths { times, users, attributes: level.len() });
            }
        }
        Ok(())
    }

    /// How often each selector comes, in a sample of the rows.
    pub(super) fn selectors(&self, hasher: &Hasher) -> [u32; SELECTORS] {
        let all = u32::try_from(self.times.len()).unwrap_or(u32::MAX);
        let rows: Vec<u32> = (0..all).step_by(self.times.len().div_ceil(SAMPLE).max(1)).collect();
        let mut coarsest = Level::default();
        coarsest.fill(hasher, self.levels[0], 0, &rows);
        let above = vec![ABOVE_LEVELS; rows.len()];
        hasher.attributes(&mut coarsest.hashes, Some(&above[..]).filter(|_| !self.plain));
        let mut counts = [0_u32; SELECTORS];
        let hashes = coarsest.hashes.iter().zip(&coarsest.valid);
        for (hash, _) in hashes.filter(|(_, is_there)| **is_there) {
            counts[Key::new(*hash, *hash).selector()] += 1;
        }
        counts
    }

    fn may_miss(&self) -> bool {
        self.users.may_miss() || self.levels.iter().any(|level| level.may_miss())
    }
}

/// Some rows of a batch, hashed.
#[derive(Default)]
pub(super) struct Part {
    pub(super) start: usize,
    pub(super) rows: usize,
    /// Those rows that are hashed throughout: all, or where nothing is missing, those of one shard.
    chosen: Vec<u32>,
    /// From here on everything is by place in `chosen`.
    users: Vec<u128>,
    /// Has a user and at least one level. Empty if all rows have.
    valid: Vec<bool>,
    levels: Vec<Level>,
    /// For each shard the rows that belong to it, one behind the other, with all their levels.
    pub(super) seen: Vec<Vec<Seen>>,
    pub(super) admitted: Timing,
}

#[derive(Default)]
struct Level {
    hashes: Vec<u128>,
    /// What stands for the row's user under this level.
    entries: Vec<u64>,
    valid: Vec<bool>,
}

/// What became of the rows of a part by their times.
pub(super) enum Timing {
    /// All were taken, none was earlier than one before.
    InOrder,
    /// One by one.
    Mixed(Vec<Admitted>),
}

impl Default for Timing {
    fn default() -> Self {
        Self::Mixed(Vec::new())
    }
}

impl Timing {
    #[inline(always)]
    pub(super) fn of(&self, row: usize) -> Admitted {
        match self {
            Self::InOrder => Admitted::InOrder,
            Self::Mixed(admitted) => admitted[row],
        }
    }
}

/// A row at one of its levels, ready to be counted.
#[derive(Clone, Copy, Default)]
pub(super) struct Seen {
    pub(super) hash: u64,
    check: u32,
    /// Within the part.
    pub(super) row: u32,
    pub(super) entry: Entry,
}

impl Seen {
    #[inline(always)]
    fn new(key: Key, row: u32, user: u64, time: i64) -> Self {
        Self { hash: key.hash, check: key.check, row, entry: Entry { user, time } }
    }

    #[inline(always)]
    pub(super) fn key(&self) -> Key {
        Key { hash: self.hash, check: self.check }
    }
}

impl Part {
    /// Hashes the rows; with a shard of its `own`, only what belongs to it need be in `seen`.
    pub(super) fn prepare(
        &mut self,
        hasher: &Hasher,
        source: &Source,
        deal: &Deal,
        own: Option<usize>,
    ) {
        let times = &source.times[self.start..self.start + self.rows];
        self.seen.resize_with(deal.shards(), Vec::new);
        self.seen.iter_mut().for_each(Vec::clear);
        self.valid.clear();
        self.levels.resize_with(source.levels.len(), Level::default);
        if !self.take_words(hasher, source, times, deal, own) {
            self.take_columns(hasher, source, deal, own);
            self.collect(times, deal);
        }
    }

    /// The shortest way, for integers; false where the columns are not.
    fn take_words(
        &mut self,
        hasher: &Hasher,
        source: &Source,
        times: &[i64],
        deal: &Deal,
        own: Option<usize>,
    ) -> bool {
        let ([attributes], true) = (source.levels, source.plain) else { return false };
        let (Some(users), Some(attributes)) = (source.users.words(), attributes.words()) else {
            return false;
        };
        let rows = self.start..self.start + self.rows;
        let (users, attributes) = (&users[rows.clone()], &attributes[rows]);
        let chunks = users.chunks(ROWS).zip(attributes.chunks(ROWS)).zip(times.chunks(ROWS));
        let starts = (0_u32..).step_by(ROWS);
        let mut hashed = Hashed::default();
        if let Some(own) = own {
            let seen = &mut self.seen[own];
            let is_own = |hash| deal.shard(Key::new(hash, hash)) == own;
            for (((users, attributes), times), start) in chunks.zip(starts) {
                let count = hasher.wanted_words(users, attributes, is_own, &mut hashed);
                let rows = hashed.attributes.iter().zip(&hashed.users).zip(&hashed.places);
                seen.extend(rows.take(count).map(|((hash, user), at)| {
                    let time = times[*at as usize];
                    Seen::new(Key::new(*hash, *hash), start.wrapping_add(*at), *user as u64, time)
                }));
            }
            return true;
        }
        if let [seen] = &mut self.seen[..] {
            seen.resize(self.rows, Seen::default());
            let places = seen.chunks_mut(ROWS);
            for ((((users, attributes), times), mut row), places) in chunks.zip(starts).zip(places)
            {
                hasher.words(users, attributes, &mut hashed);
                let rows = hashed.attributes.iter().zip(&hashed.users).zip(times);
                for (((hash, user), time), place) in rows.zip(places) {
                    *place = Seen::new(Key::new(*hash, *hash), row, *user as u64, *time);
                    row = row.wrapping_add(1);
                }
            }
            return true;
        }
        for (((users, attributes), times), start) in chunks.zip(starts) {
            hasher.words(users, attributes, &mut hashed);
            let rows = hashed.attributes.iter().zip(&hashed.users).zip(times).zip(start..);
            for (((hash, user), time), row) in rows {
                let key = Key::new(*hash, *hash);
                self.seen[deal.shard(key)].push(Seen::new(key, row, *user as u64, *time));
            }
        }
        true
    }

    fn take_columns(&mut self, hasher: &Hasher, source: &Source, deal: &Deal, own: Option<usize>) {
        let Self { start, chosen, users, valid, levels, .. } = self;
        chosen.clear();
        chosen.extend(0..self.rows as u32);
        // A row that lacks something does not move the clock: then every thread must know of it.
        let own = own.filter(|_| !source.may_miss());
        let above = vec![ABOVE_LEVELS; if source.plain { 0 } else { self.rows }];
        for (number, column) in source.levels.iter().enumerate() {
            let (coarser, finer) = levels.split_at_mut(number);
            let level = &mut finer[0];
            level.fill(hasher, *column, *start, chosen);
            let above = match coarser.last() {
                Some(above) => Some(&above.hashes[..]),
                None if source.plain => None,
                None => Some(&above[..]),
            };
            hasher.attributes(&mut level.hashes, above);
            if let (Some(own), 0) = (own, number) {
                choose(chosen, &mut level.hashes, |hash| deal.shard(Key::new(hash, hash)) == own);
                level.valid.truncate(chosen.len());
            }
        }
        users.resize(chosen.len(), 0);
        valid.resize(chosen.len(), true);
        let role = Role::User;
        source.users.blocks(Blocks {
            hasher,
            role,
            start: *start,
            rows: chosen,
            out: users,
            valid,
        });
        for level in levels {
            level.entries.resize(chosen.len(), 0);
            hasher.users(users, &level.hashes, &mut level.entries);
        }
    }

    /// Holds the times against the gate's clock, in the order of the rows.
    pub(super) fn admit(&mut self, times: &[i64], admission: &mut Admission) {
        let times = &times[self.start..self.start + self.rows];
        let all_valid = self.valid.len() < self.rows || self.valid.iter().all(|valid| *valid);
        if all_valid && admission.admit_in_order(times.iter().copied()) {
            self.admitted = Timing::InOrder;
            return;
        }
        let mut out = match std::mem::take(&mut self.admitted) {
            Timing::Mixed(admitted) => admitted,
            Timing::InOrder => Vec::new(),
        };
        out.clear();
        if all_valid {
            out.extend(times.iter().map(|time| admission.admit(*time, true)));
        } else {
            let rows = times.iter().zip(&self.valid);
            out.extend(rows.map(|(time, valid)| admission.admit(*time, *valid)));
        }
        self.admitted = Timing::Mixed(out);
    }

    /// All rows.
    pub(super) fn all(&self) -> Range<usize> {
        0..self.rows
    }

    /// Rows of one shard that are among these.
    pub(super) fn seen_of(&self, shard: usize, rows: &Range<usize>) -> &[Seen] {
        let seen = &self.seen[shard][..];
        if *rows == self.all() {
            return seen;
        }
        let before = |end: usize| seen.partition_point(|one| (one.row as usize) < end);
        &seen[before(rows.start)..before(rows.end)]
    }

    /// The rows of each epoch that the clock comes into, if it stood at `clock` before them.
    pub(super) fn epochs(
        &self,
        times: &[i64],
        mut clock: i64,
        epochs: &mut Epochs,
    ) -> Vec<(Range<usize>, u64)> {
        let mut found: Vec<(Range<usize>, u64)> = Vec::new();
        for (row, time) in times[self.start..self.start + self.rows].iter().enumerate() {
            if self.admitted.of(row) != Admitted::No {
                clock = clock.max(*time);
            }
            let epoch = epochs.at(clock);
            match found.last_mut() {
                Some((rows, other)) if *other == epoch => rows.end = row + 1,
                _ => found.push((row..row + 1, epoch)),
            }
        }
        found
    }

    /// Brings what was hashed to the shards.
    fn collect(&mut self, times: &[i64], deal: &Deal) {
        let Self { chosen, levels, valid, seen, .. } = self;
        if let [seen] = &mut seen[..] {
            // The common case by itself, level by level: all rows are there, in their order.
            seen.resize(times.len() * levels.len(), Seen::default());
            for (number, level) in levels.iter().enumerate() {
                let rows = level.hashes.iter().zip(&level.entries).zip(times).zip(0_u32..);
                let coarsest = levels[0].hashes.iter().zip(&level.valid);
                let places = seen[number..].iter_mut().step_by(levels.len());
                for ((place, (((hash, user), time), row)), (coarsest, valid)) in
                    places.zip(rows).zip(coarsest)
                {
                    let key = if *valid { Key::new(*hash, *coarsest) } else { Key::MISSING };
                    *place = Seen::new(key, row, *user, *time);
                }
            }
            for (place, valid) in valid.iter_mut().enumerate() {
                *valid &= levels.iter().any(|level| level.valid[place]);
            }
            return;
        }
        for (place, row) in chosen.iter().enumerate() {
            valid[place] &= levels.iter().any(|level| level.valid[place]);
            let coarsest = levels[0].hashes[place];
            let shard = &mut seen[deal.shard(Key::new(coarsest, coarsest))];
            shard.extend(levels.iter().map(|level| {
                let key = if level.valid[place] {
                    Key::new(level.hashes[place], coarsest)
                } else {
                    Key::MISSING
                };
                Seen::new(key, *row, level.entries[place], times[*row as usize])
            }));
        }
    }
}

impl Level {
    fn fill(&mut self, hasher: &Hasher, column: &dyn Column, start: usize, rows: &[u32]) {
        self.hashes.resize(rows.len(), 0);
        self.valid.clear();
        self.valid.resize(rows.len(), true);
        let (out, valid) = (&mut self.hashes[..], &mut self.valid[..]);
        column.blocks(Blocks { hasher, role: Role::Attribute, start, rows, out, valid });
    }
}

/// Keeps the rows whose hash is wanted, and the hashes beside them.
fn choose(rows: &mut Vec<u32>, hashes: &mut Vec<u128>, is_wanted: impl Fn(u128) -> bool) {
    let mut kept = 0;
    for at in 0..rows.len() {
        rows[kept] = rows[at];
        hashes[kept] = hashes[at];
        kept += usize::from(is_wanted(hashes[at]));
    }
    rows.truncate(kept);
    hashes.truncate(kept);
}
