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
