//! Releases on their way to a meter: in the order in which they came, and small.
//!
//! ```text
//! sheet     of one period:  latest time | releases: user, place of the value | words of new values
//! ```
//!
//! A value's number in its period is known to who takes in alone. So a release names its value by a *place*,
//! counted from 0 as values come; words are told once for each place, and places go on over sheets until one says
//! that they begin anew. Users are as they came: they are hashed by who takes in, and stay here no longer than that.
//! Nothing here needs the meter to be looked at: it may be elsewhere, at work.

use super::Meter;
use super::entry::Mark;
use super::lens::{Lens, Sight};
use super::lines::Release;
use super::open::Open;
use super::part::GROUP;
use super::period::Period;
use super::table::Full;
use crate::memory::Budget;

/// Releases that a sheet has room for, but for those of a last round.
pub(super) const ROOM: usize = 1 << 13;
/// Rows that are hashed together: they stay in the cache.
pub(super) const ROUND: usize = 256;

/// Something to be taken in.
pub(super) enum Load {
    Sights(Vec<Sight>),
    Sheet(Sheet),
    /// Time has come to this.
    Time(i64),
    /// Goes wrong.
    #[cfg(test)]
    Fault,
}

/// What a load weighs beside what it holds, so that small ones are bounded in number.
const LEAST: usize = 1 << 12;

impl Load {
    /// Bytes, about.
    pub(super) fn weight(&self) -> usize {
        LEAST
            + match self {
                Self::Sights(sights) => size_of_val(&sights[..]),
                Self::Sheet(sheet) => {
                    size_of_val(&sheet.users[..]) + size_of_val(&sheet.places[..])
                }
                _ => 0,
            }
    }
}

/// Releases of one period.
#[derive(Default)]
pub(super) struct Sheet {
    pub(super) period: i64,
    /// Places are counted from 0 again.
    pub(super) is_first: bool,
    /// The largest time of them.
    latest: i64,
    users: Vec<i64>,
    places: Vec<u32>,
    /// The words of places that are new.
    pub(super) words: Vec<u128>,
}

impl Sheet {
    /// Begins anew, with the memory it has.
    pub(super) fn clear(&mut self) {
        self.users.clear();
        self.places.clear();
        self.words.clear();
    }

    /// Has memory for all that it will hold: lists that grow are copied.
    fn reserve(&mut self) {
        if self.users.capacity() == 0 {
            self.users.reserve_exact(ROOM + ROUND);
            self.places.reserve_exact(ROOM + ROUND);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.users.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.users.len() >= ROOM
    }

    /// The largest time of releases that follow.
    pub(super) fn come_to(&mut self, latest: i64) {
        self.latest = if self.is_empty() { latest } else { latest.max(self.latest) };
    }

    /// Notes the users of some releases, and the places of their values.
    pub(super) fn push(&mut self, users: &[i64], places: &[u32]) {
        self.reserve();
        self.users.extend_from_slice(users);
        self.places.extend_from_slice(places);
    }
}

impl Meter {
    /// Takes in what is there.
    pub(super) fn take(&mut self, load: &Load) {
        match load {
            Load::Sights(sights) => self.count(sights),
            Load::Sheet(sheet) => self.take_sheet(sheet),
            Load::Time(time) => self.advance(*time),
            #[cfg(test)]
            Load::Fault => panic!("on purpose"),
        }
    }

    fn take_sheet(&mut self, sheet: &Sheet) {
        if sheet.is_first {
            self.numbers.clear();
        }
        // No time of a period ends it: either all of the sheet is late, or nothing.
        self.advance(sheet.latest);
        let period = sheet.period;
        if self.is_over(period) {
            return self.late(period, sheet.users.len() as u64);
        }
        let Self { open, numbers, tools, budget, .. } = self;
        let open = open.entry(period).or_insert_with(|| Open::new(tools, budget));
        // Where it stops to be measured it does for good: no number is asked for any more.
        let Some(measured) = &mut open.0 else { return };
        let taken = measured.take_sheet(sheet, numbers, &tools.lens, budget);
        open.check(taken, budget);
    }
}

impl Period {
    /// Takes in a sheet, once the values at new places have their numbers.
    fn take_sheet(
        &mut self,
        sheet: &Sheet,
        numbers: &mut Vec<u32>,
        lens: &Lens,
        budget: &mut Budget,
    ) -> Result<(), Full> {
        for word in &sheet.words {
            numbers.push(self.number(*word, budget)?);
        }
        let mut words = [0; GROUP];
        let mut releases = [Release::default(); GROUP];
        for (users, places) in sheet.users.chunks(GROUP).zip(sheet.places.chunks(GROUP)) {
            lens.hasher().integer_words(users, &mut words[..users.len()]);
            for ((release, word), place) in releases.iter_mut().zip(words).zip(places) {
                *release = Release::new(Mark::new(word), numbers[*place as usize]);
            }
            self.users.note_group(&releases[..users.len()], lens.hasher(), budget)?;
        }
        Ok(())
    }
}
