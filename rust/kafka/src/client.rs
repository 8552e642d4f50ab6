//! Clients that Python makes, and what librdkafka tells of them.

use crate::Error;
use crate::library::{Conf, Handle, Library, Queue, RawMessage, Topic, library};
use std::cell::RefCell;
use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const NAME: *const c_char = c"zveil".as_ptr();

thread_local! {
    /// The client that this thread has made last, until somebody takes it.
    static MADE: RefCell<Option<Arc<Client>>> = const { RefCell::new(None) };
}

/// A client of librdkafka, as long as that has not closed it.
pub struct Client {
    held: Mutex<Held>,
    /// The first record that could not be sent: why, by Kafka's numbers; 0 for none.
    failed: AtomicI32,
}

/// What belongs to a client and has to go before it.
pub(crate) struct Held {
    handle: *mut Handle,
    queues: Vec<*mut Queue>,
    topics: Vec<*mut Topic>,
}

// SAFETY: librdkafka's own objects may be used from any thread; they are used and freed under the lock.
unsafe impl Send for Held {}

impl Held {
    /// The client; `None` once it is closed.
    pub(crate) fn handle(&self) -> Option<*mut Handle> {
        (!self.handle.is_null()).then_some(self.handle)
    }

    pub(crate) fn keep_queue(&mut self, queue: *mut Queue) {
        self.queues.push(queue);
    }

    pub(crate) fn keep_topic(&mut self, topic: *mut Topic) {
        self.topics.push(topic);
    }

    /// Frees a queue, unless it has gone with its client.
    pub(crate) fn drop_queue(&mut self, library: &Library, queue: *mut Queue) {
        if let Some(place) = self.queues.iter().position(|other| *other == queue) {
            self.queues.swap_remove(place);
            // SAFETY: it is there, and nobody has it any more.
            unsafe { (library.queue_destroy)(queue) }
        }
    }

    /// The same of a topic.
    pub(crate) fn drop_topic(&mut self, library: &Library, topic: *mut Topic) {
        if let Some(place) = self.topics.iter().position(|other| *other == topic) {
            self.topics.swap_remove(place);
            // SAFETY: it is there, and nobody has it any more.
            unsafe { (library.topic_destroy)(topic) }
        }
    }
}

impl Client {
    /// Takes the client that this thread has made last.
    pub fn made() -> Option<Arc<Self>> {
        let client = MADE.with(|made| made.borrow_mut().take())?;
        // Making it may have failed behind what was told.
        client.lock().handle()?;
        Some(client)
    }

    /// Why a record could not be sent, if one could not.
    pub fn failed(&self) -> Option<i32> {
        Some(self.failed.load(Ordering::Relaxed)).filter(|code| *code != 0)
    }

    /// While this is held it is not closed.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The client, or that it is closed.
    pub(crate) fn open(&self) -> Result<(MutexGuard<'_, Held>, *mut Handle), Error> {
        let held = self.lock();
        let handle = held.handle().ok_or(Error::Closed)?;
        Ok((held, handle))
    }
}

/// librdkafka's entry: asked for each configuration that names this library as a plugin.
///
/// # Safety
///
/// It is for librdkafka, with what its header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conf_init(
    conf: *mut Conf,
    _: *mut *mut c_void,
    _: *mut c_char,
    _: usize,
) -> c_int {
    // Whoever made it finds no client, and says so.
    let Ok(library) = library() else { return 0 };
    // SAFETY: the configuration that was handed over, a name that ends, a function of the type.
    unsafe { (library.conf_interceptor_add_on_new)(conf, NAME, on_new, null_mut()) }
}

unsafe extern "C" fn on_new(
    handle: *mut Handle,
    _: *const Conf,
    _: *mut c_void,
    _: *mut c_char,
    _: usize,
) -> c_int {
    let Ok(library) = library() else { return 0 };
    let held = Held { handle, queues: Vec::new(), topics: Vec::new() };
    let client = Arc::new(Client { held: Mutex::new(held), failed: AtomicI32::new(0) });
    // Records may be told of until the very end, behind on_destroy: so it is never freed, a few bytes for
    // each client that a program makes.
    let kept = Arc::into_raw(Arc::clone(&client)).cast_mut().cast();
    // SAFETY: the client that is being made; functions of the types; what they are given stays.
    let outcome = unsafe {
        let first = (library.interceptor_add_on_destroy)(handle, NAME, on_destroy, kept);
        let add = library.interceptor_add_on_acknowledgement;
        if first == 0 { add(handle, NAME, on_acknowledgement, kept) } else { first }
    };
    if outcome == 0 {
        // The thread may be ending: then nobody takes it.
        let _ = MADE.try_with(|made| made.replace(Some(client)));
    }
    outcome
}

unsafe extern "C" fn on_destroy(_: *mut Handle, kept: *mut c_void) -> c_int {
    // SAFETY: what on_new has kept for ever.
    let client = unsafe { &*kept.cast::<Client>() };
    let mut held = client.lock();
    if let Ok(library) = library() {
        while let Some(queue) = held.queues.last().copied() {
            held.drop_queue(library, queue);
        }
        while let Some(topic) = held.topics.last().copied() {
            held.drop_topic(library, topic);
        }
    }
    held.handle = null_mut();
    0
}

unsafe extern "C" fn on_acknowledgement(
    _: *mut Handle,
    message: *mut RawMessage,
    kept: *mut c_void,
) -> c_int {
    // SAFETY: a message that is there during the call, and what on_new has kept for ever.
    let (code, client) = unsafe { ((*message).err, &*kept.cast::<Client>()) };
    if code != 0 {
        let _ = client.failed.compare_exchange(0, code, Ordering::Relaxed, Ordering::Relaxed);
    }
    0
}
