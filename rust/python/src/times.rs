//! Times of any kind become nanoseconds since 1970; the smallest 64-bit number is "no time".

use crate::columns::{Import, unsupported};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Date64Type, Float16Type, Float32Type, Float64Type, Int8Type,
    Int16Type, Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, TimeUnit};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt};
use std::borrow::Cow;

/// No time: missing, not a number, or before the year 1678.
pub(crate) const NONE: i64 = i64::MIN;

const MICROSECOND: i64 = 1_000;
const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 86_400 * SECOND;

/// How numbers are read.
#[derive(Clone, Copy)]
pub(crate) struct Scale {
    /// Nanoseconds in one.
    pub(crate) unit: i64,
    /// What becomes of times past the year 2262: the largest where the gate refuses the future
    /// (milliseconds taken for seconds are found out so), no time where it does not.
    pub(crate) beyond: i64,
}

impl Scale {
    #[inline(always)]
    fn integer(self, number: i64, unit: i64) -> i64 {
        match number.checked_mul(unit) {
            Some(time) => time,
            None if number > 0 => self.beyond,
            None => NONE,
        }
    }

    fn unsigned(self, number: u64) -> i64 {
        i64::try_from(number).map_or(self.beyond, |number| self.integer(number, self.unit))
    }

    /// To the nearest microsecond, as much as a float of seconds can tell at today's dates; to the
    /// nearest nanosecond where numbers are nanoseconds.
    fn float(self, number: f64) -> i64 {
        if !number.is_finite() {
            return NONE;
        }
        let grain = self.unit.min(MICROSECOND);
        let grains = nearest(number * (self.unit / grain) as f64);
        // Floats beyond 64 bits become the limits, and those are caught as too large.
        self.integer(grains as i64, grain)
    }
}

/// The nearest whole number, to even from the middle. `round_ties_even` would be a call into a
/// library on the CPUs that this is compiled for.
fn nearest(number: f64) -> f64 {
    /// Added to a smaller number, leaves no bits behind the point.
    const WHOLE: f64 = 6_755_399_441_055_744.0; // 1.5 * 2^52
    if number.abs() < 2_251_799_813_685_248.0 { (number + WHOLE) - WHOLE } else { number }
}

/// One time from Python.
#[inline(always)]
pub(crate) fn instant(value: &Bound<'_, PyAny>, scale: Scale) -> PyResult<i64> {
    if let Ok(number) = value.cast_exact::<PyFloat>() {
        return Ok(scale.float(number.value()));
    }
    instant_otherwise(value, scale)
}

fn instant_otherwise(value: &Bound<'_, PyAny>, scale: Scale) -> PyResult<i64> {
    if value.is_exact_instance_of::<PyInt>() {
        return Ok(match value.extract::<i64>() {
            Ok(number) => scale.integer(number, scale.unit),
            Err(_) if value.gt(0)? => scale.beyond,
            Err(_) => NONE,
        });
    }
    if let Ok(number) = value.cast::<PyFloat>() {
        return Ok(scale.float(number.value()));
    }
    if value.is_none() {
        return Ok(NONE);
    }
    if value.is_instance_of::<PyBool>() {
        return Err(unsupported("time", "a number or a datetime", "bool"));
    }
    // Dates, NumPy's numbers and datetimes: rare one at a time, so Python may do it.
    let nanoseconds = value.py().import("zveil.times")?.getattr("nanoseconds")?;
    instant_from(&nanoseconds.call1((value,))?, scale)
}

/// `zveil.times.nanoseconds` answers with a number to scale, or exact nanoseconds in a tuple.
fn instant_from(answer: &Bound<'_, PyAny>, scale: Scale) -> PyResult<i64> {
    if let Ok((exact,)) = answer.extract::<(Bound<'_, PyAny>,)>() {
        return instant(&exact, Scale { unit: 1, ..scale });
    }
    instant(answer, scale)
}

/// A column of times; borrowed where it is nanoseconds already.
pub(crate) fn column(array: &ArrayRef, scale: Scale) -> PyResult<Cow<'_, [i64]>> {
    Ok(match array.data_type() {
        DataType::Null => Cow::Owned(vec![NONE; array.len()]),
        DataType::Int64 => integers::<Int64Type>(array, scale, scale.unit),
        DataType::Int32 => map::<Int32Type>(array, |n| scale.integer(n.into(), scale.unit)),
        DataType::Int16 => map::<Int16Type>(array, |n| scale.integer(n.into(), scale.unit)),
        DataType::Int8 => map::<Int8Type>(array, |n| scale.integer(n.into(), scale.unit)),
        DataType::UInt64 => map::<UInt64Type>(array, |n| scale.unsigned(n)),
        DataType::UInt32 => map::<UInt32Type>(array, |n| scale.unsigned(n.into())),
        DataType::UInt16 => map::<UInt16Type>(array, |n| scale.unsigned(n.into())),
        DataType::UInt8 => map::<UInt8Type>(array, |n| scale.unsigned(n.into())),
        DataType::Float64 => map::<Float64Type>(array, |n| scale.float(n)),
        DataType::Float32 => map::<Float32Type>(array, |n| scale.float(n.into())),
        DataType::Float16 => map::<Float16Type>(array, |n| scale.float(n.into())),
        DataType::Date32 => map::<Date32Type>(array, |n| scale.integer(n.into(), DAY)),
        DataType::Date64 => integers::<Date64Type>(array, scale, SECOND / 1_000),
        DataType::Timestamp(unit, _) => match unit {
            TimeUnit::Second => integers::<TimestampSecondType>(array, scale, SECOND),
            TimeUnit::Millisecond => {
                integers::<TimestampMillisecondType>(array, scale, SECOND / 1_000)
            }
            TimeUnit::Microsecond => {
                integers::<TimestampMicrosecondType>(array, scale, MICROSECOND)
            }
            TimeUnit::Nanosecond => integers::<TimestampNanosecondType>(array, scale, 1),
        },
        other => {
            let expected = "numbers, timestamps or dates";
            return Err(unsupported("times", expected, &other.to_string()));
        }
    })
}

fn integers<T>(array: &ArrayRef, scale: Scale, unit: i64) -> Cow<'_, [i64]>
where
    T: ArrowPrimitiveType<Native = i64>,
{
    let numbers = array.as_primitive::<T>();
    if unit == 1 && numbers.null_count() == 0 {
        return Cow::Borrowed(numbers.values());
    }
    map::<T>(array, |number| scale.integer(number, unit))
}

fn map<T: ArrowPrimitiveType>(array: &ArrayRef, time: impl Fn(T::Native) -> i64) -> Cow<'_, [i64]> {
    let numbers = array.as_primitive::<T>();
    if numbers.null_count() == 0 {
        return numbers.values().iter().map(|number| time(*number)).collect();
    }
    numbers.iter().map(|number| number.map_or(NONE, &time)).collect()
}

/// A column of times handed over through the Arrow C interface.
pub(crate) fn import(object: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    Import::new(object, "times").array()
}
