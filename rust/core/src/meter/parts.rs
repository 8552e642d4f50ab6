//! The parts of a period, and the releases that wait for them.
//!
//! ```text
//! first bits of the user ─→ directory ─→ log of a part ┄┄→ the part         ┄→ when it is full, or someone looks
//! ```
//!
//! Releases come to users anywhere: taken in at once, each would wait for memory three times. Sorted by part
//! they wait in logs, which costs a write; a part then takes in many, and waits for its memory once. (Joins
//! of databases are made like that.)

use super::block::{Block, Pool};
use super::changed::Changed;
use super::entry::Mark;
use super::growth::{Lack, is_of_latter};
use super::lines::{Release, User};
use super::part::{GROUP, Part};
use super::table::Full;
use crate::key::Hasher;
use crate::memory::{Budget, fetch};

/// Releases that the shortest log has room for, and the longest.
const SHORTEST: usize = 64;
const LONGEST: usize = 1 << 12;

/// Releases of a log that are fetched for one by one.
const FEW: usize = 16;

struct Log {
    releases: Block<Release>,
    len: usize,
    /// Stands among those that wait for a look.
    waits: bool,
}

impl Log {
    fn new(length: usize, pool: &mut Pool, budget: &mut Budget) -> Result<Self, Full> {
        Ok(Self { releases: pool.take(length, budget)?, len: 0, waits: false })
    }
}

/// About one release for each line of the part: so a release fetches one line at most, instead of three.
fn length_for(part: &Part) -> usize {
    (1_usize << part.room().ilog2()).clamp(SHORTEST, LONGEST)
}

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
    pool: Pool,
    /// Scatters words over the lines of a part: secret, so that nobody can make them meet.
    spread: u64,
    pub(super) pairs: u64,
    pub(super) changed: Changed,
}

impl Parts {
    pub(super) fn new(spread: u64, budget: &mut Budget) -> Result<Self, Full> {
        let mut pool = Pool::default();
        let first = Part::new(0, &mut pool, budget)
            .and_then(|part| Ok((Log::new(length_for(&part), &mut pool, budget)?, part)));
        let (log, part) = match first {
            Ok(first) => first,
            Err(full) => {
                pool.free(budget);
                return Err(full);
            }
        };
        Ok(Self {
            directory: vec![0],
            depth: 0,
            parts: vec![part],
            logs: vec![log],
            waiting: Vec::new(),
            pool,
            spread: spread | 1,
            pairs: 0,
            changed: Changed::Some(Vec::new()),
        })
    }

    pub(super) fn free(self, budget: &mut Budget) {
        self.pool.free(budget);
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
            && let Some(place) = log.releases.get_mut(log.len)
        {
            *place = release;
            log.len = log.len.wrapping_add(1);
            // The line behind: there are many logs, and a write waits for its line.
            log.releases.prefetch(log.len.wrapping_add(4));
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
        while self.logs[number].len == self.logs[number].releases.len() {
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
        log.releases[log.len] = release;
        log.len += 1;
    }

    /// Brings everything to its part.
    pub(super) fn take_in_all(&mut self, hasher: &Hasher, budget: &mut Budget) -> Result<(), Full> {
        // A part that is cut meanwhile gets to the end of the list again, with its other half.
        while !self.waiting.is_empty() {
            let some = self.waiting.split_off(self.waiting.len().saturating_sub(GROUP));
            self.fetch(&some);
            for number in some {
                self.logs[number as usize].waits = false;
                self.take_in(number as usize, hasher, budget)?;
            }
        }
        Ok(())
    }

    /// Tells the CPU what parts will need that only few releases wait for.
    fn fetch(&self, numbers: &[u32]) {
        let each = |fetch: &dyn Fn(&Part, &Release)| {
            for number in numbers {
                let (part, log) = (&self.parts[*number as usize], &self.logs[*number as usize]);
                if log.len <= FEW {
                    log.releases[..log.len].iter().for_each(|release| fetch(part, release));
                }
            }
        };
        each(&|part, release| part.prefetch_user(release.user()));
        each(&|part, release| _ = part.guess(release.user()));
    }

    /// Brings to a part what waits for it, until it must be cut in two; what is left waits for the halves.
    fn take_in(&mut self, number: usize, hasher: &Hasher, budget: &mut Budget) -> Result<(), Full> {
        let Self { parts, logs, pool, spread, changed, .. } = self;
        let (part, log) = (&mut parts[number], &mut logs[number]);
        // Many releases come to all lines, few to some.
        if log.len > part.lines() {
            part.prefetch();
        }
        let mut done = 0;
        let mut prints = [0; GROUP];
        while done < log.len {
            match part.lack() {
                None => {}
                Some(Lack::Room) => part.grow(*spread, pool, budget)?,
                Some(Lack::Cut) => return self.cut(number, done, budget),
            }
            let group = &log.releases[done..log.len.min(done + GROUP)];
            for (release, print) in group.iter().zip(&mut prints) {
                *print = u128::from(release.value());
            }
            hasher.user_words(&mut prints[..group.len()]);
            self.pairs += part.take(group, &prints, *spread, changed) as u64;
            done += group.len();
        }
        log.len = 0;
        let wanted = length_for(part);
        if log.releases.len() < wanted {
            let longer = pool.take(wanted, budget)?;
            pool.give(std::mem::replace(&mut log.releases, longer));
        }
        Ok(())
    }

    /// Cuts a part in two. The first releases of its log have been taken in; the rest goes on waiting.
    #[cold]
    fn cut(&mut self, number: usize, done: usize, budget: &mut Budget) -> Result<(), Full> {
        let Self { directory, parts, logs, pool, spread, .. } = self;
        let new = u32::try_from(parts.len()).map_err(|_| Full)?;
        let depth = parts[number].depth;
        // Marks of this many bits in common are next to impossible.
        if depth >= 32 {
            return Err(Full);
        }
        let mark = parts[number].users().first().ok_or(Full)?.mark();
        let latter = parts[number].cut(*spread, pool, budget)?;
        let length = logs[number].releases.len();
        let log = Log { waits: logs[number].waits, ..Log::new(length, pool, budget)? };
        logs.push(Log::new(length, pool, budget)?);
        parts.push(latter);
        if depth == self.depth {
            *directory = directory.iter().flat_map(|part| [*part; 2]).collect();
            self.depth += 1;
        }
        // The beginnings that lead to the part: the latter half of them leads to the new one.
        let shared = 1_usize << (self.depth - depth);
        let first = (mark.high >> 1).wrapping_shr(63 - self.depth) as usize & !(shared - 1);
        directory[first + shared / 2..first + shared].fill(new);
        // What is left of the log goes on waiting: each half may get all of it.
        let Log { releases, len, .. } = std::mem::replace(&mut logs[number], log);
        for release in &releases[done..len] {
            let half = if is_of_latter(release.user(), depth) { new as usize } else { number };
            self.put(half, *release);
        }
        self.pool.give(releases);
        Ok(())
    }

    pub(super) fn users_mut(&mut self) -> impl Iterator<Item = &mut User> {
        self.parts.iter_mut().flat_map(Part::users_mut)
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
        self.parts.iter().zip(&self.logs).map(|(part, log)| (part, &log.releases[..log.len]))
    }
}

#[cfg(test)]
mod tests;
