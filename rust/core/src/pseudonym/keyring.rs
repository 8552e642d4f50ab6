//! Which key a record's user leaves under: always the same, or that of the period of its time.
//!
//! Periods are counted from 1970 in UTC: an event at t is in period floor(t / length). With a chain,
//! keys are held from the oldest period in which an event may still come, by the lateness, to the
//! newest one so far:
//!
//! ```text
//!             clock - lateness              clock: the largest time so far, none from the future
//! ───┃─────────────┃──╎──────────┃─────────────╎─┃──▶ time
//!  gone            ╰── held ─────┴── held ───────╯
//! ```
//!
//! Which records have a key depends on the records before them alone, not on how they are cut into
//! batches. A record whose key is gone, or whose time is no time or from the future, leaves without
//! a user, if it leaves at all; never under another period's key.
//!
//! A stream that can be gone on with after a stop holds its chain: the file keeps the key from which
//! the last state that is safe on disk goes on, and moves on with the next one (see `state`).

mod state;

use super::chain::Chain;
use super::chain_file::ChainFile;
use super::maker::Maker;
use super::spelling::{Pseudonym, PseudonymFormat};
use crate::admission::Admission;
use crate::column::Value;
use crate::error::Error;
use crate::secret::Secret;
use crate::settings::Settings;
use std::path::Path;
use std::sync::Arc;

/// The shortest period: a minute.
const SHORTEST: i64 = 60_000_000_000;
/// Periods that the lateness may span: so many keys are held.
const MOST_HELD: i64 = 100_000;
const NOBODY: u32 = u32::MAX;

/// When the keys of a chain change, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Periods {
    pub length: i64,
    /// How late an event may come.
    pub lateness: i64,
    /// How far past the wall clock a time may be.
    pub max_future: Option<i64>,
}

/// The keys of one stream's pseudonyms.
pub struct Keyring {
    format: PseudonymFormat,
    keys: Keys,
}

enum Keys {
    Fixed(Arc<Maker>),
    Kept(Kept),
    Moving(Box<Moving>),
}

impl Keyring {
    /// One key for all time.
    pub fn fixed(secret: &Secret, format: PseudonymFormat) -> Self {
        Self { format, keys: Keys::Fixed(Arc::new(Maker::new(secret, format))) }
    }

    /// A key for each period of this length, all of them made from one that stays.
    pub fn kept(secret: Secret, format: PseudonymFormat, length: i64) -> Result<Self, Error> {
        check_length(length, 0)?;
        Ok(Self { format, keys: Keys::Kept(Kept { secret, length, near: Vec::new() }) })
    }

    /// A chain that begins with this key and lives in memory.
    pub fn chain(secret: Secret, format: PseudonymFormat, periods: Periods) -> Result<Self, Error> {
        Self::moving(Chain::new(secret, None), None, format, periods)
    }

    /// The chain of a file, which moves on with it.
    pub fn chain_file(
        path: &Path,
        format: PseudonymFormat,
        periods: Periods,
    ) -> Result<Self, Error> {
        check_length(periods.length, periods.lateness)?;
        let (file, content) = ChainFile::open(path, periods.length)?;
        let chain = Chain::new(content.secret, content.begun.map(|(_, number)| number));
        Self::moving(chain, Some(file), format, periods)
    }

    fn moving(
        chain: Chain,
        file: Option<ChainFile>,
        format: PseudonymFormat,
        periods: Periods,
    ) -> Result<Self, Error> {
        let Periods { length, lateness, max_future } = periods;
        check_length(length, lateness)?;
        let settings = Settings { lateness, max_future, ..Settings::new(1, 0) };
        let saved = chain.first();
        let admission = Admission::new(&settings);
        let moving = Moving {
            chain,
            file,
            saved,
            begun: saved,
            periods,
            admission,
            plain: None,
            is_held: false,
            kept: Vec::new(),
        };
        Ok(Self { format, keys: Keys::Moving(Box::new(moving)) })
    }

    /// Whether the key goes by the time of a record.
    pub fn rotates(&self) -> bool {
        !matches!(self.keys, Keys::Fixed(_))
    }

    /// Finds the keys of the next records, by their times; `leaves` says which of them leave.
    /// Records must come in the order of the stream.
    pub fn name(
        &mut self,
        times: &[i64],
        leaves: impl Fn(usize) -> bool,
        named: &mut Named,
    ) -> Result<(), Error> {
        named.clear();
        match &mut self.keys {
            Keys::Fixed(maker) => named.makers.push((0, Arc::clone(maker))),
            Keys::Kept(kept) => kept.name(times, self.format, named),
            Keys::Moving(moving) => moving.name(times, leaves, self.format, named)?,
        }
        if named.makers.len() == 1 && named.places.iter().all(|place| *place == 0) {
            named.places.clear();
        }
        Ok(())
    }

    /// Writes a chain that has moved on to its file. What was named leaves after that, not before:
    /// else a key could be used in a second period after a crash in the first.
    pub fn settle(&mut self) -> Result<(), Error> {
        if let Keys::Moving(moving) = &mut self.keys {
            moving.settle()?;
        }
        Ok(())
    }
}

fn check_length(length: i64, lateness: i64) -> Result<(), Error> {
    let rule = if length < SHORTEST {
        "expected at least 1m, as nanoseconds"
    } else if lateness / length > MOST_HELD {
        "expected at least a 100,000th of the lateness, as nanoseconds"
    } else {
        return Ok(());
    };
    Err(Error::Setting { parameter: "rotate", rule: rule.to_owned(), got: length.to_string() })
}

/// Keys of periods that can be made at any time.
struct Kept {
    secret: Secret,
    length: i64,
    /// Of the records before.
    near: Vec<(i64, Arc<Maker>)>,
}

impl Kept {
    fn name(&mut self, times: &[i64], format: PseudonymFormat, named: &mut Named) {
        let Self { secret, length, near } = self;
        for time in times {
            let period = time.div_euclid(*length);
            if *time == i64::MIN {
                named.places.push(NOBODY);
                continue;
            }
            named.push(period, || {
                let known = near.iter().find(|(other, _)| *other == period);
                let make = || Arc::new(Maker::new(&secret.of_period(*length, period), format));
                Some(known.map_or_else(make, |(_, maker)| Arc::clone(maker)))
            });
        }
        near.clone_from(&named.makers);
    }
}

/// Keys that only move on.
struct Moving {
    chain: Chain,
    file: Option<ChainFile>,
    /// The period whose key is in the file.
    saved: Option<i64>,
    /// The period that the chain began with; where the file does not know it yet, its key is of that.
    begun: Option<i64>,
    periods: Periods,
    /// The stream's clock.
    admission: Admission,
    /// Times from the first to before the second are in the newest period and change no key.
    plain: Option<(i64, i64)>,
    /// The file moves on only when it is told to.
    is_held: bool,
    /// The oldest keys, with their periods, of states that the file may have to move on to.
    kept: Vec<(i64, Secret)>,
}

impl Moving {
    fn name(
        &mut self,
        times: &[i64],
        leaves: impl Fn(usize) -> bool,
        format: PseudonymFormat,
        named: &mut Named,
    ) -> Result<(), Error> {
        if self.takes_all(times) {
            let newest = self.newest();
            named.makers.extend(self.chain.maker(newest, format).map(|maker| (newest, maker)));
            return Ok(());
        }
        for (row, time) in times.iter().enumerate() {
            match self.period(*time, || leaves(row))? {
                None => named.places.push(NOBODY),
                Some(period) => named.push(period, || self.chain.maker(period, format)),
            }
        }
        Ok(())
    }

    /// The usual case: all are in the newest period.
    fn takes_all(&mut self, times: &[i64]) -> bool {
        let Some((from, to)) = self.plain else { return false };
        let low = times.iter().copied().min().unwrap_or(from);
        let high = times.iter().copied().max().unwrap_or(from);
        from <= low && high < to && self.admission.admit_plainly(high)
    }

    fn newest(&self) -> i64 {
        self.admission.clock.div_euclid(self.periods.length)
    }

    /// The period that a record leaves in; `None` if its key is not there.
    fn period(&mut self, time: i64, leaves: impl Fn() -> bool) -> Result<Option<i64>, Error> {
        let Periods { length, lateness, .. } = self.periods;
        if let Some((from, to)) = self.plain
            && (from..to).contains(&time)
            && self.admission.admit_plainly(time)
        {
            return Ok(Some(self.newest()));
        }
        if time == i64::MIN {
            return Ok(None);
        }
        self.admission.admit(time, true);
        let clock = self.admission.clock;
        if clock == i64::MIN {
            return Ok(None);
        }
        let newest = self.newest();
        let oldest = clock.saturating_sub(lateness).div_euclid(length);
        self.chain.reach(oldest, newest)?;
        self.begun = self.begun.or(Some(oldest));
        let first = self.chain.first().unwrap_or(oldest);
        let period = time.div_euclid(length);
        if newest < first {
            // Nothing has reached the chain yet: a late record is no reason to stop, but one that
            // would leave is.
            return match &self.file {
                Some(file) if leaves() => Err(file.moved_on(first).into()),
                _ => Ok(None),
            };
        }
        let start = newest.saturating_mul(length);
        let moves = (oldest + 1).saturating_mul(length).saturating_add(lateness);
        self.plain = Some((start, start.saturating_add(length).min(moves)));
        Ok((first..=newest).contains(&period).then_some(period))
    }

    fn settle(&mut self) -> Result<(), Error> {
        let first = self.chain.first();
        if first == self.saved || self.is_held {
            return Ok(());
        }
        if let Some(file) = &mut self.file {
            file.write(self.chain.first_key(), first)?;
        }
        self.saved = first;
        Ok(())
    }
}

/// Keys found for some records.
#[derive(Default)]
pub struct Named {
    /// By their periods.
    makers: Vec<(i64, Arc<Maker>)>,
    /// For each record the place of its maker. Without any, all have the first.
    places: Vec<u32>,
}

impl Named {
    /// Lets go of the keys.
    pub fn clear(&mut self) {
        self.makers.clear();
        self.places.clear();
    }

    /// The period that all records are in, if there is one. A fixed key has only the one.
    pub fn only(&self) -> Option<i64> {
        self.makers.first().filter(|_| self.places.is_empty()).map(|(period, _)| *period)
    }

    fn push(&mut self, period: i64, make: impl FnOnce() -> Option<Arc<Maker>>) {
        let found = self.makers.iter().rposition(|(other, _)| *other == period);
        let place = found.or_else(|| {
            self.makers.push((period, make()?));
            Some(self.makers.len() - 1)
        });
        let place = place.and_then(|place| u32::try_from(place).ok());
        self.places.push(place.unwrap_or(NOBODY));
    }

    /// The pseudonyms of users, given with the numbers of their records among those that were named.
    pub fn pseudonyms<'a>(
        &self,
        mut users: impl Iterator<Item = (usize, Option<Value<'a>>)>,
        out: &mut Vec<Option<Pseudonym>>,
    ) {
        out.clear();
        if self.places.is_empty() {
            match self.makers.first() {
                Some((_, maker)) => maker.of_all(users.map(|(_, user)| user), out),
                None => out.extend(users.map(|_| None)),
            }
            return;
        }
        // Runs of records under one key.
        let place_of = |row: usize| self.places.get(row).copied().unwrap_or(NOBODY);
        let mut run = Vec::new();
        let mut next = users.next();
        while let Some((row, user)) = next {
            let place = place_of(row);
            run.clear();
            run.push(user);
            next = users.next();
            while let Some((_, user)) = next.filter(|(row, _)| place_of(*row) == place) {
                run.push(user);
                next = users.next();
            }
            match self.makers.get(place as usize) {
                Some((_, maker)) => maker.of_all(run.iter().copied(), out),
                None => out.extend(run.iter().map(|_| None)),
            }
        }
    }
}

#[cfg(test)]
mod tests;
