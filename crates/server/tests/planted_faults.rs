//! Twelve planted faults, each of which breaks an invariant of durability or order. Each ends in a
//! stop of the process, none in an acknowledgement. Run these tests without debug assertions, as
//! the product is built.
//!
//! A server with a fault is a child process: this binary again, with the environment variable
//! [`DIRECTORY`]. The parent sends requests until the child ends. It then starts a server without
//! the fault on the same directory and looks for every acknowledged change.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tidemark_fault::{Fault, VARIABLE};
use tidemark_log::Durability;
use tidemark_server::Server;
use tidemark_server::config::{BindAddress, Config};

/// Environment variable with the data directory of a child process.
const DIRECTORY: &str = "TIDEMARK_TEST_DIRECTORY";
/// Environment variable with the port on which a child process listens.
const PORT: &str = "TIDEMARK_TEST_PORT";
/// Environment variable with the durability mode of a child process.
const DURABILITY: &str = "TIDEMARK_TEST_DURABILITY";

/// Longer than any step needs, so that a test fails instead of hanging.
const DEADLINE: Duration = Duration::from_mins(1);
const SIGABRT: i32 = 6;
/// Upper bound of the requests of a workload. Each fault shows far earlier.
const REQUESTS_MAX: u64 = 2_000;
/// Size of a value: a few hundred values fill a segment.
const VALUE_BYTES: usize = 2_000;

/// Server in its own process.
struct Running {
    child: Child,
    port: u16,
}

impl Running {
    /// Starts a server on a directory, with or without a fault.
    fn start(directory: &Path, fault: Option<Fault>, durability: &str) -> Self {
        let port = free_port();
        let mut command = Command::new(std::env::current_exe().expect("this test's binary"));
        command
            .args(["--exact", "serves_as_a_child_process", "--ignored", "--nocapture"])
            .env(DIRECTORY, directory)
            .env(PORT, port.to_string())
            .env(DURABILITY, durability)
            .env_remove(VARIABLE)
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        if let Some(fault) = fault {
            command.env(VARIABLE, fault.name());
        }
        Self { child: command.spawn().expect("a child process"), port }
    }

    /// Connects once the server has loaded its data. `None` if the process ends earlier.
    fn connect(&mut self) -> Option<Client> {
        let began = Instant::now();
        while self.child.try_wait().expect("a child process").is_none() {
            if let Ok(stream) = TcpStream::connect(("127.0.0.1", self.port)) {
                stream.set_read_timeout(Some(DEADLINE)).expect("a socket option");
                let mut client = Client { stream: BufReader::new(stream) };
                if client.ask(&["PING"]).is_some_and(|reply| reply == "+PONG") {
                    return Some(client);
                }
            }
            assert!(began.elapsed() < DEADLINE, "the server does not serve");
            std::thread::sleep(Duration::from_millis(5));
        }
        None
    }

    /// Ends the process by `SIGKILL`.
    fn kill(mut self) {
        self.child.kill().expect("a child process");
        self.child.wait().expect("a child process");
    }

    /// Returns the exit status and the standard error of the process.
    fn ended(mut self) -> (ExitStatus, String) {
        let mut said = String::new();
        self.child.stderr.take().expect("it is piped").read_to_string(&mut said).expect("text");
        (self.child.wait().expect("a child process"), said)
    }
}

/// Client that sends one request at a time.
struct Client {
    stream: BufReader<TcpStream>,
}

impl Client {
    /// Sends a request and returns the reply's first line; `None` if the server ends instead.
    fn ask(&mut self, words: &[&str]) -> Option<String> {
        let mut request = format!("*{}\r\n", words.len());
        for word in words {
            write!(request, "${}\r\n{word}\r\n", word.len()).expect("text grows");
        }
        self.stream.get_mut().write_all(request.as_bytes()).ok()?;
        self.line()
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        match self.stream.read_line(&mut line) {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(line.trim_end().to_owned()),
        }
    }
}

/// Changes that the server has acknowledged to a workload.
#[derive(Default)]
struct Acknowledged {
    /// Number of the last `SET` that the server answered with OK. It determines the key.
    sets: u64,
}

/// Sends changes of 50 keys until the server ends. The values are large, so that segments rotate.
fn set(client: &mut Client, acknowledged: &mut Acknowledged) {
    for number in 1..=REQUESTS_MAX {
        let value = format!("{number:0VALUE_BYTES$}");
        match client.ask(&["SET", &format!("key:{}", number % 50), &value]) {
            Some(reply) => assert_eq!(reply, "+OK", "request {number}"),
            None => return,
        }
        acknowledged.sets = number;
    }
}

/// Looks for every acknowledged change in a server without the fault.
fn check(directory: &Path, acknowledged: &Acknowledged) {
    let mut server = Running::start(directory, None, "always");
    let mut client = server.connect().expect("a server without the fault starts");
    let sets = acknowledged.sets;
    for number in sets.saturating_sub(49).max(1)..=sets {
        client.ask(&["GET", &format!("key:{}", number % 50)]);
        let value = client.line().expect("a value");
        let found: u64 = value.parse().expect("a number");
        // The server may have executed the request after the last acknowledged one.
        assert!(found == number || found == number + 50, "key of request {number} holds {found}");
    }
    server.kill();
}

/// Runs a workload against a server with the fault, which must end by a panic with `text`. Then
/// looks for every acknowledged change.
fn stops(fault: Fault, durability: &str, text: &str, workload: impl Fn(&mut Running, &mut Acknowledged)) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = directory.path().join("data");
    let mut acknowledged = Acknowledged::default();
    let mut server = Running::start(&data, Some(fault), durability);
    workload(&mut server, &mut acknowledged);
    expect_stop(server, fault, text);
    check(&data, &acknowledged);
}

/// Fills a directory, kills the server, and starts one with the fault, which must not serve.
fn refuses_to_start(fault: Fault, text: &str) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = directory.path().join("data");
    let mut acknowledged = Acknowledged::default();
    let mut server = Running::start(&data, None, "always");
    let mut client = server.connect().expect("a server without the fault starts");
    for number in 1..=100 {
        let reply = client.ask(&["SET", &format!("key:{}", number % 50), &number.to_string()]);
        assert_eq!(reply.as_deref(), Some("+OK"));
        acknowledged.sets = number;
    }
    server.kill();
    let mut faulty = Running::start(&data, Some(fault), "always");
    if let Some(mut client) = faulty.connect() {
        // The server listens before it has recovered. It must not answer in that time.
        let reply = client.ask(&["GET", "key:1"]);
        let is_answer = reply.as_deref().is_some_and(|reply| !reply.starts_with("-LOADING"));
        assert!(!is_answer, "a server with the fault {fault} answers {reply:?}");
    }
    expect_stop(faulty, fault, text);
    check(&data, &acknowledged);
}

fn expect_stop(mut server: Running, fault: Fault, text: &str) {
    let began = Instant::now();
    while server.child.try_wait().expect("a child process").is_none() {
        if began.elapsed() > DEADLINE {
            server.kill();
            panic!("the fault {fault} was not noticed");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let (status, said) = server.ended();
    assert_eq!(status.signal(), Some(SIGABRT), "{fault}: {status}: {said}");
    assert!(said.contains(text), "{fault}: {said}");
}

#[test]
fn a_write_that_cuts_a_frame_before_a_segment_ends() {
    stops(Fault::Cut, "always", "is cut:", |server, acknowledged| {
        set(&mut server.connect().expect("it starts"), acknowledged);
    });
}

#[test]
fn an_appended_record_that_is_not_sealed() {
    stops(Fault::Seal, "always", "", |server, acknowledged| {
        set(&mut server.connect().expect("it starts"), acknowledged);
        assert_eq!(acknowledged.sets, 0);
    });
}

#[test]
fn a_write_at_another_offset() {
    stops(Fault::Offset, "always", "the log was written up to offset", |server, acknowledged| {
        set(&mut server.connect().expect("it starts"), acknowledged);
        assert_eq!(acknowledged.sets, 0);
    });
}

#[test]
fn two_records_with_one_lsn() {
    stops(Fault::Lsn, "always", "is appended behind record", |server, acknowledged| {
        set(&mut server.connect().expect("it starts"), acknowledged);
    });
}

#[test]
fn a_start_without_a_gap_behind_an_unclean_stop() {
    refuses_to_start(Fault::Gap, "that was handed out could come again");
}

#[test]
fn an_answer_that_leaves_before_its_record_is_durable() {
    stops(Fault::HeldAnswer, "always", "was released, and the log is", |server, acknowledged| {
        set(&mut server.connect().expect("it starts"), acknowledged);
        assert_eq!(acknowledged.sets, 0);
    });
}

#[test]
fn a_query_that_leaves_out_the_number_of_an_emission() {
    stops(Fault::EmissionNumber, "always", "emission", |server, acknowledged| {
        let mut watcher = server.connect().expect("it starts");
        watcher.ask(&["HELLO", "3"]);
        let mut client = server.connect().expect("it runs");
        watcher.ask(&["GET.WATCH", "key:1"]);
        set(&mut client, acknowledged);
    });
}

#[test]
fn a_change_of_an_entry_that_a_running_snapshot_has_not_seen() {
    stops(Fault::SnapshotCut, "always", "before snapshot", |server, _| {
        let mut client = server.connect().expect("it starts");
        for first in (0..200_000).step_by(1_000) {
            let pairs = (first..first + 1_000).flat_map(|number| [format!("other:{number}"), "1".to_owned()]);
            let words: Vec<String> = std::iter::once("MSET".to_owned()).chain(pairs).collect();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            assert_eq!(client.ask(&words).as_deref(), Some("+OK"));
        }
        // Each snapshot walks the keys while the client changes them.
        for number in 0..REQUESTS_MAX {
            let is_saving = number % 100 > 0 || client.ask(&["BGSAVE"]).is_some();
            if !is_saving || client.ask(&["SET", &format!("other:{}", number * 97), "2"]).is_none() {
                return;
            }
        }
    });
}

#[test]
fn a_record_that_is_not_applied() {
    refuses_to_start(Fault::AppliedLsn, "is not the next one");
}

#[test]
fn a_caller_that_is_released_before_its_record_is_durable() {
    stops(Fault::Waiter, "off", "a caller that waits for record", |server, _| {
        let mut client = server.connect().expect("it starts");
        // A reply that is sent before its record is durable promises nothing after a kill, so no
        // acknowledgement is recorded.
        for number in 0..REQUESTS_MAX {
            if client.ask(&["SET", "key", &number.to_string()]).is_none() {
                return;
            }
            if client.ask(&["SAVE"]).is_none() {
                return;
            }
        }
    });
}

#[test]
fn a_replay_that_ends_before_the_last_record() {
    refuses_to_start(Fault::RecoveredEnd, "replay ended behind record");
}

#[test]
fn a_pool_that_keeps_another_chain_than_its_frame_states() {
    stops(Fault::FrameChain, "always", "states the chain", |server, _| {
        let mut client = server.connect().expect("it starts");
        let created = client.ask(&["POOL.CREATE", "pool", "ITEMS", "car", "1", "5"]);
        assert!(created.is_some_and(|reply| !reply.starts_with('-')), "a pool with five cars");
        // The reply has more lines. A new connection skips them.
        let mut client = server.connect().expect("it runs");
        assert_eq!(client.ask(&["POOL.DRAW", "pool"]), None, "no draw is answered");
    });
}

/// Serves, in a child process, until the process is killed.
#[test]
#[ignore = "the other tests start it as a process of its own"]
fn serves_as_a_child_process() {
    let variable = |name| std::env::var(name).unwrap_or_else(|_| panic!("{name} is for child processes"));
    tidemark_server::abort_on_panic();
    let durability = match variable(DURABILITY).as_str() {
        "always" => Durability::Always,
        "off" => Durability::Off,
        other => panic!("no durability {other}"),
    };
    let server = Server::start(Config {
        dir: variable(DIRECTORY).into(),
        bind: vec![BindAddress::required("127.0.0.1")],
        port: variable(PORT).parse().expect("a port"),
        http: None,
        threads: 2,
        durability,
        log_segment_bytes: 256 * 1024,
        ..Config::default()
    });
    server.expect("the server starts").wait().expect("a clean stop");
}

/// Returns a port on which no process listens.
fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    listener.local_addr().expect("an address").port()
}
