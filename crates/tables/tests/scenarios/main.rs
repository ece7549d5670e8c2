//! Tables as programs use them: what is written is read back, and what others write is understood or refused with the
//! place and the reason.

mod damage;
mod foreign;
mod round_trips;
mod support;
