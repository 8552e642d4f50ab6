//! A meter as it is kept: keyed hashes and counts, no user and no value.
//!
//! ```text
//! as bytes      format | key id |  settings | clock | finished periods | open periods: pairs, users
//! in a state           | secret |  the same
//! ```
//!
//! Classes are not written: they are counted again from the users. What is read is checked, also where
//! it was sealed. Bytes are neither encrypted nor authenticated: that is for whoever keeps them.

use super::entry::Mark;
use super::period::{Period, Shown};
use super::table::Full;
use super::{Meter, MeterSettings, Open, Reading};
use crate::codec::{Body, Out, Outcome};
use crate::error::{Error, SnapshotError};
use crate::memory::Budget;
use crate::secret::Secret;

const FORMAT: u64 = 1;

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
            let measured = if is_measured { read_period(body, &mut meter.budget)? } else { None };
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
    let (pairs, users) = period.lengths();
    out.number(pairs as u64)?;
    out.number(users as u64)?;
    period.pairs().try_for_each(|mark| out.bytes(&mark.bytes()))?;
    period.users().try_for_each(|user| {
        out.bytes(&user.mark().bytes())?;
        out.bytes(&user.print().to_le_bytes())
    })
}

/// `None` where it does not fit into the memory that there may be.
fn read_period(body: &mut impl Body, budget: &mut Budget) -> Outcome<Option<Period>> {
    let mut period = Period::new(budget).ok();
    let (pairs, users) = (body.number()?, body.number()?);
    for _ in 0..pairs {
        let mark = read_mark(body)?;
        keep(&mut period, budget, |period, budget| period.put_pair(mark, budget))?;
    }
    for _ in 0..users {
        let (mark, print) = (read_mark(body)?, u128::from_le_bytes(body.array()?));
        check(print != 0)?;
        keep(&mut period, budget, |period, budget| period.put_user((mark, print), budget))?;
    }
    check(users <= pairs)?;
    Ok(period)
}

fn read_mark(body: &mut impl Body) -> Outcome<Mark> {
    Mark::of_bytes(body.array()?).ok_or(SnapshotError::Damaged)
}

/// Puts something into a period; nothing may be in it twice. Without memory it is given up.
fn keep(
    period: &mut Option<Period>,
    budget: &mut Budget,
    put: impl FnOnce(&mut Period, &mut Budget) -> Result<bool, Full>,
) -> Outcome<()> {
    match period.as_mut().map(|period| put(period, budget)) {
        Some(Err(Full)) => {
            if let Some(period) = period.take() {
                period.free(budget);
            }
            Ok(())
        }
        Some(Ok(is_new)) => check(is_new),
        None => Ok(()),
    }
}

fn check(is_right: bool) -> Outcome<()> {
    if is_right { Ok(()) } else { Err(SnapshotError::Damaged) }
}
