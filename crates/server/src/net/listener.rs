//! Listening sockets. Every worker has its own socket on each TCP address, and the kernel spreads
//! clients over them.

use crate::config::{BindAddress, Config};
use crate::net::socket::Socket;
use mio::net::{TcpListener, UnixListener};
use mio::{Interest, Registry, Token};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Why the server cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// A TCP address cannot be used.
    #[error("cannot listen on {address}: {error}{}", advice(error))]
    Tcp {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        error: io::Error,
    },
    /// The Unix socket cannot be used.
    #[error("cannot listen on the Unix socket {}: {error}", path.display())]
    Unix {
        /// Its path.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// Neither a port nor a Unix socket is set.
    #[error("there is nothing to listen on: set --port or --unixsocket")]
    Nothing,
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "; another server runs there: stop it or choose another --port",
        io::ErrorKind::PermissionDenied => "; ports below 1024 need privileges: choose another --port",
        io::ErrorKind::AddrNotAvailable => "; this machine has no such address: see --bind",
        _ => "",
    }
}

/// A listening socket.
#[derive(Debug)]
pub(crate) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, String),
}

impl Listener {
    pub(crate) fn accept(&self) -> io::Result<Socket> {
        match self {
            Listener::Tcp(listener) => listener.accept().map(|(stream, _)| Socket::Tcp(stream)),
            Listener::Unix(listener, _) => listener.accept().map(|(stream, _)| Socket::Unix(stream)),
        }
    }

    pub(crate) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        match self {
            Listener::Tcp(listener) => registry.register(listener, token, Interest::READABLE),
            Listener::Unix(listener, _) => registry.register(listener, token, Interest::READABLE),
        }
    }

    /// The Unix socket's path; empty for TCP.
    pub(crate) fn path(&self) -> &str {
        match self {
            Listener::Tcp(_) => "",
            Listener::Unix(_, path) => path,
        }
    }
}

/// A server's listening sockets, by worker, and their TCP addresses.
pub(crate) struct Listening {
    pub(crate) by_worker: Vec<Vec<Listener>>,
    pub(crate) addresses: Vec<SocketAddr>,
}

/// Opens the sockets that the configuration names.
pub(crate) fn listen(config: &Config, workers: usize) -> Result<Listening, ListenError> {
    let mut listening =
        Listening { by_worker: (0..workers).map(|_| Vec::new()).collect(), addresses: Vec::new() };
    for port in ports(config) {
        for bind in &config.bind {
            listen_on_host(&mut listening, bind, port, config.tcp_backlog)?;
        }
    }
    if let Some(path) = &config.unixsocket {
        let failed = |error| ListenError::Unix { path: path.clone(), error };
        let listener = unix_listener(path, config).map_err(failed)?;
        let shown = path.display().to_string();
        for worker in &mut listening.by_worker {
            let listener = listener.try_clone().map_err(failed)?;
            worker.push(Listener::Unix(UnixListener::from_std(listener), shown.clone()));
        }
    }
    if listening.by_worker.iter().all(Vec::is_empty) {
        return Err(ListenError::Nothing);
    }
    Ok(listening)
}

/// The TCP ports for clients.
fn ports(config: &Config) -> impl Iterator<Item = u16> {
    let sentinel = Some(config.cluster_sentinel_port).filter(|port| *port != config.port);
    [Some(config.port), sentinel].into_iter().flatten().filter(|port| *port != 0)
}

fn listen_on_host(
    listening: &mut Listening,
    bind: &BindAddress,
    port: u16,
    backlog: u16,
) -> Result<(), ListenError> {
    for host in addresses_of(&bind.host) {
        let address = SocketAddr::new(host, port);
        let opened: io::Result<Vec<TcpListener>> =
            listening.by_worker.iter().map(|_| tcp_listener(address, backlog)).collect();
        match opened {
            Ok(listeners) => {
                listening.addresses.push(address);
                for (worker, listener) in listening.by_worker.iter_mut().zip(listeners) {
                    worker.push(Listener::Tcp(listener));
                }
            }
            Err(error) if bind.optional && error.kind() != io::ErrorKind::AddrInUse => {}
            Err(error) => return Err(ListenError::Tcp { address, error }),
        }
    }
    Ok(())
}

fn addresses_of(host: &str) -> Vec<IpAddr> {
    match host {
        "*" => vec![IpAddr::V4(Ipv4Addr::UNSPECIFIED)],
        "localhost" => vec![IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)],
        numeric => numeric.parse().into_iter().collect(),
    }
}

fn tcp_listener(address: SocketAddr, buffer: u16) -> io::Result<TcpListener> {
    let socket = tcp_socket(address)?;
    socket.set_reuse_port(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(i32::from(buffer))?;
    Ok(TcpListener::from_std(socket.into()))
}

fn tcp_socket(address: SocketAddr) -> io::Result<socket2::Socket> {
    use socket2::{Domain, Protocol, Socket, Type};
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        // The IPv4 address has its own listener.
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_address(true)?;
    Ok(socket)
}

fn unix_listener(path: &Path, config: &Config) -> io::Result<std::os::unix::net::UnixListener> {
    // Remove a socket left by an earlier run, but no other file.
    if std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket()) {
        std::fs::remove_file(path)?;
    }
    let listener = std::os::unix::net::UnixListener::bind(path)?;
    listener.set_nonblocking(true)?;
    if config.unixsocketperm != 0 {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(config.unixsocketperm))?;
    }
    Ok(listener)
}

/// Fails if another process listens on one of the addresses. Workers share ports, so several
/// servers could share one unnoticed.
pub(crate) fn check_free(config: &Config) -> Result<(), ListenError> {
    for (port, bind) in ports(config).flat_map(|port| config.bind.iter().map(move |bind| (port, bind))) {
        for host in addresses_of(&bind.host) {
            let address = SocketAddr::new(host, port);
            // Bound without listening: a client that connects now is refused, not accepted and
            // dropped.
            match tcp_socket(address).and_then(|socket| socket.bind(&address.into())) {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                    return Err(ListenError::Tcp { address, error });
                }
                _ => {}
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Returns a configuration for a free port of an address that no other test uses.
    fn config(host: &str) -> Config {
        let free = std::net::TcpListener::bind((host, 0)).expect("a free port");
        let bind = vec![BindAddress { host: host.to_owned(), optional: false }];
        Config { bind, port: free.local_addr().expect("its address").port(), ..Config::default() }
    }

    #[test]
    fn an_address_that_is_listened_on_is_not_free() {
        let config = config("127.0.0.71");
        check_free(&config).expect("free at first");
        let listening = listen(&config, 2).expect("two workers share a port");
        assert!(matches!(check_free(&config), Err(ListenError::Tcp { .. })));
        drop(listening);
        check_free(&config).expect("free again");
    }

    #[test]
    fn probing_an_address_accepts_no_connection() {
        let config = config("127.0.0.72");
        let address = SocketAddr::new(Ipv4Addr::new(127, 0, 0, 72).into(), config.port);
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let client = scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    // From another address, or the kernel may connect the socket to itself.
                    let socket = tcp_socket(address).expect("a socket");
                    let own = SocketAddr::from(([127, 0, 0, 73], 0));
                    socket.bind(&own.into()).expect("a port");
                    let refused = socket.connect(&address.into()).expect_err("no server listens");
                    assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
                }
            });
            for _ in 0..2000 {
                check_free(&config).expect("free");
            }
            done.store(true, Ordering::Relaxed);
            client.join().expect("no worker accepted the client");
        });
    }
}
