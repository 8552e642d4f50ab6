//! Numbers in few bits, as pages of Parquet have them: runs, and groups of eight packed ones.

/// A run is worth its header from here on.
const LEAST_RUN: usize = 16;

/// Bits that numbers below `count` need; one at least, since not all readers take none.
pub(super) fn bits_for(count: usize) -> u8 {
    (usize::BITS - count.saturating_sub(1).leading_zeros()).max(1) as u8
}

/// Writes numbers of so many bits, each below 2^bits.
pub(super) fn put_numbers(numbers: &[u32], bits: u8, out: &mut Vec<u8>) {
    let mut from = 0;
    let mut at = 0;
    while at < numbers.len() {
        let first = numbers[at];
        let run = if numbers.get(at + 1) == Some(&first) {
            numbers[at..].iter().take_while(|number| **number == first).count()
        } else {
            1
        };
        if run >= LEAST_RUN {
            put_packed(&numbers[from..at], bits, out);
            put_run(run, first, bits, out);
            at += run;
            from = at;
        } else {
            // Always whole groups: only the last one of all is filled up.
            at = numbers.len().min(at + 8);
        }
    }
    put_packed(&numbers[from..], bits, out);
}

fn put_run(length: usize, number: u32, bits: u8, out: &mut Vec<u8>) {
    put_varint((length as u64) << 1, out);
    out.extend_from_slice(&number.to_le_bytes()[..usize::from(bits).div_ceil(8)]);
}

fn put_packed(numbers: &[u32], bits: u8, out: &mut Vec<u8>) {
    if numbers.is_empty() {
        return;
    }
    let groups = numbers.len().div_ceil(8);
    put_varint((groups as u64) << 1 | 1, out);
    let end = out.len() + groups * usize::from(bits);
    out.reserve(groups * usize::from(bits) + 8);
    let (mut held, mut count) = (0_u64, 0_u32);
    for number in numbers {
        held |= u64::from(*number) << count;
        count += u32::from(bits);
        if count >= 32 {
            out.extend_from_slice(&(held as u32).to_le_bytes());
            held >>= 32;
            count -= 32;
        }
    }
    out.extend_from_slice(&held.to_le_bytes());
    out.resize(end, 0);
}

/// Writes which of so many rows have a value, with its length before it: all, or by a bitmap.
pub(super) fn put_levels(rows: usize, bitmap: Option<&[u8]>, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    match bitmap {
        Some(bitmap) => {
            put_varint((rows.div_ceil(8) as u64) << 1 | 1, out);
            out.extend_from_slice(&bitmap[..rows.div_ceil(8)]);
        }
        None => put_run(rows, 1, 1, out),
    }
    let length = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

fn put_varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Bytes as snappy has them that were not packed: its one header and a literal. A column chunk is packed
/// as a whole or not at all, and this is for pages of one that would not get smaller.
pub(super) fn unpacked(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() + 16);
    put_varint(bytes.len() as u64, &mut out);
    if let Some(last) = bytes.len().checked_sub(1) {
        // A literal whose length is told by the four bytes behind.
        out.push(63 << 2);
        out.extend_from_slice(&(last as u32).to_le_bytes());
        out.extend_from_slice(bytes);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn varint(bytes: &mut &[u8]) -> u64 {
        let (mut number, mut shift) = (0, 0);
        loop {
            let byte = bytes[0];
            *bytes = &bytes[1..];
            number |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return number;
            }
        }
    }

    /// By the format's own words, slowly.
    fn read(mut bytes: &[u8], bits: u8, count: usize) -> Vec<u32> {
        let mut found = Vec::new();
        while found.len() < count {
            let header = varint(&mut bytes);
            if header & 1 == 0 {
                let width = usize::from(bits).div_ceil(8);
                let mut number = [0; 4];
                number[..width].copy_from_slice(&bytes[..width]);
                bytes = &bytes[width..];
                let number = u32::from_le_bytes(number);
                found.extend(std::iter::repeat_n(number, (header >> 1) as usize));
            } else {
                let length = (header >> 1) as usize * usize::from(bits);
                let bit = |at: usize| u32::from(bytes[at / 8] >> (at % 8) & 1);
                for number in 0..(header >> 1) as usize * 8 {
                    let first = number * usize::from(bits);
                    found.push((0..usize::from(bits)).map(|at| bit(first + at) << at).sum());
                }
                bytes = &bytes[length..];
            }
        }
        assert!(bytes.is_empty());
        found.truncate(count);
        found
    }

    #[test]
    fn numbers_can_be_read_again() {
        let mut state = 1_u32;
        for bits in [1, 2, 3, 7, 8, 9, 16, 17, 24, 31, 32] {
            for length in [0, 1, 7, 8, 9, 100, 1000] {
                let mut numbers = Vec::new();
                while numbers.len() < length {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    let number = state.checked_shr(32 - u32::from(bits)).unwrap_or(0);
                    let run = if state.is_multiple_of(5) { (state >> 8) as usize % 50 } else { 1 };
                    numbers.extend(std::iter::repeat_n(number, run));
                }
                numbers.truncate(length);
                let mut out = Vec::new();
                put_numbers(&numbers, bits, &mut out);
                assert_eq!(read(&out, bits, length), numbers, "{bits} bits");
            }
        }
    }

    #[test]
    fn what_is_not_packed_is_snappy_all_the_same() {
        for length in [0, 1, 59, 60, 70_000] {
            let bytes: Vec<u8> = (0..length).map(|n: u32| n.wrapping_mul(n) as u8).collect();
            assert_eq!(snap::raw::Decoder::new().decompress_vec(&unpacked(&bytes)).unwrap(), bytes);
        }
    }

    #[test]
    fn bits_of_numbers() {
        assert_eq!([0, 1, 2, 3, 4, 5, 256, 257].map(bits_for), [1, 1, 1, 2, 2, 3, 8, 9]);
    }
}
