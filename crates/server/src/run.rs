//! `tidemark serve`: runs a server in the foreground and writes its messages to the terminal.

use crate::abort_on_panic::abort_on_panic;
use crate::config::{self, BindAddress, Config, ServeArgs};
use crate::group::requested_replacement;
use crate::server::{Server, Stopper};
use crate::version::TIDEMARK_VERSION;
use signal_hook::consts::{SIGALRM, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::{Handle, Signals};
use signal_hook::low_level::emulate_default_handler;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// Exit code when a second signal cuts a graceful stop short.
const EXIT_FORCED: i32 = 130;

/// Serves until SIGTERM, Ctrl-C, a closed terminal or `SHUTDOWN` stops it. A panic of any thread
/// ends the process.
pub fn run(args: &ServeArgs) -> anyhow::Result<()> {
    let config = args.configuration()?;
    if args.print_config {
        io::stdout().write_all(config::print(&config).as_bytes())?;
        return Ok(());
    }
    abort_on_panic();
    let (stopper, is_stopping) = (Arc::new(OnceLock::new()), Arc::<AtomicBool>::default());
    let signals = stop_on_signals(Arc::clone(&stopper), Arc::clone(&is_stopping))?;
    let mut server = Server::open(config.clone())?;
    assert!(stopper.set(server.stopper()).is_ok(), "the server starts once");
    // Standard error may be closed.
    let _ = io::stderr().write_all(greeting(args, &config, &server).as_bytes());
    let loaded = server.load();
    if let Ok(true) = loaded {
        let found =
            server.report().lines().fold(String::new(), |text, line| format!("{text}{:<12}{line}\n", ""));
        let _ = io::stderr().write_all(format!("{found}ready\n").as_bytes());
    }
    let result = loaded.map_err(anyhow::Error::from).and_then(|_| server.wait().map_err(anyhow::Error::from));
    signals.close();
    if is_stopping.load(Ordering::Acquire) {
        result?;
    } else {
        start_again_if_replaced(&config, result)?;
    }
    let _ = writeln!(io::stderr(), "stopped: every answered change is in the log");
    Ok(())
}

/// If this member is to get its data from the others, has the process begin again, with the number that it
/// has: nothing in memory is left, and a supervisor sees no end. Otherwise returns how the server ended.
fn start_again_if_replaced(config: &Config, ended: anyhow::Result<()>) -> anyhow::Result<()> {
    if !matches!(requested_replacement(&config.dir), Ok(Some(_))) {
        return ended;
    }
    let _ = writeln!(io::stderr(), "this process begins again, to replace the data of this member");
    let mut arguments = std::env::args_os();
    let mut command = Command::new("/proc/self/exe");
    if let Some(name) = arguments.next() {
        command.arg0(name);
    }
    let error = command.args(arguments).exec();
    Err(anyhow::Error::from(error).context("this process cannot begin again; start it again"))
}

/// Signals that stop the server. Terminals and supervisors send them.
const STOPPING: [i32; 4] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT];
/// Signals that the server ignores. Their default action would end the process.
const IGNORED: [i32; 3] = [SIGUSR1, SIGUSR2, SIGALRM];

/// Stops the server gracefully on the first signal and ends the process immediately on the second.
/// Before there is a stopper no client was served, and the signal's default action ends the
/// process.
fn stop_on_signals(stopper: Arc<OnceLock<Stopper>>, is_stopping: Arc<AtomicBool>) -> io::Result<Handle> {
    for signal in IGNORED {
        signal_hook::flag::register(signal, Arc::default())?;
    }
    let mut signals =
        Signals::new(STOPPING.into_iter().filter(|&signal| signal != SIGHUP || !is_ignored(signal)))?;
    let handle = signals.handle();
    let wait = move || {
        let mut signals = signals.forever();
        if let Some(signal) = signals.next() {
            let Some(stopper) = stopper.get() else {
                let _ = emulate_default_handler(signal);
                std::process::exit(EXIT_FORCED);
            };
            is_stopping.store(true, Ordering::Release);
            let _ = writeln!(io::stderr(), "stopping: answering what was read and completing the log …");
            stopper.stop();
        }
        if signals.next().is_some() {
            std::process::exit(EXIT_FORCED);
        }
    };
    std::thread::Builder::new().name("tidemark-signals".to_owned()).spawn(wait)?;
    Ok(handle)
}

/// Whether the parent process made this process ignore a signal, as `nohup` does with SIGHUP.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

/// What the operator needs to know to use the server.
fn greeting(args: &ServeArgs, config: &Config, server: &Server) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "{name:<12}{value}");
    };
    line("Tidemark", &format!("{TIDEMARK_VERSION}, process {}", std::process::id()));
    for address in server.addresses() {
        line("address", &address.to_string());
    }
    if let Some(path) = &config.unixsocket {
        line("socket", &path.display().to_string());
    }
    if let Some(address) = server.http_address() {
        line(
            "http",
            &format!(
                "http://{address}/metrics, /health/live, /health/ready, /v1/watch, /v1/changes, /v1/check"
            ),
        );
    }
    if let Some(address) = server.grpc_address() {
        line("grpc", &format!("{address}, rewardpool.RewardPoolService"));
    }
    line("data", &config.dir.display().to_string());
    line("durability", &format!("{} ({})", config.durability, promise(config)));
    if let Some(address) = server.addresses().first() {
        let password = if config.requirepass.is_empty() { "" } else { " -a PASSWORD" };
        let host = reached_by(address.ip());
        line("talk to it", &format!("redis-cli -h {host} -p {}{password}", address.port()));
    }
    if !config.protected_mode
        && config.requirepass.is_empty()
        && !config.bind.iter().all(BindAddress::is_loopback)
    {
        line("warning", "any client that reaches this address can read and delete all data: set a password");
    }
    for name in args.exposed_secrets() {
        let seen = format!(
            "every user of this machine can see the secret in --{name}: use an environment variable or the file"
        );
        line("warning", &seen);
    }
    for setting in config.without_effect.iter().filter_map(|name| config::find(name)) {
        line("warning", &format!("the value of {} has no effect: {}", setting.name, setting.help));
    }
    for warning in
        config::unknown_variables(std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()))
    {
        let _ = writeln!(text, "{:<12}{warning}", "warning");
    }
    text
}

/// Address by which local clients reach a listener on `bound`: a client cannot connect to the
/// unspecified address.
fn reached_by(bound: IpAddr) -> IpAddr {
    match bound {
        IpAddr::V4(address) if address.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(address) if address.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        address => address,
    }
}

fn promise(config: &Config) -> String {
    use tidemark_log::Durability;
    match config.durability {
        Durability::Always => "a change is answered when it is on disk".to_owned(),
        Durability::Interval(time) => {
            format!("a kill may lose the last 10 ms, a power failure the last {} ms", time.as_millis())
        }
        Durability::Off => {
            "a kill may lose the last 10 ms, a power failure what the system has not written".to_owned()
        }
    }
}
