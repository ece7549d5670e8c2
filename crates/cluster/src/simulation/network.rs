//! Connections of the simulation: ordered, with latencies, and cut in one or both directions.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use fastrand::Rng;
use openraft::type_config::TypeConfigExt;
use openraft::type_config::alias::InstantOf;
use tokio::sync::{mpsc, oneshot};

use super::disk::Disk;
use super::lock::lock;
use crate::ids::{NodeId, RandomId};
use crate::net::{Lane, Transport};
use crate::raft::{Node, Simulated};
use crate::skewed_runtime::{EVEN, at_speed};

type Moment = InstantOf<Simulated>;
/// A member that runs, and what it shows.
type Reachable = (Node<Simulated>, Arc<Peer>);
type Call = (Moment, Vec<u8>, oneshot::Sender<Bytes>);

/// Frames that may be under way on one connection.
const FRAMES_MAX: usize = 4096;

/// What a process shows to others when they connect, and which of them it admits.
pub(super) struct Peer {
    disk: Arc<Disk>,
    /// The directories of the members; none before the group has begun here.
    pub(super) members: Mutex<BTreeMap<u64, RandomId>>,
}

impl Peer {
    pub(super) fn new(disk: Arc<Disk>) -> Self {
        Self { disk, members: Mutex::default() }
    }

    /// Returns whether `directory` may be that of member `node`. One that is not listed may have
    /// joined since.
    fn admits(&self, node: u64, directory: RandomId) -> bool {
        lock(&self.members).get(&node).is_none_or(|listed| *listed == directory)
    }
}

/// The network between all members.
pub(super) struct Network {
    rng: Mutex<Rng>,
    /// Directions in which nothing arrives.
    pub(super) cut: Mutex<BTreeSet<(u64, u64)>>,
    running: Mutex<BTreeMap<u64, Reachable>>,
    /// How many of a million frames end their connection, with all that is under way.
    pub(super) breaks: AtomicU32,
    admits_new_disks: bool,
}

impl Network {
    pub(super) fn new(seed: u64, breaks: u32, admits_new_disks: bool) -> Arc<Self> {
        Arc::new(Self {
            rng: Mutex::new(Rng::with_seed(seed)),
            cut: Mutex::default(),
            running: Mutex::default(),
            breaks: AtomicU32::new(breaks),
            admits_new_disks,
        })
    }

    pub(super) fn connect(&self, node: u64, member: Node<Simulated>, peer: Arc<Peer>) {
        lock(&self.running).insert(node, (member, peer));
    }

    pub(super) fn disconnect(&self, node: u64) {
        lock(&self.running).remove(&node);
    }

    fn pause(&self, ms: std::ops::Range<u64>) -> Duration {
        Duration::from_millis(lock(&self.rng).u64(ms))
    }

    fn latency(&self) -> Duration {
        let mut rng = lock(&self.rng);
        let us = if rng.u32(..100) == 0 { rng.u64(5_000..60_000) } else { rng.u64(100..2_000) };
        Duration::from_micros(us)
    }

    fn is_cut(&self, from: u64, to: u64) -> bool {
        lock(&self.cut).contains(&(from, to))
    }

    /// Returns whether the frame that comes next from one to the other is lost, and its connection ends.
    fn loses(&self, from: u64, to: u64) -> bool {
        let breaks = self.breaks.load(Ordering::Relaxed);
        self.is_cut(from, to) || (breaks > 0 && lock(&self.rng).u32(..1_000_000) < breaks)
    }

    fn reach(&self, (from, me): (u64, &Peer), to: u64) -> Option<(Node<Simulated>, Arc<Disk>)> {
        if self.is_cut(from, to) || self.is_cut(to, from) {
            return None;
        }
        let (node, peer) = lock(&self.running).get(&to).cloned()?;
        let is_admitted = peer.admits(from, me.disk.directory) && me.admits(to, peer.disk.directory);
        (is_admitted || self.admits_new_disks).then(|| (node, peer.disk.clone()))
    }
}

type Links = BTreeMap<(u64, Lane), mpsc::UnboundedSender<Call>>;

/// One member's side of the network.
#[derive(Clone)]
pub(super) struct Wire {
    network: Arc<Network>,
    me: u64,
    peer: Arc<Peer>,
    links: Arc<Mutex<Links>>,
}

impl Wire {
    pub(super) fn new(network: Arc<Network>, me: u64, peer: Arc<Peer>) -> Self {
        Self { network, me, peer, links: Arc::default() }
    }
}

impl Transport for Wire {
    fn send(&self, to: NodeId, lane: Lane, frame: Vec<u8>) -> oneshot::Receiver<Bytes> {
        let (answer, receiver) = oneshot::channel();
        if self.peer.disk.is_alive() {
            let mut links = lock(&self.links);
            let link = links.entry((to.0, lane)).or_insert_with(|| {
                let (sender, calls) = mpsc::unbounded_channel();
                let link = run_link(self.network.clone(), (self.me, self.peer.clone()), to.0, lane, calls);
                // The network is none of the member: it has no skewed clock.
                drop(at_speed(EVEN, || Simulated::spawn(link)));
                sender
            });
            drop(link.send((at_speed(EVEN, Simulated::now), frame, answer)));
        }
        receiver
    }
}

/// Connects again and again, while there is something to send.
async fn run_link(
    network: Arc<Network>,
    (me, peer): (u64, Arc<Peer>),
    to: u64,
    lane: Lane,
    mut calls: mpsc::UnboundedReceiver<Call>,
) {
    while let Some(first) = calls.recv().await {
        Simulated::sleep(network.latency()).await;
        if let Some((node, disk)) = network.reach((me, &peer), to) {
            run_connection(&network, (me, to), lane, (node, disk), first, &mut calls).await;
            Simulated::sleep(network.pause(0..60)).await;
        } else {
            Simulated::sleep(network.pause(1..40)).await;
            drop(first);
            while calls.try_recv().is_ok() {}
        }
    }
}

/// Carries frames until the connection is cut, or a side is gone.
async fn run_connection(
    network: &Network,
    (me, to): (u64, u64),
    lane: Lane,
    (node, disk): (Node<Simulated>, Arc<Disk>),
    first: Call,
    calls: &mut mpsc::UnboundedReceiver<Call>,
) {
    let (requests, received) = mpsc::channel(FRAMES_MAX);
    let (sender, mut answers) = mpsc::channel(FRAMES_MAX);
    let speed = disk.speed;
    let serve = async move { node.serve(NodeId(me), lane, received, sender).await };
    drop(at_speed(speed, || Simulated::spawn(serve)));
    let (mut pending, mut out, mut back) = (VecDeque::new(), VecDeque::new(), VecDeque::new());
    let (mut last_out, mut last_back) = (Simulated::now(), Simulated::now());
    let (mut next, mut is_closed) = (Some(first), false);
    loop {
        if let Some((at, frame, answer)) = next.take() {
            last_out = last_out.max(at + network.latency());
            out.push_back((last_out, frame));
            pending.push_back(answer);
        }
        if is_closed && back.is_empty() {
            return;
        }
        let due: Option<Moment> =
            [out.front(), back.front()].into_iter().flatten().map(|(at, _): &(Moment, Vec<u8>)| *at).min();
        tokio::select! {
            biased;
            call = calls.recv() => match call {
                Some(call) => next = Some(call),
                None => return,
            },
            answer = answers.recv(), if !is_closed => match answer {
                // A process that has ended answers nothing.
                Some(_) if !disk.is_alive() => return,
                Some(frame) => {
                    last_back = last_back.max(Simulated::now() + network.latency());
                    back.push_back((last_back, frame));
                }
                None => is_closed = true,
            },
            () = Simulated::sleep_until(due.unwrap_or_else(Simulated::now)), if due.is_some() => {
                let now = Simulated::now();
                while let Some((_, frame)) = out.pop_front_if(|(at, _)| *at <= now) {
                    if network.loses(me, to) || !disk.is_alive() || requests.try_send(frame.into()).is_err() {
                        return;
                    }
                }
                while let Some((_, frame)) = back.pop_front_if(|(at, _)| *at <= now) {
                    if network.loses(to, me) {
                        return;
                    }
                    if let Some(answer) = pending.pop_front() {
                        drop(answer.send(frame.into()));
                    }
                }
            }
        }
    }
}
