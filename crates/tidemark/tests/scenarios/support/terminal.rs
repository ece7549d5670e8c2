//! The program on a terminal.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Longer than anything takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// A process that ends with the test.
pub(crate) struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A command on a terminal that `script` provides.
pub(crate) struct Terminal {
    child: Running,
    shown: std::sync::mpsc::Receiver<Vec<u8>>,
    all: String,
}

impl Terminal {
    /// Runs a subcommand that shows a server again and again.
    pub(crate) fn start(subcommand: &str, port: u16, environment: &str) -> Self {
        Self::run(&format!("{subcommand} --port {port} --interval 100ms"), environment)
    }

    /// Runs the program with these arguments, in shell syntax.
    pub(crate) fn run(arguments: &str, environment: &str) -> Self {
        let program = env!("CARGO_BIN_EXE_tidemark");
        // Ctrl-C reaches the shell too, which must survive it in any order of scheduling; its child
        // does not inherit the trap.
        let line = format!(
            "trap : INT; stty rows 20 cols 72; TERM=xterm {environment} '{program}' {arguments}; echo ended with $?; stty -a"
        );
        let mut child = Command::new("script")
            .args(["-q", "-e", "-c", &line, "/dev/null"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("script is installed");
        let (mut out, (sender, shown)) = (child.stdout.take().expect("a pipe"), std::sync::mpsc::channel());
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = out.read(&mut buffer) {
                if sender.send(buffer[..length].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self { child: Running(child), shown, all: String::new() }
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.child.0.stdin.as_mut().expect("a pipe").write_all(keys.as_bytes()).expect("it reads");
    }

    /// Waits until the terminal has received a text, after the text of the last wait.
    pub(crate) fn await_text(&mut self, text: &str) -> String {
        loop {
            if let Some(at) = self.all.find(text) {
                let rest = self.all.split_off(at + text.len());
                return std::mem::replace(&mut self.all, rest);
            }
            let more = self
                .shown
                .recv_timeout(PATIENCE)
                .unwrap_or_else(|error| panic!("{text:?} is missing in {:?}: {error}", self.all));
            self.all.push_str(&String::from_utf8_lossy(&more));
        }
    }
}
