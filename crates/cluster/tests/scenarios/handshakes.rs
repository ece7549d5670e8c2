//! Who may connect, and what both ends say if it may not.

use std::time::Duration;

use tidemark_cluster::net::{Build, Identity, Lane, NetSettings, Peer, Protocols, Roster};
use tidemark_cluster::{GroupId, Level, NodeId};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{Echo, Member, id, identity, introduce, patient, run, until};

/// `stranger` connects to a member and is refused; both ends report these words.
async fn is_refused(stranger: Identity, words: &str) {
    let (one, two) = (Member::start(identity(1)), Member::start(identity(2)));
    introduce(&[&one, &two]);
    let stranger = Member::start(stranger);
    let peers = [one.listed()].into();
    stranger.transport.set_roster(Roster { peers, admits_unlisted: true });
    one.reports.error_with(words).await;
    let error = stranger.reports.error_with(words).await;
    assert!(error.contains("it refuses this member"), "{error}");
    assert!(stranger.ask(&one, Lane::Log, b"x").await.is_none());
}

#[test]
fn strangers_are_refused_in_words_on_both_sides() {
    run(async {
        let table = [
            (Identity { cluster: id(9), ..identity(2) }, "node 2 belongs to the cluster 09090909…"),
            (Identity { directory: id(9), ..identity(2) }, "node 2 joined with the directory 66666666…"),
            (identity(5), "node 5 is not among the members that node 1 knows"),
            (Identity { group: GroupId(3), ..identity(2) }, "node 1 has no group 3"),
        ];
        for (stranger, words) in table {
            is_refused(stranger, words).await;
        }
    });
}

#[test]
fn two_processes_cannot_be_one_member() {
    run(async {
        let (one, two) = (Member::start(identity(1)), Member::start(identity(2)));
        introduce(&[&one, &two]);
        one.ask_until_answered(&two, Lane::Log, b"x").await;
        // The same directory, or a copy of it, in another process.
        let copy = Member::start(Identity { process: id(77), ..two.identity });
        copy.transport.set_roster(Roster { peers: [one.listed()].into(), admits_unlisted: false });
        let words = "another process is connected as node 2";
        one.reports.error_with(words).await;
        copy.reports.error_with(words).await;
        assert!(copy.ask(&one, Lane::Log, b"x").await.is_none());
        // It may take the place of the first one when that has ended.
        two.transport.close();
        one.transport.set_roster(Roster { peers: [copy.listed()].into(), admits_unlisted: false });
        copy.ask_until_answered(&one, Lane::Log, b"x").await;
        one.ask_until_answered(&copy, Lane::Log, b"x").await;
    });
}

#[test]
fn a_member_at_the_address_of_another_is_refused() {
    run(async {
        let (one, two) = (Member::start(identity(1)), Member::start(identity(2)));
        let (_, peer) = two.listed();
        one.transport.set_roster(Roster { peers: [(NodeId(3), peer)].into(), admits_unlisted: false });
        let words = "node 3 was looked for at the address of node 2";
        one.reports.error_with(words).await;
        two.reports.error_with(words).await;
    });
}

#[test]
fn who_connects_checks_the_directory_too() {
    run(async {
        let (one, two) = (Member::start(identity(1)), Member::start(identity(2)));
        two.transport.set_roster(Roster { peers: [one.listed()].into(), admits_unlisted: false });
        let (node, peer) = two.listed();
        let peer = Peer { directory: Some(id(9)), ..peer };
        one.transport.set_roster(Roster { peers: [(node, peer)].into(), admits_unlisted: false });
        let words = "node 2 joined with the directory 09090909…";
        one.reports.error_with(words).await;
        let error = two.reports.error_with(words).await;
        assert!(error.contains("it refuses this member"), "{error}");
    });
}

#[test]
fn a_member_without_a_list_admits_its_cluster_alone() {
    run(async {
        let (one, new) = (Member::start(identity(1)), Member::start(identity(4)));
        new.transport.set_roster(Roster { peers: [].into(), admits_unlisted: true });
        one.transport.set_roster(Roster { peers: [new.listed()].into(), admits_unlisted: false });
        one.ask_until_answered(&new, Lane::Control, b"join").await;
        let other = Member::start(Identity { cluster: id(9), ..identity(2) });
        other.transport.set_roster(Roster { peers: [new.listed()].into(), admits_unlisted: true });
        other.reports.error_with("belongs to the cluster").await;
    });
}

#[test]
fn many_strangers_push_each_other_out_and_keep_no_member_out() {
    run(async {
        let settings =
            NetSettings { strangers_max: 4, handshake_timeout: Duration::from_mins(1), ..patient() };
        let one = Member::start_with(identity(1), settings, None, Echo);
        let mut strangers = Vec::new();
        for _ in 0..50 {
            strangers.push(TcpStream::connect(one.address).await.expect("a connection"));
        }
        let two = Member::start(identity(2));
        introduce(&[&one, &two]);
        two.ask_until_answered(&one, Lane::Log, b"x").await;
        for stranger in &mut strangers[..46] {
            let read = tokio::time::timeout(Duration::from_secs(10), stranger.read(&mut [0; 8])).await;
            assert!(matches!(read.expect("the stranger is closed"), Ok(0) | Err(_)));
        }
    });
}

#[test]
fn a_silent_stranger_is_closed_in_time() {
    run(async {
        let settings = NetSettings { handshake_timeout: Duration::from_millis(200), ..patient() };
        let one = Member::start_with(identity(1), settings, None, Echo);
        let mut silent = TcpStream::connect(one.address).await.expect("a connection");
        one.reports.error_with("it has not said who it is within 200ms").await;
        assert!(matches!(silent.read(&mut [0; 8]).await, Ok(0) | Err(_)));
    });
}

#[test]
fn other_protocols_get_no_answer_and_cause_one_report() {
    run(async {
        let one = Member::start(identity(1));
        for bytes in [
            &b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"[..],
            b"*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPING\r\n",
            &[0; 100],
            &[0xff; 100],
        ] {
            let before = one.reports.errors.lock().expect("reports").len();
            let mut socket = TcpStream::connect(one.address).await.expect("a connection");
            socket.write_all(bytes).await.expect("bytes");
            let mut answer = Vec::new();
            let _ = socket.read_to_end(&mut answer).await;
            assert!(answer.is_empty(), "{answer:?}");
            let reported = || (one.reports.errors.lock().expect("reports").len() == before + 1).then_some(());
            until("a report", reported).await;
        }
    });
}

#[test]
fn a_stranger_that_sends_a_byte_now_and_then_is_closed_in_time() {
    run(async {
        let settings = NetSettings { handshake_timeout: Duration::from_millis(150), ..patient() };
        let one = Member::start_with(identity(1), settings, None, Echo);
        let mut socket = TcpStream::connect(one.address).await.expect("a connection");
        let trickle = async {
            // A header that announces 1,000 bytes, which are within the limit.
            for byte in [&[0; 4][..], &1000_u32.to_le_bytes(), &[0; 1000]].concat() {
                if socket.write_all(&[byte]).await.is_err() {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            panic!("the stranger has kept its connection for 5 s");
        };
        trickle.await;
        one.reports.error_with("it has not said who it is within 150ms").await;
    });
}

/// A member whose build speaks these versions of the protocol, and knows records up to a level.
fn built(node: u64, (oldest, newest): (u16, u16), level: u8) -> Member {
    let build = Build {
        protocols: Protocols { oldest, newest },
        level: Level(level),
        version: format!("0.{newest}.0"),
    };
    Member::start_with(identity(node), NetSettings { build, ..patient() }, None, Echo)
}

#[test]
fn a_member_talks_to_the_build_before_its_own() {
    run(async {
        let (older, newer) = (built(1, (3, 4), 1), built(2, (4, 5), 2));
        introduce(&[&older, &newer]);
        older.ask_until_answered(&newer, Lane::Log, b"x").await;
        newer.ask_until_answered(&older, Lane::Log, b"x").await;
        let stated = |member: &Member| {
            let links = member.transport.links();
            let link = links.iter().find(|link| link.lane == Lane::Log);
            link.and_then(|link| link.build.clone()).expect("the two are connected")
        };
        let (build, protocol) = stated(&older);
        assert_eq!((build.version.as_str(), build.level, protocol), ("0.5.0", Level(2), 4));
        let (build, protocol) = stated(&newer);
        assert_eq!((build.version.as_str(), build.level, protocol), ("0.4.0", Level(1), 4));
    });
}

#[test]
fn builds_that_have_no_version_in_common_say_which_is_to_be_upgraded() {
    run(async {
        let (older, newer) = (built(1, (2, 3), 1), built(2, (4, 5), 1));
        introduce(&[&older, &newer]);
        let words = "speaks versions 4 to 5 of the protocol between members, and node 1 versions 2 to 3: upgrade node 1";
        older.reports.error_with(words).await;
        newer.reports.error_with(words).await;
        let words = "node 1 speaks versions 2 to 3 of the protocol between members, and node 2 versions 4 to 5: \
                     upgrade node 1";
        older.reports.error_with(words).await;
        newer.reports.error_with(words).await;
        assert!(older.ask(&newer, Lane::Log, b"x").await.is_none());
    });
}

#[test]
fn a_build_that_does_not_know_the_records_of_the_cluster_is_refused() {
    run(async {
        let (one, old) = (built(1, (2, 2), 3), built(2, (2, 2), 2));
        one.transport.set_level(Level(3));
        introduce(&[&one, &old]);
        let words = "node 2 runs 0.2.0, which knows records up to level 2, and the cluster writes those of level 3: \
                     upgrade node 2";
        one.reports.error_with(words).await;
        let error = old.reports.error_with(words).await;
        assert!(error.contains("it refuses this member"), "{error}");
        assert!(old.ask(&one, Lane::Log, b"x").await.is_none());
        // The build of the others is welcome in its place.
        old.transport.close();
        let upgraded = built(2, (2, 3), 3);
        introduce(&[&one, &upgraded]);
        upgraded.ask_until_answered(&one, Lane::Log, b"x").await;
        one.ask_until_answered(&upgraded, Lane::Log, b"x").await;
    });
}
