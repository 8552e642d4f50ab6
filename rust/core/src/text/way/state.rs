//! A way as it is kept: all that decides what becomes of the bytes behind those that are done with.
//!
//! Not the bytes of a record that is not complete: they are read again. What was learned about how lines
//! are built only makes reading faster, and is learned anew. Where values are swapped, some that have
//! left are in it.

use super::{Way, WayError};
use crate::codec::{Body, Out, Outcome};
use crate::error::{Error, SnapshotError};
use crate::text::log::Heading;
use crate::text::plan::TextFormat;
use crate::text::time::TimeFormat;
use std::sync::Arc;

const FORMAT: u64 = 1;
const LONGEST: usize = 1 << 20;
/// Seconds past which no time can be told.
const FURTHEST: i64 = i64::MAX / 1_000_000_000;

impl Way {
    /// Bytes from which another way of the same plan goes on. Troubles are not in it: take them before.
    pub fn state(&self) -> Vec<u8> {
        let mut out = Vec::new();
        // Writing to memory does not fail.
        let _ = self.write(&mut out);
        out
    }

    /// Goes on from a state, instead of starting a file.
    pub fn resume(&mut self, state: &[u8]) -> Result<(), WayError> {
        let unsound = |_| Error::State("is none that a way was saved as");
        let mut body = state;
        if body.number().map_err(unsound)? != FORMAT {
            return Err(Error::State("is of another version of zveil; go on with that one").into());
        }
        if body.text(LONGEST).map_err(unsound)? != self.shape().as_bytes() {
            return Err(Error::State("is of a way for other records").into());
        }
        self.read(&mut body).and_then(|()| body.end()).map_err(unsound)?;
        Ok(())
    }

    /// What must be alike.
    fn shape(&self) -> String {
        let plan = &self.plan;
        let swaps = plan.swaps.iter().any(|share| *share > 0.0);
        let coarser: Vec<_> = plan.coarser_of_each().collect();
        let (input, fields, id) = (plan.input, &plan.fields, &plan.id_field);
        format!("{input:?} {fields:?} {} {coarser:?} {id:?} {} {swaps}", plan.attributes, plan.flat)
    }

    fn write(&self, out: &mut Vec<u8>) -> Outcome<()> {
        out.number(FORMAT)?;
        out.text(self.shape().as_bytes())?;
        for flag in
            [self.at_start, self.past_header, self.header_written, self.skipping, self.stopped]
        {
            out.number(u64::from(flag))?;
        }
        out.number(self.consumed())?;
        out.number(self.line)?;
        out.text(self.time_format().map_or("", TimeFormat::name).as_bytes())?;
        out.number(self.fields.len() as u64)?;
        self.fields.iter().try_for_each(|field| out.text(field.as_bytes()))?;
        out.number(self.columns.0 as u64)?;
        out.number(self.columns.1.len() as u64)?;
        for column in &self.columns.1 {
            out.optional(column.map(|column| column as u64))?;
        }
        if let Some(heading) = &self.heading {
            heading.write(out)?;
        }
        if let Some((latest, before)) = self.parts[0].reader.years() {
            out.number(latest as u64)?;
            out.maybe(before)?;
        }
        self.write_tally(out)?;
        self.swaps.write(out)
    }

    fn write_tally(&self, out: &mut Vec<u8>) -> Outcome<()> {
        let tally = &self.tally;
        for count in [tally.lines, tally.records, tally.passed, tally.repeated] {
            out.number(count)?;
        }
        tally.bad.iter().try_for_each(|count| out.number(*count))?;
        for counts in [&tally.leaving, &tally.swapped, &tally.filtered] {
            write_counts(out, counts)?;
        }
        out.number(tally.levels.len() as u64)?;
        tally.levels.iter().try_for_each(|counts| write_counts(out, counts))
    }

    fn read(&mut self, body: &mut &[u8]) -> Outcome<()> {
        let damaged = || SnapshotError::Damaged;
        self.at_start = body.truth()?;
        self.past_header = body.truth()?;
        self.header_written = body.truth()?;
        self.skipping = body.truth()?;
        // Where bad lines are skipped now, it goes on behind the one that had ended it.
        self.stopped = body.truth()? && self.plan.stop_at_problem;
        self.came = body.number()?;
        self.line = body.number()?;
        self.carry.clear();
        let name = body.text(LONGEST)?;
        let format = TimeFormat::from_name(std::str::from_utf8(&name).map_err(|_| damaged())?);
        if format.is_none() != name.is_empty() {
            return Err(damaged());
        }
        let text = |body: &mut &[u8]| {
            String::from_utf8(body.text(LONGEST)?).map_err(|_| SnapshotError::Damaged)
        };
        let fields = body.list(text)?;
        let width = body.size()?;
        let columns = body.list(|body| {
            let column = body.optional()?;
            column.map(usize::try_from).transpose().map_err(|_| SnapshotError::Damaged)
        })?;
        if let TextFormat::Log(log) = self.plan.input {
            self.heading = Some(Heading::read_back(body, log)?);
        }
        self.check_columns(&fields, width, &columns)?;
        for part in &mut self.parts {
            part.reader.time_format = format;
        }
        self.fields = fields;
        if !columns.is_empty() {
            for part in &mut self.parts {
                let heading = self.heading.as_ref();
                part.reader.set_columns(heading, width, columns.clone(), self.fields.len());
            }
            Arc::make_mut(&mut self.renderer).set_fields(&self.fields, columns.len());
        }
        self.columns = (width, columns);
        if self.parts[0].reader.years().is_some() {
            let (latest, before) = (body.number()? as i64, body.maybe()?);
            if [latest, before.unwrap_or(0)]
                .iter()
                .any(|second| second.abs_diff(0) > FURTHEST as u64)
            {
                return Err(damaged());
            }
            for part in &mut self.parts {
                part.reader.set_years((latest, before));
            }
        }
        self.read_tally(body)?;
        self.swaps.read(body, self.plan.attributes)
    }

    /// A record is cut by these without a further look.
    fn check_columns(
        &self,
        fields: &[String],
        width: usize,
        columns: &[Option<usize>],
    ) -> Outcome<()> {
        let known = self.plan.fields.len();
        let told = self.heading.as_ref().and_then(Heading::told);
        let is_sound = fields.len() >= known
            && fields[..known] == self.plan.fields
            && columns.iter().flatten().all(|column| *column < width)
            && match self.plan.input {
                TextFormat::Ndjson => fields.len() == known && columns.is_empty(),
                _ if columns.is_empty() => !self.past_header,
                TextFormat::Csv(_) => columns.len() == fields.len() + self.plan.read_beside().len(),
                // While another header is being read, its columns may be others.
                TextFormat::Log(_) => {
                    columns.len() == fields.len() + self.plan.read_beside().len()
                        && (!self.past_header || told.is_none_or(|told| told == width))
                }
            };
        if is_sound { Ok(()) } else { Err(SnapshotError::Damaged) }
    }

    fn read_tally(&mut self, body: &mut &[u8]) -> Outcome<()> {
        let tally = &mut self.tally;
        tally.lines = body.number()?;
        tally.records = body.number()?;
        tally.passed = body.number()?;
        tally.repeated = body.number()?;
        for count in &mut tally.bad {
            *count = body.number()?;
        }
        let counts = |body: &mut &[u8]| body.list(|body| body.number());
        tally.leaving = counts(body)?;
        tally.swapped = counts(body)?;
        tally.filtered = counts(body)?;
        tally.levels = body.list(counts)?;
        Ok(())
    }
}

fn write_counts(out: &mut Vec<u8>, counts: &[u64]) -> Outcome<()> {
    out.number(counts.len() as u64)?;
    counts.iter().try_for_each(|count| out.number(*count))
}
