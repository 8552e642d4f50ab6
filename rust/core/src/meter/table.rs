//! Tables that grow piece by piece: nobody waits for a copy of all of it.
//!
//! ```text
//! first bits of the hash ─→ directory ─→ segment ─→ the next bits say the line ─→ first free place
//!                                        up to 256 KiB
//! ```
//!
//! A segment that is full to its measure is copied into one of twice its size, and at 256 KiB half of its
//! hashes go to another one: that takes a small part of a millisecond. Places within a segment are in the
//! order of the hashes up to the length of a run, and runs never wrap: behind the last line that hashes
//! lead to there are some more.

use super::block::{Block, Pool};
use super::entry::Line;
use crate::memory::Budget;

/// Lines of the smallest segment and of the largest, as powers of two.
const SMALLEST: u32 = 6;
const LARGEST: u32 = 12;
/// Entries that a run may reach past the last line that a hash leads to. It is longer with a chance of
/// 1e-20; the segment grows early then.
const SLACK: usize = 64;

struct Segment<L> {
    lines: Block<L>,
    /// Places that a hash may lead to, each so many lines wide.
    homes: usize,
    /// So many first bits are the same of all its hashes.
    depth: u32,
    live: usize,
    most: usize,
}

/// There is no more memory, or none within the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Full;

/// Where an entry is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    segment: usize,
    line: usize,
    at: usize,
}

pub(super) struct Table<L> {
    /// The segment of each beginning of a hash, of so many bits.
    directory: Vec<u32>,
    depth: u32,
    segments: Vec<Segment<L>>,
    live: usize,
    pool: Pool,
}

impl<L: Line> Segment<L> {
    fn new(bits: u32, depth: u32, pool: &mut Pool, budget: &mut Budget) -> Result<Self, Full> {
        let mut lines = pool.take::<L>(1 << bits, budget)?;
        lines.fill(L::EMPTY);
        Ok(Self { lines, homes: Self::homes(bits), depth, live: 0, most: Self::most(bits) })
    }

    fn homes(bits: u32) -> usize {
        ((1 << bits) - SLACK.div_ceil(L::ENTRIES)) / L::WIDTH
    }

    /// Entries that are enough.
    fn most(bits: u32) -> usize {
        Self::homes(bits) * L::WIDTH * L::ENTRIES / 100 * L::MOST
    }

    fn bits(&self) -> u32 {
        self.lines.len().trailing_zeros()
    }

    #[inline(always)]
    fn home(&self, hash: u64) -> usize {
        // Wrapping: a product of 64 bits each has room in 128.
        let rest = u128::from(hash.wrapping_shl(self.depth));
        (rest.wrapping_mul(self.homes as u128) >> 64) as usize * L::WIDTH
    }

    /// Where the wanted entry is, or would be, and whether it is there; `None` at the end.
    #[inline(always)]
    fn find(&self, wanted: &L::Entry) -> Option<(usize, usize, bool)> {
        let home = self.home(L::hash(wanted));
        for (step, line) in self.lines.get(home..)?.iter().enumerate() {
            match line.find(wanted) {
                (Some(at), _) => return Some((home.wrapping_add(step), at, true)),
                (None, free) if free < L::ENTRIES => {
                    return Some((home.wrapping_add(step), free, false));
                }
                _ => {}
            }
        }
        None
    }

    /// Puts in the next of many entries that come in the order of another segment's places; `run` has
    /// the first place of the last run so far, and the one behind its end.
    #[inline(always)]
    fn put_next(&mut self, entry: L::Entry, run: &mut (usize, usize)) -> Result<(), Full> {
        let home = self.home(L::hash(&entry)).wrapping_mul(L::ENTRIES);
        let at = if home >= run.1 {
            run.0 = home;
            home
        } else if home >= run.0 {
            run.1
        } else {
            let (line, at, _) = self.find(&entry).ok_or(Full)?;
            line * L::ENTRIES + at
        };
        self.lines.get_mut(at / L::ENTRIES).ok_or(Full)?.set(at % L::ENTRIES, Some(entry));
        run.1 = run.1.max(at.wrapping_add(1));
        self.live = self.live.wrapping_add(1);
        Ok(())
    }

    fn clear(&mut self) {
        self.lines.fill(L::EMPTY);
        self.live = 0;
    }

    /// Takes an entry out and closes the gap, so that no run is cut in two.
    fn remove(&mut self, line: usize, at: usize) {
        let mut gap = line * L::ENTRIES + at;
        let mut next = gap + 1;
        while let Some(entry) =
            self.lines.get(next / L::ENTRIES).and_then(|line| line.get(next % L::ENTRIES))
        {
            if self.home(L::hash(&entry)) * L::ENTRIES <= gap {
                self.lines[gap / L::ENTRIES].set(gap % L::ENTRIES, Some(entry));
                gap = next;
            }
            next += 1;
        }
        self.lines[gap / L::ENTRIES].set(gap % L::ENTRIES, None);
        self.live -= 1;
    }
}

impl<L: Line> Table<L> {
    pub(super) fn new(budget: &mut Budget) -> Result<Self, Full> {
        let mut pool = Pool::default();
        let first = Segment::new(SMALLEST, 0, &mut pool, budget)?;
        Ok(Self { directory: vec![0], depth: 0, segments: vec![first], live: 0, pool })
    }

    pub(super) fn len(&self) -> usize {
        self.live
    }

    /// Gives all memory back.
    pub(super) fn free(self, budget: &mut Budget) {
        self.pool.free(budget);
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = L::Entry> {
        let lines = self.segments.iter().flat_map(|segment| segment.lines.iter().copied());
        lines.flat_map(|line| (0..L::ENTRIES).map_while(move |at| line.get(at)))
    }

    /// Takes everything out; the memory stays.
    pub(super) fn clear(&mut self) {
        self.segments.iter_mut().for_each(Segment::clear);
        self.live = 0;
    }

    #[inline(always)]
    fn segment(&self, hash: u64) -> usize {
        // Two shifts: by 64 bits none can be.
        let beginning = (hash >> 1).wrapping_shr(63 - self.depth) as usize;
        self.directory[beginning] as usize
    }

    /// Tells the CPU that an entry will be wanted soon.
    #[inline(always)]
    pub(super) fn prefetch(&self, hash: u64) {
        let segment = &self.segments[self.segment(hash)];
        let home = segment.home(hash);
        (home..home.wrapping_add(L::WIDTH)).for_each(|line| segment.lines.prefetch(line));
    }

    #[inline(always)]
    pub(super) fn find(&self, wanted: &L::Entry) -> Option<Place> {
        let segment = self.segment(L::hash(wanted));
        match self.segments[segment].find(wanted) {
            Some((line, at, true)) => Some(Place { segment, line, at }),
            _ => None,
        }
    }

    pub(super) fn get(&self, place: Place) -> Option<L::Entry> {
        self.segments[place.segment].lines[place.line].get(place.at)
    }

    /// The line of an entry, and its place there.
    #[inline(always)]
    pub(super) fn at(&mut self, place: Place) -> (&mut L, usize) {
        (&mut self.segments[place.segment].lines[place.line], place.at)
    }

    pub(super) fn remove(&mut self, place: Place) {
        self.segments[place.segment].remove(place.line, place.at);
        self.live -= 1;
    }

    /// The line of the wanted entry, its place there, and whether it is new: then it is put there.
    ///
    /// Nearly all are in the lines that their hash leads to, or there is room there: those that were
    /// fetched. The rest takes the long way.
    #[inline(always)]
    pub(super) fn entry(
        &mut self,
        wanted: L::Entry,
        budget: &mut Budget,
    ) -> Result<(&mut L, usize, bool), Full> {
        let hash = L::hash(&wanted);
        let number = self.segment(hash);
        let segment = &self.segments[number];
        let home = segment.home(hash);
        let has_room = segment.live < segment.most;
        let found = segment.lines[home..home.wrapping_add(L::WIDTH)].iter().zip(home..);
        for (line, place) in found {
            match line.find(&wanted) {
                (Some(at), _) => return Ok((&mut self.segments[number].lines[place], at, false)),
                (None, free) if free < L::ENTRIES && has_room => {
                    return Ok((self.put(number, place, free, wanted), free, true));
                }
                (None, free) if free < L::ENTRIES => break,
                _ => {}
            }
        }
        self.far_entry(wanted, budget)
    }

    #[inline(always)]
    fn put(&mut self, segment: usize, line: usize, at: usize, entry: L::Entry) -> &mut L {
        let segment = &mut self.segments[segment];
        segment.live = segment.live.wrapping_add(1);
        self.live = self.live.wrapping_add(1);
        let line = &mut segment.lines[line];
        line.set(at, Some(entry));
        line
    }

    #[inline(never)]
    fn far_entry(
        &mut self,
        wanted: L::Entry,
        budget: &mut Budget,
    ) -> Result<(&mut L, usize, bool), Full> {
        let mut number = self.segment(L::hash(&wanted));
        let (line, at) = loop {
            let segment = &mut self.segments[number];
            match segment.find(&wanted) {
                Some((line, at, true)) => {
                    return Ok((&mut self.segments[number].lines[line], at, false));
                }
                Some((line, at, false)) if segment.live < segment.most => break (line, at),
                _ => {
                    self.grow(number, L::hash(&wanted), budget)?;
                    number = self.segment(L::hash(&wanted));
                }
            }
        };
        Ok((self.put(number, line, at, wanted), at, true))
    }

    /// Has room for so many entries more, as far as memory goes. They may come in the order of their hashes then: in a
    /// table that grows meanwhile they would all stand in a row.
    pub(super) fn reserve(&mut self, more: usize, budget: &mut Budget) -> Result<(), Full> {
        let entries = self.live + more;
        let most = |bits| Segment::<L>::most(bits) / 8 * 7;
        let bits = (SMALLEST..LARGEST).find(|bits| most(*bits) >= entries).unwrap_or(LARGEST);
        // They do not come to all segments evenly.
        let depth = entries.div_ceil(most(bits)).next_power_of_two().trailing_zeros();
        let has_room = depth < self.depth || depth == self.depth && bits <= self.least_bits();
        if has_room {
            return Ok(());
        }
        let mut segments = Vec::new();
        for _ in 0..1_usize << depth {
            match Segment::new(bits, depth, &mut self.pool, budget) {
                Ok(segment) => segments.push(segment),
                // It grows as it does without this, if it can.
                Err(Full) => {
                    segments.into_iter().for_each(|segment| self.pool.give(segment.lines));
                    return Ok(());
                }
            }
        }
        (self.directory, self.depth, self.live) = ((0..1 << depth).collect(), depth, 0);
        for segment in std::mem::replace(&mut self.segments, segments) {
            each(&segment.lines, |entry| self.entry(entry, budget).map(|_| ()))?;
            self.pool.give(segment.lines);
        }
        Ok(())
    }

    fn least_bits(&self) -> u32 {
        self.segments.iter().map(Segment::bits).min().unwrap_or_default()
    }

    #[cold]
    fn grow(&mut self, number: usize, hash: u64, budget: &mut Budget) -> Result<(), Full> {
        let new = u32::try_from(self.segments.len()).map_err(|_| Full)?;
        let Self { segments, pool, .. } = self;
        let segment = &mut segments[number];
        let (bits, depth) = (segment.bits(), segment.depth);
        if bits < LARGEST {
            let larger = Segment::new(bits + 1, depth, pool, budget)?;
            let smaller = std::mem::replace(segment, larger);
            let mut run = (0, 0);
            let is_put = each(&smaller.lines, |entry| segment.put_next(entry, &mut run));
            pool.give(smaller.lines);
            return is_put;
        }
        if depth == 63 {
            return Err(Full);
        }
        let mut high = Segment::new(bits, depth + 1, pool, budget)?;
        let low = Segment::new(bits, depth + 1, pool, budget)?;
        let lines = std::mem::replace(segment, low).lines;
        let (mut low_run, mut high_run) = ((0, 0), (0, 0));
        let is_put = each(&lines, |entry| {
            if L::hash(&entry) << depth >> 63 == 0 {
                segment.put_next(entry, &mut low_run)
            } else {
                high.put_next(entry, &mut high_run)
            }
        });
        self.pool.give(lines);
        self.segments.push(high);
        if depth == self.depth {
            self.directory = self.directory.iter().flat_map(|segment| [*segment; 2]).collect();
            self.depth += 1;
        }
        // The beginnings that lead to the segment: the latter half of them leads to the new one.
        let shared = 1_usize << (self.depth - depth);
        let first = ((hash >> 1).wrapping_shr(63 - self.depth) as usize) & !(shared - 1);
        self.directory[first + shared / 2..first + shared].fill(new);
        // That one did not fit is next to impossible; what is measured is over then.
        is_put
    }
}

fn each<L: Line>(
    lines: &[L],
    mut put: impl FnMut(L::Entry) -> Result<(), Full>,
) -> Result<(), Full> {
    for line in lines {
        for at in 0..L::ENTRIES {
            let Some(entry) = line.get(at) else { break };
            put(entry)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
