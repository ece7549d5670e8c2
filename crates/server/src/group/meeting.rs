//! A new member asks to be taken in, and a member that has heard of no leader asks who the members are,
//! because they may have changed while it was away. A leader looks whether all members know newer records,
//! and one that cannot write asks who can.

use super::full_disk::FullDisk;
use super::joining::{Told, ask, call};
use super::node::GroupNode;
use crate::config::Config;
use crate::observe::operator_line::RepeatedLines;
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tidemark_cluster::{Consensus as _, Member, Role};
use tidemark_log::Clock;

/// Pause between two rounds of questions.
const ROUND_PAUSE: Duration = Duration::from_millis(500);
/// Rounds without a leader before the others are asked who the members are.
const LONELY_ROUNDS: u32 = 4;

/// Starts the thread that asks, until the member is closed.
pub(crate) fn start(node: &Arc<GroupNode>, config: &Config, clock: &Clock) -> io::Result<()> {
    let meeting = Meeting::new(Arc::clone(node), config, clock);
    let is_over = Arc::clone(node.is_closed());
    let thread = std::thread::Builder::new().name("tidemark-meet".to_owned());
    // It may wait for an answer when the member is closed, so nothing waits for its end.
    thread.spawn(move || meeting.run(&is_over)).map(drop)
}

/// Asks other members, until the member is closed.
struct Meeting {
    node: Arc<GroupNode>,
    /// Members' servers that the settings name.
    named: Vec<String>,
    password: String,
    lines: RepeatedLines,
    disk: FullDisk,
    /// A committed list of the members had this one, while it asked to be taken in.
    is_taken_in: bool,
}

impl Meeting {
    fn new(node: Arc<GroupNode>, config: &Config, clock: &Clock) -> Meeting {
        let (named, password) = (config.cluster_join.clone(), config.requirepass.clone());
        let (lines, disk) = (RepeatedLines::new(clock), FullDisk::default());
        Meeting { node, named, password, lines, disk, is_taken_in: false }
    }

    fn run(mut self, is_over: &AtomicBool) {
        let (mut lonely, mut joins) = (0, self.node.seat.joins);
        while !is_over.load(Ordering::Acquire) {
            self.disk.look(&self.node, &self.password);
            if joins {
                joins = !self.join();
            }
            lonely = match self.node.group.role() {
                Role::Following { leader: None } => lonely + 1,
                _ => 0,
            };
            if lonely >= LONELY_ROUNDS {
                lonely = 0;
                if let Some(told) = self.ask_any() {
                    self.node.note_told(&told.members);
                    self.look_for_removal(&told);
                }
            }
            self.node.raise_level();
            std::thread::sleep(ROUND_PAUSE);
        }
    }

    fn say(&mut self, line: &str) {
        self.lines.write(line, line);
    }

    /// Servers that may be members.
    fn addresses(&self) -> Vec<String> {
        let me = self.node.seat.node;
        let members = self.node.group.members();
        let known = members.iter().chain(&self.node.seat.founders).filter(|member| member.id != me);
        let mut addresses = self.named.clone();
        addresses.extend(known.map(|member| member.client_address.clone()));
        let mut met = BTreeSet::new();
        addresses.retain(|address| met.insert(address.clone()));
        addresses
    }

    /// Returns what the leader says, or else any member of the cluster.
    fn ask_any(&self) -> Option<Told> {
        let mut any = None;
        for address in self.addresses() {
            let Ok(told) = ask(&address, &self.password) else { continue };
            if told.cluster != self.node.seat.cluster {
                continue;
            }
            if told.is_leader {
                return Some(told);
            }
            if any.as_ref().is_none_or(|any: &Told| any.leader.is_none()) {
                any = Some(told);
            }
        }
        any
    }

    /// Says so and returns true if the leader does not know this member, which has taken part. A leader that
    /// was cut off may have taken it in by an entry that was never committed: then it asks again.
    fn look_for_removal(&mut self, told: &Told) -> bool {
        let me = self.node.seat.node;
        let is_listed = told.members.iter().any(|member| member.id == me);
        let is_settled = told.is_leader && told.are_members_committed;
        self.is_taken_in |= is_settled && is_listed;
        let has_taken_part = self.node.group.status().is_named || (is_settled && self.is_taken_in);
        let is_removed = told.is_leader && !is_listed && has_taken_part;
        if is_removed {
            self.say(
                "warning: this member was removed from the cluster: stop it; to take part again, give it a new \
                 number and an empty directory",
            );
        }
        is_removed
    }

    /// Asks the leader to take this member in. Returns whether that is settled.
    fn join(&mut self) -> bool {
        let (node, me) = (Arc::clone(&self.node), self.node.seat.node);
        let votes = |members: &[Member]| members.iter().any(|member| member.id == me && member.is_voter);
        if votes(&node.group.members()) {
            self.say("this member takes part in the cluster, and votes");
            return true;
        }
        let Some(told) = self.ask_any() else {
            self.say("warning: no member of the cluster can be asked to take this one in");
            return false;
        };
        node.note_told(&told.members);
        if self.look_for_removal(&told) {
            return true;
        }
        if votes(&told.members) {
            return false;
        }
        let leader = told.members.iter().find(|member| Some(member.id) == told.leader);
        let Some(leader) = leader.map(|leader| leader.client_address.clone()) else {
            self.say("warning: the cluster has no leader that could take this member in");
            return false;
        };
        let Some(own) = node.seat.founders.iter().find(|member| member.id == me) else { return true };
        let (number, directory, cluster) =
            (me.to_string(), node.seat.directory.to_string(), node.seat.cluster.to_string());
        let command =
            ["CLUSTER", "JOIN", &number, &own.peer_address, &own.client_address, &directory, &cluster];
        match call(&leader, &self.password, &command) {
            Ok(answer) => match answer.as_error().map(String::from_utf8_lossy) {
                None => self.say(&format!("the leader at {leader} takes this member in")),
                // It is taken in, and behind: the numbers in the line change.
                Some(error) if error.contains("is taken in") => {
                    self.lines.write("behind", &format!("the leader at {leader} answers: {error}"));
                }
                // It is under way.
                Some(error) if error.starts_with("TRYAGAIN") || error.starts_with("MOVED") => {}
                Some(error) => {
                    self.say(&format!(
                        "warning: the leader at {leader} does not take this member in: {error}"
                    ));
                }
            },
            Err(error) => self.say(&format!("warning: the leader at {leader} cannot be asked: {error}")),
        }
        false
    }
}
