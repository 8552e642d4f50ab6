//! Messages of a consumer, taken by the batch.

use crate::Error;
use crate::batch::{Batch, Header, Message};
use crate::client::Client;
use crate::library::{Headers, Library, PARTITION_EOF, Queue, RawMessage, library};
use std::ffi::{CStr, CString, c_int};
use std::ptr::{null, null_mut};
use std::sync::{Arc, Mutex, PoisonError};

/// What of messages is taken beside values and keys.
#[derive(Clone, Copy, Default)]
pub struct Wanted {
    pub headers: bool,
    pub timestamps: bool,
}

/// Takes the messages of a consumer's partitions, out of a queue that nothing else comes to.
pub struct Reader {
    client: Arc<Client>,
    library: &'static Library,
    queue: *mut Queue,
    topic: CString,
    wanted: Wanted,
    /// Where the client puts what it hands over.
    scratch: Mutex<Vec<*mut RawMessage>>,
}

// SAFETY: the queue may be used from any thread, as may what is scratch; it is used under the client's lock.
unsafe impl Send for Reader {}
unsafe impl Sync for Reader {}

impl Reader {
    /// Of a consumer, and a topic.
    pub fn new(client: Arc<Client>, topic: &str, wanted: Wanted) -> Result<Self, Error> {
        let library = library()?;
        let topic = CString::new(topic).map_err(|_| Error::Unknown("a topic of that name"))?;
        let (mut held, handle) = client.open()?;
        // SAFETY: a client that is open.
        let queue = unsafe { (library.queue_new)(handle) };
        if queue.is_null() {
            return Err(Error::Unknown("queues"));
        }
        held.keep_queue(queue);
        drop(held);
        Ok(Self { client, library, queue, topic, wanted, scratch: Mutex::new(Vec::new()) })
    }

    /// Has the messages of a partition come here: to be said before it is read.
    pub fn attend(&self, partition: i32) -> Result<(), Error> {
        let (_held, handle) = self.client.open()?;
        // SAFETY: an open client, a name that ends, queues of this client; what was asked for is given back.
        unsafe {
            let own = (self.library.queue_get_partition)(handle, self.topic.as_ptr(), partition);
            if own.is_null() {
                return Err(Error::Unknown("a partition of that number"));
            }
            (self.library.queue_forward)(own, self.queue);
            (self.library.queue_destroy)(own);
        }
        Ok(())
    }

    /// Waits for a message, and takes what has come with it; `None` if there was none.
    pub fn batch(&self, wait_ms: i32, most: usize) -> Result<Option<Batch>, Error> {
        let (_held, _) = self.client.open()?;
        let mut scratch = self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        scratch.clear();
        scratch.resize(most.max(1), null_mut());
        // SAFETY: a queue of an open client.
        scratch[0] = unsafe { (self.library.consume_queue)(self.queue, wait_ms) };
        if scratch[0].is_null() {
            return Ok(None);
        }
        // From here on its age counts.
        let mut batch = Batch::default();
        let rest = &mut scratch[1..];
        // SAFETY: the same queue, and as much room as is said.
        let count = unsafe {
            (self.library.consume_batch_queue)(self.queue, 0, rest.as_mut_ptr(), rest.len())
        };
        let count = 1 + usize::try_from(count).unwrap_or(0);
        // SAFETY: the first one is there.
        let length = unsafe { (*scratch[0]).len + (*scratch[0]).key_len };
        batch.expect(count, length);
        for message in &scratch[..count] {
            // SAFETY: the client has handed it over, for it to be given back once.
            unsafe {
                self.take(&**message, &mut batch);
                (self.library.message_destroy)(*message);
            }
        }
        Ok(Some(batch))
    }

    /// Copies a message, or notes what is told of a partition.
    ///
    /// # Safety
    ///
    /// The message is one that the client has handed over, and is not given back yet.
    unsafe fn take(&self, raw: &RawMessage, batch: &mut Batch) {
        // SAFETY: as the client hands it over, for as long as the message is there.
        let (value, key) = unsafe { (bytes(raw.payload, raw.len), bytes(raw.key, raw.key_len)) };
        match raw.err {
            0 => {
                let mut timestamp_ms = -1;
                if self.wanted.timestamps {
                    let mut kind: c_int = 0;
                    // SAFETY: a message that is there.
                    timestamp_ms = unsafe { (self.library.message_timestamp)(raw, &mut kind) };
                }
                // SAFETY: as above.
                let headers =
                    if self.wanted.headers { unsafe { self.headers(raw) } } else { Vec::new() };
                let (partition, offset) = (raw.partition, raw.offset);
                let message = Message { partition, offset, timestamp_ms, value, key };
                batch.push(message, headers);
            }
            PARTITION_EOF => batch.ends.push((raw.partition, raw.offset)),
            code => {
                let words = String::from_utf8_lossy(value.unwrap_or_default());
                batch.errors.push((code, words.into_owned()));
            }
        }
    }

    /// # Safety
    ///
    /// As of `take`.
    unsafe fn headers(&self, raw: &RawMessage) -> Vec<Header> {
        let mut headers: *mut Headers = null_mut();
        let mut found = Vec::new();
        // SAFETY: a message that is there; its headers are as long as it is, and are read in order until
        // there is none; names end, and values are as long as is said.
        unsafe {
            if (self.library.message_headers)(raw, &mut headers) != 0 {
                return found;
            }
            let (mut name, mut start, mut len) = (null(), null(), 0);
            let get = self.library.header_get_all;
            while get(headers, found.len(), &mut name, &mut start, &mut len) == 0 {
                let value = bytes(start, len).map(<[u8]>::to_vec);
                found.push(Header { name: CStr::from_ptr(name).to_owned(), value });
            }
        }
        found
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.client.lock().drop_queue(self.library, self.queue);
    }
}

/// # Safety
///
/// What is pointed at has that length, and stays for as long as the slice.
unsafe fn bytes<'a>(start: *const std::ffi::c_void, len: usize) -> Option<&'a [u8]> {
    // SAFETY: as the caller says.
    (!start.is_null()).then(|| unsafe { std::slice::from_raw_parts(start.cast(), len) })
}
