//! Flags and environment variables, derived from the table of settings.

use super::Config;
use super::file::{self, FileError};
use super::setting::{SETTINGS, Setting, find, variable};
use super::short_help::default_of;
use super::suggestion::nearest;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use std::collections::BTreeMap;
use std::path::PathBuf;

const CONFIG_FLAG: &str = "config";
const PRINT_CONFIG_FLAG: &str = "print-config";
const HELP_FLAG: &str = "help";
const SHORT_HELP_FLAG: &str = "short-help";
const POSITIONAL_FILE: &str = "FILE";

/// Error that prevents a configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file is invalid.
    #[error(transparent)]
    File(#[from] FileError),
    /// The value of a flag or variable is invalid.
    #[error("the value '{value}' of {origin} {reason}")]
    Value {
        /// The given value, without secrets.
        value: String,
        /// The flag or variable.
        origin: String,
        /// What is wrong with the value.
        reason: String,
    },
    /// A setting is given under two names by the same means.
    #[error("{first} and {second} are names of the same setting: give one of them")]
    Twice {
        /// The first flag or variable.
        first: String,
        /// The second one.
        second: String,
    },
    /// A configuration file is given as for Redis.
    #[error(
        "'{0}' was given as a configuration file in the manner of Redis. Tidemark reads TOML: use `--config FILE`; \
         `tidemark serve --print-config` prints a complete file to start from"
    )]
    PositionalFile(String),
}

/// Parsed command line of `tidemark serve`.
#[derive(Debug, Clone, Default)]
pub struct ServeArgs {
    /// The configuration file.
    pub config: Option<PathBuf>,
    /// Print the effective configuration instead of serving.
    pub print_config: bool,
    /// Print [`short_help`](super::short_help) instead of serving.
    pub short_help: bool,
    positional: Option<String>,
    /// Settings from flags and variables: source, name or alias, and value.
    values: Vec<(ValueSource, &'static str, String)>,
}

impl ServeArgs {
    /// Returns the flags that hold a secret, which every user of the machine can see.
    pub(crate) fn exposed_secrets(&self) -> Vec<&'static str> {
        let given = self.values.iter().filter(|(source, ..)| *source == ValueSource::CommandLine);
        given
            .filter(|(_, name, value)| find(name).is_some_and(|setting| setting.holds_secret(value)))
            .map(|(_, name, _)| *name)
            .collect()
    }

    /// Returns the configuration from defaults, file, variables and flags.
    pub fn configuration(&self) -> Result<Config, ConfigError> {
        if let Some(file) = &self.positional {
            return Err(ConfigError::PositionalFile(file.clone()));
        }
        let mut config = Config::default();
        if let Some(path) = &self.config {
            file::load(path, &mut config)?;
            config.config_file = Some(std::path::absolute(path).unwrap_or_else(|_| path.clone()));
        }
        for source in [ValueSource::EnvVariable, ValueSource::CommandLine] {
            let given: Vec<(&'static str, &str)> = self
                .values
                .iter()
                .filter(|(from, _, _)| *from == source)
                .map(|(_, name, value)| (*name, value.as_str()))
                .collect();
            apply(&mut config, source, &given)?;
        }
        Ok(config)
    }
}

/// Applies the names and values of one source, of which no two may set the same thing.
fn apply(
    config: &mut Config,
    source: ValueSource,
    given: &[(&'static str, &str)],
) -> Result<(), ConfigError> {
    let mut met: BTreeMap<&'static str, &'static str> = BTreeMap::new();
    for (name, value) in given {
        let Some(setting) = find(name) else { continue };
        if let Some(first) = met.insert(setting.subject(), name) {
            return Err(ConfigError::Twice { first: origin(source, first), second: origin(source, name) });
        }
        setting.set(config, value).map_err(|reason| ConfigError::Value {
            value: setting.without_secrets(value),
            origin: origin(source, name),
            reason,
        })?;
    }
    Ok(())
}

/// Returns a setting's name in the spelling of its source.
fn origin(source: ValueSource, name: &str) -> String {
    if source == ValueSource::EnvVariable { variable(name) } else { format!("--{name}") }
}

/// Returns unknown variables with our prefix, with suggestions. They are not errors, because other
/// programs may use the prefix; but a misspelt one leaves a default in effect.
pub(crate) fn unknown_variables(variables: impl Iterator<Item = String>) -> Vec<String> {
    // Variables of other subcommands.
    const OTHERS: [&str; 2] = ["HISTORY", "CONFIG"];
    variables
        .filter_map(|given| {
            let rest = given.strip_prefix("TIDEMARK_")?;
            let name = rest.to_ascii_lowercase().replace('_', "-");
            if find(&name).is_some() || OTHERS.contains(&rest) {
                return None;
            }
            let meant = nearest(&name).map(|name| format!("; did you mean {}?", variable(name)));
            Some(format!("the environment variable {given} names no setting{}", meant.unwrap_or_default()))
        })
        .collect()
}

impl clap::Args for ServeArgs {
    fn augment_args(command: Command) -> Command {
        let command = command
            .arg(
                Arg::new(CONFIG_FLAG)
                    .long(CONFIG_FLAG)
                    .short('c')
                    .value_name("FILE")
                    .env("TIDEMARK_CONFIG")
                    .value_parser(clap::value_parser!(PathBuf))
                    .help("Configuration file, in TOML"),
            )
            .arg(
                Arg::new(PRINT_CONFIG_FLAG)
                    .long(PRINT_CONFIG_FLAG)
                    .action(ArgAction::SetTrue)
                    .help("Print the effective configuration, commented, and exit"),
            )
            .arg(
                Arg::new(SHORT_HELP_FLAG)
                    .short('h')
                    .action(ArgAction::SetTrue)
                    .help("Print each setting with its default, one a line, and exit"),
            )
            .arg(
                Arg::new(HELP_FLAG)
                    .long(HELP_FLAG)
                    .action(ArgAction::HelpLong)
                    .help("Print what each setting means, and exit"),
            )
            // Redis takes its configuration file like this; it is accepted for a helpful error.
            .arg(Arg::new(POSITIONAL_FILE).hide(true))
            .args_override_self(true)
            .disable_help_flag(true);
        SETTINGS.iter().fold(command, |command, setting| {
            let alias = setting.alias.map(|alias| format!(" Another name: --{alias}.")).unwrap_or_default();
            let help = format!(
                "{}{alias} [default: {}] [env: {}]",
                setting.help,
                default_of(setting),
                variable(setting.name)
            );
            let command = command.arg(argument(setting, setting.name).help(help));
            // A separate argument, so that it has its variable and a contradiction is detected.
            setting
                .alias
                .into_iter()
                .fold(command, |command, alias| command.arg(argument(setting, alias).hide(true)))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl clap::FromArgMatches for ServeArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<ServeArgs, clap::Error> {
        let mut args = ServeArgs::default();
        args.update_from_arg_matches(matches)?;
        Ok(args)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.config = matches.get_one::<PathBuf>(CONFIG_FLAG).cloned();
        self.print_config = matches.get_flag(PRINT_CONFIG_FLAG);
        self.short_help = matches.get_flag(SHORT_HELP_FLAG);
        self.positional = matches.get_one::<String>(POSITIONAL_FILE).cloned();
        self.values.clear();
        for name in SETTINGS.iter().flat_map(Setting::names) {
            let value = matches.get_one::<String>(name);
            if let (Some(source), Some(value)) = (matches.value_source(name), value) {
                self.values.push((source, name, value.clone()));
            }
        }
        Ok(())
    }
}

/// Returns the flag and the variable for one name of a setting.
fn argument(setting: &Setting, name: &'static str) -> Arg {
    Arg::new(name)
        .long(name)
        .value_name(setting.placeholder)
        .env(variable(name))
        // The help text contains it after the default.
        .hide_env(true)
        .allow_hyphen_values(true)
        .help_heading(setting.group)
}
