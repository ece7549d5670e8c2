//! A real server in a process of its own, which can be killed and started again on the same port and data.

use crate::client::Client;
use crate::namespace::Namespace;
use crate::target::Target;
use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A server; it ends with this value.
pub(crate) struct ServerProcess {
    launch: Launch,
    child: Child,
}

/// How a server is started.
pub(crate) struct Launch {
    pub(crate) binary: PathBuf,
    /// Where its output goes.
    pub(crate) directory: PathBuf,
    pub(crate) arguments: Vec<OsString>,
    /// Where it answers.
    pub(crate) target: Target,
    /// The network that it is in; none for that of this program.
    pub(crate) namespace: Option<Arc<Namespace>>,
}

/// How often a starting server is asked whether it answers.
const ASK_INTERVAL: Duration = Duration::from_millis(1);
/// The server's own output, beside its data.
const OUTPUT_FILE: &str = "server.log";
/// What stands in for the server's flags. It is to run with the settings that the reader of a report expects.
const SETTINGS_PREFIX: &str = "TIDEMARK_";

/// Ports below those that Linux gives to connections.
const PORTS: RangeInclusive<u16> = 10_000..=32_000;
const PORT_TRIES: usize = 100;

impl ServerProcess {
    /// Starts a server with its data in `directory`, which must be new, and waits until it answers.
    pub(crate) fn start(
        binary: &Path,
        directory: &Path,
        port: u16,
        patience: Duration,
    ) -> anyhow::Result<Self> {
        let mut server = Self::launch(Launch::of_tidemark(binary, directory, free_port(port)?))?;
        server.await_answer(patience)?;
        Ok(server)
    }

    /// Starts a server without waiting for it.
    pub(crate) fn launch(launch: Launch) -> anyhow::Result<Self> {
        std::fs::create_dir_all(&launch.directory)
            .with_context(|| format!("cannot create {}", launch.directory.display()))?;
        let child = launch.spawn()?;
        Ok(ServerProcess { launch, child })
    }

    pub(crate) fn target(&self) -> Target {
        self.launch.target.clone()
    }

    /// `SIGKILL`; returns when the process is gone, and with it everything that it has not written.
    pub(crate) fn kill(&mut self) -> io::Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) -> io::Result<()> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| io::Error::other("the process has no id"))?;
        Ok(kill_process(pid, signal)?)
    }

    /// Starts the killed server again, without waiting for it.
    pub(crate) fn relaunch(&mut self) -> anyhow::Result<()> {
        self.child = self.launch.spawn()?;
        Ok(())
    }

    /// Starts the killed server again; returns how long it took until it answered.
    pub(crate) fn restart(&mut self, patience: Duration) -> anyhow::Result<Duration> {
        let began = Instant::now();
        self.relaunch()?;
        self.await_answer(patience)?;
        Ok(began.elapsed())
    }

    /// Fails if the process has ended.
    pub(crate) fn check(&mut self) -> anyhow::Result<()> {
        if let Some(status) = self.child.try_wait()? {
            anyhow::bail!("the server ended with {status}; see {}", self.launch.output().display());
        }
        Ok(())
    }

    /// Waits until it answers.
    pub(crate) fn await_answer(&mut self, patience: Duration) -> anyhow::Result<()> {
        let deadline = Instant::now() + patience;
        loop {
            self.check()?;
            if let Ok(mut client) = Client::connect(&self.launch.target, patience)
                && client.call(&["PING"]).is_ok_and(|reply| reply.as_bytes() == Some(b"PONG"))
            {
                return Ok(());
            }
            anyhow::ensure!(
                Instant::now() < deadline,
                "the server did not answer within {patience:?} (--stabilize-wait); see {}",
                self.launch.output().display()
            );
            std::thread::sleep(ASK_INTERVAL);
        }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.kill();
    }
}

impl Launch {
    /// A server of Tidemark on this port of this machine, with its data in a folder of `directory`.
    pub(crate) fn of_tidemark(binary: &Path, directory: &Path, port: u16) -> Self {
        let address = Ipv4Addr::LOCALHOST.to_string();
        let mut arguments: Vec<OsString> =
            ["serve", "--bind", &address, "--port", &port.to_string(), "--dir"].map(OsString::from).into();
        arguments.push(directory.join("data").into());
        Launch {
            binary: binary.to_owned(),
            directory: directory.to_owned(),
            arguments,
            target: Target::new(&address, port),
            namespace: None,
        }
    }

    /// Returns the file of the server's output.
    fn output(&self) -> PathBuf {
        self.directory.join(OUTPUT_FILE)
    }

    fn spawn(&self) -> anyhow::Result<Child> {
        let path = self.output();
        let append = |path: &Path| OpenOptions::new().create(true).append(true).open(path);
        let output: File = append(&path).with_context(|| format!("cannot write {}", path.display()))?;
        let mut command = Command::new(&self.binary);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with(SETTINGS_PREFIX) {
                command.env_remove(name);
            }
        }
        command.args(&self.arguments).stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        let child = match &self.namespace {
            Some(namespace) => namespace.spawn(command),
            None => command.spawn(),
        };
        child.with_context(|| format!("cannot start {}", self.binary.display()))
    }
}

/// Returns the port itself if no server listens there, or a free one for 0. A foreign server would be
/// measured otherwise, and nothing would crash in it.
pub(crate) fn free_port(port: u16) -> anyhow::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .with_context(|| format!("port {port} is taken; choose another with --port, or 0 for a free one"))?;
    Ok(listener.local_addr()?.port())
}

/// Returns a free port that the system gives to no connection: a server must be able to come back to it.
pub(crate) fn lasting_port() -> anyhow::Result<u16> {
    let is_free = (0..PORT_TRIES).find_map(|_| free_port(fastrand::u16(PORTS)).ok());
    is_free.map_or_else(|| free_port(0), Ok)
}

#[cfg(test)]
mod tests {
    use super::ServerProcess;
    use std::net::TcpListener;
    use std::path::Path;
    use std::time::Duration;

    fn start(binary: &str, port: u16) -> String {
        let directory = tempfile::tempdir().unwrap();
        let started = ServerProcess::start(Path::new(binary), directory.path(), port, Duration::from_secs(5));
        format!("{:#}", started.err().expect("this is no server"))
    }

    #[test]
    fn a_foreign_server_is_not_taken_for_ours() {
        let other = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = other.local_addr().unwrap().port();
        assert!(start("/bin/true", port).starts_with(&format!("port {port} is taken")));
    }

    #[test]
    fn a_binary_that_does_not_serve_is_named() {
        assert!(start("/nonexistent/server", 0).starts_with("cannot start /nonexistent/server"));
        assert!(start("/bin/false", 0).starts_with("the server ended with exit status: 1"));
    }
}
