//! Real servers on loopback, each in a temporary directory.

use super::support::store_at;
use rustix::process::{Pid, Signal, getuid, kill_process_group};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_mins(2);

/// The kind of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Redis,
    Postgres,
    Nats,
}

/// A server that runs until this value is dropped.
pub(crate) struct Running {
    pub(crate) kind: Kind,
    pub(crate) port: u16,
    directory: TempDir,
    child: Mutex<Option<Child>>,
}

impl Running {
    /// Starts a server for one test.
    pub(crate) fn start(kind: Kind) -> Arc<Self> {
        let directory = tempfile::tempdir().expect("a directory");
        let running = Self { kind, port: free_port(), directory, child: Mutex::default() };
        running.prepare();
        running.go_on();
        Arc::new(running)
    }

    /// Returns a server that concurrent tests share.
    pub(crate) fn shared(kind: Kind) -> Arc<Self> {
        static SHARED: [Mutex<Weak<Running>>; 3] = [const { Mutex::new(Weak::new()) }; 3];
        let mut shared = SHARED[kind as usize].lock().expect("no test has failed to start it");
        shared.upgrade().unwrap_or_else(|| {
            let running = Self::start(kind);
            *shared = Arc::downgrade(&running);
            running
        })
    }

    /// Sends SIGKILL (`kill -9`) to the server and its children.
    pub(crate) fn kill(&self) {
        if let Some(mut child) = self.child.lock().expect("a child").take() {
            let group = Pid::from_child(&child);
            let _ = kill_process_group(group, Signal::KILL);
            let _ = child.wait();
        }
    }

    /// Starts the server in its directory and on its port, and waits until it answers.
    pub(crate) fn go_on(&self) {
        let began = Instant::now();
        let mut store = store_at(self.kind, self.port, "ready");
        loop {
            self.ensure_child();
            let Err(error) = store.load(&[b"key"]) else { return };
            assert!(began.elapsed() < PATIENCE, "{:?} does not answer: {error}", self.kind);
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Removes all data of a server that is not running.
    pub(crate) fn forget_everything(&self) {
        std::fs::remove_dir_all(self.data()).expect("a directory that can be removed");
        self.prepare();
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// Starts the server unless it runs. Right after a kill, a start may find traces of the killed
    /// process and exit.
    fn ensure_child(&self) {
        let mut child = self.child.lock().expect("a child");
        let ended = child.as_mut().is_none_or(|child| child.try_wait().expect("a child").is_some());
        if ended {
            *child = Some(self.command().process_group(0).spawn().unwrap_or_else(|error| {
                panic!("{:?} cannot be started: {error}: {}", self.kind, self.remedy())
            }));
        }
    }

    fn remedy(&self) -> &'static str {
        match self.kind {
            Kind::Redis => "apt-get install redis-server",
            Kind::Postgres => "apt-get install postgresql",
            Kind::Nats => "apt-get install nats-server",
        }
    }

    fn prepare(&self) {
        std::fs::create_dir(self.data()).expect("a directory");
        if self.kind == Kind::Postgres {
            if getuid().is_root() {
                let owned = Command::new("chown").args(["-R", "nobody"]).arg(self.directory.path()).status();
                assert!(owned.expect("chown is there").success(), "the directory is given away");
            }
            let made = postgres("initdb")
                .args([
                    "--username=tidemark",
                    "--auth=trust",
                    "--encoding=UTF8",
                    "--no-locale",
                    "--no-sync",
                    "-D",
                ])
                .arg(self.data())
                .output()
                .unwrap_or_else(|error| panic!("initdb cannot be started: {error}: {}", self.remedy()));
            assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        }
    }

    fn command(&self) -> Command {
        let (port, data) = (self.port.to_string(), self.data());
        let mut command = match self.kind {
            Kind::Redis => {
                let mut command = found("redis-server");
                command.args(["--bind", "127.0.0.1", "--port", &port, "--save", ""]);
                command.args(["--appendonly", "yes", "--appendfsync", "always", "--dir"]).arg(data);
                command
            }
            Kind::Postgres => {
                let mut command = postgres("postgres");
                command.arg("-D").arg(data).args(["-p", &port, "-h", "127.0.0.1", "-k", ""]);
                command
            }
            Kind::Nats => {
                let mut command = found("nats-server");
                command.args(["-a", "127.0.0.1", "-p", &port, "-js", "-sd"]).arg(data);
                command
            }
        };
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

pub(crate) fn found(program: &str) -> Command {
    // Debian installs servers outside the usual `PATH`.
    let at = Path::new("/usr/sbin").join(program);
    Command::new(if at.exists() { at } else { PathBuf::from(program) })
}

/// Returns the command for a program of the newest installed `PostgreSQL`, run by a user other than
/// root: `PostgreSQL` refuses to run as root.
fn postgres(program: &str) -> Command {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let number = |path: &Path| path.file_name()?.to_str()?.parse::<u32>().ok();
    let newest = versions.map(|entry| entry.path()).max_by_key(|path| number(path));
    let program = newest
        .map(|version| version.join("bin").join(program))
        .filter(|path| path.exists())
        .unwrap_or_else(|| PathBuf::from(program));
    if !getuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=nobody", "--regid=nogroup", "--clear-groups", "--"]).arg(program);
    command
}

/// Returns a port that was free a moment ago.
pub(crate) fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    listener.local_addr().expect("an address").port()
}
