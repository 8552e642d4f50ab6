//! Times of any kind become nanoseconds since 1970; the smallest 64-bit number is "no time".

use crate::unsupported::Unsupported;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Date64Type, Float16Type, Float32Type, Float64Type, Int8Type,
    Int16Type, Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, TimeUnit};
use std::borrow::Cow;

/// No time: missing, not a number, or before the year 1678.
pub const NO_TIME: i64 = i64::MIN;

const MICROSECOND: i64 = 1_000;
const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 86_400 * SECOND;

/// How numbers are read.
#[derive(Clone, Copy)]
pub struct Scale {
    /// Nanoseconds in one.
    pub unit: i64,
    /// What becomes of times past the year 2262: the largest where the gate refuses the future
    /// (milliseconds taken for seconds are found out so), no time where it does not.
    pub beyond: i64,
}

impl Scale {
    #[inline(always)]
    pub fn integer(self, number: i64, unit: i64) -> i64 {
        match number.checked_mul(unit) {
            Some(time) => time,
            None if number > 0 => self.beyond,
            None => NO_TIME,
        }
    }

    fn unsigned(self, number: u64) -> i64 {
        i64::try_from(number).map_or(self.beyond, |number| self.integer(number, self.unit))
    }

    /// To the nearest microsecond, as much as a float of seconds can tell at today's dates; to the
    /// nearest nanosecond where numbers are nanoseconds.
    pub fn float(self, number: f64) -> i64 {
        if !number.is_finite() {
            return NO_TIME;
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

/// A column of times; borrowed where it is nanoseconds already.
pub fn times(array: &ArrayRef, scale: Scale) -> Result<Cow<'_, [i64]>, Unsupported> {
    Ok(match array.data_type() {
        DataType::Null => Cow::Owned(vec![NO_TIME; array.len()]),
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
            return Err(Unsupported::new("times", expected, other));
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
    numbers.iter().map(|number| number.map_or(NO_TIME, &time)).collect()
}
