//! Times of batches: what numbers mean is found out from the first of them.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, BooleanArray, PrimitiveArray};
use arrow_buffer::BooleanBuffer;
use arrow_schema::DataType;
use num_traits::AsPrimitive;

/// Numbers below are seconds; each finer unit has a thousand times as many.
const SECONDS_BELOW: f64 = 1e11;

/// What numbers are: seconds, milliseconds, microseconds or nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit(u32);

impl Unit {
    const NAMES: [&str; 4] = ["s", "ms", "us", "ns"];

    pub fn from_name(name: &str) -> Option<Self> {
        (0..).zip(Self::NAMES).find(|(_, other)| *other == name).map(|(unit, _)| Self(unit))
    }

    pub fn name(self) -> &'static str {
        Self::NAMES[self.0 as usize]
    }

    fn nanoseconds(self) -> i64 {
        1_000_i64.pow(3 - self.0)
    }

    /// Below that a number would have been taken for one of a coarser unit.
    fn least(self) -> f64 {
        if self.0 == 0 { 0.0 } else { SECONDS_BELOW * 1e3_f64.powi(self.0 as i32 - 1) }
    }

    /// What most numbers are by their size: 10 digits are seconds, 13 milliseconds, etc.
    fn of_most(numbers: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut counts = [0_u64; 4];
        for number in numbers.into_iter().map(f64::abs).filter(|number| number.is_finite()) {
            let unit = (1..4).rev().find(|unit| number >= Self(*unit).least()).unwrap_or(0);
            counts[unit as usize] += 1;
        }
        let most = counts.iter().max().filter(|most| **most > 0)?;
        counts.iter().position(|count| count == most).map(|unit| Self(unit as u32))
    }
}

/// Reads the times of a stream's batches.
pub(super) struct Moments {
    /// Stated, or found out by now.
    pub(super) unit: Option<Unit>,
    is_guessed: bool,
    /// Numbers of a coarser unit than most are.
    pub(super) bad: u64,
}

impl Moments {
    pub(super) fn new(stated: Option<Unit>) -> Self {
        Self { unit: stated, is_guessed: stated.is_none(), bad: 0 }
    }

    /// How a column's numbers are read, and which rows have a time that can be; `None` for all.
    pub(super) fn read(&mut self, column: &ArrayRef) -> (i64, Option<BooleanArray>) {
        if !is_number(column.data_type()) {
            return (1, None);
        }
        if self.unit.is_none() {
            self.unit = Unit::of_most(numbers(column));
        }
        let Some(unit) = self.unit else { return (Unit(0).nanoseconds(), None) };
        if !self.is_guessed || unit.0 == 0 {
            return (unit.nanoseconds(), None);
        }
        let least = unit.least();
        let good = large_ones(column, least);
        let bad = good.len() - good.count_set_bits();
        self.bad += bad as u64;
        (unit.nanoseconds(), (bad > 0).then(|| BooleanArray::new(good, None)))
    }
}

/// Whether values of a type are times only by what they are said to be.
pub(super) fn is_number(kind: &DataType) -> bool {
    kind.is_integer() || kind.is_floating()
}

/// Calls `$call` with a column as what it is, for each type that [`is_number`].
macro_rules! as_numbers {
    ($column:expr, $otherwise:expr, $call:ident($($argument:expr),*)) => {
        match $column.data_type() {
            DataType::Int64 => $call::<Int64Type>($column.as_primitive(), $($argument),*),
            DataType::Int32 => $call::<Int32Type>($column.as_primitive(), $($argument),*),
            DataType::Int16 => $call::<Int16Type>($column.as_primitive(), $($argument),*),
            DataType::Int8 => $call::<Int8Type>($column.as_primitive(), $($argument),*),
            DataType::UInt64 => $call::<UInt64Type>($column.as_primitive(), $($argument),*),
            DataType::UInt32 => $call::<UInt32Type>($column.as_primitive(), $($argument),*),
            DataType::UInt16 => $call::<UInt16Type>($column.as_primitive(), $($argument),*),
            DataType::UInt8 => $call::<UInt8Type>($column.as_primitive(), $($argument),*),
            DataType::Float64 => $call::<Float64Type>($column.as_primitive(), $($argument),*),
            DataType::Float32 => $call::<Float32Type>($column.as_primitive(), $($argument),*),
            _ => $otherwise,
        }
    };
}

/// The numbers that are there.
fn numbers(column: &ArrayRef) -> Vec<f64> {
    fn of<T: ArrowPrimitiveType<Native: AsPrimitive<f64>>>(column: &PrimitiveArray<T>) -> Vec<f64> {
        column.iter().flatten().map(AsPrimitive::as_).collect()
    }
    as_numbers!(column, Vec::new(), of())
}

/// Which numbers are at least so far from 0; a missing one is.
fn large_ones(column: &ArrayRef, least: f64) -> BooleanBuffer {
    fn of<T>(column: &PrimitiveArray<T>, least: f64) -> BooleanBuffer
    where
        T: ArrowPrimitiveType<Native: AsPrimitive<f64> + AsPrimitive<i128>>,
    {
        BooleanBuffer::collect_bool(column.len(), |row| {
            let number = column.value(row);
            let is_large = if T::DATA_TYPE.is_integer() {
                let number: i128 = number.as_();
                number.abs() >= least as i128
            } else {
                let number: f64 = number.as_();
                number.abs() >= least
            };
            is_large || column.is_null(row)
        })
    }
    as_numbers!(column, BooleanBuffer::new_set(column.len()), of(least))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{Float64Array, Int64Array};
    use std::sync::Arc;

    #[test]
    fn the_unit_is_that_of_most() {
        let of = |numbers: &[f64]| Unit::of_most(numbers.iter().copied()).map(Unit::name);
        assert_eq!(of(&[1.7e9, 1.7e9, 1.7e18]), Some("s"));
        assert_eq!(of(&[1.7e12, -1.7e12, f64::NAN]), Some("ms"));
        assert_eq!(of(&[1.7e15]), Some("us"));
        assert_eq!(of(&[1.7e18, f64::INFINITY]), Some("ns"));
        assert_eq!(of(&[f64::NAN]), None);
    }

    #[test]
    fn numbers_of_a_coarser_unit_are_bad_where_the_unit_was_guessed() {
        let times: ArrayRef = Arc::new(Int64Array::from(vec![
            Some(1_700_000_000_000),
            Some(1_700_000_000),
            None,
            Some(-1_700_000_000_000),
        ]));
        let mut moments = Moments::new(None);
        let (unit, good) = moments.read(&times);
        assert_eq!((unit, moments.bad), (1_000_000, 1));
        assert_eq!(good, Some(BooleanArray::from(vec![true, false, true, true])));
        let mut moments = Moments::new(Unit::from_name("ms"));
        assert_eq!(moments.read(&times), (1_000_000, None));
    }

    #[test]
    fn nothing_is_known_before_the_first_number() {
        let mut moments = Moments::new(None);
        let none: ArrayRef = Arc::new(Float64Array::from(vec![None, Some(f64::NAN)]));
        assert_eq!(moments.read(&none), (1_000_000_000, None));
        assert_eq!(moments.unit, None);
        let nanos: ArrayRef = Arc::new(Float64Array::from(vec![1.7e18, f64::NAN]));
        let (unit, good) = moments.read(&nanos);
        assert_eq!((unit, moments.bad), (1, 1));
        assert_eq!(good, Some(BooleanArray::from(vec![true, false])));
    }
}
