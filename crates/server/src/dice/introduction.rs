//! How a client identifies itself: `HANDSHAKE` and `HELLO`.

use super::handing;
use super::request::Words;
use crate::command::client_command::check_name;
use crate::context::Context;
use crate::session::Session;
use crate::version::TIDEMARK_VERSION;
use std::fmt::Write as _;
use tidemark_engine::command::parse::is;

pub(super) const NOT_AUTHENTICATED: &str = "NOAUTH Authentication required.";

/// Longest ID of a client, in bytes.
const ID_BYTES: usize = 256;
/// Most IDs of one connection.
const IDS_LIMIT: usize = 16;

/// Identity that a client has given.
#[derive(Debug, Default)]
pub(super) struct Introduction {
    /// All IDs given on the connection, latest last. They denote the same client.
    given: Vec<Id>,
}

#[derive(Debug)]
struct Id {
    text: Box<str>,
    /// Whether the connection receives emissions.
    watches: bool,
    /// Whether the client's other connections have been notified.
    is_announced: bool,
}

impl Introduction {
    /// `HANDSHAKE id command|watch`. Needs no password, because clients send it first.
    pub(super) fn handshake(
        &mut self,
        session: &mut Session,
        words: &Words<'_>,
        cx: &Context<'_>,
    ) -> Result<(), &'static str> {
        let [_, id, mode] = words.as_slice() else {
            return Err("ERR wrong number of arguments for 'handshake' command");
        };
        let watches = is(mode, "WATCH");
        if !watches && !is(mode, "COMMAND") {
            return Err("ERR the mode of a handshake is 'command' or 'watch'");
        }
        let id = std::str::from_utf8(id).unwrap_or_default();
        if id.is_empty() || id.len() > ID_BYTES {
            return Err("ERR the id of a handshake has 1 to 256 bytes");
        }
        self.given.retain(|known| *known.text != *id);
        if self.given.len() == IDS_LIMIT {
            return Err("ERR one connection has at most 16 ids");
        }
        self.given.push(Id { text: id.into(), watches, is_announced: false });
        self.announce(session, cx);
        if check_name(id.as_bytes(), "Client names").is_ok() {
            session.client.names().name = id.as_bytes().to_vec();
        }
        Ok(())
    }

    /// Notifies the client's other connections of the IDs once the client is authenticated, because
    /// a listener can read what they watch.
    pub(super) fn announce(&mut self, session: &Session, cx: &Context<'_>) {
        if !session.authenticated || session.is_reserved {
            return;
        }
        for id in self.given.iter_mut().filter(|id| !id.is_announced) {
            handing::introduce(session, &id.text, id.watches, cx);
            id.is_announced = true;
        }
    }
}

/// `HELLO [protocol]`: describes the server as JSON.
pub(super) fn hello(
    introduction: &Introduction,
    session: &Session,
    words: &Words<'_>,
) -> Result<String, &'static str> {
    if !session.authenticated {
        return Err(NOT_AUTHENTICATED);
    }
    if words.len() > 2 {
        return Err("ERR wrong number of arguments for 'hello' command");
    }
    // A client without an ID gets the one that `CLIENT LIST` shows.
    let id = introduction.given.last().map(|id| json_string(&id.text));
    let id = id.unwrap_or_else(|| format!("\"client-{}\"", session.client.id));
    let address = json_string(&session.client.local_address);
    Ok(format!(
        "{{\"proto\":2,\"id\":{address},\"role\":\"master\",\"modules\":[],\"clientId\":{id},\"client_id\":{id},\
         \"client\":{id},\"serverVersion\":\"{TIDEMARK_VERSION}\",\"version\":\"{TIDEMARK_VERSION}\"}}"
    ))
}

/// Quotes a text as JSON.
fn json_string(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            character if character < ' ' => {
                // Writing to a string does not fail.
                let _ = write!(quoted, "\\u{:04x}", u32::from(character));
            }
            character => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_in_json_keeps_its_characters() {
        assert_eq!(json_string("a\"b\\c\né"), "\"a\\\"b\\\\c\\u000aé\"");
    }
}
