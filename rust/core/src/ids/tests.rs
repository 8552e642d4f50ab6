use super::*;
use proptest::prelude::*;
use std::collections::HashMap;

fn ids(window: i64, most: usize) -> EventIds {
    EventIds::new(Secret::new([3; 32]), window, most, None).unwrap()
}

fn text(id: &str) -> Option<Value<'_>> {
    Some(Value::Text(id.as_bytes()))
}

#[test]
fn an_id_is_remembered_for_a_window_of_the_stream() {
    let mut ids = ids(10, 100);
    assert!(ids.is_fresh(0, text("a")));
    assert!(!ids.is_fresh(10, text("a")));
    // The window is closed, and a repeat does not begin it anew.
    assert!(ids.is_fresh(11, text("a")));
    // A late event is remembered from when it came.
    assert!(ids.is_fresh(0, text("b")));
    assert!(!ids.is_fresh(21, text("b")));
    assert!(ids.is_fresh(22, text("b")));
    assert_eq!((ids.repeated(), ids.forgotten(), ids.len()), (2, 0, 1));
}

#[test]
fn one_id_may_come_in_several_types() {
    let mut ids = ids(10, 100);
    assert!(ids.is_fresh(0, Some(Value::Integer(7))));
    for same in [Value::Text(b"7"), Value::Bytes(b"7"), Value::Float(7.0), Value::Unsigned(7)] {
        assert!(!ids.is_fresh(0, Some(same)), "{same:?}");
    }
    for other in [Value::Text(b"07"), Value::Float(7.5), Value::Bool(true), Value::Text(b"")] {
        assert!(ids.is_fresh(0, Some(other)), "{other:?}");
        assert!(!ids.is_fresh(0, Some(other)), "{other:?}");
    }
    for none in [None, Some(Value::Float(f64::NAN)), None] {
        assert!(ids.is_fresh(0, none));
    }
}

#[test]
fn a_time_that_is_none_or_from_the_future_moves_no_clock() {
    let mut ids = EventIds::new(Secret::new([3; 32]), 10, 100, Some(0)).unwrap();
    assert!(ids.is_fresh(0, text("a")));
    assert!(ids.is_fresh(i64::MAX, text("b")));
    assert!(ids.is_fresh(i64::MIN, text("c")));
    for id in ["a", "b", "c"] {
        assert!(!ids.is_fresh(5, text(id)));
    }
}

#[test]
fn settings_are_looked_at() {
    for (window, most, future) in [(-1, 1, None), (0, 0, None), (0, 1, Some(-1))] {
        assert!(EventIds::new(Secret::new([3; 32]), window, most, future).is_err());
    }
}

#[test]
fn memory_stays_flat() {
    let mut ids = ids(1_000, 5_000);
    let mut largest = 0;
    for event in 0..200_000_i64 {
        // Bursts, in which the limit is reached, and quiet times.
        let time = event / 20 + event / 50_000 * 10_000;
        assert!(ids.is_fresh(time, Some(Value::Integer(event))));
        largest = largest.max(ids.bytes());
        assert!(ids.len() <= 5_000);
    }
    assert!(largest < 5_000 * 48 * 2, "{largest}");
    assert!(ids.forgotten() > 100_000);
    assert!(ids.is_fresh(1 << 40, text("alone")));
    assert!(ids.bytes() < 40_000, "{}", ids.bytes());
}

proptest! {
    #[test]
    fn equals_the_plain_way_and_comes_back_whole(
        events in prop::collection::vec((0_i64..40, 0_i64..30), 1..1500),
        window in 0_i64..60,
        most in 1_usize..40,
        cut in any::<prop::sample::Index>(),
    ) {
        let mut tested = ids(window, most);
        let mut clock = i64::MIN;
        // The clock at which each id came, and the order.
        let mut held: Vec<(i64, i64)> = Vec::new();
        let mut forgotten = 0;
        let cut = cut.index(events.len());
        for (number, (time, id)) in events.into_iter().enumerate() {
            if number == cut {
                let mut out = Vec::new();
                tested.write(&mut out).unwrap();
                let mut body = &out[..];
                tested = EventIds::read(&mut body).unwrap();
                body.end().unwrap();
            }
            let time = time + number as i64 / 4;
            clock = clock.max(time);
            held.retain(|(_, came)| *came >= clock.saturating_sub(window));
            let fresh = held.iter().all(|(other, _)| *other != id);
            if fresh {
                if held.len() == most {
                    held.remove(0);
                    forgotten += 1;
                }
                held.push((id, clock));
            }
            prop_assert_eq!(tested.is_fresh(time, Some(Value::Integer(id))), fresh);
            prop_assert_eq!((tested.len(), tested.forgotten()), (held.len(), forgotten));
        }
    }

    #[test]
    fn the_set_is_one(steps in prop::collection::vec((any::<bool>(), 0_u64..400), 1..2000)) {
        let mut known = Known::new(1024);
        let mut map = HashMap::new();
        for (is_in, seed) in steps {
            // Many share a home, some near the end, where a run goes on at the beginning.
            let hash = (seed % 40).wrapping_mul(u64::MAX / 39) & !0xFFFF | (seed + 1);
            if is_in {
                known.insert(hash);
                map.insert(hash, ());
            } else {
                known.remove(hash);
                map.remove(&hash);
            }
            prop_assert_eq!(known.has(hash), map.contains_key(&hash));
        }
        prop_assert_eq!(known.count(), map.len());
        prop_assert!(map.keys().all(|hash| known.has(*hash)));
    }
}
