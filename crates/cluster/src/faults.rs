//! Faults of ours, planted to see that the simulation finds them.

/// What is done wrong.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    /// An entry is acknowledged before its sync.
    pub(crate) acknowledge_before_sync: bool,
    /// A ballot counts as saved before its sync.
    pub(crate) ballot_not_synced: bool,
    /// A leader that starts again takes up its term.
    pub(crate) restore_leader: bool,
    /// A batch that is refused for a moment is not proposed again.
    pub(crate) overtake_refused: bool,
}
