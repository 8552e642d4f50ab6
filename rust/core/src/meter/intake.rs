//! What leaves, brought to the periods that it is of; and periods that are over.

use super::lens::{Desk, Field, Seen, Sight};
use super::memo::{Integers, Memo};
use super::open::Open;
use super::period::Period;
use super::{Meter, Reading, is_over};
use crate::column::Column;
use crate::error::Error;
use crate::gate::Gate;

/// Finished periods that are remembered.
const MOST_FINISHED: usize = 1000;
/// Rows that are hashed together: they stay in the cache.
const ROUND: usize = 256;
/// Rows from which on it is worth while to remember what came a moment ago.
const LONG: usize = 1 << 14;

/// What left of one field.
#[derive(Clone, Copy)]
pub struct Released<'a> {
    pub field: Field,
    pub values: &'a dyn Column,
    /// A byte for each row, 0 if its value did not leave; all did without it.
    pub rows: Option<&'a [u8]>,
}

#[derive(Default)]
pub(super) struct Scratch {
    memo: Memo,
    rows: Vec<u32>,
    desk: Desk,
    sights: Vec<Sight>,
}

impl Meter {
    /// Takes in columns of what left, in order, of one field or several.
    pub fn add(
        &mut self,
        times: &[i64],
        users: &dyn Column,
        fields: &[Released],
    ) -> Result<(), Error> {
        let all = times.len();
        for Released { values, rows, .. } in fields {
            let told = rows.map_or(all, <[u8]>::len);
            if users.len() != all || values.len() != all || told != all {
                let (times, users, attributes) = (all.min(told), users.len(), values.len());
                return Err(Error::Lengths { times, users, attributes });
            }
        }
        let Scratch { mut memo, mut rows, mut desk, mut sights } =
            std::mem::take(&mut self.scratch);
        let integers = integers(users, fields).filter(|_| all >= LONG);
        for start in (0..all).step_by(ROUND) {
            let span = start..all.min(start + ROUND);
            if let Some((users, values, released)) = integers
                && self.is_plain(&times[span.clone()])
            {
                // The shortest way.
                let (users, values) = (&users[span.clone()], &values[span.clone()]);
                choose(span.len(), released.rows.map(|rows| &rows[span.clone()]), &mut rows);
                let seen = Integers { users, values, rows: &rows, field: released.field };
                self.count_integers(&times[span], seen, &mut memo);
                continue;
            }
            sights.clear();
            for Released { field, values, rows: released } in fields {
                choose(span.len(), released.map(|rows| &rows[span.clone()]), &mut rows);
                let seen = Seen { times, users, values: *values, field: *field };
                self.lens.look(seen, (start, &rows), &mut desk, &mut sights);
            }
            if fields.len() > 1 && !self.is_plain(&times[span]) {
                // In the order of the records: what comes later may end the period of one before.
                sights.sort_by_key(|sight| sight.row);
            }
            self.count(&sights);
        }
        memo.clear();
        self.scratch = Scratch { memo, rows, desk, sights };
        Ok(())
    }

    /// Whether all times are in the present period, so that their order makes no difference.
    fn is_plain(&self, times: &[i64]) -> bool {
        let (from, to) = self.span(self.period());
        // The smallest number is no time.
        let from = from.max(i64::MIN + 1);
        self.clock != i64::MIN && times.iter().all(|time| (from..=to).contains(time))
    }

    /// Takes in rows of the present period.
    fn count_integers(&mut self, times: &[i64], seen: Integers, memo: &mut Memo) {
        let Some(latest) = seen.rows.iter().map(|row| times[*row as usize]).max() else { return };
        self.advance(latest);
        let period = self.period();
        memo.turn_to(period);
        let Self { open, lens, budget, .. } = self;
        let open = open.entry(period).or_insert_with(|| Open(Period::new(lens, budget).ok()));
        let Some(measured) = &mut open.0 else { return };
        let counted = measured.count_integers(seen, memo, lens, budget);
        open.check(counted, budget);
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
        let Self { open, lens, budget, .. } = self;
        let open = open.entry(period).or_insert_with(|| Open(Period::new(lens, budget).ok()));
        let Some(measured) = &mut open.0 else { return };
        let counted = measured.count(run, lens, budget);
        open.check(counted, budget);
    }

    fn late(&mut self, period: i64, releases: u64) {
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
                Reading { is_over: true, ..open.reading(period, &self.lens, &mut self.budget) };
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

/// The columns of one field, where they are integers and nothing is missing.
fn integers<'a>(
    users: &'a dyn Column,
    fields: &'a [Released<'a>],
) -> Option<(&'a [i64], &'a [i64], &'a Released<'a>)> {
    let [field] = fields else { return None };
    Some((users.words()?, field.values.words()?, field))
}

/// The rows that left.
fn choose(all: usize, released: Option<&[u8]>, rows: &mut Vec<u32>) {
    rows.clear();
    let Some(released) = released else {
        return rows.extend(0..all as u32);
    };
    rows.resize(all, 0);
    let mut count = 0;
    for (row, left) in released.iter().enumerate() {
        rows[count] = row as u32;
        count += usize::from(*left != 0);
    }
    rows.truncate(count);
}
