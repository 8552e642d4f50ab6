//! Messages of a consumer, taken by the batch.

use crate::Error;
use crate::batch::{Batch, Header, Message};
use crate::client::Client;
use crate::library::{Handle, Headers, Library, PARTITION_EOF, Queue, RawMessage, library};
use std::ffi::{CStr, CString, c_int};
use std::ptr::{null, null_mut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// So often it is seen to that messages come where they are waited for.
const SEEN_TO: Duration = Duration::from_millis(10);

/// Nobody waits for longer.
const LONGEST: Duration = Duration::from_secs(60);

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
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// The partitions whose messages are to come here.
    attended: Vec<i32>,
    /// When that was last seen to.
    seen_to: Option<Instant>,
    /// Where the client puts what it hands over.
    scratch: Vec<*mut RawMessage>,
}

// SAFETY: the queue may be used from any thread, and is used under the client's lock; what is in scratch is written anew
// before it is read.
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
        Ok(Self { client, library, queue, topic, wanted, inner: Mutex::default() })
    }

    /// Has the messages of these partitions come here, and of no others: to be said before they are read.
    pub fn attend(&self, partitions: Vec<i32>) -> Result<(), Error> {
        let (_held, handle) = self.client.open()?;
        let mut inner = self.inner();
        inner.attended = partitions;
        self.forward(handle, &mut inner)
    }

    /// Leads the queues of all partitions to that of the reader, with what is in them.
    ///
    /// A partition that is set to another place, or was given away and comes back, has lost its way here when
    /// it is read again, some time later; and nobody tells. Until it is led anew its messages wait in its own queue.
    fn forward(&self, handle: *mut Handle, inner: &mut Inner) -> Result<(), Error> {
        for partition in &inner.attended {
            // SAFETY: an open client, a name that ends, queues of this client; what was asked for is given back.
            unsafe {
                let topic = self.topic.as_ptr();
                let own = (self.library.queue_get_partition)(handle, topic, *partition);
                if own.is_null() {
                    return Err(Error::Unknown("a partition of that number"));
                }
                (self.library.queue_forward)(own, self.queue);
                (self.library.queue_destroy)(own);
            }
        }
        inner.seen_to = Some(Instant::now());
        Ok(())
    }

    /// Waits for a message, and takes what has come with it; `None` if there was none.
    pub fn batch(&self, wait: Duration, most: usize) -> Result<Option<Batch>, Error> {
        let (_held, handle) = self.client.open()?;
        let mut inner = self.inner();
        let until = Instant::now() + wait.min(LONGEST);
        let first = loop {
            let now = Instant::now();
            if inner.seen_to.is_none_or(|before| now >= before + SEEN_TO) {
                self.forward(handle, &mut inner)?;
            }
            let wait_ms =
                until.saturating_duration_since(now).min(SEEN_TO).as_micros().div_ceil(1000);
            let wait_ms = c_int::try_from(wait_ms).unwrap_or(0);
            // SAFETY: a queue of an open client.
            let first = unsafe { (self.library.consume_queue)(self.queue, wait_ms) };
            if !first.is_null() {
                break first;
            }
            if Instant::now() >= until {
                return Ok(None);
            }
        };
        let scratch = &mut inner.scratch;
        scratch.clear();
        scratch.resize(most.max(1), null_mut());
        scratch[0] = first;
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

impl Reader {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
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
