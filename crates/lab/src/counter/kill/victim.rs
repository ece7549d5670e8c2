//! The process that is killed: it works and records its answers.

use super::notebook::Pen;
use crate::counter::meter::Meter;
use crate::counter::settings::Settings;
use crate::counter::subject::Subject;
use crate::counter::subjects::Committed;
use crate::counter::traffic::Traffic;
use anyhow::{Context, anyhow};
use std::io::{self, Write};
use std::path::Path;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

/// Printed when the work begins.
pub(super) const WORKING: &str = "working";

/// Works until it is killed, fails, or its parent is gone, which closes its standard input.
pub(in crate::counter) fn work(
    settings: &Settings,
    notebook: &Path,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    thread::spawn(|| {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        process::exit(1);
    });
    let meter = Arc::new(Meter::new(settings.write_delay));
    let counters = Committed::new(settings, &settings.names(), &meter)?;
    let pens: Vec<Pen> = (0..settings.workers)
        .map(|worker| Pen::open(notebook, settings, worker))
        .collect::<anyhow::Result<_>>()?;
    writeln!(out, "{WORKING}").and_then(|()| out.flush()).context("no receiver is left")?;
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let workers: Vec<_> = pens
            .into_iter()
            .enumerate()
            .map(|(worker, pen)| {
                let (counters, is_over) = (&counters, &is_over);
                scope.spawn(move || {
                    let ended = operate(settings, worker, counters, pen, is_over);
                    // If one worker fails, the run is over for all.
                    is_over.store(true, Relaxed);
                    ended
                })
            })
            .collect();
        let panicked = |_| Err(anyhow!("a worker has panicked"));
        workers.into_iter().try_for_each(|worker| worker.join().unwrap_or_else(panicked))
    })
}

fn operate(
    settings: &Settings,
    worker: usize,
    counters: &Committed,
    mut pen: Pen,
    is_over: &AtomicBool,
) -> anyhow::Result<()> {
    let mut traffic = Traffic::new(settings.seed, worker, settings.keys, settings.churn);
    while !is_over.load(Relaxed) {
        let operation = traffic.next();
        pen.begin(operation.key, operation.is_minus).context("writing down what is done")?;
        let moved = counters.apply(worker, operation.key, operation.is_minus)?;
        pen.end(operation.key, moved).context("writing down what was answered")?;
    }
    Ok(())
}
