//! A meter as it is kept: keyed hashes and counts, no user and no value.
//!
//! ```text
//! as bytes      format | key id |  settings | clock | finished periods | open periods
//! in a state           | secret |  the same
//! open period   values and their numbers | parts: users, their words, releases that wait for them
//! ```
//!
//! Fingerprints and classes are not written: they are made again from the words. What is read is
//! checked, also where it was sealed. Bytes are neither encrypted nor authenticated: that is for whoever
//! keeps them. They tell without the key how many hashes have which others in common, and whose they are not.

use super::entry::{Mark, Numbered};
use super::lens::Lens;
use super::lines::{MOST_VALUES, Release, USER_BITS, Word};
use super::period::{Period, Shown};
use super::table::Full;
use super::{Meter, MeterSettings, Open, Reading};
use crate::codec::{Body, Out, Outcome};
use crate::error::{Error, SnapshotError};
use crate::memory::Budget;
use crate::secret::Secret;

const FORMAT: u64 = 2;

impl Meter {
    /// Everything but the secret, as bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        let mut out = Vec::new();
        out.number(FORMAT)?;
        out.bytes(&key_id(&self.secret))?;
        self.write_rest(&mut out)?;
        Ok(out)
    }

    /// The meter that [`Meter::to_bytes`] was called of, if it was under this secret. Nothing of it is
    /// used otherwise.
    pub fn of_bytes(secret: Secret, mut bytes: &[u8]) -> Result<Self, Error> {
        let found = bytes.number()?;
        if found != FORMAT {
            let (found, known) = (u16::try_from(found).unwrap_or(u16::MAX), FORMAT as u16);
            return Err(SnapshotError::Version { found, known }.into());
        }
        if bytes.array::<8>()? != key_id(&secret) {
            return Err(SnapshotError::Key.into());
        }
        let meter = Self::read_rest(secret, &mut bytes)?;
        bytes.end()?;
        Ok(meter)
    }

    /// Everything, for a state that is sealed.
    pub(crate) fn write(&self, out: &mut dyn Out) -> Outcome<()> {
        out.bytes(self.secret.bytes())?;
        self.write_rest(out)
    }

    pub(crate) fn read(body: &mut impl Body) -> Outcome<Self> {
        let secret = Secret::new(body.array()?);
        Self::read_rest(secret, body)
    }

    fn write_rest(&self, out: &mut dyn Out) -> Outcome<()> {
        let MeterSettings { rotate, lateness, memory_limit } = self.settings;
        out.maybe(rotate)?;
        out.number(lateness as u64)?;
        out.optional(memory_limit.map(|limit| limit as u64))?;
        out.number(self.clock as u64)?;
        out.number(self.finished.len() as u64)?;
        self.finished.iter().try_for_each(|found| write_finished(found, out))?;
        out.number(self.open.len() as u64)?;
        for (period, Open(open)) in &self.open {
            out.number(*period as u64)?;
            out.number(u64::from(open.is_some()))?;
            open.iter().try_for_each(|measured| write_period(measured, out))?;
        }
        Ok(())
    }

    fn read_rest(secret: Secret, body: &mut impl Body) -> Outcome<Self> {
        let (rotate, lateness) = (body.maybe()?, body.span()?);
        let limit = body.optional()?.map(usize::try_from).transpose();
        let memory_limit = limit.map_err(|_| SnapshotError::Damaged)?;
        let settings = MeterSettings { rotate, lateness, memory_limit };
        // Its own words would be about settings that nobody has typed.
        let mut meter = Self::new(settings, secret).map_err(|_| SnapshotError::Damaged)?;
        meter.clock = body.number()? as i64;
        for _ in 0..body.number()? {
            let found = read_finished(body)?;
            let last = meter.finished.back();
            check(last.is_none_or(|last| last.period < found.period))?;
            check(meter.is_over(found.period))?;
            meter.finished.push_back(found);
        }
        for _ in 0..body.number()? {
            let period = body.number()? as i64;
            let last = meter.open.last_key_value();
            check(last.is_none_or(|(last, _)| *last < period))?;
            check(!meter.is_over(period) && period <= meter.period())?;
            let is_measured = body.truth()?;
            let Self { tools, budget, .. } = &mut meter;
            let measured = if is_measured { read_period(body, &tools.lens, budget)? } else { None };
            meter.open.insert(period, Open(measured));
        }
        Ok(meter)
    }
}

fn key_id(secret: &Secret) -> [u8; 8] {
    secret.derive("meter: key id")
}

fn write_finished(found: &Reading, out: &mut dyn Out) -> Outcome<()> {
    let Shown { users, classes, sizes, pairs } = &found.shown;
    for number in [found.period as u64, found.late, u64::from(found.is_stopped)] {
        out.number(number)?;
    }
    for number in [*users, *classes, *pairs, sizes.len() as u64] {
        out.number(number)?;
    }
    for (size, users) in sizes {
        out.number(*size)?;
        out.number(*users)?;
    }
    Ok(())
}

fn read_finished(body: &mut impl Body) -> Outcome<Reading> {
    let (period, late, is_stopped) = (body.number()? as i64, body.number()?, body.truth()?);
    let [users, classes, pairs] = [body.number()?, body.number()?, body.number()?];
    let mut shown = Shown { users, classes, pairs, ..Shown::default() };
    for _ in 0..body.number()? {
        shown.sizes.insert(body.number()?, body.number()?);
    }
    let sum = shown.sizes.values().try_fold(0_u64, |sum, users| sum.checked_add(*users));
    check(sum == Some(users) && !(is_stopped && users > 0))?;
    Ok(Reading { period, shown, late, is_over: true, is_stopped })
}

fn write_period(period: &Period, out: &mut dyn Out) -> Outcome<()> {
    let (count, mut values) = period.values();
    out.number(count as u64)?;
    values.try_for_each(|Numbered { mark, number }| write_numbered(mark, number, out))?;
    let mut parts = period.parts();
    out.number(parts.len() as u64)?;
    parts.try_for_each(|(part, waiting)| {
        out.number(part.users().len() as u64)?;
        part.users().iter().try_for_each(|user| {
            out.bytes(&user.mark().bytes())?;
            out.bytes(&[user.few().len() as u8])?;
            user.few().iter().try_for_each(|value| out.bytes(&value.to_le_bytes()))
        })?;
        out.number(part.live() as u64)?;
        part.words().try_for_each(|word| out.number(word.0))?;
        out.number(waiting.len() as u64)?;
        waiting.iter().try_for_each(|one| write_numbered(one.user(), one.value(), out))
    })
}

fn write_numbered(mark: Mark, number: u32, out: &mut dyn Out) -> Outcome<()> {
    out.bytes(&mark.bytes())?;
    out.bytes(&number.to_le_bytes())
}

/// `None` where it does not fit into the memory that there may be.
fn read_period(body: &mut impl Body, lens: &Lens, budget: &mut Budget) -> Outcome<Option<Period>> {
    let mut period = Period::new(lens, budget).ok();
    let count = body.number()?;
    check(count <= MOST_VALUES as u64)?;
    let mut numbers = Vec::new();
    for _ in 0..count {
        let value = read_numbered(body)?;
        numbers.push(value.number);
        let is_new = keep(&mut period, budget, |period, budget| period.put_value(value, budget));
        check(is_new != Some(false))?;
    }
    numbers.sort_unstable();
    check(numbers.iter().zip(0..).all(|(number, place)| *number == place))?;
    for _ in 0..body.number()? {
        let users = body.number()?;
        check(users <= 1 << USER_BITS)?;
        let mut note = |user: Mark, value: u32, period: &mut Option<Period>| {
            check(u64::from(value) < count)?;
            let release = Release::new(user, value);
            keep(period, budget, |period, budget| period.put_release(release, lens, budget));
            Ok(())
        };
        let mut marks = Vec::new();
        for _ in 0..users {
            let mark = read_mark(body)?;
            marks.push(mark);
            let [few] = body.array()?;
            for _ in 0..few {
                note(mark, u16::from_le_bytes(body.array()?).into(), &mut period)?;
            }
        }
        for _ in 0..body.number()? {
            let word = Word(body.number()?);
            let user = *marks.get(usize::from(word.user())).ok_or(SnapshotError::Damaged)?;
            word.values().try_for_each(|value| note(user, value, &mut period))?;
        }
        for _ in 0..body.number()? {
            let Numbered { mark, number } = read_numbered(body)?;
            note(mark, number, &mut period)?;
        }
    }
    Ok(period)
}

fn read_numbered(body: &mut impl Body) -> Outcome<Numbered> {
    Ok(Numbered { mark: read_mark(body)?, number: u32::from_le_bytes(body.array()?) })
}

fn read_mark(body: &mut impl Body) -> Outcome<Mark> {
    Mark::of_bytes(body.array()?).ok_or(SnapshotError::Damaged)
}

/// Puts something into a period. Without memory it is given up.
fn keep<T>(
    period: &mut Option<Period>,
    budget: &mut Budget,
    put: impl FnOnce(&mut Period, &mut Budget) -> Result<T, Full>,
) -> Option<T> {
    let outcome = put(period.as_mut()?, budget);
    if outcome.is_err()
        && let Some(period) = period.take()
    {
        period.free(budget);
    }
    outcome.ok()
}

fn check(is_right: bool) -> Outcome<()> {
    if is_right { Ok(()) } else { Err(SnapshotError::Damaged) }
}
