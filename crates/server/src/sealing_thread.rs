//! The thread that compresses blocks of series, so that the event loops need not.

use crate::shared::Shared;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

/// Starts the thread, which ends with [`Engine::stop_sealing`](tidemark_engine::Engine::stop_sealing).
/// The engine is the one that is served to the end.
pub(crate) fn start(shared: &Arc<Shared>) -> io::Result<JoinHandle<()>> {
    let shared = Arc::clone(shared);
    let seal = move || shared.engine.seal_series();
    std::thread::Builder::new().name("tidemark-sealing".to_owned()).spawn(seal)
}
