//! `CLIENT TRACKING` and related commands.

use crate::context::Context;
use crate::events::invalidation;
use crate::net::client::Client;
use crate::net::connection_id::ConnectionAddress;
use crate::session::{Mode, Session, Tracking};
use std::collections::BTreeSet;
use std::sync::Arc;
use tidemark_engine::CommandError;
use tidemark_engine::command::parse;

/// Most prefixes of one client.
const MOST_PREFIXES: usize = 1024;
/// Most bytes of these prefixes together.
const MOST_PREFIX_BYTES: usize = 64 * 1024;

/// Options of `CLIENT TRACKING`.
#[derive(Default)]
struct Options<'a> {
    redirect: Option<Arc<Client>>,
    prefixes: Vec<&'a [u8]>,
    broadcast: bool,
    opt_in: bool,
    opt_out: bool,
    is_without_loop: bool,
}

impl<'a> Options<'a> {
    fn read(words: &[&'a [u8]], cx: &Context<'_>) -> Result<Options<'a>, CommandError> {
        let (mut options, mut rest) = (Options::default(), words);
        while let [word, after @ ..] = rest {
            rest = after;
            match (word, after) {
                (word, [id, after @ ..]) if parse::is(word, "REDIRECT") => {
                    if options.redirect.is_some() {
                        return Err(CommandError::text(
                            "ERR A client can only redirect to a single other client",
                        ));
                    }
                    options.redirect = Some(client(id, cx)?);
                    rest = after;
                }
                (word, [prefix, after @ ..]) if parse::is(word, "PREFIX") => {
                    options.prefixes.push(prefix);
                    rest = after;
                }
                (word, _) if parse::is(word, "BCAST") => options.broadcast = true,
                (word, _) if parse::is(word, "OPTIN") => options.opt_in = true,
                (word, _) if parse::is(word, "OPTOUT") => options.opt_out = true,
                (word, _) if parse::is(word, "NOLOOP") => options.is_without_loop = true,
                _ => return Err(CommandError::Syntax),
            }
        }
        Ok(options)
    }

    /// Returns the tracking mode, if the options fit each other and the present mode.
    fn mode(&self, present: Option<&Tracking>) -> Result<Mode, CommandError> {
        if !self.broadcast && !self.prefixes.is_empty() {
            return Err(CommandError::text("ERR PREFIX option requires BCAST mode to be enabled"));
        }
        let present = present.map(|tracking| tracking.mode);
        if present.is_some_and(|mode| (mode == Mode::Broadcast) != self.broadcast) {
            return Err(CommandError::text(
                "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling \
                 it with a different mode.",
            ));
        }
        if self.broadcast && (self.opt_in || self.opt_out) {
            return Err(CommandError::text("ERR OPTIN and OPTOUT are not compatible with BCAST"));
        }
        if self.opt_in && self.opt_out {
            return Err(CommandError::text("ERR You can't specify both OPTIN mode and OPTOUT mode"));
        }
        if (self.opt_in && present == Some(Mode::OptOut)) || (self.opt_out && present == Some(Mode::OptIn)) {
            return Err(CommandError::text(
                "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling \
                 it with a different mode.",
            ));
        }
        Ok(match self {
            Options { broadcast: true, .. } => Mode::Broadcast,
            Options { opt_in: true, .. } => Mode::OptIn,
            Options { opt_out: true, .. } => Mode::OptOut,
            Options { .. } => Mode::All,
        })
    }
}

/// Returns the client that `REDIRECT` names.
fn client(id: &[u8], cx: &Context<'_>) -> Result<Arc<Client>, CommandError> {
    let id = parse::integer(id)?;
    let client = u64::try_from(id).ok().and_then(|id| cx.shared.clients.get(id));
    client.ok_or(CommandError::text("ERR The client ID you want redirect to does not exist"))
}

/// Refuses prefixes that overlap: the client would be notified twice.
fn check_prefixes(wanted: &[&[u8]], present: Option<&Tracking>) -> Result<(), CommandError> {
    let none = BTreeSet::new();
    let present = present.map_or(&none, |tracking| &tracking.prefixes);
    let bytes = present.iter().map(|prefix| prefix.len()).chain(wanted.iter().map(|prefix| prefix.len()));
    if present.len() + wanted.len() > MOST_PREFIXES || bytes.sum::<usize>() > MOST_PREFIX_BYTES {
        return Err(CommandError::Text(
            format!(
                "ERR a client may ask for {MOST_PREFIXES} prefixes of {MOST_PREFIX_BYTES} bytes together; ask for \
                 shorter ones, which cover more keys"
            )
            .into(),
        ));
    }
    for (number, prefix) in wanted.iter().enumerate() {
        let overlaps = |other: &[u8]| prefix.starts_with(other) || other.starts_with(prefix);
        if let Some(other) = present.iter().find(|other| overlaps(other)) {
            return Err(overlap(prefix, "an existing prefix", other));
        }
        if let Some(other) = wanted.iter().skip(number + 1).find(|other| overlaps(other)) {
            return Err(overlap(prefix, "another provided prefix", other));
        }
    }
    Ok(())
}

fn overlap(prefix: &[u8], what: &str, other: &[u8]) -> CommandError {
    let (prefix, other) = (String::from_utf8_lossy(prefix), String::from_utf8_lossy(other));
    CommandError::Text(
        format!(
            "ERR Prefix '{prefix}' overlaps with {what} '{other}'. Prefixes for a single client must not overlap."
        )
        .into(),
    )
}

/// `CLIENT TRACKING ON | OFF [REDIRECT client-id] [PREFIX prefix ...] [BCAST] [OPTIN] [OPTOUT]
/// [NOLOOP]`
pub(crate) fn tracking(session: &mut Session, args: &[&[u8]], cx: &Context<'_>) -> Result<(), CommandError> {
    let [_, _, switch, words @ ..] = args else { return Err(CommandError::Syntax) };
    let options = Options::read(words, cx)?;
    if parse::is(switch, "ON") {
        begin(session, &options, cx)?;
    } else if parse::is(switch, "OFF") {
        invalidation::end(session, cx);
    } else {
        return Err(CommandError::Syntax);
    }
    session.outbox.reply.ok();
    Ok(())
}

fn begin(session: &mut Session, options: &Options<'_>, cx: &Context<'_>) -> Result<(), CommandError> {
    let present = session.tracking.as_deref();
    let mode = options.mode(present)?;
    if options.broadcast {
        check_prefixes(&options.prefixes, present)?;
    }
    let owner = session.address();
    let taker = options.redirect.as_ref().map_or(owner, |client| ConnectionAddress {
        worker: client.worker,
        connection_id: client.connection_id,
    });
    let notifier =
        invalidation::notifier(owner, taker.connection_id, Arc::clone(&cx.shared.inboxes[taker.worker]));
    let engine = &cx.shared.engine;
    let mut tracking = match session.tracking.take() {
        None => Box::new(Tracking::new(engine.track(taker.connection_id.client, notifier))),
        Some(tracking) => {
            tracking.tracker.hand_over(taker.connection_id.client, notifier);
            tracking
        }
    };
    tracking.mode = mode;
    tracking.is_without_loop = options.is_without_loop;
    tracking.redirect = options.redirect.as_ref().map(|client| client.id);
    tracking.is_broken = false;
    let everything: &[&[u8]] = if options.broadcast && options.prefixes.is_empty() { &[b""] } else { &[] };
    for prefix in options.prefixes.iter().chain(everything) {
        if tracking.prefixes.insert(Box::from(*prefix)) {
            engine.track_prefix(&tracking.tracker, prefix);
        }
    }
    session.tracking = Some(tracking);
    invalidation::show(session);
    Ok(())
}

/// `CLIENT CACHING YES | NO`
pub(crate) fn caching(session: &mut Session, args: &[&[u8]]) -> Result<(), CommandError> {
    let Some(tracking) = &mut session.tracking else {
        return Err(CommandError::text(
            "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled",
        ));
    };
    let word = args.get(2).copied().unwrap_or_default();
    if parse::is(word, "YES") {
        if tracking.mode != Mode::OptIn {
            return Err(CommandError::text(
                "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.",
            ));
        }
    } else if parse::is(word, "NO") {
        if tracking.mode != Mode::OptOut {
            return Err(CommandError::text(
                "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.",
            ));
        }
    } else {
        return Err(CommandError::Syntax);
    }
    tracking.is_exception = true;
    session.outbox.reply.ok();
    Ok(())
}

/// `CLIENT GETREDIR`
pub(crate) fn get_redirect(session: &mut Session) -> Result<(), CommandError> {
    let redirect = redirect_shown(session);
    session.outbox.reply.integer(redirect);
    Ok(())
}

/// Returns -1 without tracking, 0 without a redirection.
fn redirect_shown(session: &Session) -> i64 {
    session.tracking.as_ref().map_or(-1, |tracking| tracking.redirect.map_or(0, |id| id as i64))
}

/// `CLIENT TRACKINGINFO`
pub(crate) fn tracking_info(session: &mut Session) -> Result<(), CommandError> {
    let redirect = redirect_shown(session);
    let tracking = session.tracking.as_deref();
    let has = |is: fn(&Tracking) -> bool| tracking.is_some_and(is);
    let words: Vec<&str> = [
        ("off", tracking.is_none()),
        ("on", tracking.is_some()),
        ("bcast", has(|tracking| tracking.mode == Mode::Broadcast)),
        ("optin", has(|tracking| tracking.mode == Mode::OptIn)),
        ("caching-yes", has(|tracking| tracking.mode == Mode::OptIn && tracking.is_exception)),
        ("optout", has(|tracking| tracking.mode == Mode::OptOut)),
        ("caching-no", has(|tracking| tracking.mode == Mode::OptOut && tracking.is_exception)),
        ("noloop", has(|tracking| tracking.is_without_loop)),
        ("broken_redirect", has(|tracking| tracking.is_broken)),
    ]
    .into_iter()
    .filter_map(|(word, is)| is.then_some(word))
    .collect();
    let reply = &mut session.outbox.reply;
    reply.map(3);
    reply.bulk(b"flags");
    reply.set(words.len());
    words.iter().for_each(|word| reply.bulk(word.as_bytes()));
    reply.bulk(b"redirect");
    reply.integer(redirect);
    reply.bulk(b"prefixes");
    reply.array(tracking.map_or(0, |tracking| tracking.prefixes.len()));
    tracking.iter().flat_map(|tracking| &tracking.prefixes).for_each(|prefix| reply.bulk(prefix));
    Ok(())
}
