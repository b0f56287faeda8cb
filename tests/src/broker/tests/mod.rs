//! Stories about the broker, told by a client made of amq-protocol frames in virtual time.

mod confirms;
mod connections;
mod conservation;
mod dead_letters;
mod declarations;
mod delivery;
mod expiry;
mod leases;
mod quorum;
mod world;
