//! `zveil._native.Keyring`: the keys of pseudonyms. Its documentation is in `_native.pyi`.

use crate::columns::{Import, column};
use crate::failure::Failure;
use crate::text::{Buffers, buffers};
use crate::times::{self, Scale};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};
use zveil_core::text::TextColumn;
use zveil_core::{Keyring as Keys, Named, Periods, PseudonymFormat, Role, Secret};

#[pyclass(frozen, module = "zveil._native")]
pub(crate) struct Keyring(Mutex<Keys>);

impl Keyring {
    pub(crate) fn lock(&self) -> Result<MutexGuard<'_, Keys>, Failure> {
        self.0.lock().map_err(|_| Failure::Broken)
    }
}

fn format(name: &str) -> PyResult<PseudonymFormat> {
    PseudonymFormat::from_name(name).ok_or_else(|| {
        PyValueError::new_err("pseudonym: expected 'base32', 'hex', 'uuid' or 'crypto-pan'")
    })
}

#[pymethods]
impl Keyring {
    #[staticmethod]
    fn fixed(pseudonym: &str, key: [u8; 32]) -> PyResult<Self> {
        Ok(Self(Mutex::new(Keys::fixed(&Secret::new(key), format(pseudonym)?))))
    }

    #[staticmethod]
    fn kept(pseudonym: &str, key: [u8; 32], period_ns: i64) -> PyResult<Self> {
        let kept = Keys::kept(Secret::new(key), format(pseudonym)?, period_ns);
        Ok(Self(Mutex::new(kept.map_err(Failure::from)?)))
    }

    #[staticmethod]
    #[pyo3(signature = (pseudonym, path, *, period_ns, lateness_ns, max_future_ns))]
    fn chain(
        pseudonym: &str,
        path: Option<PathBuf>,
        period_ns: i64,
        lateness_ns: i64,
        max_future_ns: Option<i64>,
    ) -> PyResult<Self> {
        let format = format(pseudonym)?;
        let periods =
            Periods { length: period_ns, lateness: lateness_ns, max_future: max_future_ns };
        let chain = match path {
            Some(path) => Keys::chain_file(&path, format, periods),
            None => Secret::random().and_then(|secret| Keys::chain(secret, format, periods)),
        };
        Ok(Self(Mutex::new(chain.map_err(Failure::from)?)))
    }

    #[getter]
    fn rotates(&self) -> PyResult<bool> {
        Ok(self.lock()?.rotates())
    }

    fn name(
        &self,
        py: Python<'_>,
        times: Option<&Bound<'_, PyAny>>,
        unit_ns: Option<i64>,
        leaves: Option<&[u8]>,
    ) -> PyResult<Names> {
        let times = times.map(times::import).transpose()?;
        py.detach(|| {
            let scale = Scale { unit: unit_ns.unwrap_or(1), beyond: times::NONE };
            let times = times.as_ref().map(|times| times::column(times, scale)).transpose()?;
            let times = times.as_deref().unwrap_or_default();
            if leaves.is_some_and(|leaves| leaves.len() < times.len()) {
                return Err(PyValueError::new_err("leaves: expected a byte for each time"));
            }
            let leaves = |row: usize| leaves.is_none_or(|leaves| leaves[row] != 0);
            let mut keys = self.lock()?;
            let mut named = Named::default();
            keys.name(times, leaves, &mut named).map_err(Failure::from)?;
            keys.settle().map_err(Failure::from)?;
            Ok(Names(named))
        })
    }

    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.lock()?.state()))
    }

    fn resume(&self, state: &[u8]) -> PyResult<()> {
        Ok(self.lock()?.resume(state).map_err(Failure::from)?)
    }

    fn hold(&self) -> PyResult<()> {
        self.lock()?.hold();
        Ok(())
    }

    #[pyo3(signature = (state = None))]
    fn move_on(&self, py: Python<'_>, state: Option<&[u8]>) -> PyResult<()> {
        Ok(py.detach(|| self.lock()?.move_on(state).map_err(Failure::from))?)
    }
}

/// Keys found for the records of a batch.
#[pyclass(frozen, module = "zveil._native")]
pub(crate) struct Names(Named);

#[pymethods]
impl Names {
    #[getter]
    fn only(&self) -> Option<i64> {
        self.0.only()
    }

    fn pseudonyms<'py>(
        &self,
        py: Python<'py>,
        users: &Bound<'py, PyAny>,
        leaves: Option<&[u8]>,
    ) -> PyResult<Buffers<'py>> {
        let users = Import::new(users, "users").array()?;
        let made = py.detach(|| -> PyResult<TextColumn> {
            let users = column(&users, Role::User, None)?;
            // The records that leave, among all.
            let rows: Vec<usize> = match leaves {
                Some(leaves) => (0..leaves.len()).filter(|row| leaves[*row] != 0).collect(),
                None => (0..users.len()).collect(),
            };
            if rows.len() != users.len() {
                return Err(PyValueError::new_err("users: expected one for each that leaves"));
            }
            let users = rows.iter().enumerate().map(|(at, row)| (*row, users.value(at)));
            let (mut found, mut made) = (Vec::new(), TextColumn::default());
            self.0.pseudonyms(users, &mut found);
            for one in found {
                one.iter().for_each(|name| name.put(&mut made.bytes));
                made.ends.push(made.bytes.len() as u64);
                made.is_null.push(one.is_none());
            }
            Ok(made)
        })?;
        Ok(buffers(py, &made))
    }
}
