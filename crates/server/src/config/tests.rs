//! Sources of values, and the errors for invalid ones.

use super::*;
use clap::{Args as _, FromArgMatches as _};
use std::path::Path;

fn from_flags(flags: &[&str]) -> Result<Config, String> {
    let command = ServeArgs::augment_args(clap::Command::new("serve"));
    let words = std::iter::once("serve").chain(flags.iter().copied());
    let matches = command.try_get_matches_from(words).map_err(|error| error.to_string())?;
    let args = ServeArgs::from_arg_matches(&matches).map_err(|error| error.to_string())?;
    args.configuration().map_err(|error| error.to_string())
}

fn from_file(text: &str) -> Result<Config, String> {
    let mut config = Config::default();
    file::apply(Path::new("tidemark.toml"), text, &mut config).map_err(|error| error.to_string())?;
    Ok(config)
}

#[test]
fn defaults_serve_this_machine_only() {
    let config = from_flags(&[]).expect("no flag is needed");
    assert_eq!(config, Config::default());
    assert!(config.bind.iter().all(BindAddress::is_loopback));
    assert_eq!((config.port, config.http), (7379, None));
}

#[test]
fn connections_over_http_share_the_places_that_there_are() {
    for (places, requests, registry) in [(2_000, 256, 1_000), (60, 62, 30), (1, 32, 1), (0, 32, 0)] {
        let mut config = Config::default();
        config.fit_http(places);
        assert_eq!(
            (config.http_connections, config.http_watch_connections),
            (requests, registry),
            "{places}"
        );
    }
}

#[test]
fn http_is_somewhere_or_off() {
    let http = |value: &str| from_flags(&["--http", value]).map(|config| config.http);
    let address = "127.0.0.1:7380".parse().expect("an address");
    assert_eq!(http("127.0.0.1:7380"), Ok(Some(address)));
    assert_eq!((http("off"), http("")), (Ok(None), Ok(None)));
    let error = http("7380").expect_err("it is no address");
    assert!(error.contains("must be an address and a port, such as 127.0.0.1:7380, or off"), "{error}");
}

#[test]
fn every_setting_has_a_name_of_its_own_and_takes_back_what_it_shows() {
    let mut names: Vec<&str> =
        SETTINGS.iter().flat_map(|setting| [Some(setting.name), setting.alias]).flatten().collect();
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "a name is declared twice");
    for setting in SETTINGS {
        let mut config = Config::default();
        let shown = setting.get(&config);
        if setting.name != "appendfsync" {
            assert_eq!(setting.set(&mut config, &shown), Ok(()), "{}", setting.name);
            assert_eq!(setting.get(&config), shown);
        }
    }
}

#[test]
fn the_printed_configuration_reads_back_as_the_same() {
    assert_eq!(from_file(&print(&Config::default())), Ok(Config::default()));
    let flags =
        ["--port", "0", "--bind", "0.0.0.0", "--password", "a \"b\" \\ 'c'", "--durability", "always"];
    let config = from_flags(&flags).expect("valid flags");
    assert_eq!(from_file(&print(&config)), Ok(config));
}

#[test]
fn flags_of_redis_are_understood() {
    let flags = [
        "--save",
        "",
        "--appendonly",
        "no",
        "--logfile",
        "/tmp/log",
        "--enable-debug-command",
        "yes",
        "--port",
        "0",
        "--bind",
        "127.0.0.1",
        "--unixsocket",
        "/tmp/s",
        "--unixsocketperm",
        "700",
        "--protected-mode",
        "no",
        "--appendfsync",
        "everysec",
        "--requirepass",
        "secret",
        "--databases",
        "16",
    ];
    let config = from_flags(&flags).expect("as Redis takes them");
    assert_eq!(config.enable_debug_command, DebugAccess::Yes);
    assert_eq!(config.unixsocketperm, 0o700);
    assert_eq!(config.durability, Durability::Interval(Duration::from_secs(1)));
    assert!(!config.protected_mode);
    assert_eq!(config.requirepass, "secret");
    // A value without effect is recorded for a warning, and the fixed value is shown.
    assert_eq!(config.without_effect, ["appendonly", "logfile"]);
    assert_eq!(find("appendonly").map(|setting| setting.get(&config)).as_deref(), Some("yes"));
}

#[test]
fn a_flag_that_cannot_be_honoured_is_refused() {
    let error = from_flags(&["--maxmemory", "1gb"]).expect_err("there is no limit on memory");
    assert!(error.contains("There is no limit on memory"), "{error}");
    assert!(from_flags(&["--tls-port", "6380"]).is_err());
    let error = from_flags(&["/etc/redis.conf"]).expect_err("a file is not positional");
    assert!(error.contains("--config FILE"), "{error}");
}

#[test]
fn a_misspelt_name_is_answered_with_the_right_one() {
    let error = from_flags(&["--durabilty", "always"]).expect_err("misspelt");
    assert!(error.contains("--durability"), "{error}");
    let error = from_file("port = 1\nmaxclient = 3\n").expect_err("misspelt");
    assert!(error.contains("tidemark.toml:2:") && error.contains("did you mean 'maxclients'"), "{error}");
}

#[test]
fn a_wrong_value_is_shown_with_its_line() {
    let error = from_file("\nport = 70000\n").expect_err("no such port");
    assert!(error.contains("tidemark.toml:2: the value of 'port' must be between 0 and 65535"), "{error}");
    assert!(error.contains("  port = 70000\n         ^"), "{error}");
    let error = from_file("port = [1]\n").expect_err("a list is no port");
    assert!(error.contains("must be a string, a number"), "{error}");
    assert!(from_file("port = \n").is_err());
    assert!(from_file("port = 1\nport = 2\n").is_err());
}

#[test]
fn a_file_for_redis_is_recognised() {
    let error = from_file("# comment\nport 6379\n").expect_err("not TOML");
    assert!(error.contains("looks like a configuration file for Redis"), "{error}");
}

#[test]
fn a_file_takes_strings_numbers_and_switches() {
    let config = from_file("protected-mode = false\nport = \"1\"\nclient-query-buffer-limit = \"2mb\"\n");
    let config = config.expect("valid");
    assert_eq!((config.protected_mode, config.port, config.query_buffer_limit), (false, 1, 2 << 20));
}

#[test]
fn an_argument_may_not_be_longer_than_a_value() {
    let config = from_flags(&["--proto-max-bulk-len", "512mb"]).expect("the most");
    assert_eq!(config.max_bulk_bytes, tidemark_engine::keyspace::MAX_BYTES);
    assert!(from_flags(&["--proto-max-bulk-len", "536870913"]).is_err());
}

#[test]
fn the_password_is_not_repeated_in_an_error() {
    let secret = "x".repeat(20_000);
    let error = from_flags(&["--password", &secret]).expect_err("too long");
    assert!(!error.contains("xxx"), "{error}");
}

#[cfg(feature = "sinks")]
#[test]
fn an_address_that_is_none_is_shown_without_its_password() {
    for (given, shown) in [
        ("ftp://x/y", "the value 'ftp://x/y' of --sink must begin with nats://"),
        ("ftp://joe:topsecret@x/y?prefix=topsecret", "the value 'ftp://...@x/y?...' of --sink must begin"),
        ("nats://topsecret@x", "the value 'nats://...@x' of --sink must name a stream"),
        ("nats:joe:topsecret@x/S", "the value '...@x/S' of --sink must begin with"),
        ("ftp://joe:topsecret/topsecret?@topsecret@x/y", "the value 'ftp://...@x/y' of --sink"),
        ("kafka://a/t ftp://joe:topsecret@x/y", "the value 'kafka://a/t ftp://...@x/y' of --sink"),
    ] {
        let error = from_flags(&["--sink", given]).expect_err(given);
        assert!(error.starts_with(shown), "{given}: {error}");
        assert!(!error.contains("topsecret"), "{given}: {error}");
    }
}

#[test]
fn a_file_with_an_error_does_not_show_the_password() {
    for text in [
        "requirepass = \"topsecret\n",
        "PassWord = topsecret\n",
        "\"requirepass\" = 'topsecret\n",
        "requirepass topsecret\n",
        "requirepass = [\"topsecret\"]\n",
        "requirepas = \"topsecret\"\n",
        "pasword = \"topsecret\n",
        "port = 1\nrequirepass = \"\"\"\ntopsecret\n",
        "requirepass = \"\"\"\ntopsecret\" \\q\n\"\"\"\n",
        "requirepass = \"topsecret\"\npassword = \"topsecret\"\n",
        "requirepass = \"topsecret\"\nrequirepass = \"topsecret\"\n",
        "requirepass = \"topsecret\" port = 3\n",
        "\"require\\u0070ass\" = \"topsecret\n",
    ] {
        let error = from_file(text).expect_err(text);
        assert!(!error.contains("topsecret"), "{text}\n{error}");
    }
    let error = from_file("requirepass = \"a\"\nport = 'x\n").expect_err("an open string");
    assert!(error.contains("  port = 'x\n"), "what is no secret is shown: {error}");
}

#[test]
fn two_names_of_one_setting_in_one_source_are_refused() {
    for (flags, names) in [
        (["--durability", "always", "--appendfsync", "everysec"], "--durability and --appendfsync"),
        (["--appendfsync", "no", "--durability", "always"], "--durability and --appendfsync"),
        (["--password", "a", "--requirepass", "b"], "--requirepass and --password"),
        (["--io-threads", "1", "--threads", "2"], "--threads and --io-threads"),
    ] {
        let error = from_flags(&flags).expect_err("a contradiction");
        assert!(error.contains(names), "{error}");
    }
    for (text, names) in [
        ("durability = \"always\"\nappendfsync = \"no\"\n", ":2: 'durability' and 'appendfsync'"),
        ("requirepass = \"a\"\npassword = \"b\"\n", ":2: 'requirepass' and 'password'"),
        ("PORT = 1\n\nport = 2\n", ":3: 'PORT' and 'port'"),
    ] {
        let error = from_file(text).expect_err("a contradiction");
        assert!(error.contains(names), "{error}");
    }
    assert!(
        from_flags(&["--port", "1", "--port", "2"]).is_ok_and(|config| config.port == 2),
        "the last of one name"
    );
}

#[test]
fn the_documented_configuration_file_is_the_default() {
    let documented = include_str!("../../../../docs/tidemark.toml");
    assert_eq!(
        documented,
        print(&Config::default()),
        "renew it: tidemark serve --print-config > docs/tidemark.toml"
    );
}

#[test]
fn a_misspelt_variable_is_noticed_and_a_foreign_one_does_no_harm() {
    let names =
        ["TIDEMARK_PORT", "TIDEMARK_DURABILTY", "TIDEMARK_BUILD_NUMBER_17", "HOME", "TIDEMARK_CONFIG"];
    let warnings = unknown_variables(names.iter().map(ToString::to_string));
    assert_eq!(
        warnings,
        [
            "the environment variable TIDEMARK_DURABILTY names no setting; did you mean TIDEMARK_DURABILITY?",
            "the environment variable TIDEMARK_BUILD_NUMBER_17 names no setting",
        ]
    );
}

#[test]
fn short_help_has_a_line_for_each_setting_with_its_default() {
    for columns in [72, 80, 100, 200] {
        let text = short_help(columns);
        let longest = text.lines().map(|line| line.chars().count()).max();
        assert!(longest.is_some_and(|longest| longest <= columns), "{longest:?} of {columns}:\n{text}");
        for setting in SETTINGS {
            let flag = format!("  --{} ", setting.name);
            let lines: Vec<&str> = text.lines().filter(|line| line.starts_with(&flag)).collect();
            assert_eq!(lines.len(), usize::from(!setting.is_compatibility()), "{}", setting.name);
            assert!(lines.iter().all(|line| line.ends_with(']')), "{lines:?}");
        }
    }
    let text = short_help(100);
    for line in [
        "  --port                          TCP port to listen on [7379]",
        "  --unixsocket                    Unix socket to listen on as well [none]",
        "  --log-segment-bytes             Size of one file of the log [64mb]",
    ] {
        assert!(text.lines().any(|shown| shown == line), "{line}\n{text}");
    }
}

#[test]
fn long_help_says_the_default_and_the_variable_of_each_setting() {
    let mut command = ServeArgs::augment_args(clap::Command::new("serve")).term_width(80);
    let text = command.render_long_help().to_string();
    let longest = text.lines().map(|line| line.chars().count()).max();
    assert!(longest.is_some_and(|longest| longest <= 80), "{longest:?}:\n{text}");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for setting in SETTINGS {
        let variable = setting.name.replace('-', "_").to_ascii_uppercase();
        assert!(words.contains(&format!("--{} <{}>", setting.name, setting.placeholder)), "{}", setting.name);
        assert!(words.contains(&format!("[env: TIDEMARK_{variable}]")), "{}", setting.name);
    }
    assert_eq!(words.matches("[default: ").count(), SETTINGS.len());
    assert!(words.contains("no TCP port. [default: 7379] [env: TIDEMARK_PORT]"), "{words}");
}
