//! Properties of a command, as bits.

/// May change keys.
pub const WRITE: u32 = 1;
/// Only reads keys.
pub const READONLY: u32 = 1 << 1;
/// May use more memory, so it is refused when memory is exhausted.
pub const DENYOOM: u32 = 1 << 2;
/// For administrators.
pub const ADMIN: u32 = 1 << 3;
/// Concerns publish and subscribe.
pub const PUBSUB: u32 = 1 << 4;
/// Not allowed in scripts.
pub const NOSCRIPT: u32 = 1 << 5;
/// May block the client.
pub const BLOCKING: u32 = 1 << 6;
/// Allowed while data is loaded.
pub const LOADING: u32 = 1 << 7;
/// Allowed on a replica that has lost its leader.
pub const STALE: u32 = 1 << 8;
/// O(1) or O(log n).
pub const FAST: u32 = 1 << 9;
/// Allowed before authentication.
pub const NO_AUTH: u32 = 1 << 10;
/// Not allowed in a transaction.
pub const NO_MULTI: u32 = 1 << 11;
/// Keys depend on the arguments, not on position alone.
pub const MOVABLE_KEYS: u32 = 1 << 12;
/// Its changes are volatile at first: it runs while the log accepts nothing, unless it must be
/// logged. Not shown to clients.
pub const VOLATILE: u32 = 1 << 13;

/// Allowed while a client has subscriptions under RESP2, where a message looks like a reply. Not
/// shown to clients.
pub const WHILE_SUBSCRIBED: u32 = 1 << 14;
/// Allowed on a connection that is reserved for administration. Not shown to clients.
pub const RESERVED: u32 = 1 << 15;
/// Needs no data, so it runs while the server loads its data. Not shown to clients.
pub const WITHOUT_DATA: u32 = 1 << 16;
/// Its changes are points, which are logged in columns. Not shown to clients.
pub const COLUMNS: u32 = 1 << 17;
/// Several that follow each other in a pipeline run under the same locks and share a record. Its
/// reply is one line. Not shown to clients.
pub const RUNS: u32 = 1 << 18;

/// Flags with their names in `COMMAND`.
pub const NAMES: [(u32, &str); 13] = [
    (WRITE, "write"),
    (READONLY, "readonly"),
    (DENYOOM, "denyoom"),
    (ADMIN, "admin"),
    (PUBSUB, "pubsub"),
    (NOSCRIPT, "noscript"),
    (BLOCKING, "blocking"),
    (LOADING, "loading"),
    (STALE, "stale"),
    (FAST, "fast"),
    (NO_AUTH, "no_auth"),
    (NO_MULTI, "no_multi"),
    (MOVABLE_KEYS, "movablekeys"),
];
