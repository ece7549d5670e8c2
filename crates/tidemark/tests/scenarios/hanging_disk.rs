//! A disk that does not answer: reads, INFO, metrics and health continue, changes are refused after
//! a stated time, and accepted again when the disk answers. Needs root to freeze a file system;
//! crates/log has the same test with simulated storage.

use crate::support::{Answer, Client, Server, call, free_port, readiness, wait_until};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// An ext4 file system in a file, which can be frozen.
struct FreezableDisk {
    directory: tempfile::TempDir,
}

impl FreezableDisk {
    /// Returns `None`, and prints the reason, where the system does not permit mounting.
    fn mount() -> Option<Self> {
        let disk = Self { directory: tempfile::tempdir().expect("a directory") };
        let script =
            "truncate -s 512M image && mkfs.ext4 -q image && mkdir mounted && mount -o loop image mounted";
        let mounted = Command::new("sh").args(["-c", script]).current_dir(disk.directory.path()).output();
        let mounted = mounted.expect("sh runs");
        if mounted.status.success() {
            return Some(disk);
        }
        let reason = String::from_utf8_lossy(&mounted.stderr).trim().replace('\n', "; ");
        eprintln!("cannot mount a file system to freeze, so the real hanging disk was NOT tested: {reason}");
        None
    }

    fn mounted(&self) -> PathBuf {
        self.directory.path().join("mounted")
    }

    fn freeze(&self) {
        assert!(self.fsfreeze("-f"), "the file system can be frozen");
    }

    fn thaw(&self) {
        assert!(self.fsfreeze("-u"), "the file system can be thawed");
    }

    fn fsfreeze(&self, how: &str) -> bool {
        let frozen = Command::new("fsfreeze").arg(how).arg(self.mounted()).output();
        frozen.expect("fsfreeze (util-linux) is installed").status.success()
    }

    fn serve(&self, durability: &str, http: u16) -> Server {
        let http = format!("127.0.0.1:{http}");
        Server::start(&self.mounted().join("data"), &["--durability", durability, "--http", &http])
    }
}

impl Drop for FreezableDisk {
    fn drop(&mut self) {
        self.fsfreeze("-u");
        let _ = Command::new("umount").arg("-l").arg(self.mounted()).status();
    }
}

/// Clients that write until they are refused; each returns the error and the number of acknowledged
/// values.
struct Writers {
    threads: Vec<JoinHandle<(Option<String>, u64)>>,
    stopping: Arc<AtomicBool>,
}

impl Writers {
    fn start(server: &Server, count: usize) -> Self {
        let stopping = Arc::new(AtomicBool::new(false));
        let threads = (0..count).map(|writer| {
            let (mut client, stopping) = (server.client(), Arc::clone(&stopping));
            std::thread::spawn(move || {
                let ballast = "x".repeat(100_000);
                let mut acknowledged = 0;
                while !stopping.load(Ordering::SeqCst) {
                    let value = format!("{}:{ballast}", acknowledged + 1);
                    match client.call(&["SET", &format!("writer:{writer}"), &value]).expect("an answer") {
                        Answer::Error(text) => return (Some(text), acknowledged),
                        answer => assert_eq!(answer, Answer::Status("OK".into())),
                    }
                    acknowledged += 1;
                }
                (None, acknowledged)
            })
        });
        Self { threads: threads.collect(), stopping }
    }

    fn stop(self) -> Vec<(Option<String>, u64)> {
        self.stopping.store(true, Ordering::SeqCst);
        self.threads.into_iter().map(|thread| thread.join().expect("a writer")).collect()
    }
}

/// Returns the number at the start of a writer's value.
fn number(answer: &Answer) -> u64 {
    let Answer::Bulk(text) = answer else { return 0 };
    text.split(':').next().and_then(|text| text.parse().ok()).expect("a number")
}

fn fetch(http: u16, path: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", http)).expect("HTTP is served");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .expect("it takes a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer
}

/// Checks that every command which does not need the disk is answered; each client gives up after
/// half a minute.
fn check_that_reads_go_on(server: &Server, idle: &mut Client, http: u16) {
    assert_eq!(call(idle, &["PING"]), Answer::Status("PONG".into()));
    let mut client = server.client();
    assert_eq!(call(&mut client, &["GET", "durable"]), Answer::Bulk("value".into()));
    assert!(matches!(call(&mut client, &["INFO"]), Answer::Bulk(_)));
    assert_eq!(call(&mut client, &["CONFIG", "GET", "dir"]).array().len(), 2);
    assert!(fetch(http, "/metrics").contains("log_writable"));
    assert!(fetch(http, "/health/live").contains("live"));
}

fn survive_a_freeze(durability: &str, writers: usize) {
    let Some(disk) = FreezableDisk::mount() else { return };
    let http = free_port();
    let server = disk.serve(durability, http);
    let (mut client, mut idle) = (server.client(), server.client());
    call(&mut client, &["DURABLE", "SET", "durable", "value"]);
    call(&mut client, &["SET", "short", "lived", "PX", "1"]);
    let writers = Writers::start(&server, writers);
    wait_until("the writers write", || number(&call(&mut client, &["GET", "writer:0"])) > 10);
    disk.freeze();
    wait_until("changes are refused", || {
        check_that_reads_go_on(&server, &mut idle, http);
        // A read of an expired key would remove it, with a record.
        assert_eq!(call(&mut idle, &["GET", "short"]), Answer::Null);
        readiness(http).0 == 503
    });
    let (_, text) = readiness(http);
    assert!(text.contains("does not answer"), "{text}");
    for change in [&["SET", "other", "1"][..], &["DEL", "durable"], &["INCR", "number"]] {
        match client.call(change).expect("an answer") {
            Answer::Error(text) => {
                assert!(text.starts_with("MISCONF ") && text.contains("does not answer"), "{text}");
            }
            answer => panic!("{change:?} was accepted: {answer:?}"),
        }
    }
    check_that_reads_go_on(&server, &mut idle, http);
    assert!(fetch(http, "/metrics").contains("log_writable 0"));
    let Answer::Bulk(info) = call(&mut idle, &["INFO", "persistence"]) else { panic!("a bulk string") };
    assert!(info.contains("log_status:stalled"), "{info}");
    disk.thaw();
    wait_until("changes are accepted", || {
        !client.call(&["SET", "other", "1"]).expect("an answer").is_error()
    });
    assert_eq!(readiness(http).0, 200);
    let written = writers.stop();
    assert!(server.terminate().success());
    let server = disk.serve(durability, free_port());
    let mut client = server.client();
    for (writer, (refusal, acknowledged)) in written.into_iter().enumerate() {
        assert!(refusal.is_none_or(|text| text.contains("does not answer")));
        let found = number(&call(&mut client, &["GET", &format!("writer:{writer}")]));
        assert!(found >= acknowledged, "writer {writer}: {found} of {acknowledged}");
    }
}

#[test]
fn a_frozen_disk_blocks_no_client_without_durability() {
    survive_a_freeze("interval", 1);
}

#[test]
fn a_frozen_disk_holds_only_changes_when_all_answers_wait_for_it() {
    survive_a_freeze("always", 8);
}
