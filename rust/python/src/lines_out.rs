//! What leaves, shown to Python where it was written.

use crate::text::TextWay;
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyMemoryView;
use std::ffi::c_int;

/// Bytes that nobody changes. Their memory goes back to the way that wrote them.
#[pyclass(frozen, module = "zveil._native")]
pub(crate) struct LinesOut {
    text: Vec<u8>,
    way: Py<TextWay>,
}

impl LinesOut {
    /// The bytes, as long as somebody looks at them.
    pub(crate) fn shown<'py>(
        text: Vec<u8>,
        way: &Bound<'py, TextWay>,
    ) -> PyResult<Bound<'py, PyMemoryView>> {
        let lines = Bound::new(way.py(), Self { text, way: way.clone().unbind() })?;
        PyMemoryView::from(lines.as_any())
    }
}

#[pymethods]
impl LinesOut {
    unsafe fn __getbuffer__(
        slf: &Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let text = &slf.get().text;
        let length = isize::try_from(text.len())
            .map_err(|_| PyBufferError::new_err("too long for one buffer"))?;
        // SAFETY: Python gives a view to be filled. It is read-only, and keeps this object alive,
        // whose bytes stay where they are and as they are until it is dropped.
        let outcome = unsafe {
            let bytes = text.as_ptr().cast_mut().cast();
            ffi::PyBuffer_FillInfo(view, slf.as_ptr(), bytes, length, 1, flags)
        };
        if outcome == 0 { Ok(()) } else { Err(PyErr::fetch(slf.py())) }
    }
}

impl Drop for LinesOut {
    fn drop(&mut self) {
        self.way.get().reuse(std::mem::take(&mut self.text));
    }
}
