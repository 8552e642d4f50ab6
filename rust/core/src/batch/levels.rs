//! Rows with several levels, decided with the memory fetched ahead.
//!
//! Most users of a value that is released never come to its coarser levels: these are fetched only
//! for rows that look as if they would.

use super::decide::{GROUP, Round};
use super::part::{Seen, Timing};
use crate::admission::Admitted;
use crate::gate::walk;
use crate::settings::Rule;
use crate::shard::{Counted, Shard};
use crate::slot::Key;

/// What was seen of a row a moment ago.
#[derive(Clone, Copy)]
struct Glimpse {
    /// Where the level is that is asked first.
    near: usize,
    /// The other levels may be asked too.
    more: bool,
}

type Glimpses = [Glimpse; GROUP];

const NOTHING: Glimpses = [Glimpse { near: usize::MAX, more: false }; GROUP];

impl Round {
    pub(super) fn decide_levels(
        &self,
        seen: &[Seen],
        admitted: &Timing,
        shard: &mut Shard,
        decisions: &mut [i8],
    ) {
        let group_of = |number: usize| {
            let start = seen.len().min(number * GROUP * self.levels);
            &seen[start..seen.len().min(start + GROUP * self.levels)]
        };
        (0..2).for_each(|number| self.fetch_first(shard, group_of(number)));
        let mut soon = (shard.moves(), self.glance(shard, group_of(0)));
        for (number, group) in seen.chunks(GROUP * self.levels).enumerate() {
            self.fetch_first(shard, group_of(number + 2));
            let next = (shard.moves(), self.glance(shard, group_of(number + 1)));
            let (moves, near) = std::mem::replace(&mut soon, next);
            self.fetch_more(shard, group, &near);
            for (levels, mut glimpse) in group.chunks_exact(self.levels).zip(near) {
                if shard.moves() != moves {
                    // Several levels of a row can be new: enough for a whole move since the glance.
                    glimpse.near = usize::MAX;
                }
                let row = levels[0].row as usize;
                if let Some(level) = self.decide_row(admitted.of(row), levels, glimpse, shard) {
                    decisions[row] = level as i8;
                }
            }
        }
    }

    /// The level that the rule asks before the others, and always.
    #[inline(always)]
    fn first(&self) -> usize {
        match self.rule {
            Rule::FallThrough => self.levels - 1,
            Rule::Fixed(level) => usize::from(level).min(self.levels - 1),
            Rule::Authors => 0,
        }
    }

    #[inline(never)]
    fn fetch_first(&self, shard: &Shard, group: &[Seen]) {
        let first = self.first();
        group.iter().skip(first).step_by(self.levels).for_each(|one| shard.prefetch_slot(one.hash));
    }

    /// Fetches the crowds of the first levels, and slots of the others where they may be asked.
    #[inline(never)]
    fn glance(&self, shard: &Shard, group: &[Seen]) -> Glimpses {
        let first = self.first();
        let mut found = NOTHING;
        for (levels, glimpse) in group.chunks_exact(self.levels).zip(&mut found) {
            let one = &levels[first];
            let glance = shard.prefetch_crowd(one.key(), one.entry.time);
            let more = match self.rule {
                Rule::FallThrough => !glance.released,
                Rule::Fixed(_) => false,
                Rule::Authors => true,
            };
            *glimpse = Glimpse { near: glance.index, more };
            if more {
                levels.iter().for_each(|one| shard.prefetch_slot(one.hash));
            }
        }
        found
    }

    /// Fetches the crowds of the other levels, whose slots have come by now.
    #[inline(never)]
    fn fetch_more(&self, shard: &Shard, group: &[Seen], glimpses: &Glimpses) {
        let first = self.first();
        for (levels, glimpse) in group.chunks_exact(self.levels).zip(glimpses) {
            if glimpse.more {
                for (level, one) in levels.iter().enumerate() {
                    if level != first {
                        shard.prefetch_crowd(one.key(), one.entry.time);
                    }
                }
            }
        }
    }

    #[inline(always)]
    fn decide_row(
        &self,
        admitted: Admitted,
        levels: &[Seen],
        glimpse: Glimpse,
        shard: &mut Shard,
    ) -> Option<usize> {
        let now = self.now(admitted)?;
        let first = self.first();
        walk(self.rule, self.levels, |level| {
            let (key, entry) = (levels[level].key(), levels[level].entry);
            if key == Key::MISSING {
                return Counted::Veiled;
            }
            let released = if level == first {
                shard.observe_near(glimpse.near, key, entry, now, &self.rules)
            } else {
                shard.observe(key, entry, now, &self.rules)
            };
            shard.counted(released, entry, &self.rules)
        })
    }
}
