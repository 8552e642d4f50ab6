use super::*;
use crate::slot::Held;
use proptest::prelude::*;
use std::collections::HashMap;

fn key(seed: u64) -> Key {
    let mixed = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    // Some keys crowd at the very end of the table, in one long run that enters the slack.
    let hash = if seed.is_multiple_of(50) { !(mixed >> 8) } else { mixed };
    Key { hash, check: (seed as u32 & 0xFFFF) << 2 }
}

proptest! {
    #[test]
    fn behaves_as_a_map(
        steps in proptest::collection::vec((0_u64..3000, 0_u8..8), 1..6000),
    ) {
        let mut budget = Budget::new(None);
        let Some(mut table) = Table::new(&mut budget) else { return Ok(()) };
        let mut map: HashMap<u64, i64> = HashMap::new();
        for (n, (seed, action)) in steps.into_iter().enumerate() {
            let key = key(seed);
            match action {
                0 => {
                    table.migrate(100, &mut budget);
                    let user = |slot: &Slot| match slot.held() {
                        Held::Single(entry) => entry.user,
                        _ => 0,
                    };
                    table.sweep(
                        100,
                        &mut budget,
                        |slot| user(slot).is_multiple_of(5),
                        |slot, _| assert!(map.remove(&user(slot)).is_some()),
                    );
                }
                1 if n % 50 == 0 => table.retain(|slot| {
                    let Held::Single(entry) = slot.held() else { return false };
                    !entry.user.is_multiple_of(7) || map.remove(&entry.user).is_none()
                }),
                _ => match table.find(key) {
                    Found::Taken(place) => {
                        let Held::Single(entry) = table.slot(place).held() else {
                            return Err(TestCaseError::fail("a single"));
                        };
                        prop_assert_eq!(map.get(&seed).copied(), Some(entry.time));
                    }
                    _ => {
                        prop_assert!(!map.contains_key(&seed));
                        let room = table.make_room(&mut budget);
                        prop_assert!(room.made && room.lost == 0);
                        if let Found::Free(place) = table.find(key) {
                            table.insert(place, key, 0, Entry { user: seed, time: n as i64 });
                            map.insert(seed, n as i64);
                        }
                    }
                },
            }
            prop_assert_eq!(table.live(), map.len());
        }
        prop_assert_eq!(table.iter().count(), map.len());
    }
}

#[test]
fn shrinks_when_sparse_and_gives_memory_back() {
    let mut budget = Budget::new(None);
    let Some(mut table) = Table::new(&mut budget) else { return };
    let small = budget.used();
    for seed in 0..100_000 {
        assert!(table.make_room(&mut budget).made);
        if let Found::Free(place) = table.find(key(seed)) {
            table.insert(place, key(seed), 0, Entry { user: seed, time: 0 });
        }
    }
    assert!(budget.used() > 50 * small);
    for _ in 0..100 {
        table.migrate(1_000_000, &mut budget);
        table.sweep(100_000, &mut budget, |_| true, |_, _| {});
    }
    assert_eq!((table.live(), budget.used()), (0, small));
}
