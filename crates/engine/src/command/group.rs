//! Chapters of the command reference.

/// Chapter of the reference that a command belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Strings and counters.
    String,
    /// Bits of strings.
    Bitmap,
    /// Keys of any type.
    Generic,
    /// Lists.
    List,
    /// Hashes.
    Hash,
    /// Sets.
    Set,
    /// Sorted sets.
    SortedSet,
    /// Counters.
    Counter,
    /// Rate limiters.
    Limit,
    /// Prize pools.
    Pool,
    /// Scripts and functions.
    Scripting,
    /// Transactions.
    Transactions,
    /// Publish and subscribe.
    PubSub,
    /// The connection itself.
    Connection,
    /// The server.
    Server,
}

impl Group {
    /// Returns the name in `COMMAND DOCS`.
    pub fn name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Bitmap => "bitmap",
            Self::Generic => "generic",
            Self::List => "list",
            Self::Hash => "hash",
            Self::Set => "set",
            Self::SortedSet => "sorted-set",
            Self::Counter => "counter",
            Self::Limit => "limit",
            Self::Pool => "pool",
            Self::Scripting => "scripting",
            Self::Transactions => "transactions",
            Self::PubSub => "pubsub",
            Self::Connection => "connection",
            Self::Server => "server",
        }
    }
}
