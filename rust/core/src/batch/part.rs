//! Some rows of a batch, hashed and ready to be decided.

use crate::admission::{Admission, Admitted};
use crate::column::{Blocks, Column, Role};
use crate::error::Error;
use crate::key::{ABOVE_LEVELS, Hasher};
use crate::slab::Entry;
use crate::table::Key;

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
}

/// Some rows of a round, hashed.
#[derive(Default)]
pub(super) struct Part {
    pub(super) start: usize,
    pub(super) rows: usize,
    users: Vec<u128>,
    /// Has a user and at least one level. Empty if all rows have.
    valid: Vec<bool>,
    levels: Vec<Level>,
    /// For each shard the rows that belong to it, one behind the other, with all their levels.
    pub(super) seen: Vec<Vec<Seen>>,
}

#[derive(Default)]
struct Level {
    hashes: Vec<u128>,
    /// What stands for the row's user under this level.
    entries: Vec<u64>,
    valid: Vec<bool>,
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
    pub(super) fn prepare(&mut self, hasher: &Hasher, source: &Source, shards: usize) {
        let (start, rows) = (self.start, self.rows);
        self.seen.resize_with(shards, Vec::new);
        self.valid.clear();
        self.levels.resize_with(source.levels.len(), Level::default);
        let times = &source.times[start..start + rows];
        if !self.take_words(hasher, source, times) {
            self.take_columns(hasher, source);
            self.collect(times, shards);
        }
    }

    /// The shortest way, for integers; false where the columns are not.
    fn take_words(&mut self, hasher: &Hasher, source: &Source, times: &[i64]) -> bool {
        let ([attributes], true) = (source.levels, source.plain) else { return false };
        let (Some(users), Some(attributes)) = (source.users.words(), attributes.words()) else {
            return false;
        };
        let rows = self.start..self.start + self.rows;
        let (users, attributes) = (&users[rows.clone()], &attributes[rows]);
        if let [seen] = &mut self.seen[..] {
            seen.resize(self.rows, Seen::default());
            hasher.words(users, attributes, |row, hash, user| {
                seen[row] = Seen::new(Key::new(hash, hash), row as u32, user, times[row]);
            });
            return true;
        }
        let shards = self.seen.len();
        self.seen.iter_mut().for_each(Vec::clear);
        hasher.words(users, attributes, |row, hash, user| {
            let key = Key::new(hash, hash);
            self.seen[key.shard(shards)].push(Seen::new(key, row as u32, user, times[row]));
        });
        true
    }

    fn take_columns(&mut self, hasher: &Hasher, source: &Source) {
        let (start, rows) = (self.start, self.rows);
        self.users.resize(rows, 0);
        self.valid.resize(rows, true);
        let role = Role::User;
        let (out, valid) = (&mut self.users[..], &mut self.valid[..]);
        source.users.blocks(Blocks { hasher, role, start, out, valid });
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
    }

    #[inline(always)]
    pub(super) fn is_valid(&self, row: usize) -> bool {
        self.valid.is_empty() || self.valid[row]
    }

    /// Holds the times against the gate's clock, in the order of the rows.
    pub(super) fn admit(&self, times: &[i64], admission: &mut Admission, out: &mut Vec<Admitted>) {
        let times = &times[self.start..self.start + self.rows];
        out.clear();
        if self.valid.is_empty() {
            out.extend(times.iter().map(|time| admission.admit(*time, true)));
        } else {
            let rows = times.iter().zip(&self.valid);
            out.extend(rows.map(|(time, valid)| admission.admit(*time, *valid)));
        }
    }

    fn collect(&mut self, times: &[i64], shards: usize) {
        let Self { levels, valid, seen, .. } = self;
        seen.iter_mut().for_each(Vec::clear);
        if let ([level], [seen]) = (&levels[..], &mut seen[..]) {
            // The common case by itself: one level, one shard.
            let values = level.hashes.iter().zip(&level.entries).zip(times);
            seen.extend(values.zip(0_u32..).map(|(((hash, user), time), row)| {
                Seen::new(Key::new(*hash, *hash), row, *user, *time)
            }));
            valid.iter_mut().zip(&level.valid).for_each(|(valid, level)| *valid &= level);
            return;
        }
        for (row, time) in times.iter().enumerate() {
            valid[row] &= levels.iter().any(|level| level.valid[row]);
            let coarsest = levels[0].hashes[row];
            let shard = &mut seen[Key::new(coarsest, coarsest).shard(shards)];
            shard.extend(levels.iter().map(|level| {
                let key = if level.valid[row] {
                    Key::new(level.hashes[row], coarsest)
                } else {
                    Key::MISSING
                };
                Seen::new(key, row as u32, level.entries[row], *time)
            }));
        }
    }
}
