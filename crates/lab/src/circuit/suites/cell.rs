//! `CellOps` of the original's newer suite: a value that a circuit changes and all threads read.

use crate::circuit::batch::{Batch, end};
use crate::circuit::rig::{By, Rig, Way};
use crate::micro::benchmark::{Benchmark, each};
use std::hint::black_box;
use tidemark_circuit::{Cell, Circuit, Pipe};

pub(super) fn suite() -> [Benchmark; 4] {
    [
        Batch::new("CellOps.baseline_empty_pipe_batch", "a pipe to a receptor", |circuit, counter| {
            Ok(end::<u64>(circuit, counter)?)
        })
        .row(),
        Batch::new(
            "CellOps.update_cell_batch",
            "a cell's pipe; that the cell has the last value is verified, and nothing else is to be counted",
            |circuit, _| {
                let cell = circuit.cell(0)?;
                Ok(Publishing { pipe: cell.pipe().clone(), cell })
            },
        )
        .arriving_times(0)
        .row(),
        Benchmark::new("CellOps.get_cell_seeded", "reading a cell without writers", |_| {
            let (_rig, cell) = cell()?;
            each(move |_| black_box(&cell).get())
        }),
        Benchmark::new("CellOps.pipe_cell_cached", "asking a cell for its pipe", |_| {
            let (_rig, cell) = cell()?;
            each(move |_| {
                let pipe: *const Pipe<u64> = black_box(&cell).pipe();
                pipe
            })
        }),
    ]
}

fn cell() -> anyhow::Result<(Rig, Cell<u64>)> {
    let rig = Rig::new(By::Pool)?;
    let cell = rig.cell(1)?;
    Ok((rig, cell))
}

/// A way to change a cell.
struct Publishing {
    pipe: Pipe<u64>,
    cell: Cell<u64>,
}

impl Way for Publishing {
    #[inline]
    fn emit(&mut self, value: u64) {
        self.pipe.emit(value);
    }

    fn finish(&mut self, _: &Circuit, last: u64) -> anyhow::Result<()> {
        let found = self.cell.get();
        anyhow::ensure!(found == last, "the cell has {found} where {last} was emitted last");
        Ok(())
    }
}
