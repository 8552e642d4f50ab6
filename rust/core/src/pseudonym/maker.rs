//! Pseudonyms of users under one key.

use super::address::{Addresses, address};
use super::code::Coder;
use super::spelling::{Pseudonym, PseudonymFormat};
use crate::column::Value;
use crate::secret::Secret;
use std::net::IpAddr;
use zeroize::Zeroizing;

/// Makes pseudonyms under one key, which is gone when this is.
pub struct Maker {
    coder: Coder,
    addresses: Option<Addresses>,
    format: PseudonymFormat,
}

impl Maker {
    pub fn new(secret: &Secret, format: PseudonymFormat) -> Self {
        let coder = Coder::new(&Zeroizing::new(secret.derive("pseudonyms")));
        let addresses = (format == PseudonymFormat::CryptoPan)
            .then(|| Addresses::new(&Zeroizing::new(secret.derive("addresses"))));
        Self { coder, addresses, format }
    }

    /// The pseudonym of a user; `None` where the value cannot be one. The same person has the same
    /// one however the id was written: 7, "7" and 7.0 are one.
    pub fn of(&self, user: Value<'_>) -> Option<Pseudonym> {
        let mut made = Vec::new();
        self.of_all(std::iter::once(Some(user)), &mut made);
        made.pop().flatten()
    }

    /// Appends the pseudonyms of many users, in their order.
    pub fn of_all<'a>(
        &self,
        users: impl Iterator<Item = Option<Value<'a>>>,
        out: &mut Vec<Option<Pseudonym>>,
    ) {
        let Some(addresses) = &self.addresses else {
            return match self.format {
                PseudonymFormat::Base32 | PseudonymFormat::CryptoPan => {
                    self.coder.of_all(users, |code| out.push(code.map(Pseudonym::Base32)));
                }
                PseudonymFormat::Hex => {
                    self.coder.of_all(users, |code| out.push(code.map(Pseudonym::Hex)));
                }
                PseudonymFormat::Uuid => {
                    self.coder.of_all(users, |code| out.push(code.map(Pseudonym::Uuid)));
                }
            };
        };
        for user in users {
            let found = match user {
                Some(Value::Text(text) | Value::Bytes(text)) => address(text),
                _ => None,
            };
            match found {
                Some(IpAddr::V4(raw)) => out.push(Some(Pseudonym::V4(addresses.v4(raw.to_bits())))),
                Some(IpAddr::V6(raw)) => out.push(Some(Pseudonym::V6(addresses.v6(raw.to_bits())))),
                // It must not leave as it is; that it is no address shows.
                None => self.coder.of_all(std::iter::once(user), |code| {
                    out.push(code.map(Pseudonym::Base32));
                }),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(value: Value) -> Option<Pseudonym> {
        Maker::new(&Secret::new([7; 32]), PseudonymFormat::Base32).of(value)
    }

    #[test]
    fn one_person_has_one() {
        let seven = of(Value::Text(b"7")).unwrap();
        assert_eq!(of(Value::Integer(7)).unwrap(), seven);
        assert_eq!(of(Value::Float(7.0)).unwrap(), seven);
        assert_ne!(of(Value::Text(b"07")).unwrap(), seven);
        assert_ne!(of(Value::Text(b"")).unwrap(), of(Value::Text(b"\0")).unwrap());
        assert_eq!(of(Value::Bool(true)), None);
        assert_eq!(of(Value::Unsigned(u64::MAX)), of(Value::Text(b"18446744073709551615")));
    }

    #[test]
    fn another_key_gives_another() {
        let other = Maker::new(&Secret::new([8; 32]), PseudonymFormat::Base32);
        assert_ne!(other.of(Value::Text(b"7")), of(Value::Integer(7)));
    }

    #[test]
    fn the_letters_of_a_key_stay_what_they_were() {
        let mut out = Vec::new();
        of(Value::Text(b"ada")).unwrap().put(&mut out);
        assert_eq!(String::from_utf8(out).unwrap(), "bzxv5xxh56hg7fk2ps2t");
    }

    #[test]
    fn what_is_no_address_leaves_as_letters() {
        let maker = Maker::new(&Secret::new([7; 32]), PseudonymFormat::CryptoPan);
        assert!(matches!(maker.of(Value::Text(b"10.0.0.1")), Some(Pseudonym::V4(_))));
        assert!(matches!(maker.of(Value::Bytes(b"2001:db8::1")), Some(Pseudonym::V6(_))));
        assert_eq!(maker.of(Value::Text(b"ada")), of(Value::Text(b"ada")));
        assert_eq!(maker.of(Value::Integer(7)), of(Value::Integer(7)));
        assert_eq!(maker.of(Value::Float(0.5)), None);
    }
}
