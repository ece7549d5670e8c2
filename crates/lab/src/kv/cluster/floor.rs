//! What a durable write costs at least: one sync of the disk and one round trip of the network.

use crate::folder::Folder;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// Costs in milliseconds, at the median.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Floor {
    /// A write of 4 KiB and its sync, by one thread.
    pub(super) sync: f64,
    /// The same by three threads at once, each with a file of its own: the members share the disk.
    pub(super) shared_sync: f64,
    /// A message of 64 bytes and its echo over TCP on this machine.
    pub(super) round_trip: f64,
}

const BLOCK_BYTES: usize = 4096;
const SYNCS: usize = 200;
/// Syncs that are not counted: the disk may be busy with what was written before.
const UNCOUNTED: usize = 20;
/// Limit for slow disks.
const SYNC_TIME_MAX: Duration = Duration::from_secs(2);
const MESSAGE_BYTES: usize = 64;
const ROUND_TRIPS: usize = 2000;

impl Floor {
    /// Measures it on the disk of the folder for temporary files.
    pub(super) fn measure() -> anyhow::Result<Self> {
        let folder = Folder::new()?;
        // What the last round left is written before, not meanwhile.
        rustix::fs::syncfs(File::open(folder.path())?)?;
        let file = &|number: usize| folder.path().join(format!("sync{number}"));
        let sync = median(syncs(&file(0))?);
        let shared = std::thread::scope(|scope| {
            let threads: Vec<_> = (1..=3).map(|number| scope.spawn(move || syncs(&file(number)))).collect();
            let times = threads.into_iter().map(|thread| thread.join().expect("it does not panic"));
            times.collect::<io::Result<Vec<_>>>()
        })?;
        Ok(Floor { sync, shared_sync: median(shared.concat()), round_trip: median(round_trips()?) })
    }

    /// Returns one sync and one round trip.
    pub(super) fn sum_ms(&self) -> f64 {
        self.sync + self.round_trip
    }
}

/// Writes blocks one after the other into a file that has its space, as the log does, and syncs each.
fn syncs(path: &std::path::Path) -> io::Result<Vec<f64>> {
    let file = File::create(path)?;
    file.write_all_at(&vec![0; BLOCK_BYTES * SYNCS], 0)?;
    file.sync_all()?;
    let (began, block) = (Instant::now(), [0xA5; BLOCK_BYTES]);
    let mut times = Vec::new();
    while times.len() < SYNCS && began.elapsed() < SYNC_TIME_MAX {
        let before = Instant::now();
        file.write_all_at(&block, (times.len() * BLOCK_BYTES) as u64)?;
        file.sync_data()?;
        times.push(before.elapsed().as_secs_f64() * 1e3);
    }
    let uncounted = UNCOUNTED.min(times.len() / 2);
    Ok(times.split_off(uncounted))
}

fn round_trips() -> io::Result<Vec<f64>> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    std::thread::scope(|scope| {
        let echo = scope.spawn(move || -> io::Result<()> {
            let (mut stream, _) = listener.accept()?;
            stream.set_nodelay(true)?;
            let mut message = [0; MESSAGE_BYTES];
            for _ in 0..ROUND_TRIPS {
                stream.read_exact(&mut message)?;
                stream.write_all(&message)?;
            }
            Ok(())
        });
        let mut stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let mut message = [0x5A; MESSAGE_BYTES];
        let mut times = Vec::with_capacity(ROUND_TRIPS);
        for _ in 0..ROUND_TRIPS {
            let before = Instant::now();
            stream.write_all(&message)?;
            stream.read_exact(&mut message)?;
            times.push(before.elapsed().as_secs_f64() * 1e3);
        }
        drop(stream);
        echo.join().expect("it does not panic")?;
        Ok(times)
    })
}

fn median(times: Vec<f64>) -> f64 {
    crate::statistics::Spread::of(&times).median
}

#[cfg(test)]
mod tests {
    use super::Floor;

    #[test]
    fn a_sync_and_a_round_trip_take_time() {
        let floor = Floor::measure().unwrap();
        for time in [floor.sync, floor.shared_sync, floor.round_trip] {
            assert!(time > 0.0, "{floor:?}");
        }
        assert!(floor.sum_ms() > floor.sync);
    }
}
