//! A failing network: forwards bytes, and cuts a connection after a number of bytes from the
//! server.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

pub(crate) struct Proxy {
    pub(crate) port: u16,
    /// Number of connections cut.
    cut: Arc<AtomicUsize>,
}

impl Proxy {
    /// Returns a proxy whose connections end after as many bytes from the server as `limits` gives
    /// for each. It ends with the process.
    pub(crate) fn start(server_port: u16, mut limits: impl Iterator<Item = usize> + Send + 'static) -> Proxy {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a socket");
        let port = listener.local_addr().expect("an address").port();
        let cut = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&cut);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect(("127.0.0.1", server_port)) else { continue };
                let limit = limits.next().unwrap_or(usize::MAX);
                let cut = Arc::clone(&counted);
                let (from_client, to_server) = (client.try_clone(), server.try_clone());
                thread::spawn(move || hand_on(from_client, to_server, usize::MAX));
                thread::spawn(move || {
                    if hand_on(Ok(server), Ok(client), limit) {
                        cut.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        Proxy { port, cut }
    }

    pub(crate) fn cut(&self) -> usize {
        self.cut.load(Ordering::Relaxed)
    }
}

/// Forwards bytes until either side ends, or until `limit` bytes; returns whether the limit was
/// reached.
fn hand_on(from: std::io::Result<TcpStream>, to: std::io::Result<TcpStream>, mut limit: usize) -> bool {
    let (Ok(mut from), Ok(mut to)) = (from, to) else { return false };
    let mut buffer = [0; 16 * 1024];
    while limit > 0 {
        let Ok(length) = from.read(&mut buffer) else { break };
        let length = length.min(limit);
        if length == 0 || to.write_all(&buffer[..length]).is_err() {
            break;
        }
        limit -= length;
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
    limit == 0
}
