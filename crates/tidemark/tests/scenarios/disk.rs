//! A disk that fills up again and again: changes are refused with a clear error, reads continue,
//! health reports it, freed space is used without a restart, and no acknowledged change is lost.

use crate::support::prizes::{create_prizes, draw_until_refused};
use crate::support::small_disk::SmallDisk;
use crate::support::{Answer, Client, Server, call, free_port, readiness, wait_until};
use std::collections::BTreeMap;
use std::process::Command;
use std::time::{Duration, Instant};

/// A value that fills a small segment in about a dozen writes.
const VALUE_BYTES: usize = 4 << 10;

/// Number of keys. Few keys keep the state small, so the log is what fills the disk.
const KEYS: usize = 40;

/// Size of a log segment in bytes.
const SEGMENT_BYTES: &str = "262144";

/// Longest time until the server must notice free space.
const PATIENCE: Duration = Duration::from_secs(30);

fn serve(disk: &SmallDisk, durability: &str, storage: &str, http: u16) -> Server {
    let mut command = disk.command();
    command.args(["serve", "--durability", durability, "--log-storage", storage]);
    command.args(["--log-segment-bytes", SEGMENT_BYTES, "--snapshot-after", "0"]);
    command.args(["--http", &format!("127.0.0.1:{http}"), "--dir"]).arg(disk.data());
    Server::spawn(command)
}

fn value(number: u64) -> String {
    format!("{number:08}").repeat(VALUE_BYTES / 8)
}

/// Acknowledged state: for each key the number of its last value.
#[derive(Default)]
struct Ledger {
    values: BTreeMap<String, u64>,
    next: u64,
}

impl Ledger {
    /// Fills the disk and writes until that is refused; returns the server's error. A segment that
    /// the server removes after the disk was filled can be enough space for ever, because the server
    /// takes snapshots to shorten its log; so the disk is filled again from time to time.
    fn write_until_refused(&mut self, disk: &SmallDisk, client: &mut Client) -> String {
        for number in 0..10_000 {
            if number % 1000 == 0 {
                disk.fill();
            }
            let key = format!("key:{}", self.next as usize % KEYS);
            match client.call(&["SET", &key, &value(self.next)]).expect("an answer") {
                Answer::Error(text) => return text,
                answer => assert_eq!(answer, Answer::Status("OK".into())),
            }
            self.values.insert(key, self.next);
            self.next += 1;
        }
        panic!("the disk is full at some time");
    }

    /// Waits until a write is accepted.
    fn write_when_possible(&mut self, client: &mut Client) {
        let began = Instant::now();
        let key = format!("key:{}", self.next as usize % KEYS);
        while client.call(&["SET", &key, &value(self.next)]).expect("an answer").is_error() {
            assert!(began.elapsed() < PATIENCE, "space that is freed is used");
            std::thread::sleep(Duration::from_millis(10));
        }
        self.values.insert(key, self.next);
        self.next += 1;
    }

    /// Checks that every acknowledged value is there, and no refused one.
    fn check(&self, client: &mut Client) {
        for (key, number) in &self.values {
            let answer = client.call(&["GET", key]).expect("reads go on");
            let Answer::Bulk(found) = answer else { panic!("{key} is gone: {answer:?}") };
            let found = (found.get(..8), found == value(*number));
            let expected = format!("{number:08}");
            assert_eq!(found, (Some(&expected[..]), true), "{key} is as it was acknowledged");
        }
        assert_eq!(client.call(&["DBSIZE"]).expect("an answer").integer(), self.values.len() as i64);
    }
}

#[test]
fn a_limit_of_file_sizes_refuses_changes_and_does_not_end_the_server() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut command = Command::new("sh");
    command.args(["-c", r#"ulimit -f 100 && exec "$0" "$@""#, env!("CARGO_BIN_EXE_tidemark"), "serve"]);
    command.args(["--log-segment-bytes", SEGMENT_BYTES, "--dir"]).arg(directory.path());
    let server = Server::spawn(command);
    let mut client = server.client();
    // The first command may be executed before the log reaches the limit. Then its answer is an
    // error, and reads show it.
    for key in ["first", "second"] {
        let Answer::Error(refusal) = client.call(&["SET", key, "value"]).expect("an answer") else {
            panic!("no segment is as small as the limit")
        };
        assert!(refusal.starts_with("MISCONF") && refusal.contains("ulimit -f"), "{refusal}");
    }
    assert_eq!(client.call(&["EXISTS", "second"]).expect("reads go on"), Answer::Integer(0));
    assert!(server.terminate().success());
}

fn cycles(standard: usize) -> usize {
    std::env::var("TIDEMARK_DISK_CYCLES").ok().and_then(|text| text.parse().ok()).unwrap_or(standard)
}

/// Fills the disk and frees it again, `cycles` times, and stops the server now and then while the
/// disk is full.
fn fill_and_free(durability: &str, storage: &str, cycles: usize) {
    let Some(disk) = SmallDisk::mount() else { return };
    let mut http = free_port();
    let mut server = serve(&disk, durability, storage, http);
    let mut client = server.client();
    let mut ledger = Ledger::default();
    for cycle in 1..=cycles {
        let refusal = ledger.write_until_refused(&disk, &mut client);
        assert!(refusal.starts_with("MISCONF Tidemark refuses changes"), "{refusal}");
        assert!(refusal.contains("free space"), "the refusal says what to do: {refusal}");
        for _ in 0..10 {
            assert!(client.call(&["INCR", "refused"]).expect("an answer").is_error());
            assert_eq!(client.call(&["DEL", "absent"]).expect("an answer"), Answer::Integer(0));
        }
        let (status, text) = readiness(http);
        assert_eq!(status, 503, "{text}");
        assert!(client.call(&["SAVE"]).expect("an answer").is_error(), "there is no space for a snapshot");
        ledger.check(&mut client);
        if cycle % 10 == 0 {
            // A clean stop keeps everything in every mode; with `always` a kill does as well.
            if durability == "always" {
                server.kill();
            } else {
                assert!(server.terminate().success());
            }
            http = free_port();
            server = serve(&disk, durability, storage, http);
            client = server.client();
            ledger.check(&mut client);
        }
        disk.free();
        ledger.write_when_possible(&mut client);
        assert_eq!(readiness(http).0, 200);
        assert_eq!(save(&mut client), Answer::Status("OK".into()));
        ledger.check(&mut client);
    }
    assert!(server.terminate().success());
    let server = serve(&disk, durability, storage, free_port());
    ledger.check(&mut server.client());
    println!("{durability}, {storage}: {cycles} cycles, {} acknowledged writes", ledger.next);
}

/// Returns the answer to `SAVE`, after the snapshot that the server may take itself once the disk
/// has space.
fn save(client: &mut Client) -> Answer {
    loop {
        match client.call(&["SAVE"]).expect("an answer") {
            Answer::Error(error) if error.contains("already in progress") => {
                std::thread::sleep(Duration::from_millis(10));
            }
            answer => return answer,
        }
    }
}

#[test]
fn a_full_disk_refuses_changes_until_there_is_space_and_loses_nothing() {
    fill_and_free("always", "file", cycles(50));
}

#[test]
fn so_it_is_when_answers_do_not_wait_for_the_disk() {
    fill_and_free("interval", "file", cycles(50));
}

#[test]
fn so_it_is_when_the_log_is_mapped() {
    fill_and_free("always", "mmap", cycles(10));
}

#[test]
fn a_log_much_larger_than_its_disk_is_shortened_before_anything_is_refused() {
    let Some(disk) = SmallDisk::mount() else { return };
    for durability in ["interval", "always"] {
        let server = serve(&disk, durability, "file", free_port());
        let mut client = server.client();
        let mut ledger = Ledger::default();
        // Twice the size of the disk.
        while ledger.next * (VALUE_BYTES as u64) < 32 << 20 {
            let key = format!("key:{}", ledger.next as usize % KEYS);
            call(&mut client, &["SET", &key, &value(ledger.next)]);
            ledger.values.insert(key, ledger.next);
            ledger.next += 1;
        }
        ledger.check(&mut client);
        assert!(server.terminate().success());
        let server = serve(&disk, durability, "file", free_port());
        ledger.check(&mut server.client());
    }
}

#[test]
fn deleting_makes_space_on_a_disk_that_the_state_has_filled() {
    let Some(disk) = SmallDisk::mount() else { return };
    let http = free_port();
    let server = serve(&disk, "interval", "file", http);
    let mut client = server.client();
    let mut keys = 0;
    let refusal = loop {
        match client.call(&["SET", &format!("key:{keys}"), &value(keys)]).expect("an answer") {
            Answer::Error(text) => break text,
            answer => assert_eq!(answer, Answer::Status("OK".into())),
        }
        keys += 1;
        assert!(keys < 4096, "16 MiB of values do not fit on the disk");
    };
    assert!(refusal.contains("free space"), "{refusal}");
    assert_eq!(readiness(http).0, 503);
    for key in 1..keys {
        call(&mut client, &["DEL", &format!("key:{key}")]);
    }
    wait_until("changes are accepted again, without a hand at the disk", || {
        !client.call(&["SET", "new", "value"]).expect("an answer").is_error()
    });
    assert_eq!(readiness(http).0, 200);
    println!("16 MiB of disk had room for {keys} values of {VALUE_BYTES} bytes");
    assert!(server.terminate().success());
    let server = serve(&disk, "interval", "file", free_port());
    let mut client = server.client();
    assert_eq!(call(&mut client, &["DBSIZE"]), Answer::Integer(2));
    assert_eq!(call(&mut client, &["GET", "key:0"]), Answer::Bulk(value(0)));
}

#[test]
fn draws_that_a_full_disk_refuses_give_nothing() {
    const PRIZES: usize = 12_000;
    let Some(disk) = SmallDisk::mount() else { return };
    let server = serve(&disk, "always", "file", free_port());
    let mut client = server.client();
    create_prizes(&mut client, PRIZES);
    disk.fill();
    let (mut won, refusal) = draw_until_refused(&mut client);
    let refusal = refusal.expect("the server lives");
    assert!(refusal.starts_with("MISCONF Tidemark refuses changes"), "{refusal}");
    assert!(client.call(&["POOL.DRAW", "prizes", "COUNT", "100"]).expect("an answer").is_error());
    server.kill();
    disk.free();
    let server = serve(&disk, "always", "file", free_port());
    let (rest, refusal) = draw_until_refused(&mut server.client());
    assert!(refusal.is_some_and(|text| text.starts_with("EMPTY ")), "until nothing is left");
    assert!(won.is_disjoint(&rest), "no prize is given twice");
    won.extend(rest);
    // A draw whose answer was an error may be in the log.
    assert!((PRIZES - 1..=PRIZES).contains(&won.len()), "{} of {PRIZES}", won.len());
}

#[test]
fn holes_that_a_sparse_copy_has_left_in_the_log_do_not_kill_a_mapped_one() {
    let Some(disk) = SmallDisk::mount() else { return };
    let server = serve(&disk, "always", "mmap", free_port());
    let mut ledger = Ledger::default();
    ledger.write_when_possible(&mut server.client());
    assert!(server.terminate().success());
    for file in std::fs::read_dir(disk.path("data")).expect("the data directory") {
        let dug = Command::new("fallocate").arg("--dig-holes").arg(file.expect("a file").path()).status();
        assert!(dug.expect("fallocate (util-linux) is installed").success());
    }
    disk.fill();
    let http = free_port();
    let server = serve(&disk, "always", "mmap", http);
    let mut client = server.client();
    // The kernel decides where a hole is hit first: in the zeros of a new segment, or in the middle
    // of this one, where a record that cannot be written is a permanent failure.
    while let Ok(answer) = client.call(&["SET", "filler", &value(0)])
        && !answer.is_error()
    {}
    let mut client = server.client();
    assert_eq!(readiness(http).0, 503);
    assert!(client.call(&["INCR", "refused"]).expect("an answer").is_error());
    server.kill();
    disk.free();
    let server = serve(&disk, "always", "mmap", free_port());
    let mut client = server.client();
    let found = client.call(&["GET", "key:0"]).expect("an answer");
    assert!(found == Answer::Bulk(value(0)), "the acknowledged value is there");
    ledger.write_when_possible(&mut client);
}
