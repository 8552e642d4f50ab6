//! The rows of a round, decided with the memory fetched ahead.

use super::part::{Part, Seen};
use crate::admission::{Admission, Admitted};
use crate::crowd::Rules;
use crate::expiry::Epochs;
use crate::gate::walk;
use crate::settings::{MOST_LEVELS, Rule};
use crate::shard::{Counted, Now, Shard};
use crate::table::Key;

/// Up to this size the state is in the cache anyway, and fetching ahead only costs.
const IN_CACHE: usize = 4 << 20;

/// How many rows ahead slots and crowds are fetched.
const SLOT_AHEAD: usize = 12;
const CROWD_AHEAD: usize = 6;

/// The whole of a round: plain attributes in one shard, admitted and decided row by row.
pub(super) struct Plain<'a> {
    pub(super) admission: &'a mut Admission,
    pub(super) epochs: &'a mut Epochs,
    pub(super) rules: Rules,
    pub(super) shard: &'a mut Shard,
}

impl Plain<'_> {
    /// Writes 0 where a row is released, and -1 where not.
    pub(super) fn decide(&mut self, part: &Part, decisions: &mut [i8]) {
        let seen = &part.seen[0][..];
        if self.shard.bytes() <= IN_CACHE {
            for (row, (one, decision)) in seen.iter().zip(decisions).enumerate() {
                if let Some(now) = self.admit(one.entry.time, part.is_valid(row)) {
                    let released = self.shard.observe(one.key(), one.entry, now, &self.rules);
                    *decision = i8::from(released) - 1;
                }
            }
            return;
        }
        let mut ahead = Ahead::new(self.shard, &self.rules, seen);
        for (row, (one, decision)) in seen.iter().zip(decisions).enumerate() {
            let near = ahead.next(self.shard, &self.rules, row);
            if let Some(now) = self.admit(one.entry.time, part.is_valid(row)) {
                let released =
                    self.shard.observe_near(near, one.key(), one.entry, now, &self.rules);
                *decision = i8::from(released) - 1;
            }
        }
    }

    #[inline(always)]
    fn admit(&mut self, time: i64, valid: bool) -> Option<Now> {
        let admitted = self.admission.admit(time, valid);
        if admitted == Admitted::No {
            return None;
        }
        let epoch = self.epochs.at(self.admission.clock) as u32;
        Some(Now { epoch, in_order: admitted == Admitted::InOrder })
    }
}

/// What the rows of a round are decided by, where there are several shards or levels.
#[derive(Clone, Copy)]
pub(super) struct Round {
    pub(super) levels: usize,
    pub(super) plain: bool,
    pub(super) rules: Rules,
    pub(super) rule: Rule,
    /// Of the clock behind the last row.
    pub(super) epoch: u32,
}

impl Round {
    /// Decides the rows of one shard; `put` gets those that are released, with their level.
    pub(super) fn decide(
        &self,
        seen: &[Seen],
        admitted: &[Admitted],
        shard: &mut Shard,
        mut put: impl FnMut(u32, i8),
    ) {
        let mut ahead = Ahead::new(shard, &self.rules, seen);
        if self.plain {
            for (at, one) in seen.iter().enumerate() {
                let near = ahead.next(shard, &self.rules, at);
                if let Some(now) = self.now(admitted[one.row as usize])
                    && shard.observe_near(near, one.key(), one.entry, now, &self.rules)
                {
                    put(one.row, 0);
                }
            }
            return;
        }
        let mut near = [usize::MAX; MOST_LEVELS];
        for (place, levels) in seen.chunks_exact(self.levels).enumerate() {
            for (level, near) in near[..self.levels].iter_mut().enumerate() {
                *near = ahead.next(shard, &self.rules, place * self.levels + level);
            }
            let row = levels[0].row;
            if let Some(level) = self.decide_row(admitted[row as usize], levels, &near, shard) {
                put(row, level as i8);
            }
        }
    }

    #[inline(always)]
    fn decide_row(
        &self,
        admitted: Admitted,
        levels: &[Seen],
        near: &[usize],
        shard: &mut Shard,
    ) -> Option<usize> {
        let now = self.now(admitted)?;
        walk(self.rule, self.levels, |level| {
            let (key, entry) = (levels[level].key(), levels[level].entry);
            if key == Key::MISSING {
                return Counted::Veiled;
            }
            let released = shard.observe_near(near[level], key, entry, now, &self.rules);
            shard.counted(released, entry, &self.rules)
        })
    }

    #[inline(always)]
    fn now(&self, admitted: Admitted) -> Option<Now> {
        let in_order = admitted == Admitted::InOrder;
        if admitted == Admitted::No { None } else { Some(Now { epoch: self.epoch, in_order }) }
    }
}

/// Fetches slots and crowds some rows ahead of the one being decided.
struct Ahead<'a> {
    seen: &'a [Seen],
    /// Where the attributes of the next rows were seen, by their number modulo the length.
    near: [usize; RING],
}

/// A power of two above `CROWD_AHEAD`.
const RING: usize = 8;

impl<'a> Ahead<'a> {
    fn new(shard: &Shard, rules: &Rules, seen: &'a [Seen]) -> Self {
        seen.iter().take(SLOT_AHEAD).for_each(|later| shard.prefetch_slot(later.hash));
        let mut near = [usize::MAX; RING];
        for (near, soon) in near.iter_mut().zip(seen).take(CROWD_AHEAD) {
            *near = shard.prefetch_crowd(soon.key(), soon.entry.time, rules);
        }
        Self { seen, near }
    }

    /// Where number `at` was seen. To be called for each, in order.
    #[inline(always)]
    fn next(&mut self, shard: &Shard, rules: &Rules, at: usize) -> usize {
        if let Some(later) = self.seen.get(at.wrapping_add(SLOT_AHEAD)) {
            shard.prefetch_slot(later.hash);
        }
        let ahead = at.wrapping_add(CROWD_AHEAD);
        if let Some(soon) = self.seen.get(ahead) {
            self.near[ahead % RING] = shard.prefetch_crowd(soon.key(), soon.entry.time, rules);
        }
        self.near[at % RING]
    }
}
