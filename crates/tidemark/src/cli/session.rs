//! A connection to a server with the state that the prompt shows: executes commands and prints
//! replies.

use super::catalogue::Catalogue;
use super::printer::{self, Format};
use anyhow::Context;
use signal_hook::consts::SIGINT;
use signal_hook::flag;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tidemark_lab::client::{Client, ClientError};
use tidemark_lab::target::Target;
use tidemark_server::resp::Value;

/// The connection and the state that the server keeps for it.
pub(super) struct Session {
    target: Target,
    resp2: bool,
    timeout: Duration,
    format: Format,
    /// `None` before the first command and after the connection broke.
    client: Option<Client>,
    in_transaction: bool,
    replies: Replies,
    catalogue: Option<Arc<Catalogue>>,
}

/// How the exchange of one command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Refused,
    Done,
    /// The server pushes after this reply.
    Subscribed,
}

/// The replies that `CLIENT REPLY` has left on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Replies {
    All,
    None,
    AllButTheNext,
}

impl Session {
    /// Returns a session that connects with its first command.
    pub(super) fn new(target: Target, resp2: bool, timeout: Duration, format: Format) -> Self {
        Session {
            target,
            resp2,
            timeout,
            format,
            client: None,
            in_transaction: false,
            replies: Replies::All,
            catalogue: None,
        }
    }

    /// Returns the connection; connects first if there is none.
    pub(super) fn connect(&mut self) -> Result<&mut Client, ClientError> {
        if self.client.is_none() {
            let mut client = Client::connect(&self.target, self.timeout)?;
            if !self.resp2 {
                // A server that knows only RESP2, or wants a password first, continues in RESP2.
                match client.hello(3) {
                    Ok(_) | Err(ClientError::Refused { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            self.in_transaction = false;
            self.replies = Replies::All;
            self.client = Some(client);
        }
        self.client.as_mut().ok_or(ClientError::Closed)
    }

    /// Executes one command and prints its reply; returns false if the reply was an error.
    ///
    /// After a broken connection the next command connects again. A command is never sent twice:
    /// the server may have executed it before the connection broke.
    pub(super) fn execute(&mut self, command: &[Vec<u8>]) -> anyhow::Result<bool> {
        self.attempt(|session| Ok(session.exchange(command)? != Outcome::Refused))
    }

    /// As [`execute`](Self::execute); after a command that subscribes, continues to print what is
    /// pushed.
    pub(super) fn execute_and_listen(&mut self, command: &[Vec<u8>]) -> anyhow::Result<bool> {
        self.attempt(|session| match session.exchange(command)? {
            Outcome::Refused => Ok(false),
            Outcome::Done => Ok(true),
            Outcome::Subscribed => session.listen(),
        })
    }

    /// Drops the connection if `act` finds that it broke.
    fn attempt(&mut self, act: impl FnOnce(&mut Self) -> anyhow::Result<bool>) -> anyhow::Result<bool> {
        let result = act(self);
        if result.as_ref().is_err_and(anyhow::Error::is::<ClientError>) {
            self.disconnect();
        }
        result
    }

    fn disconnect(&mut self) {
        self.client = None;
        self.in_transaction = false;
    }

    fn exchange(&mut self, command: &[Vec<u8>]) -> anyhow::Result<Outcome> {
        self.connect()?.send(command)?;
        let name = upper(command.first());
        if is_endless(&name) {
            return Ok(if self.listen()? { Outcome::Done } else { Outcome::Refused });
        }
        if !self.is_answered(&name, command) {
            return Ok(Outcome::Done);
        }
        let mut confirmations = Confirmations::of(&name, command);
        loop {
            // Blocking commands may take any time.
            let value = match self.connect()?.receive(None) {
                Ok(Some(value)) => value,
                Ok(None) => continue,
                Err(error) if name == "SHUTDOWN" && is_end(&error) => {
                    self.client = None;
                    return Ok(Outcome::Done);
                }
                Err(error) => return Err(error.into()),
            };
            self.show(&value)?;
            if confirmations.awaits_more(&value) {
                continue;
            }
            let Some(error) = value.as_error() else {
                self.note(&name, command);
                let is_subscribed = !self.in_transaction && subscribes(&name, command, &value);
                return Ok(if is_subscribed { Outcome::Subscribed } else { Outcome::Done });
            };
            let text = String::from_utf8_lossy(error);
            // A Tidemark server suggests names in its own error.
            if text.starts_with("ERR unknown command") && !text.contains("did you mean") {
                self.suggest(&name);
            }
            if is_exec(&name, command) {
                self.in_transaction = false;
            }
            return Ok(Outcome::Refused);
        }
    }

    /// Returns whether a reply will come, considering `CLIENT REPLY` in this command and in earlier
    /// ones.
    fn is_answered(&mut self, name: &str, command: &[Vec<u8>]) -> bool {
        let asked = match command {
            [_, reply, mode] if name == "CLIENT" && !self.in_transaction && upper(Some(reply)) == "REPLY" => {
                upper(Some(mode))
            }
            _ => String::new(),
        };
        let answered = self.replies == Replies::All;
        self.replies = match (asked.as_str(), self.replies) {
            ("ON", _) => Replies::All,
            ("OFF", _) | (_, Replies::None) => Replies::None,
            ("SKIP", _) => Replies::AllButTheNext,
            (_, Replies::All | Replies::AllButTheNext) => Replies::All,
        };
        asked == "ON" || (answered && self.replies == Replies::All)
    }

    /// Prints everything that arrives, until the process is interrupted, the subscription ends or
    /// the connection does. Ctrl-C ends the process with success: there is no other way to stop
    /// listening.
    fn listen(&mut self) -> anyhow::Result<bool> {
        flag::register_conditional_shutdown(SIGINT, 0, Arc::new(AtomicBool::new(true)))
            .context("cannot watch for Ctrl-C")?;
        eprintln!("Reading messages... (press Ctrl-C to quit)");
        loop {
            if let Some(value) = self.connect()?.receive(None)? {
                self.show(&value)?;
                if value.as_error().is_some() {
                    return Ok(false);
                }
                if ends_subscription(&value) {
                    eprintln!("tidemark cli: the server has ended the subscription");
                    return Ok(false);
                }
            }
        }
    }

    /// Returns the text of the next push that has arrived; if the connection broke, the error's
    /// text.
    pub(super) fn next_push(&mut self) -> Option<Vec<u8>> {
        match self.client.as_mut()?.next_push(Duration::ZERO) {
            Ok(push) => push.map(|push| self.text(&push)),
            Err(error) => {
                self.disconnect();
                Some(format!("{:#}\n", anyhow::Error::from(error)).into_bytes())
            }
        }
    }

    /// Returns the connection, to wait for what arrives on it.
    pub(super) fn connection(&self) -> Option<&Client> {
        self.client.as_ref()
    }

    /// Returns the prompt: `127.0.0.1:7379[2](TX)> `.
    pub(super) fn prompt(&self) -> String {
        if self.client.is_none() {
            return "not connected> ".to_owned();
        }
        let database = match self.target.database {
            0 => String::new(),
            number => format!("[{number}]"),
        };
        let transaction = if self.in_transaction { "(TX)" } else { "" };
        format!("{}{database}{transaction}> ", self.target)
    }

    /// Returns the server's commands, requested once; empty while the server cannot be asked.
    pub(super) fn shared_catalogue(&mut self) -> Arc<Catalogue> {
        // Inside a transaction the request would be queued; with replies off it would have no
        // reply.
        let can_ask = self.client.is_some() && !self.in_transaction && self.replies == Replies::All;
        if self.catalogue.is_none() && can_ask {
            let docs = self.connect().and_then(|client| client.call(&["COMMAND", "DOCS"]));
            self.catalogue = docs.ok().map(|reply| Arc::new(Catalogue::from_docs(&reply)));
        }
        self.catalogue.clone().unwrap_or_default()
    }

    fn show(&self, value: &Value) -> anyhow::Result<()> {
        show(&self.text(value))
    }

    fn text(&self, value: &Value) -> Vec<u8> {
        let mut text = printer::print(value, self.format);
        text.push(b'\n');
        text
    }

    /// Updates the state that the prompt shows after a command that succeeded.
    fn note(&mut self, name: &str, command: &[Vec<u8>]) {
        match name {
            "MULTI" => self.in_transaction = true,
            "DISCARD" => self.in_transaction = false,
            _ if is_exec(name, command) => self.in_transaction = false,
            "SELECT" if !self.in_transaction => {
                let number =
                    command.get(1).and_then(|argument| std::str::from_utf8(argument).ok()?.parse().ok());
                self.target.database = number.unwrap_or(self.target.database);
            }
            "RESET" => {
                self.in_transaction = false;
                self.target.database = 0;
            }
            _ => {}
        }
    }

    fn suggest(&mut self, name: &str) {
        let catalogue = self.shared_catalogue();
        let near = catalogue.nearest(name).join(", ");
        if !near.is_empty() {
            eprintln!("Did you mean {near}?");
        }
    }
}

pub(super) fn show(text: &[u8]) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text)?;
    Ok(out.flush()?)
}

fn upper(name: Option<&Vec<u8>>) -> String {
    name.map(|name| String::from_utf8_lossy(name).to_uppercase()).unwrap_or_default()
}

/// Returns whether the server has ended the connection, in any way.
fn is_end(error: &ClientError) -> bool {
    use std::io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    match error {
        ClientError::Closed => true,
        ClientError::Io(error) => matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof),
        _ => false,
    }
}

/// The replies to an unsubscribe command: a confirmation for each name, as a push in RESP3.
struct Confirmations {
    kind: Vec<u8>,
    missing: usize,
}

impl Confirmations {
    fn of(name: &str, command: &[Vec<u8>]) -> Self {
        let is_one = matches!(name, "UNSUBSCRIBE" | "PUNSUBSCRIBE" | "SUNSUBSCRIBE");
        // Without names one is expected: a client that has subscribed only listens afterwards.
        let missing = if is_one { command.len().saturating_sub(1).max(1) } else { 0 };
        Confirmations { kind: name.to_lowercase().into_bytes(), missing }
    }

    /// Returns whether the reply, or a part of it, is still to come after `value`.
    fn awaits_more(&mut self, value: &Value) -> bool {
        let (Value::Push(elements) | Value::Array(elements)) = value else { return false };
        let confirms = self.missing > 0 && elements.first().and_then(Value::as_bytes) == Some(&self.kind);
        if !confirms {
            return matches!(value, Value::Push(_));
        }
        self.missing -= 1;
        self.missing > 0
    }
}

/// Returns whether the replies to a command have no end.
fn is_endless(name: &str) -> bool {
    matches!(name, "SUBSCRIBE" | "PSUBSCRIBE" | "SSUBSCRIBE" | "MONITOR")
}

/// Returns whether the server pushes to this connection after it has answered such a command with
/// `reply`, which is no error.
fn subscribes(name: &str, command: &[Vec<u8>], reply: &Value) -> bool {
    let second = upper(command.get(1));
    match name {
        "CHANGES" => second == "FROM",
        "CLIENT" => second == "TRACKING" && upper(command.get(2)) == "ON",
        "EMITRECONNECT" => {
            reply.as_elements().and_then(|elements| elements.first()?.as_bytes()) == Some(b"OK")
        }
        // A command that publishes on a channel is answered with a string: the connection gets no
        // pushes.
        _ if name.rsplit_once('.').is_some_and(|(_, suffix)| suffix == "WATCH") => {
            reply.as_pairs().is_some_and(|pairs| !pairs.is_empty())
        }
        _ => false,
    }
}

/// Returns whether a push is the last one: the subscriber fell behind, another connection has taken
/// the named subscription, or the log cannot be read.
fn ends_subscription(value: &Value) -> bool {
    let (Value::Push(elements) | Value::Array(elements)) = value else { return false };
    matches!(elements.first().and_then(Value::as_bytes), Some(b"stale" | b"ended" | b"failed"))
}

/// Whether a command is `EXEC`, or `ONCE … EXEC`.
fn is_exec(name: &str, command: &[Vec<u8>]) -> bool {
    name == "EXEC" || (name == "ONCE" && upper(command.get(3)) == "EXEC")
}

#[cfg(test)]
mod tests {
    use super::Session;
    use crate::cli::printer::Format;
    use std::time::Duration;
    use tidemark_lab::null_server::{NullProtocol, NullServer};
    use tidemark_lab::target::Target;

    fn command(line: &str) -> Vec<Vec<u8>> {
        line.split(' ').map(|word| word.as_bytes().to_vec()).collect()
    }

    #[test]
    fn the_prompt_follows_database_and_transaction() {
        let mut server = NullServer::bind(0, NullProtocol::Resp).unwrap();
        let target: Target = server.address().unwrap().to_string().parse().unwrap();
        std::thread::spawn(move || server.run());
        let address = target.to_string();
        let mut session = Session::new(target, false, Duration::from_secs(10), Format::Raw);
        assert_eq!(session.prompt(), "not connected> ");
        for (line, prompt) in [
            ("PING", "> "),
            ("select 3", "[3]> "),
            ("MULTI", "[3](TX)> "),
            ("EXEC", "[3]> "),
            ("MULTI", "[3](TX)> "),
            ("once session 1 exec", "[3]> "),
            ("RESET", "> "),
        ] {
            assert!(session.execute(&command(line)).unwrap());
            assert_eq!(session.prompt(), format!("{address}{prompt}"), "after {line}");
        }
    }

    #[test]
    fn a_missing_server_is_an_error_and_not_the_end() {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let target = Target::new("127.0.0.1", port);
        let mut session = Session::new(target, true, Duration::from_secs(10), Format::Raw);
        for _ in 0..2 {
            let error = session.execute(&command("PING")).unwrap_err();
            assert!(error.to_string().contains("could not connect"), "{error}");
        }
        assert_eq!(session.prompt(), "not connected> ");
    }
}
