//! The limit of the machine: hash the attribute, touch one counter. No gate that keeps a table of
//! attributes and hashes with a secret can do less for an observation.
//!
//! It is made as fast as it can be, so that a ratio to it flatters nobody: eight bytes a counter,
//! the table ready and in memory beforehand and on huge pages where the system gives them, no
//! comparison of keys. Prefetching is a choice because it pays only where the table is larger
//! than the cache: the benchmark times both and takes the faster.

use std::hash::{BuildHasher, RandomState};

const AHEAD: usize = 32;
const HUGE_PAGE_BYTES: usize = 2 << 20;

pub struct Limit {
    counters: Counters,
    prefetch: bool,
    hash: Hash,
}

enum Hash {
    #[cfg(target_arch = "x86_64")]
    Aes(aes::Keys),
    Sip(RandomState),
}

impl Limit {
    /// A table of the next power of two from twice the number of attributes on.
    pub fn new(attributes: usize, prefetch: bool) -> Self {
        let slots = attributes.max(AHEAD).saturating_mul(2).next_power_of_two();
        Self { counters: Counters::new(slots), prefetch, hash: Hash::best() }
    }

    pub fn touch_many(&mut self, attributes: &[i64]) {
        let (counters, prefetch) = (&mut self.counters, self.prefetch);
        match &self.hash {
            #[cfg(target_arch = "x86_64")]
            Hash::Aes(keys) => keys.touch_many(counters, attributes, prefetch),
            Hash::Sip(state) => touch(counters, attributes, prefetch, |a| state.hash_one(a)),
        }
    }

    pub fn total(&self) -> u64 {
        self.counters.used().iter().sum()
    }

    pub fn hash(&self) -> &'static str {
        match self.hash {
            #[cfg(target_arch = "x86_64")]
            Hash::Aes(_) => "aes",
            Hash::Sip(_) => "siphash",
        }
    }
}

impl Hash {
    fn best() -> Self {
        #[cfg(target_arch = "x86_64")]
        if let Some(keys) = aes::Keys::random() {
            return Self::Aes(keys);
        }
        Self::Sip(RandomState::new())
    }
}

#[inline(always)]
fn touch(counters: &mut Counters, attributes: &[i64], prefetch: bool, hash: impl Fn(i64) -> u64) {
    let mask = counters.slots - 1;
    let used = counters.used_mut();
    let place = |attribute| hash(attribute) as usize & mask;
    if !prefetch || attributes.len() < AHEAD {
        for &attribute in attributes {
            used[place(attribute)] += 1;
        }
        return;
    }
    // A ring of the places that are on their way from memory to the cache.
    let mut ring = [0; AHEAD];
    let (first, rest) = attributes.split_at(AHEAD);
    for (waiting, &attribute) in ring.iter_mut().zip(first) {
        *waiting = place(attribute);
        fetch(&used[*waiting]);
    }
    for (i, &attribute) in rest.iter().enumerate() {
        let waiting = &mut ring[i % AHEAD];
        used[*waiting] += 1;
        *waiting = place(attribute);
        fetch(&used[*waiting]);
    }
    for waiting in ring {
        used[waiting] += 1;
    }
}

#[inline(always)]
fn fetch(counter: &u64) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch of any address is harmless, and this one is a reference.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(counter).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = counter;
}

/// Counters that begin on a huge page.
struct Counters {
    memory: Vec<u64>,
    start: usize,
    slots: usize,
}

impl Counters {
    fn new(slots: usize) -> Self {
        let huge = slots * size_of::<u64>() >= HUGE_PAGE_BYTES;
        let room = if huge { HUGE_PAGE_BYTES / size_of::<u64>() } else { 0 };
        let memory = vec![0; slots + room];
        let start = if huge { memory.as_ptr().align_offset(HUGE_PAGE_BYTES) } else { 0 };
        let mut counters = Self { memory, start, slots };
        counters.ask_for_huge_pages();
        // Written once, so that no page is missing when the clock runs.
        counters.used_mut().fill(1);
        counters.used_mut().fill(0);
        counters
    }

    fn used(&self) -> &[u64] {
        &self.memory[self.start..][..self.slots]
    }

    fn used_mut(&mut self) -> &mut [u64] {
        &mut self.memory[self.start..][..self.slots]
    }

    #[cfg(target_os = "linux")]
    fn ask_for_huge_pages(&mut self) {
        let used = self.used_mut();
        if size_of_val(used) >= HUGE_PAGE_BYTES {
            // SAFETY: the range is ours, begins on a page, and the call is only advice about it;
            // a refusal changes the speed alone.
            unsafe {
                libc::madvise(used.as_mut_ptr().cast(), size_of_val(used), libc::MADV_HUGEPAGE);
            }
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn ask_for_huge_pages(&mut self) {}
}

/// One AES-128 encryption of the block (attribute, 0), with the processor's own instructions.
#[cfg(target_arch = "x86_64")]
mod aes {
    use super::{Counters, touch};
    use std::arch::x86_64::{
        __m128i, _mm_aesenc_si128, _mm_aesenclast_si128, _mm_cvtsi128_si64, _mm_set_epi64x,
        _mm_xor_si128,
    };
    use std::hash::{BuildHasher, RandomState};

    /// Eleven random round keys. Drawn, not derived from one key: the cost is the same, and
    /// nothing here is kept secret for longer than a run.
    pub struct Keys([__m128i; 11]);

    impl Keys {
        /// None where the processor has no AES instructions.
        pub fn random() -> Option<Self> {
            if !is_x86_feature_detected!("aes") {
                return None;
            }
            let word = || RandomState::new().hash_one(0) as i64;
            // SAFETY: SSE2 is part of every x86-64 processor.
            Some(Self(std::array::from_fn(|_| unsafe { _mm_set_epi64x(word(), word()) })))
        }

        pub fn touch_many(&self, counters: &mut Counters, attributes: &[i64], prefetch: bool) {
            // SAFETY: `random`, the only way to make `Keys`, has seen the AES instructions.
            unsafe { self.touch_many_aes(counters, attributes, prefetch) }
        }

        #[target_feature(enable = "aes")]
        fn touch_many_aes(&self, counters: &mut Counters, attributes: &[i64], prefetch: bool) {
            touch(counters, attributes, prefetch, |attribute| self.hash(attribute));
        }

        #[inline]
        #[target_feature(enable = "aes")]
        fn hash(&self, attribute: i64) -> u64 {
            let [first, middle @ .., last] = &self.0;
            let mut block = _mm_xor_si128(_mm_set_epi64x(0, attribute), *first);
            for key in middle {
                block = _mm_aesenc_si128(block, *key);
            }
            _mm_cvtsi128_si64(_mm_aesenclast_si128(block, *last)) as u64
        }
    }
}
