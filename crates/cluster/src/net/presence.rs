//! Which process stands behind each member's connections: one at a time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::roster::Roster;
use crate::ids::{NodeId, RandomId};

/// The processes that this member is connected with, in either direction.
#[derive(Clone, Debug, Default)]
pub(super) struct Presence {
    present: Arc<Mutex<BTreeMap<NodeId, Process>>>,
}

#[derive(Debug)]
struct Process {
    id: RandomId,
    connections: usize,
}

/// Keeps a process present while its connection lasts.
#[derive(Debug)]
pub(super) struct Present {
    presence: Presence,
    node: NodeId,
}

impl Presence {
    /// Adds a connection of a process. The error says why two processes cannot be one member.
    pub(super) fn enter(&self, node: NodeId, process: RandomId) -> Result<Present, String> {
        let mut present = self.lock();
        if present.len() >= Roster::MEMBERS_MAX && !present.contains_key(&node) {
            return Err(format!("there are connections of {} members already", present.len()));
        }
        let found = present.entry(node).or_insert(Process { id: process, connections: 0 });
        if found.id != process {
            return Err(format!(
                "another process is connected as node {node}; stop one of the two: they use one \
                 directory or copies of it"
            ));
        }
        found.connections += 1;
        Ok(Present { presence: self.clone(), node })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<NodeId, Process>> {
        self.present.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        let mut present = self.presence.lock();
        if let Some(process) = present.get_mut(&self.node) {
            process.connections -= 1;
            if process.connections == 0 {
                present.remove(&self.node);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: NodeId = NodeId(1);

    fn process(number: u8) -> RandomId {
        RandomId([number; 16])
    }

    #[test]
    fn a_member_is_one_process_at_a_time() {
        let presence = Presence::default();
        let first = presence.enter(NODE, process(1)).expect("the first process");
        let second = presence.enter(NODE, process(1)).expect("another connection of it");
        let refusal = presence.enter(NODE, process(2)).expect_err("another process");
        assert!(refusal.contains("another process is connected as node 1"), "{refusal}");
        presence.enter(NodeId(2), process(2)).expect("another member");
        drop(first);
        assert!(presence.enter(NODE, process(2)).is_err());
        drop(second);
        presence.enter(NODE, process(2)).expect("the first process is gone");
    }

    #[test]
    fn members_are_limited() {
        let presence = Presence::default();
        let enter = |node: usize| presence.enter(NodeId(node as u64), process(1));
        let present: Vec<Present> = (0..Roster::MEMBERS_MAX).map(|node| enter(node).expect("room")).collect();
        assert!(enter(Roster::MEMBERS_MAX).is_err());
        assert!(enter(0).is_ok());
        drop(present);
        assert!(enter(Roster::MEMBERS_MAX).is_ok());
    }
}
