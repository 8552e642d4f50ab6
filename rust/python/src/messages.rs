//! `zveil._native.TextWay` for messages, and who watches their partitions; documented in `_native.pyi`.

use crate::failure::Failure;
use crate::gate::Gate;
use crate::keyring::Keyring;
use crate::state::EventIds;
use crate::text::{TextWay, each_its_own, way_failure};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use std::sync::Mutex;
use zveil_core::text::{self, Beside, Keyed, Left, Messages, TextColumn, Trouble};

#[pyclass(frozen, module = "zveil._native")]
pub(crate) struct Witness(Mutex<text::Witness>);

#[pymethods]
impl Witness {
    #[new]
    fn new() -> PyResult<Self> {
        Ok(Self(Mutex::new(text::Witness::new().map_err(Failure::from)?)))
    }

    fn found(&self) -> PyResult<Vec<(u64, u32, u32)>> {
        Ok(self.0.lock().map_err(|_| Failure::Broken)?.found.clone())
    }
}

/// Places, records, keys, and what is wrong with bad messages.
pub(crate) type Answer<'py> = (
    Vec<usize>,
    Vec<Option<Bound<'py, PyBytes>>>,
    Vec<Option<Bound<'py, PyBytes>>>,
    Vec<(u64, &'static str, u64)>,
);

/// The same of messages that were decided: the places as 64-bit numbers one behind the other, since an object
/// for each would take longer than deciding; and the bytes of all values and of all records.
pub(crate) type Decided<'py> = (
    Bound<'py, PyBytes>,
    Vec<Bound<'py, PyBytes>>,
    Vec<Option<Bound<'py, PyBytes>>>,
    Vec<(u64, &'static str, u64)>,
    (usize, usize),
);

impl TextWay {
    pub(crate) fn decided<'py>(
        &self,
        py: Python<'py>,
        gates: &[Py<Gate>],
        values: &Bound<'py, PyList>,
        silent: bool,
        ids: Option<&Py<EventIds>>,
        (witness, partition): (Option<&Py<Witness>>, u32),
    ) -> PyResult<Decided<'py>> {
        let (messages, came) = self.filled(values)?;
        let gates = each_its_own(gates)?;
        let keyring = self.keyring.as_ref().map(Py::get);
        let ids = ids.map(Py::get);
        let witness = witness.map(Py::get);
        let left = py.detach(|| -> PyResult<Left> {
            let mut way = self.lock()?;
            let mut guards = Vec::with_capacity(gates.len());
            for gate in gates {
                guards.push(gate.guard()?);
            }
            let mut gates: Vec<_> = guards.iter_mut().map(|guard| &mut **guard).collect();
            let mut ids = ids.map(EventIds::guard).transpose()?;
            let mut keyring = keyring.map(Keyring::lock).transpose()?;
            let mut witness =
                witness.map(|one| one.0.lock().map_err(|_| Failure::Broken)).transpose()?;
            let beside = Beside {
                keyring: keyring.as_deref_mut(),
                ids: ids.as_deref_mut(),
                witness: witness.as_deref_mut().map(|witness| (witness, partition)),
            };
            way.decide_messages(&mut gates, beside, &messages, silent).map_err(way_failure)
        })?;
        let mut records = Vec::with_capacity(left.places.len());
        let mut keys = Vec::with_capacity(left.places.len());
        let mut leaving = 0;
        for part in &left.parts {
            for record in part.records() {
                leaving += record.len();
                records.push(PyBytes::new(py, record));
            }
            texts(py, &part.marks.keys, &mut keys);
        }
        let troubles = told(&left.troubles);
        left.parts.into_iter().for_each(|part| self.reuse(part.text));
        let places = left.places.iter().flat_map(|place| (*place as u64).to_ne_bytes());
        let places = PyBytes::new(py, &places.collect::<Vec<_>>());
        Ok((places, records, keys, troubles, (came, leaving)))
    }

    pub(crate) fn keyed<'py>(
        &self,
        py: Python<'py>,
        values: &Bound<'py, PyList>,
    ) -> PyResult<Answer<'py>> {
        let (messages, _) = self.filled(values)?;
        let keyed = py.detach(|| -> PyResult<Keyed> {
            self.lock()?.key_messages(&messages).map_err(way_failure)
        })?;
        let (mut records, mut keys) = (Vec::new(), Vec::new());
        texts(py, &keyed.values, &mut records);
        texts(py, &keyed.keys, &mut keys);
        Ok((keyed.places, records, keys, told(&keyed.troubles)))
    }

    /// The messages, and how many bytes their values have.
    fn filled(&self, values: &Bound<'_, PyList>) -> PyResult<(Messages, usize)> {
        let mut messages = self.lock()?.messages();
        let mut bytes = 0;
        for value in values.iter() {
            // Nothing, or bytes.
            let value: Option<Bound<'_, PyBytes>> = value.extract()?;
            let value = value.as_ref().map(|value| value.as_bytes());
            bytes += value.map_or(0, <[u8]>::len);
            messages.push(value);
        }
        Ok((messages, bytes))
    }
}

fn texts<'py>(py: Python<'py>, column: &TextColumn, found: &mut Vec<Option<Bound<'py, PyBytes>>>) {
    let mut start = 0;
    for (end, is_null) in column.ends.iter().zip(&column.is_null) {
        let end = *end as usize;
        found.push((!is_null).then(|| PyBytes::new(py, &column.bytes[start..end])));
        start = end;
    }
}

fn told(troubles: &[Trouble]) -> Vec<(u64, &'static str, u64)> {
    troubles.iter().map(|one| (one.line - 1, one.problem.name(), one.column)).collect()
}
