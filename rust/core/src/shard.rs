//! A part of the attributes, with all that is known about them. One thread works on it at a time.

mod image;
mod upkeep;

pub(crate) use image::Bounds;

use crate::crowd::{Distinct, NO_CERTIFICATE, NOBODY, Rules};
use crate::error::Error;
use crate::expiry::{MOST_STEPS, Sweep};
use crate::memory::Budget;
use crate::noise::Noise;
use crate::slab::{Block, Entry, Slab, capacity, class_for};
use crate::slot::{Crowd, Held, Key, Slot};
use crate::table::{Found, Place, Table};

/// The smallest memory that a shard can work with: a table that grows once, and one extent.
pub const SMALLEST_SHARD: usize = 4 << 20;

/// Entries that the block of a crowd has room for at the least: in half of it, crowds of a few users would be looked at
/// after every second observation.
const FEWEST: usize = 8;

/// Aligned, because each thread writes to its own: two in one cache line would be torn between cores.
#[repr(align(128))]
pub(crate) struct Shard {
    table: Table,
    slab: Slab,
    budget: Budget,
    scratch: Distinct,
    sweep: Sweep,
    noise: Option<Noise>,
    /// Observations for which there was no memory: turned away, or their crowd cut short.
    pub(crate) refused: u64,
    /// The largest time of those, or the smallest number. What is known of an attribute may lack
    /// observations up to here, its clock too; nothing may be concluded from their absence.
    pub(crate) refused_clock: i64,
}

/// What came of counting an observation at a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counted {
    Released,
    Veiled,
    /// Veiled, but perhaps only because memory was short.
    Unknown,
}

/// How the gate's clock stands at an observation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now {
    /// Counted as in `expiry`; never less than the clock's.
    pub(crate) epoch: u32,
    /// No time before was later: then none of any attribute was.
    pub(crate) in_order: bool,
}

/// What is seen of an attribute a moment before it is observed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Glance {
    pub(crate) index: usize,
    /// By what is known so far. It may come otherwise.
    pub(crate) released: bool,
}

impl Glance {
    /// No place in any table.
    const NOTHING: Self = Self { index: usize::MAX, released: false };
}

/// What one shard holds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Holdings {
    pub(crate) attributes: usize,
    pub(crate) bytes: usize,
}

/// What most observations come to: appended without looking, if the crowd has credit.
#[inline(always)]
fn append(slot: &mut Slot, slab: &mut Slab, entry: Entry, now: Now) -> Option<bool> {
    if !now.in_order {
        return None;
    }
    let (block, at, released) = slot.spend(entry.time, now.epoch)?;
    slab.put(block, at, entry);
    Some(released)
}

impl Shard {
    pub(crate) fn new(limit: Option<usize>, noise: Option<Noise>) -> Result<Self, Error> {
        let mut budget = Budget::new(limit);
        let Some(table) = Table::new(&mut budget) else {
            return Err(Error::Memory(std::io::ErrorKind::OutOfMemory.into()));
        };
        Ok(Self {
            table,
            slab: Slab::new(),
            budget,
            scratch: Distinct::default(),
            sweep: Sweep::default(),
            noise,
            refused: 0,
            refused_clock: i64::MIN,
        })
    }

    /// Counts one observation under one attribute and says whether z users are there now.
    #[inline(always)]
    pub(crate) fn observe(&mut self, key: Key, entry: Entry, now: Now, rules: &Rules) -> bool {
        if self.is_behind_refused(entry, now, rules) {
            return false;
        }
        match self.table.find(key) {
            Found::Taken(place) => {
                match append(self.table.slot(place), &mut self.slab, entry, now) {
                    Some(released) => released,
                    None => self.observe_slowly(place, entry, now.epoch, rules),
                }
            }
            Found::Free(place) if self.table.has_room() => {
                self.table.insert(place, key, now.epoch, entry);
                self.is_enough_alone(key, entry, rules)
            }
            _ => self.begin(key, entry, now.epoch, rules),
        }
    }

    /// The same, for an attribute that was seen at this index a moment ago.
    #[inline(always)]
    pub(crate) fn observe_near(
        &mut self,
        near: usize,
        key: Key,
        entry: Entry,
        now: Now,
        rules: &Rules,
    ) -> bool {
        if self.is_behind_refused(entry, now, rules) {
            return false;
        }
        if let Some(slot) = self.table.seen_at(near, key) {
            return match append(slot, &mut self.slab, entry, now) {
                Some(released) => released,
                None => self.observe_slowly(Place::current(near), entry, now.epoch, rules),
            };
        }
        if self.table.is_free(near) {
            self.table.insert(Place::current(near), key, now.epoch, entry);
            return self.is_enough_alone(key, entry, rules);
        }
        self.observe_far(key, entry, now, rules)
    }

    /// Whether the first user of an attribute is enough.
    #[inline(always)]
    fn is_enough_alone(&self, key: Key, entry: Entry, rules: &Rules) -> bool {
        rules.z == 1 && self.more(key.hash, entry.time) == 0
    }

    /// Whether z users are there at this time, or at the attribute's clock if that is later. Counts
    /// nobody. Where others were later, the clock of an attribute may be one that was refused.
    pub(crate) fn passes(&self, key: Key, time: i64, is_late: bool, rules: &Rules) -> bool {
        let Some(slot) = self.table.get(key) else { return false };
        let time = if is_late { time.max(self.refused_clock) } else { time };
        match slot.held() {
            Held::Nobody => false,
            Held::Single(entry) => {
                let now = entry.time.max(time);
                let rules = self.rules_of(key.hash, now, rules);
                rules.z == 1 && entry.user != NOBODY && entry.time >= rules.floor(now)
            }
            Held::Crowd(crowd) => {
                let entries = self.slab.entries(crowd.block);
                let now = entries[crowd.len - 1].time.max(time);
                crowd.has_enough(entries, now, &self.rules_of(key.hash, now, rules))
            }
        }
    }

    /// How many users more than z an attribute needs, by its hash, at a clock.
    pub(crate) fn more(&self, hash: u64, clock: i64) -> usize {
        self.noise.as_ref().map_or(0, |noise| noise.more(hash, clock))
    }

    /// What an attribute is decided by at a clock.
    #[inline(always)]
    fn rules_of(&self, hash: u64, clock: i64, rules: &Rules) -> Rules {
        match &self.noise {
            None => *rules,
            Some(noise) => rules.raised(noise.more(hash, clock)),
        }
    }

    /// Until when a certificate and a credit given at this clock hold. Another draw may need more
    /// users, or fewer; so there is no credit either, which no time ends.
    #[inline(always)]
    fn bounded(&self, crowd: &mut Crowd, credit: usize, clock: i64) -> usize {
        let Some(noise) = &self.noise else { return credit };
        crowd.certificate = crowd.certificate.min(noise.until(clock));
        0
    }

    /// True for a late observation that would be outside the window if its attribute's clock stood
    /// at the largest time refused. It might: a refused observation moves no clock.
    #[inline(always)]
    fn is_behind_refused(&self, entry: Entry, now: Now, rules: &Rules) -> bool {
        !now.in_order && entry.time < rules.floor(self.refused_clock)
    }

    /// Says what a veiled level means: users who were refused might have made it released.
    #[inline(always)]
    pub(crate) fn counted(&self, released: bool, entry: Entry, rules: &Rules) -> Counted {
        if released {
            Counted::Released
        } else if self.refused_clock == i64::MIN || rules.floor(entry.time) > self.refused_clock {
            Counted::Veiled
        } else {
            Counted::Unknown
        }
    }

    fn refuse(&mut self, time: i64) {
        self.refused += 1;
        self.refused_clock = self.refused_clock.max(time);
    }

    /// Attributes that found no place while the table moved: their clocks are not known any more.
    fn note_lost(&mut self, lost: usize) {
        if lost > 0 {
            self.refuse(i64::MAX);
        }
    }

    #[inline(never)]
    fn observe_far(&mut self, key: Key, entry: Entry, now: Now, rules: &Rules) -> bool {
        self.observe(key, entry, now, rules)
    }

    /// A single user, a late entry, or a crowd that must be looked at.
    #[inline(never)]
    fn observe_slowly(&mut self, place: Place, entry: Entry, epoch: u32, rules: &Rules) -> bool {
        let slot = self.table.slot(place);
        slot.touch(epoch);
        let hash = slot.hash;
        let mut crowd = match slot.held() {
            Held::Crowd(crowd) => crowd,
            Held::Single(first) => return self.observe_second(place, hash, first, entry, rules),
            Held::Nobody => return false,
        };
        let clock = self.slab.entries(crowd.block)[crowd.len - 1].time;
        if entry.time < rules.floor(clock) {
            return false;
        }
        let now = clock.max(entry.time);
        let rules = &self.rules_of(hash, now, rules);
        if crowd.len == capacity(crowd.block.class) {
            self.make_room(&mut crowd, now, rules);
        }
        let entries = self.slab.entries_mut(crowd.block);
        let settled = crowd.is_settled(now, rules);
        let released = if entry.time >= clock && crowd.wants_scan(rules) && !settled {
            crowd.scan(entries, entry, rules)
        } else {
            crowd.insert(entries, entry);
            crowd.judge(entries, now, rules, &mut self.scratch)
        };
        let credit = crowd.earn(entries, now, rules);
        let credit = self.bounded(&mut crowd, credit, now);
        let slot = self.table.slot(place);
        slot.hold_crowd(crowd);
        slot.grant(credit);
        released
    }

    /// An observation of an attribute that had a single user.
    #[inline]
    fn observe_second(
        &mut self,
        place: Place,
        hash: u64,
        first: Entry,
        entry: Entry,
        rules: &Rules,
    ) -> bool {
        let clock = first.time.max(entry.time);
        let rules = &self.rules_of(hash, clock, rules);
        let floor = rules.floor(clock);
        if entry.time < floor {
            return false;
        }
        let replaced = first.user == NOBODY && first.time <= entry.time;
        if replaced || first.time < floor || first.user == entry.user {
            self.table.slot(place).hold_single(Entry { user: entry.user, time: clock });
            return rules.z == 1;
        }
        if let Some(mut crowd) = self.pair(first, entry, rules) {
            self.bounded(&mut crowd, 0, clock);
            let slot = self.table.slot(place);
            slot.hold_crowd(crowd);
            return rules.z == 1 || rules.z == 2 && first.user != NOBODY;
        }
        let newer = if first.time > entry.time { first } else { entry };
        self.table.slot(place).hold_single(newer);
        rules.z == 1
    }

    /// The first observation of an attribute while the table is full or moving.
    #[cold]
    fn begin(&mut self, key: Key, entry: Entry, epoch: u32, rules: &Rules) -> bool {
        let room = self.table.make_room(&mut self.budget);
        self.note_lost(room.lost);
        // Making room may have moved the place.
        match self.table.find(key) {
            Found::Free(place) if room.made => {
                self.table.insert(place, key, epoch, entry);
                self.is_enough_alone(key, entry, rules)
            }
            _ => {
                self.refuse(entry.time);
                false
            }
        }
    }

    /// Two users: the first crowd, in the order of time. `None` where there is no memory.
    fn pair(&mut self, first: Entry, second: Entry, rules: &Rules) -> Option<Crowd> {
        let Some(block) = self.slab.allocate(class_for(FEWEST), &mut self.budget) else {
            self.refuse(first.time.max(second.time));
            return None;
        };
        let mut pair = [first, second];
        if first.time > second.time {
            pair.swap(0, 1);
        }
        self.slab.entries_mut(block)[..2].copy_from_slice(&pair);
        let distinct = first.user != NOBODY;
        let certificate = match rules.z {
            1 if distinct => pair[1].time.saturating_add(rules.window),
            2 if distinct => pair[0].time.saturating_add(rules.window),
            _ => NO_CERTIFICATE,
        };
        Some(Crowd { block, len: 2, distinct, certificate })
    }

    /// Frees some of a full block: what has expired, else what is doubled; else it grows.
    #[inline(never)]
    fn make_room(&mut self, crowd: &mut Crowd, clock: i64, rules: &Rules) {
        let entries = self.slab.entries_mut(crowd.block);
        let full = entries.len();
        crowd.drop_expired(entries, rules.floor(clock));
        if crowd.len * 4 <= full * 3 && crowd.len * 8 >= full {
            return;
        }
        if crowd.keep_tail(entries, clock, rules) {
            return;
        }
        crowd.compact(entries, clock, rules, &mut self.scratch);
        if crowd.len * 2 <= full && crowd.len * 8 >= full {
            return;
        }
        let wanted = rules.most.min(crowd.len * 3);
        let class = class_for(wanted.max(FEWEST));
        if class != crowd.block.class && self.move_to(crowd, class).is_some() {
            return;
        }
        if crowd.len == full {
            crowd.keep_newest(self.slab.entries_mut(crowd.block), full / 2);
            self.refuse(clock);
        }
    }

    fn move_to(&mut self, crowd: &mut Crowd, class: u8) -> Option<Block> {
        let block = self.slab.allocate(class, &mut self.budget)?;
        for index in 0..crowd.len {
            let entry = self.slab.entries(crowd.block)[index];
            self.slab.entries_mut(block)[index] = entry;
        }
        self.slab.free(crowd.block, &mut self.budget);
        crowd.block = block;
        Some(block)
    }

    /// What was seen of attributes holds as long as this is the same, or for fewer new attributes than
    /// the quickest move of a table takes.
    #[inline(always)]
    pub(crate) fn moves(&self) -> u64 {
        self.table.moves()
    }

    #[inline(always)]
    pub(crate) fn prefetch_slot(&self, hash: u64) {
        self.table.prefetch(hash);
    }

    /// Fetches what an observation at this time will need of the crowd, and says where the attribute
    /// was seen, for `observe_near`, and what will likely become of the observation.
    #[inline(always)]
    pub(crate) fn prefetch_crowd(&self, key: Key, time: i64) -> Glance {
        let Some((index, slot)) = self.table.glance(key) else { return Glance::NOTHING };
        if slot.can_spend(time) {
            let (block, len) = slot.end();
            self.slab.prefetch(block, len);
        } else {
            self.prefetch_log(slot);
        }
        Glance { index, released: slot.is_certain(time) }
    }

    #[inline(never)]
    fn prefetch_log(&self, slot: &Slot) {
        if let Held::Crowd(crowd) = slot.held() {
            self.slab.prefetch_log(crowd.block, crowd.len);
        }
    }

    /// Reclaims some of what can never count again.
    #[inline(always)]
    pub(crate) fn reclaim(&mut self, epoch: u64, observations: usize) {
        if self.sweep.is_due(epoch) || self.table.is_moving() {
            self.reclaim_some(epoch, observations);
        }
    }

    fn reclaim_some(&mut self, epoch: u64, observations: usize) {
        if self.table.is_moving() {
            // Both tables are there meanwhile: twice as fast as the hand goes.
            let lost = self.table.migrate(observations * MOST_STEPS * 2, &mut self.budget);
            self.note_lost(lost);
            return;
        }
        let steps = self.sweep.steps(epoch, self.table.positions(), observations);
        let slab = &mut self.slab;
        self.table.sweep(
            steps,
            &mut self.budget,
            |slot| crate::expiry::is_idle(slot.epoch(), epoch),
            |slot, budget| {
                if let Held::Crowd(crowd) = slot.held() {
                    slab.free(crowd.block, budget);
                }
            },
        );
    }
}
