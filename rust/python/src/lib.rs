//! Python bindings: gate, text, Parquet and keys, their conversions and errors. Nothing is decided here.

mod columns;
mod failure;
mod gate;
mod kafka;
mod keyring;
mod ladder;
mod levels;
mod lines_out;
mod message_batch;
mod messages;
mod meter;
mod names;
mod parquet;
mod saved;
mod scan;
mod settings;
mod state;
mod swap;
mod text;
mod times;
mod toml;
mod values;

use pyo3::prelude::*;

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<gate::Gate>()?;
    module.add_class::<saved::Saved>()?;
    module.add_function(wrap_pyfunction!(saved::open_snapshot, module)?)?;
    module.add_function(wrap_pyfunction!(saved::open_bytes, module)?)?;
    module.add_class::<keyring::Keyring>()?;
    module.add_class::<keyring::Names>()?;
    module.add_class::<ladder::Ladder>()?;
    module.add_function(wrap_pyfunction!(ladder::spell, module)?)?;
    module.add_class::<state::EventIds>()?;
    module.add_class::<state::Saving>()?;
    module.add_function(wrap_pyfunction!(state::save_state, module)?)?;
    module.add_function(wrap_pyfunction!(state::load_state, module)?)?;
    module.add_function(wrap_pyfunction!(state::read_note, module)?)?;
    module.add_class::<meter::Meter>()?;
    module.add_class::<swap::Swap>()?;
    module.add_class::<parquet::ParquetWay>()?;
    module.add_class::<text::TextWay>()?;
    module.add_class::<messages::Witness>()?;
    module.add_class::<messages::Left>()?;
    module.add_class::<message_batch::MessageBatch>()?;
    module.add_class::<kafka::KafkaClient>()?;
    module.add_class::<kafka::KafkaReader>()?;
    module.add_class::<kafka::KafkaWriter>()?;
    module.add_class::<names::NameFilter>()?;
    module.add_class::<names::NameList>()?;
    module.add_function(wrap_pyfunction!(text::field_path, module)?)?;
    module.add_function(wrap_pyfunction!(text::parse_times, module)?)?;
    module.add_function(wrap_pyfunction!(text::problem_sentence, module)?)?;
    module.add_function(wrap_pyfunction!(toml::read_toml, module)?)?;
    module.add_function(wrap_pyfunction!(scan::scan_json, module)?)?;
    module.add_function(wrap_pyfunction!(scan::scan_csv, module)?)?;
    module.add_function(wrap_pyfunction!(scan::parse_time, module)?)?;
    module.add("SnapshotError", module.py().get_type::<failure::SnapshotError>())?;
    module.add("MOST_LEVELS", zveil_core::MOST_LEVELS)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
