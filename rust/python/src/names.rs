//! `zveil._native.NameList` and `NameFilter`: which values count. Their documentation is in
//! `_native.pyi`.

use crate::columns::{Import, column};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::Arc;
use zveil_core::{Role, Value};

#[pyclass(frozen, module = "zveil._native")]
pub(crate) struct NameList(Arc<zveil_core::NameList>);

#[pyclass(frozen, module = "zveil._native")]
pub(crate) struct NameFilter(pub(crate) Arc<zveil_core::NameFilter>);

#[pymethods]
impl NameList {
    #[new]
    fn new(py: Python<'_>, text: &[u8]) -> PyResult<Self> {
        let list = py.detach(|| zveil_core::NameList::read(text));
        let list = list.map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Self(Arc::new(list)))
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    #[getter]
    fn bytes(&self) -> usize {
        self.0.bytes()
    }
}

#[pymethods]
impl NameFilter {
    #[new]
    #[pyo3(signature = (only, except_))]
    fn new(only: Option<Py<NameList>>, except_: Option<Py<NameList>>) -> Self {
        let list = |list: Option<Py<NameList>>| list.map(|list| Arc::clone(&list.get().0));
        Self(Arc::new(zveil_core::NameFilter { only: list(only), except: list(except_) }))
    }

    fn mask<'py>(
        &self,
        py: Python<'py>,
        values: &Bound<'py, PyAny>,
    ) -> PyResult<(Bound<'py, PyBytes>, u64)> {
        let values = Import::new(values, "values").array()?;
        let (bits, filtered) = py.detach(|| -> PyResult<_> {
            let values = column(&values, Role::Attribute, None)?;
            let mut bits = vec![0_u8; values.len().div_ceil(8)];
            let mut filtered = 0;
            for row in 0..values.len() {
                let passes = match values.value(row) {
                    None => true,
                    Some(Value::Text(text)) => self.0.passes(Some(text)),
                    Some(_) => self.0.passes(None),
                };
                bits[row / 8] |= u8::from(passes) << (row % 8);
                filtered += u64::from(!passes);
            }
            Ok((bits, filtered))
        })?;
        Ok((PyBytes::new(py, &bits), filtered))
    }
}
