//! The parts of a period, and the releases that wait for them.
//!
//! ```text
//! first bits of the user ─→ directory ─→ log of a part ┄┄→ the part         ┄→ when it is full, or someone looks
//! ```
//!
//! Releases come to users anywhere: taken in at once, each would wait for memory three times. Sorted by part
//! they wait in logs, which costs a write; a part then takes in many, and waits for its memory once. (Joins
//! of databases are made like that.)

use super::changed::Changed;
use super::desk::{Desk, Share};
use super::entry::{Class, Mark};
use super::growth::is_of_latter;
use super::lines::{Release, User};
use super::log::Log;
use super::part::{GROUP, Part};
use super::prints::Prints;
use super::table::Full;
use super::tools::Tools;
use crate::key::Hasher;
use crate::memory::{Budget, fetch};

/// With fewer releases they are not worth two desks.
const MANY: usize = 1 << 12;
/// Parts whose users are looked at together where there is little memory.
const SOME: usize = 32;

/// The users of a period.
pub(super) struct Parts {
    /// The part of each beginning of a mark, of so many bits.
    directory: Vec<u32>,
    depth: u32,
    parts: Vec<Part>,
    /// Of each part.
    logs: Vec<Log>,
    /// Parts that something waits for, and maybe others.
    waiting: Vec<u32>,
    /// All that comes is taken in at the first; before a look both are used.
    desks: [Desk; 2],
    /// Scatters words over the lines of a part: secret, so that nobody can make them meet.
    spread: u64,
}

impl Parts {
    pub(super) fn new(spread: u64, budget: &mut Budget) -> Result<Self, Full> {
        let mut desks = <[Desk; 2]>::default();
        let pool = &mut desks[0].pool;
        let first =
            Part::new(0, pool, budget).and_then(|part| Ok((Log::new(&part, pool, budget)?, part)));
        let (log, part) = match first {
            Ok(first) => first,
            Err(full) => {
                desks.into_iter().for_each(|desk| desk.pool.free(budget));
                return Err(full);
            }
        };
        Ok(Self {
            directory: vec![0],
            depth: 0,
            parts: vec![part],
            logs: vec![log],
            waiting: Vec::new(),
            desks,
            spread: spread | 1,
        })
    }

    pub(super) fn free(self, budget: &mut Budget) {
        self.desks.into_iter().for_each(|desk| desk.pool.free(budget));
    }

    /// Releases that were new.
    pub(super) fn pairs(&self) -> u64 {
        self.desks.iter().map(|desk| desk.pairs).sum()
    }

    /// Who changed since this was asked for, as far as it is known.
    pub(super) fn changed(&mut self) -> [Changed; 2] {
        self.desks.each_mut().map(|desk| std::mem::take(&mut desk.changed))
    }

    #[inline(always)]
    fn part_of(&self, mark: Mark) -> usize {
        // Two shifts: by 64 bits none can be.
        self.directory[(mark.high >> 1).wrapping_shr(63 - self.depth) as usize] as usize
    }

    /// Notes releases, at most a group, each for its part.
    #[inline(always)]
    pub(super) fn note_group(
        &mut self,
        releases: &[Release],
        hasher: &Hasher,
        budget: &mut Budget,
    ) -> Result<(), Full> {
        let mut numbers = [0; GROUP];
        for (release, number) in releases.iter().zip(&mut numbers) {
            *number = self.part_of(release.user());
            fetch(&raw const self.logs[*number]);
        }
        let known = self.parts.len();
        for (release, number) in releases.iter().zip(numbers) {
            // When a part was cut meanwhile, its releases may be those of another.
            if self.parts.len() == known {
                self.note_for(number, *release, hasher, budget)?;
            } else {
                self.note(*release, hasher, budget)?;
            }
        }
        Ok(())
    }

    /// Notes a release for its part, which takes in what it has if there is no room for more.
    pub(super) fn note(
        &mut self,
        release: Release,
        hasher: &Hasher,
        budget: &mut Budget,
    ) -> Result<(), Full> {
        self.note_for(self.part_of(release.user()), release, hasher, budget)
    }

    #[inline(always)]
    fn note_for(
        &mut self,
        number: usize,
        release: Release,
        hasher: &Hasher,
        budget: &mut Budget,
    ) -> Result<(), Full> {
        let log = &mut self.logs[number];
        if log.waits
            && let Some(place) = log.releases.get_mut(log.end)
        {
            *place = release;
            log.end = log.end.wrapping_add(1);
            // The line behind: there are many logs, and a write waits for its line.
            log.releases.prefetch(log.end.wrapping_add(4));
            return Ok(());
        }
        self.note_anew(release, hasher, budget)
    }

    #[inline(never)]
    fn note_anew(
        &mut self,
        release: Release,
        hasher: &Hasher,
        budget: &mut Budget,
    ) -> Result<(), Full> {
        let mut number = self.part_of(release.user());
        while self.logs[number].is_full() {
            self.take_in(number, hasher, budget)?;
            number = self.part_of(release.user());
        }
        self.put(number, release);
        Ok(())
    }

    fn put(&mut self, number: usize, release: Release) {
        let log = &mut self.logs[number];
        if !log.waits {
            log.waits = true;
            self.waiting.push(number as u32);
        }
        log.releases[log.end] = release;
        log.end += 1;
    }

    /// Brings everything to its part.
    pub(super) fn take_in_all(&mut self, tools: &Tools, budget: &mut Budget) -> Result<(), Full> {
        let hasher = tools.lens.hasher();
        let logs = self.waiting.iter().map(|number| &self.logs[*number as usize]);
        let count = logs.map(|log| log.waiting().len()).sum();
        if count >= MANY {
            self.take_in_at_both(count, tools, budget)?;
        }
        // A part that is cut gets to the end of the list again, with its other half.
        while !self.waiting.is_empty() {
            let some = self.waiting.split_off(self.waiting.len().saturating_sub(GROUP));
            let Self { desks: [desk, _], parts, logs, spread, .. } = self;
            let share = Share { first: 0, parts, logs };
            let left = desk.take_in_some(&some, share, *spread, hasher, budget)?;
            for number in left {
                self.waiting.push(number);
                self.cut(number as usize, budget)?;
            }
        }
        Ok(())
    }

    /// Brings everything to its part, but for the parts that must be cut in two.
    fn take_in_at_both(
        &mut self,
        count: usize,
        tools: &Tools,
        budget: &mut Budget,
    ) -> Result<(), Full> {
        let middle = self.parts.len() / 2;
        let is_of_first = |number: &u32| (*number as usize) < middle;
        let (first, second) = std::mem::take(&mut self.waiting).into_iter().partition(is_of_first);
        let mut numbers: [Vec<u32>; 2] = [first, second];
        let Self { desks: [desk, other], parts, logs, spread, .. } = self;
        let (parts, other_parts) = parts.split_at_mut(middle);
        let (logs, other_logs) = logs.split_at_mut(middle);
        let [first, second] = &mut numbers;
        let both = [
            (desk, first, Share { first: 0, parts, logs }),
            (other, second, Share { first: middle, parts: other_parts, logs: other_logs }),
        ];
        tools.both(both, count, budget, |(desk, numbers, share), lease| {
            let hasher = tools.lens.hasher();
            *numbers = desk.take_in_some(numbers, share, *spread, hasher, lease)?;
            Ok(())
        })?;
        self.waiting = numbers.concat();
        Ok(())
    }

    /// Brings to a part what waits for it, until it must be cut in two; what is left waits for the halves.
    fn take_in(&mut self, number: usize, hasher: &Hasher, budget: &mut Budget) -> Result<(), Full> {
        let Self { desks: [desk, _], parts, logs, spread, .. } = self;
        let both = (&mut parts[number], &mut logs[number]);
        if !desk.take_in(number, both, *spread, hasher, budget)? {
            self.cut(number, budget)?;
        }
        Ok(())
    }

    /// Cuts a part in two. The first releases of its log have been taken in; the rest goes on waiting.
    #[cold]
    fn cut(&mut self, number: usize, budget: &mut Budget) -> Result<(), Full> {
        let Self { directory, parts, logs, desks: [Desk { pool, .. }, _], spread, .. } = self;
        let new = u32::try_from(parts.len()).map_err(|_| Full)?;
        let depth = parts[number].depth;
        // Marks of this many bits in common are next to impossible.
        if depth >= 32 {
            return Err(Full);
        }
        let mark = parts[number].users().first().ok_or(Full)?.mark();
        let latter = parts[number].cut(*spread, pool, budget)?;
        // What is left of the log goes on waiting: each half may get all of it.
        let Log { waits, start, ref releases, .. } = logs[number];
        let mut log = Log { waits, ..Log::of_length(releases.len(), pool, budget)? };
        let mut other = Log::of_length(releases.len(), pool, budget)?;
        log.begin(number, start);
        other.begin(logs.len(), start);
        logs.push(other);
        parts.push(latter);
        if depth == self.depth {
            *directory = directory.iter().flat_map(|part| [*part; 2]).collect();
            self.depth += 1;
        }
        // The beginnings that lead to the part: the latter half of them leads to the new one.
        let shared = 1_usize << (self.depth - depth);
        let first = (mark.high >> 1).wrapping_shr(63 - self.depth) as usize & !(shared - 1);
        directory[first + shared / 2..first + shared].fill(new);
        let whole = std::mem::replace(&mut logs[number], log);
        for release in whole.waiting() {
            let half = if is_of_latter(release.user(), depth) { new as usize } else { number };
            self.put(half, *release);
        }
        self.desks[0].pool.give(whole.releases);
        Ok(())
    }

    /// Gives the fingerprints of all users, in two halves; of some at a time, where there is no memory for all. From then
    /// on nobody has changed.
    pub(super) fn prints(
        &mut self,
        tools: &Tools,
        budget: &mut Budget,
        mut take: impl FnMut(&[Prints; 2], &mut Budget) -> Result<(), Full>,
    ) -> Result<(), Full> {
        let mut prints = <[Prints; 2]>::default();
        let users = users_of(&self.parts);
        // With room beside for the classes that they may be in.
        let is_all = budget.has(users * (Prints::EACH + Class::MOST));
        let (some, held) = if is_all { (self.parts.len(), users) } else { (SOME, 0) };
        budget.claim(held * Prints::EACH);
        let outcome = self.parts.chunks_mut(some).try_for_each(|parts| {
            let (one, other) = parts.split_at_mut(parts.len() / 2);
            let count = users_of(one) + users_of(other);
            let [of_one, of_other] = &mut prints;
            let both = [(one, of_one), (other, of_other)];
            tools.both(both, count, budget, |(parts, prints), _| {
                prints.take(parts);
                Ok(())
            })?;
            take(&prints, budget)
        });
        budget.release(held * Prints::EACH);
        outcome
    }

    pub(super) fn prefetch_user(&self, mark: Mark) {
        self.parts[self.part_of(mark)].prefetch_user(mark);
    }

    pub(super) fn find(&mut self, mark: Mark) -> Option<&mut User> {
        let part = self.part_of(mark);
        self.parts[part].find(mark)
    }

    /// The parts, and what waits for each of them.
    pub(super) fn all(&self) -> impl ExactSizeIterator<Item = (&Part, &[Release])> {
        self.parts.iter().zip(&self.logs).map(|(part, log)| (part, log.waiting()))
    }
}

fn users_of(parts: &[Part]) -> usize {
    parts.iter().map(|part| part.count).sum()
}

#[cfg(test)]
mod tests;
