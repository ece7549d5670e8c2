//! Requests that a member refuses, because its log differs.

use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use fastrand::Rng;
use openraft::type_config::TypeConfigExt;
use tidemark_log::{Durability, EntryId};
use tokio::sync::mpsc;

use super::lock::lock;
use super::run::{simulate, world};
use crate::faults::Faults;
use crate::ids::NodeId;
use crate::net::Lane;
use crate::raft::Simulated;
use crate::wire::message::{AppendAnswer, Request};

#[test]
fn a_refused_request_leaves_the_connection_open() {
    const SEED: u64 = 1;
    let world = world(&mut Rng::with_seed(SEED), Durability::Always, Faults::default(), false);
    let panics = simulate(SEED, async || {
        world.is_healing.store(true, Ordering::Relaxed);
        world.network.breaks.store(0, Ordering::Relaxed);
        world.begin(3).await;
        Simulated::sleep(Duration::from_secs(1)).await;
        let (leading, leader) = world.leader().expect("a leader");
        let (ballot, end) = leader.node.driver.ballot_and_last();
        let ballot = ballot.expect("it was elected");
        let followers = lock(&world.running).clone().into_iter().find(|(node, _)| *node != leading);
        let (_, follower) = followers.expect("three members");
        let (requests, received) = mpsc::channel(4);
        let (sender, mut answers) = mpsc::channel(4);
        drop(Simulated::spawn(async move {
            follower.node.serve(NodeId(leading), Lane::Log, received, sender).await;
        }));
        let missing = EntryId { index: end.id.index + 1_000, ..end.id };
        let request = |previous| {
            let committed = EntryId::default();
            Bytes::from(Request::Append { ballot, previous, committed, entries: Vec::new() }.encode())
        };
        for previous in [missing, missing, end.id] {
            requests.send(request(previous)).await.expect("the connection is open");
        }
        let mut answer = async || AppendAnswer::decode(&answers.recv().await.expect("an answer"));
        assert_eq!(answer().await, Some(AppendAnswer::Conflict(missing)));
        assert_eq!(answer().await, Some(AppendAnswer::Conflict(missing)));
        assert_eq!(answer().await, Some(AppendAnswer::Matching(end.id)));
        world.is_over.store(true, Ordering::Relaxed);
        world.end();
    });
    assert!(panics.is_empty(), "{panics:?}");
}
