//! Batches: decided, and what leaves of them.

use super::moments::{Moments, Unit};
use crate::columns::column;
use crate::times::{NO_TIME, Scale, times};
use crate::unsupported::Unsupported;
use arrow_array::builder::StringViewBuilder;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, LargeStringArray, RecordBatch};
use arrow_buffer::{BooleanBuffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::ArrowError;
use arrow_select::filter::{FilterBuilder, FilterPredicate};
use arrow_select::nullif::nullif;
use std::borrow::Cow;
use std::sync::Arc;
use zveil_core::{Error, Gate, Keyring, Named, Role, VEILED};

/// Users whose pseudonyms are made in one go.
const SOME: usize = 1024;
/// Letters of most pseudonyms.
const LETTERS: usize = 20;

const TIME: usize = 0;
const USER: usize = 1;
const ATTRIBUTES: usize = 2;

/// Why rows cannot be decided.
#[derive(Debug, thiserror::Error)]
pub enum ActError {
    #[error(transparent)]
    Gate(#[from] Error),
    #[error(transparent)]
    Column(#[from] Unsupported),
    /// What the library says may quote data.
    #[error("a column is not what its type says")]
    Arrow,
}

impl From<ArrowError> for ActError {
    fn from(_: ArrowError) -> Self {
        Self::Arrow
    }
}

/// What leaves of a record.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What a veiled value of each attribute becomes: a text, or `None` for null.
    pub veiled: Vec<Option<String>>,
    /// A record with nothing released leaves all the same, its values veiled.
    pub is_blank: bool,
    /// What times that are numbers are; found out from the first of them by default.
    pub unit: Option<Unit>,
    /// Nothing behind the first time that is bad is decided.
    pub stops: bool,
}

/// Batches of time, user, attributes and what is kept: decided in their order.
pub struct Act {
    plan: Plan,
    moments: Moments,
    pub records: u64,
    /// Records that left, or would have if those with nothing released did not.
    pub leaving: u64,
    decisions: Vec<Vec<i8>>,
}

impl Act {
    pub fn new(plan: Plan) -> Self {
        let moments = Moments::new(plan.unit);
        let decisions = vec![Vec::new(); plan.veiled.len()];
        Self { plan, moments, records: 0, leaving: 0, decisions }
    }

    /// What numbers are, stated or found out by now.
    pub fn unit(&self) -> Option<Unit> {
        self.moments.unit
    }

    /// Records left out because of their time.
    pub fn bad(&self) -> u64 {
        self.moments.bad
    }

    /// Goes on from the counts of another one, and from what that found out.
    pub fn resume(&mut self, records: u64, leaving: u64, bad: u64, unit: Option<Unit>) {
        (self.records, self.leaving, self.moments.bad) = (records, leaving, bad);
        self.moments.unit = unit;
    }

    /// Decides the rows of a batch, one gate for each attribute, and gives the columns of those that
    /// leave. Text may come as views, pseudonyms as large strings.
    pub fn act(
        &mut self,
        batch: &RecordBatch,
        gates: &mut [&mut Gate],
        keyring: Option<&mut Keyring>,
    ) -> Result<Vec<ArrayRef>, ActError> {
        let (unit, good) = self.moments.read(batch.column(TIME));
        let mut columns = batch.columns().to_vec();
        if let Some(good) = good {
            if self.plan.stops {
                let first = good.values().iter().position(|good| !good).unwrap_or(good.len());
                columns.iter_mut().for_each(|column| *column = column.slice(0, first));
            } else {
                let good = FilterBuilder::new(&good).optimize().build();
                columns = chosen(&columns, &good)?;
            }
        }
        let rows = columns[TIME].len();
        self.records += rows as u64;
        self.decide(&columns, unit, gates)?;
        let masks = self.decisions.iter().map(|decisions| released(decisions));
        let mut masks: Vec<_> = masks.map(|mask| BooleanArray::new(mask, None)).collect();
        let any = masks.iter().map(|mask| mask.values().clone());
        let leaves = any.reduce(|one, other| &one | &other).unwrap_or_else(|| {
            // There is no attribute.
            BooleanBuffer::new_unset(rows)
        });
        let leaving = leaves.count_set_bits();
        self.leaving += leaving as u64;
        let times_of_all = Arc::clone(&columns[TIME]);
        let is_whole = self.plan.is_blank || leaving == rows;
        if !is_whole {
            let leaving = BooleanArray::new(leaves.clone(), None);
            let leaving = FilterBuilder::new(&leaving).optimize().build();
            columns = chosen(&columns, &leaving)?;
            if let [_] = masks[..] {
                // What is left has its only value released.
                masks.clear();
            }
            for mask in &mut masks {
                *mask = leaving.filter(mask)?.as_boolean().clone();
            }
        }
        for (number, mask) in masks.iter().enumerate() {
            let values = &mut columns[ATTRIBUTES + number];
            if mask.false_count() > 0 {
                *values = match &self.plan.veiled[number] {
                    None => nullif(values, &BooleanArray::new(!mask.values(), None))?,
                    Some(text) => veiled(values, mask, text),
                };
            }
        }
        if let Some(keyring) = keyring {
            let leaving = (!is_whole).then_some(&leaves);
            columns[USER] = pseudonyms(&columns[USER], &times_of_all, unit, leaving, keyring)?;
        }
        Ok(columns)
    }

    fn decide(
        &mut self,
        columns: &[ArrayRef],
        unit: i64,
        gates: &mut [&mut Gate],
    ) -> Result<(), ActError> {
        let rows = columns[TIME].len();
        let mut read: Option<(i64, Cow<'_, [i64]>)> = None;
        let attributes = &columns[ATTRIBUTES..];
        for ((gate, values), decisions) in gates.iter_mut().zip(attributes).zip(&mut self.decisions)
        {
            let beyond = if gate.settings().max_future.is_some() { i64::MAX } else { NO_TIME };
            let known = read.take().filter(|(other, _)| *other == beyond);
            let (_, times) = match known {
                Some(known) => read.insert(known),
                None => read.insert((beyond, times(&columns[TIME], Scale { unit, beyond })?)),
            };
            let users = column(&columns[USER], Role::User, Some(&**gate))?;
            let values = column(values, Role::Attribute, Some(&**gate))?;
            decisions.clear();
            decisions.resize(rows, VEILED);
            gate.observe_many(times, &*users, &*values, decisions)?;
        }
        Ok(())
    }
}

fn released(decisions: &[i8]) -> BooleanBuffer {
    BooleanBuffer::collect_bool(decisions.len(), |row| decisions[row] != VEILED)
}

fn chosen(columns: &[ArrayRef], rows: &FilterPredicate) -> Result<Vec<ArrayRef>, ActError> {
    columns.iter().map(|column| Ok(rows.filter(column)?)).collect()
}

/// A column of text with another instead of what is veiled.
fn veiled(values: &ArrayRef, mask: &BooleanArray, text: &str) -> ArrayRef {
    let mut made = StringViewBuilder::with_capacity(values.len());
    for (value, is_released) in values.as_string_view().iter().zip(mask.values()) {
        made.append_option(if is_released { value } else { Some(text) });
    }
    Arc::new(made.finish())
}

/// What users leave as. The time of every record counts, also of those that do not leave.
fn pseudonyms(
    users: &ArrayRef,
    times_of_all: &ArrayRef,
    unit: i64,
    leaves: Option<&BooleanBuffer>,
    keyring: &mut Keyring,
) -> Result<ArrayRef, ActError> {
    let mut named = Named::default();
    let scale = Scale { unit, beyond: NO_TIME };
    let moments = if keyring.rotates() { times(times_of_all, scale)? } else { Cow::default() };
    keyring.name(&moments, |row| leaves.is_none_or(|leaves| leaves.value(row)), &mut named)?;
    keyring.settle()?;
    let count = users.len();
    let users = column(users, Role::User, None)?;
    let mut letters = Vec::with_capacity(LETTERS * count);
    let mut ends: Vec<i64> = Vec::with_capacity(count + 1);
    ends.push(0);
    let mut missing = Vec::new();
    let mut found = Vec::new();
    let mut records: Box<dyn Iterator<Item = usize>> = match leaves {
        Some(leaves) => Box::new(leaves.set_indices()),
        None => Box::new(0..count),
    };
    let mut part: Vec<usize> = Vec::with_capacity(SOME);
    for first in (0..count).step_by(SOME) {
        part.clear();
        part.extend(records.by_ref().take(SOME));
        let of_part = part.iter().zip(first..).map(|(record, at)| (*record, users.value(at)));
        named.pseudonyms(of_part, &mut found);
        for (one, at) in found.iter().zip(first..) {
            match one {
                Some(name) => name.put(&mut letters),
                None => missing.push(at),
            }
            ends.push(letters.len() as i64);
        }
    }
    let nulls = (!missing.is_empty()).then(|| {
        let mut present = vec![true; count];
        missing.iter().for_each(|at| present[*at] = false);
        NullBuffer::from(present)
    });
    let ends = OffsetBuffer::new(ScalarBuffer::from(ends));
    Ok(Arc::new(LargeStringArray::try_new(ends, letters.into(), nulls)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{Int64Array, StringViewArray, TimestampMillisecondArray};
    use arrow_schema::{Field, Schema};
    use zveil_core::{PseudonymFormat, Secret, Settings};

    fn batch(columns: Vec<ArrayRef>) -> RecordBatch {
        let fields = columns.iter().enumerate().map(|(number, column)| {
            Field::new(number.to_string(), column.data_type().clone(), true)
        });
        RecordBatch::try_new(Arc::new(Schema::new(fields.collect::<Vec<_>>())), columns).unwrap()
    }

    fn rows() -> RecordBatch {
        let text = |values: [Option<&str>; 4]| -> ArrayRef {
            Arc::new(StringViewArray::from(values.to_vec()))
        };
        batch(vec![
            Arc::new(TimestampMillisecondArray::from(vec![1_000, 1_001, 1_002, 1_003])),
            text([Some("ada"), Some("bob"), None, Some("eve")]),
            text([Some("a"), Some("a"), Some("a"), Some("b")]),
            text([Some("x"), Some("y"), Some("z"), Some("x")]),
            Arc::new(Int64Array::from(vec![1, 2, 3, 4])),
        ])
    }

    fn acted(veiled: &[Option<&str>], is_blank: bool) -> (Vec<ArrayRef>, Act) {
        let veiled = veiled.iter().map(|text| text.map(str::to_owned)).collect();
        let mut act = Act::new(Plan { veiled, is_blank, unit: None, stops: false });
        let gate = || Gate::new(Settings::new(2, 60_000_000_000), Secret::new([1; 32])).unwrap();
        let (mut one, mut other) = (gate(), gate());
        let mut gates = [&mut one, &mut other];
        let mut keyring = Keyring::fixed(&Secret::new([7; 32]), PseudonymFormat::Base32);
        let gates = &mut gates[..act.plan.veiled.len()];
        let left = act.act(&rows(), gates, Some(&mut keyring)).unwrap();
        (left, act)
    }

    fn texts(column: &ArrayRef) -> Vec<Option<&str>> {
        column.as_string_view().iter().collect()
    }

    #[test]
    fn what_has_a_value_released_leaves() {
        let (left, act) = acted(&[None], false);
        assert_eq!((act.records, act.leaving, left[0].len()), (4, 1, 1));
        assert_eq!(texts(&left[2]), [Some("a")]);
        assert_eq!(texts(&left[3]), [Some("y")]);
        assert_ne!(left[1].as_string::<i64>().value(0), "bob");
    }

    #[test]
    fn veiled_values_of_what_leaves_are_null() {
        let (left, act) = acted(&[None, None], false);
        assert_eq!((act.leaving, left[0].len()), (2, 2));
        assert_eq!(texts(&left[2]), [Some("a"), None]);
        assert_eq!(texts(&left[3]), [None, Some("x")]);
    }

    #[test]
    fn blank_records_leave_too_and_a_text_stands_for_what_is_veiled() {
        let (left, act) = acted(&[Some("-")], true);
        assert_eq!((act.leaving, left[0].len()), (1, 4));
        assert_eq!(texts(&left[2]), [Some("-"), Some("a"), Some("-"), Some("-")]);
        assert!(left[1].is_null(2), "nobody has no pseudonym");
        assert_eq!(left[1].null_count(), 1);
    }
}
