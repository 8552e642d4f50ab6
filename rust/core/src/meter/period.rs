//! One period: who has which values, and how many look the same.
//!
//! ```text
//! (user, value) ─→ values: the value's number ─→ users: is it new? fingerprint ^= the number's word
//!
//! a look        ─→ users who changed ─→ classes: one less in the one, one more in the other
//! ```
//!
//! A user who changed ten times between two looks moves once. If very many have, all classes are
//! counted anew: a lookup for each user, where moves would be three for each change.
//!
//! A value's number is its place in the order in which values came. The sets of users are sets of
//! numbers, and hold what they hold exactly. A set is told by its fingerprint, the exclusive or of one secret word of
//! 128 bits for each number in it:
//!
//! ```text
//! word of a number     W = E_user(number, of no kind)
//! ```
//!
//! No user's block is of no kind, so that no such word is a user's. Each number is in a set once, so that
//! two different sets have the same fingerprint with a chance of 2^-128.
//!
//! # Collisions
//! *Two values taken for one* make sets look alike. 95 bits of a value's word V stand in the table of values. There
//! are at most 2^26 values, and any two are the same with a chance of 2^-95. However many releases there are:
//!
//! ```text
//! n^2 / 2^96       2^26 values: 5.7e-14        1e6 values: 1.3e-17
//! ```
//!
//! *Two users taken for one* make one of two, with the values of both. 95 bits of U stand for a user:
//!
//! ```text
//! n^2 / 2^96       1e9 users: 1.3e-11          1e8 users: 1.3e-13
//! ```
//!
//! *Two classes taken for one* make k look larger. 95 bits of a fingerprint stand in the table. Each
//! of m moves is compared with at most c live classes:
//!
//! ```text
//! m * c / 2^95     1e12 moves, 1e8 classes: 2.5e-9
//! ```
//!
//! A pair of user and value has no chance of its own to be taken for another one. Nobody can
//! do better than chance on purpose without the key, which never leaves the meter.

use super::classes::Classes;
use super::entry::{Mark, Numbered, ValueLine};
use super::lens::{Lens, Sight};
use super::lines::{MOST_VALUES, Release};
use super::part::{GROUP, Part};
use super::parts::Parts;
use super::table::{Full, Table};
use super::tools::Tools;
use crate::memory::Budget;
use std::collections::BTreeMap;

type Values = Table<ValueLine>;

/// Up to so many values are in the cache anyway, and fetching ahead only costs.
const IN_CACHE: usize = 1 << 13;

/// What one period came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    pub users: u64,
    pub classes: u64,
    /// For each k the users who have it.
    pub sizes: BTreeMap<u64, u64>,
    pub pairs: u64,
}

/// The sets of one period.
pub(super) struct Period {
    values: Values,
    pub(super) users: Parts,
    classes: Classes,
}

impl Period {
    pub(super) fn new(lens: &Lens, budget: &mut Budget) -> Result<Self, Full> {
        let values = Values::new(budget)?;
        let users = match Parts::new(lens.spread(), budget) {
            Ok(users) => users,
            Err(full) => {
                values.free(budget);
                return Err(full);
            }
        };
        let classes = match Classes::new(budget) {
            Ok(classes) => classes,
            Err(full) => {
                values.free(budget);
                users.free(budget);
                return Err(full);
            }
        };
        Ok(Self { values, users, classes })
    }

    /// Gives its memory back.
    pub(super) fn free(self, budget: &mut Budget) {
        self.values.free(budget);
        self.users.free(budget);
        self.classes.free(budget);
    }

    /// Takes in what was seen. After an error it is not to be used any more.
    pub(super) fn count(
        &mut self,
        sights: &[Sight],
        lens: &Lens,
        budget: &mut Budget,
    ) -> Result<(), Full> {
        for group in sights.chunks(GROUP) {
            if self.values.len() > IN_CACHE {
                group.iter().for_each(|sight| self.values.prefetch((sight.value >> 64) as u64));
            }
            let mut releases = [Release::default(); GROUP];
            for (sight, release) in group.iter().zip(&mut releases) {
                *release = Release::new(Mark::new(sight.user), self.number(sight.value, budget)?);
            }
            self.users.note_group(&releases[..group.len()], lens.hasher(), budget)?;
        }
        Ok(())
    }

    /// The number of a value; the next one if it is new.
    #[inline(always)]
    pub(super) fn number(&mut self, value: u128, budget: &mut Budget) -> Result<u32, Full> {
        let next = self.values.len();
        let wanted = Numbered { mark: Mark::new(value), number: next as u32 };
        let (line, at, is_new) = self.values.entry(wanted, budget)?;
        let number = line.numbers[at];
        if is_new && next >= MOST_VALUES { Err(Full) } else { Ok(number) }
    }

    /// Brings everything up to date. After an error it is not to be used any more.
    pub(super) fn settle(&mut self, tools: &Tools, budget: &mut Budget) -> Result<(), Full> {
        self.users.take_in_all(tools, budget)?;
        self.classes.follow(&mut self.users, tools, budget)
    }

    /// What there is to be shown, once it is settled.
    pub(super) fn shown(&self) -> Shown {
        let (users, classes) = self.classes.counts();
        Shown { users, classes, sizes: self.classes.sizes(), pairs: self.users.pairs() }
    }

    /// Visible users, and those of them whose k is at least this, once it is settled.
    pub(super) fn counts(&self, k: usize) -> (u64, u64) {
        (self.classes.counts().0, self.classes.at_least(k))
    }

    /// The values and their numbers.
    pub(super) fn values(&self) -> (usize, impl Iterator<Item = Numbered>) {
        (self.values.len(), self.values.entries())
    }

    /// The parts, and what waits for each of them.
    pub(super) fn parts(&self) -> impl ExactSizeIterator<Item = (&Part, &[Release])> {
        self.users.all()
    }

    /// Takes over a value that was saved; false if it was there.
    pub(super) fn put_value(&mut self, value: Numbered, budget: &mut Budget) -> Result<bool, Full> {
        Ok(self.values.entry(value, budget)?.2)
    }

    /// Takes in that a user has a value.
    pub(super) fn put_release(
        &mut self,
        release: Release,
        lens: &Lens,
        budget: &mut Budget,
    ) -> Result<(), Full> {
        self.users.note(release, lens.hasher(), budget)
    }
}
