//! Where a member keeps its ballot.

use std::io;

/// Keeps the newest ballot of a member. A ballot that was given and forgotten elects two leaders.
pub trait VoteStore: Send + 'static {
    /// Replaces the ballot, at most 64 bytes. It is durable when this returns; if it fails, or the
    /// process ends meanwhile, the old or the new one is kept.
    fn save(&mut self, ballot: &[u8]) -> io::Result<()>;
}
