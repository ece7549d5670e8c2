//! Flags of `tidemark bench null-server`.

/// Flags of `tidemark bench null-server`.
#[derive(Clone, Debug, clap::Args)]
pub struct NullServerOptions {
    /// Port to listen on; 0 takes a free one and prints it
    #[arg(long, default_value_t = 7399)]
    pub port: u16,
    /// What clients speak
    #[arg(long, value_enum, default_value_t = NullProtocol::Resp)]
    pub protocol: NullProtocol,
}

/// A protocol of whose requests only the frames are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum NullProtocol {
    /// The Redis protocol
    Resp,
    /// Frames of protocol buffers
    Dicedb,
}
