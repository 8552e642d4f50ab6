//! `zveil._native.Saved`: a gate that was read, before it takes a place. Its documentation is in `_native.pyi`.

use crate::failure::Failure;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::PathBuf;
use std::sync::Mutex;
use zveil_core::{Error, Gate, Secret};

/// A gate read from a snapshot, waiting to be adopted, and the note that lay beside it.
#[pyclass(frozen, module = "zveil._native")]
pub(crate) struct Saved {
    gate: Mutex<Option<Gate>>,
    #[pyo3(get)]
    note: Py<PyBytes>,
    #[pyo3(get)]
    max_future_ns: Option<i64>,
}

impl Saved {
    /// The gate, for the one that adopts it.
    pub(crate) fn take(&self) -> PyResult<Gate> {
        let taken = self.gate.lock().map_err(|_| Failure::Broken)?.take();
        taken.ok_or_else(|| PyValueError::new_err("saved: was adopted before"))
    }
}

#[pyfunction]
pub(crate) fn open_snapshot(
    py: Python<'_>,
    path: PathBuf,
    key: [u8; 32],
    threads: usize,
) -> PyResult<Saved> {
    let secret = Secret::new(key);
    let opened = py.detach(|| Gate::restore(&path, &secret, threads));
    saved(py, opened)
}

#[pyfunction]
pub(crate) fn open_bytes(
    py: Python<'_>,
    bytes: &[u8],
    key: [u8; 32],
    threads: usize,
) -> PyResult<Saved> {
    let secret = Secret::new(key);
    let opened = py.detach(|| Gate::of_bytes(bytes, &secret, threads));
    saved(py, opened)
}

fn saved(py: Python<'_>, opened: Result<(Gate, Vec<u8>), Error>) -> PyResult<Saved> {
    let (gate, note) = opened.map_err(Failure::from)?;
    let max_future_ns = gate.settings().max_future;
    let note = PyBytes::new(py, &note).unbind();
    Ok(Saved { gate: Mutex::new(Some(gate)), note, max_future_ns })
}
