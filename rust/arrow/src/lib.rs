//! Arrow arrays as columns of `zveil-core`, and Parquet from file to file.

mod columns;
pub mod parquet;
mod times;
mod unsupported;

pub use columns::column;
pub use times::{NO_TIME, Scale, times};
pub use unsupported::Unsupported;
