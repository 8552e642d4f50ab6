//! What is found out before the records of a stream: its columns, and what its times are.

use super::{Way, WayError};
use crate::text::header::{Header, columns_of};
use crate::text::plan::TextFormat;
use crate::text::read::{Extent, Until};
use crate::text::render::Written;
use crate::text::time::TimeFormat;
use std::sync::Arc;

/// Records that a time format is found out from.
const SAMPLE: usize = 64;

impl Way {
    /// Goes by what most of the first records say, where nothing was stated.
    pub(super) fn find_time_format(&mut self, block: &[u8], start: usize, last: bool) {
        let utf8 = simdutf8::basic::from_utf8(&block[start..]).is_ok();
        let mut found: Vec<(TimeFormat, usize)> = Vec::new();
        let mut at = start;
        let part = &mut self.parts[0];
        for _ in 0..SAMPLE {
            let extent = Extent { start: at, end: block.len(), last, utf8, most_rows: 1 };
            let (end, until) = part.read(block, extent);
            if let Some(format) = part.reader.time_format.take() {
                match found.iter_mut().find(|(other, _)| *other == format) {
                    Some((_, times)) => *times += 1,
                    None => found.push((format, 1)),
                }
            }
            at = end;
            if until != Until::Enough {
                break;
            }
        }
        // Only looked at: all of it is read again.
        part.reader.reset();
        // Of two that are as frequent the first.
        part.reader.time_format =
            found.iter().rev().max_by_key(|(_, times)| *times).map(|(format, _)| *format);
    }

    /// Reads the header of a file as far as it is there, and says where it got to.
    pub(super) fn read_header(&mut self, text: &[u8], last: bool) -> Result<usize, WayError> {
        let Header { end, lines, names } = match (self.plan.input, &mut self.heading) {
            (TextFormat::Csv(delimiter), _) => {
                Header::read(text, last, delimiter, self.plan.max_line).map_err(WayError::Header)?
            }
            (_, Some(heading)) => heading.read(text, last).map_err(WayError::Log)?,
            _ => Header::default(),
        };
        self.line += lines;
        self.tally.lines += lines;
        let Some(names) = names else { return Ok(end) };
        if self.plan.keep_rest && !self.header_written {
            let read = [self.plan.read_for(&self.plan.fields), self.plan.read_beside()].concat();
            let is_other =
                |name: &&String| !self.plan.fields.contains(name) && !read.contains(name);
            let rest = names.iter().filter(is_other);
            self.fields.extend(rest.cloned());
        }
        // What else the first file had, another may lack.
        let needed = self.plan.fields.len();
        let (read, beside) = (self.plan.read_for(&self.fields), self.plan.read_beside());
        let missing =
            |wanted: &String| WayError::Column { wanted: wanted.clone(), found: names.clone() };
        let mut columns = columns_of(&read, needed, &names).map_err(missing)?;
        columns.extend(columns_of(&beside, beside.len(), &names).map_err(missing)?);
        for part in &mut self.parts {
            let heading = self.heading.as_ref();
            part.reader.set_columns(heading, names.len(), columns.clone(), self.fields.len());
        }
        Arc::make_mut(&mut self.renderer).set_fields(&self.fields, columns.len());
        self.columns = (names.len(), columns);
        self.past_header = true;
        Ok(end)
    }

    pub(super) fn write_header(&mut self, written: &mut Written) {
        self.header_written = true;
        self.renderer.header(&self.fields, &mut written.text);
    }
}
