//! The scanners of text, one call each: for the tests that compare them with Python's own.

use std::borrow::Cow;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use zveil_core::text::{
    Cell, CsvScanner, CsvStep, JsonScanner, Kind, Problem, TimeFormat, unescape_json, unquote_csv,
};

fn refused(problem: Problem) -> PyErr {
    PyValueError::new_err(problem.name())
}

fn checked(bytes: &[u8]) -> PyResult<()> {
    std::str::from_utf8(bytes).map(|_| ()).map_err(|_| refused(Problem::NotUtf8))
}

fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Absent => "absent",
        Kind::Null => "null",
        Kind::Text | Kind::EscapedText => "text",
        Kind::Integer => "integer",
        Kind::Number => "number",
        Kind::True => "true",
        Kind::False => "false",
        Kind::Object => "object",
        Kind::Array => "array",
    }
}

/// The text of a string, or the raw bytes of any other value.
fn decoded<'a>(cell: &Cell, line: &'a [u8]) -> Cow<'a, [u8]> {
    match (cell.kind, cell.of(line)) {
        (Kind::Text, [b'"', inside @ .., b'"']) => Cow::Borrowed(inside),
        (Kind::EscapedText, raw) => {
            let mut text = Vec::new();
            unescape_json(raw, &mut text);
            Cow::Owned(text)
        }
        (_, raw) => Cow::Borrowed(raw),
    }
}

type Found<'py> = (&'static str, Bound<'py, PyBytes>);

#[pyfunction]
pub(crate) fn scan_json<'py>(
    py: Python<'py>,
    line: &[u8],
    paths: Vec<Vec<String>>,
) -> PyResult<Vec<Found<'py>>> {
    checked(line)?;
    let mut scanner = JsonScanner::new(&paths, true);
    let mut cells = vec![Cell::default(); paths.len()];
    // Twice: the second time the scanner knows how the line is built, and goes another way.
    let first = scanner.scan(line, &mut cells).map(|()| cells.clone());
    let second = scanner.scan(line, &mut cells).map(|()| cells);
    if first != second {
        return Err(PyValueError::new_err("the same line was read in two ways"));
    }
    let cells = second.map_err(|(problem, _)| refused(problem))?;
    Ok(cells.iter().map(|c| (name(c.kind), PyBytes::new(py, &decoded(c, line)))).collect())
}

#[pyfunction]
pub(crate) fn scan_csv(data: &[u8], delimiter: &str) -> PyResult<Vec<Vec<String>>> {
    let [delimiter] = *delimiter.as_bytes() else {
        return Err(PyValueError::new_err("delimiter: expected one ASCII character"));
    };
    checked(data)?;
    let mut scanner = CsvScanner::new(delimiter);
    let (mut records, mut fields) = (Vec::new(), Vec::new());
    let mut rest = data;
    while !rest.is_empty() {
        let end = match scanner.scan(rest, true, data.len(), &mut fields) {
            CsvStep::Record { end } => {
                records.push(fields.iter().map(|cell| field(cell, rest)).collect());
                end
            }
            CsvStep::Blank { end } => end,
            CsvStep::Bad { problem, .. } => return Err(refused(problem)),
            CsvStep::Incomplete => return Err(PyValueError::new_err("more asked for at the end")),
        };
        rest = rest.get(end..).unwrap_or_default();
    }
    Ok(records)
}

fn field(cell: &Cell, record: &[u8]) -> String {
    let mut text = Vec::new();
    match cell.kind {
        Kind::EscapedText => unquote_csv(cell.of(record), &mut text),
        _ => text.extend_from_slice(cell.of(record)),
    }
    String::from_utf8_lossy(&text).into_owned()
}

#[pyfunction]
pub(crate) fn parse_time(text: &[u8], format: &str) -> PyResult<i64> {
    let format = TimeFormat::from_name(format)
        .ok_or_else(|| PyValueError::new_err("format: expected s, ms, us, ns or iso"))?;
    format.parse(text).ok_or_else(|| refused(Problem::Time))
}
