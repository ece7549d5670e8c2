//! Servers made up for tests: a function answers what the connections ask, one request after the other.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use tidemark_server::resp::request::{RequestLimits, RequestParser};
use tidemark_server::resp::{Value, encode_value};

/// A client's connection, on which others may send as well.
pub(crate) type Connection = Arc<Mutex<TcpStream>>;

/// How a server behaves; all connections share it.
pub(crate) trait Behaviour: Send + 'static {
    /// The reply to the arguments of a request, and the pushes that follow it.
    fn answer(&mut self, arguments: &[Vec<u8>], connection: &Connection) -> Vec<Value>;

    /// A connection has ended.
    fn leave(&mut self, _: &Connection) {}
}

/// Starts a server and returns its port; it ends with the process.
pub(crate) fn start(behaviour: impl Behaviour) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let behaviour = Arc::new(Mutex::new(behaviour));
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let behaviour = Arc::clone(&behaviour);
            std::thread::spawn(move || serve(stream, &*behaviour));
        }
    });
    port
}

/// A port of this machine at which no server listens.
pub(crate) fn refusing_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn serve(mut stream: TcpStream, behaviour: &Mutex<impl Behaviour>) {
    stream.set_nodelay(true).unwrap();
    let connection: Connection = Arc::new(Mutex::new(stream.try_clone().unwrap()));
    let limits = RequestLimits { authenticated: true, ..RequestLimits::default() };
    let (mut parser, mut input, mut scratch) = (RequestParser::default(), Vec::new(), vec![0; 65_536]);
    'connected: while let Ok(length @ 1..) = stream.read(&mut scratch) {
        input.extend_from_slice(&scratch[..length]);
        while let Ok(Some(consumed)) = parser.next(&input, &limits) {
            let arguments: Vec<Vec<u8>> = parser.arguments(&input).map(<[u8]>::to_vec).collect();
            input.drain(..consumed);
            let mut behaviour = behaviour.lock().unwrap();
            let replies = behaviour.answer(&arguments, &connection);
            // No other answer is written meanwhile: what follows must not overtake it.
            if !send(&connection, &replies) {
                break 'connected;
            }
        }
    }
    behaviour.lock().unwrap().leave(&connection);
}

/// Sends values together; false if the receiver is gone.
pub(crate) fn send<'a>(connection: &Connection, values: impl IntoIterator<Item = &'a Value>) -> bool {
    let mut bytes = Vec::new();
    values.into_iter().for_each(|value| encode_value(&mut bytes, value));
    connection.lock().unwrap().write_all(&bytes).is_ok()
}

/// A string of the protocol.
pub(crate) fn bulk(text: impl AsRef<[u8]>) -> Value {
    Value::Bulk(text.as_ref().to_vec())
}
