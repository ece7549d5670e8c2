//! A proxy whose connections fail where a test wants it.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// What the proxy does with the bytes that it receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Fault {
    /// Forwards them.
    None,
    /// Forwards requests; closes the client's connection instead of sending the first answer, and
    /// works normally afterwards.
    LoseAnswer,
    /// Drops requests, and sends no answers.
    Silence,
}

/// A proxy that forwards connections to a port.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    target: u16,
    fault: AtomicU8,
    answers_lost: AtomicU64,
    /// The clients' connections, for [`Proxy::cut`].
    clients: Mutex<Vec<TcpStream>>,
}

impl Proxy {
    pub(crate) fn to(target: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let shared = Arc::new(Shared {
            target,
            fault: AtomicU8::new(0),
            answers_lost: AtomicU64::new(0),
            clients: Mutex::default(),
        });
        let accepting = Arc::clone(&shared);
        // The thread ends with the process.
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                accepting.serve(client);
            }
        });
        Self { port, shared }
    }

    pub(crate) fn set(&self, fault: Fault) {
        self.shared.fault.store(fault as u8, Ordering::SeqCst);
    }

    /// Returns the number of answers that did not reach a client.
    pub(crate) fn answers_lost(&self) -> u64 {
        self.shared.answers_lost.load(Ordering::SeqCst)
    }

    /// Closes all connections.
    pub(crate) fn cut(&self) {
        for client in self.shared.clients.lock().expect("clients").drain(..) {
            let _ = client.shutdown(Shutdown::Both);
        }
    }
}

impl Shared {
    fn is(&self, fault: Fault) -> bool {
        self.fault.load(Ordering::SeqCst) == fault as u8
    }

    fn serve(self: &Arc<Self>, client: TcpStream) {
        let Ok(server) = TcpStream::connect(("127.0.0.1", self.target)) else { return };
        let _ = (client.set_nodelay(true), server.set_nodelay(true));
        let both = (client.try_clone().expect("a descriptor"), server.try_clone().expect("a descriptor"));
        self.clients.lock().expect("clients").push(client.try_clone().expect("a descriptor"));
        let (requests, answers) = (Arc::clone(self), Arc::clone(self));
        std::thread::spawn(move || requests.pass_on(both.0, both.1, false));
        std::thread::spawn(move || answers.pass_on(server, client, true));
    }

    fn pass_on(&self, mut from: TcpStream, mut to: TcpStream, are_answers: bool) {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            if self.is(Fault::Silence) {
                continue;
            }
            if are_answers && self.is(Fault::LoseAnswer) {
                self.answers_lost.fetch_add(1, Ordering::SeqCst);
                self.fault.store(Fault::None as u8, Ordering::SeqCst);
                break;
            }
            if to.write_all(&buffer[..count]).is_err() {
                break;
            }
        }
        let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
    }
}
