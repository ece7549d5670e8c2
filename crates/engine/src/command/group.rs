//! Groups of commands: the chapters of the command reference.

use crate::value::Type;

/// Declares the groups, each with its name in `COMMAND DOCS`, the type of value that its commands
/// work on, and the access category of Redis that its commands are in.
macro_rules! groups {
    ($($(#[$doc:meta])+ $group:ident: $name:literal, $type:expr, $category:expr;)+) => {
        /// Group of a command: its chapter in the reference.
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

            /// Whether the group's reads may read keys that a value links to.
            #[inline]
            pub(crate) fn follows_links(self) -> bool {
                matches!(self, Self::Series | Self::Lens)
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
    /// Strings, also as numbers: `SET`, `APPEND`, `INCR`.
    String: "string", Some(Type::String), Some("@string");
    /// Bits of strings: `SETBIT`, `BITCOUNT`.
    Bitmap: "bitmap", Some(Type::String), Some("@bitmap");
    /// Estimates of how many distinct elements were added: `PFADD`, `PFCOUNT`.
    HyperLogLog: "hyperloglog", Some(Type::String), Some("@hyperloglog");
    /// Keys with values of any type: `DEL`, `EXPIRE`, `SCAN`.
    Generic: "generic", None, Some("@keyspace");
    /// Lists: `LPUSH`, `LRANGE`.
    List: "list", Some(Type::List), Some("@list");
    /// Hashes: `HSET`, `HGETALL`.
    Hash: "hash", Some(Type::Hash), Some("@hash");
    /// Sets: `SADD`, `SINTER`.
    Set: "set", Some(Type::Set), Some("@set");
    /// Sorted sets: `ZADD`, `ZRANGE`.
    SortedSet: "sorted-set", Some(Type::SortedSet), Some("@sortedset");
    /// Sorted sets of points on the earth: `GEOADD`, `GEOSEARCH`.
    Geo: "geo", Some(Type::SortedSet), Some("@geo");
    /// Streams: `XADD`, `XREADGROUP`.
    Stream: "stream", Some(Type::Stream), Some("@stream");
    /// Counters of their own type: `COUNTER.CREATE`, `COUNTER.ADD`.
    Counter: "counter", Some(Type::Counter), Some("@counter");
    /// Rate limiters: `LIMIT.CHECK`.
    Limit: "limit", Some(Type::Limit), None;
    /// Prize pools: `POOL.CREATE`, `POOL.DRAW`.
    Pool: "pool", Some(Type::Pool), None;
    /// Time series: `TS.ADD`, `TS.RANGE`.
    Series: "timeseries", Some(Type::Series), Some("@timeseries");
    /// Series seen through transforms: `LENS.CREATE`.
    Lens: "lens", Some(Type::Lens), None;
    /// The group as a Redis Cluster: `CLUSTER SLOTS`.
    Cluster: "cluster", None, None;
    /// Scripts and functions: `FUNCTION FLUSH`.
    Scripting: "scripting", None, Some("@scripting");
    /// Transactions: `MULTI`, `EXEC`.
    Transactions: "transactions", None, Some("@transaction");
    /// Channels, watched reads and the change stream: `SUBSCRIBE`, `WATCHES`, `CHANGES`.
    PubSub: "pubsub", None, None;
    /// The client's own connection and those of others: `HELLO`, `CLIENT LIST`.
    Connection: "connection", None, Some("@connection");
    /// The server as a whole: `INFO`, `CONFIG SET`, `SAVE`.
    Server: "server", None, None;
}
