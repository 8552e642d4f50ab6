//! What leaves, brought to the periods that it is of; and periods that are over.

use super::lens::{Field, Sight};
use super::open::Open;
use super::packer::Columns;
use super::{Meter, Reading, is_over};
use crate::column::Column;
use crate::error::Error;
use crate::gate::Gate;
use std::sync::Arc;

/// Finished periods that are remembered.
const MOST_FINISHED: usize = 1000;

/// What left of one field.
#[derive(Clone, Copy)]
pub struct Released<'a> {
    pub field: Field,
    pub values: &'a dyn Column,
    /// A byte for each row, 0 if its value did not leave; all did without it.
    pub rows: Option<&'a [u8]>,
}

impl Meter {
    /// Takes in columns of what left, in order, of one field or several.
    pub fn add(
        &mut self,
        times: &[i64],
        users: &dyn Column,
        fields: &[Released],
    ) -> Result<(), Error> {
        let (lens, mut packer) = (Arc::clone(&self.tools.lens), std::mem::take(&mut self.packer));
        let columns = Columns { times, users, fields };
        let outcome = packer.pack(columns, self.settings.rotate, &lens, |load| {
            self.take(load);
            Ok(())
        });
        self.packer = packer;
        outcome
    }

    /// Takes in what was seen of records that left, in order.
    pub fn count(&mut self, mut sights: &[Sight]) {
        // By runs of one period.
        while let Some(first) = sights.first() {
            let period = self.period_of(first.time);
            let (from, to) = self.span(period);
            let (mut end, mut latest) = (0, first.time);
            for sight in sights.iter().take_while(|sight| (from..=to).contains(&sight.time)) {
                end += 1;
                latest = latest.max(sight.time);
            }
            let (run, rest) = sights.split_at(end);
            self.advance(latest);
            self.take_run(period, run);
            sights = rest;
        }
    }

    fn take_run(&mut self, period: i64, run: &[Sight]) {
        if self.is_over(period) {
            return self.late(period, run.len() as u64);
        }
        let Self { open, tools, budget, .. } = self;
        let open = open.entry(period).or_insert_with(|| Open::new(tools, budget));
        let Some(measured) = &mut open.0 else { return };
        let counted = measured.count(run, &tools.lens, budget);
        open.check(counted, budget);
    }

    pub(super) fn late(&mut self, period: i64, releases: u64) {
        let place = self.finished.partition_point(|other| other.period < period);
        match self.finished.get_mut(place).filter(|found| found.period == period) {
            Some(found) => found.late += releases,
            None => {
                let late = releases;
                let found = Reading { period, late, is_over: true, ..Reading::default() };
                self.finished.insert(place, found);
                self.forget();
            }
        }
    }

    /// Time has come to this: periods may be over, and another one may have begun.
    pub fn advance(&mut self, time: i64) {
        if time <= self.clock {
            return;
        }
        self.clock = time;
        self.end_periods();
    }

    /// Closes the account of the periods that are over.
    pub(super) fn end_periods(&mut self) {
        let time = self.clock;
        while let Some(first) = self.open.first_entry()
            && is_over(&self.settings, time, *first.key())
        {
            let (period, mut open) = first.remove_entry();
            let found =
                Reading { is_over: true, ..open.reading(period, &self.tools, &mut self.budget) };
            if let Open(Some(measured)) = open {
                measured.free(&mut self.budget);
            }
            self.finished.push_back(found);
            self.forget();
        }
    }

    /// Time has come to where the gates are, whether they released anything or not.
    pub fn follow<'a>(&mut self, gates: impl IntoIterator<Item = &'a Gate>) {
        if let Some(clock) = gates.into_iter().map(|gate| gate.admission.clock).max() {
            self.advance(clock);
        }
    }

    fn forget(&mut self) {
        if self.finished.len() > MOST_FINISHED {
            self.finished.pop_front();
        }
    }
}
