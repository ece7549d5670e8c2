//! How often a subscriber that keeps nothing is given an emission, when it or the server dies in between.

/// Who moves the position of a named subscription, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Guarantee {
    /// The subscriber does, by acknowledging: whatever was not acknowledged is given again.
    #[default]
    AtLeastOnce,
    /// The server does, before it gives an emission away: nothing is given again.
    AtMostOnce,
}

impl Guarantee {
    /// As it is written in lists.
    pub fn word(self) -> &'static str {
        match self {
            Self::AtLeastOnce => "at-least-once",
            Self::AtMostOnce => "at-most-once",
        }
    }

    pub(super) fn encoded(self) -> u8 {
        match self {
            Self::AtLeastOnce => 0,
            Self::AtMostOnce => 1,
        }
    }

    pub(super) fn decode(byte: u8) -> Option<Self> {
        [Self::AtLeastOnce, Self::AtMostOnce].into_iter().find(|guarantee| guarantee.encoded() == byte)
    }
}
