//! The real binary, in a process of its own.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;

/// A running server; killed on drop.
pub(crate) struct Server {
    process: Child,
    pub(crate) port: u16,
    data: PathBuf,
    arguments: Vec<String>,
    /// Dropped last.
    _directory: Option<tempfile::TempDir>,
}

impl Server {
    /// Starts a server whose replies and emissions wait until their records are on disk.
    pub(crate) fn start(arguments: &[&str]) -> Server {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let data = directory.path().join("data");
        let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect::<Vec<_>>();
        let port = free_port();
        let process = spawn(port, &data, &arguments);
        Server { process, port, data, arguments, _directory: Some(directory) }
    }

    /// Kills the server with SIGKILL.
    pub(crate) fn kill(&mut self) {
        self.process.kill().expect("it runs");
        self.process.wait().expect("it ends");
    }

    /// Starts the killed server again, on the same port and data.
    pub(crate) fn start_again(&mut self) {
        self.process = spawn(self.port, &self.data, &self.arguments);
    }

    /// Replaces the data of the killed server with `kept`.
    pub(crate) fn put_back(&self, kept: &Path) {
        std::fs::remove_dir_all(&self.data).expect("its data");
        copy(kept, &self.data);
    }

    /// Copies the data of the killed server.
    pub(crate) fn keep(&self, to: &Path) {
        copy(&self.data, to);
    }

    pub(crate) fn connection(&self) -> redis::Connection {
        let client = redis::Client::open(("127.0.0.1", self.port)).expect("an address");
        client.get_connection().expect("the server answers")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn spawn(port: u16, data: &Path, arguments: &[String]) -> Child {
    let binary = std::env::var_os("TIDEMARK_BIN").expect("TIDEMARK_BIN names the server's binary");
    let mut process = Command::new(binary)
        // The server reads `TIDEMARK_*` as settings.
        .env_remove("TIDEMARK_BIN")
        .args([
            "serve",
            "--bind",
            "127.0.0.1",
            "--durability",
            "always",
            "--port",
            &port.to_string(),
            "--dir",
        ])
        .arg(data)
        .args(arguments)
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let (sender, said) = mpsc::channel();
    let output = BufReader::new(process.stderr.take().expect("it is a pipe"));
    // Reads to the end, so the server never blocks on a full pipe.
    thread::spawn(move || output.lines().map_while(Result::ok).for_each(|line| drop(sender.send(line))));
    let lines: Vec<_> = said.iter().take_while(|line| !line.starts_with("ready")).collect();
    let exit = process.try_wait().expect("a process");
    assert!(exit.is_none(), "the server does not start: {lines:#?}");
    process
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-r").args([from, to]).status().expect("cp");
    assert!(copied.success());
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a socket");
    listener.local_addr().expect("an address").port()
}
