//! A blocking client for any server of the Redis protocol: one connection, one thread.

use crate::target::Target;
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};
use tidemark_server::resp::{Decoder, Value, decode, encode_request};

/// A connection that sends requests and receives values.
pub struct Client {
    stream: TcpStream,
    decoder: Decoder,
    request: Vec<u8>,
    received: Box<[u8]>,
    /// Values that the server sent on its own account while a reply was awaited; the oldest go first.
    pushes: VecDeque<Value>,
    timeout: Duration,
    /// The socket's own, so that it is set only when it changes: a system call for every read adds up.
    read_timeout: Option<Duration>,
}

const RECEIVE_BYTES: usize = 64 << 10;
/// Pushes kept for a caller who only makes calls; beyond it the oldest are dropped.
const PUSHES_KEPT: usize = 4096;

/// Why a call has no reply.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// No server answers at the address.
    #[error("could not connect to {address}: {reason}")]
    Connect {
        /// The address as the user knows it.
        address: String,
        /// What the system says.
        reason: io::Error,
    },
    /// The server did not accept user, password, protocol or database.
    #[error("the server refused {what}: {text}")]
    Refused {
        /// What was asked for.
        what: &'static str,
        /// The server's answer.
        text: String,
    },
    /// The server has not loaded its data yet.
    #[error("the server is loading its data")]
    Loading,
    /// The server closed the connection.
    #[error("the server closed the connection")]
    Closed,
    /// The server did not answer in time.
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
    /// The connection broke.
    #[error("the connection failed")]
    Io(#[from] io::Error),
    /// The server's bytes are not RESP.
    #[error("the server does not speak RESP, or this client not well enough")]
    Protocol(#[from] decode::ProtocolError),
}

/// Whether an error that a server answers says that it is loading its data.
#[must_use]
pub fn says_loading(error: &[u8]) -> bool {
    error.starts_with(b"LOADING ")
}

impl ClientError {
    /// Whether the server is not there, or does not answer: trying again may help.
    #[must_use]
    pub fn is_disconnection(&self) -> bool {
        matches!(self, Self::Connect { .. } | Self::Loading | Self::Closed | Self::TimedOut(_) | Self::Io(_))
    }
}

impl Client {
    /// Connects, authenticates and selects the database. `timeout` bounds the connection and every later reply.
    pub fn connect(target: &Target, timeout: Duration) -> Result<Self, ClientError> {
        let mut client = Client::over(dial(target, timeout)?, timeout);
        if let Some(password) = &target.password {
            let username = target.username.as_deref().unwrap_or("default");
            // A server without access lists knows only the form with the password alone.
            if target.username.is_some() {
                client.expect_success("the user or password", &["AUTH", username, password])?;
            } else {
                client.expect_success("the password", &["AUTH", password])?;
            }
        }
        if target.database != 0 {
            client.expect_success("the database", &["SELECT", &target.database.to_string()])?;
        }
        Ok(client)
    }

    /// A client over a connection that exists already.
    #[must_use]
    pub fn over(stream: TcpStream, timeout: Duration) -> Self {
        Client {
            read_timeout: stream.read_timeout().ok().flatten(),
            stream,
            decoder: Decoder::default(),
            request: Vec::new(),
            received: vec![0; RECEIVE_BYTES].into_boxed_slice(),
            pushes: VecDeque::new(),
            timeout,
        }
    }

    /// Sends one request and waits for its reply; an error reply is a value like any other. Pushes that arrive before
    /// it are kept for [`Client::next_push`].
    pub fn call<Argument: AsRef<[u8]>>(&mut self, arguments: &[Argument]) -> Result<Value, ClientError> {
        self.send(arguments)?;
        let deadline = Instant::now() + self.timeout;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.receive(Some(left))? {
                Some(push @ Value::Push(_)) => self.keep(push),
                Some(reply) => return Ok(reply),
                None => return Err(ClientError::TimedOut(self.timeout)),
            }
        }
    }

    /// Sends one request without waiting.
    pub fn send<Argument: AsRef<[u8]>>(&mut self, arguments: &[Argument]) -> Result<(), ClientError> {
        self.request.clear();
        encode_request(&mut self.request, arguments);
        self.stream.write_all(&self.request)?;
        Ok(())
    }

    /// Sends requests that are encoded already.
    pub fn send_encoded(&mut self, requests: &[u8]) -> Result<(), ClientError> {
        Ok(self.stream.write_all(requests)?)
    }

    /// The next value, reply or push, or `None` after `wait`; no `wait` means for ever.
    pub fn receive(&mut self, wait: Option<Duration>) -> Result<Option<Value>, ClientError> {
        if let Some(value) = self.decoder.next_value()? {
            return Ok(Some(value));
        }
        let deadline = wait.map(|wait| Instant::now() + wait);
        let mut left = wait;
        loop {
            self.set_read_timeout(left)?;
            match self.stream.read(&mut self.received) {
                Ok(0) => return Err(ClientError::Closed),
                Ok(length) => self.decoder.feed(&self.received[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                        return Ok(None);
                    }
                }
                Err(error) => return Err(error.into()),
            }
            if let Some(value) = self.decoder.next_value()? {
                return Ok(Some(value));
            }
            left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        }
    }

    fn set_read_timeout(&mut self, timeout: Option<Duration>) -> Result<(), ClientError> {
        // The system takes a timeout of zero for "for ever".
        let timeout = timeout.map(|timeout| timeout.max(Duration::from_millis(1)));
        if timeout != self.read_timeout {
            self.stream.set_read_timeout(timeout)?;
            self.read_timeout = timeout;
        }
        Ok(())
    }

    /// The oldest push: one kept by [`Client::call`], or the next within `wait`.
    pub fn next_push(&mut self, wait: Duration) -> Result<Option<Value>, ClientError> {
        if let Some(push) = self.pushes.pop_front() {
            return Ok(Some(push));
        }
        self.receive(Some(wait))
    }

    /// Switches the protocol; the reply describes the server.
    pub fn hello(&mut self, version: u8) -> Result<Value, ClientError> {
        let reply = self.call(&["HELLO", &version.to_string()])?;
        match reply.as_error() {
            Some(text) => Err(ClientError::Refused { what: "the protocol version", text: lossy(text) }),
            None => Ok(reply),
        }
    }

    /// Closes the connection without a word; every later call fails.
    pub fn disconnect(&mut self) {
        // It fails only when there is no connection any more.
        let _ = self.stream.shutdown(Shutdown::Both);
        self.decoder = Decoder::default();
        self.pushes.clear();
    }

    /// Gives up the connection for another way of driving it. An error if the server has sent what no call has asked for:
    /// it would be lost.
    pub fn into_stream(self) -> Result<TcpStream, ClientError> {
        if !self.decoder.is_idle() || !self.pushes.is_empty() {
            return Err(io::Error::other(
                "the server sent bytes behind its last reply; no request asked for them",
            )
            .into());
        }
        Ok(self.stream)
    }

    fn expect_success(&mut self, what: &'static str, arguments: &[&str]) -> Result<(), ClientError> {
        match self.call(arguments)?.as_error() {
            Some(text) => Err(ClientError::Refused { what, text: lossy(text) }),
            None => Ok(()),
        }
    }

    fn keep(&mut self, push: Value) {
        if self.pushes.len() >= PUSHES_KEPT {
            self.pushes.pop_front();
        }
        self.pushes.push_back(push);
    }
}

/// The connection, to wait for it beside others. What was received already does not make it readable: see
/// [`Client::next_push`].
impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// Tries every address that the name stands for.
fn dial(target: &Target, timeout: Duration) -> Result<TcpStream, ClientError> {
    let failed = |reason| ClientError::Connect { address: target.to_string(), reason };
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in (target.host.as_str(), target.port).to_socket_addrs().map_err(failed)? {
        match TcpStream::connect_timeout(&address, timeout.max(Duration::from_millis(1))) {
            Ok(stream) => {
                stream.set_nodelay(true).map_err(failed)?;
                stream.set_write_timeout(Some(timeout.max(Duration::from_millis(1)))).map_err(failed)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(failed(last))
}

fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::{Client, ClientError};
    use crate::target::Target;
    use crate::test_server;
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::time::Duration;
    use tidemark_server::resp::Value;

    const PATIENCE: Duration = Duration::from_secs(10);

    /// A server that sends `script` once anything arrives, then waits for the client to leave.
    fn server(script: &'static [u8]) -> Target {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut received = [0; 1024];
            if stream.read(&mut received).unwrap() > 0 {
                stream.write_all(script).unwrap();
            }
            while stream.read(&mut received).is_ok_and(|length| length > 0) {}
        });
        Target::new("127.0.0.1", port)
    }

    #[test]
    fn a_push_before_the_reply_is_not_taken_for_it() {
        let mut client = Client::connect(&server(b">1\r\n+news\r\n+PONG\r\n"), PATIENCE).unwrap();
        assert_eq!(client.call(&["PING"]).unwrap(), Value::Simple(b"PONG".to_vec()));
        let news = Value::Push(vec![Value::Simple(b"news".to_vec())]);
        assert_eq!(client.next_push(Duration::ZERO).unwrap(), Some(news));
        assert_eq!(client.next_push(Duration::ZERO).unwrap(), None);
    }

    #[test]
    fn a_connection_is_given_up_only_with_nothing_received_on_it() {
        let given_up = |script| {
            let mut client = Client::connect(&server(script), PATIENCE).unwrap();
            assert_eq!(client.call(&["PING"]).unwrap(), Value::Simple(b"PONG".to_vec()));
            client.into_stream()
        };
        assert!(given_up(b"+PONG\r\n").is_ok());
        for script in [&b"+PONG\r\n+PONG\r\n"[..], b">1\r\n+news\r\n+PONG\r\n"] {
            assert!(matches!(given_up(script), Err(ClientError::Io(_))), "{}", script.escape_ascii());
        }
    }

    #[test]
    fn a_refused_password_says_so() {
        let mut target = server(b"-WRONGPASS invalid username-password pair\r\n");
        target.password = Some("x".into());
        let Err(ClientError::Refused { what, text }) = Client::connect(&target, PATIENCE) else {
            panic!("the server refused");
        };
        assert_eq!(what, "the password");
        assert!(text.starts_with("WRONGPASS"));
    }

    #[test]
    fn a_silent_server_is_a_timeout() {
        let mut client = Client::connect(&server(b""), Duration::from_millis(20)).unwrap();
        assert!(matches!(client.call(&["PING"]), Err(ClientError::TimedOut(_))));
    }

    #[test]
    fn a_refused_connection_names_the_address() {
        let port = test_server::refusing_port();
        let Err(error) = Client::connect(&Target::new("127.0.0.1", port), PATIENCE) else {
            panic!("no server listens there");
        };
        assert!(error.to_string().starts_with(&format!("could not connect to 127.0.0.1:{port}")));
    }
}
