//! One Python object as a user or an attribute.

use crate::columns::unsupported;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyString};
use zveil_core::{Role, Value};

/// Keeps what a value borrows from.
pub(crate) enum Held<'a, 'py> {
    Text(&'a Bound<'py, PyString>),
    Bytes(&'a Bound<'py, PyBytes>),
    Digits(String),
    Other(Option<Value<'static>>),
}

impl<'a, 'py> Held<'a, 'py> {
    #[inline]
    pub(crate) fn new(object: &'a Bound<'py, PyAny>, role: Role) -> PyResult<Self> {
        if let Ok(text) = object.cast::<PyString>() {
            return Ok(Self::Text(text));
        }
        if let Ok(bytes) = object.cast::<PyBytes>() {
            return Ok(Self::Bytes(bytes));
        }
        if object.is_none() {
            return Ok(Self::Other(None));
        }
        if let Some(number) = Self::number(object, role)? {
            return Ok(number);
        }
        // NumPy's numbers and bools give the plain ones that they stand for.
        let plain = object.call_method0("item").map_err(|_| refused(object, role))?;
        Self::number(&plain, role)?.ok_or_else(|| refused(object, role))
    }

    fn number(object: &Bound<'py, PyAny>, role: Role) -> PyResult<Option<Self>> {
        if let Ok(truth) = object.cast::<PyBool>() {
            return match role {
                Role::User => Err(refused(object, role)),
                Role::Attribute => Ok(Some(Self::Other(Some(Value::Bool(truth.is_true()))))),
            };
        }
        if let Ok(number) = object.cast::<PyFloat>() {
            return Ok(Some(Self::Other(Some(Value::Float(number.value())))));
        }
        if object.is_instance_of::<PyInt>() {
            return Self::integer(object).map(Some);
        }
        Ok(None)
    }

    fn integer(number: &Bound<'py, PyAny>) -> PyResult<Self> {
        if let Ok(number) = number.extract::<i64>() {
            return Ok(Self::Other(Some(Value::Integer(number))));
        }
        if let Ok(number) = number.extract::<u64>() {
            return Ok(Self::Other(Some(Value::Unsigned(number))));
        }
        Ok(Self::Digits(number.str()?.to_str()?.to_owned()))
    }

    #[inline]
    pub(crate) fn value(&self, role: Role) -> PyResult<Option<Value<'_>>> {
        Ok(match self {
            Self::Text(text) => Some(Value::Text(utf8(text, role)?.as_bytes())),
            Self::Bytes(bytes) => Some(Value::Bytes(bytes.as_bytes())),
            Self::Digits(digits) => Some(Value::Digits(digits.as_bytes())),
            Self::Other(value) => *value,
        })
    }
}

#[inline(always)]
pub(crate) fn utf8<'a>(text: &'a Bound<'_, PyString>, role: Role) -> PyResult<&'a str> {
    // Python's own error quotes the text.
    text.to_str().map_err(|_| {
        let name = name(role);
        PyValueError::new_err(format!(
            "{name}: the text has a lone surrogate and is not Unicode; decode it with \
             errors=\"replace\" or pass bytes"
        ))
    })
}

fn refused(object: &Bound<'_, PyAny>, role: Role) -> PyErr {
    let expected = match role {
        Role::User => "text, bytes, an integer or None",
        Role::Attribute => "text, bytes, an integer, a float, a bool or None",
    };
    let got = object.get_type().name().map(|name| name.to_string());
    unsupported(name(role), expected, &got.unwrap_or_default())
}

fn name(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        Role::Attribute => "attribute",
    }
}
