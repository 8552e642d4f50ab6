//! `zveil._native.Ladder`: from values to coarser labels. Its documentation is in `_native.pyi`.

use crate::columns::{Import, column};
use crate::failure::Failure;
use crate::text::{Buffers, buffers};
use arrow_array::Array;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::Arc;
use zveil_core::ladder::{
    Bins, Cells, DatePart, Dates, Labels, Place, Prefixes, Segments, Step, Suffixes, Table, text_of,
};
use zveil_core::text::{TextColumn, TimeFormat};
use zveil_core::{Role, Value};

#[pyclass(frozen, module = "zveil._native")]
pub(crate) struct Ladder(pub(crate) Arc<zveil_core::ladder::Ladder>);

#[pymethods]
impl Ladder {
    #[new]
    fn new(steps: Vec<Bound<'_, PyTuple>>) -> PyResult<Self> {
        let steps = steps.iter().map(step).collect::<PyResult<_>>()?;
        let ladder = zveil_core::ladder::Ladder::new(steps).map_err(Failure::from)?;
        Ok(Self(Arc::new(ladder)))
    }

    #[getter]
    fn levels(&self) -> usize {
        self.0.levels()
    }

    #[getter]
    fn takes_position(&self) -> bool {
        self.0.takes_position()
    }

    fn climb<'py>(
        &self,
        py: Python<'py>,
        values: &Bound<'py, PyAny>,
    ) -> PyResult<Vec<Buffers<'py>>> {
        let values = Import::new(values, "values").array()?;
        let made = py.detach(|| -> PyResult<Vec<TextColumn>> {
            let values = column(&values, Role::Attribute, None)?;
            Ok(self.columns(values.len(), |row, labels| self.0.climb(values.value(row), labels)))
        })?;
        Ok(made.iter().map(|column| buffers(py, column)).collect())
    }

    fn climb_position<'py>(
        &self,
        py: Python<'py>,
        latitudes: &Bound<'py, PyAny>,
        longitudes: &Bound<'py, PyAny>,
    ) -> PyResult<Vec<Buffers<'py>>> {
        let latitudes = Import::new(latitudes, "latitudes").array()?;
        let longitudes = Import::new(longitudes, "longitudes").array()?;
        if latitudes.len() != longitudes.len() {
            return Err(PyValueError::new_err("latitudes, longitudes: expected one length"));
        }
        let made = py.detach(|| -> PyResult<Vec<TextColumn>> {
            let latitudes = column(&latitudes, Role::Attribute, None)?;
            let longitudes = column(&longitudes, Role::Attribute, None)?;
            Ok(self.columns(latitudes.len(), |row, labels| {
                self.0.climb_position(latitudes.value(row), longitudes.value(row), labels);
            }))
        })?;
        Ok(made.iter().map(|column| buffers(py, column)).collect())
    }
}

impl Ladder {
    /// One column for each label, finest first.
    fn columns(&self, rows: usize, climb: impl Fn(usize, &mut Labels)) -> Vec<TextColumn> {
        let mut columns = vec![TextColumn::default(); self.0.labels()];
        let (mut text, mut places): (Vec<u8>, Vec<Place>) = Default::default();
        for row in 0..rows {
            text.clear();
            places.clear();
            climb(row, &mut Labels { text: &mut text, places: &mut places });
            for (column, place) in columns.iter_mut().zip(&places) {
                put(column, place.clone().map(|place| &text[place]));
            }
        }
        columns
    }
}

fn put(column: &mut TextColumn, text: Option<&[u8]>) {
    column.bytes.extend_from_slice(text.unwrap_or_default());
    column.ends.push(column.bytes.len() as u64);
    column.is_null.push(text.is_none());
}

/// Values as text, as a ladder reads them.
#[pyfunction]
pub(crate) fn spell<'py>(py: Python<'py>, values: &Bound<'py, PyAny>) -> PyResult<Buffers<'py>> {
    let values = Import::new(values, "values").array()?;
    let made = py.detach(|| -> PyResult<TextColumn> {
        let values = column(&values, Role::Attribute, None)?;
        let (mut made, mut spelled) = (TextColumn::default(), Vec::new());
        for row in 0..values.len() {
            spelled.clear();
            let text = values.value(row).and_then(|value: Value| text_of(value, &mut spelled));
            put(&mut made, text);
        }
        Ok(made)
    })?;
    Ok(buffers(py, &made))
}

/// A step: its name, then what belongs to it.
fn step(step: &Bound<'_, PyTuple>) -> PyResult<Step> {
    let name: String = step.get_item(0)?.extract()?;
    let made = match name.as_str() {
        "domain" => {
            let (_, list, private): (String, String, bool) = step.extract()?;
            Ok(Step::Domain(Suffixes::read(&list, private)))
        }
        "table" => {
            let (_, csv): (String, Vec<u8>) = step.extract()?;
            Table::read(&csv).map(Step::Table)
        }
        "segments" => {
            let (_, separator, levels): (String, String, usize) = step.extract()?;
            Segments::new(&separator, levels).map(Step::Segments)
        }
        "bins" => {
            let (_, widths): (String, Vec<String>) = step.extract()?;
            Bins::new(&widths).map(Step::Bins)
        }
        "time" => {
            let (_, parts, format): (String, Vec<String>, Option<String>) = step.extract()?;
            let wrong = || PyValueError::new_err("time: expected parts of a date and a format");
            let parts: Option<_> = parts.iter().map(|part| DatePart::from_name(part)).collect();
            let format = match format.map(|format| TimeFormat::from_name(&format)) {
                Some(None) => return Err(wrong()),
                format => format.flatten(),
            };
            Dates::new(parts.ok_or_else(wrong)?, format).map(Step::Dates)
        }
        "prefix" => {
            let (_, v4, v6): (String, Vec<u8>, Vec<u8>) = step.extract()?;
            Prefixes::new(v4, v6).map(Step::Prefixes)
        }
        "cells" => {
            let (_, resolutions): (String, Vec<u8>) = step.extract()?;
            Cells::new(&resolutions).map(Step::Cells)
        }
        _ => return Err(PyValueError::new_err("hierarchy: expected the name of a step")),
    };
    Ok(made.map_err(Failure::from)?)
}
