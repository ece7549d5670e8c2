//! `CONFIG` and its subcommands.

use crate::config::{Config, SETTINGS, Setting, find};
use crate::context::Context;
use crate::net::file_descriptors;
use crate::session::Session;
use tidemark_engine::CommandError;
use tidemark_engine::command::parse;

/// `CONFIG GET parameter [parameter ...]`: parameters may be glob patterns.
pub(crate) fn get(session: &mut Session, args: &[&[u8]], cx: &Context<'_>) -> Result<(), CommandError> {
    let patterns: Vec<Vec<u8>> = args.iter().skip(2).map(|arg| arg.to_ascii_lowercase()).collect();
    let asked = |name: &str| patterns.iter().any(|pattern| parse::glob(pattern, name.as_bytes()));
    let names = SETTINGS.iter().flat_map(|setting| setting.names().map(move |name| (name, setting)));
    let chosen: Vec<(&str, &Setting)> = names.filter(|(name, _)| asked(name)).collect();
    let config = cx.shared.settings.current();
    session.outbox.reply.map(chosen.len());
    for (name, setting) in chosen {
        session.outbox.reply.bulk(name.as_bytes());
        session.outbox.reply.bulk(setting.shown_to_clients(&config).as_bytes());
    }
    Ok(())
}

/// `CONFIG SET parameter value [parameter value ...]`: sets all of them or none.
pub(crate) fn set(session: &mut Session, args: &[&[u8]], cx: &Context<'_>) -> Result<(), CommandError> {
    let pairs = args.get(2..).unwrap_or_default();
    if !pairs.len().is_multiple_of(2) {
        return Err(CommandError::Syntax);
    }
    let changes = read_changes(pairs)?;
    let shared = cx.shared;
    shared.settings.change(
        |config| {
            apply(config, &changes)?;
            let renewed = changes.iter().find(|(setting, _)| setting.name.starts_with("cluster-tls-"));
            if let (Some((setting, _)), Some(group)) = (renewed, &shared.group) {
                let renewed = group.consensus().renew_tls(&config.cluster_tls);
                renewed.map_err(|reason| failed(setting.name, &reason))?;
            }
            Ok(())
        },
        |config| {
            shared.client_memory.budget.set_limit(config.maxmemory_clients.bytes());
            shared.configure(&shared.engine, config, cx.now_us);
        },
    )?;
    shared.engine.forget_tracked();
    session.settings_changed = true;
    if let Some(group) = &shared.group {
        // Outside the lock of the settings, which others read while the disk is waited for.
        group.follow_mode(&shared.settings).map_err(|reason| failed("durability", &reason))?;
    }
    // Idle workers must set new deadlines too.
    cx.shared.inboxes.iter().for_each(|inbox| inbox.wake());
    session.outbox.reply.ok();
    Ok(())
}

fn read_changes(pairs: &[&[u8]]) -> Result<Vec<(&'static Setting, String)>, CommandError> {
    let mut changes: Vec<(&'static Setting, String)> = Vec::new();
    for pair in pairs.chunks_exact(2) {
        let [name, value] = *pair else { return Err(CommandError::Syntax) };
        let name = String::from_utf8_lossy(name.get(..128).unwrap_or(name)).into_owned();
        let setting = find(&name).ok_or_else(|| unknown(&name))?;
        if changes.iter().any(|(other, _)| other.subject() == setting.subject()) {
            return Err(failed(&name, "duplicate parameter"));
        }
        let value = String::from_utf8(value.to_vec()).map_err(|_| failed(&name, "must be valid UTF-8"))?;
        changes.push((setting, value));
    }
    Ok(changes)
}

fn apply(config: &mut Config, changes: &[(&'static Setting, String)]) -> Result<(), CommandError> {
    let places = |config: &Config| config.maxclients + config.reserved_clients;
    let (clients_before, places_before) = (config.maxclients, places(config));
    for (setting, value) in changes {
        let unchanged = setting.get(config) == *value;
        if !setting.changeable && !unchanged {
            return Err(failed(setting.name, "can't set immutable config"));
        }
        // Redis's `everysec` stands for any interval: setting it again keeps the configured one.
        if setting.name == "appendfsync" && setting.get(config).eq_ignore_ascii_case(value) {
            continue;
        }
        setting.set_running(config, value).map_err(|reason| failed(setting.name, &reason))?;
    }
    if places(config) > places_before {
        file_descriptors::provide_for(&config.connections()).map_err(|too_few| {
            let (files, clients) = (too_few.files, too_few.clients.max(clients_before));
            failed(
                "maxclients",
                &format!("the system allows {files} open files, enough for {clients} clients"),
            )
        })?;
    }
    Ok(())
}

fn unknown(name: &str) -> CommandError {
    let suggestion =
        crate::config::nearest(name).map(|name| format!(" (did you mean '{name}'?)")).unwrap_or_default();
    CommandError::Text(
        format!("ERR Unknown option or number of arguments for CONFIG SET - '{name}'{suggestion}").into(),
    )
}

fn failed(name: &str, reason: &str) -> CommandError {
    CommandError::Text(
        format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {reason}").into(),
    )
}

/// `CONFIG RESETSTAT`
pub(crate) fn reset_stat(session: &mut Session, cx: &Context<'_>) -> Result<(), CommandError> {
    cx.shared.reset_totals();
    session.outbox.reply.ok();
    Ok(())
}
