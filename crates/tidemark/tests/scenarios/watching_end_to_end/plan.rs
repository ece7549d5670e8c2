//! Differences between cases: the configuration of the server, and how much it is disturbed.

use super::world::World;
use crate::commands::Random;
use crate::support::{Server, free_port};
use std::path::Path;

pub(crate) const DURABILITIES: [&str; 4] = ["always", "interval", "interval:5ms", "off"];

/// The plan of one case.
#[derive(Debug)]
pub(crate) struct Plan {
    arguments: Vec<String>,
    pub(crate) durability: &'static str,
    /// Bytes of the values that fill the retained memory; 0 if none are written.
    pub(crate) bulk_bytes: usize,
    /// Memory retains few emissions, and evicted ones are not replayed.
    pub(crate) forgets: bool,
    /// Reads without a subscriber are kept for a second.
    pub(crate) abandons: bool,
    /// The log removes segments that the older of two snapshots covers.
    pub(crate) retires: bool,
    /// The log does so while memory retains few emissions: a subscriber may fall below both.
    pub(crate) outruns: bool,
    pub(crate) disturbances: u64,
}

impl Plan {
    pub(crate) fn of(random: &mut Random) -> Self {
        let retires = random.once_in(2);
        let mut arguments = if retires {
            // The case takes the snapshots, and copies the segments before each.
            vec!["--log-segment-bytes=64kb".to_owned(), "--snapshot-after=0".to_owned()]
        } else {
            vec![
                "--log-retention-bytes=1gb".to_owned(),
                format!("--log-segment-bytes={}", random.pick(&["64kb", "256kb", "16mb"])),
                format!("--snapshot-after={}", random.pick(&["0", "0", "500", "2000"])),
            ]
        };
        arguments.push(format!("--threads={}", 1 + random.below(3)));
        if random.once_in(4) {
            arguments.push("--log-storage=mmap".to_owned());
        }
        let has_little_room = random.once_in(3);
        if has_little_room {
            arguments.push("--watch-retention-bytes=1mb".to_owned());
        }
        let forgets = has_little_room && random.once_in(3);
        if forgets || random.once_in(4) {
            arguments.push(format!("--watch-backlogs={}", u8::from(!forgets)));
        }
        let has_little_time = random.once_in(6);
        if has_little_time {
            arguments.push("--watch-retention-age=1".to_owned());
        }
        Self {
            arguments,
            durability: random.pick(&DURABILITIES),
            bulk_bytes: if has_little_room { 48 * 1024 } else { 0 },
            forgets,
            abandons: has_little_time,
            retires,
            outruns: retires && has_little_room,
            disturbances: 4 + random.below(5),
        }
    }

    /// Starts the server and announces its ports.
    pub(crate) fn start(&self, directory: &Path, world: &World) -> Server {
        let http_port = free_port();
        let others = [format!("--durability={}", self.durability), format!("--http=127.0.0.1:{http_port}")];
        let arguments = self.arguments.iter().chain(&others).map(String::as_str);
        let server = Server::start(directory, &arguments.collect::<Vec<_>>());
        world.set_ports(server.port, http_port);
        server
    }
}
