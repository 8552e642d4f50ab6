//! A part of the attributes, with all that is known about them. One thread works on it at a time.

use crate::crowd::{Distinct, NO_CERTIFICATE, Rules};
use crate::error::Error;
use crate::expiry::Sweep;
use crate::memory::Budget;
use crate::slab::{Block, Entry, Slab, capacity, class_for};
use crate::table::{Crowd, Found, Held, Key, Place, Table};

/// The smallest memory that a shard can work with: a table that grows once, and one extent.
pub const SMALLEST_SHARD: usize = 4 << 20;

pub(crate) struct Shard {
    table: Table,
    slab: Slab,
    budget: Budget,
    scratch: Distinct,
    sweep: Sweep,
    /// Observations for which there was no memory: turned away, or their crowd cut short.
    pub(crate) refused: u64,
}

/// What one shard holds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Holdings {
    pub(crate) attributes: usize,
    pub(crate) entries: usize,
    pub(crate) bytes: usize,
}

impl Shard {
    pub(crate) fn new(limit: Option<usize>) -> Result<Self, Error> {
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
            refused: 0,
        })
    }

    /// Counts one observation under one attribute and says whether z users are there now.
    #[inline(always)]
    pub(crate) fn observe(&mut self, key: Key, entry: Entry, epoch: u32, rules: &Rules) -> bool {
        let place = match self.table.find(key) {
            Found::Taken(place) => place,
            _ => return self.begin(key, entry, epoch, rules),
        };
        let slot = self.table.slot(place);
        slot.epoch = epoch;
        let mut crowd = match slot.held() {
            Held::Crowd(crowd) => crowd,
            Held::Single(first) => return self.observe_second(place, first, entry, rules),
            Held::Nobody => return false,
        };
        let entries = self.slab.entries_mut(crowd.block);
        let clock = entries[crowd.len - 1].time;
        if entry.time >= clock && crowd.len < entries.len() && !crowd.wants_scan(rules) {
            if entry.time <= crowd.certificate {
                // What most observations of a popular attribute come to.
                entries[crowd.len] = entry;
                slot.lengthen();
                return true;
            }
            crowd.append(entries, entry);
            let released = crowd.judge(entries, entry.time, rules, &mut self.scratch);
            slot.hold_crowd(crowd);
            return released;
        }
        if entry.time < rules.floor(clock) {
            return false;
        }
        let released = self.observe_slowly(&mut crowd, entry, clock, rules);
        self.table.slot(place).hold_crowd(crowd);
        released
    }

    /// An observation of an attribute that had a single user.
    #[inline]
    fn observe_second(&mut self, place: Place, first: Entry, entry: Entry, rules: &Rules) -> bool {
        let clock = first.time.max(entry.time);
        let floor = rules.floor(clock);
        if entry.time < floor {
            return false;
        }
        if first.time < floor || first.user == entry.user {
            self.table.slot(place).hold_single(Entry { user: entry.user, time: clock });
            return rules.z == 1;
        }
        if let Some(crowd) = self.pair(first, entry, rules) {
            self.table.slot(place).hold_crowd(crowd);
            return rules.z <= 2;
        }
        let newer = if first.time > entry.time { first } else { entry };
        self.table.slot(place).hold_single(newer);
        rules.z == 1
    }

    /// A full block, a late entry, or a crowd so close to z that it is kept distinct.
    #[cold]
    fn observe_slowly(
        &mut self,
        crowd: &mut Crowd,
        entry: Entry,
        clock: i64,
        rules: &Rules,
    ) -> bool {
        let now = clock.max(entry.time);
        if crowd.len == capacity(crowd.block.class) {
            self.make_room(crowd, now, rules);
        }
        let entries = self.slab.entries_mut(crowd.block);
        if entry.time < clock {
            crowd.insert(entries, entry);
        } else if crowd.wants_scan(rules) {
            return crowd.scan(entries, entry, rules);
        } else {
            crowd.append(entries, entry);
        }
        crowd.judge(entries, now, rules, &mut self.scratch)
    }

    /// The first observation of an attribute.
    #[cold]
    fn begin(&mut self, key: Key, entry: Entry, epoch: u32, rules: &Rules) -> bool {
        if !self.table.make_room(&mut self.budget) {
            self.refused += 1;
            return false;
        }
        // Making room may have moved the place.
        let Found::Free(place) = self.table.find(key) else {
            self.refused += 1;
            return false;
        };
        self.table.insert(place, key, epoch, entry);
        rules.z == 1
    }

    /// Two users: the first crowd, in the order of time. `None` where there is no memory.
    fn pair(&mut self, first: Entry, second: Entry, rules: &Rules) -> Option<Crowd> {
        let Some(block) = self.slab.allocate(0, &mut self.budget) else {
            self.refused += 1;
            return None;
        };
        let mut pair = [first, second];
        if first.time > second.time {
            pair.swap(0, 1);
        }
        self.slab.entries_mut(block)[..2].copy_from_slice(&pair);
        let certificate = match rules.z {
            1 => pair[1].time.saturating_add(rules.window),
            2 => pair[0].time.saturating_add(rules.window),
            _ => NO_CERTIFICATE,
        };
        Some(Crowd { block, len: 2, distinct: true, certificate })
    }

    /// Compacts a full block, and moves it to a larger or smaller one where that fits better.
    #[cold]
    fn make_room(&mut self, crowd: &mut Crowd, clock: i64, rules: &Rules) {
        let entries = self.slab.entries_mut(crowd.block);
        let full = entries.len();
        crowd.compact(entries, clock, rules, &mut self.scratch);
        if crowd.len * 2 <= full && crowd.len * 8 >= full {
            return;
        }
        let most = rules.z_max + rules.z_max.div_ceil(2) + rules.z_max;
        let class = class_for((crowd.len * 2).clamp(4, most.max(4)));
        if class != crowd.block.class && self.move_to(crowd, class).is_some() {
            return;
        }
        if crowd.len == full {
            crowd.keep_newest(self.slab.entries_mut(crowd.block), full / 2);
            self.refused += 1;
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

    #[inline(always)]
    pub(crate) fn prefetch_slot(&self, key: Key) {
        self.table.prefetch(key);
    }

    #[inline(always)]
    pub(crate) fn prefetch_crowd(&self, key: Key) {
        if let Some(crowd) = self.table.glance(key) {
            self.slab.prefetch(crowd.block, crowd.len);
        }
    }

    /// Reclaims some of what can never count again.
    pub(crate) fn reclaim(&mut self, epoch: u64, observations: usize) {
        let steps = self.sweep.steps(epoch, self.table.positions(), observations);
        if steps == 0 {
            return;
        }
        let slab = &mut self.slab;
        self.table.sweep(steps, &mut self.budget, |slot, budget| {
            let idle = crate::expiry::is_idle(slot.epoch, epoch);
            if let (true, Held::Crowd(crowd)) = (idle, slot.held()) {
                slab.free(crowd.block, budget);
            }
            idle
        });
    }

    /// A raised z makes every certificate void: each was given for fewer users.
    pub(crate) fn void_certificates(&mut self) {
        self.table.retain(|slot| {
            if let Held::Crowd(crowd) = slot.held() {
                slot.hold_crowd(Crowd { certificate: NO_CERTIFICATE, ..crowd });
            }
            true
        });
    }

    /// Erases one user; `entry_of` gives what stands for them under an attribute.
    pub(crate) fn forget(&mut self, entry_of: impl Fn(u64) -> u64, rules: &Rules) -> usize {
        let Self { table, slab, budget, scratch, .. } = self;
        let mut erased = 0;
        table.retain(|slot| {
            let user = entry_of(slot.hash);
            match slot.held() {
                Held::Nobody => true,
                Held::Single(entry) => {
                    erased += usize::from(entry.user == user);
                    entry.user != user
                }
                Held::Crowd(mut crowd) => {
                    let entries = slab.entries_mut(crowd.block);
                    if !entries[..crowd.len].iter().any(|entry| entry.user == user) {
                        return true;
                    }
                    let clock = entries[crowd.len - 1].time;
                    erased += 1;
                    crowd.compact(entries, clock, rules, scratch);
                    crowd.forget(entries, user);
                    // What lies behind the log would otherwise keep the entry until overwritten.
                    entries[crowd.len..].fill(Entry::default());
                    if crowd.len == 0 {
                        slab.free(crowd.block, budget);
                        return false;
                    }
                    slot.hold_crowd(crowd);
                    true
                }
            }
        });
        erased
    }

    /// Every attribute with its users in the order of time, the newest entry of each only.
    pub(crate) fn export(&self, rules: &Rules, mut take: impl FnMut(Key, &[Entry])) {
        let mut scratch = Distinct::default();
        let mut entries = Vec::new();
        for slot in self.table.iter() {
            entries.clear();
            match slot.held() {
                Held::Nobody => continue,
                Held::Single(entry) => entries.push(entry),
                Held::Crowd(mut crowd) => {
                    entries.extend_from_slice(&self.slab.entries(crowd.block)[..crowd.len]);
                    let clock = entries[crowd.len - 1].time;
                    crowd.compact(&mut entries, clock, rules, &mut scratch);
                    entries.truncate(crowd.len);
                }
            }
            take(slot.key(), &entries);
        }
    }

    /// Takes in what `export` gave. False where there is no memory for it.
    pub(crate) fn import(&mut self, key: Key, entries: &[Entry], epoch: u32) -> bool {
        let Some(last) = entries.last() else { return true };
        if !self.table.make_room(&mut self.budget) {
            return false;
        }
        let Found::Free(place) = self.table.find(key) else { return false };
        self.table.insert(place, key, epoch, *last);
        if entries.len() == 1 {
            return true;
        }
        let class = class_for((entries.len() + entries.len() / 4 + 1).max(4));
        let Some(block) = self.slab.allocate(class, &mut self.budget) else { return false };
        self.slab.entries_mut(block)[..entries.len()].copy_from_slice(entries);
        let len = entries.len();
        let crowd = Crowd { block, len, distinct: false, certificate: NO_CERTIFICATE };
        self.table.slot(place).hold_crowd(crowd);
        true
    }

    pub(crate) fn holdings(&self) -> Holdings {
        let entries = self.table.iter().map(|slot| match slot.held() {
            Held::Nobody => 0,
            Held::Single(_) => 1,
            Held::Crowd(crowd) => crowd.len,
        });
        Holdings {
            attributes: self.table.live(),
            entries: entries.sum(),
            bytes: self.budget.used(),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.budget.used()
    }
}
