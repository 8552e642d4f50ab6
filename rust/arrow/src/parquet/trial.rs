//! How columns other than text are written: found out from their first rows.

use super::sink::{Unwritable, is_text, writer};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Schema, SchemaRef};
use parquet::basic::{Compression, Encoding};
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;
use std::sync::Arc;

/// Rows looked at for how to write a column, and the share of bytes that must be saved by it.
pub(super) const SAMPLE_ROWS: usize = 8192;
const WORTH_A_TRY: f64 = 0.8;

/// How columns other than text are written, by the first rows of each: written as a try, both ways.
pub(super) fn found_out(
    schema: &SchemaRef,
    held: &[Vec<ArrayRef>],
) -> Result<WriterProperties, Unwritable> {
    // Text has no index of its pages, and one of some columns would be of no use.
    let mut settings = WriterProperties::builder()
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_compression(Compression::SNAPPY);
    let fields = schema.fields().iter().filter(|field| !is_text(field.data_type())).cloned();
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let tries = [Try::Plain, Try::Words, Try::Steps];
    let tries = tries.map(|how| tried(&schema, held, how).map(|group| (how, group)));
    for (number, field) in schema.fields().iter().enumerate() {
        let path = ColumnPath::new(vec![field.name().clone()]);
        let mut taken: Option<(Try, i64, i64)> = None;
        for one in &tries {
            let Ok((how, Some(group))) = one else { continue };
            let column = group.column(number);
            let (packed, unpacked) = (column.compressed_size(), column.uncompressed_size());
            let is_possible = *how != Try::Steps || has_steps(field.data_type());
            // What is small without being packed is so for nothing.
            if is_possible && taken.is_none_or(|(_, _, before)| is_worth(unpacked, before)) {
                taken = Some((*how, packed, unpacked));
            }
        }
        let Some((how, packed, unpacked)) = taken else { return Ok(settings.build()) };
        settings = how.set(settings, path.clone());
        if !is_worth(packed, unpacked) {
            settings = settings.set_column_compression(path, Compression::UNCOMPRESSED);
        }
    }
    Ok(settings.build())
}

/// How values of a column may be written: one by one, by words, or by the steps from each to the next.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Try {
    Plain,
    Words,
    Steps,
}

impl Try {
    fn set(self, settings: WriterPropertiesBuilder, path: ColumnPath) -> WriterPropertiesBuilder {
        let settings = settings.set_column_dictionary_enabled(path.clone(), self == Self::Words);
        match self {
            Self::Steps => settings.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED),
            Self::Plain | Self::Words => settings,
        }
    }
}

/// Times mostly come in order, a short step behind each other.
fn has_steps(kind: &DataType) -> bool {
    matches!(kind, DataType::Timestamp(_, _) | DataType::Int64)
}

fn is_worth(taken: i64, other: i64) -> bool {
    taken as f64 <= WORTH_A_TRY * other as f64
}

/// Writes some rows to nowhere, and tells how large they came out.
fn tried(
    schema: &SchemaRef,
    held: &[Vec<ArrayRef>],
    how: Try,
) -> Result<Option<RowGroupMetaData>, Unwritable> {
    let mut settings = WriterProperties::builder()
        .set_statistics_enabled(EnabledStatistics::None)
        .set_compression(Compression::SNAPPY)
        .set_dictionary_enabled(how == Try::Words);
    for field in schema.fields().iter().filter(|field| has_steps(field.data_type())) {
        settings = how.set(settings, ColumnPath::new(vec![field.name().clone()]));
    }
    let mut writer = writer(schema, settings.build())?;
    let mut rest = SAMPLE_ROWS;
    for columns in held {
        let batch = RecordBatch::try_new(Arc::clone(schema), columns.clone());
        let batch = batch.map_err(|_| Unwritable)?;
        let rows = rest.min(batch.num_rows());
        writer.write(&batch.slice(0, rows))?;
        rest -= rows;
    }
    Ok(writer.finish()?.row_groups().first().cloned())
}
