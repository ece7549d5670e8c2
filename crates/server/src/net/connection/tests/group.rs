//! A member of a group: which commands run where, and what clients are told of it.

use super::*;
use crate::group::planted::{ME, OTHER, Planted};
use crate::group::{Group, NodeId, Refusal, wire_name};
use crate::http::running;

/// Returns the server of a member over a log that is alone: what is committed is of no interest here.
fn member() -> (Bench, Arc<Planted>) {
    let planted = Planted::leading();
    let clock = ManualClock::new();
    let options = Options { segment_bytes: 64 * 1024, clock: Clock::from(&clock), ..Options::default() };
    let (log, _) = Log::open(Arc::new(MemoryStorage::new()), options).expect("an empty log");
    let group = Group::new(ME, Arc::<Planted>::clone(&planted));
    let config = Config { enable_debug_command: crate::config::DebugAccess::Yes, ..Config::default() };
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
        ("MGET foo b", MOVED_FOO),
        ("BLPOP foo 1", MOVED_FOO),
        ("WATCH foo", MOVED_FOO),
        ("GET.WATCH foo", MOVED_FOO),
        ("SUBSCRIBE foo", MOVED_FOO),
        ("PUBLISH foo a", MOVED_FOO),
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
