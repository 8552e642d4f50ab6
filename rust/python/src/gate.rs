//! `zveil._native.Gate`: the core's gate behind a lock. Its documentation is in `_native.pyi`.

use crate::columns::{Import, column};
use crate::failure::Failure;
use crate::levels::{held, listed, values};
use crate::saved::Saved;
use crate::settings;
use crate::times::{self, Scale};
use crate::values::{Held, utf8};
use arrow_array::ArrayRef;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, TryLockError};
use zveil_core::{Column, Resettled, Role, Secret, Settings, VEILED, Value};

#[pyclass(frozen, subclass, module = "zveil._native")]
pub(crate) struct Gate {
    inner: Mutex<zveil_core::Gate>,
    scale: Scale,
}

impl Gate {
    /// The gate itself. Whoever waits for it lets other Python threads run meanwhile.
    #[inline(always)]
    fn lock(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, zveil_core::Gate>> {
        match self.inner.try_lock() {
            Ok(gate) => Ok(gate),
            Err(_) => self.wait(py),
        }
    }

    #[cold]
    fn wait(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, zveil_core::Gate>> {
        loop {
            match self.inner.try_lock() {
                Ok(gate) => return Ok(gate),
                Err(TryLockError::Poisoned(_)) => return Err(Failure::Broken.into()),
                Err(TryLockError::WouldBlock) => py.detach(|| drop(self.inner.lock())),
            }
        }
    }

    /// The gate itself, for a thread that has let go of Python.
    pub(crate) fn guard(&self) -> Result<MutexGuard<'_, zveil_core::Gate>, Failure> {
        self.inner.lock().map_err(|_| Failure::Broken)
    }

    /// The same if nobody else has it.
    pub(crate) fn try_guard(
        &self,
    ) -> Result<MutexGuard<'_, zveil_core::Gate>, TryLockError<MutexGuard<'_, zveil_core::Gate>>>
    {
        self.inner.try_lock()
    }

    /// One that was loaded; its times are nanoseconds.
    pub(crate) fn loaded(gate: zveil_core::Gate) -> Self {
        let scale = Scale { unit: 1, beyond: settings::beyond(gate.settings().max_future) };
        Self { inner: Mutex::new(gate), scale }
    }

    /// What the numbers of a column of times are, if not what the gate was told.
    pub(crate) fn scale(&self, unit_ns: Option<i64>) -> Scale {
        Scale { unit: unit_ns.unwrap_or(self.scale.unit), ..self.scale }
    }

    /// Decides columns, and writes the answers where Python finds them: a byte for each row, as `told` has it.
    fn decide<'py>(
        &self,
        py: Python<'py>,
        (times, users, levels): (&ArrayRef, &ArrayRef, &[ArrayRef]),
        unit_ns: Option<i64>,
        plain: bool,
        told: impl Fn(i8) -> u8 + Sync,
    ) -> PyResult<Bound<'py, PyByteArray>> {
        let scale = self.scale(unit_ns);
        PyByteArray::new_with(py, times.len(), |bytes| {
            py.detach(|| {
                let times = times::column(times, scale)?;
                let mut gate = self.guard()?;
                let users = column(users, Role::User, Some(&*gate))?;
                let levels: Vec<Box<dyn Column>> = levels
                    .iter()
                    .map(|level| column(level, Role::Attribute, Some(&*gate)))
                    .collect::<PyResult<_>>()?;
                let levels: Vec<&dyn Column> = levels.iter().map(|level| &**level).collect();
                // SAFETY: bytes with a sign are bytes, and nobody else knows of these yet.
                let decisions = unsafe {
                    std::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast::<i8>(), bytes.len())
                };
                let outcome = match levels[..] {
                    [attributes] if plain => {
                        gate.observe_many(&times, &*users, attributes, decisions)
                    }
                    _ => gate.observe_levels_many(&times, &*users, &levels, decisions),
                };
                outcome.map_err(Failure::from)?;
                bytes.iter_mut().for_each(|byte| *byte = told(byte.cast_signed()));
                Ok(())
            })
        })
    }
}

#[pymethods]
impl Gate {
    #[new]
    #[pyo3(signature = (z, window_ns, *, z_max, lateness_ns, max_future_ns, unit_ns, rule,
        fixed_level, memory_limit, threads, noise, noise_period_ns, key))]
    #[expect(clippy::too_many_arguments, reason = "one for each setting; Python names them")]
    fn new(
        z: usize,
        window_ns: i64,
        z_max: usize,
        lateness_ns: i64,
        max_future_ns: Option<i64>,
        unit_ns: i64,
        rule: &str,
        fixed_level: Option<u8>,
        memory_limit: Option<usize>,
        threads: usize,
        noise: usize,
        noise_period_ns: Option<i64>,
        key: Option<[u8; 32]>,
    ) -> PyResult<Self> {
        let settings = Settings {
            z,
            z_max,
            window: window_ns,
            lateness: lateness_ns,
            max_future: max_future_ns,
            rule: settings::rule(rule, fixed_level)?,
            memory_limit,
            threads,
            noise: settings::noise(noise, noise_period_ns),
        };
        let secret = key.map_or_else(Secret::random, |key| Ok(Secret::new(key)));
        let gate = zveil_core::Gate::new(settings, secret.map_err(Failure::from)?);
        let scale = Scale { unit: unit_ns, beyond: settings::beyond(max_future_ns) };
        Ok(Self { inner: Mutex::new(gate.map_err(Failure::from)?), scale })
    }

    /// Decide one observation, now: True if it is released.
    ///
    /// A missing user, attribute or time is veiled. The same user may come as 7, "7" or b"7"; values
    /// of an attribute keep their type.
    #[pyo3(signature = (t, user, attribute, /))]
    fn observe(
        &self,
        py: Python<'_>,
        t: &Bound<'_, PyAny>,
        user: &Bound<'_, PyAny>,
        attribute: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        // Before the gate is taken: what Python has to say of a bad value may run others' code, and that may ask this gate.
        let time = times::instant(t, self.scale)?;
        if let (Ok(user), Ok(attribute)) = (user.cast_exact(), attribute.cast_exact()) {
            // Text is what comes most, and the way around `Held` takes a third of the time.
            let user = Value::Text(utf8(user, Role::User)?.as_bytes());
            let attribute = Value::Text(utf8(attribute, Role::Attribute)?.as_bytes());
            return Ok(self.lock(py)?.observe(time, Some(user), Some(attribute)));
        }
        let user = Held::new(user, Role::User)?;
        let attribute = Held::new(attribute, Role::Attribute)?;
        let (user, attribute) = (user.value(Role::User)?, attribute.value(Role::Attribute)?);
        Ok(self.lock(py)?.observe(time, user, attribute))
    }

    /// Decide one observation that can be told more or less finely.
    ///
    /// The levels go from the coarsest to the finest; the answer is the number of the level to
    /// release (0 is the coarsest), or None.
    #[pyo3(signature = (t, user, levels, /))]
    fn observe_levels(
        &self,
        py: Python<'_>,
        t: &Bound<'_, PyAny>,
        user: &Bound<'_, PyAny>,
        levels: &Bound<'_, PyAny>,
    ) -> PyResult<Option<usize>> {
        let levels = listed(levels)?;
        let time = times::instant(t, self.scale)?;
        let user = Held::new(user, Role::User)?;
        let held = held(&levels)?;
        let values = values(&held)?;
        let level = self.lock(py)?.observe_levels(time, user.value(Role::User)?, &values);
        Ok(level.map_err(Failure::from)?)
    }

    /// How many users an attribute needs at time `t`: z, and what noise adds for it.
    #[pyo3(signature = (t, attribute, /))]
    fn threshold(
        &self,
        py: Python<'_>,
        t: &Bound<'_, PyAny>,
        attribute: &Bound<'_, PyAny>,
    ) -> PyResult<usize> {
        let time = times::instant(t, self.scale)?;
        let attribute = Held::new(attribute, Role::Attribute)?;
        let value = attribute.value(Role::Attribute)?;
        let gate = self.lock(py)?;
        value.and_then(|value| gate.threshold(time, value)).ok_or_else(|| {
            PyValueError::new_err("attribute: expected a value, got None or no number")
        })
    }

    /// The same for each level of an observation, coarsest first.
    #[pyo3(signature = (t, levels, /))]
    fn level_thresholds(
        &self,
        py: Python<'_>,
        t: &Bound<'_, PyAny>,
        levels: &Bound<'_, PyAny>,
    ) -> PyResult<Vec<usize>> {
        let time = times::instant(t, self.scale)?;
        let levels = listed(levels)?;
        let held = held(&levels)?;
        let values = values(&held)?;
        Ok(self.lock(py)?.level_thresholds(time, &values))
    }

    /// Whether an attribute has the users it needs at time `t`, or at its clock if that is later.
    /// Counts nobody.
    #[pyo3(signature = (t, attribute, /))]
    fn passes(
        &self,
        py: Python<'_>,
        t: &Bound<'_, PyAny>,
        attribute: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let time = times::instant(t, self.scale)?;
        let attribute = Held::new(attribute, Role::Attribute)?;
        Ok(self.lock(py)?.passes(time, attribute.value(Role::Attribute)?))
    }

    /// The same for each level of an observation, coarsest first.
    #[pyo3(signature = (t, levels, /))]
    fn levels_pass(
        &self,
        py: Python<'_>,
        t: &Bound<'_, PyAny>,
        levels: &Bound<'_, PyAny>,
    ) -> PyResult<Vec<bool>> {
        let time = times::instant(t, self.scale)?;
        let levels = listed(levels)?;
        let held = held(&levels)?;
        let values = values(&held)?;
        Ok(self.lock(py)?.levels_pass(time, &values))
    }

    #[pyo3(name = "_observe_arrays")]
    fn observe_arrays<'py>(
        &self,
        py: Python<'py>,
        times: &Bound<'py, PyAny>,
        users: &Bound<'py, PyAny>,
        attributes: &Bound<'py, PyAny>,
        unit_ns: Option<i64>,
    ) -> PyResult<Bound<'py, PyByteArray>> {
        let times = times::import(times)?;
        let users = Import::new(users, "users").array()?;
        let attributes = Import::new(attributes, "attributes").array()?;
        let columns = (&times, &users, &[attributes][..]);
        self.decide(py, columns, unit_ns, true, |level| u8::from(level != VEILED))
    }

    #[pyo3(name = "_observe_level_arrays")]
    fn observe_level_arrays<'py>(
        &self,
        py: Python<'py>,
        times: &Bound<'py, PyAny>,
        users: &Bound<'py, PyAny>,
        levels: Vec<Bound<'py, PyAny>>,
        unit_ns: Option<i64>,
    ) -> PyResult<Bound<'py, PyByteArray>> {
        let times = times::import(times)?;
        let users = Import::new(users, "users").array()?;
        let levels = levels
            .iter()
            .map(|level| Import::new(level, "levels").array())
            .collect::<PyResult<Vec<_>>>()?;
        self.decide(py, (&times, &users, &levels), unit_ns, false, i8::cast_unsigned)
    }

    /// Erase one user from every attribute; how many they were in.
    ///
    /// In each of these attributes the other users seen last remain, z_max - 1 at the most. An
    /// attribute that loses someone may veil what it would have released, never the reverse.
    fn forget(&self, py: Python<'_>, user: &Bound<'_, PyAny>) -> PyResult<usize> {
        let user = Held::new(user, Role::User)?;
        let Some(user) = user.value(Role::User)? else {
            return Err(PyValueError::new_err("user: expected a user id to forget, got None"));
        };
        Ok(self.lock(py)?.forget(user))
    }

    #[pyo3(name = "_set_z")]
    fn set_z(&self, py: Python<'_>, z: usize) -> PyResult<()> {
        Ok(self.lock(py)?.set_z(z).map_err(Failure::from)?)
    }

    /// Release nothing from here on, and count everyone as before; until z is set anew.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.lock(py)?.close();
        Ok(())
    }

    #[getter]
    fn is_closed(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.lock(py)?.is_closed())
    }

    #[pyo3(name = "_clock")]
    fn clock(&self, py: Python<'_>) -> PyResult<Option<i64>> {
        Ok(self.lock(py)?.clock())
    }

    #[pyo3(name = "_count_users")]
    fn count_users(&self, py: Python<'_>) -> PyResult<()> {
        self.lock(py)?.count_users();
        Ok(())
    }

    #[pyo3(name = "_census")]
    fn census<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        Ok(self.lock(py)?.census().map(|held| PyBytes::new(py, held)))
    }

    #[pyo3(name = "_resume_census")]
    fn resume_census(&self, py: Python<'_>, registers: &[u8]) -> PyResult<()> {
        if self.lock(py)?.resume_census(registers) {
            return Ok(());
        }
        Err(PyValueError::new_err("registers: expected what _census gave"))
    }

    #[pyo3(name = "_users")]
    fn users(&self, py: Python<'_>) -> PyResult<Option<f64>> {
        Ok(self.lock(py)?.users())
    }

    #[pyo3(name = "_crowds")]
    fn crowds<'py>(
        &self,
        py: Python<'py>,
        least: usize,
    ) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
        let (mut attributes, mut users, mut spans) = (Vec::new(), Vec::new(), Vec::new());
        py.detach(|| {
            self.guard()?.crowds(least, |found| {
                attributes.extend_from_slice(&found.attribute.to_ne_bytes());
                users.extend_from_slice(&(found.users as u64).to_ne_bytes());
                spans.extend_from_slice(&found.span.to_ne_bytes());
            });
            Ok::<_, Failure>(())
        })?;
        let bytes = |held: &[u8]| PyBytes::new(py, held);
        Ok((bytes(&attributes), bytes(&users), bytes(&spans)))
    }

    /// The 32 secret bytes; needed to restore a snapshot.
    #[getter]
    fn key<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, self.lock(py)?.secret().bytes()))
    }

    #[pyo3(name = "_settings")]
    fn settings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let settings = self.lock(py)?.settings().clone();
        settings::told(py, &settings)
    }

    #[pyo3(name = "_counts", signature = (entries))]
    fn counts<'py>(&self, py: Python<'py>, entries: bool) -> PyResult<Bound<'py, PyDict>> {
        let stats = py.detach(|| match self.inner.lock() {
            Ok(gate) => Ok(if entries { gate.stats() } else { gate.counts() }),
            Err(_) => Err(Failure::Broken),
        })?;
        settings::counted(py, &stats)
    }

    #[pyo3(name = "_resettle")]
    #[pyo3(signature = (*, z, lateness_ns, max_future_ns, memory_limit, noise, noise_period_ns))]
    #[expect(clippy::too_many_arguments, reason = "one for each setting; Python names them")]
    fn resettle(
        &self,
        py: Python<'_>,
        z: usize,
        lateness_ns: i64,
        max_future_ns: Option<i64>,
        memory_limit: Option<usize>,
        noise: usize,
        noise_period_ns: Option<i64>,
    ) -> PyResult<()> {
        let told = Resettled {
            z,
            lateness: lateness_ns,
            max_future: max_future_ns,
            memory_limit,
            noise: settings::noise(noise, noise_period_ns),
        };
        Ok(self.lock(py)?.resettle(&told).map_err(Failure::from)?)
    }

    #[pyo3(name = "_limit_attributes")]
    fn limit_attributes(&self, py: Python<'_>, most: usize) -> PyResult<()> {
        self.lock(py)?.limit_attributes(most);
        Ok(())
    }

    #[pyo3(name = "_save")]
    fn save(&self, py: Python<'_>, path: PathBuf, note: &[u8]) -> PyResult<()> {
        py.detach(|| {
            let gate = self.guard()?;
            gate.snapshot(&path, note).map_err(Failure::from)
        })?;
        Ok(())
    }

    #[pyo3(name = "_to_bytes")]
    fn to_bytes<'py>(&self, py: Python<'py>, note: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        let saved = py.detach(|| self.guard()?.to_bytes(note).map_err(Failure::from))?;
        Ok(PyBytes::new(py, &saved))
    }

    #[pyo3(name = "_adopt")]
    fn adopt(&self, py: Python<'_>, saved: &Saved) -> PyResult<()> {
        let gate = saved.take()?;
        *self.lock(py)? = gate;
        Ok(())
    }

    #[pyo3(name = "_exchange")]
    fn exchange(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<()> {
        let other = other.get();
        if std::ptr::eq(self, other) {
            return Ok(());
        }
        py.detach(|| -> Result<(), Failure> {
            // One that was loaded is nobody else's: this waits for its own at most.
            let mut theirs = other.guard()?;
            std::mem::swap(&mut *self.guard()?, &mut *theirs);
            Ok(())
        })?;
        Ok(())
    }
}
