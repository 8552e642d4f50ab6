//! When an attribute can be forgotten, and how fast the hand goes round to find it.
//!
//! No observation older than the gate's clock - lateness is taken, so an attribute last touched when
//! the clock stood at g can matter no more once the clock is past g + window + lateness:
//!
//! ```text
//!  epochs    |   e   | e+1 | e+2 | ... | e+16 | e+17 | e+18 ...   16 epochs = window + lateness
//!  touched somewhere here^  '------------------------'^ idle from here on, whenever it was within e
//! ```
//!
//! A slot keeps the epoch of its last touch in 24 bits, and distances are taken modulo 2^24: an
//! attribute that the hand did not meet for 2^23 epochs looks young again and is only kept too long.

/// Epochs in window + lateness.
const EPOCHS: i64 = 16;

/// Slots that one observation pays for at most. The hand needs about 4 on a stream of nothing but
/// new attributes; the rest is for catching up.
pub(crate) const MOST_STEPS: usize = 16;

/// Counts the gate's clock in epochs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Epochs {
    length: i128,
    /// The last answer, and the times for which it holds: most clocks are in the same epoch.
    last: u64,
    first_clock: i64,
    last_clock: i64,
}

impl Epochs {
    pub(crate) fn new(window: i64, lateness: i64) -> Self {
        let span = i128::from(window) + i128::from(lateness);
        let length = span / i128::from(EPOCHS) + 1;
        Self { length, last: 0, first_clock: i64::MAX, last_clock: i64::MIN }
    }

    /// From 0 at the smallest time. A length of at least 1 ns keeps it within 64 bits.
    #[inline(always)]
    pub(crate) fn at(&mut self, clock: i64) -> u64 {
        if clock < self.first_clock || clock > self.last_clock {
            self.renew(clock);
        }
        self.last
    }

    #[cold]
    fn renew(&mut self, clock: i64) {
        let start = i128::from(i64::MIN);
        let epoch = (i128::from(clock) - start) / self.length;
        let first = epoch * self.length + start;
        self.last = epoch as u64;
        self.first_clock = first as i64;
        self.last_clock = (first + self.length - 1).min(i128::from(i64::MAX)) as i64;
    }
}

/// True if a slot touched in `touched` can never count again in `now`. The slot may have been
/// touched later than `now`: the hand goes by a clock that is behind, never ahead.
#[inline(always)]
pub(crate) fn is_idle(touched: u32, now: u64) -> bool {
    let distance = (now as u32).wrapping_sub(touched) << 8;
    distance.cast_signed() >> 8 > EPOCHS as i32 + 1
}

/// Paces the hand: once round the table for each window + lateness that passes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sweep {
    pub(crate) epoch: u64,
    pub(crate) debt: usize,
}

impl Sweep {
    #[inline(always)]
    pub(crate) fn is_due(&self, epoch: u64) -> bool {
        self.debt > 0 || epoch != self.epoch
    }

    /// How many slots the hand should pass now, after so many observations.
    pub(crate) fn steps(&mut self, epoch: u64, positions: usize, observations: usize) -> usize {
        let passed = (epoch - self.epoch).min(EPOCHS as u64) as usize;
        self.epoch = epoch;
        // A lap a little shorter than due, and never more than one lap owed.
        let due = positions / EPOCHS as usize * passed + if passed > 0 { 512 } else { 0 };
        self.debt = (self.debt + due).min(positions + 512);
        let steps = self.debt.min(observations * MOST_STEPS);
        self.debt -= steps;
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_idle_before_its_time() {
        let (window, lateness) = (100, 60);
        let mut epochs = Epochs::new(window, lateness);
        for touched in -500_i64..500 {
            let slot = epochs.at(touched) as u32;
            for clock in touched..touched + 1000 {
                assert!(!is_idle(epochs.at(clock) as u32, epochs.at(touched)));
                if is_idle(slot, epochs.at(clock)) {
                    assert!(clock > touched + window + lateness);
                } else {
                    assert!(clock < touched + 2 * (window + lateness));
                }
            }
        }
    }

    #[test]
    fn extremes_stay_in_range() {
        for (window, lateness) in [(0, 0), (i64::MAX, i64::MAX), (0, i64::MAX)] {
            let mut epochs = Epochs::new(window, lateness);
            assert!(epochs.at(i64::MIN) <= epochs.at(0));
            assert!(epochs.at(0) <= epochs.at(i64::MAX));
        }
    }
}
