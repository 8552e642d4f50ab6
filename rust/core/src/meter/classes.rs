//! Who looks the same: users by the fingerprint of what they have.

use super::changed::Changed;
use super::entry::{Class, ClassLine, Mark};
use super::part::GROUP;
use super::parts::Parts;
use super::sizes::Sizes;
use super::table::{Full, Table};
use crate::memory::Budget;
use std::collections::BTreeMap;

/// The classes of the users of a period, as they were at the last look.
pub(super) struct Classes {
    table: Table<ClassLine>,
    sizes: Sizes,
}

impl Classes {
    pub(super) fn new(budget: &mut Budget) -> Result<Self, Full> {
        Ok(Self { table: Table::new(budget)?, sizes: Sizes::new() })
    }

    pub(super) fn free(self, budget: &mut Budget) {
        self.table.free(budget);
    }

    /// Counts everybody in the class of what they have by now.
    pub(super) fn follow(&mut self, parts: &mut Parts, budget: &mut Budget) -> Result<(), Full> {
        match std::mem::replace(&mut parts.changed, Changed::Some(Vec::new())) {
            Changed::Some(changed) => {
                changed.chunks(GROUP).try_for_each(|changed| self.change(parts, changed, budget))
            }
            Changed::Many => self.count_anew(parts, budget),
        }
    }

    /// Moves some users who changed.
    fn change(
        &mut self,
        parts: &mut Parts,
        changed: &[(Mark, u128)],
        budget: &mut Budget,
    ) -> Result<(), Full> {
        for (mark, before) in changed {
            parts.prefetch_user(*mark);
            self.table.prefetch((before >> 64) as u64);
        }
        let mut moves = [(0, 0); GROUP];
        for ((mark, before), to) in changed.iter().zip(&mut moves) {
            if let Some(user) = parts.find(*mark) {
                user.has_changed = 0;
                *to = (*before, user.print());
                self.table.prefetch((to.1 >> 64) as u64);
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

    fn count_anew(&mut self, parts: &mut Parts, budget: &mut Budget) -> Result<(), Full> {
        self.table.clear();
        self.sizes = Sizes::new();
        let mut fetched = [Mark::default(); GROUP];
        let mut count = 0;
        for user in parts.users_mut() {
            let mark = Mark::new(user.print());
            user.has_changed = 0;
            self.table.prefetch(mark.high);
            // The one that was fetched a while ago makes room.
            let ready = std::mem::replace(&mut fetched[count % GROUP], mark);
            count += 1;
            if count > GROUP {
                self.join(ready, budget)?;
            }
        }
        fetched[..count.min(GROUP)].iter().try_for_each(|mark| self.join(*mark, budget))
    }

    #[inline(always)]
    fn leave(&mut self, mark: Mark) {
        let Some(place) = self.table.find(&Class::new(mark, 0)) else { return };
        let (line, at) = self.table.at(place);
        let class = &mut line.0[at];
        class.users -= 1;
        let now = class.users;
        if now == 0 {
            self.table.remove(place);
        }
        self.sizes.left(mark, now);
    }

    #[inline(always)]
    fn join(&mut self, mark: Mark, budget: &mut Budget) -> Result<(), Full> {
        let (line, at, _) = self.table.entry(Class::new(mark, 0), budget)?;
        let class = &mut line.0[at];
        class.users += 1;
        self.sizes.joined(mark, class.users);
        Ok(())
    }

    /// Users, and classes.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.sizes.users, self.sizes.classes)
    }

    /// For each k the users who have it.
    pub(super) fn sizes(&self) -> BTreeMap<u64, u64> {
        self.sizes.all(|mark| self.size(mark))
    }

    /// Users whose k is at least this.
    pub(super) fn at_least(&self, k: usize) -> u64 {
        self.sizes.at_least(k, |mark| self.size(mark))
    }

    fn size(&self, mark: Mark) -> u32 {
        let place = self.table.find(&Class::new(mark, 0));
        place.and_then(|place| self.table.get(place)).map_or(0, |class| class.users)
    }
}
