//! `tidemark serve -h`: one line per setting, with its default.

use super::Config;
use super::setting::{SETTINGS, Setting};
use std::fmt::Write as _;

/// Columns of a flag, including the space after it.
const FLAG_COLUMNS: usize = 32;

/// Longest default that is shown; `--help` shows longer ones.
const DEFAULT_COLUMNS_MAX: usize = 24;

/// Least width of the lines, even on a narrow terminal.
const COLUMNS_MIN: usize = 72;

/// Lists the settings by group, in lines of at most `columns`.
pub fn short_help(columns: usize) -> String {
    let mut text = String::from(
        "Serve clients of the Redis protocol\n\nUsage: tidemark serve [OPTIONS]\n\nOptions, each with its default:\n",
    );
    let columns = columns.max(COLUMNS_MIN);
    for (flag, summary) in [
        ("-c, --config FILE", "Configuration file, in TOML"),
        ("--print-config", "Print the configuration in force as such a file, and exit"),
        ("-h", "Print this"),
        ("--help", "Print what each setting means"),
    ] {
        line(&mut text, flag, summary, "", columns);
    }
    let mut group = "";
    for setting in SETTINGS.iter().filter(|setting| !setting.is_compatibility()) {
        if setting.group != group {
            group = setting.group;
            let _ = write!(text, "\n{group}:\n");
        }
        let default = Some(default_of(setting)).filter(|default| default.len() <= DEFAULT_COLUMNS_MAX);
        let default = format!(" [{}]", default.as_deref().unwrap_or("see --help"));
        line(&mut text, &format!("--{}", setting.name), first_clause(setting.help), &default, columns);
    }
    let others = SETTINGS.iter().filter(|setting| setting.is_compatibility()).count();
    let _ = write!(
        text,
        "\n{others} settings of Redis are accepted and decide nothing: see --help.\n\
         TIDEMARK_PORT stands in for --port, and so on.\n"
    );
    text
}

/// Returns the default of a setting in readable form.
pub(super) fn default_of(setting: &Setting) -> String {
    let value = setting.get(&Config::default());
    if value.is_empty() {
        return "none".to_owned();
    }
    let bytes = value.parse::<u64>().ok().filter(|_| setting.placeholder.starts_with("BYTES"));
    let units = [(1 << 30, "gb"), (1 << 20, "mb"), (1 << 10, "kb")];
    let rounded = bytes.and_then(|bytes| {
        let (unit, name) = units.into_iter().find(|(unit, _)| bytes >= *unit && bytes % unit == 0)?;
        Some(format!("{}{name}", bytes / unit))
    });
    rounded.unwrap_or(value)
}

/// Returns the text before the first full stop, colon or semicolon.
fn first_clause(help: &str) -> &str {
    let end = ['.', ':', ';'].into_iter().filter_map(|mark| {
        help.match_indices(mark)
            .map(|(at, _)| at)
            .find(|at| help[at + 1..].chars().next().is_none_or(|next| next == ' '))
    });
    &help[..end.min().unwrap_or(help.len())]
}

/// Writes a line; cuts the summary at a word to fit.
fn line(text: &mut String, flag: &str, summary: &str, default: &str, columns: usize) {
    let room = columns.saturating_sub(FLAG_COLUMNS + 2 + default.chars().count());
    let shown = if summary.chars().count() <= room {
        summary.to_owned()
    } else {
        // One column for the ellipsis.
        let end = summary.char_indices().nth(room).map_or(summary.len(), |(end, _)| end);
        let words = summary[..end].rsplit_once(' ').map_or("", |(words, _)| words);
        format!("{words}…")
    };
    let _ = writeln!(text, "  {flag:<FLAG_COLUMNS$}{shown}{default}");
}
