//! Who looks the same: users by the fingerprint of what they have.

use super::changed::Changed;
use super::entry::{Class, ClassLine, Mark};
use super::part::GROUP;
use super::parts::Parts;
use super::prints::{Prints, half_of};
use super::sizes::Sizes;
use super::table::{Full, Table};
use super::tools::Tools;
use crate::memory::Budget;
use std::collections::BTreeMap;

/// The classes of the users of a period, as they were at the last look: in two halves, by a bit of the
/// fingerprint.
pub(super) struct Classes([Half; 2]);

struct Half {
    table: Table<ClassLine>,
    sizes: Sizes,
}

impl Classes {
    pub(super) fn new(budget: &mut Budget) -> Result<Self, Full> {
        let first = Half::new(budget)?;
        match Half::new(budget) {
            Ok(second) => Ok(Self([first, second])),
            Err(full) => {
                first.table.free(budget);
                Err(full)
            }
        }
    }

    pub(super) fn free(self, budget: &mut Budget) {
        self.0.into_iter().for_each(|half| half.table.free(budget));
    }

    /// Counts everybody in the class of what they have by now.
    pub(super) fn follow(
        &mut self,
        users: &mut Parts,
        tools: &Tools,
        budget: &mut Budget,
    ) -> Result<(), Full> {
        match users.changed() {
            [Changed::Some(first), Changed::Some(second)] => {
                let mut groups = first.chunks(GROUP).chain(second.chunks(GROUP));
                groups.try_for_each(|group| self.change(users, group, budget))
            }
            _ => self.count_anew(users, tools, budget),
        }
    }

    /// Moves some users who changed.
    fn change(
        &mut self,
        users: &mut Parts,
        changed: &[(Mark, u128)],
        budget: &mut Budget,
    ) -> Result<(), Full> {
        for (mark, before) in changed {
            users.prefetch_user(*mark);
            self.prefetch(Mark::new(*before));
        }
        let mut moves = [(0, 0); GROUP];
        for ((mark, before), to) in changed.iter().zip(&mut moves) {
            if let Some(user) = users.find(*mark) {
                user.has_changed = 0;
                *to = (*before, user.print());
                self.prefetch(Mark::new(to.1));
            }
        }
        for (before, now) in &moves[..changed.len()] {
            if *before != 0 {
                let mark = Mark::new(*before);
                self.0[half_of(mark)].leave(mark);
            }
            let mark = Mark::new(*now);
            self.0[half_of(mark)].join(mark, budget)?;
        }
        Ok(())
    }

    fn prefetch(&self, mark: Mark) {
        self.0[half_of(mark)].table.prefetch(mark.high);
    }

    fn count_anew(
        &mut self,
        users: &mut Parts,
        tools: &Tools,
        budget: &mut Budget,
    ) -> Result<(), Full> {
        self.0.iter_mut().for_each(Half::clear);
        users.prints(tools, budget, |prints, budget| {
            let count = prints.iter().map(Prints::len).sum();
            let [first, second] = &mut self.0;
            tools.both([(0, first), (1, second)], count, budget, |(number, half), lease| {
                let [one, other] = prints;
                half.table.reserve(one.classes_with(other, number), lease)?;
                let mut groups = one.of_half(number).zip(other.of_half(number));
                groups.try_for_each(|(one, other)| {
                    half.join_all(one, lease)?;
                    half.join_all(other, lease)
                })
            })
        })
    }

    /// Users, and classes.
    pub(super) fn counts(&self) -> (u64, u64) {
        let sizes = || self.0.iter().map(|half| &half.sizes);
        (sizes().map(|sizes| sizes.users).sum(), sizes().map(|sizes| sizes.classes).sum())
    }

    /// For each k the users who have it.
    pub(super) fn sizes(&self) -> BTreeMap<u64, u64> {
        let mut found = BTreeMap::new();
        for (size, users) in self.0.iter().flat_map(Half::sizes) {
            *found.entry(size).or_default() += users;
        }
        found
    }

    /// Users whose k is at least this.
    pub(super) fn at_least(&self, k: usize) -> u64 {
        self.0.iter().map(|half| half.sizes.at_least(k, |mark| half.size(mark))).sum()
    }
}

impl Half {
    fn new(budget: &mut Budget) -> Result<Self, Full> {
        Ok(Self { table: Table::new(budget)?, sizes: Sizes::new() })
    }

    fn clear(&mut self) {
        self.table.clear();
        self.sizes = Sizes::new();
    }

    fn join_all(&mut self, marks: &[Mark], budget: &mut Budget) -> Result<(), Full> {
        let mut next = marks.chunks(GROUP);
        let mut fetched = next.next().unwrap_or_default();
        fetched.iter().for_each(|mark| self.table.prefetch(mark.high));
        while !fetched.is_empty() {
            let group = next.next().unwrap_or_default();
            group.iter().for_each(|mark| self.table.prefetch(mark.high));
            fetched.iter().try_for_each(|mark| self.join(*mark, budget))?;
            fetched = group;
        }
        Ok(())
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

    fn sizes(&self) -> BTreeMap<u64, u64> {
        self.sizes.all(|mark| self.size(mark))
    }

    fn size(&self, mark: Mark) -> u32 {
        let place = self.table.find(&Class::new(mark, 0));
        place.and_then(|place| self.table.get(place)).map_or(0, |class| class.users)
    }
}
