//! Test harness: a separate server for each test, and a client that expects exact bytes.

pub(crate) mod dice;
pub(crate) mod events;
pub(crate) mod watching;

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tidemark_log::{Clock, ManualClock};
use tidemark_server::config::{BindAddress, Config, DebugAccess};
use tidemark_server::{Server, StopError};

/// Longer than any step needs, so that a test fails instead of hanging.
const PATIENCE: Duration = Duration::from_secs(20);

/// Running server with its own directory.
pub(crate) struct TestServer {
    server: Option<Server>,
    pub(crate) port: u16,
    pub(crate) dir: tempfile::TempDir,
}

impl TestServer {
    /// Starts a server with the default settings.
    pub(crate) fn new() -> TestServer {
        TestServer::with(|_| {})
    }

    /// Starts a server with some settings changed.
    pub(crate) fn with(change: impl FnOnce(&mut Config)) -> TestServer {
        let dir = tempfile::tempdir().expect("a temporary directory");
        TestServer::in_dir(dir, change)
    }

    /// Starts a server whose time the test moves.
    pub(crate) fn with_clock(clock: &ManualClock, change: impl FnOnce(&mut Config)) -> TestServer {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let mut server = TestServer::opened(dir, change, Clock::from(clock));
        assert!(server.load(), "nobody stops it meanwhile");
        server
    }

    /// Starts a server that also serves HTTP, with some settings changed.
    pub(crate) fn with_http(change: impl FnOnce(&mut Config)) -> TestServer {
        TestServer::with(|config| {
            serve_http(config);
            change(config);
        })
    }

    /// Starts a server on the data of an earlier one.
    pub(crate) fn in_dir(dir: tempfile::TempDir, change: impl FnOnce(&mut Config)) -> TestServer {
        let mut server = TestServer::loading(dir, change);
        assert!(server.load(), "it is not stopped meanwhile");
        server
    }

    /// Starts a server on the data of an earlier one, without loading the data.
    pub(crate) fn loading(dir: tempfile::TempDir, change: impl FnOnce(&mut Config)) -> TestServer {
        TestServer::opened(dir, change, Clock::System)
    }

    fn opened(dir: tempfile::TempDir, change: impl FnOnce(&mut Config), clock: Clock) -> TestServer {
        let mut config = Config {
            dir: dir.path().join("data"),
            bind: vec![BindAddress::required("127.0.0.1")],
            port: free_port(),
            threads: 2,
            enable_debug_command: DebugAccess::Yes,
            log_segment_bytes: 256 * 1024,
            // The record that causes an emission must not depend on how busy the machine is.
            watch_write_budget_us: 10_000_000,
            watch_subscribed_budget_us: 1_000_000,
            watch_unsubscribed_budget_us: 1_000_000,
            ..Config::default()
        };
        change(&mut config);
        let port = config.port;
        let server = Server::open_with(config, clock).expect("the server opens");
        TestServer { server: Some(server), port, dir }
    }

    /// Loads the data; `false` if the server was stopped meanwhile.
    pub(crate) fn load(&mut self) -> bool {
        self.server.as_mut().expect("it runs").load().expect("the data is good")
    }

    pub(crate) fn client(&self) -> Client<TcpStream> {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).expect("the server listens");
        stream.set_nodelay(true).expect("a socket option");
        Client::over(stream)
    }

    /// Connects a client at an address other than the loopback one.
    pub(crate) fn client_at(&self, address: std::net::IpAddr) -> Client<TcpStream> {
        Client::over(TcpStream::connect(SocketAddr::new(address, self.port)).expect("the server listens"))
    }

    /// Returns the address of the HTTP port.
    pub(crate) fn http_address(&self) -> SocketAddr {
        self.server.as_ref().and_then(Server::http_address).expect("HTTP is on")
    }

    pub(crate) fn http(&self, path: &str) -> String {
        self.http_with(path, "Host: localhost\r\n")
    }

    /// Returns the response to a request with these headers.
    pub(crate) fn http_with(&self, path: &str, headers: &str) -> String {
        let address = self.http_address();
        let mut stream = TcpStream::connect(address).expect("HTTP listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket option");
        let request = format!("GET {path} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("HTTP reads");
        let mut response = String::new();
        stream.read_to_string(&mut response).expect("HTTP answers");
        response
    }

    /// Starts a graceful stop.
    pub(crate) fn begin_stop(&self) {
        self.server.as_ref().expect("it runs").stopper().stop();
    }

    /// Waits until the server has ended; returns its result and its directory.
    pub(crate) fn ended(mut self) -> (Result<(), StopError>, tempfile::TempDir) {
        let result = self.server.take().expect("it runs").wait();
        let dir = std::mem::replace(&mut self.dir, tempfile::tempdir().expect("a temporary directory"));
        (result, dir)
    }

    /// Stops the server and returns its directory.
    pub(crate) fn stop(self) -> tempfile::TempDir {
        self.begin_stop();
        let (result, dir) = self.ended();
        result.expect("a clean stop");
        dir
    }
}

/// Makes a server serve HTTP, on any free port.
pub(crate) fn serve_http(config: &mut Config) {
    config.http = Some(([127, 0, 0, 1], 0).into());
}

impl Drop for TestServer {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            server.stopper().stop();
            let _ = server.wait();
        }
    }
}

/// Client that reads and writes bytes.
pub(crate) struct Client<S> {
    stream: S,
}

impl Client<TcpStream> {
    pub(crate) fn over(stream: TcpStream) -> Client<TcpStream> {
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket option");
        Client { stream }
    }

    /// Shuts down the sending direction.
    pub(crate) fn end_input(&self) {
        self.stream.shutdown(std::net::Shutdown::Write).expect("a connected socket");
    }

    /// Returns the client's own address, as `CLIENT LIST` shows it.
    pub(crate) fn address(&self) -> String {
        self.stream.local_addr().expect("a connected socket").to_string()
    }
}

impl<S: Read + Write> Client<S> {
    /// Sends bytes unchanged.
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).expect("the server reads");
    }

    /// Sends bytes; `false` if the server has closed the connection.
    pub(crate) fn try_send(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).is_ok()
    }

    /// Sends a command.
    pub(crate) fn command(&mut self, words: &[&str]) {
        self.send(frame(words));
    }

    /// Sends a command of words separated by spaces, and expects a reply.
    pub(crate) fn ask(&mut self, words: &str, reply: &str) {
        self.command(&words.split(' ').collect::<Vec<_>>());
        self.expect(reply);
    }

    /// Expects exactly these bytes next.
    #[track_caller]
    pub(crate) fn expect(&mut self, reply: impl AsRef<[u8]>) {
        let expected = reply.as_ref();
        let mut received = vec![0; expected.len()];
        let mut length = 0;
        while length < expected.len() {
            match self.stream.read(&mut received[length..]) {
                Ok(0) => break,
                Ok(count) => length += count,
                Err(error) => panic!("{error} while waiting for {}", expected.escape_ascii()),
            }
            if received[..length] != expected[..length] {
                break;
            }
        }
        let received = &received[..length];
        assert_eq!(received.escape_ascii().to_string(), expected.escape_ascii().to_string());
    }

    /// Reads one line, without its line end.
    pub(crate) fn line(&mut self) -> String {
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            let mut byte = [0];
            self.stream.read_exact(&mut byte).expect("a line");
            line.push(byte[0]);
        }
        line.truncate(line.len() - 2);
        String::from_utf8(line).expect("text")
    }

    /// Reads a bulk string, or the text of a verbatim string.
    pub(crate) fn bulk(&mut self) -> String {
        let header = self.line();
        assert!(header.starts_with('$') || header.starts_with('='), "{header}");
        let length: usize = header[1..].parse().expect("a length");
        let mut bytes = vec![0; length + 2];
        self.stream.read_exact(&mut bytes).expect("a bulk string");
        bytes.truncate(length);
        String::from_utf8(bytes).expect("text")
    }

    /// Reads `length` bytes.
    pub(crate) fn bytes(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.stream.read_exact(&mut bytes).expect("so many bytes");
        bytes
    }

    /// Expects the server to close the connection; returns what the server sent before.
    pub(crate) fn until_closed(&mut self) -> Vec<u8> {
        let mut received = Vec::new();
        match self.stream.read_to_end(&mut received) {
            Ok(_) => {}
            // The server closed the connection with unread bytes from the client.
            Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
            Err(error) => panic!("{error} while waiting for the end of the connection"),
        }
        received
    }
}

/// Connects a client to a Unix socket.
pub(crate) fn unix_client(path: &Path) -> Client<UnixStream> {
    let stream = UnixStream::connect(path).expect("the server listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket option");
    Client { stream }
}

/// Encodes a command as an array of bulk strings.
pub(crate) fn frame(words: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
    }
    bytes
}

/// Returns a port on which no process listens. Neither another test of this process nor the local
/// end of a connection takes it before a server listens there: systems choose local ports from
/// 32,768 upwards.
fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let start = std::process::id().wrapping_mul(61);
    (0..20_000)
        .map(|_| 10_000 + (start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % 20_000) as u16)
        .find(|&port| TcpListener::bind(("127.0.0.1", port)).is_ok())
        .expect("a free port")
}

/// Repeats a check until it holds; panics after [`PATIENCE`].
#[track_caller]
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = std::time::Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < PATIENCE, "{what}: waited in vain");
        std::thread::sleep(Duration::from_millis(5));
    }
}
