//! A group most of whose members may have lost entries.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use fastrand::Rng;
use openraft::type_config::TypeConfigExt;
use tidemark_log::Durability;

use super::lock::lock;
use super::run::{simulate, world};
use super::world::World;
use crate::faults::Faults;
use crate::raft::Simulated;

impl World {
    /// Ends a member's process by a power failure, whatever the others have lost.
    fn fail_power(self: &Arc<Self>, node: u64) {
        let running = self.kill(node).expect("runs");
        let power = Some(self.random(|rng| rng.u64(..)));
        let media = lock(&self.media)[&node].after_crash(power, true);
        lock(&self.media).insert(node, media);
        self.bury(running);
    }

    fn terms(&self) -> usize {
        self.history.terms()
    }
}

#[test]
fn a_majority_of_suspects_elects_no_leader_until_the_loss_is_accepted() {
    for seed in 0..10 {
        let mut rng = Rng::with_seed(seed);
        let durability = Durability::Interval(Duration::from_millis(30));
        let world = world(&mut rng, durability, Faults::default(), false);
        let panics = simulate(seed, async || {
            world.is_healing.store(true, Ordering::Relaxed);
            world.network.breaks.store(0, Ordering::Relaxed);
            world.begin(3).await;
            drop(Simulated::spawn(world.clone().client(1, 4_000)));
            Simulated::sleep(Duration::from_secs(1)).await;
            assert!(world.terms() > 0, "seed {seed}: the group begins");
            for node in 1..=3 {
                world.fail_power(node);
            }
            let terms = world.terms();
            lock(&world.media)[&1].accept_loss();
            for node in 1..=3 {
                world.start(node).await;
            }
            Simulated::sleep(Duration::from_secs(10)).await;
            assert_eq!(world.terms(), terms, "seed {seed}: one vote of three elects no leader");
            // The operator accepts what a second one has lost.
            let running = world.kill(2).expect("runs");
            world.bury(running);
            let media = lock(&world.media)[&2].after_crash(None, true);
            lock(&world.media).insert(2, media);
            lock(&world.media)[&2].accept_loss();
            world.start(2).await;
            Simulated::sleep(Duration::from_secs(10)).await;
            assert!(world.terms() > terms, "seed {seed}: two votes of three elect a leader");
            // What the third one knows to be committed may be what the others have lost: it takes
            // nothing back, and takes no part any more.
            let failure = lock(&world.running)[&3].node.status().failure;
            let is_caught_up = !lock(&world.media)[&3].is_suspect();
            match failure {
                None => assert!(is_caught_up, "seed {seed}: the third is caught up"),
                Some(failure) => {
                    let words = ["is committed here", "does not follow the log's newest one"];
                    let is_told = words.iter().any(|words| failure.contains(words));
                    assert!(is_told && !is_caught_up, "seed {seed}: {failure}");
                }
            }
            world.is_over.store(true, Ordering::Relaxed);
            world.end();
        });
        assert!(panics.is_empty(), "seed {seed}: {panics:?}");
    }
}
