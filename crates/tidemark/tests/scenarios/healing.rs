//! A bit flips on the disk of one member: it is found, and healed from the others.

use crate::support::cluster::Cluster;
use crate::support::{Answer, Client, call, wait_until};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// Small segments, frequent snapshots, and a scrub that does not spare the disk.
const SETTINGS: &[&str] =
    &["--log-segment-bytes", "65536", "--snapshot-after-bytes", "262144", "--scrub-rate", "64mb"];

/// Kinds of files in a member's directory, by the beginning of their names.
const KINDS: [&str; 9] =
    ["segment-", "snapshot-", "blocks-", "spare-", "END", "BEGIN", "vote", "standing", "group"];

/// What a member says that is to get its data from the others.
const DAMAGED: &str = "the data of this member is damaged";

/// How many bits flip, one after the other. `TIDEMARK_HEALING_ROUNDS=200` for a long run.
fn rounds() -> usize {
    std::env::var("TIDEMARK_HEALING_ROUNDS")
        .ok()
        .and_then(|rounds| rounds.parse().ok())
        .unwrap_or(KINDS.len())
}

/// Numbers that look random, and are the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }
}

/// The files of a kind in a directory, in the order of their names.
fn files(directory: &Path, kind: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").path());
    let is_of_kind = |path: &PathBuf| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(kind))
    };
    let mut files: Vec<_> = entries.filter(is_of_kind).collect();
    files.sort_unstable();
    files
}

/// Flips a bit of a file, within its first `end` bytes.
fn flip(path: &Path, numbers: &mut Numbers, end: usize) -> String {
    let mut bytes = fs::read(path).expect("readable");
    let bit = numbers.below(end.min(bytes.len()) as u64 * 8) as usize;
    bytes[bit / 8] ^= 1 << (bit % 8);
    fs::write(path, bytes).expect("writable");
    format!("bit {} of byte {} of {}", bit % 8, bit / 8, path.display())
}

/// The bytes of a file up to its last one that is not zero: prepared space is not of interest.
fn used(path: &Path) -> usize {
    let bytes = fs::read(path).expect("readable");
    bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)
}

/// Writes some hundred kilobytes of keys, and points of series that make blocks.
fn write(cluster: &Cluster, round: usize) {
    let mut client = Client::connect(cluster.clients[cluster.leader()]).expect("it accepts");
    for some in 0..10 {
        let mut commands = Vec::new();
        for number in 0..40 {
            commands.push(format!("SET key:{round}:{some}:{number} {}", "v".repeat(700)));
            let time = ((round * 10 + some) * 40 + number + 1) * 1000;
            commands.push(format!("TS.ADD series {time} {number}.5"));
        }
        let commands: Vec<Vec<&str>> = commands.iter().map(|command| command.split(' ').collect()).collect();
        client.send_together(&commands).expect("it is sent");
        // What is not acknowledged, because the lead has moved, is written again in the next round.
        for _ in &commands {
            let _ = client.read();
        }
    }
}

/// Waits until a member whose data was replaced has its vote again. Returns whether it was. With `scrubs`, the
/// damage may be found by the first pass of the scrub.
fn is_replaced(errors: &Path, scrubs: bool) -> bool {
    let told = || fs::read_to_string(errors).expect("text");
    let looks = if scrubs { 40 } else { 0 };
    for _ in 0..looks {
        if told().contains(DAMAGED) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    if !told().contains(DAMAGED) {
        return false;
    }
    wait_until("the member votes again", || told().contains("has everything again, and votes"));
    assert!(told().contains("the damaged data is removed"), "{}", told());
    true
}

/// The members have the same data, and all that was acknowledged.
fn assert_well(cluster: &Cluster, acknowledged: usize) {
    for mut client in cluster.settled() {
        let _ = call(&mut client, &["READONLY"]);
        for number in 0..acknowledged {
            let value = call(&mut client, &["GET", &format!("acknowledged:{number}")]);
            assert_eq!(value, Answer::Bulk(number.to_string()));
        }
    }
}

#[test]
fn a_bit_that_flips_in_any_file_of_a_stopped_member_is_healed_from_the_others() {
    let mut cluster = Cluster::found_with(SETTINGS);
    let mut numbers = Numbers(31);
    let mut outcomes: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    (0..4).for_each(|round| write(&cluster, round));
    for round in 0..rounds() {
        write(&cluster, 4 + round);
        cluster.set(&format!("acknowledged:{round}"), &round.to_string());
        let victim = (cluster.leader() + 1 + round % 2) % 3;
        let kind = KINDS[round % KINDS.len()];
        let stopped = cluster.servers[victim].take().expect("it runs");
        if round % 4 == 3 {
            stopped.kill();
        } else {
            assert!(stopped.terminate().success());
        }
        let found = files(&cluster.member_directory(victim), kind);
        if found.is_empty() {
            cluster.run_noting(victim, SETTINGS);
            continue;
        }
        let path = &found[numbers.below(found.len() as u64) as usize];
        let flipped = flip(path, &mut numbers, used(path).max(1));
        let errors = cluster.run_noting(victim, SETTINGS);
        let replaced = is_replaced(&errors, ["segment-", "snapshot-", "blocks-"].contains(&kind));
        assert_well(&cluster, round + 1);
        eprintln!("{flipped}: {}", if replaced { "replaced" } else { "healed by itself" });
        let outcome = outcomes.entry(kind).or_default();
        if replaced { outcome.0 += 1 } else { outcome.1 += 1 }
    }
    eprintln!("kind: (replaced from the others, healed by the member itself)\n{outcomes:#?}");
    for kind in ["segment-", "snapshot-", "END", "vote", "standing", "group"] {
        assert!(
            rounds() < KINDS.len() || outcomes.contains_key(kind),
            "no file of the kind {kind} was there"
        );
    }
}

#[test]
fn a_running_member_finds_a_flipped_bit_and_replaces_its_data() {
    let mut cluster = Cluster::found_with(SETTINGS);
    (0..4).for_each(|round| write(&cluster, round));
    cluster.set("acknowledged:0", "0");
    let victim = (cluster.leader() + 1) % 3;
    cluster.kill(victim);
    let errors = cluster.run_noting(victim, SETTINGS);
    drop(cluster.settled());
    let process = cluster.server(victim).child.id();
    let mut numbers = Numbers(7);
    let sealed = files(&cluster.member_directory(victim), "snapshot-").pop().expect("a snapshot");
    let flipped = flip(&sealed, &mut numbers, used(&sealed));
    wait_until(&format!("the scrub finds {flipped}"), || {
        let told = fs::read_to_string(&errors).expect("text");
        told.contains("this process begins again, to replace the data of this member")
    });
    assert!(is_replaced(&errors, false));
    assert_eq!(cluster.server(victim).child.id(), process, "a supervisor sees no end");
    assert_well(&cluster, 1);
}

/// Without it the others would have no majority, and nothing could be got from them.
#[test]
fn a_running_member_whose_data_is_damaged_goes_on_while_the_others_need_it() {
    let mut cluster = Cluster::found_with(SETTINGS);
    (0..4).for_each(|round| write(&cluster, round));
    cluster.set("acknowledged:0", "0");
    drop(cluster.settled());
    let victim = (cluster.leader() + 1) % 3;
    cluster.kill(victim);
    let errors = cluster.run_noting(victim, SETTINGS);
    drop(cluster.settled());
    let away = (victim + 1) % 3;
    cluster.kill(away);
    let sealed = files(&cluster.member_directory(victim), "snapshot-").pop().expect("a snapshot");
    let flipped = flip(&sealed, &mut Numbers(7), used(&sealed));
    wait_until(&format!("the scrub finds {flipped}"), || {
        let told = fs::read_to_string(&errors).expect("text");
        // The next snapshot may take the place of the damaged one before it is read.
        told.contains("It is replaced when enough of the other members are well") || !sealed.exists()
    });
    if !sealed.exists() {
        return;
    }
    cluster.set("acknowledged:1", "1");
    cluster.run(away);
    assert!(is_replaced(&errors, true));
    assert_well(&cluster, 2);
}

#[test]
fn two_damaged_members_of_three_keep_their_data_and_status_says_what_to_do() {
    let mut cluster = Cluster::found_with(SETTINGS);
    (0..2).for_each(|round| write(&cluster, round));
    cluster.set("acknowledged:0", "0");
    drop(cluster.settled());
    (0..3).for_each(|member| cluster.kill(member));
    let mut numbers = Numbers(5);
    let mut waiting = Vec::new();
    for member in [0, 1] {
        let path = files(&cluster.member_directory(member), "segment-").swap_remove(0);
        let end = used(&path) / 2;
        flip(&path, &mut numbers, end);
        let mut command = cluster.start_command(member, SETTINGS);
        command.stderr(std::process::Stdio::null());
        waiting.push((path, command.spawn().expect("the binary starts")));
    }
    cluster.run(2);
    wait_until("status says what stands in the way", || {
        let (is_good, said) = cluster.command(&["status"], 2);
        !is_good && said.contains("the data of 1, 2 is damaged") && said.contains("tidemark cluster recover")
    });
    let (_, said) = cluster.command(&["status"], 2);
    assert!(said.contains("member 1 does not take part: its data is damaged"), "{said}");
    assert!(said.contains("copy the directories of 1, 2"), "{said}");
    let (is_good, said) = cluster.command(&["recover"], 2);
    assert!(!is_good && said.contains("the directories of 1, 2 stay as they are"), "{said}");
    let (is_good, said) = cluster.command(&["recover", "--accept-loss"], 2);
    assert!(is_good && said.contains("member 3 leads"), "{said}");
    cluster.set("after", "1");
    for (path, mut waiting) in waiting {
        // It is of another cluster now: they wait for it in vain, and remove nothing.
        assert!(path.exists(), "nothing is removed");
        waiting.kill().expect("it can be killed");
        waiting.wait().expect("it ends");
        assert!(path.exists(), "nothing is removed");
    }
    let mut client = Client::connect(cluster.clients[2]).expect("it accepts");
    assert_eq!(call(&mut client, &["GET", "acknowledged:0"]), Answer::Bulk("0".into()));
}

#[test]
fn damaged_data_stays_until_the_others_have_a_leader() {
    let mut cluster = Cluster::found_with(SETTINGS);
    (0..2).for_each(|round| write(&cluster, round));
    cluster.set("acknowledged:0", "0");
    drop(cluster.settled());
    (0..3).for_each(|member| cluster.kill(member));
    let mut numbers = Numbers(5);
    let log = files(&cluster.member_directory(0), "segment-");
    let path = &log[0];
    let end = used(path) / 2;
    let flipped = flip(path, &mut numbers, end);
    let told = cluster.directory.path().join("errors");
    let mut command = cluster.start_command(0, SETTINGS);
    command.stderr(File::create(&told).expect("a file"));
    let mut waiting = command.spawn().expect("the binary starts");
    wait_until(&format!("{flipped} is found"), || {
        fs::read_to_string(&told)
            .expect("text")
            .contains("When the other members have a leader, it is removed")
    });
    std::thread::sleep(std::time::Duration::from_secs(3));
    assert!(waiting.try_wait().expect("it can be asked").is_none(), "it waits for the others");
    assert!(path.exists(), "nothing is removed");
    cluster.run(1);
    cluster.run(2);
    cluster.set_at_others(0, "acknowledged:0", "0");
    wait_until("the member has everything", || {
        fs::read_to_string(&told).expect("text").contains("has everything again, and votes")
    });
    waiting.kill().expect("it runs");
    waiting.wait().expect("it ends");
    cluster.run(0);
    assert_well(&cluster, 1);
}
