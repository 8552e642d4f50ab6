//! `zveil._native.TextWay`: text in, released text out. Its documentation is in `_native.pyi`.

use crate::columns::{Import, column};
use crate::failure::Failure;
use crate::gate::Gate;
use crate::keyring::Keyring;
use crate::ladder::Ladder;
use crate::lines_out::LinesOut;
use crate::message_batch::MessageBatch;
use crate::messages::{Left, Witness};
use crate::meter::Meter;
use crate::names::NameFilter;
use crate::state::EventIds;
use pyo3::exceptions::{PyLookupError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyMemoryView};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{SystemTime, UNIX_EPOCH};
use zveil_core::text::{
    Beside, Empty, Hierarchy, LogFormat, Output, Plan, Problem, Step, TextColumn, TextFormat,
    TimeFormat, Way, WayError, Written, path,
};
use zveil_core::{Role, Value};

#[pyclass(frozen, module = "zveil._native")]
pub(crate) struct TextWay {
    way: Mutex<Way>,
    /// None: user ids leave as they are.
    pub(crate) keyring: Option<Py<Keyring>>,
}

/// A column for Arrow: number of values, bits of those that are there, ends, bytes.
pub(crate) type Buffers<'py> =
    (usize, Bound<'py, PyBytes>, Bound<'py, PyBytes>, Bound<'py, PyBytes>);

fn text_format(name: &str, delimiter: &str) -> PyResult<TextFormat> {
    match (name, delimiter.as_bytes()) {
        ("ndjson", _) => Ok(TextFormat::Ndjson),
        ("csv", [delimiter]) => Ok(TextFormat::Csv(*delimiter)),
        _ => LogFormat::from_name(name).map(TextFormat::Log).ok_or_else(|| {
            PyValueError::new_err(
                "format: expected 'ndjson', 'csv' with a delimiter, or the name of a log",
            )
        }),
    }
}

impl TextWay {
    pub(crate) fn lock(&self) -> Result<MutexGuard<'_, Way>, Failure> {
        self.way.lock().map_err(|_| Failure::Broken)
    }

    /// Takes memory back. If somebody is at work it is let go: nobody waits for that.
    pub(crate) fn reuse(&self, text: Vec<u8>) {
        if let Ok(mut way) = self.way.try_lock() {
            way.reuse(text);
        }
    }

    fn run(
        &self,
        py: Python<'_>,
        gates: &[Py<Gate>],
        data: &[u8],
        last: bool,
        (ids, meter): (Option<&Py<EventIds>>, Option<&Py<Meter>>),
    ) -> PyResult<Vec<Written>> {
        let gates = each_its_own(gates)?;
        let keyring = self.keyring.as_ref().map(Py::get);
        let (ids, meter) = (ids.map(Py::get), meter.map(Py::get));
        py.detach(|| {
            let mut way = self.lock()?;
            let mut guards = Vec::with_capacity(gates.len());
            for gate in gates {
                guards.push(gate.guard()?);
            }
            let mut gates: Vec<_> = guards.iter_mut().map(|guard| &mut **guard).collect();
            let mut ids = ids.map(EventIds::guard).transpose()?;
            let mut keyring = keyring.map(Keyring::lock).transpose()?;
            let keyring = keyring.as_deref_mut();
            let beside = Beside { keyring, ids: ids.as_deref_mut(), witness: None };
            let mut meter = meter.map(Meter::guard).transpose()?;
            way.watch(meter.as_deref().map(zveil_core::LiveMeter::lens));
            let mut written = way.feed(&mut gates, beside, data, last).map_err(way_failure)?;
            if let Some(meter) = &mut meter {
                meter.take_in(&mut written, &gates).map_err(Failure::from)?;
            }
            Ok(written)
        })
    }
}

/// The gates, of which none may be there twice.
pub(crate) fn each_its_own(gates: &[Py<Gate>]) -> PyResult<Vec<&Gate>> {
    let gates: Vec<&Gate> = gates.iter().map(Py::get).collect();
    for (number, gate) in gates.iter().enumerate() {
        if gates[..number].iter().any(|other| std::ptr::eq(*other, *gate)) {
            return Err(PyValueError::new_err("gates: each attribute needs a gate of its own"));
        }
    }
    Ok(gates)
}

pub(crate) fn way_failure(error: WayError) -> PyErr {
    match error {
        WayError::Gate(error) => Failure::from(error).into(),
        WayError::Column { wanted, found } => PyLookupError::new_err((wanted, found)),
        WayError::Header(_) | WayError::Log(_) => PyLookupError::new_err(error.to_string()),
    }
}

#[pymethods]
impl TextWay {
    #[new]
    #[pyo3(signature = (*, source, source_delimiter, to, to_delimiter, fields, attributes, veiled,
        ladders, positions, swaps, keep_rest, blank, time_format, step_ns, max_line,
        stop_at_problem, keyring, threads, flat = false, filters = Vec::new(), year = None,
        id_field = None))]
    #[expect(clippy::too_many_arguments, reason = "one for each setting; Python names them")]
    fn new(
        source: &str,
        source_delimiter: &str,
        to: &str,
        to_delimiter: &str,
        fields: Vec<String>,
        attributes: usize,
        veiled: Vec<Option<String>>,
        ladders: Vec<Option<Py<Ladder>>>,
        positions: Vec<Option<[String; 2]>>,
        swaps: Vec<f64>,
        keep_rest: bool,
        blank: bool,
        time_format: Option<&str>,
        step_ns: Option<i64>,
        max_line: usize,
        stop_at_problem: bool,
        keyring: Option<Py<Keyring>>,
        threads: usize,
        flat: bool,
        filters: Vec<Py<NameFilter>>,
        year: Option<i64>,
        id_field: Option<String>,
    ) -> PyResult<Self> {
        let time_format = match time_format.map(TimeFormat::from_name) {
            Some(None) => {
                return Err(PyValueError::new_err(
                    "time_format: expected 's', 'ms', 'us', 'ns' or 'iso'",
                ));
            }
            stated => stated.flatten(),
        };
        let step = match step_ns.map(Step::new) {
            Some(None) => {
                return Err(PyValueError::new_err(
                    "step_ns: expected whole seconds that a day is made of",
                ));
            }
            step => step.flatten(),
        };
        if veiled.len() != attributes {
            return Err(PyValueError::new_err("veiled: expected one for each attribute"));
        }
        if swaps.len() != attributes {
            return Err(PyValueError::new_err("swaps: expected one for each attribute"));
        }
        if attributes == 0 || fields.len() < 2 + attributes {
            return Err(PyValueError::new_err("fields: expected time, user and attributes"));
        }
        let hierarchies = hierarchies(attributes, ladders, positions)?;
        let input = text_format(source, source_delimiter)?;
        let plan = Plan {
            input,
            output: match to {
                "columns" => Output::Columns,
                "nothing" => Output::Nothing,
                name => Output::Text(text_format(name, to_delimiter)?),
            },
            fields,
            flat,
            attributes,
            veiled,
            hierarchies,
            swaps,
            filters: filters.iter().map(|filter| Arc::clone(&filter.get().0)).collect(),
            keep_rest,
            empty: if blank { Empty::Blank } else { Empty::Drop },
            time_format: input.time_format().or(time_format),
            step,
            max_line,
            stop_at_problem,
            year,
            id_field,
        };
        Ok(Self { way: Mutex::new(Way::new(plan, threads)), keyring })
    }

    #[pyo3(signature = (written = None))]
    fn start_file(&self, written: Option<i64>) -> PyResult<()> {
        self.lock()?.start_file(written.unwrap_or_else(now));
        Ok(())
    }

    #[pyo3(signature = (gates, data, last, *, ids = None, meter = None))]
    fn feed<'py>(
        slf: &Bound<'py, Self>,
        gates: Vec<Py<Gate>>,
        data: &[u8],
        last: bool,
        ids: Option<Py<EventIds>>,
        meter: Option<Py<Meter>>,
    ) -> PyResult<Vec<Bound<'py, PyMemoryView>>> {
        let (way, beside) = (slf.get(), (ids.as_ref(), meter.as_ref()));
        let written = way.run(slf.py(), &gates, data, last, beside)?;
        let (texts, empty): (Vec<_>, Vec<_>) =
            written.into_iter().map(|part| part.text).partition(|text| !text.is_empty());
        empty.into_iter().for_each(|text| way.reuse(text));
        texts.into_iter().map(|text| LinesOut::shown(text, slf)).collect()
    }

    #[pyo3(signature = (gates, data, last, *, ids = None, meter = None))]
    fn feed_columns<'py>(
        &self,
        py: Python<'py>,
        gates: Vec<Py<Gate>>,
        data: &[u8],
        last: bool,
        ids: Option<Py<EventIds>>,
        meter: Option<Py<Meter>>,
    ) -> PyResult<Vec<Vec<Buffers<'py>>>> {
        let written = self.run(py, &gates, data, last, (ids.as_ref(), meter.as_ref()))?;
        let parts = written.iter().filter(|part| part.records > 0);
        Ok(parts.map(|part| part.columns.iter().map(|one| buffers(py, one)).collect()).collect())
    }

    fn begin_messages(&self, columns: Vec<String>) -> PyResult<()> {
        self.lock()?.begin_messages(&columns).map_err(way_failure)
    }

    #[pyo3(signature = (gates, messages, start, end, *, silent = false, ids = None, witness = None,
        partition = 0))]
    #[expect(clippy::too_many_arguments, reason = "Python names them")]
    fn decide_messages(
        slf: &Bound<'_, Self>,
        gates: Vec<Py<Gate>>,
        messages: Py<MessageBatch>,
        start: usize,
        end: usize,
        silent: bool,
        ids: Option<Py<EventIds>>,
        witness: Option<Py<Witness>>,
        partition: u32,
    ) -> PyResult<Left> {
        let witness = (witness.as_ref(), partition);
        Self::decided(slf, &gates, (&messages, start..end), silent, ids.as_ref(), witness)
    }

    fn key_messages(
        slf: &Bound<'_, Self>,
        messages: Py<MessageBatch>,
        start: usize,
        end: usize,
    ) -> PyResult<Left> {
        Self::keyed(slf, &messages, start..end)
    }

    #[getter]
    fn fields(&self) -> PyResult<Vec<String>> {
        Ok(self.lock()?.fields().to_vec())
    }

    #[getter]
    fn time_format(&self) -> PyResult<Option<&'static str>> {
        Ok(self.lock()?.time_format().map(TimeFormat::name))
    }

    #[getter]
    fn is_clean(&self) -> PyResult<bool> {
        Ok(self.lock()?.tally.bad.iter().all(|count| *count == 0))
    }

    #[getter]
    fn stopped(&self) -> PyResult<bool> {
        Ok(self.lock()?.stopped)
    }

    #[getter]
    fn consumed(&self) -> PyResult<u64> {
        Ok(self.lock()?.consumed())
    }

    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.lock()?.state()))
    }

    fn resume(&self, state: &[u8]) -> PyResult<()> {
        self.lock()?.resume(state).map_err(way_failure)
    }

    fn take_troubles(&self) -> PyResult<Vec<(u64, &'static str, u64)>> {
        let troubles = self.lock()?.take_troubles();
        Ok(troubles.iter().map(|one| (one.line, one.problem.name(), one.column)).collect())
    }

    fn tally<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let tally = self.lock()?.tally.clone();
        let bad = PyDict::new(py);
        for problem in Problem::ALL {
            bad.set_item(problem.name(), tally.bad[problem as usize])?;
        }
        let found = PyDict::new(py);
        found.set_item("lines", tally.lines)?;
        found.set_item("records", tally.records)?;
        found.set_item("leaving", tally.leaving)?;
        found.set_item("levels", tally.levels)?;
        found.set_item("swapped", tally.swapped)?;
        found.set_item("bad", bad)?;
        found.set_item("passed", tally.passed)?;
        found.set_item("filtered", tally.filtered)?;
        found.set_item("repeated", tally.repeated)?;
        Ok(found)
    }
}

fn hierarchies(
    attributes: usize,
    ladders: Vec<Option<Py<Ladder>>>,
    positions: Vec<Option<[String; 2]>>,
) -> PyResult<Vec<Option<Hierarchy>>> {
    if ladders.iter().all(Option::is_none) {
        return Ok(Vec::new());
    }
    if ladders.len() != attributes || positions.len() != attributes {
        return Err(PyValueError::new_err("ladders, positions: expected one for each attribute"));
    }
    let hierarchy = |(ladder, position): (Option<Py<Ladder>>, Option<[String; 2]>)| {
        let takes_position = ladder.as_ref().is_some_and(|ladder| ladder.get().0.takes_position());
        if takes_position != position.is_some() {
            return Err(PyValueError::new_err("positions: expected for a ladder of cells, only"));
        }
        Ok(ladder.map(|ladder| Hierarchy { ladder: Arc::clone(&ladder.get().0), position }))
    };
    ladders.into_iter().zip(positions).map(hierarchy).collect()
}

/// Nanoseconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

/// The ends begin with a zero, as Arrow has it.
pub(crate) fn buffers<'py>(py: Python<'py>, column: &TextColumn) -> Buffers<'py> {
    let mut bits = vec![0_u8; column.ends.len().div_ceil(8)];
    let mut ends = Vec::with_capacity(8 * (column.ends.len() + 1));
    ends.extend_from_slice(&[0; 8]);
    for (place, (end, is_null)) in column.ends.iter().zip(&column.is_null).enumerate() {
        ends.extend_from_slice(&end.to_le_bytes());
        bits[place / 8] |= u8::from(!is_null) << (place % 8);
    }
    let count = column.ends.len();
    (count, PyBytes::new(py, &bits), PyBytes::new(py, &ends), PyBytes::new(py, &column.bytes))
}

/// What is wrong with a line, by its name, for people.
#[pyfunction]
pub(crate) fn problem_sentence(name: &str) -> Option<&'static str> {
    let found = Problem::ALL.into_iter().find(|problem| problem.name() == name);
    found.map(Problem::sentence)
}

/// The members that a field's name goes through.
#[pyfunction]
pub(crate) fn field_path(name: &str) -> Vec<String> {
    path(name)
}

/// Times that are text: their format, the nanoseconds, and how many are no times.
#[pyfunction]
pub(crate) fn parse_times<'py>(
    py: Python<'py>,
    times: &Bound<'py, PyAny>,
    stated: Option<&str>,
    is_guessed: bool,
) -> PyResult<(Option<&'static str>, Bound<'py, PyBytes>, u64)> {
    let times = Import::new(times, "times").array()?;
    let mut format = stated.and_then(TimeFormat::from_name);
    let is_likely = |format: TimeFormat, time: &i64| !is_guessed || format.is_likely(*time);
    let mut nanoseconds = Vec::with_capacity(times.len() * 8);
    let mut bad = 0;
    let times = column(&times, Role::Attribute, None)?;
    for row in 0..times.len() {
        let mut found = i64::MIN;
        if let Some(Value::Text(text) | Value::Bytes(text)) = times.value(row)
            && !text.is_empty()
        {
            format = format.or_else(|| TimeFormat::detect(text));
            let time =
                format.and_then(|format| format.parse(text).filter(|time| is_likely(format, time)));
            match time {
                Some(time) => found = time,
                None => bad += 1,
            }
        }
        nanoseconds.extend_from_slice(&found.to_le_bytes());
    }
    Ok((format.map(TimeFormat::name), PyBytes::new(py, &nanoseconds), bad))
}
