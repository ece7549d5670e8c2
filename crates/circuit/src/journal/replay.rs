//! Replays journals.

use std::any::Any;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::io::{BufReader, Read};
use std::sync::Arc;

use super::allowance::{self, Allowance, Limit};
use super::error::ReplayError;
use super::frame::{self, Beginning, HEADER_BYTES, Kind, NoFrame};
use super::input::{Closing, Input, Mirror, OnEnd, OnReservoir, Tapping, ToTap};
use super::origin::{NoLink, Origins};
use super::recorded::{Recorded, read_number};
use super::recording::tap_name;
use crate::circuit::{Circuit, RunBy};
use crate::error::Fault;
use crate::execution::machine::Machine;
use crate::identity::name::Name;
use crate::operator::recipe::Recipe;
use crate::structure::bank::Bank;
use crate::structure::basin::Basin;
use crate::structure::conduit::Conduit;
use crate::structure::pipe::Pipe;
use crate::structure::port::Port;
use crate::structure::reservoir::Reservoir;
use crate::structure::sink::Sink;
use crate::structure::tap::Tap;
use crate::subscription::membership::Subscription;
use crate::subscription::subscriber::Subscriber;

/// See [`Replay::limit_value`].
const VALUE_BYTES_MAX: u64 = 64 << 20;

/// See [`Replay::limit_names`].
const NAMES_MAX: u32 = 1 << 16;

/// See [`Replay::limit_subjects`].
const SUBJECTS_MAX: u32 = 1 << 18;

/// Replays the inputs of a journal in a circuit with the same structure as the recorded one, so
/// that it does the same again. See [`Recording`](crate::Recording) for an example.
///
/// The circuit must be run by its owner, and made with [`Replay::seed`]. Its clock is the
/// journal's.
pub struct Replay<R> {
    reader: BufReader<R>,
    seed: u64,
    /// Position of the next frame in the journal.
    position: u64,
    texts: Vec<String>,
    inputs: HashMap<String, Box<dyn Input>>,
    /// The conduits of taps, which may be among the inputs too.
    mirrors: HashMap<String, Box<dyn Input>>,
    /// The taps that are to begin, each once.
    taps: HashMap<String, Box<dyn Tapping>>,
    /// Number of taps, by the label of their source.
    tapped: HashMap<String, u64>,
    /// Callbacks that get the reservoirs of a conduit, by its label: an [`OnReservoir`].
    on_reservoir: HashMap<String, Box<dyn Any + Send>>,
    origins: Origins,
    subscribers: HashMap<String, Box<dyn Closing>>,
    /// Callbacks for the end of subscriptions, by the labels of the conduit and the subscriber: an
    /// [`OnEnd`].
    on_close: HashMap<(String, String), Box<dyn Any + Send>>,
    banks: HashMap<String, Box<dyn Closing>>,
    /// Subscriptions from before the replay.
    labelled_subscriptions: HashMap<String, Box<dyn Closing>>,
    /// Subscriptions of the journal.
    subscriptions: HashMap<u64, Box<dyn Closing>>,
    /// A label that was given twice.
    twice: Option<String>,
    value_bytes_max: u64,
    names_max: u32,
    subjects_max: u32,
    /// The rest of these limits.
    allowance: Allowance,
    time: u64,
    /// Whether it has run, and so has read its journal.
    has_run: bool,
}

/// Result of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Replayed {
    /// Number of inputs given to the circuit.
    pub inputs: u64,
    /// Whether the journal has an end. Otherwise its recording was cut off, and its last input may
    /// be too.
    pub complete: bool,
}

impl<R: Read> Replay<R> {
    /// Makes a replay of the journal that `reader` reads. Reads the header.
    pub fn new(reader: R) -> Result<Self, ReplayError> {
        let mut reader = BufReader::new(reader);
        let seed = match frame::read_header(&mut reader) {
            Ok(Beginning::Journal(seed)) => seed,
            Ok(Beginning::OtherVersion(version)) => return Err(ReplayError::OtherVersion(version)),
            Ok(Beginning::NoJournal) => return Err(ReplayError::NotAJournal),
            Err(NoFrame::Io(error)) => return Err(error.into()),
            Err(_) => return Err(ReplayError::Damaged(0)),
        };
        Ok(Self {
            reader,
            seed,
            position: HEADER_BYTES as u64,
            texts: Vec::new(),
            inputs: HashMap::new(),
            mirrors: HashMap::new(),
            taps: HashMap::new(),
            tapped: HashMap::new(),
            on_reservoir: HashMap::new(),
            origins: Origins::default(),
            subscribers: HashMap::new(),
            on_close: HashMap::new(),
            banks: HashMap::new(),
            labelled_subscriptions: HashMap::new(),
            subscriptions: HashMap::new(),
            twice: None,
            value_bytes_max: VALUE_BYTES_MAX,
            names_max: NAMES_MAX,
            subjects_max: SUBJECTS_MAX,
            allowance: Allowance {
                bytes: VALUE_BYTES_MAX,
                kept: VALUE_BYTES_MAX,
                names: u64::from(NAMES_MAX),
                subjects: u64::from(SUBJECTS_MAX),
                exceeded: None,
            },
            time: 0,
            has_run: false,
        })
    }

    /// Limits the bytes of a value: in the journal, and in memory for the elements of its vectors
    /// and the subjects of its captures. The labels and other texts of the journal, together with
    /// names that are new to the process, may take the same amount again. Default: 64 MiB. A
    /// journal has at most 1 GiB for one value.
    pub fn limit_value(&mut self, bytes_max: u64) {
        self.value_bytes_max = bytes_max;
        self.allowance.kept = bytes_max;
    }

    /// Limits the names that are new to the process, because names are never freed. Default:
    /// 65,536.
    pub fn limit_names(&mut self, names_max: u32) {
        self.names_max = names_max;
        self.allowance.names = u64::from(names_max);
    }

    /// Limits the total number of subjects of captures: pipes, threads, and their enclosures. Also
    /// limits, separately, the open subscriptions, taps and reservoirs that were made during the
    /// recording. Default: 262,144, which is about 50 MiB for subjects, and more for subscriptions.
    pub fn limit_subjects(&mut self, subjects_max: u32) {
        self.subjects_max = subjects_max;
        self.allowance.subjects = u64::from(subjects_max);
    }

    /// The seed that the circuit must have.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Labels a conduit, as the recording did with its counterpart.
    pub fn conduit<E: Recorded + Clone + Send + 'static>(&mut self, label: &str, conduit: &Conduit<E>) {
        self.input(label, Box::new(conduit.clone()));
    }

    /// Labels a pipe, as the recording did with its counterpart.
    pub fn pipe<E: Recorded + Send + 'static>(&mut self, label: &str, pipe: &Pipe<E>) {
        self.input(label, Box::new(pipe.clone()));
    }

    /// Labels a port, as the recording did with its counterpart.
    pub fn port<E: Recorded + Clone + Send + 'static>(&mut self, label: &str, port: &Port<E>) {
        self.input(label, Box::new(port.clone()));
    }

    /// Labels a basin, as the recording did with its counterpart.
    pub fn basin<E: Recorded + Send + 'static>(&mut self, label: &str, basin: &Basin<E>) {
        self.input(label, Box::new(basin.clone()));
    }

    fn input(&mut self, label: &str, input: Box<dyn Input>) {
        if self.inputs.insert(label.to_owned(), input).is_some() {
            self.twice = Some(label.to_owned());
        }
    }

    /// Labels a tap from before the replay, as the recording did with its counterpart.
    pub fn tap<E, O>(&mut self, label: &str, tap: &Tap<E, O>)
    where
        E: Clone + Send + 'static,
        O: Clone + Send + 'static,
    {
        self.mirror(label, tap.conduit());
        self.subscription(label, tap.subscription());
    }

    fn mirror<O: Clone + Send + 'static>(&mut self, label: &str, mirror: &Conduit<O>) {
        if self.mirrors.insert(label.to_owned(), Box::new(Mirror(mirror.clone()))).is_some() {
            self.twice = Some(label.to_owned());
        }
    }

    /// Prepares a tap of this conduit for one that was made during the recording: the first call
    /// with a label stands for the first tap of the component with that label, and so on. A recipe
    /// cannot be recorded, so it must be given again.
    ///
    /// The tap begins where the recorded one did. Its conduit has the label `label#1`, and so on:
    /// its subscriptions and taps are repeated. Fails if the circuit is closed.
    ///
    /// ```
    /// # use tidemark_circuit::{Circuit, Flow, Recording, Replay, RunBy, name};
    /// let circuit = Circuit::new();
    /// let amounts = circuit.conduit::<u64>()?;
    /// let recording = Recording::new(&circuit, Vec::new());
    /// recording.conduit("amounts", &amounts)?;
    /// recording.begin()?;
    /// let doubled = amounts.tap(&Flow::new().map(|amount: u64| amount * 2))?;
    /// let kept = doubled.conduit().reservoir(16)?;
    /// amounts.get(name!("eu")).emit(21);
    /// let journal = recording.finish()?;
    /// assert_eq!(kept.drain()[0].emission(), &42);
    ///
    /// let mut replay = Replay::new(&journal[..])?;
    /// let twin = Circuit::builder().run_by(RunBy::Owner).seed(replay.seed()).build()?;
    /// let amounts = twin.conduit::<u64>()?;
    /// replay.conduit("amounts", &amounts);
    /// replay.tapped("amounts", &amounts, &Flow::new().map(|amount: u64| amount * 2))?;
    /// let (sender, kept) = std::sync::mpsc::channel();
    /// replay.on_reservoir::<u64, _>("amounts#1", move |reservoir| sender.send(reservoir).unwrap());
    /// replay.run(&twin)?;
    /// assert_eq!(kept.recv()?.drain()[0].emission(), &42);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn tapped<E, O>(
        &mut self,
        label: &str,
        conduit: &Conduit<E>,
        recipe: &impl Recipe<In = E, Out = O>,
    ) -> Result<Tap<E, O>, Fault>
    where
        E: Clone + Send + 'static,
        O: Clone + Send + 'static,
    {
        let tap = conduit.prepare_tap(recipe)?;
        let count = self.tapped.entry(label.to_owned()).or_default();
        *count += 1;
        let name = tap_name(label, *count);
        self.mirror(&name, tap.conduit());
        self.taps.insert(name, Box::new(ToTap::new(conduit, &tap)));
        Ok(tap)
    }

    /// Labels a reservoir from before the replay, as the recording did with its counterpart.
    pub fn reservoir<E: Clone + Send + 'static>(&mut self, label: &str, reservoir: &Reservoir<E>) {
        self.subscription(label, reservoir.subscription());
    }

    /// Sets the callback that gets the reservoirs of the conduit with this label, each when it is
    /// made, with the capacity of the recorded one. Draining is no input: all that the original was
    /// drained of, taken together, ends with the final content of the replayed reservoir. Dropping
    /// one ends it. Each stream of the conduit (feature `stream`) has a reservoir too, with what
    /// the stream received and what arrived after it was dropped.
    ///
    /// Without a callback the reservoirs keep nothing: an untrusted journal can have many, of any
    /// capacity.
    pub fn on_reservoir<E, F>(&mut self, conduit: &str, given: F)
    where
        E: Clone + Send + 'static,
        F: FnMut(Reservoir<E>) + Send + 'static,
    {
        let given = OnReservoir::<E>(RefCell::new(Box::new(given)));
        self.on_reservoir.insert(conduit.to_owned(), Box::new(given));
    }

    /// Labels a sink, as the recording did with its counterpart.
    pub fn sink<E: Send + 'static>(&mut self, label: &str, sink: &Sink<E>) {
        if !self.origins.label(label, Box::new(sink.clone())) {
            self.twice = Some(label.to_owned());
        }
    }

    /// Labels a subscriber, as the recording did with its counterpart.
    pub fn subscriber<E: Clone + Send + 'static>(&mut self, label: &str, subscriber: &Subscriber<E>) {
        if self.subscribers.insert(label.to_owned(), Box::new(subscriber.clone())).is_some() {
            self.twice = Some(label.to_owned());
        }
    }

    /// Labels a bank, as the recording did with its counterpart.
    pub fn bank<E: Clone + Send + 'static>(&mut self, label: &str, bank: &Bank<E>) {
        if self.banks.insert(label.to_owned(), Box::new(bank.clone())).is_some() {
            self.twice = Some(label.to_owned());
        }
    }

    /// Labels a subscription from before the replay, as the recording did with its counterpart.
    pub fn subscription<E: Clone + Send + 'static>(&mut self, label: &str, subscription: &Subscription<E>) {
        let subscription = Box::new(subscription.clone());
        if self.labelled_subscriptions.insert(label.to_owned(), subscription).is_some() {
            self.twice = Some(label.to_owned());
        }
    }

    /// Sets the callback for the end of the subscriptions of this subscriber to this conduit, see
    /// [`Conduit::subscribe_with`]. If the recorded ones had different callbacks, this one must
    /// distinguish them by their order.
    pub fn on_close<E, F>(&mut self, conduit: &str, subscriber: &str, on_close: F)
    where
        E: Clone + Send + 'static,
        F: Fn(&Subscription<E>) + Send + Sync + 'static,
    {
        self.on_close
            .insert((conduit.to_owned(), subscriber.to_owned()), Box::new(OnEnd::<E>(Arc::new(on_close))));
    }

    /// Gives the journal's inputs to the circuit, each with all that it causes before the next.
    ///
    /// Reads the journal to its end, after which there must be nothing. On an error, the inputs
    /// before it have been handled, and the circuit stays as they left it. If the circuit or a
    /// label is wrong, no input was given, and this may be called again with the right one; once
    /// inputs were given it fails, because a journal is read once.
    pub fn run(&mut self, circuit: &Circuit) -> Result<Replayed, ReplayError> {
        if self.has_run {
            return Err(ReplayError::HasRun);
        }
        if !matches!(circuit.run_by(), RunBy::Owner) {
            return Err(ReplayError::WrongCircuit("it is not run by its owner (RunBy::Owner)"));
        }
        if circuit.machine().seed() != self.seed {
            return Err(ReplayError::WrongCircuit("it was not made with the journal's seed"));
        }
        if circuit.is_closed() {
            return Err(ReplayError::WrongCircuit("it is closed"));
        }
        if let Some(label) = self.twice.as_ref().or_else(|| self.stranger(circuit.machine())) {
            return Err(ReplayError::Mislabelled(label.clone()));
        }
        let Some(_replayed) = InReplay::begin(circuit.machine()) else {
            return Err(ReplayError::WrongCircuit("it is already being run"));
        };
        self.has_run = true;
        self.run_frames(circuit)
    }

    /// Returns the label of a component of another circuit, if there is one.
    fn stranger(&self, machine: &Machine) -> Option<&String> {
        let inputs = self.inputs.iter().chain(&self.mirrors);
        let input = inputs.into_iter().find(|(_, input)| !input.is_of(machine)).map(|(label, _)| label);
        let tap = || self.taps.iter().find(|(_, tap)| !tap.is_of(machine)).map(|(label, _)| label);
        let subscriber = || {
            self.subscribers.iter().find(|(_, subscriber)| !subscriber.is_of(machine)).map(|(label, _)| label)
        };
        let closing = || {
            let closings = self.banks.iter().chain(&self.labelled_subscriptions);
            closings.into_iter().find(|(_, closing)| !closing.is_of(machine)).map(|(label, _)| label)
        };
        let origin = || self.origins.stranger(machine);
        input.or_else(tap).or_else(subscriber).or_else(closing).or_else(origin)
    }

    fn run_frames(&mut self, circuit: &Circuit) -> Result<Replayed, ReplayError> {
        let mut inputs = 0;
        let mut content = Vec::new();
        let mut given = circuit.machine().has_work();
        loop {
            // First what making the structure left in the queues, then what each input causes.
            while given && circuit.run(usize::MAX) {}
            match frame::read(&mut self.reader, &mut content, self.value_bytes_max) {
                Ok(bytes) => {
                    let damaged = ReplayError::Damaged(self.position);
                    let Some((kind, rest)) = content.split_first() else { return Err(damaged) };
                    let Some(kind) = Kind::of(*kind) else { return Err(damaged) };
                    if kind == Kind::End {
                        let mut rest = rest;
                        if read_number(&mut rest) != Some(inputs) || !rest.is_empty() {
                            return Err(damaged);
                        }
                        self.position += bytes;
                        return self.expect_nothing().map(|()| Replayed { inputs, complete: true });
                    }
                    given = self.take_within_limits(kind, rest, circuit)?;
                    inputs += u64::from(given);
                    self.position += bytes;
                }
                Err(NoFrame::End | NoFrame::Torn) => return Ok(Replayed { inputs, complete: false }),
                Err(NoFrame::Damaged) => return Err(ReplayError::Damaged(self.position)),
                Err(NoFrame::TooLong) => return Err(self.too_large()),
                Err(NoFrame::Io(error)) => return Err(error.into()),
            }
        }
    }

    /// Checks that nothing follows the end.
    fn expect_nothing(&mut self) -> Result<(), ReplayError> {
        match frame::read(&mut self.reader, &mut Vec::new(), self.value_bytes_max) {
            Err(NoFrame::End) => Ok(()),
            Err(NoFrame::Io(error)) => Err(error.into()),
            Ok(_) | Err(NoFrame::Torn | NoFrame::Damaged | NoFrame::TooLong) => {
                Err(ReplayError::Damaged(self.position))
            }
        }
    }

    /// As `take`, within the allowance.
    fn take_within_limits(
        &mut self,
        kind: Kind,
        rest: &[u8],
        circuit: &Circuit,
    ) -> Result<bool, ReplayError> {
        if kind == Kind::Origin {
            return self.link(rest, circuit).map(|()| false);
        }
        let mut allowance = Allowance { bytes: self.value_bytes_max, ..self.allowance };
        let mut origins = std::mem::take(&mut self.origins);
        let taken = origins.during(|| allowance.during(|| self.take(kind, rest, circuit)));
        (self.allowance, self.origins) = (allowance, origins);
        match (self.origins.take_contradiction(), allowance.exceeded) {
            (None, None) => taken,
            (Some(subject), _) => Err(ReplayError::Contradiction { position: self.position, subject }),
            (None, Some(Limit::Bytes)) => Err(self.too_large()),
            (None, Some(Limit::Names)) => Err(ReplayError::TooManyNames(self.names_max)),
            (None, Some(Limit::Subjects)) => Err(ReplayError::TooManySubjects(self.subjects_max)),
        }
    }

    /// Links a number to a sink.
    fn link(&mut self, rest: &[u8], circuit: &Circuit) -> Result<(), ReplayError> {
        let mut fields = Fields { rest, texts: &self.texts, position: self.position };
        let (label, sink, context) = (fields.text()?, fields.number()?, fields.number()?);
        fields.end()?;
        self.origins.link(label, sink, (context, circuit.current().subject())).map_err(|error| match error {
            NoLink::Unknown => ReplayError::UnknownLabel(label.to_owned()),
            NoLink::Contradiction(subject) => ReplayError::Contradiction { position: self.position, subject },
        })
    }

    fn too_large(&self) -> ReplayError {
        ReplayError::TooLarge { position: self.position, bytes_max: self.value_bytes_max }
    }

    /// Handles a frame. Returns false if it was a text, which is no input.
    fn take(&mut self, kind: Kind, rest: &[u8], circuit: &Circuit) -> Result<bool, ReplayError> {
        let damaged = || ReplayError::Damaged(self.position);
        if kind == Kind::Text {
            let text = str::from_utf8(rest).map_err(|_| damaged())?;
            allowance::keep_bytes(size_of::<String>() + text.len()).ok_or_else(|| self.too_large())?;
            self.texts.push(text.to_owned());
            return Ok(false);
        }
        let mut rest = rest;
        let later = read_number(&mut rest).ok_or_else(damaged)?;
        self.time = self.time.checked_add(later).ok_or_else(damaged)?;
        circuit.machine().set_time(self.time);
        let mut fields = Fields { rest, texts: &self.texts, position: self.position };
        match kind {
            // None of these is an input: texts were handled above, and origins and the end before
            // this was called.
            Kind::Text | Kind::End | Kind::Origin => return Err(damaged()),
            Kind::CloseCircuit => {
                fields.end()?;
                circuit.close();
            }
            Kind::Unlabelled => return Err(ReplayError::Unlabelled(fields.last_text()?.to_owned())),
            Kind::CloseBank => known(&self.banks, fields.last_text()?)?.close(),
            Kind::CloseSubscriber => known(&self.subscribers, fields.last_text()?)?.close(),
            Kind::CloseSubscription => known(&self.labelled_subscriptions, fields.last_text()?)?.close(),
            Kind::Unsubscribe => {
                let number = fields.number()?;
                fields.end()?;
                self.subscriptions.remove(&number).ok_or_else(|| fields.damaged())?.close();
            }
            Kind::Subscribe | Kind::SubscribeWith => {
                let (number, subscription) = self.subscribe(kind, &mut fields)?;
                self.subscriptions.insert(number, subscription);
            }
            Kind::Reservoir => {
                if circuit.is_closed() {
                    return Err(damaged());
                }
                let (number, subscription) = self.reserve(&mut fields)?;
                self.subscriptions.insert(number, subscription);
            }
            Kind::CloseConduit | Kind::Emit | Kind::Replace | Kind::Fail | Kind::Send => {
                self.give(kind, &mut fields)?;
            }
        }
        Ok(true)
    }

    /// Checks that a subscription may begin with this number.
    fn check_new(&self, number: u64, fields: &Fields<'_>) -> Result<(), ReplayError> {
        if self.subscriptions.contains_key(&number) {
            return Err(fields.damaged());
        }
        if self.subscriptions.len() as u64 >= u64::from(self.subjects_max) {
            return Err(ReplayError::TooManySubjects(self.subjects_max));
        }
        Ok(())
    }

    /// Begins a subscription, and returns it with its number.
    fn subscribe(&self, kind: Kind, fields: &mut Fields<'_>) -> Result<(u64, Box<dyn Closing>), ReplayError> {
        let (label, subscriber_label, number) = (fields.text()?, fields.text()?, fields.number()?);
        fields.end()?;
        self.check_new(number, fields)?;
        if kind == Kind::Subscribe
            && let Some(tap) = self.taps.get(subscriber_label)
        {
            return Ok((number, tap.begin().ok_or_else(|| fields.damaged())?));
        }
        let subscriber: &dyn Any = known(&self.subscribers, subscriber_label)?;
        let on_close = if kind == Kind::SubscribeWith {
            let labels = (label.to_owned(), subscriber_label.to_owned());
            let Some(on_close) = self.on_close.get(&labels) else {
                return Err(ReplayError::NoCallback { conduit: labels.0, subscriber: labels.1 });
            };
            Some(&**on_close as &dyn Any)
        } else {
            None
        };
        let subscription = self.known_input(label)?.subscribe(subscriber, on_close);
        Ok((number, subscription.ok_or_else(|| ReplayError::WrongType(label.to_owned()))?))
    }

    /// Begins a reservoir, and returns its number and the means to end it.
    fn reserve(&self, fields: &mut Fields<'_>) -> Result<(u64, Box<dyn Closing>), ReplayError> {
        let (label, number, capacity) = (fields.text()?, fields.number()?, fields.number()?);
        fields.end()?;
        let capacity = usize::try_from(capacity).unwrap_or(usize::MAX);
        self.check_new(number, fields)?;
        if capacity == 0 {
            return Err(fields.damaged());
        }
        let given = self.on_reservoir.get(label).map(|given| &**given as &dyn Any);
        let reservoir = self.known_input(label)?.reserve(capacity, given);
        Ok((number, reservoir.ok_or_else(|| ReplayError::WrongType(label.to_owned()))?))
    }

    /// Returns the component with this label, or the tap's conduit with it.
    fn known_input(&self, label: &str) -> Result<&dyn Input, ReplayError> {
        match self.inputs.get(label) {
            Some(input) => Ok(&**input),
            None => known(&self.mirrors, label),
        }
    }

    /// Gives an input to the component with this label.
    fn give(&self, kind: Kind, fields: &mut Fields<'_>) -> Result<(), ReplayError> {
        let label = fields.text()?;
        let input = self.known_input(label)?;
        let given = match kind {
            Kind::CloseConduit => {
                fields.end()?;
                input.close()
            }
            Kind::Emit => {
                let name = fields.name()?;
                input.emit(name, fields.rest)
            }
            Kind::Replace => input.replace(fields.rest),
            Kind::Fail => input.fail(str::from_utf8(fields.rest).map_err(|_| fields.damaged())?),
            Kind::Send => {
                let (target_label, name) = (fields.text()?, fields.name()?);
                fields.end()?;
                let target = self.known_input(target_label)?.target(name);
                target.and_then(|target| input.send(&*target))
            }
            _ => return Err(fields.damaged()),
        };
        given.ok_or_else(|| ReplayError::WrongType(label.to_owned()))
    }
}

/// A circuit while its inputs come from a journal.
struct InReplay<'a>(&'a Machine);

impl<'a> InReplay<'a> {
    /// None if the circuit is being run.
    fn begin(machine: &'a Machine) -> Option<Self> {
        machine.set_replayed(true).then_some(Self(machine))
    }
}

impl Drop for InReplay<'_> {
    fn drop(&mut self) {
        self.0.set_replayed(false);
    }
}

/// Returns the component with this label.
fn known<'a, T: ?Sized>(all: &'a HashMap<String, Box<T>>, label: &str) -> Result<&'a T, ReplayError> {
    let found = all.get(label).ok_or_else(|| ReplayError::UnknownLabel(label.to_owned()))?;
    Ok(found)
}

/// The rest of a frame.
struct Fields<'a> {
    rest: &'a [u8],
    texts: &'a [String],
    position: u64,
}

impl<'a> Fields<'a> {
    fn damaged(&self) -> ReplayError {
        ReplayError::Damaged(self.position)
    }

    fn number(&mut self) -> Result<u64, ReplayError> {
        read_number(&mut self.rest).ok_or_else(|| self.damaged())
    }

    fn text_of(&self, number: u64) -> Result<&'a str, ReplayError> {
        let text = usize::try_from(number).ok().and_then(|number| self.texts.get(number));
        text.map(String::as_str).ok_or_else(|| self.damaged())
    }

    fn text(&mut self) -> Result<&'a str, ReplayError> {
        let number = self.number()?;
        self.text_of(number)
    }

    /// Takes a text, after which nothing may follow.
    fn last_text(&mut self) -> Result<&'a str, ReplayError> {
        let text = self.text()?;
        self.end()?;
        Ok(text)
    }

    /// Checks that nothing follows.
    fn end(&self) -> Result<(), ReplayError> {
        if self.rest.is_empty() { Ok(()) } else { Err(self.damaged()) }
    }

    /// Takes a name, or nothing.
    fn name(&mut self) -> Result<Option<Name>, ReplayError> {
        match self.number()? {
            0 => Ok(None),
            number => {
                let name = allowance::name(self.text_of(number - 1)?);
                name.map(Some).ok_or_else(|| self.damaged())
            }
        }
    }
}

impl<R> fmt::Debug for Replay<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replay")
            .field("seed", &self.seed)
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}
