//! A real server in a process of its own, which can be killed and started again on the same port and data.

use crate::client::Client;
use crate::target::Target;
use anyhow::Context;
use std::fs::{File, OpenOptions};
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A server; it ends with this value.
pub(super) struct ServerProcess {
    binary: PathBuf,
    directory: PathBuf,
    port: u16,
    child: Child,
}

/// How often a starting server is asked whether it answers.
const ASK_INTERVAL: Duration = Duration::from_millis(1);
/// The server's own output, beside its data.
const OUTPUT_FILE: &str = "server.log";
/// What stands in for the server's flags. It is to run with the settings that the reader of a report expects.
const SETTINGS_PREFIX: &str = "TIDEMARK_";

impl ServerProcess {
    /// Starts a server with its data in `directory`, which must be new, and waits until it answers.
    pub(super) fn start(
        binary: &Path,
        directory: &Path,
        port: u16,
        patience: Duration,
    ) -> anyhow::Result<Self> {
        std::fs::create_dir_all(directory)
            .with_context(|| format!("cannot create {}", directory.display()))?;
        let port = free_port(port)?;
        let child = spawn(binary, directory, port)?;
        let mut server =
            ServerProcess { binary: binary.to_owned(), directory: directory.to_owned(), port, child };
        server.await_answer(patience)?;
        Ok(server)
    }

    pub(super) fn target(&self) -> Target {
        Target::new(&Ipv4Addr::LOCALHOST.to_string(), self.port)
    }

    /// `SIGKILL`; returns when the process is gone, and with it everything that it has not written.
    pub(super) fn kill(&mut self) -> io::Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Starts the killed server again; returns how long it took until it answered.
    pub(super) fn restart(&mut self, patience: Duration) -> anyhow::Result<Duration> {
        let began = Instant::now();
        self.child = spawn(&self.binary, &self.directory, self.port)?;
        self.await_answer(patience)?;
        Ok(began.elapsed())
    }

    fn await_answer(&mut self, patience: Duration) -> anyhow::Result<()> {
        let deadline = Instant::now() + patience;
        let output = self.directory.join(OUTPUT_FILE);
        loop {
            if let Some(status) = self.child.try_wait()? {
                anyhow::bail!("the server ended with {status}; see {}", output.display());
            }
            if let Ok(mut client) = Client::connect(&self.target(), patience)
                && client.call(&["PING"]).is_ok_and(|reply| reply.as_bytes() == Some(b"PONG"))
            {
                return Ok(());
            }
            anyhow::ensure!(
                Instant::now() < deadline,
                "the server did not answer within {patience:?} (--stabilize-wait); see {}",
                output.display()
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

fn spawn(binary: &Path, directory: &Path, port: u16) -> anyhow::Result<Child> {
    let path = directory.join(OUTPUT_FILE);
    let append = |path: &Path| OpenOptions::new().create(true).append(true).open(path);
    let output: File = append(&path).with_context(|| format!("cannot write {}", path.display()))?;
    let mut command = Command::new(binary);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with(SETTINGS_PREFIX) {
            command.env_remove(name);
        }
    }
    command
        .arg("serve")
        .args(["--bind", &Ipv4Addr::LOCALHOST.to_string(), "--port", &port.to_string(), "--dir"])
        .arg(directory.join("data"))
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .spawn()
        .with_context(|| format!("cannot start {}", binary.display()))
}

/// The port itself if no server listens there: otherwise a foreign server would be measured, and nothing would crash in it.
fn free_port(port: u16) -> anyhow::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .with_context(|| format!("port {port} is taken; choose another with --port, or 0 for a free one"))?;
    Ok(listener.local_addr()?.port())
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
