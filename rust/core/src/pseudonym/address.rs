//! Addresses for addresses: Crypto-PAn, which keeps what two of them have in common.
//!
//! Bit i of the pseudonym is bit i of the address, turned over or not by a keyed function of the
//! bits before it. So two addresses with the same first n bits have pseudonyms with the same first
//! n bits, and no more. The scheme is that of Xu, Fan, Ammar and Moon (2002), with AES-128.

use super::code::encrypt;
use aes::Aes128;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use std::net::IpAddr;
use zeroize::{Zeroize, Zeroizing};

/// The longest text of an address: six groups of four digits and a dotted part.
const LONGEST: usize = 45;

/// Makes addresses under one key.
pub(super) struct Addresses {
    cipher: Aes128,
    /// What stands behind the bits of an address that are looked at.
    pad: u128,
}

impl Drop for Addresses {
    fn drop(&mut self) {
        self.pad.zeroize();
    }
}

impl Addresses {
    pub(super) fn new(key: &Zeroizing<[u8; 32]>) -> Self {
        let (key, pad) = key.split_at(16);
        let mut halves = [[0; 16]; 2];
        halves[0].copy_from_slice(key);
        halves[1].copy_from_slice(pad);
        let cipher = Aes128::new(&halves[0].into());
        let pad = encrypt(&cipher, u128::from_be_bytes(halves[1]));
        halves.zeroize();
        Self { cipher, pad }
    }

    pub(super) fn v4(&self, address: u32) -> u32 {
        let turned: u128 = self.turned::<32>(u128::from(address) << 96);
        address ^ turned as u32
    }

    pub(super) fn v6(&self, address: u128) -> u128 {
        address ^ self.turned::<128>(address)
    }

    /// Which of the first N bits are turned over, in the lowest N. The address stands at the top.
    fn turned<const N: usize>(&self, address: u128) -> u128 {
        let mut blocks = [aes::Block::default(); N];
        let mut seen: u128 = 0;
        for block in &mut blocks {
            *block = (address & seen | self.pad & !seen).to_be_bytes().into();
            seen = seen >> 1 | 1 << 127;
        }
        self.cipher.encrypt_blocks(&mut blocks);
        blocks.iter().fold(0, |bits, block| bits << 1 | u128::from(block[0] >> 7))
    }
}

/// An address as people and programs write it; `None` for any other text.
pub(super) fn address(text: &[u8]) -> Option<IpAddr> {
    if text.len() > LONGEST {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Of the original program's sample.
    const SAMPLE: [u8; 32] = [
        21, 34, 23, 141, 51, 164, 207, 128, 19, 10, 91, 22, 73, 144, 125, 16, 216, 152, 143, 131,
        121, 121, 101, 39, 98, 87, 76, 45, 42, 132, 34, 2,
    ];
    const OTHER: [u8; 32] = [
        0x80, 0x09, 0xAB, 0x3A, 0x60, 0x54, 0x35, 0xBE, 0xA0, 0xC3, 0x85, 0xBE, 0xA1, 0x84, 0x85,
        0xD8, 0xB0, 0xA1, 0x10, 0x3D, 0x65, 0x90, 0xBD, 0xF4, 0x8C, 0x96, 0x8B, 0xE5, 0xDE, 0x53,
        0x83, 0x6E,
    ];

    fn check(key: [u8; 32], pairs: &str) {
        let addresses = Addresses::new(&key.into());
        for pair in pairs.split_whitespace() {
            let (raw, wanted) = pair.split_once('>').unwrap();
            let made = match raw.parse().unwrap() {
                IpAddr::V4(raw) => IpAddr::V4(addresses.v4(raw.to_bits()).into()),
                IpAddr::V6(raw) => IpAddr::V6(addresses.v6(raw.to_bits()).into()),
            };
            assert_eq!(made, wanted.parse::<IpAddr>().unwrap(), "{raw}");
        }
    }

    #[test]
    fn the_sample_trace_of_the_original_program() {
        check(
            SAMPLE,
            "128.11.68.132>135.242.180.132 129.118.74.4>134.136.186.123
            130.132.252.244>133.68.164.234 141.223.7.43>141.167.8.160
            141.233.145.108>141.129.237.235 152.163.225.39>151.140.114.167
            156.29.3.236>147.225.12.42 165.247.96.84>162.9.99.234
            166.107.77.190>160.132.178.185 192.102.249.13>252.138.62.131
            192.215.32.125>252.43.47.189 192.233.80.103>252.25.108.8
            192.41.57.43>252.222.221.184 193.150.244.223>253.169.52.216
            195.205.63.100>255.186.223.5 198.200.171.101>249.199.68.213
            198.26.132.101>249.36.123.202 198.36.213.5>249.7.21.132
            198.51.77.238>249.18.186.254 199.217.79.101>248.38.184.213
            202.49.198.20>245.206.7.234 203.12.160.252>244.248.163.4
            204.184.162.189>243.192.77.90 204.202.136.230>243.178.4.198
            204.29.20.4>243.33.20.123 205.178.38.67>242.108.198.51
            205.188.147.153>242.96.16.101 205.188.248.25>242.96.88.27
            205.245.121.43>242.21.121.163 207.105.49.5>241.118.205.138
            207.135.65.238>241.202.129.222 207.155.9.214>241.220.250.22
            207.188.7.45>241.255.249.220 207.25.71.27>241.33.119.156
            207.33.151.131>241.1.233.131 208.147.89.59>227.237.98.191
            208.234.120.210>227.154.67.17 208.28.185.184>227.39.94.90
            208.52.56.122>227.8.63.165 209.12.231.7>226.243.167.8
            209.238.72.3>226.6.119.243 209.246.74.109>226.22.124.76
            209.68.60.238>226.184.220.233 209.85.249.6>226.170.70.6
            212.120.124.31>228.135.163.231 212.146.8.236>228.19.4.234
            212.186.227.154>228.59.98.98 212.204.172.118>228.71.195.169
            212.206.130.201>228.69.242.193 216.148.237.145>235.84.194.111
            216.157.30.252>235.89.31.26 216.184.159.48>235.96.225.78
            216.227.10.221>235.28.253.36 216.254.18.172>235.7.16.162
            216.32.132.250>235.192.139.38 216.35.217.178>235.195.157.81
            24.0.250.221>100.15.198.226 24.13.62.231>100.2.192.247
            24.14.213.138>100.1.42.141 24.5.0.80>100.9.15.210
            24.7.198.88>100.10.6.25 24.94.26.44>100.88.228.35
            38.15.67.68>64.3.66.187 4.3.88.225>124.60.155.63
            63.14.55.111>95.9.215.7 63.195.241.44>95.179.238.44
            63.97.7.140>95.97.9.123 64.14.118.196>0.255.183.58
            64.34.154.117>0.221.154.117 64.39.15.238>0.219.7.41",
        );
    }

    #[test]
    fn other_programs_give_the_same() {
        check(
            SAMPLE,
            "127.0.0.1>33.0.243.129 0.0.0.0>120.255.240.1 10.0.1.128>117.15.1.129
            169.254.100.50>169.251.68.45 255.255.255.255>206.120.97.255
            ::1>78ff:f001:9fc0:20df:8380:b1f1:704:ed
            ::2>78ff:f001:9fc0:20df:8380:b1f1:704:ef
            ::ffff>78ff:f001:9fc0:20df:8380:b1f1:704:f838
            2001:db8::1>4401:2bc:603f:d91d:27f:ff8e:e6f1:dc1e
            2001:db8::2>4401:2bc:603f:d91d:27f:ff8e:e6f1:dc1c",
        );
        check(
            OTHER,
            "123.123.123.123>117.8.135.123 131.159.1.42>162.112.255.43 8.8.8.8>55.21.62.136
            2a02:db8:85a3::8a2e:370:7344>1482:f447:75b3:f1f9:fbdf:622e:34f:ff7b
            2a02:db8:85a3:8d3:1319:8a2e:370:7344>1482:f447:75b3:f904:c1d9:ba2e:489:1346
            2001:b8:a3::2e:70:44>1f18:b37b:1cc3:8118:41f:9fd1:f875:fab8
            fc00::>f33c:8ca3:ef0f:e019:e7ff:f1e3:f91f:f800",
        );
        check(
            std::array::from_fn(|place| place as u8),
            "192.0.2.1>2.90.93.17 148.88.132.153>106.38.130.153 148.88.132.64>106.38.130.64
            148.88.133.200>106.38.131.223
            2001:db8::1>dd92:2c44:3fc0:ff1e:7ff9:c7f0:8180:7e00",
        );
    }

    proptest! {
        #[test]
        fn a_common_prefix_stays_as_long(
            key: [u8; 32], one: u128, other: u128, same in 0_u32..=128
        ) {
            let addresses = Addresses::new(&key.into());
            let kept = u128::MAX.checked_shr(same).unwrap_or(0);
            let other = one & !kept | other & kept;
            let shared = (one ^ other).leading_zeros();
            prop_assert_eq!((addresses.v6(one) ^ addresses.v6(other)).leading_zeros(), shared);
            let (one, other) = ((one >> 96) as u32, (other >> 96) as u32);
            let shared = (one ^ other).leading_zeros();
            prop_assert_eq!((addresses.v4(one) ^ addresses.v4(other)).leading_zeros(), shared);
        }

        #[test]
        fn any_text_is_an_address_or_not(text: Vec<u8>) {
            let _ = address(&text);
        }
    }

    #[test]
    fn what_is_an_address() {
        for text in ["10.0.0.1", "::", "2001:DB8::1", "::ffff:10.0.0.1"] {
            assert!(address(text.as_bytes()).is_some(), "{text}");
        }
        for text in ["", "10.0.0", "10.0.0.256", "010.0.0.1", " 10.0.0.1", "fe80::1%eth0", "7"] {
            assert!(address(text.as_bytes()).is_none(), "{text}");
        }
    }
}
