//! The floor: what the system takes to send as many bytes to as many connections, by a process that does nothing else.
//!
//! ```text
//! this process                      receiver, a process              sender, a process
//! Floor::round ─── a line ────────► Receiver::round ── a byte ─────► one send to each connection
//!              ◄── a line: Times ──                 ◄─ N emissions ─
//! ```
//!
//! Sender and receiver are processes of their own: each has N connections, and the system may not allow one process twice as many.
//! The receiver is the one by which the server is measured.

use super::descriptors;
use super::frame::Frame;
use super::receiver::{Receiver, Times};
use super::values::Values;
use crate::duration;
use crate::report::Verdict;
use crate::scenario::{Console, Scenario};
use anyhow::Context;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

/// Flags of a process that measures the floor; `Floor` gives them.
#[derive(Clone, Debug, clap::Args)]
pub struct FloorOptions {
    /// Connections
    #[arg(long)]
    subscribers: u32,
    /// Distinguishes this run from other runs
    #[arg(long)]
    run: u64,
    /// Size of the values
    #[arg(long)]
    value_bytes: u32,
    /// The name of the subscription in each emission
    #[arg(long)]
    subscription: String,
    /// The LSN before the first emission
    #[arg(long)]
    lsn: u64,
    /// Longest wait for a round
    #[arg(long, value_parser = duration::parse)]
    max_wait: Duration,
    /// Send instead of receiving
    #[arg(long)]
    sends: bool,
}

/// What the floor sends: the emissions of the server that it is compared with, byte by byte.
pub(super) struct Likeness {
    pub(super) values: Values,
    pub(super) subscription: String,
    pub(super) lsn: u64,
}

/// The process that receives.
pub(super) struct Floor {
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// The arguments that start [`FloorScenario`].
const ARGUMENTS: [&str; 2] = ["bench", FloorScenario::NAME];
/// What the receiver reports when all subscribers are connected.
const READY: &str = "ready";
/// What the receiver asks the sender for.
const SEND: &[u8] = b"s";

impl Floor {
    /// Starts both processes and waits until they are connected.
    pub(super) fn start(likeness: &Likeness, subscribers: u32, max_wait: Duration) -> anyhow::Result<Self> {
        let options = FloorOptions {
            subscribers,
            run: likeness.values.run,
            value_bytes: likeness.values.bytes as u32,
            subscription: likeness.subscription.clone(),
            lsn: likeness.lsn,
            max_wait,
            sends: false,
        };
        let mut child = options.command()?.stdin(Stdio::piped()).spawn().context("cannot start the floor")?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (requests, answers) = pipes.context("the floor has no pipes")?;
        let mut floor = Floor { child, requests, answers: BufReader::new(answers) };
        let answer = floor.answer()?;
        anyhow::ensure!(answer.trim_end() == READY, "the floor said {answer:?}");
        Ok(floor)
    }

    pub(super) fn round(&mut self, number: u32) -> anyhow::Result<Times> {
        writeln!(self.requests, "{number}").context("the floor's process has ended")?;
        let answer = self.answer()?;
        serde_json::from_str(&answer).with_context(|| format!("the floor said {answer:?}"))
    }

    fn answer(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        anyhow::ensure!(!line.is_empty(), "the floor's process has ended; what it said is above");
        Ok(line)
    }
}

impl Drop for Floor {
    fn drop(&mut self) {
        // It may have ended already. The sender ends when its connections do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One of the two processes of the floor. It runs until the process that started it has left.
pub struct FloorScenario;

impl Scenario for FloorScenario {
    const NAME: &'static str = "fan-out-floor";
    type Options = FloorOptions;

    fn run(options: &FloorOptions, console: &mut Console<'_>) -> anyhow::Result<Verdict> {
        descriptors::provide_for(options.subscribers)?;
        if options.sends {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            report_to_parent(console.out, listener.local_addr()?.port())?;
            send_when_asked(&listener, options)?;
            return Ok(Verdict::passed());
        }
        let sender = options.sender();
        let mut sender = sender.command()?.stdin(Stdio::null()).spawn().context("cannot start the sender")?;
        let mut port = String::new();
        BufReader::new(sender.stdout.take().context("the sender has no pipe")?).read_line(&mut port)?;
        let port = port.trim_end().parse().context("the sender did not say where it listens")?;
        let received = receive(port, options, &mut io::stdin().lock(), console.out);
        // Its connections are closed, so it ends; if there never were any, it waits for them.
        if received.is_err() {
            let _ = sender.kill();
        }
        sender.wait()?;
        received.map(|()| Verdict::passed())
    }
}

/// Connects to the sender on `port` and runs a round for each line of `requests`.
fn receive(
    port: u16,
    options: &FloorOptions,
    requests: &mut impl BufRead,
    answers: &mut dyn Write,
) -> anyhow::Result<()> {
    let mut receiver = Receiver::new(options.values(), options.subscribers as usize)?;
    for _ in 0..options.subscribers {
        receiver.add(connect(port)?, options.subscription.as_bytes(), 0, options.lsn)?;
    }
    let mut control = connect(port)?;
    report_to_parent(answers, READY)?;
    for line in requests.lines() {
        let number = line?.parse().context("a round is a number")?;
        let times = receiver.round(number, options.max_wait, |_| Ok(control.write_all(SEND)?))?;
        let times = times.with_context(|| format!("the floor is wrong: {:?}", receiver.faults()))?;
        report_to_parent(answers, serde_json::to_string(&times)?)?;
    }
    Ok(())
}

/// Accepts all subscribers, then the asking connection; sends to each subscriber once per request, until that connection closes.
fn send_when_asked(listener: &TcpListener, options: &FloorOptions) -> io::Result<()> {
    let accept = || {
        let (stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        io::Result::Ok(stream)
    };
    let mut subscribers = (0..options.subscribers).map(|_| accept()).collect::<io::Result<Vec<_>>>()?;
    let mut control = accept()?;
    let (mut value, mut emission, mut round) = (Vec::new(), Vec::new(), 0_u32);
    let mut asked = [0; SEND.len()];
    while control.read(&mut asked)? > 0 {
        round += 1;
        options.values().write(round, &mut value);
        emission.clear();
        let subscription = options.subscription.as_bytes();
        let (lsn, seq) = (options.lsn + u64::from(round), u64::from(round));
        Frame { subscription, lsn, seq, value: &value }.write(&mut emission);
        for subscriber in &mut subscribers {
            subscriber.write_all(&emission)?;
        }
    }
    Ok(())
}

fn connect(port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn report_to_parent(out: &mut dyn Write, line: impl std::fmt::Display) -> io::Result<()> {
    writeln!(out, "{line}")?;
    out.flush()
}

impl FloorOptions {
    fn values(&self) -> Values {
        Values { run: self.run, bytes: self.value_bytes as usize }
    }

    /// The same for the process that sends.
    fn sender(&self) -> Self {
        FloorOptions { sends: true, ..self.clone() }
    }

    /// This program with these flags, its standard output in a pipe.
    fn command(&self) -> io::Result<Command> {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(ARGUMENTS)
            .arg(format!("--subscribers={}", self.subscribers))
            .arg(format!("--run={}", self.run))
            .arg(format!("--value-bytes={}", self.value_bytes))
            .arg(format!("--subscription={}", self.subscription))
            .arg(format!("--lsn={}", self.lsn))
            .arg(format!("--max-wait={}", duration::format(self.max_wait)))
            // Ctrl-C is for the process that reports. This one ends with the pipe to it.
            .process_group(0)
            .stdout(Stdio::piped());
        if self.sends {
            command.arg("--sends");
        }
        Ok(command)
    }
}

#[cfg(test)]
mod tests {
    use super::{FloorOptions, receive, send_when_asked};
    use std::io;
    use std::net::{Ipv4Addr, TcpListener};
    use std::time::Duration;

    fn options() -> FloorOptions {
        FloorOptions {
            subscribers: 20,
            run: 7,
            value_bytes: 16,
            subscription: "17-0".into(),
            lsn: 17,
            max_wait: Duration::from_secs(20),
            sends: false,
        }
    }

    fn rounds(sent: FloorOptions, received: &FloorOptions, requests: &str) -> anyhow::Result<()> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let sender = std::thread::spawn(move || send_when_asked(&listener, &sent));
        let result = receive(port, received, &mut requests.as_bytes(), &mut io::sink());
        sender.join().unwrap().unwrap();
        result
    }

    #[test]
    fn what_is_sent_is_what_a_receiver_expects() {
        rounds(options(), &options(), "1\n2\n3\n").unwrap();
    }

    #[test]
    fn what_is_not_expected_is_no_measurement() {
        let error = rounds(
            FloorOptions { run: 8, ..options() },
            &FloorOptions { max_wait: Duration::from_millis(50), ..options() },
            "1\n",
        );
        assert!(format!("{:#}", error.unwrap_err()).starts_with("the floor is wrong"));
        let error = rounds(options(), &options(), "one\n");
        assert_eq!(error.unwrap_err().to_string(), "a round is a number");
    }
}
