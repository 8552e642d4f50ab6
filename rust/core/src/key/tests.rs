use super::*;
use std::collections::HashSet;

fn hasher() -> Hasher {
    Hasher::new(&Secret::new([7; 32]))
}

#[test]
fn the_portable_way_gives_the_same_bits() {
    let fast = hasher();
    let mut slow = hasher();
    slow.means = Means::Portable;
    let text: Vec<u8> = (0..100).collect();
    for n in 0..text.len() {
        for role in [Role::Attribute, Role::User] {
            let (a, b) = (Value::Text(&text[..n]), Value::Integer(n as i64 - 50));
            assert_eq!(fast.block(a, role), slow.block(a, role));
            assert_eq!(fast.block(b, role), slow.block(b, role));
            assert_eq!(fast.attribute(&a), slow.attribute(&a));
            assert_eq!(fast.user_under(&b, 7 << 64), slow.user_under(&b, 7 << 64));
            let block = fast.block(a, role).unwrap_or_default();
            assert_eq!(fast.user(block, 9), slow.user(block, 9));
        }
    }
}

#[test]
fn rows_are_hashed_as_each_by_itself_whatever_the_machine_has() {
    let users: Vec<i64> = (0..ROWS as i64).map(|n| n.pow(5) - 7).collect();
    let attributes: Vec<i64> = (0..ROWS as i64).map(|n| i64::MAX / (n + 1)).collect();
    let mut known = Vec::new();
    #[cfg(target_arch = "x86_64")]
    if Means::of_machine() != Means::Portable {
        known.push(Means::Hardware);
    }
    known.extend([Means::Portable, Means::of_machine()]);
    for means in known {
        let mut hasher = hasher();
        hasher.means = means;
        for count in [0, 1, 15, 16, 17, 31, 48, ROWS] {
            let (users, attributes) = (&users[..count], &attributes[..count]);
            let each: Vec<(u128, u64)> = users
                .iter()
                .zip(attributes)
                .map(|(user, attribute)| {
                    let user = Value::Integer(*user);
                    let hash = hasher.attribute(&Value::Integer(*attribute)).unwrap_or_default();
                    let entry = hasher.user_under(&user, hash).unwrap_or_default();
                    let block = hasher.block(user, Role::User).unwrap_or_default();
                    assert_eq!(entry, hasher.user(block, (hash >> 64) as u64));
                    (hash, entry)
                })
                .collect();
            let found = |hashed: &Hashed, count: usize| -> Vec<(u128, u64)> {
                let rows = hashed.attributes.iter().zip(&hashed.users).take(count);
                rows.map(|(hash, user)| (*hash, *user as u64)).collect()
            };
            let mut hashed = Hashed::default();
            hasher.words(users, attributes, &mut hashed);
            assert_eq!(found(&hashed, count), each);

            let is_wanted = |hash: u128| hash.is_multiple_of(3);
            let kept = hasher.wanted_words(users, attributes, is_wanted, &mut hashed);
            let wanted: Vec<usize> = (0..count).filter(|row| is_wanted(each[*row].0)).collect();
            let places = hashed.places[..kept].iter().map(|place| *place as usize);
            assert_eq!(places.collect::<Vec<_>>(), wanted);
            let wanted: Vec<_> = wanted.into_iter().map(|row| each[row]).collect();
            assert_eq!(found(&hashed, kept), wanted);

            let mut blocks: Vec<u128> = attributes.iter().map(|n| Hasher::integer(*n)).collect();
            hasher.attributes(&mut blocks, None);
            assert!(blocks.iter().eq(each.iter().map(|(hash, _)| hash)));
            let who: Vec<u128> = users.iter().map(|n| Hasher::integer(*n)).collect();
            let mut entries = vec![0; count];
            hasher.users(&who, &blocks, &mut entries);
            assert!(entries.iter().eq(each.iter().map(|(_, entry)| entry)));
        }
    }
}

#[test]
fn kinds_lengths_and_levels_are_told_apart() {
    let hasher = hasher();
    let mut seen = HashSet::new();
    let zeros = [0u8; 40];
    for n in 0..=40 {
        for value in [Value::Text(&zeros[..n]), Value::Bytes(&zeros[..n])] {
            assert!(seen.insert(hasher.block(value, Role::Attribute)));
        }
    }
    for value in [
        Value::Integer(1),
        Value::Text(b"1"),
        Value::Bytes(b"1"),
        Value::Float(1.0),
        Value::Bool(true),
        Value::Unsigned(u64::MAX),
        Value::Integer(-1),
        Value::Digits(b"1"),
    ] {
        let block = hasher.block(value, Role::Attribute).unwrap_or_default();
        assert!(seen.insert(Some(block)));
        let (mut level, mut plain) = ([block], [block]);
        hasher.attributes(&mut level, Some(&[ABOVE_LEVELS]));
        hasher.attributes(&mut plain, None);
        assert_ne!(level, plain);
    }
}

#[test]
fn one_user_has_one_form() {
    let hasher = hasher();
    let form = |value: Value<'_>| hasher.block(value, Role::User);
    let seven = form(Value::Integer(7));
    assert!(seven.is_some());
    for same in [Value::Text(b"7"), Value::Bytes(b"7"), Value::Unsigned(7), Value::Float(7.0)] {
        assert_eq!(form(same), seven);
    }
    for other in [Value::Text(b"07"), Value::Text(b"+7"), Value::Text(b"7 ")] {
        assert_ne!(form(other), seven);
    }
    assert_eq!(form(Value::Text(b"-0")), form(Value::Bytes(b"-0")));
    assert_ne!(form(Value::Text(b"-0")), form(Value::Integer(0)));
    for none in [Value::Float(7.5), Value::Float(f64::NAN), Value::Bool(true)] {
        assert_eq!(form(none), None);
    }
    let limits = [i64::MIN, i64::MAX, 0, -1];
    for limit in limits {
        let text = limit.to_string();
        assert_eq!(form(Value::Text(text.as_bytes())), form(Value::Integer(limit)));
    }
    let text = u64::MAX.to_string();
    assert_eq!(form(Value::Text(text.as_bytes())), form(Value::Unsigned(u64::MAX)));
}

#[test]
fn entries_of_one_user_differ_between_attributes() {
    let hasher = hasher();
    let user = hasher.block(Value::Integer(1), Role::User).unwrap_or_default();
    let entries: HashSet<u64> = (0..1000).map(|high| hasher.user(user, high)).collect();
    assert_eq!(entries.len(), 1000);
}
