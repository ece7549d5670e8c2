//! Errors of the command line, with what would be right.

use clap::Error;
use clap::error::{ContextKind, ErrorKind};
use std::error::Error as _;
use std::num::{IntErrorKind, ParseFloatError, ParseIntError};

/// Replaces the parser's own words for a wrong number: "invalid digit found in string" does not say
/// what to do.
pub(crate) fn in_plain_words(error: Error) -> Error {
    let reason = error.source().and_then(|source| {
        let is_float = source.is::<ParseFloatError>().then_some("it must be a number");
        source.downcast_ref::<ParseIntError>().map(of_whole_number).or(is_float)
    });
    let (Some(reason), Some(value), Some(argument)) =
        (reason, error.get(ContextKind::InvalidValue), error.get(ContextKind::InvalidArg))
    else {
        return error;
    };
    let help = "For more information, try '--help'.";
    let text = format!("invalid value '{value}' for '{argument}': {reason}\n\n{help}\n");
    Error::raw(ErrorKind::ValueValidation, text)
}

fn of_whole_number(error: &ParseIntError) -> &'static str {
    match error.kind() {
        IntErrorKind::PosOverflow => "it is too large",
        IntErrorKind::NegOverflow => "it is too small",
        _ => "it must be a whole number, without a sign or a unit",
    }
}

#[cfg(test)]
mod tests {
    use super::in_plain_words;
    use clap::{Arg, Command, value_parser};

    fn text(value: &str) -> String {
        let command = Command::new("serve")
            .arg(Arg::new("port").long("port").value_parser(value_parser!(u16)))
            .arg(Arg::new("share").long("share").value_parser(value_parser!(f64)))
            .arg(Arg::new("keys").long("keys").value_parser(value_parser!(usize)));
        in_plain_words(command.try_get_matches_from(["serve", value]).expect_err(value)).to_string()
    }

    #[test]
    fn a_number_that_is_none_is_refused_in_plain_words() {
        for (value, reason) in [
            ("--port=x", "error: invalid value 'x' for '--port <port>': it must be a whole number"),
            ("--port=", "error: invalid value '' for '--port <port>': it must be a whole number"),
            ("--port=70000", "error: invalid value '70000' for '--port <port>': 70000 is not in 0..=65535"),
            ("--keys=1k", "error: invalid value '1k' for '--keys <keys>': it must be a whole number"),
            (
                "--keys=99999999999999999999",
                "error: invalid value '99999999999999999999' for '--keys <keys>': it is too large",
            ),
            ("--share=half", "error: invalid value 'half' for '--share <share>': it must be a number"),
        ] {
            let text = text(value);
            assert!(text.starts_with(reason) && text.ends_with("try '--help'.\n"), "{value}: {text}");
        }
    }
}
