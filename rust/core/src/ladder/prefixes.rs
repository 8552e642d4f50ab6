//! Networks that an address lies in: `192.0.2.7` → `192.0.2.0/24` → `192.0.0.0/16`.

use super::Labels;
use crate::error::Error;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Prefixes of IPv4 and IPv6 addresses. An IPv4 address that is written as an IPv6 one counts as IPv4.
#[derive(Debug)]
pub struct Prefixes {
    /// Bits, finest first.
    v4: Vec<u8>,
    v6: Vec<u8>,
}

impl Prefixes {
    /// Where one of the two is empty, addresses of that kind have no labels.
    pub fn new(v4: Vec<u8>, v6: Vec<u8>) -> Result<Self, Error> {
        let is_falling = |bits: &[u8]| bits.windows(2).all(|pair| pair[0] > pair[1]);
        let fits = |bits: &[u8], most: u8| bits.iter().all(|bits| *bits <= most);
        let as_many = v4.is_empty() || v6.is_empty() || v4.len() == v6.len();
        let any = !v4.is_empty() || !v6.is_empty();
        if !(any
            && as_many
            && is_falling(&v4)
            && is_falling(&v6)
            && fits(&v4, 32)
            && fits(&v6, 128))
        {
            return Err(Error::Setting {
                parameter: "prefix",
                rule: "expected bits, most first, up to 32, and as many of prefix6 up to 128"
                    .to_owned(),
                got: format!("{v4:?} and {v6:?}"),
            });
        }
        Ok(Self { v4, v6 })
    }

    pub(super) fn levels(&self) -> usize {
        self.v4.len().max(self.v6.len())
    }

    pub(super) fn climb(&self, address: &[u8], labels: &mut Labels) {
        match read(address) {
            Some(IpAddr::V4(address)) if !self.v4.is_empty() => {
                for bits in &self.v4 {
                    let mask = u32::MAX.checked_shl(32 - u32::from(*bits)).unwrap_or(0);
                    let network = Ipv4Addr::from_bits(address.to_bits() & mask);
                    // Writing to memory does not fail.
                    labels.write(|text| _ = write!(text, "{network}/{bits}"));
                }
            }
            Some(IpAddr::V6(address)) if !self.v6.is_empty() => {
                for bits in &self.v6 {
                    let mask = u128::MAX.checked_shl(128 - u32::from(*bits)).unwrap_or(0);
                    let network = Ipv6Addr::from_bits(address.to_bits() & mask);
                    labels.write(|text| _ = write!(text, "{network}/{bits}"));
                }
            }
            _ => labels.miss(self.levels()),
        }
    }
}

/// An address, without the name of an interface behind it.
fn read(text: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(text).ok()?;
    let address = text.split_once('%').map_or(text, |(address, _)| address);
    address.parse::<IpAddr>().ok().map(|address| address.to_canonical())
}
