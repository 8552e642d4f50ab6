//! One period: who has which values, and how many look the same.
//!
//! ```text
//! (user, value) ─→ pairs: known? ─ yes ─→ nothing changes
//!                        │ no
//!                        ↓
//!                  users: fingerprint ^= value's word, noted as changed
//!
//! a look        ─→ users who changed ─→ classes: one less in the one, one more in the other
//! ```
//!
//! A user who changed ten times between two looks moves once. If more than [`MOST_CHANGED`] have, all
//! classes are counted anew: a lookup for each user, where moves would be three for each change.
//!
//! A set is told by its fingerprint, the exclusive or of its values' words. Each value is in a set
//! once, so that two different sets have the same fingerprint with a chance of 2^-128.
//!
//! # Collisions
//! *Two classes taken for one* make k look larger. 95 bits of a fingerprint stand in the table. Each
//! of m moves is compared with at most c live classes:
//!
//! ```text
//! m * c / 2^95     1e10 moves, 1e8 classes: 2.5e-11
//! ```
//!
//! *Two pairs taken for one* lose a value of a set. 95 bits of U ^ V stand in the table; U and V are
//! independent, so that any two pairs are the same with a chance of 2^-95:
//!
//! ```text
//! n^2 / 2^96       1e9 pairs: 1.3e-11          1e8 pairs: 1.3e-13
//! ```
//!
//! *Two users taken for one* make one of two, with the values of both: n^2 / 2^96 as well. Nobody can
//! do better than chance on purpose without the key, which never leaves the meter.

use super::entry::{Class, ClassLine, Mark, PairLine, User, UserLine, pair};
use super::lens::Sight;
use super::sizes::Sizes;
use super::table::{Full, Table};
use crate::memory::Budget;
use std::collections::BTreeMap;

/// What is looked up together. While one group is, what the next needs is fetched.
const GROUP: usize = 32;

/// Users who changed since the last look, of whom it is remembered what they had.
const MOST_CHANGED: usize = 1 << 16;

type Pairs = Table<PairLine>;
type Users = Table<UserLine>;
type Classes = Table<ClassLine>;

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
    pairs: Pairs,
    users: Users,
    changed: Changed,
    classes: Classes,
    sizes: Sizes,
}

/// Who is not in the class of what they have by now.
enum Changed {
    /// Users, and the fingerprints that they are counted with; 0 for one who is not yet.
    Some(Vec<(Mark, u128)>),
    Many,
}

/// Scratch of [`Period::count`]: pairs that are new, as the words of user and value.
pub(super) type Fresh = Vec<(u128, u128)>;

impl Period {
    pub(super) fn new(budget: &mut Budget) -> Result<Self, Full> {
        let pairs = Pairs::new(budget)?;
        let users = match Users::new(budget) {
            Ok(users) => users,
            Err(full) => {
                pairs.free(budget);
                return Err(full);
            }
        };
        let classes = match Classes::new(budget) {
            Ok(classes) => classes,
            Err(full) => {
                pairs.free(budget);
                users.free(budget);
                return Err(full);
            }
        };
        let changed = Changed::Some(Vec::new());
        Ok(Self { pairs, users, changed, classes, sizes: Sizes::new() })
    }

    /// Gives its memory back.
    pub(super) fn free(self, budget: &mut Budget) {
        self.pairs.free(budget);
        self.users.free(budget);
        self.classes.free(budget);
    }

    /// Takes in what was seen. After an error it is not to be used any more.
    pub(super) fn count(
        &mut self,
        sights: &[Sight],
        fresh: &mut Fresh,
        budget: &mut Budget,
    ) -> Result<(), Full> {
        fresh.clear();
        let mut groups = sights.chunks(GROUP);
        let mut next = groups.next().unwrap_or_default();
        self.fetch_pairs(next);
        while !next.is_empty() {
            let now = std::mem::replace(&mut next, groups.next().unwrap_or_default());
            self.fetch_pairs(next);
            self.change_users(fresh, budget)?;
            self.find_new(now, fresh, budget)?;
        }
        self.change_users(fresh, budget)
    }

    #[inline(never)]
    fn fetch_pairs(&self, sights: &[Sight]) {
        for sight in sights {
            self.pairs.prefetch(pair(sight.user, sight.value).high);
        }
    }

    #[inline(never)]
    fn find_new(
        &mut self,
        sights: &[Sight],
        fresh: &mut Fresh,
        budget: &mut Budget,
    ) -> Result<(), Full> {
        fresh.clear();
        for sight in sights {
            let pair = pair(sight.user, sight.value);
            if self.pairs.entry(pair, budget)?.2 {
                self.users.prefetch((sight.user >> 64) as u64);
                fresh.push((sight.user, sight.value));
            }
        }
        Ok(())
    }

    #[inline(never)]
    fn change_users(&mut self, fresh: &Fresh, budget: &mut Budget) -> Result<(), Full> {
        for (user, value) in fresh {
            let mark = Mark::new(*user);
            let (line, at, _) = self.users.entry(User::new(mark), budget)?;
            let user = &mut line.0[at];
            let before = user.print();
            user.set_print(before ^ value);
            if let Changed::Some(changed) = &mut self.changed
                && user.has_changed == 0
            {
                user.has_changed = 1;
                if changed.len() < MOST_CHANGED {
                    changed.push((mark, before));
                } else {
                    self.changed = Changed::Many;
                }
            }
        }
        Ok(())
    }

    /// Brings the classes up to date. After an error it is not to be used any more.
    pub(super) fn settle(&mut self, budget: &mut Budget) -> Result<(), Full> {
        match std::mem::replace(&mut self.changed, Changed::Some(Vec::new())) {
            Changed::Some(changed) => {
                changed.chunks(GROUP).try_for_each(|changed| self.move_users(changed, budget))
            }
            Changed::Many => self.count_anew(budget),
        }
    }

    fn move_users(&mut self, changed: &[(Mark, u128)], budget: &mut Budget) -> Result<(), Full> {
        for (mark, before) in changed {
            self.users.prefetch(mark.high);
            self.classes.prefetch((before >> 64) as u64);
        }
        let mut moves = [(0, 0); GROUP];
        for ((mark, before), to) in changed.iter().zip(&mut moves) {
            if let Some(place) = self.users.find(&User::new(*mark)) {
                let (line, at) = self.users.at(place);
                let user = &mut line.0[at];
                user.has_changed = 0;
                *to = (*before, user.print());
                self.classes.prefetch((to.1 >> 64) as u64);
            }
        }
        for (before, now) in &moves[..changed.len()] {
            if *before != 0 {
                self.leave(Mark::new(*before));
            }
            self.join(Mark::new(*now), budget)?;
        }
        Ok(())
    }

    fn count_anew(&mut self, budget: &mut Budget) -> Result<(), Full> {
        let Self { users, classes, sizes, .. } = self;
        classes.clear();
        *sizes = Sizes::new();
        let mut prints = Vec::with_capacity(GROUP);
        let mut next = Vec::with_capacity(GROUP);
        let users = users.lines_mut().flat_map(|line| &mut line.0);
        for user in users.filter(|user| user.print() != 0) {
            user.has_changed = 0;
            classes.prefetch((user.print() >> 64) as u64);
            next.push(Mark::new(user.print()));
            if next.len() == GROUP {
                std::mem::swap(&mut prints, &mut next);
                next.drain(..).try_for_each(|mark| join(classes, sizes, mark, budget))?;
            }
        }
        prints.append(&mut next);
        prints.into_iter().try_for_each(|mark| join(classes, sizes, mark, budget))
    }

    #[inline(always)]
    fn leave(&mut self, mark: Mark) {
        let Some(place) = self.classes.find(&Class::new(mark, 0)) else { return };
        let (line, at) = self.classes.at(place);
        let class = &mut line.0[at];
        class.users -= 1;
        let now = class.users;
        if now == 0 {
            self.classes.remove(place);
        }
        self.sizes.left(mark, now);
    }

    #[inline(always)]
    fn join(&mut self, mark: Mark, budget: &mut Budget) -> Result<(), Full> {
        join(&mut self.classes, &mut self.sizes, mark, budget)
    }

    /// What there is to be shown, once it is settled.
    pub(super) fn shown(&self) -> Shown {
        Shown {
            users: self.sizes.users,
            classes: self.sizes.classes,
            sizes: self.sizes.all(|mark| self.size(mark)),
            pairs: self.pairs.len() as u64,
        }
    }

    /// Visible users, and those of them whose k is at least this, once it is settled.
    pub(super) fn counts(&self, k: usize) -> (u64, u64) {
        (self.sizes.users, self.sizes.at_least(k, |mark| self.size(mark)))
    }

    fn size(&self, mark: Mark) -> u32 {
        let place = self.classes.find(&Class::new(mark, 0));
        place.and_then(|place| self.classes.get(place)).map_or(0, |class| class.users)
    }

    pub(super) fn pairs(&self) -> impl Iterator<Item = Mark> {
        self.pairs.entries()
    }

    pub(super) fn users(&self) -> impl Iterator<Item = User> {
        self.users.entries()
    }

    pub(super) fn lengths(&self) -> (usize, usize) {
        (self.pairs.len(), self.users.len())
    }

    /// Takes over a pair that was saved.
    pub(super) fn put_pair(&mut self, mark: Mark, budget: &mut Budget) -> Result<bool, Full> {
        Ok(self.pairs.entry(mark, budget)?.2)
    }

    /// Takes over a user who was saved, with the fingerprint of what they have.
    pub(super) fn put_user(
        &mut self,
        (mark, print): (Mark, u128),
        budget: &mut Budget,
    ) -> Result<bool, Full> {
        let (line, at, is_new) = self.users.entry(User::new(mark), budget)?;
        line.0[at].set_print(print);
        self.changed = Changed::Many;
        Ok(is_new)
    }
}

/// One user more in a class.
#[inline(always)]
fn join(
    classes: &mut Classes,
    sizes: &mut Sizes,
    mark: Mark,
    budget: &mut Budget,
) -> Result<(), Full> {
    let (line, at, _) = classes.entry(Class::new(mark, 0), budget)?;
    let class = &mut line.0[at];
    class.users += 1;
    sizes.joined(mark, class.users);
    Ok(())
}
