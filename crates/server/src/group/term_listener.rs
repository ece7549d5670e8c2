//! What the consensus decides, passed on to memory, messages and the network.

use super::leadership::Leadership;
use super::messages::Messages;
use super::notices::{Events, Notice};
use super::replacing::Replacing;
use crate::observe::operator_line::say;
use std::sync::{Arc, OnceLock};
use tidemark_cluster::net::{Peer, Roster, TcpTransport};
use tidemark_cluster::{Level, Member, NodeId, Term, TermListener};
use tidemark_log::Lsn;

/// Passes on what the group decides: to memory, and to the network.
pub(super) struct Listener {
    pub(super) me: NodeId,
    pub(super) replacing: Replacing,
    pub(super) founders: Vec<Member>,
    pub(super) leadership: Arc<Leadership>,
    pub(super) messages: Arc<Messages>,
    pub(super) events: Arc<Events>,
    /// `None` until the member is connected.
    pub(super) transport: OnceLock<TcpTransport>,
}

impl TermListener for Listener {
    fn begin_term(&self, term: Term, lsn: Lsn) {
        self.messages.begin_term(term);
        self.leadership.begin_term(term, lsn);
    }

    fn end_term(&self, _term: Term) {
        self.messages.end_term();
        self.leadership.end_term();
    }

    fn level(&self, level: Level) {
        if let Some(transport) = self.transport.get() {
            transport.set_level(level);
        }
        self.leadership.note_level(level);
    }

    fn damaged(&self, damage: &str) {
        let (replacing, leadership) = (self.replacing.clone(), Arc::clone(&self.leadership));
        let damage = damage.to_owned();
        // The consensus does not wait for the disk. Without the thread, the scrub finds the damage.
        let thread = std::thread::Builder::new().name("tidemark-damage".to_owned());
        drop(thread.spawn(move || {
            if replacing.request(&damage)
                && let Some(server) = leadership.server()
            {
                server.stop_gracefully();
            }
        }));
    }

    fn progressed(&self) {
        if let Some(server) = self.leadership.server() {
            server.inboxes.iter().for_each(|inbox| inbox.copies_moved());
        }
    }

    fn snapshot_wanted(&self) {
        if let Some(server) = self.leadership.server()
            && server.engine.is_loaded()
        {
            server.snapshots.request(None);
        }
    }

    fn snapshot_unsent(&self, to: NodeId, reason: &str) {
        let line = format!(
            "warning: member {to} lacks what this leader no longer has in its log, and does not get a snapshot: \
             {reason}; it is tried again"
        );
        self.events.tell(Notice::Repeated { kind: format!("a snapshot to {to}"), line });
    }

    fn snapshot_refused(&self, reason: &str) {
        let line = format!(
            "warning: this member needs a snapshot of the leader, and does not take it: {reason}. It stays behind \
             until that is repaired; the leader tries it again by itself"
        );
        self.events.tell(Notice::Repeated { kind: "a snapshot of the leader".to_owned(), line });
    }

    fn end_log(&self, end: Lsn) {
        self.leadership.end_log(end);
    }

    fn cut(&self, lsn: Lsn) {
        self.leadership.cut(lsn);
    }

    fn install(&self, install: &mut dyn FnMut()) {
        say("this member lacks what the others keep of the log: it installs a snapshot of the leader");
        self.leadership.replace_log(install);
    }

    fn close_gate(&self) -> Result<(), String> {
        self.leadership.close_gate()
    }

    fn send_answers(&self) {
        self.leadership.send_answers();
    }

    fn open_gate(&self) {
        self.leadership.open_gate();
    }

    fn members(&self, members: &[Member]) {
        self.messages.set_peers(others(self.me, members));
        if let Some(transport) = self.transport.get() {
            transport.set_roster(roster(self.me, &known(self.me, members, &self.founders)));
        }
    }
}

/// Returns the other members.
pub(super) fn others(me: NodeId, members: &[Member]) -> Vec<NodeId> {
    members.iter().map(|member| member.id).filter(|id| *id != me).collect()
}

/// Returns the members by the newest entry that names them. Until that names this member, which has not got
/// all entries yet, those that it was told of when it joined are members too.
pub(super) fn known(me: NodeId, members: &[Member], founders: &[Member]) -> Vec<Member> {
    let mut known = members.to_vec();
    if members.iter().all(|member| member.id != me) {
        let is_new = |founder: &&Member| members.iter().all(|member| member.id != founder.id);
        known.extend(founders.iter().filter(is_new).cloned());
    }
    known
}

/// Returns the members that a member admits: all others.
pub(super) fn roster(me: NodeId, members: &[Member]) -> Roster {
    let others = members.iter().filter(|member| member.id != me);
    let peer = |member: &Member| {
        (member.id, Peer { address: member.peer_address.clone(), directory: member.directory })
    };
    Roster { peers: others.map(peer).collect(), admits_unlisted: false }
}
