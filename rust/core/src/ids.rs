//! The ids of events seen lately: an event that is sent twice is decided once.
//!
//! A sender that does not know whether something arrived sends it again. With an id in every event the
//! second one is found out here: it is neither decided nor written.
//!
//! ```text
//!   clock - window                             clock: the largest time so far, none from the future
//! ───────|────────────────────────────────────────|──▶ the clock at which an id came
//!   gone ╰── remembered ──────────────────────────╯
//! ```
//!
//! An id goes by the clock at which it came, not by the time of its event: a late event is remembered
//! as long as another, and what came first goes first, so that a queue is all that expiry needs. A
//! time from the future moves no clock (a single wrong one would wipe the memory), nor does a missing
//! one. There is a limit: past it the oldest go before their time, and are counted.
//!
//! What is kept is a keyed hash of 64 bits and the clock, no id and no user: there is nothing of a
//! person to erase, and nothing that could be traced without the key. Two ids of one hash would be
//! taken for one, and an event not decided: with n ids held, one event in 2^64 / n (with ten million,
//! one in 10^12). That only veils.

use crate::admission::Admission;
use crate::codec::{Body, Out, Outcome};
use crate::column::{Role, Value};
use crate::error::{Error, SnapshotError};
use crate::key::Hasher;
use crate::secret::Secret;
use crate::settings::Settings;
use std::collections::VecDeque;

const SMALLEST: usize = 1 << 10;
/// The most ids that can be held.
const LARGEST: usize = 1 << 36;

/// Remembers ids for a window of the stream's time.
pub struct EventIds {
    secret: Secret,
    hasher: Hasher,
    window: i64,
    most: usize,
    max_future: Option<i64>,
    admission: Admission,
    /// In the order in which they came: the hash, and the clock.
    queue: VecDeque<(u64, i64)>,
    known: Known,
    repeated: u64,
    forgotten: u64,
}

impl EventIds {
    /// Ids are remembered for a window in nanoseconds, at most so many. A time past the wall clock by
    /// more than `max_future` is from the future.
    pub fn new(
        secret: Secret,
        window: i64,
        most: usize,
        max_future: Option<i64>,
    ) -> Result<Self, Error> {
        let refuse = |parameter, rule: &str, got: String| {
            Err(Error::Setting { parameter, rule: rule.to_owned(), got })
        };
        if window < 0 {
            return refuse("window", "expected nanoseconds from 0", window.to_string());
        }
        if !(1..=LARGEST).contains(&most) {
            return refuse("most", "expected from 1 to 2^36 ids", most.to_string());
        }
        if max_future.is_some_and(|span| span < 0) {
            return refuse("max_future", "expected nanoseconds from 0", "less".to_owned());
        }
        let settings = Settings { max_future, lateness: i64::MAX, ..Settings::new(1, 0) };
        Ok(Self {
            // Not the hashes of a gate of the same secret.
            hasher: Hasher::new(&Secret::new(secret.derive("ids"))),
            secret,
            window,
            most,
            max_future,
            admission: Admission::new(&settings),
            queue: VecDeque::new(),
            known: Known::new(SMALLEST),
            repeated: 0,
            forgotten: 0,
        })
    }

    /// Takes the next event of the stream: true unless its id came before. One without an id is always
    /// fresh. 7, "7" and 7.0 are one id.
    pub fn is_fresh(&mut self, time: i64, id: Option<Value>) -> bool {
        let before = self.admission.clock;
        self.admission.admit(time, true);
        if self.admission.clock != before {
            self.expire();
        }
        let Some(hash) = id.and_then(|id| self.hash(id)) else { return true };
        if self.known.has(hash) {
            self.repeated += 1;
            return false;
        }
        if self.queue.len() == self.most {
            self.forget_oldest();
            self.forgotten += 1;
        }
        self.queue.push_back((hash, self.admission.clock));
        if self.known.is_full(self.queue.len()) {
            self.rebuild();
        } else {
            self.known.insert(hash);
        }
        true
    }

    fn hash(&self, id: Value) -> Option<u64> {
        let id = id.as_user().unwrap_or(id);
        let mut hash = [self.hasher.block(id, Role::Attribute)?];
        self.hasher.attributes(&mut hash, None);
        // Zero stands for a free place.
        Some(((hash[0] >> 64) as u64).max(1))
    }

    fn expire(&mut self) {
        let floor = self.admission.clock.saturating_sub(self.window);
        if self.queue.back().is_some_and(|(_, clock)| *clock < floor) {
            // All of them: none need be looked for.
            self.queue.clear();
            self.known = Known::new(SMALLEST);
        }
        while self.queue.front().is_some_and(|(_, clock)| *clock < floor) {
            self.forget_oldest();
        }
        if self.known.is_sparse(self.queue.len()) {
            self.rebuild();
        }
        if self.queue.capacity() > SMALLEST && self.queue.len() < self.queue.capacity() / 8 {
            self.queue.shrink_to(self.queue.len() * 2);
        }
    }

    fn forget_oldest(&mut self) {
        if let Some((hash, _)) = self.queue.pop_front() {
            self.known.remove(hash);
        }
    }

    fn rebuild(&mut self) {
        self.known = Known::new(self.queue.len() * 3);
        self.queue.iter().for_each(|(hash, _)| self.known.insert(*hash));
    }

    pub fn len(&self) -> usize {
        self.queue.len()
    }

    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Events whose id came before.
    pub fn repeated(&self) -> u64 {
        self.repeated
    }

    /// Ids that went before their time.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Whether a time may be from the future.
    pub fn refuses_future(&self) -> bool {
        self.max_future.is_some()
    }

    pub fn bytes(&self) -> usize {
        size_of::<(u64, i64)>() * self.queue.capacity() + size_of::<u64>() * self.known.slots.len()
    }
}

/// As it is kept.
impl EventIds {
    pub(crate) fn write(&self, out: &mut dyn Out) -> Outcome<()> {
        out.bytes(self.secret.bytes())?;
        out.number(self.window as u64)?;
        out.number(self.most as u64)?;
        out.optional(self.max_future.map(|span| span as u64))?;
        out.number(self.admission.clock as u64)?;
        out.number(self.repeated)?;
        out.number(self.forgotten)?;
        out.number(self.queue.len() as u64)?;
        for (hash, clock) in &self.queue {
            out.number(*hash)?;
            out.number(*clock as u64)?;
        }
        Ok(())
    }

    pub(crate) fn read(body: &mut impl Body) -> Outcome<Self> {
        const DAMAGED: SnapshotError = SnapshotError::Damaged;
        let secret = Secret::new(body.array()?);
        let (window, most) = (body.span()?, body.size()?);
        let max_future = body.optional()?.map(i64::try_from).transpose().map_err(|_| DAMAGED)?;
        let mut ids = Self::new(secret, window, most, max_future).map_err(|_| DAMAGED)?;
        ids.admission.clock = body.number()? as i64;
        ids.repeated = body.number()?;
        ids.forgotten = body.number()?;
        let count = body.size()?;
        let floor = ids.admission.clock.saturating_sub(window);
        if count > most || ids.repeated.max(ids.forgotten) > u64::MAX / 2 {
            return Err(DAMAGED);
        }
        let mut last = floor;
        for _ in 0..count {
            let (hash, clock) = (body.number()?, body.number()? as i64);
            if hash == 0 || clock < last || clock > ids.admission.clock {
                return Err(DAMAGED);
            }
            last = clock;
            ids.queue.push_back((hash, clock));
        }
        ids.rebuild();
        // Twice the same would leave one behind that nobody finds.
        if ids.known.count() != count {
            return Err(DAMAGED);
        }
        Ok(ids)
    }
}

/// A set of hashes: open addressing, linear probing, the position is the high bits.
struct Known {
    slots: Vec<u64>,
    shift: u32,
}

impl Known {
    /// With at least so many places.
    fn new(places: usize) -> Self {
        let bits = places.max(SMALLEST).next_power_of_two().trailing_zeros();
        Self { slots: vec![0; 1 << bits], shift: 64 - bits }
    }

    /// More than six tenths would be taken by so many.
    fn is_full(&self, count: usize) -> bool {
        count * 5 > self.slots.len() * 3
    }

    fn is_sparse(&self, count: usize) -> bool {
        self.slots.len() > SMALLEST && count * 16 < self.slots.len()
    }

    fn home(&self, hash: u64) -> usize {
        (hash >> self.shift) as usize
    }

    /// Where a hash is, or would go. There is always a free place.
    fn find(&self, hash: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = self.home(hash);
        while self.slots[at] != 0 && self.slots[at] != hash {
            at = (at + 1) & mask;
        }
        at
    }

    fn has(&self, hash: u64) -> bool {
        self.slots[self.find(hash)] == hash
    }

    fn insert(&mut self, hash: u64) {
        let at = self.find(hash);
        self.slots[at] = hash;
    }

    /// Takes one out and closes the gap, so that none behind it is cut off.
    fn remove(&mut self, hash: u64) {
        let mask = self.slots.len() - 1;
        let mut gap = self.find(hash);
        if self.slots[gap] == 0 {
            return;
        }
        let mut at = gap;
        loop {
            at = (at + 1) & mask;
            let other = self.slots[at];
            if other == 0 {
                break;
            }
            // It may go into the gap unless it would come to lie before its home.
            let from_home = at.wrapping_sub(self.home(other)) & mask;
            if from_home >= at.wrapping_sub(gap) & mask {
                self.slots[gap] = other;
                gap = at;
            }
        }
        self.slots[gap] = 0;
    }

    fn count(&self) -> usize {
        self.slots.iter().filter(|hash| **hash != 0).count()
    }
}

#[cfg(test)]
mod tests;
