//! A leader whose process is killed, so that its connections close.

use std::sync::atomic::Ordering;
use std::time::Duration;

use fastrand::Rng;
use openraft::type_config::TypeConfigExt;
use tidemark_log::Durability;

use super::run::{simulate, world};
use crate::faults::Faults;
use crate::raft::Simulated;

#[test]
fn members_that_see_a_leader_go_do_not_split_their_votes() {
    const SEEDS: u64 = 20;
    let mut elections = 0;
    for (seed, members) in (0..SEEDS).map(|seed| (seed, [3, 5][seed as usize % 2])) {
        let world = world(&mut Rng::with_seed(seed), Durability::Always, Faults::default(), false);
        let panics = simulate(seed, async || {
            world.is_healing.store(true, Ordering::Relaxed);
            world.network.breaks.store(0, Ordering::Relaxed);
            world.begin(members).await;
            Simulated::sleep(Duration::from_secs(1)).await;
            let (node, leader) = world.leader().expect("a leader");
            let term = leader.leading().expect("it leads");
            world.bury(world.kill(node).expect("runs"));
            Simulated::sleep(Duration::from_secs(2)).await;
            let (_, next) = world.leader().expect("another leader");
            elections += next.leading().expect("it leads").0 - term.0;
            world.is_over.store(true, Ordering::Relaxed);
            world.end();
        });
        assert!(panics.is_empty(), "seed {seed}: {panics:?}");
    }
    // A message of a hundred takes as long as an election.
    assert!(elections <= SEEDS + 2, "{elections} elections for {SEEDS} leaders");
}
