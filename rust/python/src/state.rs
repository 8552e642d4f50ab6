//! `zveil._native`: saving and loading a state, and the ids of events. Documented in `_native.pyi`.

use crate::columns::{Import, column, unsupported};
use crate::failure::Failure;
use crate::gate::Gate;
use crate::meter::Meter;
use crate::times::{self, Scale};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, TryLockError};
use zveil_core::state::{self, Loaded, Part, Plan};
use zveil_core::{LiveMeter, Role, Secret};

const DAY: i64 = 86_400_000_000_000;

#[pyclass(frozen, module = "zveil._native")]
pub(crate) struct EventIds(Mutex<zveil_core::EventIds>);

impl EventIds {
    pub(crate) fn guard(&self) -> Result<MutexGuard<'_, zveil_core::EventIds>, Failure> {
        self.0.lock().map_err(|_| Failure::Broken)
    }
}

#[pymethods]
impl EventIds {
    #[new]
    #[pyo3(signature = (*, key, window_ns, most, max_future_ns = Some(DAY)))]
    fn new(
        key: [u8; 32],
        window_ns: i64,
        most: usize,
        max_future_ns: Option<i64>,
    ) -> PyResult<Self> {
        let ids = zveil_core::EventIds::new(Secret::new(key), window_ns, most, max_future_ns);
        Ok(Self(Mutex::new(ids.map_err(Failure::from)?)))
    }

    fn fresh<'py>(
        &self,
        py: Python<'py>,
        times: &Bound<'py, PyAny>,
        ids: &Bound<'py, PyAny>,
        time_unit_ns: Option<i64>,
    ) -> PyResult<(Bound<'py, PyBytes>, u64)> {
        let times = times::import(times)?;
        let ids = Import::new(ids, "ids").array()?;
        let (bits, repeated) = py.detach(|| -> PyResult<_> {
            let mut known = self.guard()?;
            let beyond = if known.refuses_future() { i64::MAX } else { times::NONE };
            let scale = Scale { unit: time_unit_ns.unwrap_or(1), beyond };
            let times = times::column(&times, scale)?;
            let ids = column(&ids, Role::Attribute, None)?;
            if times.len() != ids.len() {
                return Err(PyValueError::new_err("ids: expected one for each time"));
            }
            let before = known.repeated();
            let mut bits = vec![0_u8; times.len().div_ceil(8)];
            for (row, time) in times.iter().enumerate() {
                bits[row / 8] |= u8::from(known.is_fresh(*time, ids.value(row))) << (row % 8);
            }
            Ok((bits, known.repeated() - before))
        })?;
        Ok((PyBytes::new(py, &bits), repeated))
    }

    fn __len__(&self) -> PyResult<usize> {
        Ok(self.guard()?.len())
    }

    #[getter]
    fn repeated(&self) -> PyResult<u64> {
        Ok(self.guard()?.repeated())
    }

    #[getter]
    fn forgotten(&self) -> PyResult<u64> {
        Ok(self.guard()?.forgotten())
    }

    #[getter]
    fn memory(&self) -> PyResult<usize> {
        Ok(self.guard()?.bytes())
    }
}

/// Something that can be saved.
enum Saved<'a> {
    Gate(&'a Gate),
    Ids(&'a EventIds),
    Meter(&'a Meter),
}

/// The same, held.
enum Held<'a> {
    Gate(MutexGuard<'a, zveil_core::Gate>),
    Ids(MutexGuard<'a, zveil_core::EventIds>),
    Meter(MutexGuard<'a, LiveMeter>),
}

impl Saved<'_> {
    fn of<'a>(object: &'a Bound<'_, PyAny>) -> PyResult<Saved<'a>> {
        if let Ok(gate) = object.cast::<Gate>() {
            return Ok(Saved::Gate(gate.get()));
        }
        if let Ok(ids) = object.cast::<EventIds>() {
            return Ok(Saved::Ids(ids.get()));
        }
        if let Ok(meter) = object.cast::<Meter>() {
            return Ok(Saved::Meter(meter.get()));
        }
        let got = object.get_type().name().map(|name| name.to_string()).unwrap_or_default();
        Err(unsupported("parts", "gates, event ids and meters", &got))
    }
}

impl<'a> Saved<'a> {
    /// `None` if somebody else has it, and this is not to wait.
    fn hold(&self, wait: bool) -> Result<Option<Held<'a>>, Failure> {
        match self {
            Self::Gate(gate) if wait => Ok(Some(Held::Gate(gate.guard()?))),
            Self::Gate(gate) => Ok(tried(gate.try_guard())?.map(Held::Gate)),
            Self::Ids(ids) if wait => Ok(Some(Held::Ids(ids.guard()?))),
            Self::Ids(ids) => Ok(tried(ids.0.try_lock())?.map(Held::Ids)),
            Self::Meter(meter) if wait => settled(meter.guard()?).map(Some),
            Self::Meter(meter) => tried(meter.try_guard())?.map(settled).transpose(),
        }
    }

    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Gate(one), Self::Gate(other)) => std::ptr::eq(*one, *other),
            (Self::Ids(one), Self::Ids(other)) => std::ptr::eq(*one, *other),
            (Self::Meter(one), Self::Meter(other)) => std::ptr::eq(*one, *other),
            _ => false,
        }
    }
}

/// A meter that has taken in all that was brought: its thread needs nobody to be done, and a process that
/// writes has none.
fn settled(mut meter: MutexGuard<'_, LiveMeter>) -> Result<Held<'_>, Failure> {
    meter.meter()?;
    Ok(Held::Meter(meter))
}

fn tried<'a, T>(
    found: Result<MutexGuard<'a, T>, TryLockError<MutexGuard<'a, T>>>,
) -> Result<Option<MutexGuard<'a, T>>, Failure> {
    match found {
        Ok(guard) => Ok(Some(guard)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Poisoned(_)) => Err(Failure::Broken),
    }
}

impl Held<'_> {
    /// `None` for a meter that has not taken in all, which none is that is held.
    fn part(&self) -> Option<&dyn Part> {
        match self {
            Self::Gate(gate) => Some(&**gate),
            Self::Ids(ids) => Some(&**ids),
            Self::Meter(meter) => meter.settled().map(|meter| meter as &dyn Part),
        }
    }
}

/// Holds all of them. Who waits for one holds no other: threads that take them in another order go on.
fn hold_all<'a>(parts: &[Saved<'a>]) -> Result<Vec<Held<'a>>, Failure> {
    let mut first = 0;
    'again: loop {
        let mut held: Vec<Option<Held<'a>>> = parts.iter().map(|_| None).collect();
        if let Some(part) = parts.get(first) {
            held[first] = part.hold(true)?;
        }
        for (number, part) in parts.iter().enumerate().filter(|(number, _)| *number != first) {
            held[number] = part.hold(false)?;
            if held[number].is_none() {
                first = number;
                continue 'again;
            }
        }
        return Ok(held.into_iter().flatten().collect());
    }
}

#[pyfunction]
#[pyo3(signature = (path, key, note, parts, *, sync = Vec::new(), keep = Vec::new(), wait = false))]
#[expect(clippy::too_many_arguments, reason = "one for each option; Python names them")]
pub(crate) fn save_state(
    py: Python<'_>,
    path: PathBuf,
    key: [u8; 32],
    note: &[u8],
    parts: Vec<Bound<'_, PyAny>>,
    sync: Vec<i32>,
    keep: Vec<i32>,
    wait: bool,
) -> PyResult<Saving> {
    let parts = parts.iter().map(Saved::of).collect::<PyResult<Vec<_>>>()?;
    for (number, part) in parts.iter().enumerate() {
        if parts[..number].iter().any(|other| other.is(part)) {
            return Err(PyValueError::new_err("parts: expected each of them once"));
        }
    }
    let secret = Secret::new(key);
    let saving = py.detach(|| -> Result<_, Failure> {
        let held = hold_all(&parts)?;
        let parts: Option<Vec<&dyn Part>> = held.iter().map(Held::part).collect();
        let parts = parts.ok_or(Failure::Broken)?;
        let (sync, keep) = (&sync[..], &keep[..]);
        let plan = Plan { path: &path, secret: &secret, note, parts: &parts, sync, keep, wait };
        Ok(state::save(&plan)?)
    })?;
    Ok(Saving(Mutex::new(saving)))
}

#[pyclass(frozen, module = "zveil._native")]
pub(crate) struct Saving(Mutex<state::Saving>);

impl Saving {
    fn lock(&self) -> Result<MutexGuard<'_, state::Saving>, Failure> {
        self.0.lock().map_err(|_| Failure::Broken)
    }
}

#[pymethods]
impl Saving {
    fn is_over(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(py.detach(|| self.lock()?.is_over().map_err(Failure::from))?)
    }

    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        Ok(py.detach(|| self.lock()?.wait().map_err(Failure::from))?)
    }

    #[getter]
    fn pause_ns(&self) -> PyResult<u64> {
        Ok(u64::try_from(self.lock()?.pause().as_nanos()).unwrap_or(u64::MAX))
    }

    #[getter]
    fn is_beside(&self) -> PyResult<bool> {
        Ok(self.lock()?.is_beside())
    }
}

#[pyfunction]
#[pyo3(signature = (path, key, *, threads = 1))]
pub(crate) fn load_state<'py>(
    py: Python<'py>,
    path: PathBuf,
    key: [u8; 32],
    threads: usize,
) -> PyResult<(Bound<'py, PyBytes>, Vec<Bound<'py, PyAny>>)> {
    let secret = Secret::new(key);
    let loaded = py.detach(|| state::load(&path, &secret, threads));
    let (note, parts) = loaded.map_err(Failure::from)?;
    let object = |part| match part {
        Loaded::Gate(gate) => Ok(Bound::new(py, Gate::loaded(*gate))?.into_any()),
        Loaded::Ids(ids) => Ok(Bound::new(py, EventIds(Mutex::new(*ids)))?.into_any()),
        Loaded::Meter(meter) => Ok(Bound::new(py, Meter::loaded(*meter))?.into_any()),
    };
    let parts = parts.into_iter().map(object).collect::<PyResult<_>>()?;
    Ok((PyBytes::new(py, &note), parts))
}

#[pyfunction]
pub(crate) fn read_note<'py>(
    py: Python<'py>,
    path: PathBuf,
    key: [u8; 32],
) -> PyResult<Bound<'py, PyBytes>> {
    let note = py.detach(|| state::read_note(&path, &Secret::new(key)));
    Ok(PyBytes::new(py, &note.map_err(Failure::from)?))
}
