//! Peers of circuits, in turns with a circuit: transfer of values to another thread, round trips,
//! fan-out, and latency.
//!
//! All queues are unbounded, all values are `u64`, and the receiver is on its own core. A circuit's
//! await corresponds to a channel's request and reply: a value that is answered by a value in a
//! channel back.
//!
//! `cargo bench -p tidemark-circuit --features tidemark-lab/peers -- --against peers`; without the
//! feature the standard library's channel is the only peer.

#[cfg(feature = "peers")]
mod actor;
mod carrier;
mod channel;
mod circuit;
mod peer;
mod scenario;
mod unbounded;

use crate::micro::benchmark::Benchmark;
use peer::Peer;
use scenario::Scenario;

pub(super) fn suite() -> Vec<Benchmark> {
    let peers = all();
    Scenario::ALL.iter().flat_map(|scenario| peers.iter().map(|peer| peer.row(*scenario))).collect()
}

/// Returns all peers, first the baselines.
fn all() -> Vec<Peer> {
    let mut all = circuit::peers();
    all.extend(channel::peers());
    #[cfg(feature = "peers")]
    all.push(actor::peer());
    all
}

#[cfg(test)]
mod tests {
    use super::{Scenario, suite};

    #[test]
    fn all_peers_are_compared_with_a_circuit_entered_by_a_lane() {
        let rows = suite();
        for scenario in Scenario::ALL {
            let group = scenario.description().group;
            let mut members = rows.iter().filter(|row| row.group() == Some(group));
            let baseline = members.next().expect("a row").name();
            assert!(baseline.ends_with("_circuit_lane"), "{group}: {baseline}");
            assert!(members.any(|row| row.name().ends_with("_std_mpsc")), "{group}");
        }
    }
}
