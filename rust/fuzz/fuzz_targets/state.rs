//! The reader of states, given bytes that were never encrypted: refused, or parts that work.

#![no_main]

use libfuzzer_sys::fuzz_target;
use zveil_core::Value;
use zveil_core::state::Loaded;

fuzz_target!(|body: &[u8]| {
    let Ok((note, parts)) = zveil_core::read_plain_state(body) else { return };
    assert!(note.len() <= body.len());
    for part in parts {
        match part {
            Loaded::Gate(mut gate) => {
                let stats = gate.stats();
                // Every attribute, and every entry, takes more of the body than one byte.
                assert!((stats.attributes + stats.entries) as usize <= body.len());
                let clock = stats.clock.unwrap_or(0);
                for number in 0..20 {
                    let (user, page) = (Value::Integer(number % 7), Value::Integer(number % 3));
                    gate.observe(clock, Some(user), Some(page));
                }
                gate.forget(Value::Integer(1));
            }
            Loaded::Ids(mut ids) => {
                assert!(ids.len() <= body.len());
                for number in 0..20 {
                    ids.is_fresh(number, Some(Value::Integer(number % 9)));
                }
            }
        }
    }
});
