//! Pools alone, without a service or files.

mod catalogue;
mod model;
mod odds;
mod outside;
mod properties;
mod replaying;
mod requests;
mod reservations;
mod rules;
mod scenarios;
mod schedules;
mod secrecy;
mod tables;
