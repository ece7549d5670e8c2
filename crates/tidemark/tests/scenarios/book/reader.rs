//! A reader who types a page from top to bottom, in a directory of their own, with a server that
//! runs there.

use super::expected::{Names, filled_in, matches};
use super::page::{Block, Exchange, Kind, Page, Prompt};
use super::screen::{PATIENCE, Screen};
use crate::support::{Server, free_port};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// The ports that pages name: of the commands, of HTTP and of gRPC.
const PORTS: [&str; 3] = ["7379", "7380", "50051"];

/// Commands that replace the first terminal's prompt with their own.
const CLIENTS: [&str; 3] = ["redis-cli -p 7379", "tidemark cli", "tidemark cli -2"];

/// Printed after an answer to mark its end.
const MARK: &str = "that-was-all";

pub(super) struct Reader<'a> {
    page: &'a Page,
    shell: Screen,
    first: Option<Screen>,
    other: Option<Screen>,
    /// Whether the first terminal only shows pushes and takes no commands.
    is_listening: bool,
    in_transaction: bool,
    /// Actual ports, in the order of `PORTS`.
    ports: [String; 3],
    names: Names,
    compared: usize,
    /// Answers that differ from the page.
    faults: Vec<String>,
    directory: tempfile::TempDir,
    /// Ends with the reader.
    _server: Server,
}

impl<'a> Reader<'a> {
    pub(super) fn new(page: &'a Page) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let [http, grpc] = [free_port(), free_port()];
        let mut serve = Command::new(env!("CARGO_BIN_EXE_tidemark"));
        serve.args(["serve", "--http", &format!("127.0.0.1:{http}"), "--grpc", &format!("127.0.0.1:{grpc}")]);
        // The record that an emission belongs to must not depend on the load of the machine.
        serve.env("TIDEMARK_WATCH_WRITE_BUDGET_US", "10000000");
        serve.env_remove("TIDEMARK_DIR").current_dir(directory.path()).stderr(std::process::Stdio::null());
        let server = Server::spawn(serve);
        let ports = [server.port, http, grpc].map(|port| port.to_string());
        let shell = shell(directory.path(), &ports[0]);
        Self {
            page,
            shell,
            first: None,
            other: None,
            is_listening: false,
            in_transaction: false,
            ports,
            names: Names::new(),
            compared: 0,
            faults: Vec::new(),
            directory,
            _server: server,
        }
    }

    /// Returns how many answers were compared, and the differences.
    pub(super) fn finish(self) -> (usize, Vec<String>) {
        (self.compared, self.faults)
    }

    pub(super) fn run(&mut self, block: &Block) {
        match &block.kind {
            Kind::Console => block.exchanges().iter().for_each(|exchange| self.exchange(exchange)),
            Kind::Shell => self.script(block),
            Kind::File(name) => {
                let text = block.lines.join("\n") + "\n";
                std::fs::write(self.directory.path().join(name), text).expect("the file is written");
            }
            Kind::Rust | Kind::Text | Kind::NotRun(_) | Kind::Unknown(_) => {}
        }
        if self.is_listening {
            // Ctrl-C, and a new prompt.
            (self.first, self.is_listening) = (None, false);
        }
    }

    /// Runs a script in the page's shell; each of its lines must succeed.
    fn script(&mut self, block: &Block) {
        for line in &block.lines {
            self.shell.type_line(&self.localised(line));
        }
        self.shell.type_line(&format!("echo {MARK}"));
        let came = self.shell.until(MARK);
        if came.iter().any(|line| line.starts_with(FAILED)) {
            let (path, line, came) = (&self.page.path, block.line, came.join("\n"));
            self.faults.push(format!("{path}:{line}: the script fails:\n{came}"));
        }
        self.compared += 1;
    }

    fn exchange(&mut self, exchange: &Exchange) {
        let Some(typed) = filled_in(&exchange.typed, &self.names) else {
            self.faults.push(format!(
                "{}:{}: a name is not known: {}",
                self.page.path, exchange.line, exchange.typed
            ));
            return;
        };
        let typed = self.localised(&typed);
        let mut came = match exchange.prompt {
            Prompt::Shell if CLIENTS.contains(&exchange.typed.as_str()) => {
                let line = format!("exec {typed} --no-raw 2>&1");
                self.first = Some(Screen::start(&mut in_shell(&line, self.directory.path(), &self.ports[0])));
                Vec::new()
            }
            Prompt::Shell if is_endless(&typed) => {
                // The command does not end, so it gets the first terminal.
                self.first =
                    Some(Screen::start(&mut in_shell(&typed, self.directory.path(), &self.ports[0])));
                self.is_listening = true;
                Vec::new()
            }
            Prompt::Shell => {
                self.shell.type_line(&typed);
                self.shell.type_line(&format!("echo {MARK}"));
                self.shell.until(MARK)
            }
            Prompt::First => self.ask_first(&typed),
            Prompt::Other => {
                let other = self.other.get_or_insert_with(|| client(self.directory.path(), &self.ports[0]));
                other.type_line(&typed);
                other.type_line(&format!("ECHO {MARK}"));
                other.until(&format!("\"{MARK}\""))
            }
        };
        let began = Instant::now();
        while !matches(&exchange.answer, &self.as_in_book(&came), &mut self.names) {
            let more = self.arrived();
            // Output after a wrong answer may be wrong only because of that, so the reader waits
            // for less time.
            let patience = if self.faults.is_empty() { PATIENCE } else { PATIENCE / 60 };
            if more.is_empty() && began.elapsed() > patience {
                self.faults.push(format!(
                    "{}:{}: {}\n--- the page shows\n{}\n--- what came\n{}\n---",
                    self.page.path,
                    exchange.line,
                    exchange.typed,
                    exchange.answer.join("\n"),
                    self.as_in_book(&came).join("\n")
                ));
                return;
            }
            came.extend(more);
        }
        self.compared += 1;
    }

    /// Types a command at the first terminal's prompt; returns the output before the next prompt.
    fn ask_first(&mut self, typed: &str) -> Vec<String> {
        assert!(!self.is_listening, "{}: the terminal takes no commands: {typed}", self.page.path);
        let first = self.first.get_or_insert_with(|| client(self.directory.path(), &self.ports[0]));
        first.type_line(typed);
        let name = typed.split(' ').next().unwrap_or_default().to_ascii_uppercase();
        if is_endless(typed) {
            self.is_listening = true;
            return Vec::new();
        }
        self.in_transaction = match name.as_str() {
            "MULTI" => true,
            "EXEC" | "DISCARD" => false,
            _ => self.in_transaction,
        };
        if self.in_transaction {
            // A command that marks the end of the answer would be queued as well.
            return first.next(PATIENCE).into_iter().collect();
        }
        first.type_line(&format!("ECHO {MARK}"));
        first.until(&format!("\"{MARK}\""))
    }

    /// Returns what the server has pushed to the first terminal since.
    fn arrived(&mut self) -> Vec<String> {
        const MOMENT: Duration = Duration::from_millis(20);
        let Some(first) = &mut self.first else {
            std::thread::sleep(MOMENT);
            return Vec::new();
        };
        if !self.is_listening && !self.in_transaction {
            std::thread::sleep(MOMENT);
            first.type_line(&format!("ECHO {MARK}"));
            return first.until(&format!("\"{MARK}\""));
        }
        first.next(MOMENT).into_iter().collect()
    }

    /// Returns a line with this server's ports.
    fn localised(&self, line: &str) -> String {
        PORTS
            .iter()
            .zip(&self.ports)
            .fold(line.to_owned(), |line, (of_book, ours)| with_port(&line, of_book, ours))
    }

    /// Returns lines with the book's ports.
    fn as_in_book(&self, lines: &[String]) -> Vec<String> {
        let in_book = |line: &String| {
            let ports = PORTS.iter().zip(&self.ports);
            ports.fold(line.trim_end().to_owned(), |line, (of_book, ours)| with_port(&line, ours, of_book))
        };
        lines.iter().map(in_book).collect()
    }
}

/// Returns a line with one port replaced. Digits within a longer word, such as a hash, are no port.
fn with_port(line: &str, old: &str, new: &str) -> String {
    let is_word =
        |character: Option<char>| character.is_some_and(|character| character.is_ascii_alphanumeric());
    let (mut text, mut rest) = (String::new(), line);
    while let Some(at) = rest.find(old) {
        let (before, after) = (&rest[..at], &rest[at + old.len()..]);
        let is_part =
            is_word(text.chars().chain(before.chars()).next_back()) || is_word(after.chars().next());
        text.push_str(before);
        text.push_str(if is_part { old } else { new });
        rest = after;
    }
    text + rest
}

/// Prefix of a shell line which reports that a command has failed.
const FAILED: &str = "failed: ";

/// Starts a shell in which `tidemark` connects to the page's server.
fn shell(directory: &Path, port: &str) -> Screen {
    let mut screen = Screen::start(&mut in_shell("exec bash --norc --noprofile 2>&1", directory, port));
    screen.type_line(&format!("trap 'echo \"{FAILED}$BASH_COMMAND\"' ERR"));
    screen
}

fn client(directory: &Path, port: &str) -> Screen {
    Screen::start(&mut in_shell("exec tidemark cli --no-raw 2>&1", directory, port))
}

/// Returns a command line in the reader's directory. The page expects its server on the default
/// port of `tidemark`, so a wrapper of the real program adds the actual port.
fn in_shell(line: &str, directory: &Path, port: &str) -> Command {
    let programs = directory.join(".programs");
    if !programs.exists() {
        std::fs::create_dir(&programs).expect("a directory");
        let program = programs.join("tidemark");
        let text = format!(
            "#!/bin/sh\nprogram='{}'\ncase \"$1 $*\" in\n*\" -p \"*) exec \"$program\" \"$@\" ;;\n\
             \"cli \"*) shift; exec \"$program\" cli -p {port} \"$@\" ;;\n\
             \"top \"*|\"series \"*) of=$1 what=$2; shift 2; exec \"$program\" \"$of\" \"$what\" -p {port} \"$@\" ;;\nesac\n\
             exec \"$program\" \"$@\"\n",
            env!("CARGO_BIN_EXE_tidemark")
        );
        std::fs::write(&program, text).expect("the program is written");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&program, mode).expect("the program can be run");
    }
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new("bash");
    command.args(["-c", line]).current_dir(directory).env("PATH", path).env_remove("TIDEMARK_DIR");
    command
}

/// Returns whether what was typed runs until it is interrupted.
fn is_endless(typed: &str) -> bool {
    let name = typed.split(' ').next().unwrap_or_default().to_ascii_uppercase();
    matches!(name.as_str(), "SUBSCRIBE" | "PSUBSCRIBE" | "SSUBSCRIBE" | "MONITOR")
        || typed.starts_with("curl -sN ")
}

#[test]
fn a_port_is_not_a_part_of_a_hash() {
    assert_eq!(with_port("-p 7379 a7379 73790 127.0.0.1:7379", "7379", "1"), "-p 1 a7379 73790 127.0.0.1:1");
    assert_eq!(with_port("73797379 7379", "7379", "1"), "73797379 1");
}
