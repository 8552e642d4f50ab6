//! The functions of librdkafka, as its header has them.

use crate::Error;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::Path;
use std::sync::OnceLock;

/// What is only pointed at.
pub(crate) enum Conf {}
pub(crate) enum Handle {}
pub(crate) enum Headers {}
pub(crate) enum Queue {}
pub(crate) enum Topic {}
pub(crate) enum Failure {}

pub(crate) const PARTITION_EOF: c_int = -191;
pub(crate) const ANY_PARTITION: i32 = -1;
pub(crate) const COPY: c_int = 2;

/// `rd_kafka_message_t`.
#[repr(C)]
pub(crate) struct RawMessage {
    pub(crate) err: c_int,
    pub(crate) topic: *mut Topic,
    pub(crate) partition: i32,
    pub(crate) payload: *mut c_void,
    pub(crate) len: usize,
    pub(crate) key: *mut c_void,
    pub(crate) key_len: usize,
    pub(crate) offset: i64,
    pub(crate) private: *mut c_void,
}

/// `rd_kafka_vu_t`: one property of a message that is to be sent.
#[repr(C)]
pub(crate) struct Property {
    pub(crate) kind: c_int,
    pub(crate) value: PropertyValue,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) union PropertyValue {
    pub(crate) pointer: *mut c_void,
    pub(crate) int: c_int,
    pub(crate) long: i64,
    pub(crate) bytes: PropertyBytes,
    pub(crate) padding: [u8; 64],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct PropertyBytes {
    pub(crate) start: *mut c_void,
    pub(crate) len: usize,
}

/// `rd_kafka_vtype_t`.
pub(crate) mod kind {
    use std::ffi::c_int;
    pub(crate) const TOPIC: c_int = 2;
    pub(crate) const VALUE: c_int = 4;
    pub(crate) const KEY: c_int = 5;
    pub(crate) const FLAGS: c_int = 7;
    pub(crate) const TIMESTAMP: c_int = 8;
    pub(crate) const HEADERS: c_int = 10;
}

pub(crate) type OnNew =
    unsafe extern "C" fn(*mut Handle, *const Conf, *mut c_void, *mut c_char, usize) -> c_int;
pub(crate) type OnDestroy = unsafe extern "C" fn(*mut Handle, *mut c_void) -> c_int;
pub(crate) type OnAcknowledgement =
    unsafe extern "C" fn(*mut Handle, *mut RawMessage, *mut c_void) -> c_int;

macro_rules! functions {
    ($($name:ident($($argument:ty),*) $(-> $answer:ty)?;)*) => {
        pub(crate) struct Library {
            $(pub(crate) $name: unsafe extern "C" fn($($argument),*) $(-> $answer)?,)*
        }

        impl Library {
            fn found(find: impl Fn(&CStr) -> *mut c_void) -> Result<Self, Error> {
                Ok(Self {
                    $($name: {
                        let name = concat!("rd_kafka_", stringify!($name));
                        let with_end = concat!("rd_kafka_", stringify!($name), "\0");
                        let place = CStr::from_bytes_with_nul(with_end.as_bytes())
                            .map_or(std::ptr::null_mut(), &find);
                        if place.is_null() {
                            return Err(Error::Missing(name));
                        }
                        // SAFETY: the library's function of that name, whose type is in its header; both
                        // stay as they are over versions.
                        unsafe {
                            std::mem::transmute::<
                                *mut c_void,
                                unsafe extern "C" fn($($argument),*) $(-> $answer)?,
                            >(place)
                        }
                    },)*
                })
            }
        }
    };
}

functions! {
    conf_interceptor_add_on_new(*mut Conf, *const c_char, OnNew, *mut c_void) -> c_int;
    interceptor_add_on_destroy(*mut Handle, *const c_char, OnDestroy, *mut c_void) -> c_int;
    interceptor_add_on_acknowledgement(*mut Handle, *const c_char, OnAcknowledgement, *mut c_void) -> c_int;
    queue_new(*mut Handle) -> *mut Queue;
    queue_get_partition(*mut Handle, *const c_char, i32) -> *mut Queue;
    queue_forward(*mut Queue, *mut Queue);
    queue_destroy(*mut Queue);
    consume_queue(*mut Queue, c_int) -> *mut RawMessage;
    consume_batch_queue(*mut Queue, c_int, *mut *mut RawMessage, usize) -> isize;
    message_destroy(*mut RawMessage);
    message_timestamp(*const RawMessage, *mut c_int) -> i64;
    message_headers(*const RawMessage, *mut *mut Headers) -> c_int;
    header_get_all(*const Headers, usize, *mut *const c_char, *mut *const c_void, *mut usize) -> c_int;
    headers_new(usize) -> *mut Headers;
    header_add(*mut Headers, *const c_char, isize, *const c_void, isize) -> c_int;
    headers_destroy(*mut Headers);
    topic_new(*mut Handle, *const c_char, *mut c_void) -> *mut Topic;
    topic_destroy(*mut Topic);
    produce_batch(*mut Topic, i32, c_int, *mut RawMessage, c_int) -> c_int;
    produceva(*mut Handle, *const Property, usize) -> *mut Failure;
    error_code(*const Failure) -> c_int;
    error_destroy(*mut Failure);
}

static LIBRARY: OnceLock<Library> = OnceLock::new();

/// Finds the library's functions through a file that Python has loaded and that uses them.
pub fn load(user: &Path) -> Result<(), Error> {
    if LIBRARY.get().is_none() {
        let library = open(user)?;
        // Another thread may have been faster, and found the same.
        let _ = LIBRARY.set(library);
    }
    Ok(())
}

pub(crate) fn library() -> Result<&'static Library, Error> {
    LIBRARY.get().ok_or(Error::Missing("librdkafka"))
}

#[cfg(unix)]
fn open(user: &Path) -> Result<Library, Error> {
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;

    let path = CString::new(user.as_os_str().as_bytes()).map_err(|_| Error::Missing("its file"))?;
    // SAFETY: a file that is loaded already is only looked up. It is not closed: it stays.
    let opened = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD) };
    if opened.is_null() {
        return Err(Error::Missing("its file"));
    }
    // SAFETY: what was opened, and a name that ends. What it was linked with is searched too.
    Library::found(|name| unsafe { libc::dlsym(opened, name.as_ptr()) })
}

#[cfg(not(unix))]
fn open(_: &Path) -> Result<Library, Error> {
    Err(Error::Missing("a way in, on this system"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shapes_are_those_of_the_header() {
        assert_eq!(size_of::<Property>(), 72);
        assert_eq!(size_of::<RawMessage>(), 72);
        assert_eq!(std::mem::offset_of!(RawMessage, offset), 56);
    }

    #[test]
    fn what_is_not_loaded_is_not_found() {
        assert!(load(Path::new("/nowhere/at/all.so")).is_err());
        assert!(library().is_err());
    }
}
