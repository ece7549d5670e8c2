//! Frames of watched reads, as a RESP3 client receives them.

use super::{Client, TestServer};
use std::net::TcpStream;

/// Connects a client that speaks RESP3.
pub(crate) fn resp3(server: &TestServer) -> Client<TcpStream> {
    let mut client = server.client();
    client.command(&["HELLO", "3"]);
    while client.line() != "*0" {}
    client
}

pub(crate) fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}

/// Returns the reply to the start of a subscription, in RESP3.
pub(crate) fn begun(name: &str, lsn: u64, sequence: u64, value: &str) -> String {
    let fields = [
        bulk("sub_id"),
        bulk(name),
        bulk("lsn"),
        format!(":{lsn}\r\n"),
        bulk("seq"),
        format!(":{sequence}\r\n"),
    ];
    format!("%4\r\n{}{}{value}", fields.concat(), bulk("value"))
}

/// Returns an emission in RESP3.
pub(crate) fn emission(name: &str, lsn: u64, sequence: u64, value: &str) -> String {
    format!(">5\r\n{}{}:{lsn}\r\n:{sequence}\r\n{value}", bulk("emission"), bulk(name))
}

pub(crate) fn outcome(word: &str, number: u64) -> String {
    format!("*2\r\n{}:{number}\r\n", bulk(word))
}
