//! Releases on their way to a meter: hashed, in the order in which they came, and small.
//!
//! ```text
//! sheet     of one period:  groups: latest time | releases: user, place of the value | words of new values
//! ```
//!
//! A value's number in its period is known to who takes in alone. So a release names its value by a *place*,
//! counted from 0 as values come; words are told once for each place, and places go on over sheets until one says
//! that they begin anew. Nothing here needs the meter to be looked at: it may be elsewhere, at work.

use super::Meter;
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
                Self::Sheet(sheet) => size_of_val(&sheet.releases[..]),
                _ => 0,
            }
    }
}

/// A few releases, which are taken in together.
#[derive(Clone, Copy)]
struct Group {
    latest: i64,
    /// Where they end, and how many places are known by then.
    releases: u32,
    places: u32,
}

/// Releases of one period.
#[derive(Default)]
pub(super) struct Sheet {
    pub(super) period: i64,
    /// Places are counted from 0 again.
    pub(super) is_first: bool,
    groups: Vec<Group>,
    releases: Vec<Release>,
    /// The words of places that are new.
    pub(super) words: Vec<u128>,
}

impl Sheet {
    /// Begins anew, with the memory it has.
    pub(super) fn clear(&mut self) {
        self.groups.clear();
        self.releases.clear();
        self.words.clear();
    }

    /// Has memory for all that it will hold: lists that grow are copied.
    pub(super) fn reserve(&mut self) {
        if self.releases.capacity() == 0 {
            self.releases.reserve_exact(ROOM + ROUND);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.releases.len() >= ROOM
    }

    /// Notes releases that are taken in together; `places` are known by now.
    #[inline(always)]
    pub(super) fn push(
        &mut self,
        latest: i64,
        places: usize,
        releases: impl Iterator<Item = Release>,
    ) {
        self.releases.extend(releases);
        let (releases, places) = (self.releases.len() as u32, places as u32);
        self.groups.push(Group { latest, releases, places });
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
        let mut numbers = std::mem::take(&mut self.numbers);
        if sheet.is_first {
            numbers.clear();
        }
        let (period, mut start, mut words) = (sheet.period, 0, &sheet.words[..]);
        for group in &sheet.groups {
            let releases = &sheet.releases[start..group.releases as usize];
            start = group.releases as usize;
            self.advance(group.latest);
            if self.is_over(period) {
                self.late(period, releases.len() as u64);
                continue;
            }
            let Self { open, lens, budget, .. } = self;
            let open = open.entry(period).or_insert_with(|| Open(Period::new(lens, budget).ok()));
            // Where it stops to be measured it does for good: no number is asked for any more.
            let Some(measured) = &mut open.0 else { continue };
            let (new, rest) = words.split_at(group.places as usize - numbers.len());
            words = rest;
            let counted = measured.take_group(releases, new, &mut numbers, lens, budget);
            open.check(counted, budget);
        }
        self.numbers = numbers;
    }
}

impl Period {
    /// Takes in a group, once the values at new places have their numbers.
    #[inline(always)]
    fn take_group(
        &mut self,
        releases: &[Release],
        new: &[u128],
        numbers: &mut Vec<u32>,
        lens: &Lens,
        budget: &mut Budget,
    ) -> Result<(), Full> {
        for word in new {
            numbers.push(self.number(*word, budget)?);
        }
        let mut group = [Release::default(); GROUP];
        let group = &mut group[..releases.len()];
        for (to, release) in group.iter_mut().zip(releases) {
            *to = release.of(numbers[release.value() as usize]);
        }
        self.put_releases(group, lens, budget)
    }
}
