//! Requests progress of the log, and releases what waits for it.

use super::WorkerState;
use super::environment::Environment;
use crate::context::Context;
use crate::net::outbox::Reached;
use tidemark_fault::{Fault, is_planted};
use tidemark_log::{Log, Lsn};

/// Log work between the two halves of a turn, which may take as long as the disk takes.
pub(crate) struct DiskTask {
    /// LSN to commit, unless the worker has requested that already.
    commit: Option<Lsn>,
    /// LSN to write.
    written: Lsn,
}

impl DiskTask {
    /// Writes and syncs on this thread where that is quick, and requests it from the commit thread
    /// otherwise.
    pub(crate) fn run(self, log: &Log) {
        if let Some(commit) = self.commit {
            log.sync_or_request(commit);
        }
        log.write_or_request(self.written);
    }
}

impl WorkerState {
    /// Whether the log has reached what a connection waits for, or has failed.
    pub(super) fn log_has_moved(&self, environment: &Environment) -> bool {
        let log = environment.shared.engine.log();
        let reached = Reached::by(log);
        environment.shared.log_has_failed()
            || (self.holding.iter().filter_map(|slot| self.peer(*slot))).any(|peer| {
                peer.connection.has_waited_for(reached, log.durable())
                    || peer.connection.awaited_room().is_some_and(|bytes| log.has_room_for(bytes))
            })
    }

    /// Log work that this turn's replies need.
    pub(super) fn disk_task(&mut self, environment: &Environment) -> Option<DiskTask> {
        if self.holding.is_empty() {
            return None;
        }
        let log = environment.shared.engine.log();
        let wanted = self.log_wanted;
        let asks = wanted.committed > self.commit_requested && !is_planted(Fault::HeldAnswer);
        self.commit_requested = if asks { wanted.committed } else { self.commit_requested };
        let commit = Some(wanted.committed).filter(|lsn| asks && *lsn > log.committed());
        (commit.is_some() || wanted.written > log.written())
            .then_some(DiskTask { commit, written: wanted.written })
    }

    /// Releases replies that the log's progress allows.
    pub(super) fn look_after_log(&mut self, environment: &Environment, cx: &Context<'_>) {
        if self.holding.is_empty() {
            return;
        }
        let log = environment.shared.engine.log();
        let reached = if is_planted(Fault::HeldAnswer) { self.log_wanted } else { Reached::by(log) };
        let has_failed = environment.shared.log_has_failed();
        for slot in std::mem::take(&mut self.holding) {
            let Some(peer) = self.peer_mut(slot) else { continue };
            peer.is_holding = false;
            peer.connection.log_moved(reached, cx);
            if has_failed {
                peer.connection.log_failed(cx);
            }
            self.after_running(slot, cx);
        }
    }
}
