//! Suggestions for misspelt settings.

use super::setting::{SETTINGS, Setting};

/// Least similarity of two names for a suggestion; 1 is equal.
const SIMILAR: f64 = 0.75;

/// Most bytes of a name that is compared: names of `CONFIG SET` come from clients.
const NAME_BYTES_MAX: usize = 64;

/// Returns the setting with the most similar name, if any is similar enough.
pub(crate) fn nearest(name: &str) -> Option<&'static str> {
    if name.len() > NAME_BYTES_MAX {
        return None;
    }
    let name = name.to_ascii_lowercase();
    SETTINGS
        .iter()
        .flat_map(Setting::names)
        .map(|candidate| (strsim::jaro_winkler(&name, candidate), candidate))
        .filter(|(similarity, _)| *similarity >= SIMILAR)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// Returns the end of a message about an unknown name.
pub(crate) fn did_you_mean(suggestion: Option<&'static str>) -> String {
    match suggestion {
        Some(name) => format!("; did you mean '{name}'?"),
        None => "; `tidemark serve --help` lists all settings".to_owned(),
    }
}
