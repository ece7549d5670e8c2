//! Consensus that says what a test wants.

use crate::config::ClusterTls;

use super::{Confirmation, Consensus, Member, NodeId, Published, Refusal, Role, Status, Term};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tidemark_log::Durability;

/// The member whose server is tested.
pub(crate) const ME: NodeId = NodeId(1);
/// Another member.
pub(crate) const OTHER: NodeId = NodeId(0xab);

/// Consensus that says what a test wants.
pub(crate) struct Planted {
    role: Mutex<Role>,
    refusal: Mutex<Option<Refusal>>,
    is_fresh: AtomicBool,
    has_lease: AtomicBool,
    /// What happens when the lease is looked at next.
    at_look: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    asked: Mutex<Vec<Confirmation>>,
    status: Mutex<Status>,
    published: Mutex<Vec<Published>>,
    syncs: AtomicUsize,
    mode: Mutex<Durability>,
}

impl Planted {
    pub(crate) fn leading() -> Arc<Planted> {
        Arc::new(Planted {
            role: Mutex::new(Role::Leading { term: Term(7) }),
            refusal: Mutex::default(),
            is_fresh: true.into(),
            has_lease: true.into(),
            at_look: Mutex::default(),
            asked: Mutex::default(),
            status: Mutex::new(Status { term: Term(7), ..Status::default() }),
            published: Mutex::default(),
            syncs: AtomicUsize::new(0),
            mode: Mutex::new(Durability::Off),
        })
    }

    pub(crate) fn lead(&self) {
        *self.role.lock().expect("unpoisoned") = Role::Leading { term: Term(7) };
        *self.refusal.lock().expect("unpoisoned") = None;
    }

    pub(crate) fn follow(&self, leader: Option<NodeId>) {
        *self.role.lock().expect("unpoisoned") = Role::Following { leader };
        self.refuse(leader.map_or(Refusal::NoLeader, Refusal::Moved));
    }

    pub(crate) fn set_fresh(&self, is_fresh: bool) {
        self.is_fresh.store(is_fresh, Ordering::Relaxed);
    }

    pub(crate) fn set_lease(&self, has_lease: bool) {
        self.has_lease.store(has_lease, Ordering::Relaxed);
    }

    /// Has something happen while the lease is looked at next.
    pub(crate) fn at_next_look(&self, happen: impl FnOnce() + Send + 'static) {
        *self.at_look.lock().expect("unpoisoned") = Some(Box::new(happen));
    }

    /// Returns whether what was to happen has not.
    pub(crate) fn waits_for_look(&self) -> bool {
        self.at_look.lock().expect("unpoisoned").is_some()
    }

    pub(crate) fn set_status(&self, status: Status) {
        *self.status.lock().expect("unpoisoned") = status;
    }

    /// Returns what was published for other members.
    pub(crate) fn published(&self) -> Vec<Published> {
        std::mem::take(&mut *self.published.lock().expect("unpoisoned"))
    }

    /// Returns how often a sync was requested.
    pub(crate) fn syncs(&self) -> usize {
        self.syncs.load(Ordering::Relaxed)
    }

    /// Returns how many questions are open.
    pub(crate) fn questions(&self) -> usize {
        self.asked.lock().expect("unpoisoned").len()
    }

    /// Answers who has asked the members.
    pub(crate) fn answer(&self, is_given: bool) -> usize {
        let asked = std::mem::take(&mut *self.asked.lock().expect("unpoisoned"));
        let count = asked.len();
        asked.into_iter().for_each(|then| then(is_given));
        count
    }

    pub(crate) fn refuse(&self, refusal: Refusal) {
        *self.refusal.lock().expect("unpoisoned") = Some(refusal);
    }
}

impl Consensus for Planted {
    fn role(&self) -> Role {
        *self.role.lock().expect("unpoisoned")
    }

    fn admit(&self) -> Result<Term, Refusal> {
        self.refusal.lock().expect("unpoisoned").map_or(Ok(Term(7)), Err)
    }

    fn has_lease(&self) -> bool {
        if let Some(happen) = self.at_look.lock().expect("unpoisoned").take() {
            happen();
        }
        self.has_lease.load(Ordering::Relaxed)
    }

    fn confirm(&self, then: Confirmation) {
        self.asked.lock().expect("unpoisoned").push(then);
    }

    fn renew_tls(&self, _: &ClusterTls) -> Result<(), String> {
        Ok(())
    }

    fn durability(&self) -> Durability {
        *self.mode.lock().expect("unpoisoned")
    }

    fn set_durability(&self, durability: Durability) -> Result<(), String> {
        *self.mode.lock().expect("unpoisoned") = durability;
        Ok(())
    }

    fn is_fresh(&self) -> bool {
        self.is_fresh.load(Ordering::Relaxed)
    }

    fn members(&self) -> Vec<Member> {
        let member =
            |id, address: &str, is_reachable| Member { id, client_address: address.into(), is_reachable };
        vec![
            member(ME, "10.0.0.1:6379", true),
            member(OTHER, "[fd00::2]:7000", true),
            member(NodeId(3), "c.example:6379", false),
        ]
    }

    fn status(&self) -> Status {
        self.status.lock().expect("unpoisoned").clone()
    }

    fn request_sync(&self) {
        self.syncs.fetch_add(1, Ordering::Relaxed);
    }

    fn publish(&self, message: Published) {
        self.published.lock().expect("unpoisoned").push(message);
    }
}
