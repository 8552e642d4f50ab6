use super::*;
use crate::settings::Settings;

fn gate(z: usize, window: i64) -> Gate {
    let settings = Settings { max_future: None, ..Settings::new(z, window) };
    Gate::new(settings, Secret::new([7; 32])).unwrap()
}

fn run(swap: &mut Swap, gate: &mut Gate, rows: &[(i64, i64, i64)]) -> Vec<(usize, Owned)> {
    let times: Vec<_> = rows.iter().map(|row| row.0).collect();
    let users: Vec<_> = rows.iter().map(|row| row.1).collect();
    let values: Vec<_> = rows.iter().map(|row| row.2).collect();
    let (users, values): (&dyn Column, &dyn Column) = (&&users[..], &&values[..]);
    let levels = [values];
    let observations = Observations { times: &times, users, levels: &levels, is_plain: true };
    let mut decisions = vec![VEILED; rows.len()];
    let mut swapped = Vec::new();
    swap.observe_many(gate, observations, &mut decisions, &mut swapped).unwrap();
    swapped
}

impl Column for &[i64] {
    fn len(&self) -> usize {
        <[i64]>::len(self)
    }

    fn value(&self, row: usize) -> Option<Value<'_>> {
        self.get(row).copied().map(Value::Integer)
    }
}

#[test]
fn only_a_share_below_one_is_taken() {
    let secret = Secret::new([7; 32]);
    assert!([0.0, 0.05, 0.999].iter().all(|share| Swap::new(*share, &secret).is_ok()));
    assert!([-0.1, 1.0, f64::NAN].iter().all(|share| Swap::new(*share, &secret).is_err()));
}

#[test]
fn the_share_of_swaps_is_the_one_asked_for() {
    let (mut gate, secret) = (gate(1, 1_000_000), Secret::new([7; 32]));
    let rows: Vec<_> = (0..50_000).map(|row| (row, row % 997, row % 13)).collect();
    for (share, within) in [(0.0, 0..1), (0.05, 2_300..2_700), (0.5, 24_500..25_500)] {
        let mut swap = Swap::new(share, &secret).unwrap();
        let swapped = run(&mut swap, &mut gate, &rows);
        assert!(within.contains(&swapped.len()), "{share}: {}", swapped.len());
        assert_eq!(swap.swapped(), swapped.len() as u64);
        let other = |(row, value): &(usize, Owned)| *value != Owned::Integer(rows[*row].2);
        assert!(swapped.iter().all(other));
    }
}

#[test]
fn every_place_is_gone_through_once() {
    for (start, step) in [(0, 1), (63, 63), (17, 5)] {
        let mut places: Vec<_> = Draw { swaps: true, start, step, place: 0 }.places().collect();
        assert_eq!(places[0], start);
        places.sort_unstable();
        assert!(places.into_iter().eq(0..PLACES));
    }
}

#[test]
fn a_value_that_passes_no_more_is_not_drawn() {
    let (mut gate, secret) = (gate(2, 10), Secret::new([7; 32]));
    let mut swap = Swap::new(0.99, &secret).unwrap();
    let before: Vec<_> = (0..40).map(|row| (0, row % 4, row / 4)).collect();
    assert!(!run(&mut swap, &mut gate, &before).is_empty());
    assert!(gate.passes(10, Some(Value::Integer(3))));
    assert!(!gate.passes(11, Some(Value::Integer(3))));
    // A window later nothing but the value itself has two users.
    let after: Vec<_> = (0..40).map(|row| (11 + row, row, 100)).collect();
    assert!(run(&mut swap, &mut gate, &after).is_empty());
}

#[test]
fn few_and_short_values_are_held() {
    let (mut gate, secret) = (gate(1, 10), Secret::new([7; 32]));
    let mut swap = Swap::new(0.5, &secret).unwrap();
    let rows: Vec<_> = (0..1_000).map(|row| (row, row, row)).collect();
    run(&mut swap, &mut gate, &rows);
    assert_eq!(swap.reservoir.len(), PLACES);
    assert_eq!(Owned::of(Value::Text(&[b'a'; LONGEST + 1])), None);
    assert!(Owned::of(Value::Text(&[b'a'; LONGEST])).is_some());
    assert_eq!(Owned::of(Value::Prepared(1)), None);
}

#[test]
fn each_type_has_one_spelling() {
    let spelled = |value| {
        let mut out = Vec::new();
        Owned::of(value).unwrap().spell(&mut out);
        String::from_utf8(out).unwrap()
    };
    assert_eq!(spelled(Value::Integer(-7)), "-7");
    assert_eq!(spelled(Value::Unsigned(u64::MAX)), "18446744073709551615");
    assert_eq!(spelled(Value::Float(-0.0)), "0.0");
    assert_eq!(spelled(Value::Float(1e300)), "1e300");
    assert_eq!(spelled(Value::Bool(true)), "true");
    assert_eq!(spelled(Value::Digits(b"123456789012345678901")), "123456789012345678901");
    assert_eq!(spelled(Value::Text("é".as_bytes())), "é");
}
