//! The interactive prompt: line editing with history, completion and hints.

use super::catalogue::Catalogue;
use super::exit_code::EXIT_NO_SERVER;
use super::screen::{self, Screen};
use super::session::Session;
use super::tokens;
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{Config, Context, Editor, Helper};
use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;
use tidemark_lab::client::ClientError;

const HISTORY_LINES_MAX: usize = 10_000;

/// Reads and executes lines until `quit` or the end of the input.
pub(super) fn run(session: &mut Session) -> anyhow::Result<u8> {
    if let Err(error) = session.connect() {
        eprintln!("tidemark cli: {:#}", anyhow::Error::new(error));
    }
    let config = Config::builder().max_history_size(HISTORY_LINES_MAX)?.history_ignore_space(true).build();
    let mut editor: Editor<Assistant, FileHistory> = Editor::with_config(config)?;
    let history = history_file();
    if let Some(file) = &history {
        // No history exists before the first session.
        let _ = editor.load_history(file);
    }
    // No printer exists where the editor draws nothing.
    let screen = editor.create_external_printer().ok().map(Screen::start).transpose()?;
    let mut code = 0;
    loop {
        editor.set_helper(Some(Assistant { catalogue: session.shared_catalogue() }));
        let prompt = session.prompt();
        let line = match screen::listen_while(session, screen.as_ref(), || editor.readline(&prompt))? {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => return Ok(code),
            Err(error) => return Err(error.into()),
        };
        if line.trim().is_empty() {
            continue;
        }
        if !is_secret(&line) {
            editor.add_history_entry(&line)?;
            if let Some(file) = &history {
                // A home directory without write access must not end the session.
                let _ = editor.append_history(file);
            }
        }
        match obey(session, &line)? {
            Next::Continue => {}
            Next::Clear => editor.clear_screen()?,
            Next::Leave => return Ok(code),
            Next::Reconnect => code = EXIT_NO_SERVER,
        }
    }
}

/// What the prompt does after a line.
enum Next {
    Continue,
    Clear,
    Leave,
    Reconnect,
}

fn obey(session: &mut Session, line: &str) -> anyhow::Result<Next> {
    let command = match tokens::split(line.as_bytes()) {
        Ok(command) => command,
        Err(error) => {
            eprintln!("{error}");
            return Ok(Next::Continue);
        }
    };
    let words: Vec<String> = command.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    match words.first().map(|word| word.to_lowercase()).as_deref() {
        Some("quit" | "exit") => return Ok(Next::Leave),
        Some("clear") => return Ok(Next::Clear),
        Some("help" | "?") => {
            print!("{}", session.shared_catalogue().help(words.get(1..).unwrap_or_default()));
            return Ok(Next::Continue);
        }
        _ => {}
    }
    match session.execute(&command) {
        Ok(_) => Ok(Next::Continue),
        Err(error) if error.is::<ClientError>() => {
            eprintln!("{error:#}");
            Ok(Next::Reconnect)
        }
        Err(error) => Err(error),
    }
}

/// Completes names and shows the missing arguments.
struct Assistant {
    catalogue: Arc<Catalogue>,
}

impl Completer for Assistant {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let typed = line.get(..position).unwrap_or_default();
        let indent = typed.len() - typed.trim_start().len();
        let names = self.catalogue.completions(typed.trim_start());
        Ok((indent, names.into_iter().map(str::to_owned).collect()))
    }
}

impl Hinter for Assistant {
    type Hint = String;

    fn hint(&self, line: &str, position: usize, _: &Context<'_>) -> Option<String> {
        if position < line.len() || line.trim().is_empty() {
            return None;
        }
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let hint = self.catalogue.hint(&words)?;
        Some(if line.ends_with(' ') { hint } else { format!(" {hint}") })
    }
}

impl Highlighter for Assistant {
    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        Cow::Owned(format!("\x1b[90m{hint}\x1b[0m"))
    }
}

impl Validator for Assistant {}
impl Helper for Assistant {}

/// Returns `TIDEMARK_HISTORY`, or a file in the home directory; `None` if the variable is empty or
/// there is no home.
fn history_file() -> Option<PathBuf> {
    match std::env::var_os("TIDEMARK_HISTORY") {
        Some(file) if file.is_empty() => None,
        Some(file) => Some(PathBuf::from(file)),
        None => Some(PathBuf::from(std::env::var_os("HOME")?).join(".tidemark_history")),
    }
}

/// Returns whether a line may contain a password: such lines are not written to the disk. Errs on
/// the side of too many.
fn is_secret(line: &str) -> bool {
    let words: Vec<String> = match tokens::split(line.as_bytes()) {
        Ok(words) => words.iter().map(|word| String::from_utf8_lossy(word).to_uppercase()).collect(),
        // A mistyped command still shows its password.
        Err(_) => line.split_whitespace().map(|word| word.trim_matches(['"', '\'']).to_uppercase()).collect(),
    };
    let has = |names: &[&str]| words.iter().any(|word| names.contains(&word.as_str()));
    let (first, second) = (words.first().map(String::as_str), words.get(1).map(String::as_str));
    match (first, second) {
        (Some("AUTH" | "MIGRATE"), _) | (Some("ACL"), Some("SETUSER")) => true,
        (Some("HELLO"), _) => has(&["AUTH"]),
        (Some("CONFIG"), _) if has(&["PASSWORD", "MASTERAUTH"]) => true,
        _ => has(&["REQUIREPASS"]),
    }
}

#[cfg(test)]
mod tests {
    use super::is_secret;

    #[test]
    fn passwords_stay_out_of_the_history() {
        for line in [
            "auth secret",
            "AUTH\tsecret",
            "\"AUTH\" secret",
            "auth \"secret",
            "AUTH user secret",
            "  CONFIG SET requirepass x",
            "CONFIG  SET requirepass x",
            "CONFIG SET timeout 1 RequirePass x",
            "config set password x",
            "config set \"requirepass x",
            "HELLO 3 AUTH user secret",
            "hello  3  setname a auth user secret",
            "ACL  SETUSER user >secret",
            "MIGRATE host 1 key 0 1 AUTH secret",
        ] {
            assert!(is_secret(line), "{line}");
        }
        for line in ["GET auth", "HELLO 3", "CONFIG GET timeout", "SET password", "", "\""] {
            assert!(!is_secret(line), "{line}");
        }
    }
}
