//! `zveil._native.Swap`: values of columns that leave as others. Its documentation is in `_native.pyi`.

use crate::columns::{Import, column};
use crate::failure::Failure;
use crate::gate::Gate;
use crate::levels::{held, listed, values};
use crate::times;
use crate::values::Held;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyString};
use std::sync::{Mutex, MutexGuard};
use zveil_core::ladder::text_of;
use zveil_core::{Column, Observations, Owned, Role, VEILED};

#[pyclass(frozen, module = "zveil._native")]
pub(crate) struct Swap {
    inner: Mutex<zveil_core::Swap>,
    gate: Py<Gate>,
}

/// Decisions, rows that leave under another value, and that value of each.
type Found<'py> = (Bound<'py, PyByteArray>, Vec<usize>, Vec<Bound<'py, PyAny>>);

impl Swap {
    fn lock(&self) -> Result<MutexGuard<'_, zveil_core::Swap>, Failure> {
        self.inner.lock().map_err(|_| Failure::Broken)
    }
}

#[pymethods]
impl Swap {
    #[new]
    fn new(gate: Py<Gate>, probability: f64) -> PyResult<Self> {
        let swap = {
            let gate = gate.get().guard()?;
            zveil_core::Swap::new(probability, gate.secret()).map_err(Failure::from)?
        };
        Ok(Self { inner: Mutex::new(swap), gate })
    }

    #[getter]
    fn swapped(&self) -> PyResult<u64> {
        Ok(self.lock()?.swapped())
    }

    fn observe_arrays<'py>(
        &self,
        py: Python<'py>,
        times: &Bound<'py, PyAny>,
        users: &Bound<'py, PyAny>,
        levels: Vec<Bound<'py, PyAny>>,
        is_plain: bool,
        unit_ns: Option<i64>,
    ) -> PyResult<Found<'py>> {
        let times = times::import(times)?;
        let users = Import::new(users, "users").array()?;
        let levels = levels
            .iter()
            .map(|level| Import::new(level, "levels").array())
            .collect::<PyResult<Vec<_>>>()?;
        let gate = self.gate.get();
        let scale = gate.scale(unit_ns);
        let (decisions, swapped) = py.detach(|| -> PyResult<_> {
            let times = times::column(&times, scale)?;
            let mut gate = gate.guard()?;
            // Not hashed beforehand: the values themselves are needed.
            let users = column(&users, Role::User, None)?;
            let levels: Vec<Box<dyn Column>> = levels
                .iter()
                .map(|level| column(level, Role::Attribute, None))
                .collect::<PyResult<_>>()?;
            let levels: Vec<&dyn Column> = levels.iter().map(|level| &**level).collect();
            let (users, levels) = (&*users, &levels[..]);
            let observations = Observations { times: &times, users, levels, is_plain };
            let (mut decisions, mut swapped) = (vec![VEILED; times.len()], Vec::new());
            self.lock()?
                .observe_many(&mut gate, observations, &mut decisions, &mut swapped)
                .map_err(Failure::from)?;
            Ok((decisions, swapped))
        })?;
        let bytes: Vec<u8> = decisions.into_iter().map(|level| level as u8).collect();
        let (rows, others): (Vec<_>, Vec<_>) = swapped.into_iter().unzip();
        let others = others.iter().map(|other| object(py, other, is_plain));
        Ok((PyByteArray::new(py, &bytes), rows, others.collect::<PyResult<_>>()?))
    }

    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.lock()?.state()))
    }

    fn resume(&self, state: &[u8]) -> PyResult<()> {
        Ok(self.lock()?.resume(state).map_err(Failure::from)?)
    }

    /// What is drawn for an observation: whether it is swapped, the first place and the step, and the
    /// place that its own value takes.
    #[pyo3(signature = (t, user, levels, is_plain, /))]
    fn draw(
        &self,
        t: &Bound<'_, PyAny>,
        user: &Bound<'_, PyAny>,
        levels: &Bound<'_, PyAny>,
        is_plain: bool,
    ) -> PyResult<Option<(bool, usize, usize, usize)>> {
        let gate = self.gate.get();
        let time = times::instant(t, gate.scale(None))?;
        let user = Held::new(user, Role::User)?;
        let levels = listed(levels)?;
        let held = held(&levels)?;
        let (user, values) = (user.value(Role::User)?, values(&held)?);
        let gate = gate.guard()?;
        let drawn = self.lock()?.draw(&gate, time, user, &values, is_plain);
        Ok(drawn.map(|drawn| (drawn.swaps, drawn.start, drawn.step, drawn.place)))
    }
}

/// A value as it leaves: itself, or of a level its text.
fn object<'py>(py: Python<'py>, owned: &Owned, is_plain: bool) -> PyResult<Bound<'py, PyAny>> {
    if !is_plain {
        let mut spelled = Vec::new();
        let text = text_of(owned.value(), &mut spelled).and_then(|text| str::from_utf8(text).ok());
        return text.into_bound_py_any(py);
    }
    match owned {
        Owned::Integer(number) => number.into_bound_py_any(py),
        Owned::Unsigned(number) => number.into_bound_py_any(py),
        Owned::Float(number) => number.into_bound_py_any(py),
        Owned::Bool(truth) => truth.into_bound_py_any(py),
        Owned::Bytes(bytes) => PyBytes::new(py, bytes).into_bound_py_any(py),
        Owned::Text(text) | Owned::Digits(text) => {
            PyString::from_bytes(py, text)?.into_bound_py_any(py)
        }
    }
}
