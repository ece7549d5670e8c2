//! Connections through a network that cuts, delays and changes what it carries.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fastrand::Rng;
use tidemark_cluster::NodeId;
use tidemark_cluster::net::{Lane, NetSettings, Peer, Roster, Tls};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::support::{Echo, Member, identity, patient, run};
use crate::tls::{authority, tls};

const TWO: NodeId = NodeId(2);

/// How a network treats the bytes of one direction.
#[derive(Clone)]
struct Network {
    /// Bytes passed at once at most.
    piece: usize,
    /// Pause between two pieces.
    pause: Duration,
    /// Whether pieces are lost, changed and repeated, and connections cut, now and then.
    is_hostile: Arc<AtomicBool>,
}

impl Network {
    async fn carry(self, mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin, mut random: Rng) {
        let mut buffer = vec![0; self.piece];
        loop {
            let length = random.usize(1..=self.piece);
            let Ok(read @ 1..) = from.read(&mut buffer[..length]).await else { return };
            let piece = &mut buffer[..read];
            if self.is_hostile.load(Ordering::Relaxed) {
                match random.u32(..400) {
                    0 => return,
                    1 => continue,
                    2 => piece[random.usize(..read)] ^= 1 << random.u32(..8),
                    3 if to.write_all(piece).await.is_err() => return,
                    _ => {}
                }
            }
            if to.write_all(piece).await.is_err() {
                return;
            }
            if !self.pause.is_zero() {
                tokio::time::sleep(self.pause).await;
            }
        }
    }
}

/// Two members. The first reaches the second through the network only.
async fn members_through(network: Network, settings: NetSettings, with: Option<Tls>) -> (Member, Member) {
    let one = Member::start_with(identity(1), settings.clone(), with.clone(), Echo);
    let two = Member::start_with(identity(2), settings, with, Echo);
    two.transport.set_roster(Roster { peers: [].into(), admits_unlisted: true });
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = format!("localhost:{}", listener.local_addr().expect("its address").port());
    let behind = two.address;
    tokio::spawn(async move {
        let mut random = Rng::with_seed(11);
        while let Ok((outer, _)) = listener.accept().await {
            let Ok(inner) = TcpStream::connect(behind).await else { continue };
            let (there, back) = (network.clone(), network.clone());
            let (first, second) = (random.fork(), random.fork());
            tokio::spawn(async move {
                let (outer_in, outer_out) = outer.into_split();
                let (inner_in, inner_out) = inner.into_split();
                tokio::select! {
                    () = there.carry(outer_in, inner_out, first) => {}
                    () = back.carry(inner_in, outer_out, second) => {}
                }
            });
        }
    });
    let peers = [(TWO, Peer { address, directory: None })].into();
    one.transport.set_roster(Roster { peers, admits_unlisted: false });
    (one, two)
}

/// Sends numbered frames of many sizes; checks each answer that comes. Returns how many came.
async fn answered(one: &Member, frames: u32, random: &mut Rng) -> usize {
    let mut answered = 0;
    for first in (0..frames).step_by(20) {
        let batch: Vec<_> = (first..first + 20)
            .map(|number| {
                let size = [10, 200, 5_000, 40_000][random.usize(..4)];
                let frame = [&number.to_le_bytes()[..], &vec![number as u8; random.usize(..size)]].concat();
                let lane = Lane::ALL[random.usize(..4)];
                let begin = [&[1, lane.code()], &frame[..frame.len().min(1000)]].concat();
                (begin, one.send(TWO, lane, frame))
            })
            .collect();
        for (expected, answer) in batch {
            if let Ok(answer) = answer.await {
                assert!(answer == expected, "{} bytes came, {} were sent", answer.len(), expected.len());
                answered += 1;
            }
        }
    }
    answered
}

async fn survives_hostility(with: Option<Tls>) {
    let is_hostile = Arc::new(AtomicBool::new(true));
    let network = Network { piece: 3_000, pause: Duration::ZERO, is_hostile: Arc::clone(&is_hostile) };
    let settings = NetSettings {
        patience: Duration::from_millis(100),
        disk_patience: Duration::from_millis(100),
        snapshot_patience: Duration::from_millis(100),
        ..NetSettings::default()
    };
    let (one, two) = members_through(network, settings, with).await;
    let mut random = Rng::with_seed(5);
    let came = answered(&one, 800, &mut random).await;
    assert!((1..800).contains(&came), "{came} of 800 frames were answered");
    is_hostile.store(false, Ordering::Relaxed);
    for lane in Lane::ALL {
        one.ask_until_answered(&two, lane, b"quiet again").await;
    }
    // A busy machine may still be late for this patience: some round has all of its answers.
    while answered(&one, 200, &mut random).await < 200 {}
}

#[test]
fn no_answer_is_wrong_in_a_network_that_cuts_loses_changes_and_repeats() {
    run(survives_hostility(None));
}

#[test]
fn no_answer_is_wrong_behind_tls_either() {
    run(async {
        let authority = authority();
        survives_hostility(Some(tls(&authority, &authority, "localhost"))).await;
    });
}

#[test]
fn frames_arrive_whole_in_a_network_that_passes_a_few_bytes_at_a_time() {
    run(async {
        let network = Network { piece: 41, pause: Duration::ZERO, is_hostile: Arc::default() };
        let (one, two) = members_through(network, patient(), None).await;
        for lane in Lane::ALL {
            one.ask_until_answered(&two, lane, b"x").await;
        }
        assert_eq!(answered(&one, 40, &mut Rng::with_seed(1)).await, 40);
    });
}

#[test]
fn a_slow_network_gets_time_for_large_frames() {
    run(async {
        // About 4 MB/s: 400 KB take longer than the patience alone.
        let network =
            Network { piece: 16 << 10, pause: Duration::from_millis(2), is_hostile: Arc::default() };
        let patient = NetSettings {
            patience: Duration::from_millis(60),
            disk_patience: Duration::from_millis(60),
            slowest_bytes_per_second: 64 << 10,
            ..NetSettings::default()
        };
        let (one, two) = members_through(network.clone(), patient.clone(), None).await;
        one.ask_until_answered(&two, Lane::Log, &vec![0; 400_000]).await;

        let impatient = NetSettings { slowest_bytes_per_second: 1 << 30, ..patient };
        let (one, two) = members_through(network, impatient, None).await;
        one.ask_until_answered(&two, Lane::Log, b"x").await;
        assert!(one.ask(&two, Lane::Log, &vec![0; 4_000_000]).await.is_none());
        one.reports.error_with("requests have no answer after").await;
    });
}
