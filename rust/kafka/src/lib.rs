//! Messages of Kafka, taken and sent by the batch, without an object of Python's for each.
//!
//! Clients are made, configured and steered from Python, by its own client library. That is a shell around
//! librdkafka, a library in C. Once Python has loaded it, its functions can be found there and called from here,
//! on the very same clients: `conf_init` is librdkafka's documented entry for plugins, by which it
//! tells of each client that is made. All that is used is in librdkafka's public interface.
//!
//! What comes here is messages only. Whatever calls back into Python (rebalances, answers, errors) stays in the
//! client's own queue, which Python serves.

mod batch;
mod client;
mod library;
mod reader;
mod writer;

pub use batch::{Batch, Header, Message};
pub use client::Client;
pub use library::load;
pub use reader::{Reader, Wanted};
pub use writer::{Outgoing, QUEUE_FULL, Sent, Writer};

/// Why the client library cannot be used from here.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the client library of Kafka cannot be opened, or lacks {0}")]
    Missing(&'static str),
    #[error("the client of Kafka is closed")]
    Closed,
    #[error("the client of Kafka does not know {0}")]
    Unknown(&'static str),
}
