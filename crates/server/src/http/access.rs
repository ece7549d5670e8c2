//! Access control over HTTP: the same clients as over RESP, and no web pages of other origins.

use crate::command::handshake::same_secret;
use crate::config::Config;
use crate::login_guard::{Login, LoginGuard};
use crate::net::socket::is_this_machine;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::net::{IpAddr, SocketAddr};

/// A request that is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Denied {
    pub(crate) status: StatusCode,
    pub(crate) reason: &'static str,
}

const STRANGER: Denied = Denied {
    status: StatusCode::FORBIDDEN,
    reason: "protected mode: no password is set, so only clients of this machine are served; set requirepass, or \
             protected-mode no in a network that you trust",
};
const FOREIGN_ORIGIN: Denied = Denied {
    status: StatusCode::FORBIDDEN,
    reason: "the page that asks is not of this server's origin; name its origin in http-allow-origin if it may",
};
const FOREIGN_HOST: Denied = Denied {
    status: StatusCode::FORBIDDEN,
    reason: "no password is set, so the server must be addressed by a numeric address or as localhost: any other name \
             may be a web page's trick; set requirepass, or name http://HOST:PORT in http-allow-origin",
};
const NO_PASSWORD: Denied = Denied {
    status: StatusCode::UNAUTHORIZED,
    reason: "the password is missing or wrong; give it as Authorization: Bearer PASSWORD, or as ?token=PASSWORD where no \
             header can be set",
};

const TOO_MANY_LOGINS: Denied = Denied {
    status: StatusCode::TOO_MANY_REQUESTS,
    reason: "too many wrong passwords came from this address, so this one was not checked: wait a second and try again",
};

/// Checks everything but the password, which requests for metrics do not need.
pub(crate) fn check_visitor(config: &Config, peer: SocketAddr, headers: &HeaderMap) -> Result<(), Denied> {
    if config.protected_mode && config.requirepass.is_empty() && !is_this_machine(peer) {
        return Err(STRANGER);
    }
    check_origin(config, headers)?;
    check_embedding(headers)
}

/// Checks a request from `peer`. `token` is the password in the target of the request, if any.
pub(crate) fn check(
    config: &Config,
    logins: &LoginGuard,
    peer: SocketAddr,
    headers: &HeaderMap,
    token: Option<&[u8]>,
) -> Result<(), Denied> {
    check_visitor(config, peer, headers)?;
    if config.requirepass.is_empty() {
        return Ok(());
    }
    let given = headers.get(header::AUTHORIZATION).and_then(|value| credentials(value.as_bytes()));
    if given.is_none() && token.is_none() {
        return Err(NO_PASSWORD);
    }
    let is_right = [given.as_deref(), token]
        .into_iter()
        .flatten()
        .any(|given| same_secret(given, config.requirepass.as_bytes()));
    match logins.judge(&peer.to_string(), is_right) {
        Login::Right => Ok(()),
        Login::Wrong => Err(NO_PASSWORD),
        Login::Refused => Err(TOO_MANY_LOGINS),
    }
}

/// Refuses web pages of other origins. A browser sends the page's origin unless it is this
/// server's. Then the `Host` header reveals a page whose own host name was pointed at this server
/// (DNS rebinding).
pub(crate) fn check_origin(config: &Config, headers: &HeaderMap) -> Result<(), Denied> {
    let host = headers.get(header::HOST).map(HeaderValue::as_bytes);
    if let Some(origin) = headers.get(header::ORIGIN) {
        let of_page = origin.to_str().ok().and_then(|origin| origin.split_once("://")).map(|(_, host)| host);
        if allows(config, origin.as_bytes()) {
            return Ok(());
        }
        if of_page.is_none()
            || !host.is_some_and(|host| host.eq_ignore_ascii_case(of_page.unwrap_or("").as_bytes()))
        {
            return Err(FOREIGN_ORIGIN);
        }
    }
    let trusts_names = !config.protected_mode || !config.requirepass.is_empty();
    match host {
        Some(host) if !trusts_names && !is_plain(host) && !allows_host(config, host) => Err(FOREIGN_HOST),
        _ => Ok(()),
    }
}

/// Refuses what a page of another site embeds, such as an image: such a request has no `Origin`,
/// and the page cannot read the response. It could still cause work or a change.
fn check_embedding(headers: &HeaderMap) -> Result<(), Denied> {
    let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    let is_foreign = matches!(site, Some(b"cross-site" | b"same-site"));
    if is_foreign && !headers.contains_key(header::ORIGIN) { Err(FOREIGN_ORIGIN) } else { Ok(()) }
}

/// Returns the `Origin` of the request, if its pages may read responses.
pub(crate) fn allowed_origin<'a>(config: &Config, headers: &'a HeaderMap) -> Option<&'a HeaderValue> {
    headers.get(header::ORIGIN).filter(|origin| allows(config, origin.as_bytes()))
}

fn allows(config: &Config, origin: &[u8]) -> bool {
    config
        .http_allow_origin
        .iter()
        .any(|allowed| allowed == "*" || allowed.as_bytes().eq_ignore_ascii_case(origin))
}

fn allows_host(config: &Config, host: &[u8]) -> bool {
    config.http_allow_origin.iter().any(|allowed| {
        allowed == "*"
            || allowed.split_once("://").is_some_and(|(_, name)| name.as_bytes().eq_ignore_ascii_case(host))
    })
}

/// Whether a host, with or without a port, is resolved without a name server.
fn is_plain(host: &[u8]) -> bool {
    let Ok(host) = std::str::from_utf8(host) else { return false };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => name,
        _ => host,
    };
    let name = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

/// Returns the password of `Bearer PASSWORD` or `Basic base64(USER:PASSWORD)`.
fn credentials(authorization: &[u8]) -> Option<Vec<u8>> {
    let at = authorization.iter().position(|byte| *byte == b' ')?;
    let (scheme, rest) = (&authorization[..at], authorization[at..].trim_ascii());
    if scheme.eq_ignore_ascii_case(b"bearer") {
        return Some(rest.to_vec());
    }
    if !scheme.eq_ignore_ascii_case(b"basic") {
        return None;
    }
    let pair = STANDARD.decode(rest).ok()?;
    let colon = pair.iter().position(|byte| *byte == b':')?;
    Some(pair[colon + 1..].to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_log::Clock;

    const HERE: SocketAddr = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 50_000);

    fn asked(
        config: &Config,
        peer: SocketAddr,
        headers: &HeaderMap,
        token: Option<&[u8]>,
    ) -> Result<(), Denied> {
        check(config, &LoginGuard::new(&Clock::System), peer, headers, token)
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| ((*name).parse().expect("a name"), value.parse().expect("a value")))
            .collect()
    }

    fn config(password: &str, origins: &[&str]) -> Config {
        Config {
            requirepass: password.to_owned(),
            http_allow_origin: origins.iter().map(ToString::to_string).collect(),
            ..Config::default()
        }
    }

    #[test]
    fn strangers_are_refused_while_there_is_no_password() {
        let there = SocketAddr::from(([192, 0, 2, 1], 50_000));
        let open = config("", &[]);
        assert_eq!(asked(&open, there, &headers(&[]), None), Err(STRANGER));
        assert_eq!(asked(&open, HERE, &headers(&[]), None), Ok(()));
        assert_eq!(asked(&Config { protected_mode: false, ..open }, there, &headers(&[]), None), Ok(()));
        assert_eq!(asked(&config("secret", &[]), there, &headers(&[]), Some(b"secret")), Ok(()));
    }

    #[test]
    fn the_password_comes_in_a_header_or_in_the_target() {
        let guarded = config("sec:ret", &[]);
        for (authorization, token, expected) in [
            (None, None, Err(NO_PASSWORD)),
            (Some("Bearer sec:ret"), None, Ok(())),
            (Some("bearer  sec:ret"), None, Ok(())),
            (Some("Bearer sec"), None, Err(NO_PASSWORD)),
            (Some("Bearer"), None, Err(NO_PASSWORD)),
            // anybody:sec:ret
            (Some("Basic YW55Ym9keTpzZWM6cmV0"), None, Ok(())),
            // sec:ret
            (Some("Basic c2VjOnJldA=="), None, Err(NO_PASSWORD)),
            (Some("Basic %%%"), None, Err(NO_PASSWORD)),
            (Some("Digest sec:ret"), None, Err(NO_PASSWORD)),
            (None, Some("sec:ret"), Ok(())),
            (None, Some(""), Err(NO_PASSWORD)),
        ] {
            let headers = authorization.map(|value| headers(&[("authorization", value)])).unwrap_or_default();
            let checked = asked(&guarded, HERE, &headers, token.map(str::as_bytes));
            assert_eq!(checked, expected, "{authorization:?} {token:?}");
        }
    }

    #[test]
    fn pages_of_others_are_refused_unless_their_origin_is_named() {
        for (origin, host, origins, expected) in [
            ("http://127.0.0.1:7380", "127.0.0.1:7380", vec![], Ok(())),
            ("http://LOCALHOST:7380", "localhost:7380", vec![], Ok(())),
            ("http://127.0.0.1:8000", "127.0.0.1:7380", vec![], Err(FOREIGN_ORIGIN)),
            (
                "http://127.0.0.1:8000",
                "127.0.0.1:7380",
                vec!["https://b.example", "http://127.0.0.1:8000"],
                Ok(()),
            ),
            ("https://a.example", "127.0.0.1:7380", vec!["http://a.example"], Err(FOREIGN_ORIGIN)),
            ("https://a.example", "127.0.0.1:7380", vec!["*"], Ok(())),
            ("null", "127.0.0.1:7380", vec![], Err(FOREIGN_ORIGIN)),
            ("null", "null", vec![], Err(FOREIGN_ORIGIN)),
        ] {
            let checked =
                check_origin(&config("", &origins), &headers(&[("origin", origin), ("host", host)]));
            assert_eq!(checked, expected, "{origin} at {host} with {origins:?}");
        }
        assert_eq!(check_origin(&config("", &[]), &headers(&[("origin", "http://a")])), Err(FOREIGN_ORIGIN));
    }

    #[test]
    fn what_a_page_of_others_embeds_is_refused() {
        let embedded = |pairs: &[(&'static str, &str)]| check_embedding(&headers(pairs));
        assert_eq!(embedded(&[("sec-fetch-site", "cross-site")]), Err(FOREIGN_ORIGIN));
        assert_eq!(embedded(&[("sec-fetch-site", "same-site")]), Err(FOREIGN_ORIGIN));
        // No browser, the server's own page, a typed address; and an origin that was checked.
        for allowed in [&[][..], &[("sec-fetch-site", "same-origin")], &[("sec-fetch-site", "none")]] {
            assert_eq!(embedded(allowed), Ok(()), "{allowed:?}");
        }
        assert_eq!(embedded(&[("sec-fetch-site", "cross-site"), ("origin", "https://a.example")]), Ok(()));
    }

    #[test]
    fn every_door_is_closed_to_what_a_page_of_others_embeds() {
        for (password, token) in [("", None), ("secret", Some(&b"secret"[..]))] {
            let (config, image) = (config(password, &["*"]), headers(&[("sec-fetch-site", "cross-site")]));
            assert_eq!(check_visitor(&config, HERE, &image), Err(FOREIGN_ORIGIN));
            assert_eq!(asked(&config, HERE, &image, token), Err(FOREIGN_ORIGIN));
        }
    }

    #[test]
    fn a_foreign_host_name_is_refused_while_there_is_no_password() {
        let with = |host| headers(&[("host", host)]);
        for host in ["127.0.0.1", "127.0.0.1:7380", "[::1]:7380", "[::1]", "localhost:7380", "LocalHost"] {
            assert_eq!(check_origin(&config("", &[]), &with(host)), Ok(()), "{host}");
        }
        for host in
            ["evil.example", "evil.example:7380", "localhost.evil.example", "127.0.0.1.evil.example", ""]
        {
            assert_eq!(check_origin(&config("", &[]), &with(host)), Err(FOREIGN_HOST), "{host}");
            assert_eq!(check_origin(&config("secret", &[]), &with(host)), Ok(()), "{host}");
        }
        assert_eq!(check_origin(&config("", &["http://db.example:7380"]), &with("db.example:7380")), Ok(()));
    }
}
