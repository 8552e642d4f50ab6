//! Releases that wait for their part.

use super::block::{Block, Pool};
use super::lines::Release;
use super::part::Part;
use super::table::Full;
use crate::memory::Budget;

/// Releases that the shortest log has room for, and the longest.
const SHORTEST: usize = 64;
const LONGEST: usize = 1 << 14;
/// When it was full, a log gets twice the room, and the next time four times: one release for each line of its part, about,
/// then two and four. So one fetches a line at first, where alone it would fetch three, and a fourth of one where many come.
const MOST_DOUBLED: u32 = 2;
/// Different lengths that logs begin with.
const STEPS: usize = 32;

pub(super) struct Log {
    pub(super) releases: Block<Release>,
    /// Those that wait lie from the first of these places to before the other.
    pub(super) start: usize,
    pub(super) end: usize,
    /// How often it was full.
    pub(super) fills: u32,
    /// Stands among those that wait for a look.
    pub(super) waits: bool,
}

impl Log {
    /// With as much room as this one's part is worth.
    pub(super) fn new(part: &Part, pool: &mut Pool, budget: &mut Budget) -> Result<Self, Full> {
        Self::of_length(length_for(part, 0), pool, budget)
    }

    pub(super) fn of_length(
        length: usize,
        pool: &mut Pool,
        budget: &mut Budget,
    ) -> Result<Self, Full> {
        Ok(Self { releases: pool.take(length, budget)?, start: 0, end: 0, fills: 0, waits: false })
    }

    pub(super) fn waiting(&self) -> &[Release] {
        &self.releases[self.start..self.end]
    }

    pub(super) fn is_full(&self) -> bool {
        self.end == self.releases.len()
    }

    /// Begins at some place, not behind this one. Users come evenly, and logs that begin together would all be full
    /// at the same time: everybody would wait for that. So each begins with another length.
    pub(super) fn begin(&mut self, number: usize, most: usize) {
        self.start = (self.releases.len() / STEPS * (number % STEPS)).min(most);
        self.end = self.start;
    }

    /// All is taken in: begins anew, with more room if the part has grown.
    pub(super) fn clear(
        &mut self,
        number: usize,
        part: &Part,
        pool: &mut Pool,
        budget: &mut Budget,
    ) -> Result<(), Full> {
        self.fills = self.fills.saturating_add(u32::from(self.is_full()));
        (self.start, self.end) = (0, 0);
        let wanted = length_for(part, self.fills);
        if self.releases.len() < wanted {
            let longer = pool.take(wanted, budget)?;
            pool.give(std::mem::replace(&mut self.releases, longer));
            self.begin(number, wanted);
        }
        Ok(())
    }
}

fn length_for(part: &Part, fills: u32) -> usize {
    let doubled = fills.min(MOST_DOUBLED);
    (1 << (part.room().ilog2() + doubled)).clamp(SHORTEST, LONGEST)
}
