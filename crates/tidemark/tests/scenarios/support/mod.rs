//! The real binary on real files, and a plain client.

pub(crate) mod bench_report;
pub(crate) mod changes;
pub(crate) mod cluster;
pub(crate) mod forgery;
pub(crate) mod frames;
pub(crate) mod nats;
pub(crate) mod prizes;
pub(crate) mod redis;
pub(crate) mod small_disk;
pub(crate) mod terminal;
pub(crate) mod wire;

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Longest time for a server to answer before a test fails.
const PATIENCE: Duration = Duration::from_secs(30);

/// Returns a free port that no other test of this process, and no outgoing connection, will have
/// taken by the time a server listens there: systems assign ports from 32,768 upwards to outgoing
/// connections.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let start = std::process::id().wrapping_mul(61);
    (0..20_000)
        .map(|_| 10_000 + (start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % 20_000) as u16)
        .find(|&port| TcpListener::bind(("127.0.0.1", port)).is_ok())
        .expect("a free port")
}

/// Polls a condition until it holds; fails with its name after half a minute.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Returns the number of a line `name:number` in a section of INFO.
pub(crate) fn info_number(client: &mut Client, section: &str, name: &str) -> i64 {
    let Answer::Bulk(info) = call(client, &["INFO", section]) else { panic!("INFO answers a bulk string") };
    let value = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let value = value.unwrap_or_else(|| panic!("INFO {section} has no {name}:\n{info}"));
    value.trim().parse().unwrap_or_else(|error| panic!("{name}:{value}: {error}"))
}

/// Lets one test at a time open hundreds of connections: the tests of this process share its limit
/// of descriptors.
pub(crate) fn hundreds_of_connections() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    // A test that failed while it held the lock has closed its connections.
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the status of `/health/ready`, and its text.
pub(crate) fn readiness(http: u16) -> (u16, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", http)).expect("HTTP is served");
    stream
        .write_all(b"GET /health/ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .expect("it takes a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    (status, answer)
}

/// A running `tidemark serve`.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) port: u16,
    /// Time from the start of the process until it answered.
    pub(crate) startup: Duration,
}

impl Server {
    /// Starts a server on `dir` and waits until it answers.
    pub(crate) fn start(dir: &Path, args: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidemark"));
        command.arg("serve").args(["--dir", &dir.to_string_lossy()]).args(args);
        // The record that an emission belongs to, and what can be replayed, must not depend on the
        // load of the machine.
        command.env("TIDEMARK_WATCH_WRITE_BUDGET_US", "10000000");
        command.env("TIDEMARK_WATCH_UNSUBSCRIBED_BUDGET_US", "1000000");
        Self::spawn(command)
    }

    /// Starts a server with a command, to which the port is added.
    pub(crate) fn spawn(mut command: Command) -> Self {
        let port = free_port();
        let started = Instant::now();
        command.args(["--port", &port.to_string()]).stdin(Stdio::null()).stdout(Stdio::null());
        let mut child = command.spawn().expect("the binary starts");
        loop {
            if let Ok(mut client) = Client::connect(port)
                && client.call(&["PING"]).is_ok_and(|answer| answer == Answer::Status("PONG".into()))
            {
                return Self { child, port, startup: started.elapsed() };
            }
            if let Some(status) = child.try_wait().expect("the child can be asked") {
                panic!("the server ended with {status} instead of serving");
            }
            assert!(started.elapsed() < PATIENCE, "the server does not answer");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(self.port).expect("the server accepts")
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args([&format!("-{name}"), &pid]).status().expect("kill runs");
        assert!(sent.success());
    }

    /// Makes a system call of the snapshot thread fail until the returned strace ends; `how` is in
    /// strace's syntax.
    pub(crate) fn tamper_with_snapshots(&self, call: &str, how: &str) -> Child {
        let tasks = format!("/proc/{}/task", self.child.id());
        let is_it = |task: &std::fs::DirEntry| {
            let name = std::fs::read_to_string(task.path().join("comm"));
            name.is_ok_and(|name| name.starts_with("tidemark-snaps"))
        };
        let tasks = std::fs::read_dir(tasks).expect("the server lives").map(|task| task.expect("a task"));
        let thread = tasks.into_iter().find(is_it).expect("a thread that takes snapshots");
        let mut strace = Command::new("strace")
            .args(["-qq", "-o", "/dev/null", "-e", &format!("trace={call}"), "-e"])
            .args([&format!("inject={call}:{how}"), "-p"])
            .arg(thread.file_name())
            .stderr(Stdio::null())
            .spawn()
            .expect("strace is installed");
        let began = Instant::now();
        let status = || std::fs::read_to_string(thread.path().join("status")).expect("the thread lives");
        while status().contains("TracerPid:\t0\n") {
            assert!(
                strace.try_wait().expect("strace can be asked").is_none(),
                "strace may attach to the server"
            );
            assert!(began.elapsed() < PATIENCE, "strace attaches");
            std::thread::sleep(Duration::from_millis(5));
        }
        strace
    }

    /// Kills the server with `kill -9`.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("the process can be killed");
        self.child.wait().expect("the process ends");
    }

    /// Stops the server with SIGTERM, and returns its exit status.
    pub(crate) fn terminate(mut self) -> std::process::ExitStatus {
        self.signal("TERM");
        self.child.wait().expect("the process ends")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server's reply, in the detail that tests need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    Status(String),
    Error(String),
    Integer(i64),
    Bulk(String),
    Null,
    Array(Vec<Answer>),
}

impl Answer {
    pub(crate) fn integer(&self) -> i64 {
        match self {
            Self::Integer(value) => *value,
            Self::Bulk(text) => text.parse().expect("a number"),
            Self::Null => 0,
            other => panic!("not an integer: {other:?}"),
        }
    }

    pub(crate) fn array(self) -> Vec<Self> {
        match self {
            Self::Array(items) => items,
            other => panic!("not an array: {other:?}"),
        }
    }

    pub(crate) fn is_error(&self) -> bool {
        matches!(self, Self::Error(_))
    }
}

/// Sends a command; fails on an error reply.
pub(crate) fn call(client: &mut Client, args: &[&str]) -> Answer {
    let answer = client.call(args).expect("the server answers");
    assert!(!answer.is_error(), "{args:?}: {answer:?}");
    answer
}

/// A connection that sends commands and reads their answers.
pub(crate) struct Client {
    reader: BufReader<TcpStream>,
}

impl Client {
    pub(crate) fn connect(port: u16) -> io::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { reader: BufReader::new(stream) })
    }

    /// Sends a command and waits for its answer.
    pub(crate) fn call(&mut self, args: &[&str]) -> io::Result<Answer> {
        self.send(args)?;
        self.read()
    }

    pub(crate) fn send(&mut self, args: &[&str]) -> io::Result<()> {
        self.send_together(&[args])
    }

    /// Sends commands by one write.
    pub(crate) fn send_together<'a>(&mut self, commands: &[impl AsRef<[&'a str]>]) -> io::Result<()> {
        let mut request = String::new();
        for args in commands.iter().map(AsRef::as_ref) {
            request.extend(["*", &args.len().to_string(), "\r\n"]);
            for arg in args {
                request.extend(["$", &arg.len().to_string(), "\r\n", arg, "\r\n"]);
            }
        }
        self.reader.get_mut().write_all(request.as_bytes())
    }

    pub(crate) fn read(&mut self) -> io::Result<Answer> {
        let mut line = String::new();
        if self.reader.read_line(&mut line)? == 0 || !line.ends_with("\r\n") {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let (kind, rest) = (line.as_bytes()[0], line[1..].trim_end());
        let length = || rest.parse::<i64>().map_err(io::Error::other);
        Ok(match kind {
            b'+' => Answer::Status(rest.into()),
            b'-' => Answer::Error(rest.into()),
            b':' => Answer::Integer(length()?),
            b'_' => Answer::Null,
            b'$' | b'*' if length()? < 0 => Answer::Null,
            b'$' => {
                let mut bytes = vec![0; length()? as usize + 2];
                self.reader.read_exact(&mut bytes)?;
                bytes.truncate(bytes.len() - 2);
                Answer::Bulk(String::from_utf8_lossy(&bytes).into_owned())
            }
            b'*' => Answer::Array((0..length()?).map(|_| self.read()).collect::<io::Result<_>>()?),
            other => return Err(io::Error::other(format!("unexpected answer {:?}", other as char))),
        })
    }
}
