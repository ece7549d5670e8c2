//! Accepts connections, and refuses those that are too many or not allowed.

use super::WorkerState;
use super::environment::Environment;
use super::peer::Peer;
use crate::config::Config;
use crate::net::client::Origin;
use crate::net::connection::Connection;
use crate::net::socket::Socket;
use mio::Token;
use std::io;
use std::time::Duration;

/// Pause of accepting when the process is out of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
const TOO_MANY_CLIENTS: &[u8] = b"-ERR max number of clients reached\r\n";
const PROTECTED: &[u8] = b"-DENIED Tidemark runs in protected mode: no password is set, so it accepts clients of this \
machine only. To let other hosts in: 1) connect from this machine and run CONFIG SET requirepass, which lasts until \
the server stops; 2) start it with a password in the TIDEMARK_REQUIREPASS variable or in its configuration file; 3) if \
you only want to try something in a network that you trust, start it with --protected-mode no. Do not do the last \
where others can reach the port: they could read and delete everything.\r\n";

impl WorkerState {
    pub(super) fn accept(&mut self, number: usize, environment: &Environment) {
        loop {
            let listener = &self.listeners[number];
            match listener.accept() {
                Ok(socket) => {
                    let path = listener.path().to_owned();
                    self.admit(socket, &path, environment);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted
                    ) => {}
                Err(_) => {
                    // Out of descriptors or memory. The kernel does not report the waiting clients
                    // again.
                    self.accept_at = Some(environment.shared.clock.now() + ACCEPT_PAUSE);
                    return;
                }
            }
        }
    }

    fn admit(&mut self, mut socket: Socket, path: &str, environment: &Environment) {
        let (shared, config, counters) = (&environment.shared, &environment.config, environment.counters());
        counters.connections.add(1);
        let origin = socket.origin(path);
        if is_kept_out(config, &origin) {
            counters.refused_connections.add(1);
            // Best effort: the socket's buffer is empty, so it fits.
            let _ = socket.write(PROTECTED);
            return;
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.peers.push(None);
            self.peers.len() - 1
        });
        let client =
            shared.clients.admit(config.maxclients, config.reserved_clients, environment.index, slot, origin);
        let registered = socket.configure(config.tcp_keepalive);
        let registered = registered.and_then(|()| socket.register(self.poll.registry(), Token(slot)));
        match (client, registered) {
            (Some(client), Ok(())) => {
                let connection = Connection::new(client, config, &shared.client_memory.budget);
                self.peers[slot] = Some(Box::new(Peer::new(socket, connection)));
                self.set_timer(slot, config);
            }
            (None, _) => {
                counters.refused_connections.add(1);
                let _ = socket.write(TOO_MANY_CLIENTS);
                socket.deregister(self.poll.registry());
                self.closed.push(slot);
            }
            (Some(client), Err(_)) => {
                // The client has disconnected already.
                shared.clients.remove(client.id);
                self.closed.push(slot);
            }
        }
    }
}

/// Whether protected mode refuses a client: without a password, any client of another machine.
fn is_kept_out(config: &Config, origin: &Origin) -> bool {
    config.protected_mode && config.requirepass.is_empty() && !origin.is_local
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protected_mode_keeps_out_strangers_while_there_is_no_password() {
        let origin = |is_local| Origin {
            address: String::new(),
            local_address: String::new(),
            descriptor: 0,
            is_local,
            is_unix: false,
        };
        for (protected_mode, password, is_local, refused) in [
            (true, "", false, true),
            (true, "", true, false),
            (true, "secret", false, false),
            (false, "", false, false),
        ] {
            let config = Config { protected_mode, requirepass: password.to_owned(), ..Config::default() };
            assert_eq!(is_kept_out(&config, &origin(is_local)), refused);
        }
    }
}
