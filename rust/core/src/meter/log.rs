//! Releases that wait for their part.

use super::block::{Block, Pool};
use super::lines::Release;
use super::part::Part;
use super::table::Full;
use crate::memory::Budget;

/// Releases that the shortest log has room for, and the longest.
const SHORTEST: usize = 64;
const LONGEST: usize = 1 << 14;
/// Releases for each line of a part, about: so one fetches a fourth of a line, where alone it would fetch three.
const FOR_A_LINE: usize = 4;
/// Different lengths that logs begin with.
const STEPS: usize = 32;

pub(super) struct Log {
    pub(super) releases: Block<Release>,
    /// Those that wait lie from the first of these places to before the other.
    pub(super) start: usize,
    pub(super) end: usize,
    /// Stands among those that wait for a look.
    pub(super) waits: bool,
}

impl Log {
    /// With as much room as this one's part is worth.
    pub(super) fn new(part: &Part, pool: &mut Pool, budget: &mut Budget) -> Result<Self, Full> {
        Self::of_length(length_for(part), pool, budget)
    }

    pub(super) fn of_length(
        length: usize,
        pool: &mut Pool,
        budget: &mut Budget,
    ) -> Result<Self, Full> {
        Ok(Self { releases: pool.take(length, budget)?, start: 0, end: 0, waits: false })
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
        (self.start, self.end) = (0, 0);
        let wanted = length_for(part);
        if self.releases.len() < wanted {
            let longer = pool.take(wanted, budget)?;
            pool.give(std::mem::replace(&mut self.releases, longer));
            self.begin(number, wanted);
        }
        Ok(())
    }
}

fn length_for(part: &Part) -> usize {
    (FOR_A_LINE << part.room().ilog2()).clamp(SHORTEST, LONGEST)
}
