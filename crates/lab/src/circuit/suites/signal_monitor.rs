//! `SignalMonitorOps` of the original's newer suite: a circuit and a loop that measure the loudness
//! of a recording and detect peaks.

use crate::circuit::rig::{Rig, Runner};
use crate::micro::benchmark::{Benchmark, Work};
use crate::micro::tally::Tally;
use std::hint::black_box;
use std::time::Instant;
use tidemark_circuit::{Circuit, Fiber, Flow, Pin, Pipe};

/// Samples per measurement.
const BLOCK: usize = 64;
/// Blocks after which the recording roughly repeats.
const MOTIF: usize = 32;
/// Energy at which a block is active: that of 64 samples of 4,096.
const ENERGY: u64 = BLOCK as u64 * 4_096 * 4_096;
/// Amplitude of a sample at which its block has a peak.
const PEAK: u16 = 12_000;

pub(super) fn suite() -> Vec<Benchmark> {
    [("16k", 16_384), ("64k", 65_536)].into_iter().flat_map(|(size, samples)| rows(size, samples)).collect()
}

fn rows(size: &str, count: usize) -> [Benchmark; 2] {
    let what = format!(
        "a sample of {count}: each 64 make a measurement of energy and peak, and each measurement is classified twice, where \
         changes are kept"
    );
    [
        Benchmark::new(
            format!("SignalMonitorOps.direct_{size}_batch"),
            format!(
                "{what}; by a loop on the caller's thread, without a circuit; everything found is checked"
            ),
            move |_| directly(count),
        ),
        Benchmark::new(
            format!("SignalMonitorOps.flows_fibers_{size}_batch"),
            format!(
                "{what}; an emission for each sample to a scan, one for each measurement to each of two classifiers, and one \
                 await; everything found is counted and checked; {}",
                Runner::THREAD.driver
            ),
            move |_| by_circuit(count),
        ),
    ]
}

fn directly(count: usize) -> anyhow::Result<Work> {
    let samples = recording(count);
    let expected = expected(&samples);
    let (mut monitor, mut found) = (Monitor::default(), Found::default());
    Work::calls(count as u64, move || {
        found.clear();
        let clock = Instant::now();
        for sample in &samples {
            monitor.take(*black_box(sample), &mut found);
        }
        let took = clock.elapsed();
        anyhow::ensure!(found == expected, "what was found is not what is there");
        Ok(took)
    })
}

fn by_circuit(count: usize) -> anyhow::Result<Work> {
    let samples = recording(count);
    let expected = expected(&samples);
    let rig = (Runner::THREAD.rig)()?;
    let (mut deliveries, mut checks) = (Tally::default(), Tally::default());
    let found = rig.pin(Found::default())?;
    let input = graph(&rig, &found, &deliveries)?;
    let (delivered, checked) = (expected.len(), checks.counter());
    let check = rig.pipe(move |()| {
        let is_right = found.with(|found| {
            let is_right = *found == expected;
            found.clear();
            is_right
        });
        if is_right == Ok(true) {
            checked.count(());
        }
    })?;
    Work::calls(count as u64, move || {
        let clock = Instant::now();
        for sample in &samples {
            input.emit(*black_box(sample));
        }
        rig.settle()?;
        let took = clock.elapsed();
        deliveries.expect(delivered)?;
        check.emit(());
        rig.settle()?;
        checks.expect(1)?;
        Ok(took)
    })
}

/// The circuit's part: results are stored in the pin and counted.
fn graph(rig: &Rig, found: &Pin<Found>, deliveries: &Tally) -> anyhow::Result<Pipe<Sample>> {
    let activities = Flow::new().map(Measurement::activity).fiber(Fiber::new().diff_from(Activity::Quiet));
    let excursions = Flow::new().map(Measurement::excursion).fiber(Fiber::new().diff_from(Excursion::Clear));
    let activities = noted(rig, found, deliveries, |found, activity| found.activities.push(activity))?
        .prepend(&activities)?;
    let excursions = noted(rig, found, deliveries, |found, excursion| found.excursions.push(excursion))?
        .prepend(&excursions)?;
    let (found, counter) = (found.clone(), deliveries.counter());
    let measured = rig.pipe(move |measurement: Measurement| {
        if found.with(|found| found.measurements.push(measurement)).is_ok() {
            counter.count(measurement);
        }
        activities.emit(measurement);
        excursions.emit(measurement);
    })?;
    let features = Flow::new().scan_filter_map(Block::default, Block::add, Block::if_complete);
    Ok(measured.prepend(&features)?)
}

fn noted<E: Copy + Send + 'static>(
    circuit: &Circuit,
    found: &Pin<Found>,
    deliveries: &Tally,
    note: fn(&mut Found, E),
) -> anyhow::Result<Pipe<E>> {
    let (found, counter) = (found.clone(), deliveries.counter());
    Ok(circuit.pipe(move |value: E| {
        if found.with(|found| note(found, value)).is_ok() {
            counter.count(value);
        }
    })?)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sample {
    index: u32,
    amplitude: i16,
}

/// Result for 64 samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Measurement {
    block: u32,
    energy: u64,
    peak: u16,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Activity {
    #[default]
    Quiet,
    Active,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Excursion {
    #[default]
    Clear,
    Peak,
}

impl Measurement {
    fn activity(self) -> Activity {
        if self.energy >= ENERGY { Activity::Active } else { Activity::Quiet }
    }

    fn excursion(self) -> Excursion {
        if self.peak >= PEAK { Excursion::Peak } else { Excursion::Clear }
    }
}

/// A block, possibly incomplete.
#[derive(Clone, Copy, Default)]
struct Block {
    samples: usize,
    energy: u64,
    peak: u16,
}

impl Block {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "what a scan gives")]
    fn add(&mut self, sample: &Sample) {
        if self.samples == BLOCK {
            *self = Self::default();
        }
        let size = sample.amplitude.unsigned_abs();
        self.samples += 1;
        self.energy += u64::from(size) * u64::from(size);
        self.peak = self.peak.max(size);
    }

    fn if_complete(&self, last: Sample) -> Option<Measurement> {
        let Self { samples, energy, peak } = *self;
        (samples == BLOCK).then_some(Measurement { block: last.index / BLOCK as u32, energy, peak })
    }
}

/// The same as a loop.
#[derive(Default)]
struct Monitor {
    block: Block,
    activity: Activity,
    excursion: Excursion,
}

impl Monitor {
    fn take(&mut self, sample: Sample, found: &mut Found) {
        self.block.add(&sample);
        let Some(measurement) = self.block.if_complete(sample) else { return };
        found.measurements.push(measurement);
        if self.activity != measurement.activity() {
            self.activity = measurement.activity();
            found.activities.push(self.activity);
        }
        if self.excursion != measurement.excursion() {
            self.excursion = measurement.excursion();
            found.excursions.push(self.excursion);
        }
    }
}

/// Results for a recording. The memory is reused for the next one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Found {
    measurements: Vec<Measurement>,
    activities: Vec<Activity>,
    excursions: Vec<Excursion>,
}

impl Found {
    fn len(&self) -> u64 {
        (self.measurements.len() + self.activities.len() + self.excursions.len()) as u64
    }

    fn clear(&mut self) {
        self.measurements.clear();
        self.activities.clear();
        self.excursions.clear();
    }
}

/// Returns the expected results, block by block and without the code of the rows.
fn expected(samples: &[Sample]) -> Found {
    let mut found = Found::default();
    let (mut activity, mut excursion) = (Activity::Quiet, Excursion::Clear);
    for (number, block) in (0..).zip(samples.chunks_exact(BLOCK)) {
        let sizes = || block.iter().map(|sample| sample.amplitude.unsigned_abs());
        let measurement = Measurement {
            block: number,
            energy: sizes().map(|size| u64::from(size).pow(2)).sum(),
            peak: sizes().max().expect("a block has samples"),
        };
        found.measurements.push(measurement);
        if measurement.activity() != activity {
            activity = measurement.activity();
            found.activities.push(activity);
        }
        if measurement.excursion() != excursion {
            excursion = measurement.excursion();
            found.excursions.push(excursion);
        }
    }
    found
}

/// Noise, with eight loud blocks, four loud blocks and a peak in every 32. The end matches the
/// start, so that the recording can be repeated.
fn recording(count: usize) -> Vec<Sample> {
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let sample = |index: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let noise = (state >> 58) as i16 - 32;
        let (motif, block, place) = (index / BLOCK / MOTIF, index / BLOCK % MOTIF, index % BLOCK);
        let amplitude = match (block, place) {
            (8..=15 | 24..=27, _) if place.is_multiple_of(2) => 8_192,
            (8..=15 | 24..=27, _) => -8_192,
            (20, 32) if motif.is_multiple_of(2) => 16_384,
            (20, 32) => -16_384,
            _ => noise,
        };
        Sample { index: index as u32, amplitude }
    };
    (0..count).map(sample).collect()
}

#[cfg(test)]
mod tests {
    use super::{Activity, Excursion, Found, Monitor, expected, recording};

    #[test]
    fn a_recording_has_what_the_originals_has() {
        let found = expected(&recording(16_384));
        assert_eq!((found.measurements.len(), found.activities.len(), found.excursions.len()), (256, 32, 16));
        assert_eq!(found.activities.last(), Some(&Activity::Quiet), "it can follow itself");
        assert_eq!(found.excursions.last(), Some(&Excursion::Clear));
    }

    #[test]
    fn the_loop_finds_what_is_there_and_misses_what_is_not() {
        let mut samples = recording(2_048);
        let mut found = Found::default();
        let mut monitor = Monitor::default();
        samples.iter().for_each(|sample| monitor.take(*sample, &mut found));
        assert_eq!(found, expected(&samples));
        samples[0].amplitude = i16::MIN;
        assert_ne!(found, expected(&samples));
    }
}
