//! The values of one run: each says which round it is of, so no two are alike.

/// What is written in each round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Values {
    /// Distinguishes this run's values from those of any other.
    pub(super) run: u64,
    pub(super) bytes: usize,
}

impl Values {
    /// The value of a round, in place of what `out` held. It has [`Values::bytes`] bytes: the flags leave room for the round.
    pub(super) fn write(self, round: u32, out: &mut Vec<u8>) {
        out.clear();
        // Runs differ in their lowest bits first, and a short value has room for the first digits only.
        out.extend_from_slice(format!("{round}|{:016x}|", self.run.reverse_bits()).as_bytes());
        out.resize(self.bytes, b'.');
    }

    /// The round that a value is of, if it is one of this run's.
    pub(super) fn round_of(self, value: &[u8]) -> Option<u32> {
        let digits = value.get(..value.iter().position(|byte| *byte == b'|')?)?;
        let round = std::str::from_utf8(digits).ok()?.parse().ok()?;
        let mut expected = Vec::new();
        self.write(round, &mut expected);
        (expected == value).then_some(round)
    }
}

#[cfg(test)]
mod tests {
    use super::Values;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_value_leads_back_to_its_round_and_to_no_other(
            round in 1_u32..=101_000,
            run: u64,
            bytes in 8_usize..100,
        ) {
            let (values, mut value) = (Values { run, bytes }, Vec::new());
            values.write(round, &mut value);
            prop_assert_eq!(value.len(), bytes);
            prop_assert_eq!(values.round_of(&value), Some(round));
            value.push(b'.');
            prop_assert_eq!(values.round_of(&value), None);
        }
    }

    #[test]
    fn the_values_of_another_run_are_none_of_ours() {
        let mut value = Vec::new();
        Values { run: 7, bytes: 16 }.write(1, &mut value);
        assert_eq!(Values { run: 8, bytes: 16 }.round_of(&value), None);
        assert_eq!(Values { run: 7, bytes: 16 }.round_of(b"+1|x"), None);
    }
}
