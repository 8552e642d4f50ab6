//! A Parquet file as batches of the columns that are needed.

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder,
};
use parquet::basic::{Compression, Encoding, LogicalType, Type as Physical};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use std::collections::VecDeque;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

/// The file is damaged, or ends early. What its library says may quote data.
#[derive(Debug, thiserror::Error)]
#[error("Parquet data is damaged or ends early")]
pub struct Damaged;

/// A Parquet file that is read from its beginning to its end, only some of its columns.
///
/// Text is not copied: it stays in the pages that were unpacked, and batches say where; or it is a
/// dictionary of words, the same one in all batches of a row group. No batch has rows of two.
pub struct Source {
    file: File,
    told: ArrowReaderMetadata,
    mask: ProjectionMask,
    /// Row groups that are still to come.
    groups: VecDeque<usize>,
    /// Rows to pass over in the next of them.
    after: usize,
    /// Of a batch.
    most_rows: usize,
    /// Rows of the present one that are still to come.
    rest: usize,
    /// Of the present one; none before the first, and behind the last.
    reader: Option<ParquetRecordBatchReader>,
    /// For each column wanted its place among those that are read.
    places: Vec<usize>,
    schema: SchemaRef,
    rows_total: u64,
}

impl Source {
    /// Opens the columns of these names, behind so many rows, for batches of some rows at most. `None`
    /// for a file that is not plain:
    /// one that lacks a column or has it twice, or in which one of them is made of several, is of a
    /// type that not all programs write alike, or is packed in an unusual way.
    pub fn open(path: &Path, names: &[String], after: u64, most_rows: usize) -> Option<Self> {
        let open = || Self::open_plain(path, names, after, most_rows);
        catch_unwind(AssertUnwindSafe(open)).ok().flatten()
    }

    fn open_plain(path: &Path, names: &[String], after: u64, most_rows: usize) -> Option<Self> {
        let file = File::open(path).ok()?;
        let options = ArrowReaderOptions::new();
        let told = ArrowReaderMetadata::load(&file, options).ok()?;
        let columns = names.iter().map(|name| place(&told, name)).collect::<Option<Vec<_>>>()?;
        let fields = told.schema().fields();
        let wanted = columns.iter().map(|column| {
            Field::new(fields[*column].name(), fields[*column].data_type().clone(), true)
        });
        let schema = Arc::new(Schema::new(wanted.collect::<Vec<_>>()));
        let metadata = Arc::clone(told.metadata());
        let mut sorted = columns.clone();
        sorted.sort_unstable();
        sorted.dedup();
        let places = columns.iter().map(|column| sorted.binary_search(column).unwrap_or(0));
        let (groups, after) = behind(&metadata, after)?;
        Some(Self {
            file,
            mask: ProjectionMask::roots(told.parquet_schema(), sorted.iter().copied()),
            told,
            groups,
            after,
            most_rows,
            rest: 0,
            reader: None,
            places: places.collect(),
            schema,
            rows_total: u64::try_from(metadata.file_metadata().num_rows()).ok()?,
        })
    }

    /// The columns, of the types that the file says; batches have views or dictionaries of text.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    pub fn rows_total(&self) -> u64 {
        self.rows_total
    }

    /// Whether the last batch was the end of a row group, and with it of its dictionaries.
    pub fn is_between_groups(&self) -> bool {
        self.rest == 0
    }

    /// The next rows; `None` behind the last.
    pub fn batch(&mut self) -> Result<Option<RecordBatch>, Damaged> {
        // The library may stumble over a file that was altered.
        let read = catch_unwind(AssertUnwindSafe(|| self.read())).unwrap_or(Err(Damaged));
        if read.is_err() {
            (self.reader, self.groups) = (None, VecDeque::new());
        }
        read
    }

    fn read(&mut self) -> Result<Option<RecordBatch>, Damaged> {
        loop {
            if let Some(batch) = self.reader.as_mut().and_then(Iterator::next) {
                let batch = batch.map_err(|_| Damaged)?;
                self.rest = self.rest.saturating_sub(batch.num_rows());
                return batch.project(&self.places).map(Some).map_err(|_| Damaged);
            }
            self.reader = None;
            let Some(group) = self.groups.pop_front() else { return Ok(None) };
            let rows = self.told.metadata().row_group(group).num_rows();
            self.rest = usize::try_from(rows).unwrap_or(0).saturating_sub(self.after);
            let file = self.file.try_clone().map_err(|_| Damaged)?;
            let builder =
                ParquetRecordBatchReaderBuilder::new_with_metadata(file, self.told_of(group)?)
                    .with_batch_size(self.most_rows)
                    .with_projection(self.mask.clone())
                    .with_row_groups(vec![group])
                    .with_offset(std::mem::take(&mut self.after));
            self.reader = Some(builder.build().map_err(|_| Damaged)?);
        }
    }

    /// How a group is read: text that is numbers of words throughout as such, other text as views.
    fn told_of(&self, group: usize) -> Result<ArrowReaderMetadata, Damaged> {
        let descriptor = self.told.parquet_schema();
        let group = self.told.metadata().row_group(group);
        let mut fields = self.told.schema().fields().to_vec();
        for leaf in (0..descriptor.num_columns()).filter(|leaf| self.mask.leaf_included(*leaf)) {
            let field = &mut fields[descriptor.get_column_root_idx(leaf)];
            if let Some((view, words)) = of_text(field.data_type()) {
                let kind = if is_all_words(group.column(leaf)) { words } else { view };
                *field = Arc::new(field.as_ref().clone().with_data_type(kind));
            }
        }
        let schema = Schema::new_with_metadata(fields, self.told.schema().metadata().clone());
        let options = ArrowReaderOptions::new().with_schema(Arc::new(schema));
        ArrowReaderMetadata::try_new(Arc::clone(self.told.metadata()), options).map_err(|_| Damaged)
    }
}

/// Whether all pages of values are numbers of words; where that is not told, they may not be.
fn is_all_words(column: &ColumnChunkMetaData) -> bool {
    let told = column.page_encoding_stats_mask();
    column.dictionary_page_offset().is_some()
        && told.is_some_and(|mask| {
            mask.is_only(Encoding::RLE_DICTIONARY) || mask.is_only(Encoding::PLAIN_DICTIONARY)
        })
}

/// The names of a file's columns, in their order; `None` for one that cannot be opened.
pub fn names(path: &Path) -> Option<Vec<String>> {
    let read = || {
        let file = File::open(path).ok()?;
        let told = ArrowReaderMetadata::load(&file, ArrowReaderOptions::new()).ok()?;
        Some(told.schema().fields().iter().map(|field| field.name().clone()).collect())
    };
    catch_unwind(AssertUnwindSafe(read)).ok().flatten()
}

/// The row groups behind so many rows, and how many rows of the first of them are passed over.
fn behind(metadata: &ParquetMetaData, after: u64) -> Option<(VecDeque<usize>, usize)> {
    let mut rest = after;
    let mut first = 0;
    for group in metadata.row_groups() {
        let rows = u64::try_from(group.num_rows()).ok()?;
        if rest < rows {
            break;
        }
        rest -= rows;
        first += 1;
    }
    Some(((first..metadata.num_row_groups()).collect(), usize::try_from(rest).ok()?))
}

/// Where a column of a name is, if it is the only one and plain.
fn place(told: &ArrowReaderMetadata, name: &str) -> Option<usize> {
    let mut named = told.schema().fields().iter().enumerate().filter(|(_, one)| one.name() == name);
    let (place, field) = named.next()?;
    if named.next().is_some() || !field.metadata().keys().all(|key| key == "PARQUET:field_id") {
        return None;
    }
    let descriptor = told.parquet_schema();
    let mut leaves =
        (0..descriptor.num_columns()).filter(|leaf| descriptor.get_column_root_idx(*leaf) == place);
    let leaf = leaves.next()?;
    let column = descriptor.column(leaf);
    let is_flat = leaves.next().is_none() && column.max_rep_level() == 0;
    let is_plain = is_plain(field.data_type(), column.logical_type_ref(), column.physical_type());
    let is_packed_plainly = told.metadata().row_groups().iter().all(|group| {
        matches!(group.column(leaf).compression(), Compression::UNCOMPRESSED | Compression::SNAPPY)
    });
    (is_flat && is_plain && is_packed_plainly).then_some(place)
}

/// Whether columns of a type are the same whoever reads and writes them.
fn is_plain(kind: &DataType, logical: Option<&LogicalType>, physical: Physical) -> bool {
    match kind {
        DataType::Boolean | DataType::Float32 | DataType::Float64 => logical.is_none(),
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => true,
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => true,
        DataType::Utf8 | DataType::LargeUtf8 => matches!(logical, Some(LogicalType::String)),
        DataType::Binary | DataType::LargeBinary => logical.is_none(),
        DataType::Date32 => true,
        DataType::Timestamp(unit, _) => *unit != TimeUnit::Second && physical == Physical::INT64,
        _ => false,
    }
}

/// What text is read as: views of it, or numbers of words.
fn of_text(kind: &DataType) -> Option<(DataType, DataType)> {
    let words = |kind| DataType::Dictionary(Box::new(DataType::Int32), Box::new(kind));
    match kind {
        DataType::Utf8 | DataType::LargeUtf8 => Some((DataType::Utf8View, words(DataType::Utf8))),
        DataType::Binary | DataType::LargeBinary => {
            Some((DataType::BinaryView, words(DataType::Binary)))
        }
        _ => None,
    }
}
