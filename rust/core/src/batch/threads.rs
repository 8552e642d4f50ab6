//! A batch on several threads: each hashes some of the rows, and decides all rows of its own shard.
//!
//! ```text
//! thread 0   hash its rows | wait | decide shard 0 in all rows | wait | collect, hash its next rows ...
//! thread 1   hash its rows | wait | decide shard 1 in all rows | wait | collect, hash its next rows ...
//! ```
//!
//! Each thread keeps the gate's clock for itself, over all rows: that costs less than waiting for one
//! that does it for all.

use super::part::{Part, Source};
use crate::admission::{Admission, Admitted};
use crate::gate::Gate;
use crate::shard::Shard;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

/// Rows that one thread hashes in a round.
const SHARE: usize = 8_192;

/// Rows of one part that one shard released, with their levels.
type Released = Mutex<Vec<(u32, i8)>>;

/// What the threads share.
struct Shared<'a> {
    gate: &'a GateParts<'a>,
    parts: Vec<RwLock<Part>>,
    /// By shard, then by part.
    released: Vec<Vec<Released>>,
    turnstile: Turnstile,
}

/// The parts of a gate that are read only, or copied.
struct GateParts<'a> {
    source: &'a Source<'a>,
    hasher: &'a crate::key::Hasher,
    admission: &'a Admission,
    epochs: crate::expiry::Epochs,
    round: super::decide::Round,
}

impl Gate {
    pub(super) fn run_threads(&mut self, source: &Source, decisions: &mut [i8]) {
        let round = self.round(source);
        let admission = &self.admission.frozen();
        let Self { hasher, epochs, shards, .. } = self;
        let gate = GateParts { source, hasher, admission, epochs: *epochs, round };
        let threads = shards.len();
        let shared = Shared {
            gate: &gate,
            parts: (0..threads).map(|_| RwLock::default()).collect(),
            released: (0..threads)
                .map(|_| (0..threads).map(|_| Released::default()).collect())
                .collect(),
            turnstile: Turnstile::new(threads),
        };
        // Thread t has every t-th share of the rows.
        let mut shares: Vec<Vec<&mut [i8]>> = (0..threads).map(|_| Vec::new()).collect();
        for (number, share) in decisions.chunks_mut(SHARE).enumerate() {
            shares[number % threads].push(share);
        }
        let mut workers = shards.iter_mut().zip(shares).enumerate();
        let admission = std::thread::scope(|scope| {
            let (_, (first, first_shares)) = workers.next()?;
            for (number, (shard, shares)) in workers {
                let shared = &shared;
                scope.spawn(move || shared.work(number, shard, shares));
            }
            Some(shared.work(0, first, first_shares))
        });
        if let Some(admission) = admission {
            self.admission = admission.thawed();
        }
    }
}

impl Shared<'_> {
    fn work(&self, number: usize, shard: &mut Shard, mut shares: Vec<&mut [i8]>) -> Admission {
        let _guard = self.turnstile.guard();
        let GateParts { source, hasher, round, .. } = *self.gate;
        let (mut admission, mut epochs) = (self.gate.admission.clone(), self.gate.epochs);
        let threads = self.parts.len();
        let rounds = source.times.len().div_ceil(SHARE * threads);
        let mut admitted: Vec<Vec<Admitted>> = vec![Vec::new(); threads];
        for turn in 0..rounds {
            {
                let mut part = self.parts[number].write().unwrap_or_else(PoisonError::into_inner);
                let rows = source.times.len();
                part.start = rows.min((turn * threads + number) * SHARE);
                part.rows = SHARE.min(rows - part.start);
                part.prepare(hasher, source, threads);
            }
            self.turnstile.wait();
            let before = epochs.at(admission.clock);
            let parts: Vec<_> = self
                .parts
                .iter()
                .map(|part| part.read().unwrap_or_else(PoisonError::into_inner))
                .collect();
            for (part, admitted) in parts.iter().zip(&mut admitted) {
                part.admit(source.times, &mut admission, admitted);
            }
            let round = super::decide::Round { epoch: epochs.at(admission.clock) as u32, ..round };
            shard.reclaim(before, SHARE);
            for ((part, admitted), released) in
                parts.iter().zip(&admitted).zip(&self.released[number])
            {
                let mut released = unlock(released);
                released.clear();
                let seen = &part.seen[number];
                round.decide(seen, admitted, shard, |row, level| released.push((row, level)));
            }
            drop(parts);
            self.turnstile.wait();
            if let Some(share) = shares.get_mut(turn) {
                for shard in &self.released {
                    for (row, level) in unlock(&shard[number]).iter() {
                        share[*row as usize] = *level;
                    }
                }
            }
        }
        admission
    }
}

/// A lock is only held through a panic by a thread whose panic the whole call ends with.
fn unlock(released: &Released) -> MutexGuard<'_, Vec<(u32, i8)>> {
    released.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets threads through when all have come. They come within a fraction of a millisecond of each
/// other, so they look again and again rather than sleep; and where one has panicked, the others
/// panic too instead of waiting for ever.
struct Turnstile {
    threads: usize,
    come: AtomicUsize,
    turn: AtomicUsize,
    broken: AtomicBool,
}

impl Turnstile {
    fn new(threads: usize) -> Self {
        Self {
            threads,
            come: AtomicUsize::new(0),
            turn: AtomicUsize::new(0),
            broken: AtomicBool::new(false),
        }
    }

    fn wait(&self) {
        let turn = self.turn.load(Ordering::Acquire);
        if self.come.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.come.store(0, Ordering::Release);
            self.turn.store(turn.wrapping_add(1), Ordering::Release);
            return;
        }
        let mut looks = 0_u32;
        while self.turn.load(Ordering::Acquire) == turn {
            assert!(!self.broken.load(Ordering::Acquire), "another thread of the batch panicked");
            looks = looks.saturating_add(1);
            if looks < 1_000 {
                std::hint::spin_loop();
            } else {
                std::thread::yield_now();
            }
        }
    }

    fn guard(&self) -> BreakOnPanic<'_> {
        BreakOnPanic(self)
    }
}

struct BreakOnPanic<'a>(&'a Turnstile);

impl Drop for BreakOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.broken.store(true, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turnstile_lets_all_through_together() {
        let turnstile = Turnstile::new(3);
        let steps = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for round in 1..=1_000 {
                        steps.fetch_add(1, Ordering::AcqRel);
                        turnstile.wait();
                        assert!(steps.load(Ordering::Acquire) >= 3 * round);
                        turnstile.wait();
                    }
                });
            }
        });
        assert_eq!(steps.into_inner(), 3_000);
    }

    #[test]
    fn a_panic_does_not_leave_the_others_waiting() {
        let turnstile = Turnstile::new(2);
        let outcome = std::thread::scope(|scope| {
            let waiting = scope.spawn(|| turnstile.wait());
            let broken = scope.spawn(|| {
                let _guard = turnstile.guard();
                panic!("on purpose");
            });
            (waiting.join().is_err(), broken.join().is_err())
        });
        assert_eq!(outcome, (true, true));
    }
}
