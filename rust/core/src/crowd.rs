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
//! - Each look earns a *credit*: so many entries can be appended, and answered by the first two
//!   rules, before anyone need look again or make room. The slot keeps it, and most observations
//!   only spend one.
//! - A full block is compacted to the users that count; if they fill more than half, it grows (to
//!   about 2.5 z_max at most). So a compaction is paid for by the entries appended since the last.
//! - Where the count stays close to z, looking at every turn would cost O(z) with a hash table. There
//!   the log is kept `distinct`: one scan for the new user, at a fraction of a nanosecond an entry.

mod place;

use crate::slab::Entry;
use crate::slot::Crowd;
use place::place_of;

/// Stands in a log for a user who was forgotten, where their time is the attribute's clock: the
/// clock must not go back. It counts for nobody. (A user whose entry is 0 by chance, one in 2^64,
/// does not count either, which only veils.)
pub(crate) const NOBODY: u64 = 0;

/// No certificate: every clock is past it, because no time is as old.
pub(crate) const NO_CERTIFICATE: i64 = i64::MIN;

/// What decides: the same for every attribute of a gate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) z: usize,
    pub(crate) z_max: usize,
    pub(crate) window: i64,
    /// Entries that a crowd has room for at most: 2.5 z_max. Of a crowd that is complete, three
    /// fifths of the block are appended before the next look.
    pub(crate) most: usize,
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
            most: z_max + z_max.div_ceil(2) + z_max,
            scan_from: z - (z / 8).min(8),
            short_life: window / (2 + z as i64 / 8),
        }
    }

    /// The same for an attribute that needs more users.
    pub(crate) fn raised(&self, more: usize) -> Self {
        Self::new(self.z + more, self.z_max, self.window)
    }

    /// The oldest time that still counts at a clock: the window is closed.
    #[inline(always)]
    pub(crate) fn floor(&self, clock: i64) -> i64 {
        clock.saturating_sub(self.window)
    }
}

/// Up to so many entries, distinct users are told by a few bits and a scan; from there on by a table.
const FEW: usize = 128;

/// A set of users, emptied in no time.
#[derive(Default)]
pub(crate) struct Distinct {
    /// One bit for each user's low bits: where it is not set, the user is new.
    bits: [u64; 8],
    users: Vec<u64>,
    stamps: Vec<u32>,
    stamp: u32,
    mask: usize,
}

impl Distinct {
    #[inline(always)]
    fn clear(&mut self, most: usize) {
        if most <= FEW {
            self.mask = 0;
            self.bits = [0; 8];
        } else {
            self.clear_table(most);
        }
    }

    fn clear_table(&mut self, most: usize) {
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

    /// True where the user is none of those inserted before, which are the users of `others`.
    #[inline(always)]
    fn insert(&mut self, user: u64, others: &[Entry]) -> bool {
        if self.mask != 0 {
            return self.insert_into_table(user);
        }
        let word = &mut self.bits[(user >> 6) as usize % 8];
        let bit = 1_u64.wrapping_shl(user as u32);
        let maybe = *word & bit != 0;
        *word |= bit;
        !maybe || !others.iter().any(|other| other.user == user)
    }

    /// The users are random bits already: no hash needed.
    #[inline(always)]
    fn insert_into_table(&mut self, user: u64) -> bool {
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
        self.distinct && self.len.wrapping_add(1) >= rules.scan_from
    }

    /// Puts an entry where its time belongs, behind others of the same time; there must be room.
    pub(crate) fn insert(&mut self, entries: &mut [Entry], entry: Entry) {
        let mut at = self.len;
        if entries[..at].last().is_some_and(|last| last.time > entry.time) {
            at = entries[..at].partition_point(|other| other.time <= entry.time);
            entries.copy_within(at..self.len, at + 1);
        }
        entries[at] = entry;
        self.len += 1;
        self.distinct = false;
    }

    /// Appends to a distinct log and leaves it distinct; there must be room. Answers as `judge`.
    pub(crate) fn scan(&mut self, entries: &mut [Entry], entry: Entry, rules: &Rules) -> bool {
        match place_of(entry.user, &entries[..self.len]) {
            Some(at) => {
                entries.copy_within(at + 1..self.len, at);
                entries[self.len - 1] = entry;
            }
            None => {
                entries[self.len] = entry;
                self.len += 1;
            }
        }
        self.certificate = NO_CERTIFICATE;
        if self.len < rules.z {
            return false;
        }
        let oldest = entries[self.len - rules.z].time;
        if oldest < rules.floor(entry.time) {
            return false;
        }
        self.certificate = oldest.saturating_add(rules.window);
        true
    }

    /// How many entries may be appended before the next look, a credit for the crowd at this clock.
    /// With a certificate as many as there is room for. Without one, until there may be z users: up
    /// to then all are veiled.
    pub(crate) fn earn(&mut self, entries: &[Entry], clock: i64, rules: &Rules) -> usize {
        let room = entries.len() - self.len;
        let credit = if self.certificate != NO_CERTIFICATE {
            self.distinct &= self.is_short(clock, rules);
            room
        } else if self.len < rules.z {
            room.min(rules.z - 1 - self.len)
        } else {
            let floor = rules.floor(clock);
            let expired = entries[..self.len].partition_point(|entry| entry.time < floor);
            room.min((rules.z - 1).saturating_sub(self.len - expired))
        };
        if self.wants_scan(rules) {
            return 0;
        }
        // They may be of any user.
        self.distinct &= credit == 0;
        credit
    }

    /// Released for some time to come, whoever is seen: there is no need to tell users apart.
    #[inline(always)]
    pub(crate) fn is_settled(&self, clock: i64, rules: &Rules) -> bool {
        clock <= self.certificate && !self.is_short(clock, rules)
    }

    fn is_short(&self, clock: i64, rules: &Rules) -> bool {
        self.certificate.saturating_sub(clock) < rules.short_life
    }

    /// Are there z users in the window that ends at the clock, the time of the newest entry?
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
        self.certificate = NO_CERTIFICATE;
        if self.len < rules.z || entries[self.len - rules.z].time < rules.floor(clock) {
            return false;
        }
        self.look(entries, clock, rules, scratch)
    }

    fn look(
        &mut self,
        entries: &mut [Entry],
        clock: i64,
        rules: &Rules,
        scratch: &mut Distinct,
    ) -> bool {
        let floor = rules.floor(clock);
        let log = &entries[..self.len];
        scratch.clear(log.len());
        let mut found = 0;
        for (at, entry) in log.iter().enumerate().rev() {
            if entry.time < floor {
                break;
            }
            if entry.user != NOBODY && scratch.insert(entry.user, &log[at + 1..]) {
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

    /// The same of a clock that need not be the newest entry's, for a look that changes nothing.
    pub(crate) fn has_enough(&self, entries: &[Entry], clock: i64, rules: &Rules) -> bool {
        if clock <= self.certificate {
            return true;
        }
        let (floor, log) = (rules.floor(clock), &entries[..self.len]);
        let mut distinct = Distinct::default();
        distinct.clear(log.len());
        let counts = |(at, entry): &(usize, &Entry)| {
            entry.user != NOBODY && distinct.insert(entry.user, &log[at + 1..])
        };
        let inside = log.iter().enumerate().rev().take_while(|(_, entry)| entry.time >= floor);
        inside.filter(counts).take(rules.z).count() == rules.z
    }

    /// How many users were seen from `floor` on, z_max at the most; and since when, where there may
    /// be more of them. Changes nothing.
    pub(crate) fn users(
        &self,
        entries: &[Entry],
        floor: i64,
        rules: &Rules,
        scratch: &mut Distinct,
    ) -> (usize, Option<i64>) {
        let log = &entries[..self.len];
        scratch.clear(log.len());
        let mut users = 0;
        for (at, entry) in log.iter().enumerate().rev() {
            if entry.time < floor {
                break;
            }
            if entry.user != NOBODY && scratch.insert(entry.user, &log[at + 1..]) {
                users += 1;
                if users == rules.z_max {
                    return (users, Some(entry.time));
                }
            }
        }
        (users, None)
    }

    /// Drops the entries that no clock from now on can count.
    pub(crate) fn drop_expired(&mut self, entries: &mut [Entry], floor: i64) {
        let log = &mut entries[..self.len];
        let expired = log.partition_point(|entry| entry.time < floor);
        if expired > 0 {
            log.copy_within(expired.., 0);
            self.len -= expired;
        }
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
        let log = &mut entries[..self.len];
        scratch.clear(log.len());
        self.distinct = true;
        let mut kept = 0;
        let mut write = log.len();
        for read in (0..log.len()).rev() {
            let entry = log[read];
            if entry.time < floor || kept == rules.z_max {
                break;
            }
            if entry.user == NOBODY {
                // Needed while it is the clock; it must not be taken for a user by `scan`.
                if read + 1 == log.len() {
                    write -= 1;
                    self.distinct = false;
                }
                continue;
            }
            if scratch.insert(entry.user, &log[write..]) {
                write -= 1;
                kept += 1;
                log[write] = entry;
                if kept == rules.z {
                    self.certificate = entry.time.saturating_add(rules.window);
                }
            }
        }
        let len = log.len();
        log.copy_within(write.., 0);
        self.len = len - write;
    }

    /// Cheaper than `compact`, where it can be done: the newest half of the log holds the z_max users seen last, and hardly
    /// anyone twice. Then what is older is dropped, and the rest stays as it is.
    pub(crate) fn keep_tail(&mut self, entries: &mut [Entry], clock: i64, rules: &Rules) -> bool {
        let floor = rules.floor(clock);
        let log = &mut entries[..self.len];
        if log.len() > FEW {
            return false;
        }
        let mut bits = [0_u64; 8];
        let mut kept = 0;
        let middle = log.len() / 2;
        for (at, entry) in log.iter().enumerate().skip(middle).rev() {
            let word = &mut bits[(entry.user >> 6) as usize % 8];
            let bit = 1_u64.wrapping_shl(entry.user as u32);
            // Also where two users share a bit: then one more is kept than need be.
            if *word & bit == 0 && entry.user != NOBODY && entry.time >= floor {
                *word |= bit;
                kept += 1;
                if kept == rules.z {
                    self.certificate = entry.time.saturating_add(rules.window);
                }
                if kept == rules.z_max {
                    self.distinct = log.len() - at == kept;
                    log.copy_within(at.., 0);
                    self.len = log.len() - at;
                    return true;
                }
            }
        }
        false
    }

    /// Drops the oldest entries, where memory for more is not to be had. That can only veil.
    pub(crate) fn keep_newest(&mut self, entries: &mut [Entry], most: usize) {
        if self.len > most {
            entries.copy_within(self.len - most..self.len, 0);
            self.len = most;
        }
    }

    /// Takes one user out of a compact log; where their time is the clock, it stays as nobody's.
    pub(crate) fn forget(&mut self, entries: &mut [Entry], user: u64) {
        let log = &mut entries[..self.len];
        self.certificate = NO_CERTIFICATE;
        if let Some(last) = log.last_mut()
            && last.user == user
        {
            last.user = NOBODY;
            self.distinct = false;
        } else if let Some(at) = log.iter().position(|entry| entry.user == user) {
            log.copy_within(at + 1.., at);
            self.len -= 1;
        }
    }
}
