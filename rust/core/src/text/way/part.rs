//! Some records on their way through a block: read, decided, written.

use crate::pseudonym::Named;
use crate::text::plan::Plan;
use crate::text::read::{Extent, Reader, Until};
use crate::text::render::{Renderer, Written};
use crate::text::rows::Rows;

/// They go from thread to thread: moved by their addresses, each in cache lines of its own.
pub(super) type Parts = Vec<Box<Part>>;

/// What is needed for records that are dealt with together. Their memory is used again.
pub(super) struct Part {
    pub(super) reader: Reader,
    pub(super) rows: Rows,
    /// By attribute.
    pub(super) decisions: Vec<Vec<i8>>,
    /// The keys that users leave under; none are kept from one block to the next.
    pub(super) named: Named,
    /// Users leave under these, not as they are.
    pub(super) is_named: bool,
    attributes: usize,
    /// Columns of coarser labels.
    coarser: usize,
}

impl Part {
    pub(super) fn new(plan: &Plan) -> Self {
        Self {
            reader: Reader::new(plan),
            rows: Rows::default(),
            decisions: Vec::new(),
            named: Named::default(),
            is_named: false,
            attributes: plan.attributes,
            coarser: plan.coarser(),
        }
    }

    /// Reads records instead of those before; says where it got to, and why no further.
    pub(super) fn read(&mut self, block: &[u8], extent: Extent) -> (usize, Until) {
        self.rows.clear(self.attributes, self.coarser);
        self.reader.read(block, extent, &mut self.rows)
    }

    /// Writes what leaves of what was decided.
    pub(super) fn write(&self, renderer: &Renderer, block: &[u8], written: &mut Written) {
        let named = self.is_named.then_some(&self.named);
        let format = self.reader.time_format;
        renderer.render(block, &self.rows, &self.decisions, format, named, written);
    }
}
