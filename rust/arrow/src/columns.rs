//! Arrow arrays as columns of the core, without a copy.

use crate::unsupported::Unsupported;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowDictionaryKeyType, ArrowPrimitiveType, ByteArrayType, ByteViewType, Float16Type,
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, BooleanArray, FixedSizeBinaryArray, GenericByteArray, GenericByteViewArray,
    NullArray, PrimitiveArray, downcast_dictionary_array,
};
use arrow_schema::DataType;
use zveil_core::{Column, Prepares, Role, Value};

/// A column of users or attributes. A gate or meter is asked to hash the values of a dictionary once.
pub fn column<'a>(
    array: &'a ArrayRef,
    role: Role,
    hasher: Option<&dyn Prepares>,
) -> Result<Box<dyn Column + 'a>, Unsupported> {
    Ok(match array.data_type() {
        DataType::Null => Box::new(Nulls(array.as_any().downcast_ref().unwrap_or(&NO_ROWS))),
        DataType::Int64 if array.null_count() == 0 => {
            Box::new(Words(array.as_primitive::<Int64Type>().values()))
        }
        DataType::Int64 => Box::new(Integers(array.as_primitive::<Int64Type>())),
        DataType::Int32 => Box::new(Integers(array.as_primitive::<Int32Type>())),
        DataType::Int16 => Box::new(Integers(array.as_primitive::<Int16Type>())),
        DataType::Int8 => Box::new(Integers(array.as_primitive::<Int8Type>())),
        DataType::UInt64 => Box::new(Unsigned(array.as_primitive::<UInt64Type>())),
        DataType::UInt32 => Box::new(Unsigned(array.as_primitive::<UInt32Type>())),
        DataType::UInt16 => Box::new(Unsigned(array.as_primitive::<UInt16Type>())),
        DataType::UInt8 => Box::new(Unsigned(array.as_primitive::<UInt8Type>())),
        DataType::Float64 => Box::new(Floats(array.as_primitive::<Float64Type>())),
        DataType::Float32 => Box::new(Floats(array.as_primitive::<Float32Type>())),
        DataType::Float16 => Box::new(Floats(array.as_primitive::<Float16Type>())),
        DataType::Boolean => Box::new(Bools(array.as_boolean())),
        DataType::Utf8 => Box::new(Texts(array.as_string::<i32>())),
        DataType::LargeUtf8 => Box::new(Texts(array.as_string::<i64>())),
        DataType::Utf8View => Box::new(Views(array.as_string_view())),
        DataType::Binary => Box::new(Texts(array.as_binary::<i32>())),
        DataType::LargeBinary => Box::new(Texts(array.as_binary::<i64>())),
        DataType::BinaryView => Box::new(Views(array.as_binary_view())),
        DataType::FixedSizeBinary(_) => Box::new(Fixed(array.as_fixed_size_binary())),
        DataType::Dictionary(_, _) => return dictionary(array, role, hasher),
        other => {
            let parameter = match role {
                Role::User => "users",
                Role::Attribute => "attributes",
            };
            let expected = "text, bytes, integers, floats, bools or a dictionary of these";
            return Err(Unsupported::new(parameter, expected, other));
        }
    })
}

fn dictionary<'a>(
    array: &'a ArrayRef,
    role: Role,
    hasher: Option<&dyn Prepares>,
) -> Result<Box<dyn Column + 'a>, Unsupported> {
    fn with_keys<'a, K: ArrowDictionaryKeyType>(
        keys: &'a PrimitiveArray<K>,
        values: &'a ArrayRef,
        role: Role,
        hasher: Option<&dyn Prepares>,
    ) -> Result<Box<dyn Column + 'a>, Unsupported>
    where
        K::Native: TryInto<usize>,
    {
        let values = column(values, role, hasher)?;
        // With more words than rows, hashing all of them would not pay.
        let Some(hasher) = hasher.filter(|_| values.len() <= keys.len()) else {
            return Ok(Box::new(Looked { keys, values }));
        };
        let hashed = (0..values.len())
            .map(|at| values.value(at).and_then(|value| hasher.prepare(value, role)))
            .collect();
        Ok(Box::new(Hashed { keys, hashed }))
    }
    let array = array.as_ref();
    downcast_dictionary_array!(
        array => with_keys(array.keys(), array.values(), role, hasher),
        other => Err(Unsupported::new("dictionary", "integer keys", other))
    )
}

static NO_ROWS: std::sync::LazyLock<NullArray> = std::sync::LazyLock::new(|| NullArray::new(0));

/// Implements [`Column`] for a wrapped array; `$value` is what a row that is not null holds.
macro_rules! column_of {
    ([$($generics:tt)*] $name:ty, |$array:ident, $row:ident| $value:expr) => {
        impl<$($generics)*> Column for $name {
            fn len(&self) -> usize {
                self.0.len()
            }

            #[inline(always)]
            fn value(&self, $row: usize) -> Option<Value<'_>> {
                let $array = self.0;
                if $array.is_null($row) { None } else { $value }
            }

            fn may_miss(&self) -> bool {
                // A float may be no number, and a truth value is nobody's id.
                let kind = self.0.data_type();
                kind.is_floating() || *kind == DataType::Boolean || self.0.null_count() > 0
            }
        }
    };
}

struct Nulls<'a>(&'a NullArray);
struct Words<'a>(&'a [i64]);
struct Integers<'a, T: ArrowPrimitiveType>(&'a PrimitiveArray<T>);
struct Unsigned<'a, T: ArrowPrimitiveType>(&'a PrimitiveArray<T>);
struct Floats<'a, T: ArrowPrimitiveType>(&'a PrimitiveArray<T>);
struct Bools<'a>(&'a BooleanArray);
struct Texts<'a, T: ByteArrayType>(&'a GenericByteArray<T>);
struct Views<'a, T: ByteViewType + ?Sized>(&'a GenericByteViewArray<T>);
struct Fixed<'a>(&'a FixedSizeBinaryArray);

impl Column for Nulls<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn value(&self, _: usize) -> Option<Value<'_>> {
        None
    }
}

impl Column for Words<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }

    #[inline(always)]
    fn value(&self, row: usize) -> Option<Value<'_>> {
        self.0.get(row).copied().map(Value::Integer)
    }

    fn may_miss(&self) -> bool {
        false
    }

    fn words(&self) -> Option<&[i64]> {
        Some(self.0)
    }
}

column_of!(['a, T: ArrowPrimitiveType<Native: Into<i64>>] Integers<'a, T>,
    |array, row| Some(Value::Integer(array.value(row).into())));
column_of!(['a, T: ArrowPrimitiveType<Native: Into<u64>>] Unsigned<'a, T>,
    |array, row| Some(Value::Unsigned(array.value(row).into())));
column_of!(['a, T: ArrowPrimitiveType<Native: Into<f64>>] Floats<'a, T>,
    |array, row| Some(Value::Float(array.value(row).into())));
column_of!(['a] Bools<'a>, |array, row| Some(Value::Bool(array.value(row))));
column_of!(['a, T: ByteArrayType<Native: Spelled>] Texts<'a, T>,
    |array, row| Some(array.value(row).spelled()));
column_of!(['a, T: ByteViewType<Native: Spelled> + ?Sized] Views<'a, T>,
    |array, row| Some(array.value(row).spelled()));
column_of!(['a] Fixed<'a>, |array, row| Some(Value::Bytes(array.value(row))));

/// Text and bytes are two kinds of value.
trait Spelled {
    fn spelled(&self) -> Value<'_>;
}

impl Spelled for str {
    #[inline(always)]
    fn spelled(&self) -> Value<'_> {
        Value::Text(self.as_bytes())
    }
}

impl Spelled for [u8] {
    #[inline(always)]
    fn spelled(&self) -> Value<'_> {
        Value::Bytes(self)
    }
}

/// A dictionary whose words were hashed beforehand.
struct Hashed<'a, K: ArrowDictionaryKeyType> {
    keys: &'a PrimitiveArray<K>,
    hashed: Vec<Option<Value<'static>>>,
}

/// A dictionary with more words than rows.
struct Looked<'a, K: ArrowDictionaryKeyType> {
    keys: &'a PrimitiveArray<K>,
    values: Box<dyn Column + 'a>,
}

#[inline(always)]
fn key_of<K: ArrowDictionaryKeyType>(keys: &PrimitiveArray<K>, row: usize) -> Option<usize>
where
    K::Native: TryInto<usize>,
{
    if keys.is_null(row) { None } else { keys.value(row).try_into().ok() }
}

impl<K: ArrowDictionaryKeyType<Native: TryInto<usize>>> Column for Hashed<'_, K> {
    fn len(&self) -> usize {
        self.keys.len()
    }

    #[inline(always)]
    fn value(&self, row: usize) -> Option<Value<'_>> {
        self.hashed.get(key_of(self.keys, row)?).copied().flatten()
    }
}

impl<K: ArrowDictionaryKeyType<Native: TryInto<usize>>> Column for Looked<'_, K> {
    fn len(&self) -> usize {
        self.keys.len()
    }

    #[inline(always)]
    fn value(&self, row: usize) -> Option<Value<'_>> {
        let key = key_of(self.keys, row)?;
        if key < self.values.len() { self.values.value(key) } else { None }
    }
}
