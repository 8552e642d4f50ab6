//! A period that is not over.

use super::Reading;
use super::period::Period;
use super::table::Full;
use super::tools::Tools;
use crate::memory::Budget;

/// A period to which more may come; without anything measured if there was no more memory.
pub(super) struct Open(pub(super) Option<Period>);

impl Open {
    pub(super) fn new(tools: &Tools, budget: &mut Budget) -> Self {
        Self(Period::new(&tools.lens, budget).ok())
    }

    pub(super) fn reading(&mut self, period: i64, tools: &Tools, budget: &mut Budget) -> Reading {
        let shown = self.settled(tools, budget).map(|measured| measured.shown());
        let is_stopped = shown.is_none();
        Reading { period, shown: shown.unwrap_or_default(), is_stopped, ..Reading::default() }
    }

    /// What is measured, with its classes up to date.
    pub(super) fn settled(&mut self, tools: &Tools, budget: &mut Budget) -> Option<&Period> {
        if let Some(measured) = &mut self.0 {
            let settled = measured.settle(tools, budget);
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
