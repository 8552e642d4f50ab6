//! Columns that leave, as the bytes of a Parquet file.

use super::texts::Texts;
use super::trial;
use super::words::Left;
use arrow_array::ArrayRef;
use arrow_schema::{DataType, SchemaRef};
use parquet::arrow::arrow_writer::{
    ArrowColumnWriter, ArrowRowGroupWriterFactory, ArrowWriterOptions, compute_leaves,
};
use parquet::arrow::{ArrowSchemaConverter, ArrowWriter};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaDataReader;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use std::sync::Arc;

const GROUP_ROWS: usize = 1 << 20;
const GROUP_BYTES: usize = 10 << 20;
/// The part of that which is enough for a group where the one that was read ends.
const SMALLEST: usize = 4;
/// A larger buffer is not kept: it was for an unusual group.
const MOST_SPARE: usize = 8 << 20;
/// As other programs call it, too.
const ROOT: &str = "schema";

/// Rows could not be made into Parquet.
#[derive(Debug, thiserror::Error)]
#[error("the rows cannot be written as Parquet")]
pub struct Unwritable;

impl From<ParquetError> for Unwritable {
    fn from(_: ParquetError) -> Self {
        Self
    }
}

/// Writes columns in row groups of 1,048,576 rows or 10 MiB, whichever is less.
///
/// Text is written by words where they repeat, see [`Texts`]: in groups so large even users do. Of other
/// columns the first rows show in which values repeat, so that a dictionary pays, and which can be
/// packed at all. The least and the largest value of a group are told of numbers and times, by which
/// groups can be passed over; of text, which comes in no order, that would only cost.
pub struct Sink {
    schema: SchemaRef,
    /// For each column that is text.
    texts: Vec<Option<Texts>>,
    /// The first rows of the others, until there are enough to look at.
    held: Vec<Vec<ArrayRef>>,
    /// Of the present group.
    rows: usize,
    settings: Option<WriterProperties>,
    writer: Option<Writer>,
    spare: Vec<u8>,
}

/// A file that is begun.
struct Writer {
    file: SerializedFileWriter<Vec<u8>>,
    factory: ArrowRowGroupWriterFactory,
    /// Of the present group, without text; none before its first row.
    columns: Vec<ArrowColumnWriter>,
    groups: usize,
}

impl Sink {
    pub fn new(schema: SchemaRef) -> Self {
        let texts = schema.fields().iter().map(|field| is_text(field.data_type()));
        Self {
            texts: texts.map(|is_text| is_text.then(Texts::new)).collect(),
            schema,
            held: Vec::new(),
            rows: 0,
            settings: None,
            writer: None,
            spare: Vec::new(),
        }
    }

    /// Takes rows; whether they end a row group. `is_between` says that dictionaries end with them: then
    /// a group need not be full for it, since in the next one all words would have to be looked up.
    pub fn write(&mut self, columns: Vec<Left<'_>>, is_between: bool) -> Result<bool, Unwritable> {
        let rows = columns.first().map_or(0, Left::len);
        if columns.len() != self.texts.len() || columns.iter().any(|column| column.len() != rows) {
            return Err(Unwritable);
        }
        if rows == 0 {
            return Ok(false);
        }
        let mut others = Vec::new();
        for (column, texts) in columns.into_iter().zip(&mut self.texts) {
            match (texts, column) {
                (Some(texts), column) => texts.put(&column)?,
                (None, Left::Values(values)) => others.push(values),
                (None, _) => return Err(Unwritable),
            }
        }
        self.rows += rows;
        match &mut self.writer {
            Some(writer) => writer.write(&self.schema, &others)?,
            None => {
                self.held.push(others);
                if self.settings.is_some() || self.rows >= trial::SAMPLE_ROWS {
                    self.begin()?;
                }
            }
        }
        let texts: usize = self.texts.iter().flatten().map(Texts::size).sum();
        let others = self.writer.as_ref().map_or(0, Writer::size);
        let (most_rows, most_bytes) = if is_between {
            (GROUP_ROWS / SMALLEST, GROUP_BYTES / SMALLEST)
        } else {
            (GROUP_ROWS, GROUP_BYTES)
        };
        let is_full = self.rows >= most_rows || texts + others >= most_bytes;
        let ends = self.writer.is_some() && is_full;
        if ends {
            self.end_group()?;
        }
        Ok(ends)
    }

    /// The bytes since this was last called.
    pub fn take(&mut self) -> Result<Vec<u8>, Unwritable> {
        let Some(Writer { file, .. }) = &mut self.writer else { return Ok(Vec::new()) };
        file.flush().map_err(|_| Unwritable)?;
        if file.inner().is_empty() {
            return Ok(Vec::new());
        }
        Ok(std::mem::replace(file.inner_mut(), std::mem::take(&mut self.spare)))
    }

    /// Takes back what `take` gave, so that its memory is used again.
    pub fn reuse(&mut self, mut bytes: Vec<u8>) {
        if bytes.capacity() > self.spare.capacity() && bytes.capacity() <= MOST_SPARE {
            bytes.clear();
            self.spare = bytes;
        }
    }

    /// Ends the file with its index; what is written next begins another one. The rest of the bytes.
    pub fn end(&mut self) -> Result<Vec<u8>, Unwritable> {
        if self.writer.is_none() {
            self.begin()?;
        }
        self.end_group()?;
        let Some(Writer { mut file, .. }) = self.writer.take() else { return Ok(Vec::new()) };
        file.finish()?;
        Ok(std::mem::take(file.inner_mut()))
    }

    /// Whether rows came that are not ended.
    pub fn is_begun(&self) -> bool {
        self.writer.is_some() || !self.held.is_empty()
    }

    /// Whether an index is of a file with the same columns, as this one writes them.
    pub fn wrote(&self, index: &[u8]) -> bool {
        let own = ArrowSchemaConverter::new().schema_root(ROOT).convert(&self.schema);
        let other = ParquetMetaDataReader::decode_metadata(index);
        matches!((own, other), (Ok(own), Ok(other))
            if own.root_schema() == other.file_metadata().schema())
    }

    fn begin(&mut self) -> Result<(), Unwritable> {
        let held = std::mem::take(&mut self.held);
        let settings = match self.settings.take() {
            Some(settings) => settings,
            None => trial::found_out(&self.schema, &held)?,
        };
        self.settings = Some(settings.clone());
        let (file, factory) = writer(&self.schema, settings)?.into_serialized_writer()?;
        let mut writer = Writer { file, factory, columns: Vec::new(), groups: 0 };
        for columns in &held {
            writer.write(&self.schema, columns)?;
        }
        self.writer = Some(writer);
        Ok(())
    }

    fn end_group(&mut self) -> Result<(), Unwritable> {
        let Self { writer: Some(Writer { file, columns, groups, .. }), texts, rows, .. } = self
        else {
            return Ok(());
        };
        if std::mem::take(rows) == 0 {
            return Ok(());
        }
        let descriptors = file.schema_descr().columns().to_vec();
        let mut group = file.next_row_group()?;
        let mut others = std::mem::take(columns).into_iter();
        for (number, texts) in texts.iter_mut().enumerate() {
            match texts {
                Some(texts) => {
                    let (bytes, close) = texts.end(Arc::clone(&descriptors[number]))?;
                    group.append_column(&bytes, close)?;
                }
                None => {
                    let column = others.next().ok_or(Unwritable)?;
                    column.close()?.append_to_row_group(&mut group)?;
                }
            }
        }
        group.close()?;
        *groups += 1;
        Ok(())
    }
}

impl Writer {
    /// Writes rows of all columns that are no text.
    fn write(&mut self, schema: &SchemaRef, columns: &[ArrayRef]) -> Result<(), Unwritable> {
        let fields = schema.fields().iter().filter(|field| !is_text(field.data_type()));
        if self.columns.is_empty() {
            let all = self.factory.create_column_writers(self.groups)?;
            let all = all.into_iter().zip(schema.fields());
            self.columns = all
                .filter(|(_, field)| !is_text(field.data_type()))
                .map(|(column, _)| column)
                .collect();
        }
        for ((writer, field), values) in self.columns.iter_mut().zip(fields).zip(columns) {
            for leaf in compute_leaves(field, values)? {
                writer.write(&leaf)?;
            }
        }
        Ok(())
    }

    fn size(&self) -> usize {
        self.columns.iter().map(ArrowColumnWriter::get_estimated_total_bytes).sum()
    }
}

pub(super) fn writer(
    schema: &SchemaRef,
    settings: WriterProperties,
) -> Result<ArrowWriter<Vec<u8>>, Unwritable> {
    let options =
        ArrowWriterOptions::new().with_properties(settings).with_schema_root(ROOT.to_owned());
    Ok(ArrowWriter::try_new_with_options(Vec::new(), Arc::clone(schema), options)?)
}

pub(super) fn is_text(kind: &DataType) -> bool {
    matches!(kind, DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary)
}
