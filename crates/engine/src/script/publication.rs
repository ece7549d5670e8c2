//! What scripts publish.

/// A message that a script has published on a channel: the caller of the engine sends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publication {
    /// Whether it is on a shard channel.
    pub is_shard: bool,
    /// The channel.
    pub channel: Vec<u8>,
    /// The message.
    pub message: Vec<u8>,
}
