//! A gate's settings and counts, as Python says and reads them.

use crate::times;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use zveil_core::{NoiseSettings, Rule, Settings, Stats};

/// The rule of a name; a level belongs to that which has one.
pub(crate) fn rule(name: &str, fixed_level: Option<u8>) -> PyResult<Rule> {
    match (name, fixed_level) {
        ("fall-through", None) => Ok(Rule::FallThrough),
        ("authors", None) => Ok(Rule::Authors),
        ("fixed", Some(level)) => Ok(Rule::Fixed(level)),
        _ => Err(PyValueError::new_err(
            "rule: expected 'fall-through', 'authors', or 'fixed' with a fixed_level",
        )),
    }
}

/// Noise of so many users at the most; none of 0.
pub(crate) fn noise(most: usize, period_ns: Option<i64>) -> Option<NoiseSettings> {
    (most > 0).then_some(NoiseSettings { most, period: period_ns })
}

/// What becomes of times past the year 2262, by whether the future is refused.
pub(crate) fn beyond(max_future: Option<i64>) -> i64 {
    if max_future.is_some() { i64::MAX } else { times::NONE }
}

/// The settings, by the names that Python has for them.
pub(crate) fn told<'py>(py: Python<'py>, settings: &Settings) -> PyResult<Bound<'py, PyDict>> {
    let (rule, level) = match settings.rule {
        Rule::FallThrough => ("fall-through", None),
        Rule::Authors => ("authors", None),
        Rule::Fixed(level) => ("fixed", Some(level)),
    };
    let found = PyDict::new(py);
    found.set_item("z", settings.z)?;
    found.set_item("z_max", settings.z_max)?;
    found.set_item("window_ns", settings.window)?;
    found.set_item("lateness_ns", settings.lateness)?;
    found.set_item("max_future_ns", settings.max_future)?;
    found.set_item("rule", rule)?;
    found.set_item("fixed_level", level)?;
    found.set_item("memory_limit", settings.memory_limit)?;
    found.set_item("threads", settings.threads)?;
    found.set_item("noise", settings.noise.map_or(0, |noise| noise.most))?;
    found.set_item("noise_period_ns", settings.noise.and_then(|noise| noise.period))?;
    Ok(found)
}

/// The same of the counts.
pub(crate) fn counted<'py>(py: Python<'py>, stats: &Stats) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    found.set_item("observed", stats.observed)?;
    found.set_item("released", stats.released)?;
    found.set_item("veiled", stats.observed - stats.released)?;
    found.set_item("late", stats.late)?;
    found.set_item("future", stats.future)?;
    found.set_item("invalid", stats.invalid)?;
    found.set_item("refused", stats.refused)?;
    found.set_item("attributes", stats.attributes)?;
    found.set_item("entries", stats.entries)?;
    found.set_item("bytes", stats.bytes)?;
    found.set_item("clock_ns", stats.clock)?;
    Ok(found)
}
