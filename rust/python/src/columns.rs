//! Arrow arrays that Python hands over, without a copy.

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use arrow_array::{ArrayRef, make_array};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::ffi::CStr;
use zveil_arrow::Unsupported;
use zveil_core::{Column, Prepares, Role};

pub(crate) fn unsupported(parameter: &str, expected: &str, got: &str) -> PyErr {
    PyTypeError::new_err(format!("{parameter}: expected {expected}, got {got}"))
}

/// An object that speaks the Arrow C interface, and what it is given for.
pub(crate) struct Import<'a, 'py> {
    object: &'a Bound<'py, PyAny>,
    parameter: &'static str,
}

impl<'a, 'py> Import<'a, 'py> {
    pub(crate) fn new(object: &'a Bound<'py, PyAny>, parameter: &'static str) -> Self {
        Self { object, parameter }
    }

    pub(crate) fn array(&self) -> PyResult<ArrayRef> {
        let capsules = self.object.call_method0("__arrow_c_array__")?;
        let (schema, array): (Bound<'py, PyCapsule>, Bound<'py, PyCapsule>) = capsules.extract()?;
        let schema = pointer::<FFI_ArrowSchema>(&schema, c"arrow_schema")?;
        let array = pointer::<FFI_ArrowArray>(&array, c"arrow_array")?;
        // SAFETY: the capsules carry the names that the Arrow PyCapsule interface gives to these
        // structures; taking them out leaves released ones behind, as the interface asks.
        let imported = unsafe {
            from_ffi(FFI_ArrowArray::from_raw(array), &FFI_ArrowSchema::from_raw(schema))
        };
        // The words of the Arrow library may quote data: only the parameter is named.
        let data = imported.map_err(|_| {
            PyValueError::new_err(format!("{}: not a valid Arrow array", self.parameter))
        })?;
        Ok(make_array(data))
    }
}

fn pointer<T>(capsule: &Bound<'_, PyCapsule>, name: &CStr) -> PyResult<*mut T> {
    Ok(capsule.pointer_checked(Some(name))?.as_ptr().cast())
}

/// A column of a type that cannot be used.
pub(crate) fn refused(found: Unsupported) -> PyErr {
    PyTypeError::new_err(found.to_string())
}

/// A column of users or attributes. A gate or meter is asked to hash the values of a dictionary once.
pub(crate) fn column<'a>(
    array: &'a ArrayRef,
    role: Role,
    hasher: Option<&dyn Prepares>,
) -> PyResult<Box<dyn Column + 'a>> {
    zveil_arrow::column(array, role, hasher).map_err(refused)
}
