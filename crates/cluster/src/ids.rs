//! Names of clusters, groups, members and directories.

use std::fmt;
use std::str::FromStr;

/// Name of a member. Never used again after its removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u64);

/// Name of a group of members that share one log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupId(pub u32);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for GroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A random name of 128 bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RandomId(pub [u8; 16]);

impl RandomId {
    /// Draws a new one from the kernel.
    pub fn draw() -> std::io::Result<Self> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(std::io::Error::from)?;
        Ok(Self(bytes))
    }

    /// Returns the first 8 digits: enough for a person to compare, too few to pose as its owner.
    pub fn prefix(self) -> String {
        self.to_string()[..8].to_owned()
    }
}

impl fmt::Display for RandomId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for RandomId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// A text that is not 32 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an id of a cluster or directory has 32 hexadecimal digits")]
pub struct ParseIdError;

impl FromStr for RandomId {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        let is_hex = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = u128::from_str_radix(text, 16).ok().filter(|_| is_hex);
        Ok(Self(number.ok_or(ParseIdError)?.to_be_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ids_are_drawn_at_random() {
        let drawn: std::collections::BTreeSet<_> =
            (0..100).map(|_| RandomId::draw().expect("random bytes")).collect();
        assert_eq!(drawn.len(), 100);
    }

    #[test]
    fn other_texts_are_no_ids() {
        for text in ["", "+0000000000000000000000000000001", "0", "g0000000000000000000000000000000"] {
            assert_eq!(text.parse::<RandomId>(), Err(ParseIdError), "{text}");
        }
    }

    proptest! {
        #[test]
        fn an_id_is_read_as_it_is_written(bytes: [u8; 16]) {
            let id = RandomId(bytes);
            prop_assert_eq!(id.to_string().parse(), Ok(id));
            prop_assert!(id.to_string().starts_with(&id.prefix()));
        }
    }
}
