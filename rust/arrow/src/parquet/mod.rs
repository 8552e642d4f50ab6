//! Parquet from file to file: columns are read, decided and written without anything in between.
//!
//! ```text
//! Source ─→ Act ────────────────────────────────→ Sink
//! batches   gates ─→ nulls, filter, pseudonyms     bytes
//! ```
//!
//! Only plain files go this way: flat columns of the usual types. Others have more in them than is
//! worth telling twice, and are left to the libraries that know all of it.

mod act;
mod chunk;
mod hashes;
mod index;
mod interner;
mod moments;
mod packing;
mod pseudonyms;
mod sink;
mod source;
mod texts;
mod trial;
mod words;

pub use act::{Act, ActError, Plan};
pub use index::merged;
pub use moments::Unit;
pub use sink::{Sink, Unwritable};
pub use source::{Damaged, Source, names};
pub use words::Left;

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use std::sync::Arc;

/// The columns that leave of those that came: users as text where they leave as pseudonyms.
///
/// `None` where a column cannot be what it is used as: no time, no user or attribute, or one that
/// holds no text where a text is to stand for what is veiled.
pub fn leaving(came: &SchemaRef, plan: &Plan, has_pseudonyms: bool) -> Option<SchemaRef> {
    let kinds: Vec<_> = came.fields().iter().map(|field| field.data_type()).collect();
    let (time, users, rest) = match &kinds[..] {
        [time, users, rest @ ..] => (time, users, rest),
        _ => return None,
    };
    let is_time = matches!(time, DataType::Timestamp(_, _) | DataType::Date32);
    let values = rest.get(..plan.veiled.len())?;
    let is_text = |kind: &DataType| matches!(kind, DataType::Utf8 | DataType::LargeUtf8);
    let may_veil = values
        .iter()
        .zip(&plan.veiled)
        .all(|(kind, veiled)| is_value(kind) && (veiled.is_none() || is_text(kind)));
    if !(is_time || moments::is_number(time)) || !is_value(users) || !may_veil {
        return None;
    }
    let field = |(number, field): (usize, &Arc<Field>)| {
        let is_pseudonym = number == 1 && has_pseudonyms;
        let kind = if is_pseudonym { &DataType::LargeUtf8 } else { field.data_type() };
        Field::new(field.name(), kind.clone(), true)
    };
    let fields: Vec<_> = came.fields().iter().enumerate().map(field).collect();
    Some(Arc::new(Schema::new(fields)))
}

/// Whether the times among these columns are numbers, which say nothing of what they are.
pub fn has_numbers(came: &SchemaRef) -> bool {
    came.fields().first().is_some_and(|time| moments::is_number(time.data_type()))
}

/// Whether values of a type can be decided about.
fn is_value(kind: &DataType) -> bool {
    let is_bytes = matches!(
        kind,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary
    );
    is_bytes || moments::is_number(kind) || *kind == DataType::Boolean
}
