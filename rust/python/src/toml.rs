//! TOML with the place of every key and value, which Python's own reader does not tell.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A line and a column, both from 1; columns are characters.
type Place = (usize, usize);

fn place(text: &str, offset: usize) -> Place {
    let before = text.get(..offset).unwrap_or(text);
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    (before.matches('\n').count() + 1, before[start..].chars().count() + 1)
}

fn table<'py>(py: Python<'py>, text: &str, table: &DeTable<'_>) -> PyResult<Bound<'py, PyList>> {
    // The parser sorts them by name; a reader of errors goes by lines.
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    let members = PyList::empty(py);
    for (key, value) in entries {
        let place = place(text, key.span().start);
        members.append((key.get_ref().as_ref(), place, node(py, text, value)?))?;
    }
    Ok(members)
}

/// What kind of value it is, where it stands, and the value.
fn node<'py>(
    py: Python<'py>,
    text: &str,
    value: &Spanned<DeValue<'_>>,
) -> PyResult<Bound<'py, PyTuple>> {
    let place = place(text, value.span().start);
    match value.get_ref() {
        DeValue::String(held) => ("text", place, held.as_ref()).into_pyobject(py),
        DeValue::Integer(held) => match i64::from_str_radix(held.as_str(), held.radix()) {
            Ok(number) => ("integer", place, number).into_pyobject(py),
            Err(_) => ("number", place, f64::NAN).into_pyobject(py),
        },
        DeValue::Float(held) => {
            let number: f64 = held.as_str().parse().unwrap_or(f64::NAN);
            ("number", place, number).into_pyobject(py)
        }
        DeValue::Boolean(held) => ("boolean", place, *held).into_pyobject(py),
        DeValue::Datetime(held) => ("date", place, held.to_string()).into_pyobject(py),
        DeValue::Array(held) => {
            let items = PyList::empty(py);
            for item in held.iter() {
                items.append(node(py, text, item)?)?;
            }
            ("list", place, items).into_pyobject(py)
        }
        DeValue::Table(held) => ("table", place, table(py, text, held)?).into_pyobject(py),
    }
}

#[pyfunction]
pub(crate) fn read_toml<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyList>> {
    match DeTable::parse(text) {
        Ok(document) => table(py, text, document.get_ref()),
        Err(error) => {
            let at = error.span().map_or(0, |span| span.start);
            Err(PyValueError::new_err((error.message().to_owned(), place(text, at))))
        }
    }
}
