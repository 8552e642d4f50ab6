//! The meter: how many visible users look the same in what has been released, at any moment.
//!
//! ```text
//! packer, lens ─→ clerk ─→ intake, sheet ─→ period: values ─→ parts ┄→ classes ─→ sizes   ┄→ when someone looks
//! words           thread   by time                  numbers   sets     who alike   k of all
//! ```
//!
//! Look the same to an observer who sees the *set of values* of each pseudonym, and no times. Exact.
//! Periods are those of pseudonyms: each is measured by itself, stays open as long as late events may
//! come, and when it is over only its figures remain.

mod block;
mod changed;
mod classes;
mod clerk;
mod desk;
mod entry;
mod growth;
mod intake;
mod lens;
mod lines;
mod live;
mod log;
mod open;
mod packer;
mod part;
mod parts;
mod period;
mod prints;
mod saved;
mod sheet;
mod sizes;
mod table;
#[cfg(test)]
mod tests;
mod tools;

pub use intake::Released;
pub use lens::{Field, Lens, Sight};
pub use live::LiveMeter;
pub use period::Shown;

use crate::column::{Prepares, Role, Value};
use crate::error::Error;
use crate::memory::Budget;
use crate::secret::Secret;
use open::Open;
use packer::Packer;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use tools::Tools;

/// Periods that the lateness may span.
const MOST_OPEN: i64 = 100_000;

/// What a meter is told at its start; times are nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeterSettings {
    /// The length of a period; without one there is a single period without an end.
    pub rotate: Option<i64>,
    /// How late a release may come.
    pub lateness: i64,
    pub memory_limit: Option<usize>,
}

/// A period as it is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// The number of the period.
    pub period: i64,
    pub shown: Shown,
    /// Releases that came when it was over.
    pub late: u64,
    pub is_over: bool,
    pub is_stopped: bool,
}

/// Measures how k-anonymous visible users are, while a stream runs.
///
/// ```
/// # use zveil_core::{Meter, MeterSettings, Secret, Value};
/// # fn main() -> Result<(), zveil_core::Error> {
/// let settings = MeterSettings { rotate: None, lateness: 0, memory_limit: None };
/// let mut meter = Meter::new(settings, Secret::random()?)?;
/// let page = meter.lens().field("page");
/// for (user, value) in [("ada", "a"), ("bob", "a"), ("bob", "b"), ("cyd", "a")] {
///     let (user, value) = (Value::Text(user.as_bytes()), Value::Text(value.as_bytes()));
///     meter.count(&meter.lens().sight(0, user, page, value).into_iter().collect::<Vec<_>>());
/// }
/// let shown = meter.present().shown;
/// assert_eq!((shown.users, shown.classes), (3, 2));
/// assert_eq!(shown.sizes.into_iter().collect::<Vec<_>>(), [(1, 1), (2, 2)]);
/// # Ok(())
/// # }
/// ```
pub struct Meter {
    settings: MeterSettings,
    secret: Secret,
    tools: Tools,
    budget: Budget,
    /// The largest time there was; the smallest number before the first.
    clock: i64,
    open: BTreeMap<i64, Open>,
    finished: VecDeque<Reading>,
    packer: Packer,
    /// Of the values at the places that sheets name.
    numbers: Vec<u32>,
}

impl Meter {
    pub fn new(settings: MeterSettings, secret: Secret) -> Result<Self, Error> {
        Self::check(&settings)?;
        Ok(Self {
            tools: Tools::new(&secret),
            budget: Budget::new(settings.memory_limit),
            settings,
            secret,
            clock: i64::MIN,
            open: BTreeMap::new(),
            finished: VecDeque::new(),
            packer: Packer::default(),
            numbers: Vec::new(),
        })
    }

    fn check(settings: &MeterSettings) -> Result<(), Error> {
        let MeterSettings { rotate, lateness, .. } = *settings;
        let wrong = |parameter, rule: &str, got: i64| {
            Err(Error::Setting { parameter, rule: rule.to_owned(), got: got.to_string() })
        };
        if lateness < 0 {
            return wrong("lateness", "expected nanoseconds from 0", lateness);
        }
        if let Some(length) = rotate
            && (length < 1 || lateness / length > MOST_OPEN)
        {
            let rule = "expected at least a 100,000th of the lateness, as nanoseconds from 1";
            return wrong("rotate", rule, length);
        }
        Ok(())
    }

    pub fn settings(&self) -> &MeterSettings {
        &self.settings
    }

    pub fn secret(&self) -> &Secret {
        &self.secret
    }

    /// Makes the words of what leaves, for [`Meter::count`].
    pub fn lens(&self) -> &Arc<Lens> {
        &self.tools.lens
    }

    /// Memory of what is measured.
    pub fn bytes(&self) -> usize {
        self.budget.used()
    }

    /// Lets go of all that is measured at present; the periods to which more may come say that they were
    /// stopped. So whoever is to be erased is: without one user, the k of others would be that of no
    /// output that there is. And nobody takes for whole what was not seen from its beginning.
    pub fn give_up(&mut self) {
        for Open(open) in self.open.values_mut() {
            if let Some(measured) = open.take() {
                measured.free(&mut self.budget);
            }
        }
        if self.clock != i64::MIN {
            let oldest = self.period_of(self.clock.saturating_sub(self.settings.lateness));
            for period in oldest..=self.period() {
                self.open.entry(period).or_insert(Open(None));
            }
        }
    }

    /// Goes on with a lateness of no more than before, and another limit, where they have changed while
    /// it was kept. What is above the limit stays until it is let go of.
    pub fn resettle(&mut self, lateness: i64, memory_limit: Option<usize>) -> Result<(), Error> {
        if lateness > self.settings.lateness {
            let rule = format!("expected at most {}, as it was", self.settings.lateness);
            return Err(Error::Setting { parameter: "lateness", rule, got: lateness.to_string() });
        }
        let settings = MeterSettings { lateness, memory_limit, ..self.settings };
        Self::check(&settings)?;
        self.settings = settings;
        self.budget.set_limit(memory_limit);
        self.end_periods();
        Ok(())
    }

    /// The number of the present period, which the clock is in.
    pub fn period(&self) -> i64 {
        if self.clock == i64::MIN { 0 } else { self.period_of(self.clock) }
    }

    /// The present period.
    pub fn present(&mut self) -> Reading {
        let period = self.period();
        let none = Reading { period, ..Reading::default() };
        self.open
            .get_mut(&period)
            .map_or(none, |open| open.reading(period, &self.tools, &mut self.budget))
    }

    /// All periods of which there is something to be shown, in order.
    pub fn periods(&mut self) -> Vec<Reading> {
        let Self { open, tools, budget, .. } = self;
        let open = open.iter_mut().map(|(period, open)| open.reading(*period, tools, budget));
        self.finished.iter().cloned().chain(open).collect()
    }

    /// Visible users of a period, and those of them whose k is at least this; `None` where nothing is
    /// known, because measuring was stopped.
    pub fn counts(&mut self, period: i64, k: usize) -> Option<(u64, u64)> {
        if let Some(open) = self.open.get_mut(&period) {
            return open.settled(&self.tools, &mut self.budget).map(|measured| measured.counts(k));
        }
        let Some(found) = self.finished.iter().rfind(|found| found.period == period) else {
            return Some((0, 0));
        };
        let sizes = found.shown.sizes.range(k as u64..);
        (!found.is_stopped).then(|| (found.shown.users, sizes.map(|(_, users)| users).sum()))
    }

    #[inline(always)]
    fn period_of(&self, time: i64) -> i64 {
        period_of(&self.settings, time)
    }

    /// The first and the last time of a period.
    fn span(&self, period: i64) -> (i64, i64) {
        match self.settings.rotate {
            None => (i64::MIN, i64::MAX),
            Some(length) => {
                let start = period.saturating_mul(length);
                (start, start.saturating_add(length - 1))
            }
        }
    }

    fn is_over(&self, period: i64) -> bool {
        is_over(&self.settings, self.clock, period)
    }
}

impl Prepares for Meter {
    fn prepare(&self, value: Value, role: Role) -> Option<Value<'static>> {
        self.tools.lens.prepare(value, role)
    }
}

fn period_of(settings: &MeterSettings, time: i64) -> i64 {
    settings.rotate.map_or(0, |length| time.div_euclid(length))
}

/// No event of it can come any more.
fn is_over(settings: &MeterSettings, clock: i64, period: i64) -> bool {
    clock != i64::MIN && period_of(settings, clock.saturating_sub(settings.lateness)) > period
}
