//! The reader of snapshots, given bytes that were never encrypted: refused, or a gate that works.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|body: &[u8]| {
    if let Ok((gate, note)) = zveil_core::read_plain(body) {
        assert!(note.len() <= body.len());
        // Every attribute takes more of the body than one byte.
        assert!((gate.stats().attributes as usize) <= body.len());
    }
});
