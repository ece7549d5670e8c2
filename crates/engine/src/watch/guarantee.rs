//! Delivery guarantee of a named subscription across crashes of the subscriber or the server.

/// Delivery guarantee: whether an acknowledgement or the delivery moves the position of a named
/// subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Guarantee {
    /// The subscriber acknowledges. Emissions that are not acknowledged are delivered again.
    #[default]
    AtLeastOnce,
    /// The server moves the position before it delivers. No emission is delivered twice.
    AtMostOnce,
}

impl Guarantee {
    /// Returns the guarantee's name, as lists show it.
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
