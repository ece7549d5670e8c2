//! Frames between members that know each other.

use std::time::Duration;

use bytes::Bytes;
use tidemark_cluster::NodeId;
use tidemark_cluster::net::{Lane, NetSettings, Peer, Roster, Service};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use crate::support::{Echo, Member, identity, introduce, patient, run, until};

const ONE: NodeId = NodeId(1);
const TWO: NodeId = NodeId(2);

/// Gives no answer.
#[derive(Clone)]
struct Silent;

impl Service for Silent {
    async fn serve(
        &self,
        _: NodeId,
        _: Lane,
        requests: mpsc::Receiver<Bytes>,
        answers: mpsc::Sender<Vec<u8>>,
    ) {
        answers.closed().await;
        drop(requests);
    }
}

fn impatient() -> NetSettings {
    NetSettings {
        patience: Duration::from_millis(60),
        disk_patience: Duration::from_millis(60),
        ..NetSettings::default()
    }
}

#[test]
fn every_lane_answers_in_both_directions() {
    run(async {
        let (one, two) = (Member::start(identity(1)), Member::start(identity(2)));
        introduce(&[&one, &two]);
        for lane in Lane::ALL {
            let answer = one.ask_until_answered(&two, lane, b"there").await;
            assert_eq!(answer, [&[1, lane.code()], &b"there"[..]].concat());
            let answer = two.ask_until_answered(&one, lane, b"and back").await;
            assert_eq!(answer, [&[2, lane.code()], &b"and back"[..]].concat());
        }
        until("no bytes are queued", || {
            one.transport.links().iter().all(|link| link.queued_bytes == 0).then_some(())
        })
        .await;
    });
}

#[test]
fn ten_thousand_pipelined_frames_are_answered_in_order() {
    run(async {
        let (one, two) = (Member::start(identity(1)), Member::start(identity(2)));
        introduce(&[&one, &two]);
        one.connected(TWO, Lane::Log).await;
        let size = |number: u32| if number.is_multiple_of(500) { 300_000 } else { number as usize % 90 };
        let frame = |number: u32| [&number.to_le_bytes()[..], &vec![7; size(number)]].concat();
        let answers: Vec<_> = (0..10_000).map(|number| one.send(TWO, Lane::Log, frame(number))).collect();
        for (number, answer) in (0_u32..).zip(answers) {
            let answer = answer.await.expect("an answer");
            assert_eq!(answer[2..6], number.to_le_bytes());
        }
    });
}

#[test]
fn a_large_frame_delays_no_heartbeat() {
    run(async {
        let (one, two) = (Member::start(identity(1)), Member::start(identity(2)));
        introduce(&[&one, &two]);
        one.connected(TWO, Lane::Log).await;
        one.connected(TWO, Lane::Heartbeat).await;
        let mut large = one.send(TWO, Lane::Log, vec![1; 64 << 20]);
        let mut beats = 0;
        loop {
            tokio::select! {
                biased;
                answer = &mut large => { answer.expect("an answer"); break }
                beat = one.ask(&two, Lane::Heartbeat, b"beat") => { beat.expect("an answer"); beats += 1 }
            }
        }
        assert!(beats > 0, "no heartbeat was answered while the large frame was under way");
    });
}

#[test]
fn a_frame_above_the_limit_fails_and_the_next_one_does_not() {
    run(async {
        let (one, two) = (Member::start(identity(1)), Member::start(identity(2)));
        introduce(&[&one, &two]);
        one.connected(TWO, Lane::Heartbeat).await;
        let limit = Lane::Heartbeat.request_bytes_max();
        assert!(one.ask(&two, Lane::Heartbeat, &vec![0; limit + 1]).await.is_none());
        assert!(one.ask(&two, Lane::Heartbeat, &vec![0; limit]).await.is_some());
    });
}

#[test]
fn what_is_queued_has_a_limit() {
    run(async {
        let one = Member::start(identity(1));
        let two = Member::start_with(identity(2), patient(), None, Silent);
        introduce(&[&one, &two]);
        one.connected(TWO, Lane::Control).await;
        let answers: Vec<_> = (0..100).map(|_| one.send(TWO, Lane::Control, vec![0; 1 << 20])).collect();
        let queued = one.transport.links().iter().map(|link| link.queued_bytes).sum::<usize>();
        assert!((15 << 20..=16 << 20).contains(&queued), "{queued} bytes are queued");
        let mut failed = 0;
        for mut answer in answers {
            failed +=
                usize::from(answer.try_recv() == Err(tokio::sync::oneshot::error::TryRecvError::Closed));
        }
        assert_eq!(failed, 85);
        let full = one.transport.links().into_iter().find(|link| link.lane == Lane::Control).expect("a link");
        assert!(full.last_error.contains("bytes are queued, the limit is 16777216"), "{}", full.last_error);
    });
}

#[test]
fn a_peer_that_does_not_answer_is_given_up_and_tried_again() {
    run(async {
        let one = Member::start_with(identity(1), impatient(), None, Echo);
        let two = Member::start_with(identity(2), impatient(), None, Silent);
        introduce(&[&one, &two]);
        one.connected(TWO, Lane::Log).await;
        assert!(one.ask(&two, Lane::Log, b"hello?").await.is_none());
        one.reports.error_with("1 requests have no answer after").await;
        one.connected(TWO, Lane::Log).await;
    });
}

#[test]
fn a_quiet_connection_without_open_requests_stays() {
    run(async {
        let one = Member::start_with(identity(1), impatient(), None, Echo);
        let two = Member::start_with(identity(2), impatient(), None, Echo);
        introduce(&[&one, &two]);
        one.connected(TWO, Lane::Heartbeat).await;
        tokio::time::sleep(Duration::from_millis(200)).await;
        let errors = one.reports.errors.lock().expect("reports");
        let ended = errors.iter().find(|error| !error.contains("no connection was made"));
        assert_eq!(ended, None);
    });
}

#[test]
fn a_member_that_ends_is_noticed_by_its_heartbeats_and_found_again() {
    run(async {
        let (one, two) = (Member::start(identity(1)), Member::start(identity(2)));
        introduce(&[&one, &two]);
        two.ask_until_answered(&one, Lane::Heartbeat, b"beat").await;
        let address = two.address;
        two.transport.close();
        until("the hint", || one.reports.heartbeats_closed.lock().expect("reports").pop()).await;
        one.reports.error_with("node 2 at localhost").await;
        drop(two);

        let again = Member::start(identity(2));
        introduce(&[&again, &one]);
        assert_ne!(again.address, address);
        one.ask_until_answered(&again, Lane::Log, b"welcome back").await;
    });
}

#[test]
fn a_removed_member_is_cut_off() {
    run(async {
        let (one, two) = (Member::start(identity(1)), Member::start(identity(2)));
        introduce(&[&one, &two]);
        two.ask_until_answered(&one, Lane::Log, b"there").await;
        one.transport.set_roster(Roster::default());
        assert!(one.ask(&two, Lane::Log, b"x").await.is_none());
        two.reports.error_with("node 2 is not among the members that node 1 knows").await;
        assert!(two.ask(&one, Lane::Log, b"x").await.is_none());
    });
}

#[test]
fn after_close_everything_fails() {
    run(async {
        let (one, two) = (Member::start(identity(1)), Member::start(identity(2)));
        introduce(&[&one, &two]);
        one.connected(TWO, Lane::Log).await;
        let before = one.send(TWO, Lane::Log, vec![0; 1 << 20]);
        one.transport.close();
        assert!(before.await.is_err());
        assert!(one.ask(&two, Lane::Log, b"x").await.is_none());
        introduce(&[&one, &two]);
        assert!(one.transport.links().is_empty());
        assert!(tokio::net::TcpStream::connect(one.address).await.is_err());
    });
}

/// Passes one frame on: a header, which has the length of the payload in its second word.
async fn relay_frame(from: &mut TcpStream, to: &mut TcpStream) -> std::io::Result<()> {
    let mut header = [0; 20];
    from.read_exact(&mut header).await?;
    let (_, rest) = header.split_first_chunk::<4>().expect("a checksum");
    let length = u32::from_le_bytes(*rest.first_chunk().expect("a length"));
    let mut payload = vec![0; length as usize];
    from.read_exact(&mut payload).await?;
    to.write_all(&header).await?;
    to.write_all(&payload).await
}

/// A peer that completes the handshake as node 2 and then does as `behave` says, for each connection.
async fn play_peer(one: &Member, answer: &'static [u8]) -> NodeId {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("its address").to_string();
    let real = Member::start(identity(2));
    real.transport.set_roster(Roster { peers: [].into(), admits_unlisted: true });
    let relay_to = real.address;
    tokio::spawn(async move {
        let _real = real;
        while let Ok((mut socket, _)) = listener.accept().await {
            tokio::spawn(async move {
                // The real member answers the hello; what comes then is cut or garbage.
                let mut real = TcpStream::connect(relay_to).await.expect("the real member");
                relay_frame(&mut socket, &mut real).await.expect("a hello");
                relay_frame(&mut real, &mut socket).await.expect("a welcome");
                // A confirm and a request of 100 bytes.
                let mut request = [0; 20 + 20 + 100];
                if socket.read_exact(&mut request).await.is_ok() {
                    let _ = socket.write_all(answer).await;
                }
            });
        }
    });
    let peer = Peer { address, directory: None };
    one.transport.set_roster(Roster { peers: [(TWO, peer)].into(), admits_unlisted: true });
    TWO
}

#[test]
fn garbage_and_half_a_frame_end_the_connection_with_words() {
    run(async {
        for (answer, words) in [
            (&[0xff; 20][..], "a frame of 4294967295 bytes is larger than the limit"),
            (&[0; 20], "the checksum of a frame of 0 bytes does not match"),
            (&[1, 2, 3, 4, 9, 0, 0, 0, 5], "the peer closed the connection"),
        ] {
            let one = Member::start(identity(1));
            let two = play_peer(&one, answer).await;
            one.connected(two, Lane::Log).await;
            assert!(one.send(two, Lane::Log, vec![1; 100]).await.is_err());
            one.reports.error_with(words).await;
        }
    });
}

#[test]
fn a_peer_that_stops_reading_holds_no_more_than_the_limit() {
    run(async {
        let settings = NetSettings { unanswered_bytes_max: 1 << 20, ..patient() };
        let one = Member::start_with(identity(1), settings.clone(), None, Echo);
        let two = Member::start_with(identity(2), settings, None, Silent);
        introduce(&[&one, &two]);
        one.connected(TWO, Lane::Log).await;
        // The receiver's service takes nothing: its socket fills, then the sender's queue.
        let answers: Vec<_> = (0..600).map(|_| one.send(TWO, Lane::Log, vec![0; 1 << 20])).collect();
        let queued = || one.transport.links().iter().map(|link| link.queued_bytes).sum::<usize>();
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!((511 << 20..=512 << 20).contains(&queued()), "{} bytes are queued", queued());
        // Other lanes go on.
        assert_eq!(two.ask(&one, Lane::Heartbeat, b"beat").await.expect("an answer")[..2], [2, 2]);
        one.transport.close();
        for answer in answers {
            assert!(answer.await.is_err());
        }
        assert_eq!(ONE, one.node());
    });
}
