//! `zveil._native.MessageBatch`: messages as they came. Its documentation is in `_native.pyi`.

use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use zveil_kafka::{Batch, Message};

#[pyclass(frozen, module = "zveil._native")]
pub(crate) struct MessageBatch(pub(crate) Batch);

type Given<'py> = (i32, i64, Option<Bound<'py, PyBytes>>, Option<Bound<'py, PyBytes>>);
type Key<'py> = Option<Bound<'py, PyBytes>>;

#[pymethods]
impl MessageBatch {
    #[new]
    #[pyo3(signature = (messages, *, ends = Vec::new(), errors = Vec::new()))]
    fn new(messages: Vec<Given<'_>>, ends: Vec<(i32, i64)>, errors: Vec<(i32, String)>) -> Self {
        let mut batch = Batch::told(ends, errors);
        for (partition, offset, value, key) in &messages {
            let (value, key) = (value.as_ref(), key.as_ref());
            let value = value.map(|value| value.as_bytes());
            let key = key.map(|key| key.as_bytes());
            let (partition, offset) = (*partition, *offset);
            batch.push(Message { partition, offset, timestamp_ms: -1, value, key }, None);
        }
        Self(batch)
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    #[getter]
    fn ends(&self) -> Vec<(i32, i64)> {
        self.0.ends.clone()
    }

    #[getter]
    fn errors(&self) -> Vec<(i32, String)> {
        self.0.errors.clone()
    }

    #[getter]
    fn age_s(&self) -> f64 {
        self.0.arrived.elapsed().as_secs_f64()
    }

    fn runs(&self) -> Vec<(i32, usize, usize)> {
        self.0.runs()
    }

    fn first_at(&self, start: usize, end: usize, offset: i64) -> usize {
        self.0.first_at(start..end, offset)
    }

    fn some(&self, most: usize) -> Self {
        Self(self.0.some(most))
    }

    fn offset(&self, number: usize) -> PyResult<i64> {
        Ok(self.get(number)?.offset)
    }

    fn partition(&self, number: usize) -> PyResult<i32> {
        Ok(self.get(number)?.partition)
    }

    fn key<'py>(&self, py: Python<'py>, number: usize) -> PyResult<Key<'py>> {
        Ok(self.get(number)?.key.map(|key| PyBytes::new(py, key)))
    }
}

impl MessageBatch {
    fn get(&self, number: usize) -> PyResult<Message<'_>> {
        self.0.get(number).ok_or_else(|| PyIndexError::new_err("there is no such message"))
    }
}
