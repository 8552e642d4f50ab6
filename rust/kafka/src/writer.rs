//! Records to a topic, sent by the batch.

use crate::Error;
use crate::batch::Header;
use crate::client::Client;
use crate::library::{
    ANY_PARTITION, COPY, Handle, Headers, Library, Property, PropertyBytes, PropertyValue,
    RawMessage, Topic, kind, library,
};
use std::ffi::{CString, c_int, c_void};
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, PoisonError};

/// There is no room in the client for now.
pub const QUEUE_FULL: i32 = -184;
/// A failure that has no number of its own.
const FAILED: i32 = -1;

/// Sends records to a topic of a producer.
pub struct Writer {
    client: Arc<Client>,
    library: &'static Library,
    topic: *mut Topic,
    scratch: Mutex<Scratch>,
}

#[derive(Default)]
struct Scratch(Vec<RawMessage>);

// SAFETY: a topic of librdkafka may be used from any thread; it is used under the client's lock. What is in scratch is
// written anew before it is read.
unsafe impl Send for Writer {}
unsafe impl Sync for Writer {}

/// One record, and what goes with it.
#[derive(Clone, Copy)]
pub struct Outgoing<'a> {
    pub value: Option<&'a [u8]>,
    pub key: Option<&'a [u8]>,
}

/// How many records the client has taken, and why it did not take the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    pub count: usize,
    pub refused: Option<i32>,
}

impl Writer {
    /// Of a producer, and a topic.
    pub fn new(client: Arc<Client>, topic: &str) -> Result<Self, Error> {
        let library = library()?;
        let name = CString::new(topic).map_err(|_| Error::Unknown("a topic of that name"))?;
        let (mut held, handle) = client.open()?;
        // SAFETY: an open client, and a name that ends; its settings are those of the client.
        let topic = unsafe { (library.topic_new)(handle, name.as_ptr(), null_mut()) };
        if topic.is_null() {
            return Err(Error::Unknown("a topic of that name"));
        }
        held.keep_topic(topic);
        drop(held);
        Ok(Self { client, library, topic, scratch: Mutex::default() })
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Sends records one behind the other. The client copies them.
    pub fn send<'a>(&self, records: impl Iterator<Item = Outgoing<'a>>) -> Result<Sent, Error> {
        let (_held, _) = self.client.open()?;
        let mut scratch = self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        let messages = &mut scratch.0;
        messages.clear();
        messages.extend(records.map(|record| {
            let (payload, len) = parts(record.value);
            let (key, key_len) = parts(record.key);
            RawMessage {
                err: 0,
                topic: null_mut(),
                partition: ANY_PARTITION,
                payload,
                len,
                key,
                key_len,
                offset: 0,
                private: null_mut(),
            }
        }));
        let all = messages.len();
        let count = c_int::try_from(all).unwrap_or(c_int::MAX);
        // SAFETY: a topic of an open client, and as many messages as is said, whose texts outlive the call.
        let good = unsafe {
            let topic = self.topic;
            (self.library.produce_batch)(topic, ANY_PARTITION, COPY, messages.as_mut_ptr(), count)
        };
        if usize::try_from(good).is_ok_and(|good| good == all) {
            return Ok(Sent { count: all, refused: None });
        }
        let first = messages.iter().position(|message| message.err != 0).unwrap_or(all);
        let refused = messages.get(first).map_or(FAILED, |message| message.err);
        Ok(Sent { count: first, refused: Some(refused) })
    }

    /// Sends one record with a timestamp, where there is one, and with headers.
    pub fn send_with<'h>(
        &self,
        record: Outgoing<'_>,
        timestamp_ms: Option<i64>,
        headers: impl Iterator<Item = &'h Header>,
    ) -> Result<Option<i32>, Error> {
        let (_held, handle) = self.client.open()?;
        let long = |long| PropertyValue { long };
        let bytes = |text: Option<&[u8]>| {
            let (start, len) = parts(text);
            PropertyValue { bytes: PropertyBytes { start, len } }
        };
        let pointer = |pointer| PropertyValue { pointer };
        let mut said = vec![
            Property { kind: kind::TOPIC, value: pointer(self.topic.cast()) },
            Property { kind: kind::VALUE, value: bytes(record.value) },
            Property { kind: kind::KEY, value: bytes(record.key) },
            Property { kind: kind::FLAGS, value: PropertyValue { int: COPY } },
        ];
        said.extend(timestamp_ms.map(|ms| Property { kind: kind::TIMESTAMP, value: long(ms) }));
        Ok(self.produce(handle, said, headers))
    }

    fn produce<'h>(
        &self,
        handle: *mut Handle,
        mut said: Vec<Property>,
        headers: impl Iterator<Item = &'h Header>,
    ) -> Option<i32> {
        let library = self.library;
        // SAFETY: an open client and its topic; names and values are copied, and texts outlive the call.
        // Headers belong to the message if it was taken, and are freed here if not.
        unsafe {
            let mut list: *mut Headers = null_mut();
            for header in headers {
                if list.is_null() {
                    list = (library.headers_new)(4);
                }
                let (start, len) = parts(header.value.as_deref());
                let (name, len) = (header.name.as_ptr(), isize::try_from(len).unwrap_or(0));
                (library.header_add)(list, name, -1, start, len);
            }
            if !list.is_null() {
                let value = PropertyValue { pointer: list.cast() };
                said.push(Property { kind: kind::HEADERS, value });
            }
            let failure = (library.produceva)(handle, said.as_ptr(), said.len());
            if failure.is_null() {
                return None;
            }
            if !list.is_null() {
                (library.headers_destroy)(list);
            }
            let code = (library.error_code)(failure);
            (library.error_destroy)(failure);
            Some(code)
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.client.lock().drop_topic(self.library, self.topic);
    }
}

/// Where a text lies, as C has it: nowhere if there is none. It is only read.
fn parts(text: Option<&[u8]>) -> (*mut c_void, usize) {
    text.map_or((null_mut(), 0), |text| (text.as_ptr().cast_mut().cast(), text.len()))
}
