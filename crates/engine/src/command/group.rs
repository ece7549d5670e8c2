//! Chapters of the command reference.

use crate::value::Type;

/// Declares the groups: each with its name in `COMMAND DOCS`, the type of value that its commands
/// work on, and the access category that its commands are in.
macro_rules! groups {
    ($($(#[$doc:meta])+ $group:ident: $name:literal, $type:expr, $category:expr;)+) => {
        /// Chapter of the reference that a command belongs to.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Group {
            $($(#[$doc])+ $group,)+
        }

        impl Group {
            /// Returns the name in `COMMAND DOCS`.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$group => $name,)+
                }
            }

            /// Returns the type of value that the group's commands work on; `None` if any.
            pub fn value_type(self) -> Option<Type> {
                match self {
                    $(Self::$group => $type,)+
                }
            }

            /// Returns the access category that the group's commands are in, if any.
            pub fn category(self) -> Option<&'static str> {
                match self {
                    $(Self::$group => $category,)+
                }
            }
        }
    };
}

groups! {
    /// Strings and counters.
    String: "string", Some(Type::String), Some("@string");
    /// Bits of strings.
    Bitmap: "bitmap", Some(Type::String), Some("@bitmap");
    /// Keys of any type.
    Generic: "generic", None, Some("@keyspace");
    /// Lists.
    List: "list", Some(Type::List), Some("@list");
    /// Hashes.
    Hash: "hash", Some(Type::Hash), Some("@hash");
    /// Sets.
    Set: "set", Some(Type::Set), Some("@set");
    /// Sorted sets.
    SortedSet: "sorted-set", Some(Type::SortedSet), Some("@sortedset");
    /// Counters.
    Counter: "counter", Some(Type::Counter), Some("@counter");
    /// Rate limiters.
    Limit: "limit", Some(Type::Limit), None;
    /// Prize pools.
    Pool: "pool", Some(Type::Pool), None;
    /// Scripts and functions.
    Scripting: "scripting", None, Some("@scripting");
    /// Transactions.
    Transactions: "transactions", None, Some("@transaction");
    /// Publish and subscribe.
    PubSub: "pubsub", None, None;
    /// The connection itself.
    Connection: "connection", None, Some("@connection");
    /// The server.
    Server: "server", None, None;
}
