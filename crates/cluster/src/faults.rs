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
    /// A batch counts as committed when its leader has written it.
    pub(crate) commit_before_quorum: bool,
    /// Reads are answered without a lease.
    pub(crate) read_without_lease: bool,
    /// A term begins at the next LSN, which a deposed leader may have given out.
    pub(crate) term_without_gap: bool,
    /// A member that may have lost what it acknowledged votes.
    pub(crate) suspect_votes: bool,
    /// Memory stays when something that it has is taken back.
    pub(crate) keeps_memory_behind_a_cut: bool,
    /// A snapshot counts before what it has is committed.
    pub(crate) snapshot_at_appended: bool,
    /// A member with an empty disk is taken for the one that had another.
    pub(crate) admits_new_disks: bool,
}
