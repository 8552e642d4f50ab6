//! The levels of one observation, as Python lists them.

use crate::columns::unsupported;
use crate::values::Held;
use pyo3::prelude::*;
use zveil_core::{Role, Value};

pub(crate) fn listed<'py>(levels: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    levels.extract().map_err(|_| {
        let got = levels.get_type().name().map(|name| name.to_string()).unwrap_or_default();
        unsupported("levels", "a list of levels, coarsest first", &got)
    })
}

pub(crate) fn held<'a, 'py>(levels: &'a [Bound<'py, PyAny>]) -> PyResult<Vec<Held<'a, 'py>>> {
    levels.iter().map(|level| Held::new(level, Role::Attribute)).collect()
}

pub(crate) fn values<'a>(held: &'a [Held<'_, '_>]) -> PyResult<Vec<Option<Value<'a>>>> {
    held.iter().map(|level| level.value(Role::Attribute)).collect()
}
