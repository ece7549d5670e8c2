//! The pump: proposes what appenders have appended, one batch at a time.
//!
//! A batch is proposed for the term that it was taken in. Until the log has it no other is taken,
//! and one that is refused for a moment is proposed again: so log order is the order of the
//! appends. If it is refused for good the term is lost, and the log drops what is not in it.

use std::sync::Arc;

use tidemark_log::EntryRecords;

use crate::driver::LogDriver;
use crate::reign::Reign;
use crate::term::Term;

/// What became of a proposed batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proposal {
    /// The log has it, as the newest entry of the term.
    InLog,
    /// The leader accepts nothing at the moment; nothing has changed.
    Refused,
    /// This member does not lead the term any more.
    Lost,
    /// The consensus has ended.
    Closed,
}

/// Proposes a batch to the group.
pub(crate) trait Propose: Send + 'static {
    /// Proposes the records for `term`; returns when the log has them or they are refused.
    fn propose(&self, term: Term, records: EntryRecords) -> impl Future<Output = Proposal> + Send;
    /// Waits for a moment before a refused batch is proposed again.
    fn pause(&self) -> impl Future<Output = ()> + Send;
}

/// Proposes batches until the consensus ends.
///
/// Takes none while `backlog_bytes` of them are not committed: then the log's buffer fills, and
/// commands wait before they are executed.
pub(crate) async fn pump(propose: impl Propose, driver: LogDriver, reign: Arc<Reign>, backlog_bytes: usize) {
    loop {
        reign.gathered.notified().await;
        loop {
            driver.wait_for_commits(backlog_bytes).await;
            let Some(records) = driver.take().await else { break };
            // Records of an earlier term lie before this one's first record.
            let reigning = reign.role.reign().filter(|(_, leader_lsn)| *leader_lsn < records.first_lsn());
            let Some((term, _)) = reigning else { break };
            match propose_until_seen(&propose, &reign, term, records).await {
                Proposal::InLog => {}
                Proposal::Refused | Proposal::Lost => {
                    reign.lose(term);
                    break;
                }
                Proposal::Closed => return,
            }
        }
    }
}

async fn propose_until_seen(
    propose: &impl Propose,
    reign: &Reign,
    term: Term,
    records: EntryRecords,
) -> Proposal {
    loop {
        let proposal = propose.propose(term, records.clone()).await;
        #[cfg(test)]
        if proposal == Proposal::Refused && reign.faults.overtake_refused {
            return Proposal::InLog;
        }
        if proposal != Proposal::Refused || reign.role.leading() != Some(term) {
            return proposal;
        }
        propose.pause().await;
    }
}
