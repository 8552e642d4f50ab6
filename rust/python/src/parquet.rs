//! `zveil._native.ParquetWay`: Parquet in, released Parquet out. Its documentation is in `_native.pyi`.

use crate::columns::refused;
use crate::failure::Failure;
use crate::gate::Gate;
use crate::keyring::Keyring;
use arrow_schema::SchemaRef;
use pyo3::exceptions::{PyEOFError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};
use zveil_arrow::parquet::{
    Act, ActError, Damaged, Plan, Sink, Source, Unit, Unwritable, has_numbers, leaving, merged,
    names,
};

#[pyclass(frozen, module = "zveil._native")]
pub(crate) struct ParquetWay {
    way: Mutex<Way>,
    /// None: user ids leave as they are.
    keyring: Option<Py<Keyring>>,
}

struct Way {
    fields: Vec<String>,
    most_rows: usize,
    plan: Plan,
    act: Act,
    source: Option<Source>,
    /// What the first file has, and what leaves of it.
    columns: Option<(SchemaRef, SchemaRef)>,
    sink: Option<Sink>,
    /// Rows of the present file that are decided, and passed over.
    rows: u64,
}

impl Way {
    /// Opens a file; false if it is not plain, or has other columns than the one before.
    fn open(&mut self, path: &Path, after: u64, has_pseudonyms: bool) -> bool {
        let Some(source) = Source::open(path, &self.fields, after, self.most_rows) else {
            return false;
        };
        match &self.columns {
            Some((came, _)) => {
                if came != source.schema() {
                    return false;
                }
            }
            None => {
                let came = source.schema().clone();
                let Some(left) = leaving(&came, &self.plan, has_pseudonyms) else { return false };
                self.sink = Some(Sink::new(left.clone()));
                self.columns = Some((came, left));
            }
        }
        (self.source, self.rows) = (Some(source), after);
        true
    }
}

fn act_failure(error: ActError) -> PyErr {
    match error {
        ActError::Gate(error) => Failure::from(error).into(),
        ActError::Column(found) => refused(found),
        ActError::Arrow => PyTypeError::new_err(error.to_string()),
    }
}

fn damaged(found: Damaged) -> PyErr {
    PyEOFError::new_err(found.to_string())
}

fn unwritable(found: Unwritable) -> PyErr {
    PyRuntimeError::new_err(found.to_string())
}

impl ParquetWay {
    fn lock(&self) -> Result<MutexGuard<'_, Way>, Failure> {
        self.way.lock().map_err(|_| Failure::Broken)
    }
}

#[pymethods]
impl ParquetWay {
    #[new]
    #[pyo3(signature = (*, fields, veiled, blank, unit, stop_at_problem, keyring, most_rows))]
    fn new(
        fields: Vec<String>,
        veiled: Vec<Option<String>>,
        blank: bool,
        unit: Option<&str>,
        stop_at_problem: bool,
        keyring: Option<Py<Keyring>>,
        most_rows: usize,
    ) -> PyResult<Self> {
        if veiled.is_empty() || fields.len() < 2 + veiled.len() {
            return Err(PyValueError::new_err("fields: expected time, user and attributes"));
        }
        if most_rows == 0 {
            return Err(PyValueError::new_err("most_rows: expected at least 1"));
        }
        let unit = match unit.map(Unit::from_name) {
            Some(None) => {
                return Err(PyValueError::new_err("unit: expected 's', 'ms', 'us' or 'ns'"));
            }
            unit => unit.flatten(),
        };
        let plan = Plan { veiled, is_blank: blank, unit, stops: stop_at_problem };
        let act = Act::new(plan.clone());
        let way =
            Way { fields, most_rows, plan, act, source: None, columns: None, sink: None, rows: 0 };
        Ok(Self { way: Mutex::new(way), keyring })
    }

    #[staticmethod]
    fn names(py: Python<'_>, path: PathBuf) -> Option<Vec<String>> {
        py.detach(|| names(&path))
    }

    fn open(&self, py: Python<'_>, path: PathBuf, after: u64) -> PyResult<bool> {
        let has_pseudonyms = self.keyring.is_some();
        py.detach(|| Ok(self.lock()?.open(&path, after, has_pseudonyms)))
    }

    #[getter]
    fn rows(&self) -> PyResult<u64> {
        Ok(self.lock()?.rows)
    }

    #[getter]
    fn rows_total(&self) -> PyResult<u64> {
        Ok(self.lock()?.source.as_ref().map_or(0, Source::rows_total))
    }

    #[getter]
    fn has_numbers(&self) -> PyResult<bool> {
        let way = self.lock()?;
        Ok(way.columns.as_ref().is_some_and(|(came, _)| has_numbers(came)))
    }

    fn step<'py>(
        &self,
        py: Python<'py>,
        gates: Vec<Py<Gate>>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let gates: Vec<&Gate> = gates.iter().map(Py::get).collect();
        for (number, gate) in gates.iter().enumerate() {
            if gates[..number].iter().any(|other| std::ptr::eq(*other, *gate)) {
                return Err(PyValueError::new_err("gates: each attribute needs a gate of its own"));
            }
        }
        let keyring = self.keyring.as_ref().map(Py::get);
        let written = py.detach(|| -> PyResult<Option<Vec<u8>>> {
            let mut way = self.lock()?;
            let Way { act, source: Some(source), sink: Some(sink), rows, plan, .. } = &mut *way
            else {
                return Err(PyValueError::new_err("open: no file is open"));
            };
            if gates.len() != plan.veiled.len() {
                return Err(PyValueError::new_err("gates: expected one for each attribute"));
            }
            let Some(batch) = source.batch().map_err(damaged)? else { return Ok(None) };
            let mut guards = Vec::with_capacity(gates.len());
            for gate in gates {
                guards.push(gate.guard()?);
            }
            let mut gates: Vec<_> = guards.iter_mut().map(|guard| &mut **guard).collect();
            let mut keyring = keyring.map(Keyring::lock).transpose()?;
            let left = act.act(&batch, &mut gates, keyring.as_deref_mut()).map_err(act_failure)?;
            if sink.write(left, source.is_between_groups()).map_err(unwritable)? {
                act.begin_group();
            }
            *rows += batch.num_rows() as u64;
            sink.take().map(Some).map_err(unwritable)
        })?;
        let Some(bytes) = written else { return Ok(None) };
        let given = PyBytes::new(py, &bytes);
        if let Some(sink) = &mut self.lock()?.sink {
            sink.reuse(bytes);
        }
        Ok(Some(given))
    }

    #[getter]
    fn is_begun(&self) -> PyResult<bool> {
        Ok(self.lock()?.sink.as_ref().is_some_and(Sink::is_begun))
    }

    fn end<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| -> PyResult<Vec<u8>> {
            let mut way = self.lock()?;
            way.sink.as_mut().map_or_else(|| Ok(Vec::new()), Sink::end).map_err(unwritable)
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    fn wrote(&self, index: &[u8]) -> PyResult<bool> {
        Ok(self.lock()?.sink.as_ref().is_some_and(|sink| sink.wrote(index)))
    }

    #[staticmethod]
    fn merged<'py>(py: Python<'py>, indexes: Vec<Vec<u8>>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &merged(&indexes).map_err(unwritable)?))
    }

    /// Records, those that left, those whose time was bad, and what times are.
    fn tally(&self) -> PyResult<(u64, u64, u64, Option<&'static str>)> {
        let way = self.lock()?;
        let act = &way.act;
        Ok((act.records, act.leaving, act.bad(), act.unit().map(Unit::name)))
    }

    fn resume(&self, records: u64, leaving: u64, bad: u64, unit: Option<&str>) -> PyResult<()> {
        self.lock()?.act.resume(records, leaving, bad, unit.and_then(Unit::from_name));
        Ok(())
    }
}
