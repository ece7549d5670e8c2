//! Clusters whose members have full, slow and failing disks: nothing that was acknowledged is lost, and who
//! leads can write, if any member can.

use crate::support::cluster::Cluster;
use crate::support::small_disk::SmallDisk;
use crate::support::{Answer, Client, wait_until};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A value of which a dozen fill a small segment.
const VALUE_BYTES: usize = 4 << 10;
/// Few keys: the log is what fills the disk, not the data.
const KEYS: u64 = 40;
const SMALL: [&str; 4] = ["--log-segment-bytes", "262144", "--snapshot-after", "0"];

/// Acknowledged changes: the number of the last value of each key.
#[derive(Default)]
struct Ledger {
    values: BTreeMap<u64, u64>,
    next: u64,
}

impl Ledger {
    /// Writes a value at any member that takes it. Returns that member.
    fn write(&mut self, cluster: &Cluster) -> Option<usize> {
        let (key, number) = (self.next % KEYS, self.next);
        // A value whose answer did not come may be there: its number is not used again.
        self.next += KEYS + 1;
        let member = cluster.try_set(&format!("key:{key}"), &value(number))?;
        self.values.insert(key, number);
        Some(member)
    }

    /// Writes until another member than `before` takes a change.
    fn write_until_another(&mut self, cluster: &Cluster, before: usize) -> usize {
        let mut other = None;
        wait_until("another member leads and takes changes", || {
            other = self.write(cluster).filter(|member| *member != before);
            other.is_some()
        });
        other.expect("there is one")
    }

    /// Writes until members refuse it for some time.
    fn write_until_refused(&mut self, cluster: &Cluster) {
        let mut since = Instant::now();
        wait_until("changes are refused", || {
            if self.write(cluster).is_some() {
                since = Instant::now();
            }
            since.elapsed() > Duration::from_secs(3)
        });
    }

    /// Checks what was acknowledged, at every member.
    fn check(&self, cluster: &Cluster) {
        assert!(self.values.len() as u64 == KEYS, "each key was acknowledged: {:?}", self.values);
        for mut client in cluster.settled() {
            let _ = client.call(&["READONLY"]).expect("an answer");
            for (key, acknowledged) in &self.values {
                let answer = client.call(&["GET", &format!("key:{key}")]).expect("an answer");
                let Answer::Bulk(text) = &answer else { panic!("key {key}: {answer:?}") };
                let found: u64 = text[..8].parse().expect("a number");
                assert!(found >= *acknowledged, "key {key} is {found}, and {acknowledged} was acknowledged");
            }
        }
    }
}

fn value(number: u64) -> String {
    format!("{number:08}").repeat(VALUE_BYTES / 8)
}

/// Founds a cluster in which these members have small disks; `None` where that is not permitted.
fn found(small: &[usize], flags: &[&str]) -> Option<Cluster> {
    let mut disks = [None, None, None];
    for member in small {
        disks[*member] = Some(SmallDisk::mount()?);
    }
    Some(Cluster::found_on(disks, &[&SMALL[..], flags].concat()))
}

/// Has a member lead.
fn lead(cluster: &Cluster, member: usize) {
    wait_until("the member leads", || {
        let _ = Client::connect(cluster.clients[member])
            .and_then(|mut client| client.call(&["CLUSTER", "FAILOVER"]));
        cluster.leader() == member
    });
}

fn disk(cluster: &Cluster, member: usize) -> &SmallDisk {
    cluster.disks[member].as_ref().expect("it has a small disk")
}

/// The numbers of elections that a member has seen.
fn term(cluster: &Cluster, member: usize) -> i64 {
    let answer = Client::connect(cluster.clients[member])
        .and_then(|mut client| client.call(&["CLUSTER", "STATUS"]))
        .expect("an answer")
        .array();
    let at = answer.iter().position(|field| *field == Answer::Bulk("term".into())).expect("the field");
    answer[at + 1].integer()
}

fn leader_gives_the_lead_away(flags: &[&str]) {
    let Some(cluster) = found(&[0], flags) else { return };
    let mut ledger = Ledger::default();
    lead(&cluster, 0);
    // A counter that has moved cannot be committed on a full disk.
    let mut client = Client::connect(cluster.clients[0]).expect("it accepts");
    client.call(&["COUNTER.CREATE", "hits", "RELAXED", "1000000"]).expect("an answer");
    client.call(&["COUNTER.ADD", "hits", "3"]).expect("an answer");
    disk(&cluster, 0).fill();
    let next = ledger.write_until_another(&cluster, 0);
    // It does not come back: others have more, and the disk is still full.
    let began = term(&cluster, next);
    for _ in 0..200 {
        if let Some(member) = ledger.write(&cluster) {
            assert_ne!(member, 0, "its disk is full");
        }
    }
    std::thread::sleep(Duration::from_secs(3));
    assert!(ledger.write_until_another(&cluster, 0) != 0);
    let ended = term(&cluster, next);
    // A busy machine has an election now and then.
    assert!(ended - began <= 3, "the lead goes to and fro: term {began}, and later {ended}");
    disk(&cluster, 0).free();
    ledger.check(&cluster);
    lead(&cluster, 0);
    ledger.check(&cluster);
}

#[test]
fn a_leader_with_a_full_disk_gives_the_lead_away() {
    leader_gives_the_lead_away(&["--durability", "interval"]);
}

#[test]
fn a_leader_with_a_full_disk_gives_the_lead_away_when_answers_wait_for_syncs() {
    leader_gives_the_lead_away(&["--durability", "always"]);
}

#[test]
fn a_follower_with_a_full_disk_holds_nothing_up_and_catches_up() {
    let Some(cluster) = found(&[2], &[]) else { return };
    let mut ledger = Ledger::default();
    lead(&cluster, 0);
    disk(&cluster, 2).fill();
    for _ in 0..300 {
        ledger.write(&cluster);
    }
    assert!(ledger.write(&cluster).is_some(), "changes go on");
    disk(&cluster, 2).free();
    ledger.check(&cluster);
}

#[test]
fn a_leader_keeps_the_lead_when_all_others_have_full_disks_too() {
    let Some(cluster) = found(&[0, 1, 2], &[]) else { return };
    let mut ledger = Ledger::default();
    lead(&cluster, 0);
    for _ in 0..KEYS {
        ledger.write(&cluster);
    }
    (0..3).for_each(|member| disk(&cluster, member).fill());
    ledger.write_until_refused(&cluster);
    let began = term(&cluster, 0);
    std::thread::sleep(Duration::from_secs(4));
    let ended = term(&cluster, 0);
    assert!(ended - began <= 2, "the lead goes to and fro: term {began}, and later {ended}");
    // One whose disk has space again, and one more, are most of them.
    disk(&cluster, 1).free();
    disk(&cluster, 2).free();
    wait_until("changes are accepted", || ledger.write(&cluster).is_some());
    disk(&cluster, 0).free();
    ledger.check(&cluster);
}

#[test]
fn two_followers_with_full_disks_stop_changes_until_one_has_space() {
    let Some(cluster) = found(&[1, 2], &[]) else { return };
    let mut ledger = Ledger::default();
    lead(&cluster, 0);
    for _ in 0..KEYS {
        ledger.write(&cluster);
    }
    disk(&cluster, 1).fill();
    disk(&cluster, 2).fill();
    std::thread::scope(|scope| {
        let (cluster, ledger) = (&cluster, &mut ledger);
        // Its changes wait for a quorum until there is one.
        let writer = scope.spawn(move || {
            for _ in 0..300 {
                ledger.write(cluster);
            }
        });
        std::thread::sleep(Duration::from_secs(4));
        disk(cluster, 1).free();
        writer.join().expect("it goes on");
    });
    disk(&cluster, 2).free();
    ledger.check(&cluster);
}

/// Slows calls of a running member down, until the returned process is killed.
fn tamper(cluster: &Cluster, member: usize, calls: &str, how: &str) -> Child {
    let pid = cluster.server(member).child.id().to_string();
    let strace = Command::new("strace")
        .args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={calls}"), "-e"])
        .args([&format!("inject={calls}:{how}"), "-p", &pid])
        .stderr(Stdio::null())
        .spawn()
        .expect("strace is installed");
    let status = format!("/proc/{pid}/status");
    wait_until("strace attaches", || {
        std::fs::read_to_string(&status).is_ok_and(|status| !status.contains("TracerPid:\t0\n"))
    });
    strace
}

fn end(mut strace: Child) {
    // It lets go of the process at SIGTERM, and not at SIGKILL.
    let _ = Command::new("kill").arg(strace.id().to_string()).status();
    strace.wait().expect("it ends");
}

#[test]
fn a_leader_with_a_slow_disk_loses_nothing() {
    let cluster = Cluster::found_with(&["--durability", "always"]);
    let mut ledger = Ledger::default();
    let leader = cluster.leader();
    let strace = tamper(&cluster, leader, "fdatasync", "delay_enter=300000");
    let until = Instant::now() + Duration::from_secs(5);
    while Instant::now() < until {
        ledger.write(&cluster);
    }
    end(strace);
    for _ in 0..KEYS {
        ledger.write(&cluster);
    }
    ledger.check(&cluster);
}

#[test]
fn a_leader_whose_disk_hangs_gives_the_lead_away() {
    let cluster = Cluster::found_with(&["--durability", "always"]);
    let mut ledger = Ledger::default();
    let leader = cluster.leader();
    for _ in 0..2 * KEYS {
        ledger.write(&cluster);
    }
    // Longer than the log takes to notice it.
    let strace = tamper(&cluster, leader, "pwrite64,pwritev,fdatasync", "delay_enter=40000000");
    let other = ledger.write_until_another(&cluster, leader);
    assert_ne!(other, leader);
    end(strace);
    ledger.check(&cluster);
}

/// Starts a member whose syncs fail from some on, with the lines for its operator in a file.
fn run_with_failing_syncs(cluster: &mut Cluster, member: usize) -> PathBuf {
    let path = cluster.directory.path().join(format!("errors{member}"));
    let errors = File::create(&path).expect("a file");
    cluster.run_telling(member, &["--durability", "always"], errors.into());
    path
}

#[test]
fn a_member_whose_disk_fails_ends_and_the_others_go_on() {
    let mut cluster = Cluster::found_with(&["--durability", "always"]);
    let mut ledger = Ledger::default();
    let victim = cluster.leader();
    cluster.kill(victim);
    let errors = run_with_failing_syncs(&mut cluster, victim);
    lead(&cluster, victim);
    for _ in 0..KEYS {
        ledger.write(&cluster);
    }
    let strace = tamper(&cluster, victim, "fdatasync", "error=EIO");
    let ended = || {
        let server = &mut cluster.servers[victim];
        server.as_mut().expect("it ran").child.try_wait().expect("it can be asked")
    };
    let mut ended = ended;
    let mut status = None;
    // Each write has it sync.
    let ports = cluster.clients;
    wait_until("the member ends", || {
        for port in ports {
            let _ = Client::connect(port).and_then(|mut client| {
                client.send(&["SET", "more", "1"])?;
                Ok(())
            });
        }
        status = ended();
        status.is_some()
    });
    end(strace);
    assert_eq!(status.expect("it has ended").code(), Some(1), "the exit code says that it failed");
    let said = std::fs::read_to_string(&errors).expect("text");
    assert!(said.contains("takes no part any more") && said.contains("Input/output error"), "{said}");
    cluster.servers[victim] = None;
    for _ in 0..KEYS {
        cluster.set("without", "1");
        ledger.write(&cluster);
    }
    cluster.run(victim);
    ledger.check(&cluster);
}
