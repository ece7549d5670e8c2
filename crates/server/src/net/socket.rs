//! TCP and Unix stream sockets, and their peers' addresses.

use crate::net::client::Origin;
use mio::event::Source;
use mio::net::{TcpStream, UnixStream};
use mio::{Interest, Registry, Token};
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;
use std::time::Duration;

/// A connected, non-blocking socket.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.read(buffer),
            Socket::Unix(stream) => stream.read(buffer),
        }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.write(bytes),
            Socket::Unix(stream) => stream.write(bytes),
        }
    }

    /// Registers the socket for reading and writing. Registering for writing is free: the kernel
    /// reports it only after a write that found no room.
    pub(crate) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        self.source().register(registry, token, Interest::READABLE | Interest::WRITABLE)
    }

    pub(crate) fn deregister(&mut self, registry: &Registry) {
        // Closing the socket, which follows, also deregisters it.
        let _ = self.source().deregister(registry);
    }

    /// Disables Nagle's algorithm and enables keepalive probes.
    pub(crate) fn configure(&self, keepalive: Duration) -> io::Result<()> {
        let Socket::Tcp(stream) = self else { return Ok(()) };
        stream.set_nodelay(true)?;
        if keepalive.is_zero() {
            return Ok(());
        }
        let probe = (keepalive / 3).max(Duration::from_secs(1));
        let settings = socket2::TcpKeepalive::new().with_time(keepalive).with_interval(probe).with_retries(3);
        socket2::SockRef::from(stream).set_tcp_keepalive(&settings)
    }

    fn source(&mut self) -> &mut dyn Source {
        match self {
            Socket::Tcp(stream) => stream,
            Socket::Unix(stream) => stream,
        }
    }

    /// Returns the peer's address. `path` is the Unix socket's path.
    pub(crate) fn origin(&self, path: &str) -> Origin {
        match self {
            Socket::Tcp(stream) => {
                let peer = stream.peer_addr().ok();
                Origin {
                    address: peer.map(|address| address.to_string()).unwrap_or_default(),
                    local_address: stream.local_addr().map(|address| address.to_string()).unwrap_or_default(),
                    descriptor: stream.as_raw_fd(),
                    is_local: peer.is_some_and(is_this_machine),
                    is_unix: false,
                }
            }
            Socket::Unix(stream) => Origin {
                address: format!("{path}:0"),
                local_address: format!("{path}:0"),
                descriptor: stream.as_raw_fd(),
                is_local: true,
                is_unix: true,
            },
        }
    }
}

/// Whether an address is a loopback address, or one mapped to IPv6.
pub(crate) fn is_this_machine(address: SocketAddr) -> bool {
    match address.ip() {
        IpAddr::V4(address) => address.is_loopback(),
        IpAddr::V6(address) => {
            address.is_loopback() || address.to_ipv4_mapped().is_some_and(|address| address.is_loopback())
        }
    }
}
