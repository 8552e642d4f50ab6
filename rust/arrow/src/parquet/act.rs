//! Batches: decided, and what leaves of them.

use super::hashes::Hashes;
use super::moments::{Moments, Unit};
use super::pseudonyms::Pseudonyms;
use super::words::Left;
use crate::columns::column;
use crate::times::{NO_TIME, Scale, times};
use crate::unsupported::Unsupported;
use arrow_array::builder::StringViewBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, StringArray, TypedDictionaryArray};
use arrow_buffer::BooleanBuffer;
use arrow_schema::{ArrowError, DataType};
use arrow_select::filter::{FilterBuilder, FilterPredicate};
use arrow_select::nullif::nullif;
use std::borrow::Cow;
use std::sync::Arc;
use zveil_core::{Column, Error, Gate, Keyring, Role, VEILED};

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
    /// For each attribute its users and its values, as its gate hashes them.
    hashes: Vec<(Hashes, Hashes)>,
    pseudonyms: Pseudonyms,
}

impl Act {
    pub fn new(plan: Plan) -> Self {
        let moments = Moments::new(plan.unit);
        let decisions = vec![Vec::new(); plan.veiled.len()];
        let hashes = plan.veiled.iter().map(|_| Default::default()).collect();
        let pseudonyms = Pseudonyms::default();
        Self { plan, moments, records: 0, leaving: 0, decisions, hashes, pseudonyms }
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

    /// Says that what leaves next is in another row group than what has left.
    pub fn begin_group(&mut self) {
        self.pseudonyms.begin_list();
    }

    /// Decides the rows of a batch, one gate for each attribute, and gives the columns of those that
    /// leave.
    pub fn act<'a>(
        &'a mut self,
        batch: &RecordBatch,
        gates: &mut [&mut Gate],
        keyring: Option<&mut Keyring>,
    ) -> Result<Vec<Left<'a>>, ActError> {
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
        let leaving = (!is_whole).then_some(&leaves);
        let users = match keyring {
            Some(keyring) => {
                self.pseudonyms.name(&times_of_all, unit, leaving, keyring)?;
                Some(self.pseudonyms.of(&columns[USER], leaving)?)
            }
            None => None,
        };
        let mut left: Vec<Left<'a>> = columns.into_iter().map(Left::Values).collect();
        if let Some(users) = users {
            left[USER] = users;
        }
        for (number, (_, hashes)) in self.hashes.iter().enumerate() {
            let values = &mut left[ATTRIBUTES + number];
            // A text instead of what is veiled is another value than the one that was hashed.
            if self.plan.veiled[number].is_none() {
                *values = with_hashes(std::mem::replace(values, Left::nothing()), hashes, leaving);
            }
        }
        Ok(left)
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
        let hashes = self.hashes.iter_mut().zip(&mut self.decisions);
        for ((gate, values), ((of_users, of_values), decisions)) in
            gates.iter_mut().zip(attributes).zip(hashes)
        {
            let beyond = if gate.settings().max_future.is_some() { i64::MAX } else { NO_TIME };
            let known = read.take().filter(|(other, _)| *other == beyond);
            let (_, times) = match known {
                Some(known) => read.insert(known),
                None => read.insert((beyond, times(&columns[TIME], Scale { unit, beyond })?)),
            };
            let users = hashed(of_users, &columns[USER], Role::User, gate)?;
            let values = hashed(of_values, values, Role::Attribute, gate)?;
            decisions.clear();
            decisions.resize(rows, VEILED);
            gate.observe_many(times, &*users, &*values, decisions)?;
        }
        Ok(())
    }
}

/// A column for a gate. Values of text are hashed beforehand where something else has a use for that.
fn hashed<'a>(
    hashes: &'a mut Hashes,
    values: &'a ArrayRef,
    role: Role,
    gate: &Gate,
) -> Result<Box<dyn Column + 'a>, ActError> {
    let is_words = matches!(values.data_type(), DataType::Dictionary(_, _));
    if !is_words && (role == Role::User || !is_view(values)) {
        return Ok(column(values, role, None)?);
    }
    hashes.prepare(values, role, gate)?;
    Ok(hashes.column(values))
}

fn is_view(values: &ArrayRef) -> bool {
    matches!(values.data_type(), DataType::Utf8View | DataType::BinaryView)
}

/// Values with the hashes of those that leave, or of their dictionary.
fn with_hashes<'a>(left: Left<'a>, of: &'a Hashes, leaves: Option<&BooleanBuffer>) -> Left<'a> {
    match left {
        Left::Values(values) if matches!(values.data_type(), DataType::Dictionary(_, _)) => {
            Left::Hashed { values, hashes: Cow::Borrowed(of.all()) }
        }
        Left::Values(values) if is_view(&values) => {
            let hashes = match leaves {
                None => Cow::Borrowed(of.all()),
                Some(leaves) => leaves.set_indices().map(|row| of.all()[row]).collect(),
            };
            Left::Hashed { values, hashes }
        }
        other => other,
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
    let mut put = |(value, is_released): (Option<&str>, bool)| {
        made.append_option(if is_released { value } else { Some(text) });
    };
    match values.as_dictionary_opt::<Int32Type>().and_then(|coded| coded.downcast_dict()) {
        Some(coded) => {
            let coded: TypedDictionaryArray<'_, Int32Type, StringArray> = coded;
            coded.into_iter().zip(mask.values()).for_each(&mut put);
        }
        None => values.as_string_view().iter().zip(mask.values()).for_each(&mut put),
    }
    Arc::new(made.finish())
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

    fn array(left: Left) -> ArrayRef {
        match left {
            Left::Values(values) | Left::Hashed { values, .. } => values,
            Left::Coded { .. } => panic!("there is no dictionary"),
        }
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
        let left = left.into_iter().map(array).collect();
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
