//! The index of a Parquet file that was written in pieces.

use super::sink::Unwritable;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader, ParquetMetaDataWriter};

const MAGIC: &[u8] = b"PAR1";

/// One index of several, whose places are those of the whole file, one piece behind the other: as it
/// stands at the end of the file, its length and the magic word behind it.
pub fn merged(indexes: &[Vec<u8>]) -> Result<Vec<u8>, Unwritable> {
    let mut all = indexes.iter().map(|index| ParquetMetaDataReader::decode_metadata(index));
    let first = all.next().ok_or(Unwritable)??;
    let file = first.file_metadata().clone();
    let mut groups = first.row_groups().to_vec();
    for other in all {
        let other = other?;
        if other.file_metadata().schema() != file.schema() {
            return Err(Unwritable);
        }
        groups.extend_from_slice(other.row_groups());
    }
    let rows = groups.iter().map(|group| group.num_rows()).sum();
    let file = parquet::file::metadata::FileMetaData::new(
        file.version(),
        rows,
        file.created_by().map(str::to_owned),
        file.key_value_metadata().cloned(),
        file.schema_descr_ptr(),
        file.column_orders().cloned(),
    );
    let mut out = Vec::new();
    ParquetMetaDataWriter::new(&mut out, &ParquetMetaData::new(file, groups)).finish()?;
    debug_assert!(out.ends_with(MAGIC));
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::super::sink::Sink;
    use super::*;
    use arrow_array::{ArrayRef, Int64Array};
    use arrow_schema::{DataType, Field, Schema};
    use std::sync::Arc;

    fn piece(sink: &mut Sink, numbers: Vec<i64>) -> Vec<u8> {
        let numbers: ArrayRef = Arc::new(Int64Array::from(numbers));
        sink.write(vec![numbers.into()], false).unwrap();
        let file = sink.end().unwrap();
        let length = u32::from_le_bytes(*file[..file.len() - 4].last_chunk().unwrap()) as usize;
        file[file.len() - 8 - length..file.len() - 8].to_vec()
    }

    #[test]
    fn indexes_become_one() {
        let fields = |kind| Arc::new(Schema::new(vec![Field::new("n", kind, true)]));
        let mut sink = Sink::new(fields(DataType::Int64));
        let indexes = [piece(&mut sink, vec![1, 2]), piece(&mut sink, vec![3])];
        assert!(sink.wrote(&indexes[0]));
        let whole = merged(&indexes).unwrap();
        let found = ParquetMetaDataReader::decode_metadata(&whole[..whole.len() - 8]).unwrap();
        assert_eq!((found.num_row_groups(), found.file_metadata().num_rows()), (2, 3));
        let other = Sink::new(fields(DataType::Int32));
        assert!(!other.wrote(&indexes[0]));
        assert!(merged(&[indexes[0].clone(), vec![0; 9]]).is_err());
        assert!(merged(&[]).is_err());
    }
}
