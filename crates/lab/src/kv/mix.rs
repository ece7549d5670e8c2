//! Ratio of GET to SET in a load: `80:20`.

use serde::{Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// Parts of GET and SET; their sum need not be 100.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mix {
    /// Parts of GET.
    pub get: u32,
    /// Parts of SET.
    pub set: u32,
}

/// An invalid mix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid mix {0:?}; write GET:SET as two numbers of which one is not 0, such as 80:20")]
pub struct MixError(String);

impl Mix {
    /// Returns the sum of the parts.
    pub(super) fn total(self) -> u64 {
        u64::from(self.get) + u64::from(self.set)
    }
}

impl FromStr for Mix {
    type Err = MixError;

    fn from_str(text: &str) -> Result<Self, MixError> {
        let invalid = || MixError(text.to_owned());
        let (get, set) = text.split_once(':').ok_or_else(invalid)?;
        let part = |part: &str| part.trim().parse::<u32>().map_err(|_| invalid());
        let mix = Mix { get: part(get)?, set: part(set)? };
        if mix.total() == 0 { Err(invalid()) } else { Ok(mix) }
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "GET:{}/SET:{}", self.get, self.set)
    }
}

/// As its flag is written.
impl Serialize for Mix {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}:{}", self.get, self.set))
    }
}

#[cfg(test)]
mod tests {
    use super::Mix;

    #[test]
    fn two_numbers_make_a_mix() {
        assert_eq!("80:20".parse(), Ok(Mix { get: 80, set: 20 }));
        assert_eq!(" 1 : 0 ".parse(), Ok(Mix { get: 1, set: 0 }));
        assert_eq!("80:20".parse::<Mix>().map(|mix| mix.to_string()), Ok("GET:80/SET:20".to_owned()));
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["", "80", "80:", ":20", "-1:5", "0:0", "a:b", "1:2:3", "99999999999:1"] {
            assert!(text.parse::<Mix>().is_err(), "{text:?} is no mix");
        }
    }
}
