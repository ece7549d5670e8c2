//! Who receives: one thread for all subscribers, which reads whatever has come, checks it, and allocates nothing for a message.

use super::frame::Frame;
use super::values::Values;
use crate::watch::sequence::{SequenceCheck, SequenceFaults};
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use serde::Serialize;
use std::fmt;
use std::io::{self, Read};
use std::time::{Duration, Instant};

/// All subscribers, and what they were sent.
pub(super) struct Receiver {
    poll: Poll,
    events: Events,
    /// A connection's token is its place here.
    subscribers: Vec<Subscriber>,
    scratch: Box<[u8]>,
    tally: Tally,
}

/// One connection with its one subscription.
struct Subscriber {
    /// `None` when nothing can come any more.
    stream: Option<TcpStream>,
    subscription: Box<[u8]>,
    sequence: SequenceCheck,
    /// The last round whose value has come.
    round: u32,
    /// The start of an emission whose rest has not arrived.
    incomplete: Vec<u8>,
}

/// What the round has brought so far, and what was wrong since the beginning.
struct Tally {
    values: Values,
    round: u32,
    value: Vec<u8>,
    began: Instant,
    /// Of each subscriber whose emission has come, after how many nanoseconds; ascending.
    arrivals: Vec<u64>,
    received_bytes: u64,
    received: u64,
    faults: Faults,
}

/// When a round's emissions were there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, serde::Deserialize)]
pub(super) struct Times {
    pub(super) median_nanos: u64,
    pub(super) last_nanos: u64,
}

/// What was wrong with what subscribers were sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Faults {
    /// Values that a subscriber was not sent in their round.
    pub(super) missed: u64,
    /// Values that a subscriber was sent again.
    pub(super) duplicates: u64,
    /// Values that came when their round was over.
    pub(super) late: u64,
    /// Emissions of what the writer has not written, or of another subscription.
    pub(super) unknown: u64,
    /// Subscribers whose connection ended, or who were sent something else than emissions.
    pub(super) ended: u64,
    /// What was wrong with the numbers.
    pub(super) sequence: SequenceFaults,
}

const EVENTS_PER_TURN: usize = 1024;
const READ_BYTES: usize = 64 << 10;
/// More than an emission takes beside its value.
const FRAME_BYTES_MAX: usize = 512;

impl Receiver {
    pub(super) fn new(values: Values, capacity: usize) -> io::Result<Self> {
        Ok(Receiver {
            poll: Poll::new()?,
            events: Events::with_capacity(EVENTS_PER_TURN),
            subscribers: Vec::with_capacity(capacity),
            scratch: vec![0; READ_BYTES].into_boxed_slice(),
            tally: Tally {
                values,
                round: 0,
                value: Vec::with_capacity(values.bytes),
                began: Instant::now(),
                arrivals: Vec::with_capacity(capacity),
                received_bytes: 0,
                received: 0,
                faults: Faults::default(),
            },
        })
    }

    /// Adds a connection whose next emission is the one behind `seq` and `lsn`.
    pub(super) fn add(
        &mut self,
        stream: std::net::TcpStream,
        subscription: &[u8],
        seq: u64,
        lsn: u64,
    ) -> io::Result<()> {
        stream.set_nonblocking(true)?;
        let mut stream = TcpStream::from_std(stream);
        self.poll.registry().register(&mut stream, Token(self.subscribers.len()), Interest::READABLE)?;
        self.subscribers.push(Subscriber {
            stream: Some(stream),
            subscription: subscription.into(),
            sequence: SequenceCheck::after(seq, lsn),
            round: 0,
            incomplete: Vec::new(),
        });
        Ok(())
    }

    /// Begins a round with its value by `send`, and receives until every subscriber has it, as long as that may take.
    /// Returns the times if everything was right.
    pub(super) fn round(
        &mut self,
        number: u32,
        max_wait: Duration,
        send: impl FnOnce(&[u8]) -> anyhow::Result<()>,
    ) -> anyhow::Result<Option<Times>> {
        let faults_before = self.faults();
        let tally = &mut self.tally;
        tally.values.write(number, &mut tally.value);
        tally.round = number;
        tally.arrivals.clear();
        tally.began = Instant::now();
        send(&tally.value)?;
        while self.tally.arrivals.len() < self.open() {
            let left = max_wait.saturating_sub(self.tally.began.elapsed());
            if left.is_zero() {
                break;
            }
            self.turn(left)?;
        }
        self.tally.faults.missed += (self.subscribers.len() - self.tally.arrivals.len()) as u64;
        let times = self.tally.times();
        Ok(times.filter(|_| self.faults() == faults_before))
    }

    /// Listens until nothing has come for so long.
    pub(super) fn listen(&mut self, wait: Duration) -> io::Result<()> {
        while self.turn(wait)? {}
        Ok(())
    }

    /// What was wrong so far.
    pub(super) fn faults(&self) -> Faults {
        let mut faults = self.tally.faults;
        self.subscribers.iter().for_each(|subscriber| faults.sequence.add(subscriber.sequence.faults()));
        faults
    }

    /// The bytes that an emission took, on the average; not a number if there was none.
    pub(super) fn bytes_per_emission(&self) -> f64 {
        if self.tally.received == 0 {
            return f64::NAN;
        }
        self.tally.received_bytes as f64 / self.tally.received as f64
    }

    pub(super) fn received(&self) -> u64 {
        self.tally.received
    }

    /// Subscribers to whom something can still come.
    fn open(&self) -> usize {
        self.subscribers.len() - self.tally.faults.ended as usize
    }

    /// Takes what has come; returns whether something had.
    fn turn(&mut self, wait: Duration) -> io::Result<bool> {
        match self.poll.poll(&mut self.events, Some(wait)) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(true),
            result => result?,
        }
        for event in &self.events {
            let subscriber = &mut self.subscribers[event.token().0];
            let is_open = subscriber.stream.is_some();
            if is_open && subscriber.receive(&mut self.scratch, &mut self.tally).is_err() {
                subscriber.stream = None;
                self.tally.faults.ended += 1;
            }
        }
        Ok(!self.events.is_empty())
    }
}

impl Subscriber {
    /// Reads until the socket is empty. An error ends the subscriber, whatever it is.
    fn receive(&mut self, scratch: &mut [u8], tally: &mut Tally) -> io::Result<()> {
        loop {
            let Some(stream) = &mut self.stream else { return Ok(()) };
            let length = match stream.read(scratch) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            tally.received_bytes += length as u64;
            let received = &scratch[..length];
            if self.incomplete.is_empty() {
                let consumed = self.take(received, tally)?;
                self.incomplete.extend_from_slice(&received[consumed..]);
            } else {
                let mut input = std::mem::take(&mut self.incomplete);
                input.extend_from_slice(received);
                let consumed = self.take(&input, tally)?;
                input.drain(..consumed);
                self.incomplete = input;
            }
            if self.incomplete.len() > tally.values.bytes + FRAME_BYTES_MAX {
                return Err(io::Error::other("an emission is longer than the value that was written"));
            }
            // A short read has emptied the socket; what arrives later raises a new event.
            if length < scratch.len() {
                return Ok(());
            }
        }
    }

    /// Counts every whole emission in `input`; returns the bytes that they took.
    fn take(&mut self, input: &[u8], tally: &mut Tally) -> io::Result<usize> {
        let mut consumed = 0;
        while let Some(rest) = input.get(consumed..).filter(|rest| !rest.is_empty()) {
            let Some((frame, length)) = Frame::read(rest).map_err(io::Error::other)? else { break };
            self.count(&frame, tally);
            consumed += length;
        }
        Ok(consumed)
    }

    fn count(&mut self, frame: &Frame<'_>, tally: &mut Tally) {
        tally.received += 1;
        if frame.subscription != &*self.subscription {
            tally.faults.unknown += 1;
            return;
        }
        let repeated_before = self.sequence.faults().duplicates;
        self.sequence.take(frame.seq, frame.lsn);
        let is_repeated = self.sequence.faults().duplicates > repeated_before;
        if frame.value == tally.value && self.round < tally.round {
            tally.arrivals.push(tally.began.elapsed().as_nanos() as u64);
            self.round = tally.round;
            return;
        }
        match tally.values.round_of(frame.value) {
            Some(round) if is_repeated || round == self.round => tally.faults.duplicates += 1,
            Some(round) if round < tally.round => tally.faults.late += 1,
            _ => tally.faults.unknown += 1,
        }
    }
}

impl Tally {
    fn times(&self) -> Option<Times> {
        let last_nanos = *self.arrivals.last()?;
        Some(Times { median_nanos: self.arrivals[(self.arrivals.len() - 1) / 2], last_nanos })
    }
}

impl Faults {
    pub(super) fn is_clean(&self) -> bool {
        *self == Faults::default()
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Faults { missed, duplicates, late, unknown, ended, sequence } = self;
        write!(
            out,
            "missed={missed} duplicates={duplicates} late={late} unknown={unknown} ended={ended}; numbers: missing={} \
             repeated={} out-of-order={}",
            sequence.missing, sequence.duplicates, sequence.out_of_order
        )
    }
}

#[cfg(test)]
mod tests {
    use super::{Faults, Frame, Receiver, Values};
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::time::Duration;

    const VALUES: Values = Values { run: 7, bytes: 16 };
    const LONG: Duration = Duration::from_secs(20);
    const SHORT: Duration = Duration::from_millis(20);

    /// A receiver of so many subscribers, and the servers' ends of their connections.
    fn receiver(count: usize) -> (Receiver, Vec<TcpStream>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut receiver = Receiver::new(VALUES, count).unwrap();
        let ends = (0..count).map(|_| {
            let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            receiver.add(stream, b"s", 0, 100).unwrap();
            let end = listener.accept().unwrap().0;
            end.set_nodelay(true).unwrap();
            end
        });
        let ends = ends.collect();
        (receiver, ends)
    }

    fn emission(round: u32, seq: u64) -> Vec<u8> {
        let (mut value, mut bytes) = (Vec::new(), Vec::new());
        VALUES.write(round, &mut value);
        Frame { subscription: b"s", lsn: 100 + seq, seq, value: &value }.write(&mut bytes);
        bytes
    }

    #[test]
    fn a_round_ends_with_the_last_subscriber() {
        let (mut receiver, mut ends) = receiver(3);
        for round in 1..=4 {
            let times = receiver.round(round, LONG, |_| {
                ends.iter_mut().for_each(|end| end.write_all(&emission(round, round.into())).unwrap());
                Ok(())
            });
            let times = times.unwrap().expect("all was right");
            assert!(0 < times.median_nanos && times.median_nanos <= times.last_nanos, "{times:?}");
        }
        assert!(receiver.faults().is_clean());
        assert_eq!((receiver.received(), receiver.bytes_per_emission()), (12, emission(1, 1).len() as f64));
    }

    #[test]
    fn an_emission_in_pieces_is_one() {
        let (mut receiver, mut ends) = receiver(1);
        let whole = emission(1, 1);
        let writer = std::thread::spawn(move || {
            whole.iter().for_each(|byte| ends[0].write_all(&[*byte]).unwrap());
            ends
        });
        assert!(receiver.round(1, LONG, |_| Ok(())).unwrap().is_some());
        drop(writer.join());
    }

    #[test]
    fn every_fault_is_counted_as_what_it_is_and_the_round_is_not_measured() {
        let of = |sent: &[Vec<u8>]| {
            let (mut receiver, mut ends) = receiver(1);
            // What comes behind the value of the round is there before the round begins.
            ends[0].write_all(&sent.concat()).unwrap();
            let times = receiver.round(2, SHORT, |_| Ok(())).unwrap();
            receiver.listen(SHORT).unwrap();
            assert_eq!(times.is_some(), receiver.faults().is_clean());
            receiver.faults()
        };
        assert!(of(&[emission(2, 1)]).is_clean());
        assert_eq!(of(&[]), Faults { missed: 1, ..Faults::default() });
        assert_eq!(of(&[emission(1, 1), emission(2, 2)]), Faults { late: 1, ..Faults::default() });
        assert_eq!(of(&[emission(2, 1), emission(2, 2)]), Faults { duplicates: 1, ..Faults::default() });
        assert_eq!(of(&[emission(2, 1), emission(3, 2)]), Faults { unknown: 1, ..Faults::default() });
        assert_eq!(of(&[emission(2, 1), b"+OK\r\n".to_vec()]).ended, 1);
        assert_eq!(of(&[emission(2, 2), emission(1, 1)]).late, 1);
        let again = of(&[emission(2, 1), emission(2, 1)]);
        assert_eq!((again.duplicates, again.sequence.duplicates), (1, 1));
        assert_eq!(of(&[emission(2, 2)]).sequence.missing, 1);
        let mut foreign = Vec::new();
        Frame { subscription: b"t", lsn: 101, seq: 1, value: b"v" }.write(&mut foreign);
        assert_eq!(of(&[emission(2, 1), foreign]), Faults { unknown: 1, ..Faults::default() });
    }

    #[test]
    fn a_receiver_that_left_is_not_awaited_and_counts_as_missing() {
        let (mut receiver, mut ends) = receiver(2);
        drop(ends.remove(0));
        let round = receiver.round(1, LONG, |_| Ok(ends[0].write_all(&emission(1, 1))?));
        assert_eq!(round.unwrap(), None);
        assert_eq!(receiver.faults(), Faults { missed: 1, ended: 1, ..Faults::default() });
    }
}
