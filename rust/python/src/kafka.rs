//! `zveil._native.KafkaClient` and what reads and writes with it; documented in `_native.pyi`.

use crate::message_batch::MessageBatch;
use crate::messages::{Left, Record};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use zveil_kafka::{
    Batch, Client, Error, Header, Outgoing, QUEUE_FULL, Reader, Sent, Wanted, Writer,
};

fn failure(error: Error) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

#[pyclass(frozen, module = "zveil._native")]
pub(crate) struct KafkaClient(Arc<Client>);

#[pymethods]
impl KafkaClient {
    #[staticmethod]
    fn load(user: PathBuf) -> PyResult<()> {
        zveil_kafka::load(&user).map_err(failure)
    }

    #[staticmethod]
    fn made() -> Option<Self> {
        Client::made().map(Self)
    }

    #[getter]
    fn failed(&self) -> Option<i32> {
        self.0.failed()
    }
}

#[pyclass(frozen, module = "zveil._native")]
pub(crate) struct KafkaReader(Reader);

#[pymethods]
impl KafkaReader {
    #[new]
    #[pyo3(signature = (client, topic, *, headers = false, timestamps = false))]
    fn new(client: &KafkaClient, topic: &str, headers: bool, timestamps: bool) -> PyResult<Self> {
        let wanted = Wanted { headers, timestamps };
        Reader::new(Arc::clone(&client.0), topic, wanted).map(Self).map_err(failure)
    }

    fn attend(&self, partitions: Vec<i32>) -> PyResult<()> {
        self.0.attend(partitions).map_err(failure)
    }

    fn batch(&self, py: Python<'_>, wait_s: f64, most: usize) -> PyResult<Option<MessageBatch>> {
        let wait = Duration::try_from_secs_f64(wait_s)
            .map_err(|_| PyValueError::new_err("wait_s: expected seconds, 0 or more"))?;
        let batch = py.detach(|| self.0.batch(wait, most)).map_err(failure)?;
        Ok(batch.map(MessageBatch))
    }
}

/// Which key a record leaves with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Key {
    Released,
    Nothing,
    Source,
}

#[pyclass(frozen, module = "zveil._native")]
pub(crate) struct KafkaWriter {
    writer: Writer,
    key: Key,
    /// The names of those that leave; `None` for all of them.
    headers: Option<Vec<String>>,
    timestamps: bool,
}

#[pymethods]
impl KafkaWriter {
    #[new]
    #[pyo3(signature = (client, topic, *, key = "released", headers = Some(Vec::new()),
        timestamps = false))]
    fn new(
        client: &KafkaClient,
        topic: &str,
        key: &str,
        headers: Option<Vec<String>>,
        timestamps: bool,
    ) -> PyResult<Self> {
        let key = match key {
            "released" => Key::Released,
            "none" => Key::Nothing,
            "source" => Key::Source,
            _ => return Err(PyValueError::new_err("key: expected 'released', 'none' or 'source'")),
        };
        let writer = Writer::new(Arc::clone(&client.0), topic).map_err(failure)?;
        Ok(Self { writer, key, headers, timestamps })
    }

    #[pyo3(signature = (left, start = 0, *, sent_ms = None))]
    fn send(
        &self,
        py: Python<'_>,
        left: &Left,
        start: usize,
        sent_ms: Option<i64>,
    ) -> PyResult<(usize, Option<i32>)> {
        let is_plain = !self.timestamps && sent_ms.is_none();
        let is_plain = is_plain && self.headers.as_ref().is_some_and(Vec::is_empty);
        let sent = py.detach(|| {
            if is_plain {
                self.send_plain(left, start)
            } else {
                self.send_with(left, start, sent_ms)
            }
        });
        let sent = sent.map_err(failure)?;
        Ok((sent.count, sent.refused))
    }

    #[classattr]
    const QUEUE_FULL: i32 = QUEUE_FULL;
}

impl KafkaWriter {
    /// A record as it leaves, with the key that goes with it.
    fn outgoing<'a>(&self, record: &Record<'a>, source: &'a Batch) -> Outgoing<'a> {
        let message = || source.get(record.place);
        let value = record.value.or_else(|| message().and_then(|message| message.value));
        let key = match self.key {
            Key::Released => record.key,
            Key::Nothing => None,
            Key::Source => message().and_then(|message| message.key),
        };
        Outgoing { value, key }
    }

    fn send_plain(&self, left: &Left, start: usize) -> Result<Sent, Error> {
        let source = left.messages();
        self.writer.send(left.records().skip(start).map(|record| self.outgoing(&record, source)))
    }

    fn send_with(&self, left: &Left, start: usize, sent_ms: Option<i64>) -> Result<Sent, Error> {
        let source = left.messages();
        let leaves = |header: &&Header| match &self.headers {
            None => true,
            Some(names) => names.iter().any(|name| name.as_bytes() == header.name.to_bytes()),
        };
        let mut count = 0;
        for record in left.records().skip(start) {
            let own = || source.get(record.place).map(|message| message.timestamp_ms);
            let timestamp_ms = if self.timestamps { own().filter(|ms| *ms >= 0) } else { sent_ms };
            let headers = source.headers(record.place).iter().filter(leaves);
            let outgoing = self.outgoing(&record, source);
            if let Some(code) = self.writer.send_with(outgoing, timestamp_ms, headers)? {
                return Ok(Sent { count, refused: Some(code) });
            }
            count += 1;
        }
        Ok(Sent { count, refused: None })
    }
}
