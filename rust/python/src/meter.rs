//! `zveil._native.Meter`: the core's meter, with its thread, behind a lock. Its documentation is in `_native.pyi`.

use crate::columns::{Import, column, unsupported};
use crate::failure::Failure;
use crate::gate::Gate;
use crate::times::{self, Scale};
use arrow_array::cast::AsArray;
use arrow_array::types::UInt8Type;
use arrow_array::{Array, ArrayRef};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::sync::{Mutex, MutexGuard, TryLockResult};
use zveil_core::{LiveMeter, MeterSettings, Reading, Released, Role, Secret};

#[pyclass(frozen, subclass, module = "zveil._native")]
pub(crate) struct Meter(Mutex<LiveMeter>);

impl Meter {
    /// The meter itself, for a thread that has let go of Python or holds it for a moment only.
    pub(crate) fn guard(&self) -> Result<MutexGuard<'_, LiveMeter>, Failure> {
        self.0.lock().map_err(|_| Failure::Broken)
    }

    pub(crate) fn try_guard(&self) -> TryLockResult<MutexGuard<'_, LiveMeter>> {
        self.0.try_lock()
    }

    pub(crate) fn loaded(meter: zveil_core::Meter) -> Self {
        Self(Mutex::new(LiveMeter::new(meter)))
    }

    /// Looks at it when all is taken in that was brought, which may take a moment: without Python.
    fn look<T: Send>(
        &self,
        py: Python<'_>,
        look: impl FnOnce(&mut zveil_core::Meter) -> T + Send,
    ) -> PyResult<T> {
        Ok(py.detach(|| Ok::<_, Failure>(look(self.guard()?.meter()?)))?)
    }
}

/// The name of a field, its values, and a byte for each row, 0 where it did not leave.
type OfField<'py> = (String, Bound<'py, PyAny>, Option<Bound<'py, PyAny>>);

/// Bytes that lie in an Arrow array.
fn bytes(array: &ArrayRef) -> PyResult<&[u8]> {
    let bytes = array.as_primitive_opt::<UInt8Type>().filter(|bytes| bytes.null_count() == 0);
    let bytes = bytes.ok_or_else(|| unsupported("released", "whole bytes", "something else"))?;
    Ok(bytes.values())
}

#[pymethods]
impl Meter {
    #[new]
    #[pyo3(signature = (key, *, rotate_ns = None, lateness_ns = 0, memory_limit = None))]
    fn new(
        key: [u8; 32],
        rotate_ns: Option<i64>,
        lateness_ns: i64,
        memory_limit: Option<usize>,
    ) -> PyResult<Self> {
        let settings = MeterSettings { rotate: rotate_ns, lateness: lateness_ns, memory_limit };
        let meter = zveil_core::Meter::new(settings, Secret::new(key)).map_err(Failure::from)?;
        Ok(Self::loaded(meter))
    }

    #[pyo3(name = "_add_arrays")]
    fn add_arrays(
        &self,
        py: Python<'_>,
        times: &Bound<'_, PyAny>,
        users: &Bound<'_, PyAny>,
        fields: Vec<OfField<'_>>,
        unit_ns: i64,
    ) -> PyResult<()> {
        let times = times::import(times)?;
        let users = Import::new(users, "users").array()?;
        let fields = fields
            .into_iter()
            .map(|(name, values, rows)| {
                let rows = rows.map(|rows| Import::new(&rows, "released").array()).transpose()?;
                Ok((name, Import::new(&values, "values").array()?, rows))
            })
            .collect::<PyResult<Vec<_>>>()?;
        py.detach(|| {
            let times = times::column(&times, scale(unit_ns))?;
            let mut meter = self.guard()?;
            let users = column(&users, Role::User, Some(&*meter))?;
            let columns = fields
                .iter()
                .map(|(_, values, _)| column(values, Role::Attribute, Some(&*meter)))
                .collect::<PyResult<Vec<_>>>()?;
            let fields: Vec<_> = fields
                .iter()
                .zip(&columns)
                .map(|((name, _, rows), values)| {
                    let field = meter.lens().field(name);
                    let rows = rows.as_ref().map(bytes).transpose()?;
                    Ok(Released { field, values: &**values, rows })
                })
                .collect::<PyResult<_>>()?;
            meter.add(&times, &*users, &fields).map_err(Failure::from)?;
            Ok(())
        })
    }

    fn advance(&self, py: Python<'_>, time_ns: i64) -> PyResult<()> {
        Ok(py.detach(|| Ok::<_, Failure>(self.guard()?.advance(time_ns)?))?)
    }

    fn follow(&self, py: Python<'_>, gates: Vec<Py<Gate>>) -> PyResult<()> {
        let gates: Vec<&Gate> = gates.iter().map(Py::get).collect();
        py.detach(|| {
            let mut meter = self.guard()?;
            for gate in gates {
                meter.follow([&*gate.guard()?]).map_err(Failure::from)?;
            }
            Ok(())
        })
    }

    #[pyo3(name = "_present")]
    fn present<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (found, length) = self.look(py, |meter| (meter.present(), meter.settings().rotate))?;
        reading(py, found, length)
    }

    #[pyo3(name = "_periods")]
    fn periods<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let (found, length) = self.look(py, |meter| (meter.periods(), meter.settings().rotate))?;
        found.into_iter().map(|one| reading(py, one, length)).collect()
    }

    #[getter]
    fn period(&self, py: Python<'_>) -> PyResult<i64> {
        self.look(py, |meter| meter.period())
    }

    fn counts(&self, py: Python<'_>, k: usize) -> PyResult<Option<(u64, u64)>> {
        self.look(py, |meter| {
            let period = meter.period();
            meter.counts(period, k)
        })
    }

    fn before(&self, py: Python<'_>, k: usize) -> PyResult<Option<(u64, u64)>> {
        self.look(py, |meter| {
            let period = meter.period().saturating_sub(1);
            meter.counts(period, k)
        })
    }

    #[getter]
    fn bytes(&self, py: Python<'_>) -> PyResult<usize> {
        self.look(py, |meter| meter.bytes())
    }

    #[getter]
    fn key<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let key = self.look(py, |meter| *meter.secret().bytes())?;
        Ok(PyBytes::new(py, &key))
    }

    fn save<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let saved = self.look(py, |meter| meter.to_bytes())?.map_err(Failure::from)?;
        Ok(PyBytes::new(py, &saved))
    }

    #[pyo3(name = "_load")]
    fn load(&self, py: Python<'_>, saved: &[u8]) -> PyResult<()> {
        py.detach(|| {
            let mut live = self.guard()?;
            let secret = Secret::new(*live.meter()?.secret().bytes());
            *live = LiveMeter::new(zveil_core::Meter::of_bytes(secret, saved)?);
            Ok::<_, Failure>(())
        })?;
        Ok(())
    }

    #[pyo3(name = "_exchange")]
    fn exchange(&self, other: &Self) -> PyResult<()> {
        if !std::ptr::eq(self, other) {
            std::mem::swap(&mut *self.guard()?, &mut *other.guard()?);
        }
        Ok(())
    }

    #[pyo3(name = "_resettle", signature = (*, lateness_ns, memory_limit))]
    fn resettle(
        &self,
        py: Python<'_>,
        lateness_ns: i64,
        memory_limit: Option<usize>,
    ) -> PyResult<()> {
        let resettled = self.look(py, |meter| meter.resettle(lateness_ns, memory_limit))?;
        Ok(resettled.map_err(Failure::from)?)
    }

    fn give_up(&self, py: Python<'_>) -> PyResult<()> {
        self.look(py, |meter| meter.give_up())
    }

    #[pyo3(name = "_settings")]
    fn settings(&self, py: Python<'_>) -> PyResult<(Option<i64>, i64, Option<usize>)> {
        let settings = self.look(py, |meter| *meter.settings())?;
        Ok((settings.rotate, settings.lateness, settings.memory_limit))
    }
}

/// What numbers are as times; those past the year 2262 are none.
fn scale(unit_ns: i64) -> Scale {
    Scale { unit: unit_ns, beyond: times::NONE }
}

/// The fields of `zveil.meter.Reading`.
fn reading<'py>(
    py: Python<'py>,
    found: Reading,
    length: Option<i64>,
) -> PyResult<Bound<'py, PyDict>> {
    let sizes = PyDict::new(py);
    for (size, users) in found.shown.sizes {
        sizes.set_item(size, users)?;
    }
    let shown = PyDict::new(py);
    // In numbers of any size: the first period of all may begin before the first time there is.
    let start = length.map(|length| i128::from(found.period) * i128::from(length));
    shown.set_item("start_ns", start)?;
    shown.set_item("users", found.shown.users)?;
    shown.set_item("classes", found.shown.classes)?;
    shown.set_item("sizes", sizes)?;
    shown.set_item("pairs", found.shown.pairs)?;
    shown.set_item("late", found.late)?;
    shown.set_item("is_over", found.is_over)?;
    shown.set_item("is_stopped", found.is_stopped)?;
    Ok(shown)
}
