//! Unbounded channels: the standard library's and third-party ones.

use std::sync::mpsc;

/// An unbounded channel.
pub(super) trait Channel: 'static {
    type Sender: Send + 'static;
    type Receiver: Send + 'static;

    fn open() -> (Self::Sender, Self::Receiver);
    /// Returns false if the other end is gone.
    fn send(sender: &Self::Sender, value: u64) -> bool;
    /// Returns `None` if the other end is gone.
    fn receive(receiver: &Self::Receiver) -> Option<u64>;
}

/// A channel with the standard library's method names, except for its constructor.
macro_rules! channel {
    ($name:ident, $module:ident::$open:ident) => {
        pub(super) struct $name;

        impl Channel for $name {
            type Sender = $module::Sender<u64>;
            type Receiver = $module::Receiver<u64>;

            fn open() -> (Self::Sender, Self::Receiver) {
                $module::$open()
            }

            #[inline]
            fn send(sender: &Self::Sender, value: u64) -> bool {
                sender.send(value).is_ok()
            }

            #[inline]
            fn receive(receiver: &Self::Receiver) -> Option<u64> {
                receiver.recv().ok()
            }
        }
    };
}

channel!(Std, mpsc::channel);
#[cfg(feature = "peers")]
channel!(Crossbeam, crossbeam_channel::unbounded);
#[cfg(feature = "peers")]
channel!(Kanal, kanal::unbounded);
#[cfg(feature = "peers")]
channel!(Flume, flume::unbounded);
