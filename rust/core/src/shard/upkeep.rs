//! What is seldom done to a shard: all of it is looked at, or changed, at once.

use super::{Holdings, Shard};
use crate::crowd::{Distinct, NO_CERTIFICATE, NOBODY, Rules};
use crate::noise::Noise;
use crate::slab::{Entry, class_for};
use crate::slot::{Crowd, Held, Key, Slot};
use crate::table::Found;

impl Shard {
    /// Another z makes all credit void, and a raised one every certificate: each was given for fewer
    /// users.
    pub(crate) fn void(&mut self, raised: bool) {
        self.table.retain(|slot| {
            if let Held::Crowd(mut crowd) = slot.held() {
                if raised {
                    crowd.certificate = NO_CERTIFICATE;
                }
                slot.hold_crowd(crowd);
            }
            true
        });
    }

    /// Erases one user; `entry_of` gives what stands for them under an attribute.
    pub(crate) fn forget(&mut self, entry_of: impl Fn(u64) -> u64, rules: &Rules) -> usize {
        let Self { table, slab, scratch, noise, .. } = self;
        let mut erased = 0;
        table.retain(|slot| {
            let user = entry_of(slot.hash);
            match slot.held() {
                Held::Nobody => {}
                Held::Single(entry) => {
                    if entry.user == user {
                        erased += 1;
                        slot.hold_single(Entry { user: NOBODY, ..entry });
                    }
                }
                Held::Crowd(mut crowd) => {
                    let entries = slab.entries_mut(crowd.block);
                    if entries[..crowd.len].iter().any(|entry| entry.user == user) {
                        erased += 1;
                        let clock = entries[crowd.len - 1].time;
                        crowd.compact(entries, clock, rules, scratch);
                        crowd.forget(entries, user);
                        if noise.is_some() {
                            // It was given for z users, and these may not be enough.
                            crowd.certificate = NO_CERTIFICATE;
                        }
                        // What lies behind the log would keep the entry until overwritten.
                        entries[crowd.len..].fill(Entry::default());
                        slot.hold_crowd(crowd);
                    }
                }
            }
            true
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

    /// Makes room for so many attributes that will be imported.
    pub(crate) fn reserve(&mut self, attributes: usize) {
        self.table.reserve(attributes, &mut self.budget);
    }

    /// Takes in what `export` gave; what there is no memory for is refused.
    pub(crate) fn import(&mut self, key: Key, entries: &[Entry], epoch: u32) {
        let Some(last) = entries.last() else { return };
        let room = self.table.make_room(&mut self.budget);
        self.note_lost(room.lost);
        let Found::Free(place) = self.table.find(key) else { return self.refuse(last.time) };
        if !room.made {
            return self.refuse(last.time);
        }
        self.table.insert(place, key, epoch, *last);
        if entries.len() == 1 {
            return;
        }
        let class = class_for((entries.len() + entries.len() / 4 + 1).max(4));
        let Some(block) = self.slab.allocate(class, &mut self.budget) else {
            return self.refuse(last.time);
        };
        self.slab.entries_mut(block)[..entries.len()].copy_from_slice(entries);
        let len = entries.len();
        let crowd = Crowd { block, len, distinct: false, certificate: NO_CERTIFICATE };
        self.table.slot(place).hold_crowd(crowd);
    }

    /// The attributes with at least so many users from `floor` on: what tells each apart, how many,
    /// and since when where there may be more.
    pub(crate) fn crowds(
        &self,
        least: usize,
        floor: i64,
        rules: &Rules,
        mut take: impl FnMut(u64, usize, Option<i64>),
    ) {
        let mut scratch = Distinct::default();
        for slot in self.table.iter() {
            let (users, since) = match slot.held() {
                Held::Crowd(crowd) if crowd.len >= least => {
                    crowd.users(self.slab.entries(crowd.block), floor, rules, &mut scratch)
                }
                Held::Single(entry) if entry.time >= floor && entry.user != NOBODY => (1, None),
                _ => continue,
            };
            if users >= least {
                take(slot.hash, users, since);
            }
        }
    }

    pub(crate) fn holdings(&self) -> Holdings {
        Holdings { attributes: self.table.live(), bytes: self.budget.used() }
    }

    /// Users remembered, over all attributes; takes a pass over the table.
    pub(crate) fn entries(&self) -> usize {
        let entries = self.table.iter().map(|slot| match slot.held() {
            Held::Nobody => 0,
            Held::Single(_) => 1,
            Held::Crowd(crowd) => crowd.len,
        });
        entries.sum()
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = Key> {
        self.table.iter().map(Slot::key)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.budget.used()
    }

    pub(crate) fn set_limit(&mut self, limit: Option<usize>) {
        self.budget.set_limit(limit);
    }

    /// Of memory or attributes.
    pub(crate) fn is_limited(&self) -> bool {
        self.budget.is_limited() || self.table.has_most()
    }

    /// Whoever draws anew also voids what was given under the draws before.
    pub(crate) fn set_noise(&mut self, noise: Option<Noise>) {
        self.noise = noise;
    }

    pub(crate) fn limit_attributes(&mut self, most: usize) {
        self.table.set_most(most);
    }
}
