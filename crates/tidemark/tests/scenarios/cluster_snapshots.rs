//! Clusters whose members drop what their snapshots cover of the log: a member that lacks it gets a
//! snapshot.

use crate::support::cluster::Cluster;
use crate::support::small_disk::SmallDisk;
use crate::support::{Answer, Client, call, wait_until};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// Small segments, and a snapshot after some hundred kilobytes.
const SMALL: &[&str] = &["--log-segment-bytes", "65536", "--snapshot-after-bytes", "262144"];
/// Points of each series in a batch: some blocks.
const POINTS: usize = 600;

/// Sends commands to the leader, until it no longer leads.
fn send(cluster: &Cluster, commands: &[String]) {
    let Ok(mut client) = Client::connect(cluster.clients[cluster.leader()]) else { return };
    for some in commands.chunks(200) {
        let some: Vec<Vec<&str>> = some.iter().map(|command| command.split(' ').collect()).collect();
        if client.send_together(&some).is_err() {
            return;
        }
        for command in &some {
            match client.read() {
                Ok(Answer::Error(error)) => {
                    let has_moved = ["MOVED", "CLUSTERDOWN"].iter().any(|word| error.starts_with(word));
                    assert!(has_moved, "{command:?}: {error}");
                }
                Ok(_) => {}
                Err(_) => return,
            }
        }
    }
}

/// Creates keys of kinds that snapshots have in ways of their own.
fn create(cluster: &Cluster) {
    let commands = [
        "COUNTER.CREATE hits RELAXED 100",
        "COUNTER.CREATE seats LIMIT 100000 EXACT 100",
        "POOL.CREATE prizes ITEMS car 1 500 mug 2 90000",
        "XGROUP CREATE jobs workers $ MKSTREAM",
    ];
    send(cluster, &commands.map(str::to_owned));
}

/// Writes some hundred kilobytes: strings, points of series, counters, draws, and entries of a stream.
fn write(cluster: &Cluster, round: usize) {
    let mut commands = Vec::new();
    for number in 0..POINTS {
        let time = (round * POINTS + number + 1) * 1000;
        for series in ["hot", "cold", "humid"] {
            let value = format!("{}.{}", number % 17, round * 31 % 97);
            commands.push(format!("TS.ADD {series} {time} {value} ON_DUPLICATE LAST"));
        }
        if number % 4 == 0 {
            commands.push(format!("SET key:{number} {round}:{}", "v".repeat(700)));
            commands.push("COUNTER.ADD hits 3".to_owned());
            commands.push("COUNTER.TAKE seats".to_owned());
            commands.push(format!("XADD jobs MAXLEN ~ 2000 * round {round} number {number}"));
            commands.push(format!("XREADGROUP GROUP workers {} COUNT 1 STREAMS jobs >", number % 3));
        }
        if number % 100 == 0 {
            commands.push("POOL.DRAW prizes COUNT 2".to_owned());
        }
    }
    send(cluster, &commands);
}

/// Names of the files of a member that begin with `prefix`.
fn files(cluster: &Cluster, member: usize, prefix: &str) -> Vec<String> {
    let directory = match &cluster.disks[member] {
        Some(disk) => disk.path("data"),
        None => cluster.member_directory(member),
    };
    let names = std::fs::read_dir(directory).expect("the directory is there");
    let names = names.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<_> = names.filter(|name| name.starts_with(prefix)).collect();
    names.sort_unstable();
    names
}

/// Writes until these members have dropped the segments that `behind` ends with.
fn write_beyond(cluster: &Cluster, members: &[usize], behind: usize, rounds: &mut usize) {
    let last = files(cluster, behind, "segment-").pop().expect("it has a log");
    wait_until("the others have dropped what the member has", || {
        write(cluster, *rounds);
        *rounds += 1;
        members
            .iter()
            .all(|member| files(cluster, *member, "segment-").first().is_some_and(|first| *first > last))
    });
}

fn others(member: usize) -> [usize; 2] {
    [(member + 1) % 3, (member + 2) % 3]
}

/// Waits until all members have the same data, and show the same of some keys. Counters show what was
/// committed of them, a moment later.
fn assert_equal(cluster: &Cluster) {
    let reads: [&[&str]; 7] = [
        &["GET", "key:0"],
        &["COUNTER.GET", "hits"],
        &["POOL.STATE", "prizes"],
        &["TS.RANGE", "hot", "-", "+", "AGGREGATION", "sum", "60000"],
        &["TS.RANGE", "humid", "0", "400000"],
        &["XRANGE", "jobs", "-", "+"],
        &["XPENDING", "jobs", "workers"],
    ];
    let show = |mut client: Client| {
        let _ = call(&mut client, &["READONLY"]);
        reads.iter().map(|read| client.call(read).expect("an answer")).collect::<Vec<Answer>>()
    };
    wait_until("all members show the same", || {
        let shown: Vec<_> = cluster.settled().into_iter().map(show).collect();
        shown.iter().all(|answers| *answers == shown[0] && !answers.iter().any(Answer::is_error))
    });
}

#[test]
fn a_member_that_lacks_what_the_others_have_dropped_gets_a_snapshot() {
    let mut cluster = Cluster::found_with(SMALL);
    create(&cluster);
    let mut rounds = 0;
    write(&cluster, rounds);
    for turn in 0..2 {
        let behind = others(cluster.leader())[turn];
        let own_blocks = files(&cluster, behind, "blocks-");
        cluster.kill(behind);
        write_beyond(&cluster, &others(behind), behind, &mut rounds);
        cluster.run(behind);
        assert_equal(&cluster);
        let blocks = files(&cluster, behind, "blocks-");
        assert!(blocks.iter().any(|name| !own_blocks.contains(name)), "{blocks:?} and before {own_blocks:?}");
        // It needs nothing of the log of before.
        cluster.kill(behind);
        cluster.run(behind);
        write(&cluster, rounds);
        rounds += 1;
        assert_equal(&cluster);
    }
    // What it got is whole: it leads.
    for member in 0..3 {
        cluster.kill(member);
    }
    for member in 0..3 {
        cluster.run(member);
    }
    assert_equal(&cluster);
}

#[test]
fn a_member_that_was_stopped_gets_a_snapshot_and_answers_readers() {
    let cluster = Cluster::found_with(SMALL);
    create(&cluster);
    let mut rounds = 0;
    write(&cluster, rounds);
    let behind = others(cluster.leader())[0];
    cluster.stop(behind);
    write_beyond(&cluster, &others(behind), behind, &mut rounds);
    cluster.server(behind).signal("CONT");
    assert_equal(&cluster);
}

/// The metrics of a member.
fn metrics(cluster: &Cluster, member: usize) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", cluster.http[member])).expect("it accepts");
    let request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request).expect("it is sent");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("text");
    text
}

#[test]
fn a_snapshot_for_which_a_member_has_no_space_is_said_everywhere_until_it_has() {
    let Some(disk) = SmallDisk::mount() else { return };
    let mut cluster = Cluster::found_on([None, None, Some(disk)], SMALL);
    create(&cluster);
    let mut rounds = 0;
    let behind = 2;
    cluster.kill(behind);
    let others = others(behind);
    for member in others {
        cluster.kill(member);
    }
    let logs = others.map(|member| cluster.run_noting(member, SMALL));
    write_beyond(&cluster, &others, behind, &mut rounds);
    let own = cluster.run_noting(behind, SMALL);
    let refused = "does not take the snapshot that it needs: the disk has";
    wait_until("status says so", || {
        let (is_good, said) = cluster.command(&["status"], 0);
        !is_good && said.contains(&format!("member 3: it {refused}")) && said.contains("stay free")
    });
    let read = |path| std::fs::read_to_string(path).expect("text");
    wait_until("the member says so", || {
        read(&own).contains("this member needs a snapshot of the leader, and does not take it")
    });
    let leader = cluster.leader();
    let unsent = "warning: member 3 lacks what this leader no longer has in its log";
    let lines = |path| read(path).lines().filter(|line| line.contains(unsent)).count();
    wait_until("the leader says so", || logs.iter().any(|path| lines(path) > 0));
    assert!(metrics(&cluster, leader).contains("tidemark_cluster_member_lacks_snapshot{member=\"3\"} 1"));
    assert!(metrics(&cluster, behind).contains("tidemark_cluster_refuses_snapshot 1"));
    let (_, json) = cluster.command(&["status", "--json"], 0);
    assert!(json.contains("\"snapshot_error\": \"the receiver has no room for the snapshot"), "{json}");
    let before: usize = logs.iter().map(lines).sum();
    std::thread::sleep(Duration::from_secs(5));
    assert!(logs.iter().map(lines).sum::<usize>() <= before + 2, "it is not said twice a second");
    cluster.disks[behind].as_ref().expect("it has one").grow();
    // All files are read for an attempt: it is not repeated at once.
    std::thread::sleep(Duration::from_secs(20));
    wait_until("it takes the snapshot", || cluster.command(&["status"], 0).0);
    assert_equal(&cluster);
    assert!(metrics(&cluster, behind).contains("tidemark_cluster_refuses_snapshot 0"));
}

#[test]
fn members_are_killed_while_a_snapshot_is_sent() {
    let mut cluster = Cluster::found_with(SMALL);
    create(&cluster);
    let mut rounds = 0;
    write(&cluster, rounds);
    let behind = others(cluster.leader())[0];
    cluster.kill(behind);
    write_beyond(&cluster, &others(behind), behind, &mut rounds);
    for round in 0..12 {
        cluster.run(behind);
        std::thread::sleep(Duration::from_millis(round * 23));
        cluster.kill(behind);
    }
    for round in 0..3 {
        cluster.run(behind);
        std::thread::sleep(Duration::from_millis(round * 60));
        let leader = cluster.leader();
        cluster.kill(leader);
        cluster.run(leader);
        if round < 2 && leader != behind {
            cluster.kill(behind);
            write_beyond(&cluster, &others(behind), behind, &mut rounds);
        }
    }
    assert_equal(&cluster);
}
