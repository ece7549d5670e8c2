//! When answers about what a pool does may leave.

/// When an answer may leave that says what a pool has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum PoolDurability {
    /// Once what it tells of is durable, whatever the server's mode: no crash takes a prize back, or gives it twice.
    #[default]
    Always,
    /// When the server's mode lets it.
    Server,
}

impl PoolDurability {
    pub(crate) const ALL: [Self; 2] = [Self::Always, Self::Server];

    /// The word for it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::Server => "server",
        }
    }
}
