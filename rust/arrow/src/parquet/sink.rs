//! Columns that leave, as the bytes of a Parquet file.

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::arrow::{ArrowSchemaConverter, ArrowWriter};
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaDataReader, RowGroupMetaData};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;
use std::sync::Arc;

const GROUP_ROWS: usize = 1 << 17;
const GROUP_BYTES: usize = 4 << 20;
/// Rows looked at for how to write a column, and the share of bytes that must be saved by it.
const SAMPLE_ROWS: usize = 8192;
const WORTH_A_TRY: f64 = 0.8;
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

/// Writes columns in row groups of 131,072 rows or 4 MiB, whichever is less.
///
/// The first rows show in which columns values repeat, so that a dictionary pays, and which can be packed
/// at all: pseudonyms hardly can. The least and the largest value of a group are told of numbers and
/// times, by which groups can be passed over; of text, which comes in no order, that would only cost.
pub struct Sink {
    schema: SchemaRef,
    /// The first rows, until there are enough to look at.
    held: Vec<RecordBatch>,
    held_rows: usize,
    settings: Option<WriterProperties>,
    writer: Option<ArrowWriter<Vec<u8>>>,
    spare: Vec<u8>,
}

impl Sink {
    pub fn new(schema: SchemaRef) -> Self {
        Self {
            schema,
            held: Vec::new(),
            held_rows: 0,
            settings: None,
            writer: None,
            spare: Vec::new(),
        }
    }

    /// Takes rows; text may come as views of it.
    pub fn write(&mut self, columns: Vec<ArrayRef>) -> Result<(), Unwritable> {
        let kinds = self.schema.fields().iter().zip(&columns).map(|(field, column)| {
            Field::new(field.name(), column.data_type().clone(), field.is_nullable())
        });
        let schema = Arc::new(Schema::new(kinds.collect::<Vec<_>>()));
        let batch = RecordBatch::try_new(schema, columns).map_err(|_| Unwritable)?;
        if let Some(writer) = &mut self.writer {
            return Ok(writer.write(&batch)?);
        }
        self.held_rows += batch.num_rows();
        self.held.push(batch);
        if self.settings.is_some() || self.held_rows >= SAMPLE_ROWS {
            self.begin()?;
        }
        Ok(())
    }

    /// The bytes since this was last called.
    pub fn take(&mut self) -> Result<Vec<u8>, Unwritable> {
        let Some(writer) = &mut self.writer else { return Ok(Vec::new()) };
        writer.sync().map_err(|_| Unwritable)?;
        Ok(std::mem::replace(writer.inner_mut(), std::mem::take(&mut self.spare)))
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
        let Some(mut writer) = self.writer.take() else { return Ok(Vec::new()) };
        writer.finish()?;
        writer.sync().map_err(|_| Unwritable)?;
        Ok(std::mem::take(writer.inner_mut()))
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
        self.held_rows = 0;
        let settings = match self.settings.take() {
            Some(settings) => settings,
            None => found_out(&self.schema, &held)?,
        };
        self.settings = Some(settings.clone());
        let mut writer = writer(&self.schema, settings)?;
        for batch in held {
            writer.write(&batch)?;
        }
        self.writer = Some(writer);
        Ok(())
    }
}

fn writer(
    schema: &SchemaRef,
    settings: WriterProperties,
) -> Result<ArrowWriter<Vec<u8>>, Unwritable> {
    let options =
        ArrowWriterOptions::new().with_properties(settings).with_schema_root(ROOT.to_owned());
    Ok(ArrowWriter::try_new_with_options(Vec::new(), Arc::clone(schema), options)?)
}

/// How columns are written, by the first rows of each: written as a try, both ways.
fn found_out(schema: &SchemaRef, held: &[RecordBatch]) -> Result<WriterProperties, Unwritable> {
    let mut settings = WriterProperties::builder()
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .set_max_row_group_bytes(Some(GROUP_BYTES))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_compression(Compression::SNAPPY);
    let (plain, worded) = (tried(schema, held, false)?, tried(schema, held, true)?);
    let (Some(plain), Some(worded)) = (plain, worded) else { return Ok(settings.build()) };
    for ((field, plain), worded) in
        schema.fields().iter().zip(plain.columns()).zip(worded.columns())
    {
        let path = ColumnPath::new(vec![field.name().clone()]);
        let pays = is_worth(worded.uncompressed_size(), plain.uncompressed_size());
        let taken = if pays { worded } else { plain };
        if !is_worth(taken.compressed_size(), taken.uncompressed_size()) {
            settings = settings.set_column_compression(path.clone(), Compression::UNCOMPRESSED);
        }
        if is_text(field.data_type()) {
            settings =
                settings.set_column_statistics_enabled(path.clone(), EnabledStatistics::None);
        }
        settings = settings.set_column_dictionary_enabled(path, pays);
    }
    Ok(settings.build())
}

fn is_worth(taken: i64, other: i64) -> bool {
    taken as f64 <= WORTH_A_TRY * other as f64
}

fn is_text(kind: &DataType) -> bool {
    matches!(kind, DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary)
}

/// Writes some rows to nowhere, and tells how large they came out.
fn tried(
    schema: &SchemaRef,
    held: &[RecordBatch],
    with_words: bool,
) -> Result<Option<RowGroupMetaData>, Unwritable> {
    let settings: WriterPropertiesBuilder = WriterProperties::builder()
        .set_statistics_enabled(EnabledStatistics::None)
        .set_compression(Compression::SNAPPY)
        .set_dictionary_enabled(with_words);
    let mut writer = writer(schema, settings.build())?;
    let mut rest = SAMPLE_ROWS;
    for batch in held {
        let rows = rest.min(batch.num_rows());
        writer.write(&batch.slice(0, rows))?;
        rest -= rows;
    }
    Ok(writer.finish()?.row_groups().first().cloned())
}
