//! The users of one attribute: are there z distinct ones in the window?
//!
//! # Why the z users seen last are enough
//! Let C be the attribute's clock. There are z users in `[C - window, C]` exactly if the z-th newest
//! last-seen time is at least `C - window`. A user that is not among the z_max >= z newest can change
//! that only by being seen again, and that puts it among them. So a crowd keeps the z_max users seen
//! last, and its answer is that of Algorithm 1, which keeps them all.
//!
//! # A lazy log
//! Keeping those users in order at every observation would cost a search and a move. Instead the
//! crowd is a log in the order of time, in which a user may stand several times; only the newest
//! entry of each counts. It is looked through only when the answer needs it:
//!
//! ```text
//!          C - window                                    C
//! ---------|----------------------------------------------|----> time
//!   a   b  |  c   a     b   a   d        a   b   c   a   d
//!   '---'  |  '---'     '---'            |
//!  expired |  seen again since           the 4th newest distinct user (z = 4) was last seen here:
//!          |                             released, without looking, until this time + window,
//!          |                             the *certificate*
//! ```
//!
//! - While C is not past the certificate: append, release. New entries can only make it later.
//! - Fewer than z entries, or the z-th newest *entry* has expired: append, veil.
//! - Otherwise look: go from the newest backwards, count distinct users, stop at z.
//! - A full block is compacted to its distinct users; if they fill more than half, it grows (to
//!   about 2.5 z_max at most). So a compaction is paid for by the entries appended since the last.
//! - Where the count stays close to z, looking at every turn would cost O(z) with a hash table. There
//!   the log is kept `distinct`: one scan for the new user, at a fraction of a nanosecond an entry.

use crate::slab::Entry;
use crate::table::Crowd;

/// No certificate: every clock is past it, because no time is as old.
pub(crate) const NO_CERTIFICATE: i64 = i64::MIN;

/// What decides: the same for every attribute of a gate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) z: usize,
    pub(crate) z_max: usize,
    pub(crate) window: i64,
    /// From so many entries on, a distinct log is kept distinct.
    scan_from: usize,
    /// A certificate that ends sooner than this is not worth a look through an unsorted log.
    short_life: i64,
}

impl Rules {
    pub(crate) fn new(z: usize, z_max: usize, window: i64) -> Self {
        Self {
            z,
            z_max,
            window,
            scan_from: z - (z / 8).min(8),
            short_life: window / (2 + z as i64 / 8),
        }
    }

    /// The oldest time that still counts at a clock: the window is closed.
    #[inline(always)]
    pub(crate) fn floor(&self, clock: i64) -> i64 {
        clock.saturating_sub(self.window)
    }
}

/// A set of users, emptied in no time.
#[derive(Default)]
pub(crate) struct Distinct {
    users: Vec<u64>,
    stamps: Vec<u32>,
    stamp: u32,
    mask: usize,
}

impl Distinct {
    fn clear(&mut self, most: usize) {
        let size = (most * 2).next_power_of_two();
        if self.users.len() < size {
            self.users.resize(size, 0);
            self.stamps.resize(size, 0);
        }
        self.mask = size - 1;
        self.stamp = self.stamp.wrapping_add(1);
        if self.stamp == 0 {
            self.stamps.fill(0);
            self.stamp = 1;
        }
    }

    /// True where the user was not in it. The users are random bits already: no hash needed.
    #[inline(always)]
    fn insert(&mut self, user: u64) -> bool {
        let mut index = user as usize & self.mask;
        loop {
            if self.stamps[index] != self.stamp {
                self.stamps[index] = self.stamp;
                self.users[index] = user;
                return true;
            }
            if self.users[index] == user {
                return false;
            }
            index = (index + 1) & self.mask;
        }
    }
}

impl Crowd {
    /// Whether the next entry should go through [`Crowd::scan`].
    #[inline(always)]
    pub(crate) fn wants_scan(&self, rules: &Rules) -> bool {
        self.distinct && self.len + 1 >= rules.scan_from
    }

    /// Appends without looking; the time must not be before the last one's, and there must be room.
    #[inline(always)]
    pub(crate) fn append(&mut self, entries: &mut [Entry], entry: Entry) {
        entries[self.len] = entry;
        self.len += 1;
        self.distinct = false;
    }

    /// Puts an entry that came late where its time belongs, behind others of the same time.
    pub(crate) fn insert(&mut self, entries: &mut [Entry], entry: Entry) {
        let at = entries[..self.len].partition_point(|other| other.time <= entry.time);
        entries.copy_within(at..self.len, at + 1);
        entries[at] = entry;
        self.len += 1;
        self.distinct = false;
    }

    /// Appends to a distinct log and leaves it distinct; there must be room. Answers as `judge`.
    pub(crate) fn scan(&mut self, entries: &mut [Entry], entry: Entry, rules: &Rules) -> bool {
        match entries[..self.len].iter().position(|other| other.user == entry.user) {
            Some(at) => {
                entries.copy_within(at + 1..self.len, at);
                entries[self.len - 1] = entry;
            }
            None => {
                entries[self.len] = entry;
                self.len += 1;
            }
        }
        if self.len < rules.z {
            return false;
        }
        let oldest = entries[self.len - rules.z].time;
        if oldest < rules.floor(entry.time) {
            return false;
        }
        self.certificate = oldest.saturating_add(rules.window);
        self.distinct = self.is_short(entry.time, rules);
        true
    }

    fn is_short(&self, clock: i64, rules: &Rules) -> bool {
        self.certificate.saturating_sub(clock) < rules.short_life
    }

    /// Are there z users in the window that ends at the clock, the time of the newest entry?
    #[inline(always)]
    pub(crate) fn judge(
        &mut self,
        entries: &mut [Entry],
        clock: i64,
        rules: &Rules,
        scratch: &mut Distinct,
    ) -> bool {
        if clock <= self.certificate {
            return true;
        }
        if self.len < rules.z || entries[self.len - rules.z].time < rules.floor(clock) {
            return false;
        }
        self.look(entries, clock, rules, scratch)
    }

    #[cold]
    fn look(
        &mut self,
        entries: &mut [Entry],
        clock: i64,
        rules: &Rules,
        scratch: &mut Distinct,
    ) -> bool {
        let floor = rules.floor(clock);
        scratch.clear(self.len);
        let mut found = 0;
        for entry in entries[..self.len].iter().rev() {
            if entry.time < floor {
                break;
            }
            if scratch.insert(entry.user) {
                found += 1;
                if found == rules.z {
                    self.certificate = entry.time.saturating_add(rules.window);
                    if self.is_short(clock, rules) {
                        self.compact(entries, clock, rules, scratch);
                    }
                    return true;
                }
            }
        }
        self.compact(entries, clock, rules, scratch);
        false
    }

    /// Keeps the newest entry of each of the z_max users seen last, within the window.
    pub(crate) fn compact(
        &mut self,
        entries: &mut [Entry],
        clock: i64,
        rules: &Rules,
        scratch: &mut Distinct,
    ) {
        let floor = rules.floor(clock);
        scratch.clear(self.len);
        let mut kept = 0;
        let mut write = self.len;
        for read in (0..self.len).rev() {
            let entry = entries[read];
            if entry.time < floor || kept == rules.z_max {
                break;
            }
            if scratch.insert(entry.user) {
                write -= 1;
                kept += 1;
                entries[write] = entry;
                if kept == rules.z {
                    self.certificate = entry.time.saturating_add(rules.window);
                }
            }
        }
        entries.copy_within(write..self.len, 0);
        self.len = kept;
        self.distinct = true;
    }

    /// Drops the oldest entries, where memory for more is not to be had. That can only veil.
    pub(crate) fn keep_newest(&mut self, entries: &mut [Entry], most: usize) {
        if self.len > most {
            entries.copy_within(self.len - most..self.len, 0);
            self.len = most;
        }
    }

    /// Takes one user out; false where it was not there. The log must be compact.
    pub(crate) fn forget(&mut self, entries: &mut [Entry], user: u64) -> bool {
        let Some(at) = entries[..self.len].iter().position(|entry| entry.user == user) else {
            return false;
        };
        entries.copy_within(at + 1..self.len, at);
        self.len -= 1;
        self.certificate = NO_CERTIFICATE;
        true
    }
}
