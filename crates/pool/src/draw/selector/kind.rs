//! Names of the selectors.

use std::fmt;
use std::str::FromStr;

/// Kind of a selector.
///
/// ```
/// use tidemark_pool::selector::SelectorKind;
///
/// assert_eq!("prefix-sum".parse(), Ok(SelectorKind::PrefixSum));
/// assert_eq!(SelectorKind::default().to_string(), "tree");
/// assert_eq!(
///     "heap".parse::<SelectorKind>().unwrap_err().to_string(),
///     "there is no selector \"heap\": name tree, alias, fenwick or prefix-sum",
/// );
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum SelectorKind {
    /// `tree`: [`WideTree`](super::WideTree).
    #[default]
    Tree,
    /// `alias`: [`Alias`](super::Alias).
    Alias,
    /// `fenwick`: [`Fenwick`](super::Fenwick).
    Fenwick,
    /// `prefix-sum`: [`PrefixSum`](super::PrefixSum).
    PrefixSum,
}

impl SelectorKind {
    /// All kinds, the default first.
    pub const ALL: [Self; 4] = [Self::Tree, Self::Alias, Self::Fenwick, Self::PrefixSum];

    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tree => "tree",
            Self::Alias => "alias",
            Self::Fenwick => "fenwick",
            Self::PrefixSum => "prefix-sum",
        }
    }
}

impl fmt::Display for SelectorKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

impl FromStr for SelectorKind {
    type Err = UnknownSelector;

    fn from_str(name: &str) -> Result<Self, UnknownSelector> {
        let known = Self::ALL.into_iter().find(|kind| kind.name() == name);
        known.ok_or_else(|| UnknownSelector { name: name.into() })
    }
}

/// No selector has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no selector {name:?}: name tree, alias, fenwick or prefix-sum")]
pub struct UnknownSelector {
    /// The unknown name.
    pub name: Box<str>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_back_and_stands_in_the_error() {
        let error = "".parse::<SelectorKind>().unwrap_err().to_string();
        for kind in SelectorKind::ALL {
            assert_eq!(kind.to_string().parse(), Ok(kind));
            assert!(error.contains(kind.name()), "{kind} is missing in: {error}");
        }
    }
}
