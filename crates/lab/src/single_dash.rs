//! The single-dash spelling of long flags: `-duration 30s` means `--duration 30s`.

use std::ffi::OsString;

/// Doubles the dash of every argument that is a single dash and the name of one of `long_flags`, with or without
/// `=value`. Everything else stays: `-h`, values, and what follows `--`.
pub fn normalise(
    arguments: impl IntoIterator<Item = OsString>,
    long_flags: &[String],
) -> impl Iterator<Item = OsString> {
    let mut literal = false;
    arguments.into_iter().map(move |argument| {
        literal |= argument == "--";
        let Some(text) = argument.to_str().filter(|_| !literal) else { return argument };
        let Some(name) = text.strip_prefix('-').filter(|rest| !rest.starts_with('-')) else {
            return argument;
        };
        let name = name.split_once('=').map_or(name, |(name, _)| name);
        if name.len() > 1 && long_flags.iter().any(|flag| flag == name) {
            return OsString::from(format!("-{text}"));
        }
        argument
    })
}

/// The long flags of a command with their other names.
#[must_use]
pub fn long_flags(command: &clap::Command) -> Vec<String> {
    let names = command.get_arguments().filter_map(clap::Arg::get_long_and_visible_aliases);
    names.flatten().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::normalise;
    use std::ffi::OsString;

    #[test]
    fn only_known_names_get_a_second_dash() {
        let flags = ["duration".to_owned(), "json".to_owned(), "p".to_owned()];
        let given = ["-duration", "30s", "-json=true", "--json", "-h", "-p", "-unknown", "-", "--", "-json"];
        let normalised: Vec<OsString> = normalise(given.map(OsString::from), &flags).collect();
        let expected =
            ["--duration", "30s", "--json=true", "--json", "-h", "-p", "-unknown", "-", "--", "-json"];
        assert_eq!(normalised, expected);
    }
}
