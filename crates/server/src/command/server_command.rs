//! Commands about the server: `TIME`, `SHUTDOWN`, `SAVE`, `ROLE`, `DEBUG`, `HELP`.

use crate::command::rows::command_table;
use crate::command::{cluster_command, sentinel_command};
use crate::config::DebugAccess;
use crate::context::Context;
use crate::session::Session;
use crate::version::{REDIS_VERSION, TIDEMARK_VERSION};
use crate::wait;
use tidemark_engine::command::parse;
use tidemark_engine::{CommandError, KeyDescription};

/// `TIME`
pub(crate) fn time(session: &mut Session, cx: &Context<'_>) -> Result<(), CommandError> {
    session.outbox.reply.array(2);
    session.outbox.reply.bulk_integer((cx.now_us / 1_000_000) as i64);
    session.outbox.reply.bulk_integer((cx.now_us % 1_000_000) as i64);
    Ok(())
}

/// `ROLE`
pub(crate) fn role(session: &mut Session, cx: &Context<'_>) -> Result<(), CommandError> {
    let log = cx.shared.engine.log();
    let told = if cx.waits_for_commit() { log.committed() } else { log.appended() };
    let is_sentinel = sentinel_command::is_asked_as_sentinel(&session.client.local_address, cx);
    let reply = &mut session.outbox.reply;
    if is_sentinel {
        reply.array(2);
        reply.bulk(b"sentinel");
        reply.array(1);
        reply.bulk(cx.config.cluster_name.as_bytes());
    } else if let Some(leader) = cluster_command::followed(cx) {
        reply.array(5);
        reply.bulk(b"slave");
        reply.bulk(leader.host.as_bytes());
        reply.integer(leader.port.into());
        reply.bulk(if leader.is_up { b"connected" } else { b"connect" });
        reply.integer(told.0 as i64);
    } else {
        reply.array(3);
        reply.bulk(b"master");
        reply.integer(told.0 as i64);
        reply.array(0);
    }
    Ok(())
}

/// `SHUTDOWN [NOSAVE | SAVE] [NOW] [FORCE] [ABORT]`: closes the connection without a reply once the
/// stop has begun. The process ends when the log is complete.
pub(crate) fn shutdown(session: &mut Session, args: &[&[u8]], cx: &Context<'_>) -> Result<(), CommandError> {
    let options = args.get(1..).unwrap_or_default();
    let known = |option: &[u8]| ["NOSAVE", "SAVE", "NOW", "FORCE"].iter().any(|word| parse::is(option, word));
    match options {
        [option] if parse::is(option, "ABORT") => {
            return Err(CommandError::text("ERR No shutdown in progress."));
        }
        options if options.iter().all(|option| known(option)) => {}
        _ => return Err(CommandError::Syntax),
    }
    session.closing = true;
    if options.iter().any(|option| parse::is(option, "SAVE")) {
        cx.shared.snapshots.want_last();
    }
    cx.shared.stop_gracefully();
    Ok(())
}

/// `LOLWUT`
pub(crate) fn lolwut(session: &mut Session) -> Result<(), CommandError> {
    const WAVES: &str = "\
        ~     ~~        ~    ~~~      ~\n\
      ~~ ~~ ~~  ~~   ~~  ~ ~~   ~~  ~~ ~~\n\
    ~~~   ~      ~~~~     ~       ~~     ~~~\n";
    session.outbox.reply.verbatim(&format!(
        "{WAVES}\nTidemark ver. {TIDEMARK_VERSION}, for clients of Redis ver. {REDIS_VERSION}\n"
    ));
    Ok(())
}

/// `HELP` of a command with subcommands.
pub(crate) fn help(session: &mut Session, args: &[&[u8]]) -> Result<(), CommandError> {
    let row = args.first().and_then(|name| command_table().find(name)).ok_or(CommandError::Syntax)?;
    let name = row.name.to_ascii_uppercase();
    let mut lines = vec![format!("{name} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:")];
    for sub in row.subcommands {
        lines.push(format!("{} {}", sub.name.to_ascii_uppercase(), sub.syntax).trim_end().to_owned());
        lines.push(format!("    {}", sub.summary));
    }
    session.outbox.reply.array(lines.len());
    lines.iter().for_each(|line| session.outbox.reply.simple(line));
    Ok(())
}

/// `DEBUG SLEEP seconds`
pub(crate) fn debug_sleep(
    session: &mut Session,
    args: &[&[u8]],
    cx: &Context<'_>,
) -> Result<(), CommandError> {
    check_debug(session, cx)?;
    wait::sleep(session, args)
}

/// `DEBUG SET-ACTIVE-EXPIRE 0 | 1`
pub(crate) fn debug_set_active_expire(
    session: &mut Session,
    args: &[&[u8]],
    cx: &Context<'_>,
) -> Result<(), CommandError> {
    check_debug(session, cx)?;
    let on = parse::integer(args.get(2).copied().unwrap_or_default())? != 0;
    cx.shared.engine.set_active_expiry(on);
    session.outbox.reply.ok();
    Ok(())
}

/// `DEBUG ERROR text`
pub(crate) fn debug_error(
    session: &mut Session,
    args: &[&[u8]],
    cx: &Context<'_>,
) -> Result<(), CommandError> {
    check_debug(session, cx)?;
    let text = args.get(2).copied().unwrap_or_default();
    Err(CommandError::Text(String::from_utf8_lossy(text).into_owned().into()))
}

/// `DEBUG OBJECT key`, with Redis's fields; the length is that of the snapshot encoding.
pub(crate) fn debug_object(
    session: &mut Session,
    args: &[&[u8]],
    cx: &Context<'_>,
) -> Result<(), CommandError> {
    check_debug(session, cx)?;
    let key = args.get(2).copied().unwrap_or_default();
    let described = cx.shared.engine.describe_key(session.db, key, cx.now_us);
    let KeyDescription { address, encoding, snapshot_bytes, used_s } =
        described.ok_or(CommandError::NoSuchKey)?;
    let idle_s = (cx.now_us / 1_000_000).saturating_sub(u64::from(used_s));
    // Redis keeps 24 bits of the clock.
    let lru = used_s & 0x00ff_ffff;
    session.outbox.reply.simple(&format!(
        "Value at:{address:#x} refcount:1 encoding:{encoding} serializedlength:{snapshot_bytes} lru:{lru} \
         lru_seconds_idle:{idle_s}"
    ));
    Ok(())
}

/// `DEBUG JMAP`
pub(crate) fn debug_nothing(session: &mut Session, cx: &Context<'_>) -> Result<(), CommandError> {
    check_debug(session, cx)?;
    session.outbox.reply.ok();
    Ok(())
}

/// Refuses `DEBUG` unless the configuration allows it for this client.
pub(crate) fn check_debug(session: &Session, cx: &Context<'_>) -> Result<(), CommandError> {
    let allowed = match cx.config.enable_debug_command {
        DebugAccess::Yes => true,
        DebugAccess::Local => session.client.is_local,
        DebugAccess::No => false,
    };
    if allowed {
        return Ok(());
    }
    Err(CommandError::text(
        "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can run it from a \
         local connection, otherwise you need to set this option in the configuration file, and then restart the \
         server.",
    ))
}

/// `DEBUG DIGEST`
pub(crate) fn debug_digest(session: &mut Session, cx: &Context<'_>) -> Result<(), CommandError> {
    check_debug(session, cx)?;
    let digest = cx.shared.engine.try_digest()?;
    session.outbox.reply.simple(&format!("{digest:040x}"));
    Ok(())
}

const SAVE_IN_PROGRESS: CommandError = CommandError::text("ERR Background save already in progress");

/// `SAVE`: the client waits until the snapshot is complete; other clients are not blocked.
pub(crate) fn save(session: &mut Session, cx: &Context<'_>) -> Result<(), CommandError> {
    if !cx.shared.snapshots.request(Some((session.client.worker, session.connection_id()))) {
        return Err(SAVE_IN_PROGRESS);
    }
    wait::for_snapshot(session);
    Ok(())
}

/// `BGSAVE [SCHEDULE]` and `BGREWRITEAOF`: both take a snapshot, after which older log can be
/// deleted.
pub(crate) fn background_save(
    session: &mut Session,
    args: &[&[u8]],
    cx: &Context<'_>,
) -> Result<(), CommandError> {
    let is_rewrite = args.first().is_some_and(|name| parse::is(name, "BGREWRITEAOF"));
    match args {
        [_] => {}
        [_, option] if parse::is(option, "SCHEDULE") && !is_rewrite => {}
        _ => return Err(CommandError::Syntax),
    }
    if !cx.shared.snapshots.request(None) {
        return Err(SAVE_IN_PROGRESS);
    }
    session.outbox.reply.simple(if is_rewrite {
        "Background append only file rewriting started"
    } else {
        "Background saving started"
    });
    Ok(())
}

/// `LASTSAVE`
pub(crate) fn last_save(session: &mut Session, cx: &Context<'_>) -> Result<(), CommandError> {
    session.outbox.reply.integer(cx.shared.snapshots.last_success() as i64);
    Ok(())
}
