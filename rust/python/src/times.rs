//! Times from Python.

use crate::columns::{Import, refused, unsupported};
use arrow_array::ArrayRef;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt};
use std::borrow::Cow;
pub(crate) use zveil_arrow::{NO_TIME as NONE, Scale};

/// One time from Python.
#[inline(always)]
pub(crate) fn instant(value: &Bound<'_, PyAny>, scale: Scale) -> PyResult<i64> {
    if let Ok(number) = value.cast_exact::<PyFloat>() {
        return Ok(scale.float(number.value()));
    }
    if value.is_exact_instance_of::<PyInt>()
        && let Ok(number) = value.extract::<i64>()
    {
        return Ok(scale.integer(number, scale.unit));
    }
    instant_otherwise(value, scale)
}

fn instant_otherwise(value: &Bound<'_, PyAny>, scale: Scale) -> PyResult<i64> {
    if value.is_exact_instance_of::<PyInt>() {
        // Past 64 bits.
        return Ok(if value.gt(0)? { scale.beyond } else { NONE });
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
    zveil_arrow::times(array, scale).map_err(refused)
}

/// A column of times handed over through the Arrow C interface.
pub(crate) fn import(object: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    Import::new(object, "times").array()
}
