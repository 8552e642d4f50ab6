//! The rows of a round, decided with the memory fetched ahead.

use super::part::{Part, Seen, Timing};
use crate::admission::Admitted;
use crate::crowd::Rules;
use crate::settings::Rule;
use crate::shard::{Now, Shard};
use crate::table::QUICKEST_MOVE;
use std::ops::Range;

/// Up to this size the state is in the cache anyway, and fetching ahead only costs.
const IN_CACHE: usize = 4 << 20;

/// Rows that are decided together. While one group is decided, the crowds of the next are fetched and
/// the slots of the one behind that: three short loops are faster than one that does it all.
pub(super) const GROUP: usize = 16;

/// Of two groups, each row may be of a new attribute. Meanwhile a table may begin to move, or end, but not
/// both: then a place that was seen would be taken for one of another table.
const _: () = assert!(2 * GROUP <= QUICKEST_MOVE);

/// Where the attributes of a group were seen a moment ago.
type Near = [usize; GROUP];

/// What the rows of a round are decided by.
#[derive(Clone, Copy)]
pub(super) struct Round {
    pub(super) levels: usize,
    pub(super) plain: bool,
    pub(super) rules: Rules,
    pub(super) rule: Rule,
    /// Of the clock at these rows.
    pub(super) epoch: u32,
}

impl Round {
    /// Decides some rows of a part: those of all shards, or of the one whose number is `own`.
    pub(super) fn decide(
        &self,
        part: &Part,
        rows: Range<usize>,
        shards: &mut [Shard],
        own: Option<usize>,
        decisions: &mut [i8],
    ) {
        for (number, shard) in shards.iter_mut().enumerate() {
            let seen = part.seen_of(own.unwrap_or(number), &rows);
            self.decide_shard(seen, &part.admitted, shard, decisions);
        }
    }

    /// Decides the rows of one shard; `decisions` are those of all rows.
    fn decide_shard(
        &self,
        seen: &[Seen],
        admitted: &Timing,
        shard: &mut Shard,
        decisions: &mut [i8],
    ) {
        match (self.plain, admitted) {
            (false, _) => self.decide_levels(seen, admitted, shard, decisions),
            (true, Timing::InOrder) if shard.bytes() <= IN_CACHE => {
                let now = Now { epoch: self.epoch, in_order: true };
                for one in seen {
                    let released = shard.observe(one.key(), one.entry, now, &self.rules);
                    decisions[one.row as usize] = i8::from(released) - 1;
                }
            }
            (true, _) => {
                let mut ahead = Ahead::new(shard, seen);
                for group in seen.chunks(GROUP) {
                    let near = ahead.next(shard);
                    if let Timing::Mixed(admitted) = admitted {
                        self.decide_mixed(group, &near, admitted, shard, decisions);
                    } else {
                        self.decide_in_order(group, &near, shard, decisions);
                    }
                }
            }
        }
    }

    /// The usual case, in a function of its own: its few values stay in registers.
    #[inline(never)]
    fn decide_in_order(
        &self,
        group: &[Seen],
        near: &Near,
        shard: &mut Shard,
        decisions: &mut [i8],
    ) {
        let (now, rules) = (Now { epoch: self.epoch, in_order: true }, self.rules);
        for (one, near) in group.iter().zip(near) {
            let released = shard.observe_near(*near, one.key(), one.entry, now, &rules);
            decisions[one.row as usize] = i8::from(released) - 1;
        }
    }

    fn decide_mixed(
        &self,
        group: &[Seen],
        near: &Near,
        admitted: &[Admitted],
        shard: &mut Shard,
        decisions: &mut [i8],
    ) {
        for (one, near) in group.iter().zip(near) {
            if let Some(now) = self.now(admitted[one.row as usize]) {
                let released = shard.observe_near(*near, one.key(), one.entry, now, &self.rules);
                decisions[one.row as usize] = i8::from(released) - 1;
            }
        }
    }

    #[inline(always)]
    pub(super) fn now(&self, admitted: Admitted) -> Option<Now> {
        let in_order = admitted == Admitted::InOrder;
        if admitted == Admitted::No { None } else { Some(Now { epoch: self.epoch, in_order }) }
    }
}

/// Fetches slots and crowds some groups ahead of the one being decided.
struct Ahead<'a> {
    /// Rows whose slots are not fetched yet.
    far: &'a [Seen],
    /// Rows whose slots are fetched, but not their crowds.
    soon: &'a [Seen],
    /// Of the group to be decided next.
    near: Near,
}

impl<'a> Ahead<'a> {
    fn new(shard: &Shard, seen: &'a [Seen]) -> Self {
        let (first, soon) = seen.split_at(seen.len().min(GROUP));
        let far = &soon[soon.len().min(GROUP)..];
        fetch_slots(shard, first);
        fetch_slots(shard, &soon[..soon.len().min(GROUP)]);
        Self { far, soon, near: fetch_crowds(shard, first) }
    }

    /// Where the rows of the next group were seen. To be called for each group, in order.
    #[inline(always)]
    fn next(&mut self, shard: &Shard) -> Near {
        let (far, behind) = self.far.split_at(self.far.len().min(GROUP));
        fetch_slots(shard, far);
        self.far = behind;
        let (soon, behind) = self.soon.split_at(self.soon.len().min(GROUP));
        self.soon = behind;
        std::mem::replace(&mut self.near, fetch_crowds(shard, soon))
    }
}

#[inline(never)]
fn fetch_slots(shard: &Shard, rows: &[Seen]) {
    rows.iter().for_each(|row| shard.prefetch_slot(row.hash));
}

#[inline(never)]
fn fetch_crowds(shard: &Shard, rows: &[Seen]) -> Near {
    let mut near = [usize::MAX; GROUP];
    for (near, row) in near.iter_mut().zip(rows) {
        *near = shard.prefetch_crowd(row.key(), row.entry.time).index;
    }
    near
}
