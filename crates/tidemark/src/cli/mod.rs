//! `tidemark cli`: a client for any server that speaks the Redis protocol.
//!
//! ```text
//! arguments, lines of stdin, or the prompt ─► tokens ─► session ─► printer
//!                                           screen (above the line that is typed) ◄─┘
//!                               catalogue (COMMAND DOCS) ─► completion, hints, help, nearest names
//! ```

mod catalogue;
mod exit_code;
mod printer;
mod prompt;
mod screen;
mod session;
mod tokens;

use crate::server_args::ServerArgs;
use clap::{ArgAction, Args};
use exit_code::{EXIT_ERROR_REPLY, EXIT_NO_SERVER, EXIT_USAGE};
use printer::Format;
use session::Session;
use std::ffi::OsString;
use std::io::{BufRead, IsTerminal, Read};
use std::os::unix::ffi::OsStringExt;
use std::process::ExitCode;
use std::time::Duration;
use tidemark_lab::client::ClientError;
use tidemark_lab::duration;
use tidemark_lab::target::Target;

/// Arguments of `tidemark cli`.
#[derive(Args)]
#[command(disable_help_flag = true, after_help = AFTER_HELP)]
pub(crate) struct CliArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// Database
    #[arg(short = 'n', long)]
    database: Option<u32>,
    /// Speak RESP2
    #[arg(short = '2', conflicts_with = "resp3")]
    resp2: bool,
    /// Speak RESP3 (the default where the server can)
    #[arg(short = '3')]
    resp3: bool,
    /// Print replies as JSON; bytes that are no UTF-8 are replaced
    #[arg(long, conflicts_with_all = ["raw", "no_raw"])]
    json: bool,
    /// Print replies as they are, without quotes and types (the default when the output is no
    /// terminal)
    #[arg(long, conflicts_with = "no_raw")]
    raw: bool,
    /// Print replies for people even when the output is no terminal
    #[arg(long)]
    no_raw: bool,
    /// Read the last argument of the command from standard input
    #[arg(short = 'x')]
    last_from_stdin: bool,
    /// Longest wait for a connection
    #[arg(short, long, default_value = "5s", value_parser = duration::parse)]
    timeout: Duration,
    /// Print help
    #[arg(long, action = ArgAction::Help)]
    help: Option<bool>,
    /// Command with its arguments; without one, commands come from the prompt or, line by line,
    /// from standard input
    #[arg(trailing_var_arg = true)]
    command: Vec<OsString>,
}

const AFTER_HELP: &str = "\
A command that subscribes (GET.WATCH, CHANGES FROM, SUBSCRIBE, CLIENT TRACKING ON ...) prints what is pushed until Ctrl-C,
which is exit code 0. At the prompt pushes are printed as they come, above the line that is typed.
At the prompt: TAB completes, `help COMMAND` explains, `quit` leaves. Arguments are separated by spaces;
\"double quotes\" understand \\n \\r \\t \\b \\a \\\\ \\\" and \\xHH, 'single quotes' only \\'.
History: ~/.tidemark_history, or the file that TIDEMARK_HISTORY names; empty turns it off.
Exit codes: 0 done; 1 the server answered a command with an error; 2 the command line is wrong;
3 the server cannot be reached or the connection broke, also while it was listened to.";

/// Longest line, and longest argument, of standard input. Bytes.
const INPUT_BYTES_MAX: u64 = 512 << 20;

/// Runs one command, the commands of standard input, or the prompt.
pub(crate) fn run(args: CliArgs) -> anyhow::Result<ExitCode> {
    let mut session = Session::new(args.target(), args.resp2, args.timeout, args.format());
    let result = if !args.command.is_empty() {
        run_command(&mut session, &args)
    } else if std::io::stdin().is_terminal() {
        prompt::run(&mut session)
    } else {
        run_lines(&mut session, &mut std::io::stdin().lock(), INPUT_BYTES_MAX)
    };
    match result {
        Ok(code) => Ok(ExitCode::from(code)),
        Err(error) if error.is::<ClientError>() => {
            eprintln!("tidemark cli: {error:#}");
            Ok(ExitCode::from(EXIT_NO_SERVER))
        }
        Err(error) => Err(error),
    }
}

impl CliArgs {
    fn target(&self) -> Target {
        let mut target = self.server.target();
        target.database = self.database.unwrap_or(target.database);
        target
    }

    fn format(&self) -> Format {
        if self.json {
            Format::Json
        } else if self.raw || (!self.no_raw && !std::io::stdout().is_terminal()) {
            Format::Raw
        } else {
            Format::People
        }
    }
}

fn run_command(session: &mut Session, args: &CliArgs) -> anyhow::Result<u8> {
    let mut command: Vec<Vec<u8>> = args.command.iter().map(|argument| argument.clone().into_vec()).collect();
    if args.last_from_stdin {
        let mut last = Vec::new();
        std::io::stdin().lock().take(INPUT_BYTES_MAX + 1).read_to_end(&mut last)?;
        if last.len() as u64 > INPUT_BYTES_MAX {
            eprintln!("tidemark cli: the argument is longer than {INPUT_BYTES_MAX} bytes");
            return Ok(EXIT_USAGE);
        }
        command.push(last);
    }
    let succeeded = session.execute_and_listen(&command)?;
    Ok(if succeeded { 0 } else { EXIT_ERROR_REPLY })
}

/// Executes every line. An error reply does not stop the rest; a line that cannot be read does.
fn run_lines(session: &mut Session, input: &mut impl BufRead, bytes_max: u64) -> anyhow::Result<u8> {
    let mut code = 0;
    let mut line = Vec::new();
    for number in 1_u64.. {
        line.clear();
        if input.by_ref().take(bytes_max + 1).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        if line.len() as u64 > bytes_max {
            // The rest of the line would be taken for a command.
            eprintln!("tidemark cli: line {number} is longer than {bytes_max} bytes");
            return Ok(EXIT_USAGE);
        }
        let command = match tokens::split(&line) {
            Ok(command) => command,
            Err(error) => {
                eprintln!("tidemark cli: line {number}: {error}");
                return Ok(EXIT_USAGE);
            }
        };
        if !command.is_empty() && !session.execute(&command)? {
            code = EXIT_ERROR_REPLY;
        }
    }
    Ok(code)
}

#[cfg(test)]
mod tests {
    use super::{EXIT_USAGE, Format, Session, run_lines};
    use std::time::Duration;
    use tidemark_lab::null_server::{NullProtocol, NullServer};

    #[test]
    fn a_line_that_is_too_long_is_not_run_in_pieces() {
        let mut server = NullServer::bind(0, NullProtocol::Resp).unwrap();
        let target = server.address().unwrap().to_string().parse().unwrap();
        std::thread::spawn(move || server.run());
        let mut session = Session::new(target, false, Duration::from_secs(10), Format::Raw);
        let mut run = |input: &str| {
            let mut rest = input.as_bytes();
            (run_lines(&mut session, &mut rest, 16).unwrap(), rest.len())
        };
        assert_eq!(run("SET k 123456789\nPING\n"), (0, 0), "16 bytes with the line's end");
        let input = "PING\nSET k 12345678901234\nPING\n";
        let (code, rest) = run(input);
        assert_eq!(
            (code, rest),
            (EXIT_USAGE, input.len() - "PING\n".len() - 17),
            "nothing after the long line is run"
        );
    }
}
