//! Labels of a structure's parts, given in the same way to its recording and to its replay.

use tidemark_circuit::{
    Bank, Basin, Conduit, Pipe, Port, Recorded, Recording, Replay, Reservoir, Sink, Subscriber, Subscription,
    Tap,
};

/// The receiver of the labels.
pub(crate) enum Labels<'a, 'journal> {
    Recorded(&'a Recording<Vec<u8>>),
    Replayed(&'a mut Replay<&'journal [u8]>),
}

macro_rules! labels {
    ($($kind:ident $Part:ty;)+) => {
        impl Labels<'_, '_> {
            $(pub(crate) fn $kind<E: Recorded + Clone + Send + 'static>(&mut self, label: &str, part: &$Part) {
                match self {
                    Self::Recorded(recording) => recording.$kind(label, part).expect("its own"),
                    Self::Replayed(replay) => replay.$kind(label, part),
                }
            })+
        }
    };
}

labels! {
    conduit Conduit<E>;
    pipe Pipe<E>;
    port Port<E>;
    basin Basin<E>;
    sink Sink<E>;
    tap Tap<E, E>;
    reservoir Reservoir<E>;
    subscriber Subscriber<E>;
    bank Bank<E>;
    subscription Subscription<E>;
}
