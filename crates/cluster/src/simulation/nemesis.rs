//! What goes wrong in a simulated group, and what its operator does.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use fastrand::Rng;
use openraft::type_config::TypeConfigExt;

use super::lock::lock;
use super::run::HEAL;
use super::world::{Running, World, count};
use crate::ids::NodeId;
use crate::raft::Simulated;
use crate::skewed_runtime::{AtSpeed, at_speed};

/// Most members of a simulated group.
const MEMBERS_MAX: usize = 6;
/// How long the operator lets a change wait for a member.
const CHANGE_PATIENCE: Duration = Duration::from_millis(800);
/// Pause between two attempts of the operator.
const OPERATOR_PAUSE: Duration = Duration::from_millis(100);

impl World {
    /// Ends all faults but those of members.
    pub(super) fn heal(&self) {
        lock(&self.network.cut).clear();
        for running in lock(&self.running).values() {
            running.disk.slow_us.store(0, Ordering::Relaxed);
        }
    }

    /// Cuts all directions between two sets of members.
    fn part(&self, one: &[u64], other: &[u64]) {
        let pairs = one.iter().flat_map(|a| other.iter().flat_map(|b| [(*a, *b), (*b, *a)]));
        lock(&self.network.cut).extend(pairs);
    }

    /// Makes faults for a while.
    pub(super) async fn nemesis(self: &Arc<Self>, rng: &mut Rng) {
        let began = Simulated::now();
        let lasts = Duration::from_millis(rng.u64(2_000..5_000));
        let changes_members = rng.bool();
        while Simulated::now() - began < lasts {
            self.strike(rng, changes_members);
            self.check();
            Simulated::sleep(Duration::from_micros(rng.u64(2_000..350_000))).await;
            if rng.u32(..10) < 4 {
                lock(&self.network.cut).clear();
            }
        }
    }

    fn strike(self: &Arc<Self>, rng: &mut Rng, changes_members: bool) {
        let nodes = self.nodes();
        let node = nodes[rng.usize(..nodes.len())];
        let leader = self.leader();
        let leads = leader.as_ref().map(|(node, _)| *node);
        let victim = leads.filter(|_| rng.u32(..10) < 6).unwrap_or(node);
        let others: Vec<u64> = nodes.iter().copied().filter(|node| *node != victim).collect();
        match rng.u32(..if changes_members { 20 } else { 16 }) {
            0..3 => self.crash(victim, rng.bool(), rng.u64(1..500)),
            3 => {
                let has_power = rng.bool();
                nodes.iter().for_each(|node| self.crash(*node, has_power, rng.u64(1..200)));
            }
            4 => {
                // A majority, the leader among them.
                for node in nodes.iter().filter(|node| Some(**node) == leads || rng.u32(..10) < 6) {
                    self.crash(*node, false, 1 + node * 60);
                }
            }
            5 => self.part(&[victim], &others),
            6 => lock(&self.network.cut).extend(others.iter().map(|node| (victim, *node))),
            7 => lock(&self.network.cut).extend(others.iter().map(|node| (*node, victim))),
            8 => {
                let (one, other): (Vec<u64>, Vec<u64>) = nodes.iter().copied().partition(|_| rng.bool());
                self.part(&one, &other);
            }
            9 => {
                // Two parts, and one member that both reach.
                let bridged = others.len() / 2;
                self.part(&others[..bridged], &others[bridged..]);
            }
            10 => drop(lock(&self.network.cut).insert((node, victim))),
            11 => {
                let slow = rng.u64(1_000..150_000);
                if let Some(running) = lock(&self.running).get(&victim) {
                    running.disk.slow_us.store(slow, Ordering::Relaxed);
                }
            }
            12 => {
                let patience = Duration::from_millis(rng.u64(1..600));
                if let Some((_, leader)) = leader {
                    let (world, leading) = (self.clone(), leader.node.clone());
                    operate(&leader, async move {
                        if leading.transfer(NodeId(node), patience).await.is_ok() {
                            count(&world.counts.transfers);
                        }
                    });
                }
            }
            13 => self.heal(),
            14 | 15 => {
                if let Some(running) = lock(&self.running).get(&victim).cloned() {
                    self.end_within_a_call(victim, &running.disk);
                }
            }
            16 => self.wipe(victim),
            17 | 18 => {
                let Some((_, leader)) = leader else { return };
                let wiped = lock(&self.wiped).first().copied();
                match wiped {
                    Some(node) => operate(&leader, self.clone().retire(leader.clone(), node)),
                    None if nodes.len() < MEMBERS_MAX => {
                        operate(&leader, self.clone().join(leader.clone()));
                    }
                    None => {}
                }
            }
            _ => {
                let Some((_, leader)) = leader else { return };
                if self.may_remove() {
                    operate(&leader, self.clone().retire(leader.clone(), node));
                }
            }
        }
    }

    /// Starts a member with an empty directory, and has it join.
    async fn join(self: Arc<Self>, leader: Running) {
        let node = self.next_node.fetch_add(1, Ordering::Relaxed);
        let member = self.provide(node);
        self.start(node).await;
        let joined = leader.node.join(member, CHANGE_PATIENCE).await;
        self.history.note(format_args!("member {node} joins: {joined:?}"));
        if joined.is_ok() {
            count(&self.counts.changes);
        }
    }

    /// Removes a member, and ends its process.
    async fn retire(self: Arc<Self>, leader: Running, node: u64) {
        self.removing.fetch_add(1, Ordering::Relaxed);
        let removed = leader.node.remove(NodeId(node), CHANGE_PATIENCE).await;
        self.history.note(format_args!("member {node} is removed: {removed:?}"));
        self.removing.fetch_sub(1, Ordering::Relaxed);
        if removed.is_ok() {
            count(&self.counts.changes);
            self.dispose(node);
        }
    }

    /// Ends a process for good.
    fn dispose(self: &Arc<Self>, node: u64) {
        drop(lock(&self.media).remove(&node));
        lock(&self.wiped).remove(&node);
        if let Some(running) = self.kill(node) {
            self.bury(running);
        }
    }

    /// Has the operator remove members without a disk, and those that never joined.
    pub(super) async fn finish_changes(self: &Arc<Self>) {
        let began = Simulated::now();
        while Simulated::now() - began < HEAL {
            Simulated::sleep(OPERATOR_PAUSE).await;
            let Some((_, leader)) = self.leader() else { continue };
            let Some(members) = leader.node.members() else { continue };
            let wiped = lock(&self.wiped).clone();
            if let Some(node) = wiped.iter().find(|node| members.nodes.contains_key(node)) {
                at_leader(&leader, self.clone().retire(leader.clone(), *node)).await;
                continue;
            }
            let strangers = self.nodes().into_iter().filter(|node| !members.nodes.contains_key(node));
            for node in strangers.collect::<Vec<_>>() {
                self.dispose(node);
            }
            return;
        }
        self.history.fail(format!("members cannot be replaced in {HEAL:?} after all faults"));
    }
}

/// Runs what an operator asks of a leader, with the leader's clock.
fn operate(leader: &Running, task: impl Future<Output = ()> + Send + 'static) {
    drop(at_speed(leader.disk.speed, || Simulated::spawn(task)));
}

async fn at_leader(leader: &Running, task: impl Future<Output = ()>) {
    AtSpeed::new(leader.disk.speed, task).await;
}
