//! Sections of a snapshot: what the frames of each are for.

/// The keyspace, for [`Loader::load_frame`](crate::Loader::load_frame).
pub const KEYSPACE: u32 = 0;

/// The watched reads, for [`Engine::load_queries`](crate::Engine::load_queries).
pub const WATCHED: u32 = 1;

/// The named subscriptions, for [`Engine::load_names`](crate::Engine::load_names).
pub const NAMED: u32 = 2;
