//! A member of a group: which commands run where, and what clients are told of it.

use super::*;
use crate::command::sentinel_command::announce_leader;
use crate::events::publication::Kind;
use crate::group::planted::{ME, OTHER, Planted};
use crate::group::{Consensus as _, Group, NodeId, Published, Refusal, Status, Term, wire_name};
use crate::http::running;
use crate::net::inbox::Message;
use crate::observe::metrics;

/// Returns the server of a member over a log that is alone: what is committed is of no interest here.
fn member() -> (Bench, Arc<Planted>) {
    member_with(Config::default())
}

fn member_with(config: Config) -> (Bench, Arc<Planted>) {
    let planted = Planted::leading();
    let clock = ManualClock::new();
    let options = Options { segment_bytes: 64 * 1024, clock: Clock::from(&clock), ..Options::default() };
    let (log, _) = Log::open(Arc::new(MemoryStorage::new()), options).expect("an empty log");
    let group = Group::new(ME, Arc::<Planted>::clone(&planted));
    let config = Config { enable_debug_command: crate::config::DebugAccess::Yes, ..config };
    (Bench::with_group(log, clock, config, Some(group)), planted)
}

/// Sends lines, separated by `|`, and returns the answers in a readable form.
fn ask(connection: &mut Connection, bench: &Bench, lines: &str) -> String {
    connection.receive(format!("{}\r\n", lines.replace('|', "\r\n")).as_bytes(), &bench.context());
    connection.take().trim_end().replace("\r\n", " ")
}

const MOVED_FOO: &str = "-MOVED 12182 [fd00::2]:7000";

#[test]
fn a_follower_sends_clients_to_the_leader_as_redis_cluster_does() {
    let (bench, planted) = member();
    planted.follow(Some(OTHER));
    let before = bench.shared.engine.log().appended();
    for (line, expected) in [
        ("GET foo", MOVED_FOO),
        ("SET foo 1", MOVED_FOO),
        ("DURABLE SET foo 1", MOVED_FOO),
        ("ONCE s 1 SET foo 1", MOVED_FOO),
        ("ONCE s 1 DURABLE SET foo 1", MOVED_FOO),
        ("ONCE s 1 FLUSHALL", "-READONLY You can't write against a read only replica."),
        ("MGET foo b", MOVED_FOO),
        ("BLPOP foo 1", MOVED_FOO),
        ("WATCH foo", MOVED_FOO),
        ("GET.WATCH foo", MOVED_FOO),
        ("SUBSCRIBE foo", "*3 $9 subscribe $3 foo :1"),
        ("PUBLISH foo a", ":0"),
        ("DEBUG OBJECT foo", MOVED_FOO),
        ("CHANGES FROM 0", "-MOVED 0 [fd00::2]:7000"),
        ("FLUSHALL", "-READONLY You can't write against a read only replica."),
        ("SWAPDB 0 1", "-READONLY You can't write against a read only replica."),
        ("DBSIZE", ":0"),
        ("KEYS *", "*0"),
        ("PING", "+PONG"),
        ("SELECT 1|SELECT 0", "+OK +OK"),
        ("ASKING|GET foo", "+OK -MOVED 12182 [fd00::2]:7000"),
        (
            "MULTI|SET foo 1|EXEC",
            "+OK -MOVED 12182 [fd00::2]:7000 -EXECABORT Transaction discarded because of previous errors.",
        ),
        ("MULTI|PING|EXEC", "+OK +QUEUED *1 +PONG"),
        (
            "TS.ADD foo 1 1|TS.ADD foo 2 2|TS.ADD foo 3 3",
            "-MOVED 12182 [fd00::2]:7000 -MOVED 12182 [fd00::2]:7000 -MOVED 12182 [fd00::2]:7000",
        ),
        ("ROLE", "*5 $5 slave $7 fd00::2 :7000 $9 connected :0"),
        ("NOPE", "-ERR unknown command 'NOPE', with args beginning with: "),
    ] {
        let mut connection = bench.connect();
        assert_eq!(ask(&mut connection, &bench, line), expected.trim_end(), "{line}");
        connection.close(&bench.context());
    }
    assert_eq!(bench.shared.engine.log().appended(), before, "nothing has run");
}

#[test]
fn a_transaction_whose_leader_is_gone_is_discarded_as_a_whole() {
    let (bench, planted) = member();
    let mut connection = bench.connect();
    assert_eq!(ask(&mut connection, &bench, "MULTI|SET foo 1"), "+OK +QUEUED");
    planted.follow(Some(OTHER));
    assert_eq!(
        ask(&mut connection, &bench, "EXEC|PING|EXEC"),
        format!("{MOVED_FOO} +PONG -ERR EXEC without MULTI")
    );
    planted.lead();
    assert_eq!(ask(&mut connection, &bench, "MULTI|SET foo 1"), "+OK +QUEUED");
    planted.follow(Some(OTHER));
    assert_eq!(
        ask(&mut connection, &bench, "ONCE s 1 EXEC|PING|EXEC"),
        format!("{MOVED_FOO} +PONG -ERR EXEC without MULTI")
    );
    planted.lead();
    assert_eq!(ask(&mut connection, &bench, "GET foo"), "$-1");
}

#[test]
fn readonly_reads_a_follower_that_is_not_too_far_behind() {
    let (bench, planted) = member();
    let mut connection = bench.connect();
    assert_eq!(ask(&mut connection, &bench, "SET foo bar"), "+OK");
    planted.follow(Some(OTHER));
    assert_eq!(ask(&mut connection, &bench, "READONLY|GET foo|SET foo 1"), format!("+OK $3 bar {MOVED_FOO}"));
    let queued = "MULTI|GET foo|EXEC|MULTI|GET foo|SET foo 2|EXEC";
    let aborted = "-EXECABORT Transaction discarded because of previous errors.";
    assert_eq!(
        ask(&mut connection, &bench, queued),
        format!("+OK +QUEUED *1 $3 bar +OK +QUEUED {MOVED_FOO} {aborted}")
    );
    planted.set_fresh(false);
    let stale = "-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.";
    assert_eq!(ask(&mut connection, &bench, "GET foo|DBSIZE|PING"), format!("{stale} {stale} +PONG"));
    planted.set_fresh(true);
    assert_eq!(ask(&mut connection, &bench, "READWRITE|GET foo"), format!("+OK {MOVED_FOO}"));
    assert_eq!(ask(&mut connection, &bench, "READONLY|RESET|GET foo"), format!("+OK +RESET {MOVED_FOO}"));
}

#[test]
fn a_leader_that_may_not_go_on_refuses_before_it_executes() {
    let (bench, planted) = member();
    for (refusal, expected) in [
        (Refusal::NoLeader, "-CLUSTERDOWN The cluster is down: no leader that most members answer"),
        (Refusal::Changing, "-TRYAGAIN the lead or the members are being changed"),
        (Refusal::Moved(NodeId(99)), "-CLUSTERDOWN The cluster is down: no leader that most members answer"),
    ] {
        planted.refuse(refusal);
        let mut connection = bench.connect();
        for line in ["SET foo 1", "GET foo", "KEYS *", "FLUSHALL", "READONLY|GET foo"] {
            let answer = ask(&mut connection, &bench, line);
            assert_eq!(answer.trim_start_matches("+OK "), expected, "{line}");
        }
        assert_eq!(ask(&mut connection, &bench, "PING"), "+PONG");
        connection.close(&bench.context());
    }
    assert_eq!(bench.shared.engine.log().appended(), Lsn::ZERO);
}

#[test]
fn the_other_protocols_name_the_leader() {
    let (bench, planted) = member();
    planted.follow(Some(OTHER));
    for words in [&["SET", "foo", "1"][..], &["GET.WATCH", "foo"], &["ZRANGE", "foo", "1", "2"]] {
        let mut connection = bench.connect();
        connection.receive(&dice_frame(words), &bench.context());
        let answer = connection.take();
        assert!(answer.contains("MOVED ") && answer.contains("[fd00::2]:7000"), "{words:?}: {answer}");
        connection.close(&bench.context());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let commands: [running::Words<'_>; 1] = [vec![b"INCR", b"foo"]];
    let refused = runtime.block_on(running::run(&bench.shared, 0, &commands)).expect_err("is refused");
    assert_eq!((refused.status.as_u16(), refused.reason.as_str()), (503, &MOVED_FOO[1..]));
}

#[test]
fn a_group_is_shown_as_a_redis_cluster_of_one_shard() {
    let (bench, planted) = member();
    let mut connection = bench.connect();
    let ids = [ME, OTHER, NodeId(3)].map(wire_name);
    let [me, other, third] = &ids;
    assert_eq!(me.len(), 40);
    assert_eq!(ask(&mut connection, &bench, "CLUSTER MYID"), format!("$40 {me}"));
    let node = |host: &str, port, id: &str| format!("*4 ${} {host} :{port} $40 {id} *0", host.len());
    let (first, second) = (node("10.0.0.1", 6379, me), node("fd00::2", 7000, other));
    assert_eq!(
        ask(&mut connection, &bench, "CLUSTER SLOTS"),
        format!("*1 *4 :0 :16383 {first} {second}"),
        "a member that is not reached is not offered"
    );
    let nodes = ask(&mut connection, &bench, "CLUSTER NODES");
    let lines = format!(
        "{me} 10.0.0.1:6379@16379 myself,master - 0 0 7 connected 0-16383\n{other} fd00::2:7000@17000 slave {me} 0 0 7 \
         connected\n{third} c.example:6379@16379 slave {me} 0 0 7 disconnected"
    );
    assert_eq!(nodes.split_once(' ').map(|(_, text)| text), Some(lines.as_str()));
    let shards = ask(&mut connection, &bench, "CLUSTER SHARDS");
    assert!(shards.starts_with("*1 *4 $5 slots *2 :0 :16383 $5 nodes *3 *14 $2 id $40 "), "{shards}");
    assert_eq!((shards.matches("master").count(), shards.matches("failed").count()), (1, 1));
    let info = ask(&mut connection, &bench, "CLUSTER INFO");
    assert!(info.contains("cluster_state:ok cluster_slots_assigned:16384 cluster_slots_ok:16384"), "{info}");
    assert!(ask(&mut connection, &bench, "INFO cluster").contains("cluster_enabled:1"));
    let info = ask(&mut connection, &bench, "INFO replication");
    assert!(
        info.contains("role:master connected_slaves:1 slave0:ip=fd00::2,port=7000,state=online "),
        "{info}"
    );
    assert!(ask(&mut connection, &bench, "HELLO 2").contains("$4 mode $7 cluster $4 role $6 master"));

    planted.follow(Some(OTHER));
    assert_eq!(
        ask(&mut connection, &bench, "CLUSTER SLOTS"),
        format!("*1 *4 :0 :16383 {second} {first}"),
        "the leader comes first"
    );
    assert!(ask(&mut connection, &bench, "HELLO 2").contains("$4 role $7 replica"));
    let info = ask(&mut connection, &bench, "INFO replication");
    assert!(info.contains("role:slave master_host:fd00::2 master_port:7000 master_link_status:up"), "{info}");
    planted.follow(None);
    assert_eq!(ask(&mut connection, &bench, "CLUSTER SLOTS"), "*0");
    assert!(ask(&mut connection, &bench, "CLUSTER INFO").contains("cluster_state:fail"));
}

#[test]
fn a_node_alone_knows_slots_and_says_that_it_is_no_cluster() {
    let bench = Bench::new(|_| {});
    let mut connection = bench.connect();
    let answer = ask(&mut connection, &bench, "SET foo 1|SET {foo}bar 2|SET other 3|CLUSTER KEYSLOT {foo}x");
    assert_eq!(answer, "+OK +OK +OK :12182");
    assert_eq!(
        ask(&mut connection, &bench, "CLUSTER COUNTKEYSINSLOT 12182|CLUSTER COUNTKEYSINSLOT 1"),
        ":2 :0"
    );
    let keys = ask(&mut connection, &bench, "CLUSTER GETKEYSINSLOT 12182 10");
    assert!(keys.starts_with("*2 ") && keys.contains("$3 foo") && keys.contains("$8 {foo}bar"), "{keys}");
    assert!(ask(&mut connection, &bench, "CLUSTER GETKEYSINSLOT 12182 1").starts_with("*1 "));
    for (line, expected) in [
        ("CLUSTER COUNTKEYSINSLOT 16384", "-ERR Invalid slot"),
        ("CLUSTER COUNTKEYSINSLOT x", "-ERR value is not an integer or out of range"),
        ("CLUSTER GETKEYSINSLOT 1 -1", "-ERR Invalid slot or number of keys"),
        ("CLUSTER GETKEYSINSLOT 20000 1", "-ERR Invalid slot or number of keys"),
    ] {
        assert_eq!(ask(&mut connection, &bench, line), expected, "{line}");
    }
    for line in
        ["CLUSTER SLOTS", "CLUSTER INFO", "CLUSTER NODES", "CLUSTER MYID", "READONLY", "READWRITE", "ASKING"]
    {
        assert_eq!(
            ask(&mut connection, &bench, line),
            "-ERR This instance has cluster support disabled",
            "{line}"
        );
    }
    assert!(ask(&mut connection, &bench, "HELLO 2").contains("$4 mode $10 standalone $4 role $6 master"));
}

#[test]
fn only_the_leader_removes_what_has_expired() {
    let (bench, planted) = member();
    let mut connection = bench.connect();
    assert_eq!(ask(&mut connection, &bench, "SET foo 1 PX 5"), "+OK");
    let later_us = bench.context().now_us + 1_000_000;
    planted.follow(Some(OTHER));
    assert_eq!(bench.shared.next_due_work(), None);
    bench.shared.do_due_work(later_us);
    assert_eq!(bench.shared.engine.log().appended(), Lsn(1));
    planted.lead();
    assert!(bench.shared.next_due_work().is_some());
    bench.shared.do_due_work(later_us);
    assert_eq!(bench.shared.engine.log().appended(), Lsn(2));
}

#[test]
fn a_client_that_goes_on_here_although_it_was_sent_away_is_disconnected() {
    let (bench, planted) = member();
    planted.follow(Some(OTHER));
    let mut connection = bench.connect();
    assert_eq!(ask(&mut connection, &bench, "GET foo"), MOVED_FOO);
    bench.clock.advance(Duration::from_millis(900));
    assert_eq!(ask(&mut connection, &bench, "GET foo|PING"), format!("{MOVED_FOO} +PONG"));
    bench.clock.advance(Duration::from_millis(200));
    assert_eq!(ask(&mut connection, &bench, "PING|GET foo|PING"), format!("+PONG {MOVED_FOO}"));
    assert!(connection.is_finished());

    planted.follow(None);
    let mut waiting = bench.connect();
    let down = "-CLUSTERDOWN The cluster is down: no leader that most members answer";
    assert_eq!(ask(&mut waiting, &bench, "GET foo"), down);
    bench.clock.advance(Duration::from_secs(5));
    assert_eq!(ask(&mut waiting, &bench, "GET foo|PING"), format!("{down} +PONG"), "it may lead next");
    waiting.close(&bench.context());
}

#[test]
fn every_member_answers_as_a_sentinel() {
    let (bench, planted) = member();
    planted.follow(Some(OTHER));
    let mut connection = bench.connect();
    let ids = [ME, OTHER, NodeId(3)].map(wire_name);
    let [me, other, third] = &ids;
    let field = |name: &str, value: &str| format!("${} {name} ${} {value}", name.len(), value.len());
    let about = |name: &str, ip: &str, port: &str, id: &str, flags: &str| {
        let fields = [("name", name), ("ip", ip), ("port", port), ("runid", id), ("flags", flags)];
        fields.map(|(name, value)| field(name, value)).join(" ")
    };
    let address = "*2 $7 fd00::2 $4 7000";
    assert_eq!(ask(&mut connection, &bench, "SENTINEL GET-MASTER-ADDR-BY-NAME tidemark"), address);
    let leader = format!(
        "{} {} {} {} {} {} {}",
        about("tidemark", "fd00::2", "7000", other, "master"),
        field("role-reported", "master"),
        field("down-after-milliseconds", "125"),
        field("config-epoch", "7"),
        field("num-slaves", "2"),
        field("num-other-sentinels", "2"),
        field("quorum", "2"),
    );
    assert_eq!(ask(&mut connection, &bench, "SENTINEL MASTER tidemark"), format!("*22 {leader}"));
    assert_eq!(ask(&mut connection, &bench, "SENTINEL MASTERS"), format!("*1 *22 {leader}"));
    let follower = |ip: &str, id: &str, flags: &str, link: &str| {
        format!(
            "*18 {} {} {} {} {}",
            about(&format!("{ip}:6379"), ip, "6379", id, flags),
            field("role-reported", "slave"),
            field("master-host", "fd00::2"),
            field("master-port", "7000"),
            field("master-link-status", link),
        )
    };
    let followers = format!(
        "*2 {} {}",
        follower("10.0.0.1", me, "slave", "ok"),
        follower("c.example", third, "slave,s_down,disconnected", "err")
    );
    for command in ["SENTINEL REPLICAS tidemark", "sentinel slaves tidemark"] {
        assert_eq!(ask(&mut connection, &bench, command), followers);
    }
    assert_eq!(
        ask(&mut connection, &bench, "SENTINEL SENTINELS tidemark"),
        format!(
            "*2 *10 {} *10 {}",
            about(other, "fd00::2", "7000", other, "sentinel"),
            about(third, "c.example", "6379", third, "sentinel,s_down,disconnected")
        )
    );
    assert_eq!(ask(&mut connection, &bench, "SENTINEL MYID"), format!("$40 {me}"));
    assert_eq!(
        ask(&mut connection, &bench, "SENTINEL CKQUORUM tidemark"),
        "+OK 2 usable Sentinels. Quorum and failover authorization can be reached"
    );

    assert_eq!(ask(&mut connection, &bench, "SENTINEL GET-MASTER-ADDR-BY-NAME other"), "*-1");
    for command in ["MASTER", "REPLICAS", "SENTINELS", "CKQUORUM"] {
        let answer = ask(&mut connection, &bench, &format!("SENTINEL {command} other"));
        assert_eq!(answer, "-ERR No such master with that name", "{command}");
    }
    assert!(ask(&mut connection, &bench, "HELLO 3|SENTINEL MASTERS").contains("*1 %11 $4 name"));
    connection.close(&bench.context());
}

#[test]
fn a_sentinel_names_the_last_leader_until_another_leads_and_says_that_it_is_down() {
    let (bench, planted) = member();
    planted.follow(None);
    let mut connection = bench.connect();
    assert_eq!(ask(&mut connection, &bench, "SENTINEL GET-MASTER-ADDR-BY-NAME tidemark"), "*-1");
    assert_eq!(ask(&mut connection, &bench, "SENTINEL MASTERS"), "*0");
    assert_eq!(ask(&mut connection, &bench, "SENTINEL MASTER tidemark"), "-ERR No leader has been known yet");
    planted.follow(Some(OTHER));
    announce_leader(&bench.shared);
    planted.follow(None);
    announce_leader(&bench.shared);
    let address = "*2 $7 fd00::2 $4 7000";
    assert_eq!(ask(&mut connection, &bench, "SENTINEL GET-MASTER-ADDR-BY-NAME tidemark"), address);
    assert!(ask(&mut connection, &bench, "SENTINEL MASTERS").contains("$20 master,s_down,o_down"));
    let slots = ask(&mut connection, &bench, "CLUSTER SLOTS");
    assert!(slots.starts_with("*1 *4 :0 :16383 *4 $7 fd00::2 :7000"), "cluster clients try again: {slots}");
    assert!(ask(&mut connection, &bench, "CLUSTER INFO").contains("cluster_state:fail"));
    connection.close(&bench.context());
}

#[test]
fn a_leader_that_no_quorum_answers_sends_no_client_to_itself() {
    let (bench, planted) = member();
    let mut connection = bench.connect();
    let address = "*2 $8 10.0.0.1 $4 6379";
    assert_eq!(ask(&mut connection, &bench, "SENTINEL GET-MASTER-ADDR-BY-NAME tidemark"), address);
    planted.refuse(Refusal::Changing);
    assert_eq!(ask(&mut connection, &bench, "SENTINEL GET-MASTER-ADDR-BY-NAME tidemark"), address);
    planted.refuse(Refusal::NoLeader);
    assert_eq!(ask(&mut connection, &bench, "SENTINEL GET-MASTER-ADDR-BY-NAME tidemark"), "*-1");
    assert!(ask(&mut connection, &bench, "SENTINEL MASTERS").contains("$20 master,s_down,o_down"));
    planted.lead();
    assert!(ask(&mut connection, &bench, "SENTINEL MASTERS").contains("$5 flags $6 master"));
    connection.close(&bench.context());
}

#[test]
fn a_change_of_the_leader_is_published_once() {
    let (bench, planted) = member();
    let published = || {
        let mut messages = Vec::new();
        bench.shared.inboxes[0].take(&mut messages);
        messages.iter().filter(|message| matches!(message, Message::Publish(..))).count()
    };
    let mut connection = bench.connect();
    let _ = ask(&mut connection, &bench, "SUBSCRIBE +switch-master");
    planted.follow(Some(OTHER));
    announce_leader(&bench.shared);
    assert_eq!(published(), 0, "it is the first that is known");
    planted.follow(None);
    announce_leader(&bench.shared);
    planted.follow(Some(OTHER));
    announce_leader(&bench.shared);
    assert_eq!(published(), 0, "it was away for a moment");
    planted.lead();
    announce_leader(&bench.shared);
    let mut messages = Vec::new();
    bench.shared.inboxes[0].take(&mut messages);
    let [Message::Publish(_, message)] = messages.as_slice() else { panic!("one message") };
    assert_eq!(String::from_utf8_lossy(&message.payload), "tidemark fd00::2 7000 10.0.0.1 6379");
    announce_leader(&bench.shared);
    assert_eq!((published(), bench.shared.group.as_ref().map(Group::leader_changes)), (0, Some(1)));
    connection.close(&bench.context());
}

#[test]
fn a_node_alone_is_no_sentinel() {
    let bench = Bench::new(|_| {});
    let mut connection = bench.connect();
    for line in
        ["MASTERS", "MYID", "GET-MASTER-ADDR-BY-NAME tidemark", "REPLICAS tidemark", "CKQUORUM tidemark"]
    {
        let answer = ask(&mut connection, &bench, &format!("SENTINEL {line}"));
        assert_eq!(
            answer,
            "-ERR This server is no member of a cluster, and watches no other: ask it for data directly"
        );
    }
    connection.close(&bench.context());
}

#[test]
fn a_message_goes_to_the_other_members_with_what_it_waits_for() {
    let (bench, planted) = member();
    let mut connection = bench.connect();
    let message = |kind, channel: &str, after| Published {
        kind,
        channel: channel.as_bytes().into(),
        payload: b"hello".as_slice().into(),
        after,
    };
    assert_eq!(ask(&mut connection, &bench, "PUBLISH news hello|SPUBLISH shard hello"), ":0 :0");
    assert_eq!(
        planted.published(),
        [message(Kind::Channel, "news", None), message(Kind::Shard, "shard", None)]
    );
    planted.follow(Some(OTHER));
    assert_eq!(ask(&mut connection, &bench, "PUBLISH news hello"), ":0");
    assert_eq!(planted.published(), [message(Kind::Channel, "news", None)], "every member takes them");
    connection.close(&bench.context());
}

#[test]
fn metrics_show_the_group() {
    let (bench, planted) = member();
    planted.set_status(Status {
        term: Term(7),
        last: 40,
        committed: 38,
        matching: vec![(ME, 40), (OTHER, 35)],
        quorum_age: Some(Duration::from_millis(20)),
        unsent_snapshots: vec![NodeId(3)],
        refuses_snapshot: true,
        ..Status::default()
    });
    let text = metrics::encode(&Arc::new(bench.shared)).expect("metrics");
    for line in [
        "tidemark_cluster_leads 1.0",
        "tidemark_cluster_term 7.0",
        "tidemark_cluster_last_entry 40.0",
        "tidemark_cluster_committed_entry 38.0",
        "tidemark_cluster_unapplied_records 0.0",
        "tidemark_cluster_quorum_age_seconds 0.02",
        "tidemark_cluster_leader_changes_total 0",
        "tidemark_cluster_messages_dropped_total 0",
        "tidemark_cluster_member_connected{member=\"3\"} 0.0",
        "tidemark_cluster_member_lag_entries{member=\"171\"} 5.0",
        "tidemark_cluster_refuses_snapshot 1.0",
        "tidemark_cluster_member_lacks_snapshot{member=\"3\"} 1.0",
        "tidemark_cluster_member_lacks_snapshot{member=\"171\"} 0.0",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in {text}");
    }
    let alone = metrics::encode(&Arc::new(Bench::new(|_| {}).shared)).expect("metrics");
    assert!(!alone.contains("cluster"), "{alone}");
}

/// Sets what the other members have acknowledged, of entries up to `last`.
fn acknowledge(planted: &Planted, last: u64, others: [u64; 2]) {
    let matching = vec![(ME, last), (OTHER, others[0]), (NodeId(3), others[1])];
    planted.set_status(Status { term: Term(7), last, matching, ..Status::default() });
}

#[test]
fn wait_counts_the_members_that_have_what_the_client_wrote() {
    let (bench, planted) = member();
    acknowledge(&planted, 5, [5, 3]);
    let mut connection = bench.connect();
    assert_eq!(ask(&mut connection, &bench, "WAIT 2 0"), ":2", "it has written nothing");
    assert_eq!(ask(&mut connection, &bench, "SET foo 1|WAIT 1 0"), "+OK", "nothing is committed yet");
    bench.sync(&mut connection);
    assert_eq!(connection.take(), ":1\r\n");
    assert_eq!(ask(&mut connection, &bench, "WAIT 0 0|WAIT 1 0"), ":1 :1");
    assert_eq!(ask(&mut connection, &bench, "WAIT 2 0"), "");
    acknowledge(&planted, 9, [9, 4]);
    bench.sync(&mut connection);
    assert_eq!(connection.take(), "");
    acknowledge(&planted, 9, [9, 5]);
    assert!(connection.awaited_copies().is_some_and(|copies| copies.are_due(&bench.shared)));
    bench.sync(&mut connection);
    assert_eq!(connection.take(), ":2\r\n");
    assert_eq!(ask(&mut connection, &bench, "WAIT 3 10"), "");
    connection.unblock(Unblock::Timeout, &bench.context());
    assert_eq!(connection.take(), ":1\r\n", "entries came behind its own");
    assert_eq!(ask(&mut connection, &bench, "MULTI|WAIT 3 0|EXEC"), "+OK +QUEUED *1 :1");
    planted.follow(Some(OTHER));
    let answer = "-ERR WAIT and WAITAOF ask the leader: this member follows another";
    assert_eq!(ask(&mut connection, &bench, "WAIT 1 0|WAITAOF 0 0 0"), format!("{answer} {answer}"));
    connection.close(&bench.context());
}

#[test]
fn a_durable_change_waits_for_a_record_that_members_sync_before_they_acknowledge_it() {
    for (durability, records) in [(Durability::Off, 2), (Durability::Always, 1)] {
        let (bench, planted) = member_with(Config { durability, ..Config::default() });
        planted.set_durability(durability).expect("it is changed");
        let mut connection = bench.connect();
        let log = bench.shared.engine.log();
        let before = log.appended();
        let held = ask(&mut connection, &bench, "DURABLE SET foo 1");
        assert_eq!(
            (held.as_str(), log.records_between(before, log.appended())),
            ("", records),
            "{durability:?}"
        );
        bench.sync(&mut connection);
        assert_eq!(connection.take(), "+OK\r\n");
        let before = log.appended();
        ask(&mut connection, &bench, "SET foo 2");
        assert_eq!(log.records_between(before, log.appended()), 1);
        connection.close(&bench.context());
    }
}

#[test]
fn waitaof_has_this_member_sync_and_counts_others_only_if_they_sync_before_they_acknowledge() {
    for (durability, others) in [(Durability::Off, 0), (Durability::Always, 2)] {
        let (bench, planted) = member_with(Config { durability, ..Config::default() });
        acknowledge(&planted, 5, [5, 5]);
        let mut connection = bench.connect();
        let mut answer = ask(&mut connection, &bench, "SET foo 1|WAITAOF 1 0 0");
        bench.write(&mut connection);
        answer += &connection.take();
        if durability == Durability::Off {
            assert_eq!((answer.as_str(), planted.syncs()), ("+OK", 1));
            bench.write(&mut connection);
            assert_eq!(planted.syncs(), 1, "it is asked once");
        }
        let log = bench.shared.engine.log();
        log.request_sync(log.appended());
        bench.sync(&mut connection);
        answer += &connection.take();
        assert!(
            answer.starts_with("+OK") && answer.ends_with(&format!("*2\r\n:1\r\n:{others}\r\n")),
            "{answer:?}"
        );
        assert_eq!(ask(&mut connection, &bench, "WAITAOF 0 0 0"), format!("*2 :1 :{others}"));
        connection.close(&bench.context());
    }
}
