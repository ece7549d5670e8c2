//! Requests progress of the log, and releases what waits for it.

use super::WorkerState;
use super::environment::Environment;
use crate::context::Context;
use crate::group::Group;
use crate::net::outbox::Reached;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
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

/// What has become of a worker's question to the members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Confirmed {
    NotAsked,
    Asked,
    Given,
    Refused,
}

/// Whether the members have confirmed the lead to a worker that has asked.
#[derive(Default)]
pub(super) struct Confirmation(AtomicU8);

impl Confirmation {
    const ALL: [Confirmed; 4] = [Confirmed::NotAsked, Confirmed::Asked, Confirmed::Given, Confirmed::Refused];

    fn ask(&self) {
        self.0.store(Confirmed::Asked as u8, Ordering::SeqCst);
    }

    fn answer(&self, is_given: bool) {
        let answer = if is_given { Confirmed::Given } else { Confirmed::Refused };
        self.0.store(answer as u8, Ordering::SeqCst);
    }

    fn is_answered(&self) -> bool {
        self.0.load(Ordering::SeqCst) >= Confirmed::Given as u8
    }

    /// Returns the state; an answer is returned once.
    fn take(&self) -> Confirmed {
        let state = Self::ALL[usize::from(self.0.load(Ordering::SeqCst))];
        if !matches!(state, Confirmed::Asked) {
            self.0.store(Confirmed::NotAsked as u8, Ordering::SeqCst);
        }
        state
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
                    || peer
                        .connection
                        .awaited_copies()
                        .is_some_and(|copies| copies.are_due(&environment.shared))
                    || peer.connection.awaited_room().is_some_and(|bytes| log.has_room_for(bytes))
            })
    }

    /// Whether a client waits for copies on other members.
    pub(super) fn waits_for_copies(&self) -> bool {
        (self.holding.iter().filter_map(|slot| self.peer(*slot)))
            .any(|peer| peer.connection.awaited_copies().is_some())
    }

    /// Closes all connections if this member of a group leads no longer, and sends nothing more: what
    /// was executed here may be taken back. Costs a comparison, and a load in a group.
    pub(super) fn heed_end_of_term(&mut self, environment: &Environment, cx: &Context<'_>) {
        let ended_terms = environment.shared.ended_terms();
        if std::mem::replace(&mut self.ended_terms, ended_terms) != ended_terms {
            (0..self.peers.len()).for_each(|slot| self.close(slot, cx));
        }
    }

    /// Whether this turn's replies may be sent. What only the leader knows is told while no other member
    /// can lead: else the members are asked, and the worker wakes up when they have answered. Costs a
    /// comparison, and a load and a reading of the clock at a leader.
    pub(super) fn may_tell(&mut self, environment: &Environment, cx: &Context<'_>) -> bool {
        let shows = environment.shows_lead.get() || self.is_confirming;
        let Some(group) = environment.shared.group.as_ref().filter(|_| shows) else {
            return true;
        };
        if group.confirms_reads() {
            return self.is_confirmed(group, environment, cx);
        }
        if group.consensus().has_lease() {
            environment.shows_lead.set(false);
            return true;
        }
        match self.confirmation.take() {
            Confirmed::Asked => false,
            Confirmed::Refused => {
                self.close_unsent(cx);
                environment.shows_lead.set(false);
                true
            }
            // Again if the answer was given and the lease has ended since: commands ran meanwhile.
            Confirmed::NotAsked | Confirmed::Given => {
                self.ask_members(group, environment);
                false
            }
        }
    }

    /// Like [`may_tell`](Self::may_tell), where no lease does: whether the members have answered a question
    /// that was asked behind everything that the replies show. Meanwhile the worker reads no client's
    /// commands, so one question does for all that ran before it.
    fn is_confirmed(&mut self, group: &Group, environment: &Environment, cx: &Context<'_>) -> bool {
        match self.confirmation.take() {
            Confirmed::Asked => return false,
            Confirmed::Refused => {
                self.close_unsent(cx);
                environment.shows_lead.set(false);
                self.is_confirming = false;
                return true;
            }
            Confirmed::Given if !environment.shows_lead.get() => {
                self.is_confirming = false;
                return true;
            }
            // A wait has ended since the question, and its reply shows what the answer does not cover.
            Confirmed::NotAsked | Confirmed::Given => {}
        }
        self.is_confirming = true;
        environment.shows_lead.set(false);
        self.ask_members(group, environment);
        false
    }

    /// Asks the members whether this one still leads; the worker wakes up when they have answered.
    fn ask_members(&self, group: &Group, environment: &Environment) {
        self.confirmation.ask();
        let (confirmation, inboxes) = (Arc::clone(&self.confirmation), &environment.shared.inboxes);
        let inbox = Arc::clone(&inboxes[environment.index]);
        group.consensus().confirm(Box::new(move |is_given| {
            confirmation.answer(is_given);
            inbox.wake();
        }));
    }

    /// Closes the connections that have something to be sent: clients must not wait for a lead that may
    /// be elsewhere.
    fn close_unsent(&mut self, cx: &Context<'_>) {
        let has_unsent = |slot: &usize| {
            self.peer(*slot).is_some_and(|peer| !peer.connection.session.outbox.sendable().is_empty())
        };
        let unsent: Vec<usize> = self.flush.iter().copied().filter(has_unsent).collect();
        unsent.into_iter().for_each(|slot| self.close(slot, cx));
    }

    /// Whether the members have answered since the worker last looked.
    pub(super) fn is_answered(&self) -> bool {
        self.confirmation.is_answered()
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

#[cfg(test)]
mod tests {
    use crate::config::{ClusterReads, Config};
    use crate::durability::snapshots::Snapshots;
    use crate::group::Group;
    use crate::group::planted::{ME, Planted};
    use crate::net::event_loop::{EventLoop, WAKER};
    use crate::net::inbox::{Inbox, Message};
    use crate::net::listener;
    use crate::shared::Shared;
    use mio::{Poll, Waker};
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;
    use std::time::Duration;
    use tidemark_engine::Engine;
    use tidemark_log::{Clock, EntryId, Log, Lsn, Member, MemoryStorage, Options};

    /// A worker of a member that leads, driven by the test.
    struct Worker {
        turns: EventLoop,
        shared: Arc<Shared>,
        member: Member,
        clients: Vec<UnixStream>,
        planted: Arc<Planted>,
        directory: tempfile::TempDir,
    }

    impl Worker {
        /// Begins with two connected clients.
        fn new() -> Worker {
            Worker::reading_by(ClusterReads::Lease)
        }

        fn reading_by(reads: ClusterReads) -> Worker {
            let directory = tempfile::tempdir().expect("a directory");
            let path = directory.path().join("socket");
            let config = Config { port: 0, unixsocket: Some(path.clone()), ..Config::default() };
            let (log, member, _) =
                Log::open_member(Arc::new(MemoryStorage::new()), Options::default()).expect("an empty log");
            member.lead();
            let poll = Poll::new().expect("an event loop");
            let waker = Waker::new(poll.registry(), WAKER).expect("a waker");
            let mut listening = listener::listen(&config, 1).expect("a socket");
            let snapshots = Snapshots::new(Lsn::ZERO, &Clock::System).0;
            let (engine, inboxes) = (Engine::new(Arc::new(log), 4, 1), vec![Arc::new(Inbox::new(waker))]);
            let planted = Planted::leading();
            let group = Group::new(ME, Arc::clone(&planted) as _);
            let group = group.confirming_reads(reads == ClusterReads::Index);
            let shared = Arc::new(Shared::in_group(engine, snapshots, config, inboxes, Some(group)));
            let listeners = listening.by_worker.pop().expect("those of one worker");
            let turns = EventLoop::new(Arc::clone(&shared), 0, poll, listeners).expect("a worker");
            let clients = (0..2).map(|_| UnixStream::connect(&path).expect("is accepted")).collect();
            Worker { turns, shared, member, clients, planted, directory }
        }

        /// Has the first client send a change, and runs the worker until it has executed it.
        fn change(&mut self) {
            self.clients[0].write_all(b"SET k 1\r\n").expect("is read");
            while self.shared.engine.log().appended() == Lsn::ZERO {
                self.turn();
            }
            self.turn();
        }

        fn turn(&mut self) {
            // A worker with a message does not sleep.
            self.shared.inboxes[0].send(Message::PauseChanged);
            if let Some(task) = self.turns.begin_turn().expect("a turn") {
                task.run(self.shared.engine.log());
            }
            self.turns.end_turn();
        }

        /// Commits what was executed, which may be the work of another leader.
        fn commit(&self) {
            let records = self.member.take(Duration::ZERO).expect("a change");
            self.member.write_taken(EntryId { index: 1, term: 1 }, &records).expect("memory does not fail");
            self.member.commit(records.last_lsn());
        }

        /// What a client has received; `None` once its connection is closed.
        fn received(&self, client: usize) -> Option<String> {
            let mut buffer = [0; 100];
            self.clients[client].set_nonblocking(true).expect("a socket");
            match (&self.clients[client]).read(&mut buffer) {
                Ok(0) => None,
                Ok(count) => Some(String::from_utf8_lossy(&buffer[..count]).into_owned()),
                Err(error) => {
                    assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
                    Some(String::new())
                }
            }
        }
    }

    #[test]
    fn what_is_committed_in_its_term_is_answered() {
        let mut worker = Worker::new();
        worker.change();
        assert_eq!(worker.received(0).as_deref(), Some(""));
        worker.commit();
        worker.turn();
        assert_eq!(worker.received(0).as_deref(), Some("+OK\r\n"));
        assert_eq!(worker.received(1).as_deref(), Some(""));
    }

    #[test]
    fn a_leader_without_a_lease_tells_nothing_until_the_members_confirm_it() {
        let mut worker = Worker::new();
        worker.planted.set_lease(false);
        worker.change();
        worker.commit();
        worker.turn();
        worker.turn();
        assert_eq!(worker.received(0).as_deref(), Some(""), "another may have changed it");
        assert_eq!(worker.planted.answer(true), 1, "it asks once");
        worker.planted.set_lease(true);
        worker.turn();
        assert_eq!(worker.received(0).as_deref(), Some("+OK\r\n"));
    }

    #[test]
    fn a_leader_that_no_quorum_confirms_closes_who_would_have_been_answered() {
        let mut worker = Worker::new();
        worker.planted.set_lease(false);
        worker.change();
        worker.commit();
        worker.turn();
        worker.planted.answer(false);
        worker.turn();
        assert_eq!((worker.received(0), worker.received(1).as_deref()), (None, Some("")));
    }

    #[test]
    fn with_index_the_members_confirm_each_turn_and_no_command_runs_before_they_have_answered() {
        let mut worker = Worker::reading_by(ClusterReads::Index);
        let log = |worker: &Worker| worker.shared.engine.log().appended();
        worker.clients[0].write_all(b"GET k\r\n").expect("is read");
        while worker.planted.questions() == 0 {
            worker.turn();
        }
        worker.clients[1].write_all(b"SET k 1\r\nSET k 2\r\n").expect("is read");
        (0..5).for_each(|_| worker.turn());
        assert_eq!((worker.received(0).as_deref(), log(&worker)), (Some(""), Lsn::ZERO), "with a lease");
        assert_eq!(worker.planted.answer(true), 1);
        worker.turn();
        assert_eq!(worker.received(0).as_deref(), Some("$-1\r\n"));
        worker.turn();
        while log(&worker) == Lsn::ZERO {
            // The log may have had no room.
            worker.planted.answer(true);
            worker.turn();
        }
        worker.commit();
        (0..3).for_each(|_| worker.turn());
        assert_eq!(worker.received(1).as_deref(), Some(""), "it is committed, and not confirmed");
        let mut received = String::new();
        while received.len() < "+OK\r\n+OK\r\n".len() {
            worker.planted.answer(true);
            worker.turn();
            received += &worker.received(1).expect("the connection is open");
        }
        assert_eq!(received, "+OK\r\n+OK\r\n");
        // No more is asked than there is to tell.
        (0..5).for_each(|_| worker.turn());
        assert_eq!(worker.planted.questions(), 0);
    }

    #[test]
    fn with_index_the_clients_of_a_leader_that_is_not_confirmed_are_disconnected() {
        let mut worker = Worker::reading_by(ClusterReads::Index);
        worker.clients[0].write_all(b"GET k\r\n").expect("is read");
        while worker.planted.questions() == 0 {
            worker.turn();
        }
        worker.planted.answer(false);
        worker.turn();
        assert_eq!((worker.received(0), worker.received(1).as_deref()), (None, Some("")));
        worker.clients[1].write_all(b"GET k\r\n").expect("is read");
        while worker.planted.questions() == 0 {
            worker.turn();
        }
        worker.planted.answer(true);
        worker.turn();
        assert_eq!(worker.received(1).as_deref(), Some("$-1\r\n"));
    }

    fn end_term(shared: &Shared) {
        shared.count_ended_term();
        shared.end_term();
    }

    #[test]
    fn a_read_of_a_term_that_ends_while_the_lease_is_looked_at_is_not_answered() {
        let mut worker = Worker::new();
        worker.clients[0].write_all(b"GET k\r\n").expect("is read");
        let shared = Arc::clone(&worker.shared);
        // A member that follows needs no lease.
        worker.planted.at_next_look(move || end_term(&shared));
        while worker.planted.waits_for_look() {
            worker.turn();
        }
        assert_eq!((worker.received(0), worker.received(1)), (None, None));
    }

    #[test]
    fn the_end_of_a_term_closes_all_connections_and_answers_nothing_that_waits() {
        let mut worker = Worker::new();
        worker.change();
        end_term(&worker.shared);
        // The watermark passes the change: what stands there may be another leader's.
        worker.commit();
        worker.turn();
        assert_eq!((worker.received(0), worker.received(1)), (None, None));
        // Clients that connect later are served.
        worker
            .clients
            .push(UnixStream::connect(worker.directory.path().join("socket")).expect("is accepted"));
        worker.clients[2].write_all(b"PING\r\n").expect("is read");
        let answer = loop {
            match worker.received(2) {
                Some(nothing) if nothing.is_empty() => worker.turn(),
                answer => break answer,
            }
        };
        assert_eq!(answer.as_deref(), Some("+PONG\r\n"));
    }
}
