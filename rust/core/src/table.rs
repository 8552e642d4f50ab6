//! The table of attributes: open addressing, linear probing, 32 bytes a slot.
//!
//! The position of a slot is the high bits of its hash, and runs never wrap: there is some slack
//! behind the last position instead. Runs begin at even positions, so that the first two slots to be
//! looked at are on one cache line. So the table is in the order of the hashes up to the length of
//! a run, and growing it is a sequential copy that can be done a few slots at a time:
//!
//! ```text
//! leaving   . . . . . . . | x x . x . x x     keys at or behind the frontier are still here
//! current   x . x x . . x . x . . . . . .     keys before it have moved here
//!                         ^ frontier, always just behind an empty slot
//! ```
//!
//! No observation waits for more than a short stretch of that copy. Idle slots are found by a hand
//! that goes round the table as the clock moves.

mod image;

use crate::memory::{Budget, Pages};
use crate::slab::Entry;
use crate::slot::{Key, Slot};

/// Slots behind the last position. At a load of 0.6 a run longer than this has a chance of 1e-12 to
/// end there; the new attribute is then veiled, as in a full table.
const SLACK: usize = 256;
const SMALLEST: u32 = 10;
/// Slots that a new attribute moves while the table changes its size.
const MOVED_AT_ONCE: usize = 32;
/// So many new attributes, at the least, come between the beginning of a move and its end.
pub(crate) const QUICKEST_MOVE: usize = (1 << SMALLEST) / MOVED_AT_ONCE;
const LARGEST: u32 = 40;
/// Up to this size, 32 MiB, a table grows fourfold: that moves a third of the slots that doubling does, and takes a
/// third less new memory on the way.
const FOURFOLD: u32 = 20;
/// Slots that the hand looks at together.
const STRETCH: usize = 8;

/// Memory that a growing table leaves for the crowds: an extent.
const CROWDS: usize = 2 << 20;

struct Slots {
    /// The last one is never taken: it ends the last run.
    slots: Pages<Slot>,
    /// A position is the hash without so many low bits.
    shift: u32,
}

/// Where a slot is: which array, which index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    leaving: bool,
    index: usize,
}

impl Place {
    /// In the table as it is now, no part of it moving.
    #[inline(always)]
    pub(crate) fn current(index: usize) -> Self {
        Self { leaving: false, index }
    }
}

/// What came of making room.
pub(crate) struct Room {
    pub(crate) made: bool,
    /// Attributes that found no place in the slack, which is next to impossible.
    pub(crate) lost: usize,
}

pub(crate) enum Found {
    Taken(Place),
    Free(Place),
    /// The run has reached the end of the slack.
    Nowhere,
}

pub(crate) struct Table {
    current: Slots,
    leaving: Option<(Slots, usize)>,
    live: usize,
    /// As many attributes are taken at the most.
    most: usize,
    hand: usize,
    /// How often it began to change its size.
    moves: u64,
}

impl Slots {
    fn new(bits: u32, budget: &mut Budget) -> Option<Self> {
        Some(Self { slots: budget.pages((1 << bits) + SLACK)?, shift: 64 - bits })
    }

    fn bits(&self) -> u32 {
        64 - self.shift
    }

    #[inline(always)]
    fn home(&self, hash: u64) -> usize {
        hash.wrapping_shr(self.shift) as usize & !1
    }

    /// The slot at an index that is known to be within.
    #[inline(always)]
    fn at(&self, index: usize) -> &Slot {
        debug_assert!(index < self.slots.len());
        // SAFETY: callers pass a `home`, which is below 2^bits, or go on from a slot that is taken,
        // which is never the last one. (Checking each step took 10 % of the time per observation.)
        unsafe { self.slots.get_unchecked(index) }
    }

    #[inline(always)]
    fn find(&self, key: Key) -> Result<usize, Option<usize>> {
        let mut index = self.home(key.hash);
        loop {
            let slot = self.at(index);
            if slot.is(key) {
                return Ok(index);
            }
            if slot.is_empty() {
                return Err(Some(index).filter(|index| index + 1 < self.slots.len()));
            }
            index = index.wrapping_add(1);
        }
    }

    /// Takes a slot out and closes the gap, so that no run is cut in two.
    fn remove(&mut self, index: usize) {
        let mut gap = index;
        let mut next = index + 1;
        while let Some(slot) = self.slots.get(next).copied() {
            if slot.is_empty() {
                break;
            }
            if self.home(slot.hash) <= gap {
                self.slots[gap] = slot;
                gap = next;
            }
            next += 1;
        }
        self.slots[gap] = Slot::default();
    }
}

impl Table {
    pub(crate) fn new(budget: &mut Budget) -> Option<Self> {
        let current = Slots::new(SMALLEST, budget)?;
        Some(Self { current, leaving: None, live: 0, most: usize::MAX, hand: 0, moves: 0 })
    }

    pub(crate) fn live(&self) -> usize {
        self.live
    }

    pub(crate) fn has_most(&self) -> bool {
        self.most < usize::MAX
    }

    pub(crate) fn set_most(&mut self, most: usize) {
        self.most = most;
    }

    /// Some attributes are still where they were before the table changed its size.
    #[inline(always)]
    pub(crate) fn is_moving(&self) -> bool {
        self.leaving.is_some()
    }

    /// Changes whenever places that were seen may be others' by now.
    #[inline(always)]
    pub(crate) fn moves(&self) -> u64 {
        self.moves
    }

    pub(crate) fn positions(&self) -> usize {
        1 << self.current.bits()
    }

    #[inline(always)]
    pub(crate) fn find(&self, key: Key) -> Found {
        let (slots, leaving) = match &self.leaving {
            Some((slots, frontier)) if slots.home(key.hash) >= *frontier => (slots, true),
            _ => (&self.current, false),
        };
        match slots.find(key) {
            Ok(index) => Found::Taken(Place { leaving, index }),
            Err(Some(index)) => Found::Free(Place { leaving, index }),
            Err(None) => Found::Nowhere,
        }
    }

    #[inline(always)]
    pub(crate) fn slot(&mut self, place: Place) -> &mut Slot {
        match &mut self.leaving {
            Some((slots, _)) if place.leaving => &mut slots.slots[place.index],
            _ => &mut self.current.slots[place.index],
        }
    }

    /// What is there of a key, to look at.
    pub(crate) fn get(&self, key: Key) -> Option<&Slot> {
        let Found::Taken(place) = self.find(key) else { return None };
        match &self.leaving {
            Some((slots, _)) if place.leaving => Some(slots.at(place.index)),
            _ => Some(self.current.at(place.index)),
        }
    }

    /// Fetches the first two slots that are looked at.
    #[inline(always)]
    pub(crate) fn prefetch(&self, hash: u64) {
        self.current.slots.prefetch(self.current.home(hash));
    }

    /// Where a key is, or would go, as long as no part of the table moves; and what is there. `None` where that is
    /// not known without more of the table, which is fetched.
    #[inline(always)]
    pub(crate) fn glance(&self, key: Key) -> Option<(usize, &Slot)> {
        // Most keys are in one of the first two slots; which of them could not be predicted.
        let home = self.current.home(key.hash);
        let index = home.wrapping_add(usize::from(self.current.at(home).hash != key.hash));
        let slot = self.current.at(index);
        if slot.hash == key.hash {
            return Some((index, slot));
        }
        self.glance_free(home)
    }

    #[inline(never)]
    fn glance_free(&self, home: usize) -> Option<(usize, &Slot)> {
        let index = home.wrapping_add(usize::from(!self.current.at(home).is_empty()));
        let slot = self.current.at(index);
        if slot.is_empty() {
            return Some((index, slot));
        }
        self.current.slots.prefetch(home.wrapping_add(2));
        None
    }

    /// The slot that a glance saw, if the key is there now.
    #[inline(always)]
    pub(crate) fn seen_at(&mut self, index: usize, key: Key) -> Option<&mut Slot> {
        let slot = self.current.slots.get_mut(index)?;
        if slot.is(key) && self.leaving.is_none() { Some(slot) } else { None }
    }

    /// True if a new key can go where a glance saw an empty slot. If that is still empty, the key has
    /// not come since: it would have gone there.
    #[inline(always)]
    pub(crate) fn is_free(&self, index: usize) -> bool {
        self.has_room() && self.current.slots.get(index).is_some_and(Slot::is_empty)
    }

    /// Makes sure that one more attribute has room, unless the memory limit forbids it.
    pub(crate) fn make_room(&mut self, budget: &mut Budget) -> Room {
        // A table of n slots is through after n / 32 new attributes, and the new one has room for
        // half of n: it never fills up meanwhile.
        let lost = self.migrate(MOVED_AT_ONCE, budget);
        let made = self.live < self.most
            && ((self.live + 1) * 5 <= self.positions() * 3
                || self.leaving.is_none() && self.grow(budget));
        Room { made, lost }
    }

    /// Makes an empty table large enough for so many attributes, as far as the limit lets it. They may
    /// then come in the order of their hashes, which would be one long run in a small table.
    pub(crate) fn reserve(&mut self, attributes: usize, budget: &mut Budget) {
        let mut bits = SMALLEST;
        while bits < LARGEST && attributes.saturating_mul(5) > (1 << bits) * 3 {
            bits += 1;
        }
        while self.live == 0 && bits > self.current.bits() {
            let bytes = Pages::<Slot>::bytes_for((1 << bits) + SLACK);
            if budget.has(bytes.saturating_add(CROWDS))
                && let Some(slots) = Slots::new(bits, budget)
            {
                budget.free(std::mem::replace(&mut self.current, slots).slots);
                return;
            }
            bits -= 1;
        }
    }

    /// True if one more attribute has room without a change to the table.
    #[inline(always)]
    pub(crate) fn has_room(&self) -> bool {
        self.leaving.is_none()
            && (self.live + 1) * 5 <= self.positions() * 3
            && self.live < self.most
    }

    /// Puts a new attribute into a free place that `find` gave.
    pub(crate) fn insert(&mut self, place: Place, key: Key, epoch: u32, entry: Entry) {
        let slot = self.slot(place);
        *slot = Slot::new(key, epoch, entry);
        self.live += 1;
    }

    fn grow(&mut self, budget: &mut Budget) -> bool {
        let bits = self.current.bits();
        bits + 2 <= FOURFOLD && self.resize(bits + 2, budget) || self.resize(bits + 1, budget)
    }

    fn resize(&mut self, bits: u32, budget: &mut Budget) -> bool {
        if !(SMALLEST..=LARGEST).contains(&bits) {
            return false;
        }
        // The crowds must have some memory too.
        let bytes = Pages::<Slot>::bytes_for((1 << bits) + SLACK);
        if bits > self.current.bits() && !budget.has(bytes + CROWDS) {
            return false;
        }
        let Some(slots) = Slots::new(bits, budget) else { return false };
        let old = std::mem::replace(&mut self.current, slots);
        self.leaving = Some((old, 0));
        self.hand = 0;
        self.moves = self.moves.wrapping_add(1);
        true
    }

    /// Moves at least `steps` slots of the leaving table, and on to the end of a run; says how many
    /// attributes were lost.
    pub(crate) fn migrate(&mut self, steps: usize, budget: &mut Budget) -> usize {
        let Some((mut old, frontier)) = self.leaving.take() else { return 0 };
        let mut index = frontier;
        let mut lost = 0;
        while let Some(slot) = old.slots.get(index).copied() {
            index += 1;
            if slot.is_empty() {
                if index - frontier >= steps {
                    self.leaving = Some((old, index));
                    return lost;
                }
                continue;
            }
            old.slots[index - 1] = Slot::default();
            match self.current.find(slot.key()) {
                Err(Some(free)) => self.current.slots[free] = slot,
                _ => {
                    self.live -= 1;
                    lost += 1;
                }
            }
        }
        budget.free(old.slots);
        lost
    }

    /// Lets the hand pass `steps` slots, taking out those that `is_idle` names; `leave` gets each of them.
    /// It rests while the table moves.
    ///
    /// Which slots are taken, and which of them are idle, no CPU can guess: so it is found out for a stretch of
    /// them without a branch.
    pub(crate) fn sweep(
        &mut self,
        steps: usize,
        budget: &mut Budget,
        is_idle: impl Fn(&Slot) -> bool,
        mut leave: impl FnMut(&Slot, &mut Budget),
    ) {
        if self.leaving.is_some() {
            return;
        }
        let mut left = steps;
        while left > 0 {
            let rest = &self.current.slots[self.hand..];
            let stretch = &rest[..rest.len().min(left).min(STRETCH)];
            let idle = stretch
                .iter()
                .rev()
                .fold(0_u32, |idle, slot| idle << 1 | u32::from(!slot.is_empty() & is_idle(slot)));
            let passed = stretch.len().min(idle.trailing_zeros() as usize);
            self.hand += passed;
            left -= passed;
            if idle != 0 {
                // The gap may be closed with a slot that is idle too: it is looked at next.
                leave(&self.current.slots[self.hand], budget);
                self.current.remove(self.hand);
                self.live -= 1;
            }
            if self.hand >= self.current.slots.len() {
                self.hand = 0;
                self.shrink(budget);
                return;
            }
        }
    }

    fn shrink(&mut self, budget: &mut Budget) {
        let mut bits = self.current.bits();
        while bits > SMALLEST && self.live * 8 < 1 << bits {
            bits -= 1;
        }
        if bits < self.current.bits() {
            self.resize(bits, budget);
        }
    }

    /// Visits every attribute; those for which `keep` is false are taken out.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&mut Slot) -> bool) {
        let frontier = self.leaving.as_ref().map_or(0, |(_, frontier)| *frontier);
        let leaving = self.leaving.as_mut().map(|(slots, _)| (slots, frontier));
        for (slots, start) in std::iter::once((&mut self.current, 0)).chain(leaving) {
            let mut index = start;
            while let Some(slot) = slots.slots.get_mut(index) {
                if slot.is_empty() || keep(slot) {
                    index += 1;
                } else {
                    slots.remove(index);
                    self.live -= 1;
                }
            }
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Slot> {
        let leaving = self.leaving.iter().flat_map(|(slots, start)| &slots.slots[*start..]);
        self.current.slots.iter().chain(leaving).filter(|slot| !slot.is_empty())
    }
}

#[cfg(test)]
mod tests;
