//! Data from a socket, in whole units, for any protocol.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Longest time for a running server to answer; a longer wait fails the case.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A buffered socket.
pub(crate) struct Inbound {
    stream: TcpStream,
    /// Received bytes that were not returned yet.
    buffer: Vec<u8>,
}

impl Inbound {
    pub(crate) fn connect(port: u16) -> io::Result<Self> {
        Self::over(TcpStream::connect(("127.0.0.1", port))?)
    }

    pub(crate) fn over(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { stream, buffer: Vec::new() })
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Returns the next unit; `None` if no complete one arrives in time. `end_of` returns the
    /// offset after the first unit, if it is complete.
    pub(crate) fn next(
        &mut self,
        patience: Duration,
        end_of: impl Fn(&[u8]) -> Option<usize>,
    ) -> io::Result<Option<Vec<u8>>> {
        let until = Instant::now() + patience;
        loop {
            if let Some(end) = end_of(&self.buffer).filter(|end| *end <= self.buffer.len()) {
                let rest = self.buffer.split_off(end);
                return Ok(Some(std::mem::replace(&mut self.buffer, rest)));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            self.fill(left)?;
        }
    }

    /// Reads available bytes, or waits for some.
    fn fill(&mut self, patience: Duration) -> io::Result<()> {
        self.stream.set_read_timeout(Some(patience))?;
        let mut chunk = [0; 16 * 1024];
        match self.stream.read(&mut chunk) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => self.buffer.extend_from_slice(&chunk[..count]),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

/// Returns the offset after the first occurrence of the mark.
pub(crate) fn behind(mark: &[u8]) -> impl Fn(&[u8]) -> Option<usize> {
    move |bytes| Some(bytes.windows(mark.len()).position(|window| window == mark)? + mark.len())
}
