//! One small seeded generator, so that the same seed and inputs give the same outputs.
//!
//! It spreads backoff and names jobs. It is not for secrets.

/// A SplitMix64 generator: 64 bits of state, period 2^64, every seed is a good one.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A generator that gives the same sequence for the same `seed`.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 random bits.
    pub const fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// The next 128 random bits.
    pub const fn next_u128(&mut self) -> u128 {
        let high = self.next_u64() as u128;
        high << 64 | self.next_u64() as u128
    }

    /// An independent generator, seeded from this one.
    #[must_use]
    pub const fn fork(&mut self) -> Self {
        Self(self.next_u64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_the_published_one() {
        // The first outputs of SplitMix64 from seed 1234567, as its reference implementation prints them.
        let mut rng = Rng::new(1_234_567);
        assert_eq!(rng.next_u64(), 6_457_827_717_110_365_317);
        assert_eq!(rng.next_u64(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn a_fork_goes_its_own_way() {
        let mut parent = Rng::new(1);
        let mut child = parent.fork();
        assert_ne!(child.next_u64(), parent.next_u64());
    }
}
