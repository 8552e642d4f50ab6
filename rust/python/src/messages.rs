//! `zveil._native.TextWay` for messages, and who watches their partitions; documented in `_native.pyi`.

use crate::failure::Failure;
use crate::gate::Gate;
use crate::keyring::Keyring;
use crate::message_batch::MessageBatch;
use crate::state::EventIds;
use crate::text::{TextWay, each_its_own, way_failure};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use std::ops::Range;
use std::sync::Mutex;
use zveil_core::text::{self, Beside, Keyed, Messages, Trouble};
use zveil_kafka::Batch;

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

/// What leaves of some messages. The memory of its text goes back to the way that wrote it.
#[pyclass(frozen, module = "zveil._native")]
pub(crate) struct Left {
    messages: Py<MessageBatch>,
    /// The first of the messages: places count from it.
    first: usize,
    written: What,
    troubles: Vec<Trouble>,
    bytes_in: usize,
    bytes_out: usize,
    way: Option<Py<TextWay>>,
}

enum What {
    Decided(text::Left),
    Keyed(Keyed),
    /// All of them as they came: so many.
    Unchanged(usize),
}

/// One record that leaves.
pub(crate) struct Record<'a> {
    /// The message that it is from.
    pub(crate) place: usize,
    /// `None`: that of the message.
    pub(crate) value: Option<&'a [u8]>,
    pub(crate) key: Option<&'a [u8]>,
}

impl Left {
    pub(crate) fn messages(&self) -> &Batch {
        &self.messages.get().0
    }

    /// The records, in the order in which they leave.
    pub(crate) fn records(&self) -> Box<dyn Iterator<Item = Record<'_>> + '_> {
        let place = |place: &usize| self.first + place;
        match &self.written {
            What::Decided(left) => {
                let values = left.parts.iter().flat_map(|part| part.records());
                let keys = left.parts.iter().flat_map(|part| part.marks.keys.texts());
                let records = left.places.iter().zip(values).zip(keys);
                Box::new(records.map(move |((at, value), key)| Record {
                    place: place(at),
                    value: Some(value),
                    key,
                }))
            }
            What::Keyed(keyed) => {
                let records = keyed.places.iter().zip(keyed.values.texts()).zip(keyed.keys.texts());
                Box::new(records.map(move |((at, value), key)| Record {
                    place: place(at),
                    value,
                    key,
                }))
            }
            What::Unchanged(count) => Box::new((0..*count).map(move |at| Record {
                place: self.first + at,
                value: None,
                key: None,
            })),
        }
    }
}

impl Drop for Left {
    fn drop(&mut self) {
        if let (Some(way), What::Decided(left)) = (&self.way, &mut self.written) {
            left.parts.drain(..).for_each(|part| way.get().reuse(part.text));
        }
    }
}

#[pymethods]
impl Left {
    /// All messages as they came.
    #[staticmethod]
    fn unchanged(messages: Py<MessageBatch>) -> Self {
        let count = messages.get().0.len();
        let bytes =
            (0..count).filter_map(|at| messages.get().0.get(at)?.value).map(<[u8]>::len).sum();
        Self {
            messages,
            first: 0,
            written: What::Unchanged(count),
            troubles: Vec::new(),
            bytes_in: bytes,
            bytes_out: bytes,
            way: None,
        }
    }

    fn __len__(&self) -> usize {
        match &self.written {
            What::Decided(left) => left.places.len(),
            What::Keyed(keyed) => keyed.places.len(),
            What::Unchanged(count) => *count,
        }
    }

    #[getter]
    fn places(&self) -> Vec<usize> {
        self.records().map(|record| record.place).collect()
    }

    #[getter(records)]
    fn all_records<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let source = |place| self.messages().get(place).and_then(|message| message.value);
        let texts = self.records().map(|one| one.value.or_else(|| source(one.place)));
        let texts: Vec<_> = texts.map(|text| PyBytes::new(py, text.unwrap_or_default())).collect();
        PyList::new(py, texts)
    }

    #[getter]
    fn keys<'py>(&self, py: Python<'py>) -> Vec<Option<Bound<'py, PyBytes>>> {
        self.records().map(|record| record.key.map(|key| PyBytes::new(py, key))).collect()
    }

    #[getter]
    fn troubles(&self) -> Vec<(usize, &'static str, u64)> {
        let place = |line: u64| self.first + usize::try_from(line - 1).unwrap_or(0);
        let told = |one: &Trouble| (place(one.line), one.problem.name(), one.column);
        self.troubles.iter().map(told).collect()
    }

    #[getter]
    fn bytes_in(&self) -> usize {
        self.bytes_in
    }

    #[getter]
    fn bytes_out(&self) -> usize {
        self.bytes_out
    }
}

impl TextWay {
    pub(crate) fn decided(
        slf: &Bound<'_, Self>,
        gates: &[Py<Gate>],
        (messages, run): (&Py<MessageBatch>, Range<usize>),
        silent: bool,
        ids: Option<&Py<EventIds>>,
        (witness, partition): (Option<&Py<Witness>>, u32),
    ) -> PyResult<Left> {
        let (py, this) = (slf.py(), slf.get());
        let gates = each_its_own(gates)?;
        let keyring = this.keyring.as_ref().map(Py::get);
        let ids = ids.map(Py::get);
        let witness = witness.map(Py::get);
        let (batch, first) = (&messages.get().0, run.start);
        let (mut left, bytes_in) = py.detach(|| -> PyResult<_> {
            let mut way = this.lock()?;
            let (messages, came) = filled(&way, batch, run)?;
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
            let left = way.decide_messages(&mut gates, beside, &messages, silent);
            Ok((left.map_err(way_failure)?, came))
        })?;
        let bytes_out = left.parts.iter().flat_map(|part| part.records()).map(<[u8]>::len).sum();
        Ok(Left {
            messages: messages.clone_ref(py),
            first,
            troubles: std::mem::take(&mut left.troubles),
            written: What::Decided(left),
            bytes_in,
            bytes_out,
            way: Some(slf.clone().unbind()),
        })
    }

    pub(crate) fn keyed(
        slf: &Bound<'_, Self>,
        messages: &Py<MessageBatch>,
        run: Range<usize>,
    ) -> PyResult<Left> {
        let (py, this) = (slf.py(), slf.get());
        let (batch, first) = (&messages.get().0, run.start);
        let (mut keyed, bytes_in) = py.detach(|| -> PyResult<_> {
            let mut way = this.lock()?;
            let (messages, came) = filled(&way, batch, run)?;
            Ok((way.key_messages(&messages).map_err(way_failure)?, came))
        })?;
        let mut left = Left {
            messages: messages.clone_ref(py),
            first,
            troubles: std::mem::take(&mut keyed.troubles),
            written: What::Keyed(keyed),
            bytes_in,
            bytes_out: 0,
            way: None,
        };
        let source = |place| batch.get(place).and_then(|message| message.value);
        let texts = left.records().filter_map(|one| one.value.or_else(|| source(one.place)));
        left.bytes_out = texts.map(<[u8]>::len).sum();
        Ok(left)
    }
}

/// Messages to be read, and how many bytes their values have.
fn filled(way: &text::Way, batch: &Batch, run: Range<usize>) -> PyResult<(Messages, usize)> {
    if run.start > run.end || run.end > batch.len() {
        return Err(PyIndexError::new_err("start, end: expected a run of the messages"));
    }
    let mut messages = way.messages();
    let mut bytes = 0;
    for number in run {
        let value = batch.get(number).and_then(|message| message.value);
        bytes += value.map_or(0, <[u8]>::len);
        messages.push(value);
    }
    Ok((messages, bytes))
}
