//! Chance from a seed: the same seed gives the same choices, everywhere.

/// A generator of numbers that look like any other (SplitMix64).
#[derive(Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    /// The chance of one run of one target.
    pub(crate) fn of(seed: u64, target: &str, run: u64) -> Self {
        let name = target
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ name ^ run.wrapping_mul(0xd1b5_4a32_d192_ed03))
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below that one; zero where there is none.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.number() >> 16).unwrap_or(0) % end.max(1)
    }

    /// A number below two to the power of `bits`, and mostly far below.
    pub(crate) fn small(&mut self, bits: usize) -> usize {
        let bits = self.below(bits);
        self.below(1 << bits)
    }

    pub(crate) fn one_of<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.below(all.len())]
    }
}
