//! Disks that are full and disks that fail: changes are refused with a clear error, reads go on, health says so, and
//! nothing that was acknowledged is lost.

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use support::{Answer, Client, Server, free_port};

/// A value that fills a small disk in some hundred writes.
const VALUE_BYTES: usize = 16 << 10;

/// A mount namespace with a tmpfs of 16 MiB, held by a process that does nothing else.
struct SmallDisk {
    holder: Child,
    directory: tempfile::TempDir,
    as_root: bool,
}

impl SmallDisk {
    /// `None`, or a panic that says why, where the system does not let us mount.
    fn mount() -> Option<Self> {
        let directory = tempfile::tempdir().expect("a directory");
        for as_root in [true, false] {
            let script = r#"mount -t tmpfs -o size=16m tmpfs "$0" && echo mounted && exec sleep 3600"#;
            let mut holder = Command::new("unshare")
                .args([if as_root { "-m" } else { "-rm" }, "sh", "-c", script])
                .arg(directory.path())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .expect("unshare (util-linux) is installed");
            let mut line = String::new();
            let stdout = holder.stdout.take().expect("a pipe");
            BufReader::new(stdout).read_line(&mut line).expect("the pipe can be read");
            if line == "mounted\n" {
                return Some(Self { holder, directory, as_root });
            }
            let _ = holder.wait();
        }
        assert!(
            std::env::var("TIDEMARK_WITHOUT_NAMESPACES").is_ok_and(|value| value == "1"),
            "cannot mount a tmpfs in a namespace of its own, so the full disk was NOT tested: run as root or allow user \
             namespaces, or accept this with TIDEMARK_WITHOUT_NAMESPACES=1"
        );
        None
    }

    /// A file on the disk, as seen from outside the namespace.
    fn path(&self, name: &str) -> PathBuf {
        let inside = self.directory.path().strip_prefix("/").expect("an absolute path");
        Path::new("/proc").join(self.holder.id().to_string()).join("root").join(inside).join(name)
    }

    fn serve(&self, http: u16) -> Server {
        let mut command = Command::new("nsenter");
        command.args(["-t", &self.holder.id().to_string(), "-m"]);
        if !self.as_root {
            command.args(["-U", "--preserve-credentials"]);
        }
        command.arg("--").arg(env!("CARGO_BIN_EXE_tidemark")).args(["serve", "--durability", "always"]);
        command.args(["--log-segment-bytes", "1048576", "--http", &format!("127.0.0.1:{http}"), "--dir"]);
        command.arg(self.directory.path().join("data"));
        Server::spawn(command)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// The status of `/health/ready`, and what it says.
fn readiness(http: u16) -> (u16, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", http)).expect("HTTP is served");
    stream
        .write_all(b"GET /health/ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .expect("it takes a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    (status, answer)
}

fn value(number: usize) -> String {
    format!("{number:05}").repeat(VALUE_BYTES / 5)
}

/// Every acknowledged value is there.
fn check(client: &mut Client, acknowledged: usize) {
    for number in 0..acknowledged {
        let answer = client.call(&["GET", &format!("key:{number}")]).expect("reads go on");
        assert!(
            answer == Answer::Bulk(value(number)),
            "key {number} of {acknowledged} is as it was acknowledged"
        );
    }
}

#[test]
fn a_full_disk_refuses_changes_until_there_is_space_and_loses_nothing() {
    let Some(disk) = SmallDisk::mount() else { return };
    std::fs::write(disk.path("filler"), vec![1; 8 << 20]).expect("the filler fits");
    let http = free_port();
    let server = disk.serve(http);
    let mut client = server.client();
    let mut acknowledged = 0;
    let refusal = loop {
        assert!(acknowledged * VALUE_BYTES < 16 << 20, "the disk is full at some time");
        match client.call(&["SET", &format!("key:{acknowledged}"), &value(acknowledged)]).expect("an answer")
        {
            Answer::Error(text) => break text,
            answer => assert_eq!(answer, Answer::Status("OK".into())),
        }
        acknowledged += 1;
    };
    assert!(acknowledged > 10, "some writes were taken: {acknowledged}");
    let lower = refusal.to_lowercase();
    assert!(lower.contains("space") || lower.contains("full"), "the refusal names its reason: {refusal}");
    check(&mut client, acknowledged);
    let (status, text) = readiness(http);
    assert_eq!(status, 503, "{text}");
    server.kill();

    std::fs::remove_file(disk.path("filler")).expect("space is freed");
    let http = free_port();
    let server = disk.serve(http);
    let mut client = server.client();
    check(&mut client, acknowledged);
    assert_eq!(client.call(&["SET", "after", "all"]).expect("an answer"), Answer::Status("OK".into()));
    assert_eq!(readiness(http).0, 200);
}

#[test]
fn after_a_failed_sync_no_change_is_acknowledged_and_none_is_lost() {
    let directory = tempfile::tempdir().expect("a directory");
    let http = free_port();
    let mut command = Command::new("strace");
    // With -D the server is our child and strace its grandchild, so that killing the server ends both.
    command.args(["-D", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fdatasync"]);
    command.args(["-e", "inject=fdatasync:error=EIO:when=20+", env!("CARGO_BIN_EXE_tidemark"), "serve"]);
    command.args(["--durability", "always", "--http", &format!("127.0.0.1:{http}"), "--dir"]);
    command.arg(directory.path());
    let server = Server::spawn(command);
    let mut client = server.client();
    let mut acknowledged = 0;
    // The answer that waits for the sync which fails is never sent: its connection is closed instead.
    while let Ok(answer) = client.call(&["INCR", "counter"]) {
        assert!(acknowledged < 10_000, "the sync fails at some time");
        if answer.is_error() {
            break;
        }
        assert_eq!(answer, Answer::Integer(acknowledged + 1));
        acknowledged += 1;
    }
    let mut client = server.client();
    let Answer::Error(refusal) = client.call(&["INCR", "counter"]).expect("an answer") else {
        panic!("no change is acknowledged after a failed sync")
    };
    assert!(acknowledged > 0, "syncs that succeed are acknowledged");
    assert!(refusal.contains("log"), "the refusal names what failed: {refusal}");
    for _ in 0..20 {
        let answer = client.call(&["INCR", "counter"]).expect("an answer");
        assert!(answer.is_error(), "no change is acknowledged after a failed sync: {answer:?}");
    }
    let read = client.call(&["GET", "counter"]).expect("reads go on").integer();
    assert!((acknowledged..=acknowledged + 1).contains(&read), "{read}, acknowledged {acknowledged}");
    assert_eq!(readiness(http).0, 503);
    server.kill();

    let server = Server::start(directory.path(), &["--durability", "always"]);
    let found = server.client().call(&["GET", "counter"]).expect("an answer").integer();
    assert!((acknowledged..=acknowledged + 1).contains(&found), "{found}, acknowledged {acknowledged}");
}
