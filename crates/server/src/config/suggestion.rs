//! What somebody may have meant who named no setting.

use super::setting::{SETTINGS, Setting};

/// How alike two names must be for one to be proposed for the other; 1 is equal.
const SIMILAR: f64 = 0.75;

/// The setting whose name is most like `name`, if any is.
pub(crate) fn nearest(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    SETTINGS
        .iter()
        .flat_map(Setting::names)
        .map(|candidate| (strsim::jaro_winkler(&name, candidate), candidate))
        .filter(|(similarity, _)| *similarity >= SIMILAR)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// The end of a message about an unknown name.
pub(crate) fn did_you_mean(suggestion: Option<&'static str>) -> String {
    match suggestion {
        Some(name) => format!("; did you mean '{name}'?"),
        None => "; `tidemark serve --help` lists all settings".to_owned(),
    }
}
