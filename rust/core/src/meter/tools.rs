//! What a period is worked at with: the hasher, and another thread.

use super::lens::Lens;
use super::table::Full;
use crate::crew::{Crew, Task, has_cores};
use crate::memory::Budget;
use crate::secret::Secret;
use std::sync::Arc;

/// With fewer of anything, to wake somebody takes longer than to do it.
const MANY: usize = 1 << 11;

pub(super) struct Tools {
    pub(super) lens: Arc<Lens>,
    pub(super) crew: Crew,
    /// Whether another core has nothing else to do.
    pub(super) on_two: bool,
}

impl Tools {
    pub(super) fn new(secret: &Secret) -> Self {
        let crew = Crew::new(1 + usize::from(has_cores()));
        Self { lens: Arc::new(Lens::new(secret)), crew, on_two: true }
    }

    /// Does something with each of two, which know nothing of each other: at the same time, if it is much, which
    /// makes no difference to what comes of it. Of the memory that is left each may have half, in both cases, so that they
    /// end at the same limit.
    pub(super) fn both<T: Send>(
        &self,
        halves: [T; 2],
        count: usize,
        budget: &mut Budget,
        work: impl Fn(T, &mut Budget) -> Result<(), Full> + Sync,
    ) -> Result<(), Full> {
        let work = &work;
        let mut leases = budget.halves();
        let mut outcomes = [Ok(()); 2];
        let all = halves.into_iter().zip(&mut leases).zip(&mut outcomes);
        let tasks = all.map(|((half, lease), outcome)| -> Task<'_> {
            Box::new(move || *outcome = work(half, lease))
        });
        if count < MANY || !self.on_two {
            tasks.for_each(|task| task());
        } else {
            self.crew.run(tasks.collect());
        }
        budget.put_together(leases);
        let [first, second] = outcomes;
        first.and(second)
    }
}

/// Something by the half that it is for: what is for the first from the beginning on, what is for the other
/// from the end. The order is of no meaning.
#[derive(Default)]
pub(super) struct Sorted<T> {
    items: Vec<T>,
    first: usize,
}

/// What is being sorted: where the next one goes.
pub(super) struct Ends<'a, T> {
    items: &'a mut [T],
    first: usize,
    last: usize,
}

impl<T: Copy> Ends<'_, T> {
    /// Puts one to the half that it is for, 0 or 1.
    #[inline(always)]
    pub(super) fn put(&mut self, item: T, half: usize) {
        // Written to both ends, one of which is written again: the CPU could not guess which it is.
        self.items[self.first] = item;
        self.items[self.last.wrapping_sub(1)] = item;
        self.first = self.first.wrapping_add(1 - half);
        self.last = self.last.wrapping_sub(half);
    }
}

impl<T: Copy + Default> Sorted<T> {
    /// Sorts so many, as they are put.
    #[inline(always)]
    pub(super) fn sort(&mut self, count: usize, fill: impl FnOnce(&mut Ends<'_, T>)) {
        self.items.resize(count, T::default());
        let mut ends = Ends { items: &mut self.items, first: 0, last: count };
        fill(&mut ends);
        self.first = ends.first;
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    pub(super) fn halves(&self) -> [&[T]; 2] {
        let (first, second) = self.items.split_at(self.first);
        [first, second]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_sorted_once() {
        let mut sorted = Sorted::default();
        for count in [0, 1, 2, 3, 100, 7] {
            for of_first in [0, 1, 5, 10] {
                let numbers = (0..count).map(|number| number * 7 % 10);
                sorted.sort(count, |ends| {
                    numbers.clone().for_each(|one| ends.put(one, usize::from(one >= of_first)));
                });
                let [first, second] = sorted.halves();
                assert!(first.iter().all(|number| *number < of_first));
                assert!(second.iter().all(|number| *number >= of_first));
                let mut found = [first, second].concat();
                let mut wanted: Vec<_> = numbers.collect();
                found.sort_unstable();
                wanted.sort_unstable();
                assert_eq!(found, wanted);
            }
        }
    }
}
