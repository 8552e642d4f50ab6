//! How many classes there are of each size, kept with every move.

use super::entry::Mark;
use std::collections::{BTreeMap, HashSet};

/// Classes up to this size are counted by size. There are few larger ones: they are known by name.
const COUNTED: usize = 4096;

/// The classes by how many users they have.
pub(super) struct Sizes {
    /// Classes of each size.
    few: Vec<u64>,
    many: HashSet<Mark>,
    pub(super) users: u64,
    pub(super) classes: u64,
}

impl Sizes {
    pub(super) fn new() -> Self {
        Self { few: vec![0; COUNTED], many: HashSet::new(), users: 0, classes: 0 }
    }

    /// A class got another user: now it has so many.
    #[inline(always)]
    pub(super) fn joined(&mut self, mark: Mark, now: u32) {
        self.users += 1;
        self.classes += u64::from(now == 1);
        self.change(mark, now as usize - 1, now as usize);
    }

    /// A class lost a user: now it has so many.
    #[inline(always)]
    pub(super) fn left(&mut self, mark: Mark, now: u32) {
        self.users -= 1;
        self.classes -= u64::from(now == 0);
        self.change(mark, now as usize + 1, now as usize);
    }

    #[inline(always)]
    fn change(&mut self, mark: Mark, before: usize, now: usize) {
        if before.max(now) >= COUNTED {
            return self.change_large(mark, before, now);
        }
        // No class has nobody; the first place is for what is none.
        self.few[before] = self.few[before].wrapping_sub(1);
        self.few[now] = self.few[now].wrapping_add(1);
    }

    #[cold]
    fn change_large(&mut self, mark: Mark, before: usize, now: usize) {
        if before < COUNTED {
            self.few[before] = self.few[before].wrapping_sub(1);
            self.many.insert(mark);
        } else if now < COUNTED {
            self.few[now] = self.few[now].wrapping_add(1);
            self.many.remove(&mark);
        }
    }

    /// Users whose class has at least so many; `size` tells that of a large class.
    pub(super) fn at_least(&self, k: usize, size: impl Fn(Mark) -> u32) -> u64 {
        if k <= COUNTED {
            let smaller = self.few[..k.max(1)].iter().enumerate().skip(1);
            return self.users - smaller.map(|(size, classes)| size as u64 * classes).sum::<u64>();
        }
        let sizes = self.large(size).filter(|size| *size as usize >= k);
        sizes.map(u64::from).sum()
    }

    /// For each size the users who are in such classes.
    pub(super) fn all(&self, size: impl Fn(Mark) -> u32) -> BTreeMap<u64, u64> {
        let few = self.few.iter().enumerate().skip(1).filter(|(_, classes)| **classes > 0);
        let mut found: BTreeMap<u64, u64> =
            few.map(|(size, classes)| (size as u64, size as u64 * classes)).collect();
        for size in self.large(size).map(u64::from) {
            *found.entry(size).or_default() += size;
        }
        found
    }

    fn large(&self, size: impl Fn(Mark) -> u32) -> impl Iterator<Item = u32> {
        self.many.iter().map(move |mark| size(*mark))
    }
}
