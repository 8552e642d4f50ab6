//! The peers that the gate is measured against, as a Python extension.
//!
//! Columns come in through the buffer protocol, one-dimensional and contiguous, and the GIL is
//! released while they are worked on: exactly the terms under which the gate itself runs.

mod algorithm1;
mod limit;
mod memory;

use pyo3::buffer::{Element, PyBuffer};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

#[global_allocator]
static ALLOCATOR: memory::Counting = memory::Counting;

/// Algorithm 1 of the paper, as printed, over a stream in order of time.
#[pyclass]
struct Algorithm1 {
    state: algorithm1::Algorithm1,
}

#[pymethods]
impl Algorithm1 {
    #[new]
    fn new(z: usize, window: i64) -> Self {
        Self { state: algorithm1::Algorithm1::new(z, window) }
    }

    /// Decides a batch: `released` becomes 1 where the observation is released, 0 where veiled.
    fn observe_many(
        &mut self,
        py: Python<'_>,
        times: PyBuffer<i64>,
        users: PyBuffer<i64>,
        attributes: PyBuffer<i64>,
        mut released: PyBuffer<u8>,
    ) -> PyResult<()> {
        let (times, users) = (column("times", &times)?, column("users", &users)?);
        let attributes = column("attributes", &attributes)?;
        let released = column_mut("released", &mut released)?;
        let length = times.len();
        if users.len() != length || attributes.len() != length || released.len() != length {
            return Err(PyValueError::new_err("columns: expected four of the same length"));
        }
        py.detach(|| {
            for (i, answer) in released.iter_mut().enumerate() {
                *answer = u8::from(self.state.observe(times[i], users[i], attributes[i]));
            }
        });
        Ok(())
    }

    /// Attributes held; Algorithm 1 never frees one.
    #[getter]
    fn attributes(&self) -> usize {
        self.state.attributes()
    }

    /// Pairs (attribute, user) held whose time is in the window that ends at `now`.
    fn live_pairs(&self, now: i64) -> usize {
        self.state.live_pairs(now)
    }
}

/// The limit: hash the attribute, touch one counter, nothing else.
#[pyclass]
struct Limit {
    state: limit::Limit,
}

#[pymethods]
impl Limit {
    #[new]
    fn new(attributes: usize, prefetch: bool) -> Self {
        Self { state: limit::Limit::new(attributes, prefetch) }
    }

    fn touch_many(&mut self, py: Python<'_>, attributes: PyBuffer<i64>) -> PyResult<()> {
        let attributes = column("attributes", &attributes)?;
        py.detach(|| self.state.touch_many(attributes));
        Ok(())
    }

    /// Sum of all counters: how many observations have been touched.
    #[getter]
    fn total(&self) -> u64 {
        self.state.total()
    }

    /// Which hash runs on this machine: "aes" or "siphash".
    #[getter]
    fn hash(&self) -> &'static str {
        self.state.hash()
    }
}

/// Bytes this extension has allocated and not freed.
#[pyfunction]
fn allocated_bytes() -> usize {
    memory::allocated_bytes()
}

fn column<'a, T: Element>(name: &str, buffer: &'a PyBuffer<T>) -> PyResult<&'a [T]> {
    require_flat(name, buffer)?;
    if buffer.item_count() == 0 {
        return Ok(&[]);
    }
    // SAFETY: `require_flat` saw one contiguous run of `item_count` elements, `PyBuffer<T>` has
    // checked their type and alignment and keeps them alive. The benchmark writes to none of its
    // columns during a call.
    Ok(unsafe { std::slice::from_raw_parts(buffer.buf_ptr().cast(), buffer.item_count()) })
}

fn column_mut<'a, T: Element>(name: &str, buffer: &'a mut PyBuffer<T>) -> PyResult<&'a mut [T]> {
    require_flat(name, buffer)?;
    if buffer.readonly() {
        return Err(PyValueError::new_err(format!("{name}: expected a writable array")));
    }
    if buffer.item_count() == 0 {
        return Ok(&mut []);
    }
    // SAFETY: as in `column`, and writable; the benchmark makes this array for one call alone.
    Ok(unsafe { std::slice::from_raw_parts_mut(buffer.buf_ptr().cast(), buffer.item_count()) })
}

fn require_flat<T: Element>(name: &str, buffer: &PyBuffer<T>) -> PyResult<()> {
    if buffer.dimensions() == 1 && buffer.is_c_contiguous() {
        return Ok(());
    }
    Err(PyValueError::new_err(format!("{name}: expected a contiguous array of one dimension")))
}

#[pymodule(name = "zveil_peers")]
mod module {
    #[pymodule_export]
    use super::{Algorithm1, Limit, allocated_bytes};
}
