//! When replies about a pool's actions may be sent.

/// When a reply about a pool's actions may be sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum PoolDurability {
    /// Once the action is durable, in every mode: no crash revokes a prize or awards it twice.
    #[default]
    Always,
    /// As in the server's durability mode.
    Server,
}

impl PoolDurability {
    pub(crate) const ALL: [Self; 2] = [Self::Always, Self::Server];

    /// Returns its name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::Server => "server",
        }
    }
}
