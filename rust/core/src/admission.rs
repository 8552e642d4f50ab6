//! Which times are taken: not too late, not from the future.

use crate::settings::Settings;
use std::time::{SystemTime, UNIX_EPOCH};

/// What becomes of an observation by its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Admitted {
    /// Turned away, and counted.
    #[default]
    No,
    /// Not the newest, but not too late.
    Late,
    /// None before was later.
    InOrder,
}

/// The gate's clock, and what was turned away by it.
#[derive(Clone, Debug)]
pub(crate) struct Admission {
    /// The largest time taken so far; the smallest number before the first.
    pub(crate) clock: i64,
    lateness: i64,
    max_future: Option<i64>,
    /// No time up to here is from the future. The wall clock is only read for times beyond it.
    latest: i64,
    /// The wall clock is not read again.
    frozen: bool,
    pub(crate) late: u64,
    pub(crate) future: u64,
    pub(crate) invalid: u64,
}

impl Admission {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            clock: i64::MIN,
            lateness: settings.lateness,
            max_future: settings.max_future,
            latest: settings.max_future.map_or(i64::MAX, |_| i64::MIN),
            frozen: false,
            late: 0,
            future: 0,
            invalid: 0,
        }
    }

    /// Goes on under other settings; the clock stays.
    pub(crate) fn resettle(&mut self, settings: &Settings) {
        let fresh = Self::new(settings);
        self.lateness = fresh.lateness;
        self.max_future = fresh.max_future;
        self.latest = fresh.latest;
    }

    /// A copy that goes by the wall clock of this moment: several of them decide alike.
    pub(crate) fn frozen(&self) -> Self {
        let mut copy = self.clone();
        copy.read_wall_clock();
        Self { frozen: true, ..copy }
    }

    pub(crate) fn thawed(self) -> Self {
        Self { frozen: false, ..self }
    }

    /// Decides about one time, moves the clock, counts what it turns away.
    #[inline(always)]
    pub(crate) fn admit(&mut self, time: i64, valid: bool) -> Admitted {
        if !valid || time == i64::MIN {
            self.invalid += 1;
            return Admitted::No;
        }
        if time > self.latest && self.is_future(time) {
            self.future += 1;
            return Admitted::No;
        }
        if time >= self.clock {
            self.clock = time;
            return Admitted::InOrder;
        }
        if time < self.clock.saturating_sub(self.lateness) {
            self.late += 1;
            return Admitted::No;
        }
        Admitted::Late
    }

    /// Takes some times at once, if each is to be taken and none is earlier than one before.
    #[inline(always)]
    pub(crate) fn admit_in_order(&mut self, times: impl Iterator<Item = i64>) -> bool {
        let mut clock = self.clock;
        let mut sorted = true;
        for time in times {
            sorted &= time >= clock;
            clock = time;
        }
        // The smallest number, which is no time, is never sorted behind a clock; before the first
        // time of all it would be.
        if !sorted || self.clock == i64::MIN || clock > self.latest {
            return false;
        }
        self.clock = clock;
        true
    }

    /// Takes a time and says so, if it is clear without asking anyone that it is neither late nor
    /// from the future.
    #[inline(always)]
    pub(crate) fn admit_plainly(&mut self, time: i64) -> bool {
        let is_plain = time <= self.latest;
        if is_plain && time > self.clock {
            self.clock = time;
        }
        is_plain
    }

    #[cold]
    fn is_future(&mut self, time: i64) -> bool {
        if !self.frozen {
            self.read_wall_clock();
        }
        time > self.latest
    }

    fn read_wall_clock(&mut self) {
        let Some(max_future) = self.max_future else { return };
        // A wall clock before 1970 or past 2262 is broken: then nothing is taken for now.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        let now = i64::try_from(now).unwrap_or(0);
        self.latest = now.saturating_add(max_future);
    }
}
