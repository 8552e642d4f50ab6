//! A period that is not over.

use super::Reading;
use super::lens::Lens;
use super::period::Period;
use super::table::Full;
use crate::memory::Budget;

/// A period to which more may come; without anything measured if there was no more memory.
pub(super) struct Open(pub(super) Option<Period>);

impl Open {
    pub(super) fn reading(&mut self, period: i64, lens: &Lens, budget: &mut Budget) -> Reading {
        let shown = self.settled(lens, budget).map(|measured| measured.shown());
        let is_stopped = shown.is_none();
        Reading { period, shown: shown.unwrap_or_default(), is_stopped, ..Reading::default() }
    }

    /// What is measured, with its classes up to date.
    pub(super) fn settled(&mut self, lens: &Lens, budget: &mut Budget) -> Option<&Period> {
        if let Some(measured) = &mut self.0 {
            let settled = measured.settle(lens, budget);
            self.check(settled, budget);
        }
        self.0.as_ref()
    }

    /// Without memory it is not measured any more.
    pub(super) fn check(&mut self, outcome: Result<(), Full>, budget: &mut Budget) {
        if outcome.is_err()
            && let Some(measured) = self.0.take()
        {
            measured.free(budget);
        }
    }
}
