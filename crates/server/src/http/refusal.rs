//! Requests over HTTP that fail, and their responses.

use crate::command::gate;
use crate::http::access::Denied;
use crate::subscription::http_registry::NeverReached;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use tidemark_engine::CommandError;

/// Header, and field of gRPC's metadata, that names the leader of the group in its followers' refusals.
pub(crate) const LEADER: &str = "tidemark-leader";

/// A request that is answered with an error.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) reason: String,
}

impl Refusal {
    pub(crate) fn wrong(reason: String) -> Refusal {
        Refusal { status: StatusCode::BAD_REQUEST, reason }
    }

    pub(crate) fn unavailable(reason: &str) -> Refusal {
        Refusal { status: StatusCode::SERVICE_UNAVAILABLE, reason: reason.to_owned() }
    }

    /// The answer waited for what will not be reached. Not a status that clients repeat requests
    /// for: the change may be kept.
    pub(crate) fn outcome_unknown(why: NeverReached) -> Refusal {
        let why = why.reason();
        let reason = format!("UNKNOWN {why}, and the changes of this request may be lost or kept");
        Refusal { status: StatusCode::INTERNAL_SERVER_ERROR, reason }
    }

    /// Converts the error of a command: the first words of its text determine the status.
    pub(crate) fn of_error(text: &[u8]) -> Refusal {
        let reason = String::from_utf8_lossy(text).into_owned();
        let begins = |words: &[&str]| words.iter().any(|word| reason.starts_with(word));
        let status = if begins(&["ERR no such limiter", "ERR no such counter", "ERR no such pool"]) {
            StatusCode::NOT_FOUND
        } else if begins(&["WRONGTYPE ", "ERR the limiter is of the algorithm"]) {
            StatusCode::CONFLICT
        } else if begins(&["MISCONF ", "OOM ", "MOVED ", "CLUSTERDOWN ", "TRYAGAIN ", "MASTERDOWN "]) {
            StatusCode::SERVICE_UNAVAILABLE
        } else {
            StatusCode::BAD_REQUEST
        };
        Refusal { status, reason }
    }

    /// Returns the leader's address for clients of the Redis protocol, if another member of the group
    /// leads.
    pub(crate) fn leader(&self) -> Option<&str> {
        gate::leader_in(&self.reason)
    }

    /// Whether the error concerns the content of a key.
    pub(crate) fn is_of_key(&self) -> bool {
        matches!(self.status, StatusCode::NOT_FOUND | StatusCode::CONFLICT)
    }

    /// Builds a response after which the connection stays open, unless the body was not read or the
    /// client may be guessing passwords.
    pub(crate) fn into_kept_alive(self) -> Response {
        let keeps = matches!(
            self.status,
            StatusCode::BAD_REQUEST
                | StatusCode::NOT_FOUND
                | StatusCode::METHOD_NOT_ALLOWED
                | StatusCode::CONFLICT
                | StatusCode::SERVICE_UNAVAILABLE
        );
        let mut response = self.into_response();
        if keeps {
            response.headers_mut().remove(header::CONNECTION);
        }
        response
    }
}

impl From<CommandError> for Refusal {
    fn from(error: CommandError) -> Refusal {
        let status = match error {
            CommandError::LogFailed(_) => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::BAD_REQUEST,
        };
        Refusal { status, reason: error.to_string() }
    }
}

impl From<Denied> for Refusal {
    fn from(denied: Denied) -> Refusal {
        Refusal { status: denied.status, reason: denied.reason.to_owned() }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut body = serde_json::json!({ "error": self.reason });
        if let Some(leader) = self.leader() {
            body["leader"] = leader.into();
        }
        let mut response = (self.status, body.to_string()).into_response();
        let headers = response.headers_mut();
        if let Some(leader) = self.leader().and_then(|leader| HeaderValue::from_str(leader).ok()) {
            headers.insert(LEADER, leader);
        }
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        // Guessing passwords costs a connection for each guess.
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_a_command_has_the_status_that_says_what_to_do() {
        for (text, status) in [
            ("ERR no such limiter: define it by LIMIT.CREATE, or in the call", 404),
            ("ERR no such counter, COUNTER.CREATE makes one", 404),
            ("ERR no such pool, POOL.CREATE makes one", 404),
            ("WRONGTYPE Operation against a key holding the wrong kind of value", 409),
            ("ERR the limiter is of the algorithm GCRA: LIMIT.CREATE can change that", 409),
            ("MISCONF the log is full", 503),
            ("ERR syntax error", 400),
            ("", 400),
        ] {
            let refusal = Refusal::of_error(text.as_bytes());
            assert_eq!((refusal.status.as_u16(), refusal.reason.as_str()), (status, text));
            assert_eq!(refusal.leader(), None);
        }
    }

    #[test]
    fn a_refusal_of_a_follower_names_the_leader_in_a_header() {
        let response = Refusal::of_error(b"MOVED 12 [fd00::2]:7000").into_response();
        assert_eq!(response.status().as_u16(), 503);
        assert_eq!(response.headers()[LEADER], "[fd00::2]:7000");
        for text in ["MOVED", "MOVED 1", "MOVED 1 a\nb", "CLUSTERDOWN no leader"] {
            assert!(
                !Refusal::of_error(text.as_bytes()).into_response().headers().contains_key(LEADER),
                "{text}"
            );
        }
    }
}
