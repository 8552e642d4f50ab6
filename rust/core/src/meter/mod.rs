//! The meter: how many visible users look the same in what has been released, at any moment.
//!
//! ```text
//! lens ─→ period: pairs ─→ users ┄→ classes ─→ sizes        ┄→ when someone looks
//! words   by time: known?  sets     who alike   k of all
//! ```
//!
//! Look the same to an observer who sees the *set of values* of each pseudonym, and no times. Exact;
//! a release costs a lookup if the user has the value already, and one more if not. Periods are
//! those of pseudonyms: each is measured by itself, stays open as long as late events may come, and
//! when it is over only its figures remain.

mod entry;
mod lens;
mod period;
mod saved;
mod sizes;
mod table;
#[cfg(test)]
mod tests;

pub use lens::{Field, Lens, Sight};
pub use period::Shown;

use crate::column::{Column, Prepares, Role, Value};
use crate::error::Error;
use crate::gate::Gate;
use crate::memory::Budget;
use crate::secret::Secret;
use lens::{Desk, Seen};
use period::{Fresh, Period};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use table::Full;

/// Periods that the lateness may span, and finished ones that are remembered.
const MOST_OPEN: i64 = 100_000;
const MOST_FINISHED: usize = 1000;
/// Rows that are hashed together: they stay in the cache.
const ROUND: usize = 1024;

/// What a meter is told at its start; times are nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeterSettings {
    /// The length of a period; without one there is a single period without an end.
    pub rotate: Option<i64>,
    /// How late a release may come.
    pub lateness: i64,
    pub memory_limit: Option<usize>,
}

/// What left of one field.
#[derive(Clone, Copy)]
pub struct Released<'a> {
    pub field: Field,
    pub values: &'a dyn Column,
    /// A byte for each row, 0 if its value did not leave; all did without it.
    pub rows: Option<&'a [u8]>,
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
    lens: Arc<Lens>,
    budget: Budget,
    /// The largest time there was; the smallest number before the first.
    clock: i64,
    open: BTreeMap<i64, Open>,
    finished: VecDeque<Reading>,
    scratch: Scratch,
}

/// A period to which more may come; without anything measured if there was no more memory.
struct Open(Option<Period>);

#[derive(Default)]
struct Scratch {
    rows: Vec<u32>,
    desk: Desk,
    sights: Vec<Sight>,
    fresh: Fresh,
}

impl Meter {
    pub fn new(settings: MeterSettings, secret: Secret) -> Result<Self, Error> {
        Self::check(&settings)?;
        Ok(Self {
            lens: Arc::new(Lens::new(&secret)),
            budget: Budget::new(settings.memory_limit),
            settings,
            secret,
            clock: i64::MIN,
            open: BTreeMap::new(),
            finished: VecDeque::new(),
            scratch: Scratch::default(),
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
        &self.lens
    }

    /// Memory of what is measured.
    pub fn bytes(&self) -> usize {
        self.budget.used()
    }

    /// Takes in columns of what left, in order, of one field or several.
    pub fn add(
        &mut self,
        times: &[i64],
        users: &dyn Column,
        fields: &[Released],
    ) -> Result<(), Error> {
        let all = times.len();
        for Released { values, rows, .. } in fields {
            let told = rows.map_or(all, <[u8]>::len);
            if users.len() != all || values.len() != all || told != all {
                let (times, users, attributes) = (all.min(told), users.len(), values.len());
                return Err(Error::Lengths { times, users, attributes });
            }
        }
        let Scratch { mut rows, mut desk, mut sights, mut fresh } =
            std::mem::take(&mut self.scratch);
        for start in (0..all).step_by(ROUND) {
            let span = start..all.min(start + ROUND);
            sights.clear();
            for Released { field, values, rows: released } in fields {
                choose(span.len(), released.map(|rows| &rows[span.clone()]), &mut rows);
                let seen = Seen { times, users, values: *values, field: *field };
                self.lens.look(seen, (start, &rows), &mut desk, &mut sights);
            }
            if fields.len() > 1 && !self.is_plain(&times[span]) {
                // In the order of the records: what comes later may end the period of one before.
                sights.sort_by_key(|sight| sight.row);
            }
            self.take(&sights, &mut fresh);
        }
        self.scratch = Scratch { rows, desk, sights, fresh };
        Ok(())
    }

    /// Whether all times are in the present period, so that their order makes no difference.
    fn is_plain(&self, times: &[i64]) -> bool {
        let (from, to) = self.span(self.period());
        self.clock != i64::MIN && times.iter().all(|time| (from..=to).contains(time))
    }

    /// Takes in what was seen of records that left, in order.
    pub fn count(&mut self, sights: &[Sight]) {
        let mut fresh = std::mem::take(&mut self.scratch.fresh);
        self.take(sights, &mut fresh);
        self.scratch.fresh = fresh;
    }

    /// By runs of one period.
    fn take(&mut self, mut sights: &[Sight], fresh: &mut Fresh) {
        while let Some(first) = sights.first() {
            let period = self.period_of(first.time);
            let (from, to) = self.span(period);
            let (mut end, mut latest) = (0, first.time);
            for sight in sights.iter().take_while(|sight| (from..=to).contains(&sight.time)) {
                end += 1;
                latest = latest.max(sight.time);
            }
            let (run, rest) = sights.split_at(end);
            self.advance(latest);
            self.take_run(period, run, fresh);
            sights = rest;
        }
    }

    fn take_run(&mut self, period: i64, run: &[Sight], fresh: &mut Fresh) {
        if self.is_over(period) {
            return self.late(period, run.len() as u64);
        }
        let Self { open, budget, .. } = self;
        let open = open.entry(period).or_insert_with(|| Open(Period::new(budget).ok()));
        let Some(measured) = &mut open.0 else { return };
        let counted = measured.count(run, fresh, budget);
        open.check(counted, budget);
    }

    fn late(&mut self, period: i64, releases: u64) {
        let place = self.finished.partition_point(|other| other.period < period);
        match self.finished.get_mut(place).filter(|found| found.period == period) {
            Some(found) => found.late += releases,
            None => {
                let late = releases;
                let found = Reading { period, late, is_over: true, ..Reading::default() };
                self.finished.insert(place, found);
                self.forget();
            }
        }
    }

    /// Time has come to this: periods may be over, and another one may have begun.
    pub fn advance(&mut self, time: i64) {
        if time <= self.clock {
            return;
        }
        self.clock = time;
        self.end_periods();
    }

    /// Closes the account of the periods that are over.
    fn end_periods(&mut self) {
        let time = self.clock;
        while let Some(first) = self.open.first_entry()
            && is_over(&self.settings, time, *first.key())
        {
            let (period, mut open) = first.remove_entry();
            let found = Reading { is_over: true, ..open.reading(period, &mut self.budget) };
            if let Open(Some(measured)) = open {
                measured.free(&mut self.budget);
            }
            self.finished.push_back(found);
            self.forget();
        }
    }

    /// Time has come to where the gates are, whether they released anything or not.
    pub fn follow<'a>(&mut self, gates: impl IntoIterator<Item = &'a Gate>) {
        if let Some(clock) = gates.into_iter().map(|gate| gate.admission.clock).max() {
            self.advance(clock);
        }
    }

    /// Lets go of all that is measured at present; the periods to which more may come say that they were
    /// stopped. So whoever is to be erased is: one user cannot be, for there is nothing to look their
    /// pairs up by. And nobody takes for whole what was not seen from its beginning.
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
        self.open.get_mut(&period).map_or(none, |open| open.reading(period, &mut self.budget))
    }

    /// All periods of which there is something to be shown, in order.
    pub fn periods(&mut self) -> Vec<Reading> {
        let budget = &mut self.budget;
        let open = self.open.iter_mut().map(|(period, open)| open.reading(*period, budget));
        self.finished.iter().cloned().chain(open).collect()
    }

    /// Visible users of a period, and those of them whose k is at least this; `None` where nothing is
    /// known, because measuring was stopped.
    pub fn counts(&mut self, period: i64, k: usize) -> Option<(u64, u64)> {
        if let Some(open) = self.open.get_mut(&period) {
            return open.settled(&mut self.budget).map(|measured| measured.counts(k));
        }
        let Some(found) = self.finished.iter().rfind(|found| found.period == period) else {
            return Some((0, 0));
        };
        let sizes = found.shown.sizes.range(k as u64..);
        (!found.is_stopped).then(|| (found.shown.users, sizes.map(|(_, users)| users).sum()))
    }

    fn forget(&mut self) {
        if self.finished.len() > MOST_FINISHED {
            self.finished.pop_front();
        }
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
        self.lens.prepare(value, role)
    }
}

impl Open {
    fn reading(&mut self, period: i64, budget: &mut Budget) -> Reading {
        let shown = self.settled(budget).map(|measured| measured.shown());
        let is_stopped = shown.is_none();
        Reading { period, shown: shown.unwrap_or_default(), is_stopped, ..Reading::default() }
    }

    /// What is measured, with its classes up to date.
    fn settled(&mut self, budget: &mut Budget) -> Option<&Period> {
        if let Some(measured) = &mut self.0 {
            let settled = measured.settle(budget);
            self.check(settled, budget);
        }
        self.0.as_ref()
    }

    /// Without memory it is not measured any more.
    fn check(&mut self, outcome: Result<(), Full>, budget: &mut Budget) {
        if outcome.is_err()
            && let Some(measured) = self.0.take()
        {
            measured.free(budget);
        }
    }
}

fn period_of(settings: &MeterSettings, time: i64) -> i64 {
    settings.rotate.map_or(0, |length| time.div_euclid(length))
}

/// No event of it can come any more.
fn is_over(settings: &MeterSettings, clock: i64, period: i64) -> bool {
    clock != i64::MIN && period_of(settings, clock.saturating_sub(settings.lateness)) > period
}

/// The rows that left.
fn choose(all: usize, released: Option<&[u8]>, rows: &mut Vec<u32>) {
    rows.clear();
    let Some(released) = released else {
        return rows.extend(0..all as u32);
    };
    rows.resize(all, 0);
    let mut count = 0;
    for (row, left) in released.iter().enumerate() {
        rows[count] = row as u32;
        count += usize::from(*left != 0);
    }
    rows.truncate(count);
}
