//! The chat server from outside: real sockets, real files, one server per test.

#[path = "../abuse/mod.rs"]
mod abuse;

mod account_deletion;
mod administration;
mod all_methods;
mod attachments;
mod backup;
mod backup_amid;
mod branding;
mod centrifugo;
mod check;
mod connections;
mod conversation;
mod demo;
mod directory;
mod erasure;
mod furnished;
mod http_api;
mod interrupted;
mod limits;
mod load;
mod membership;
mod messages;
mod migrate;
mod migrate_kills;
mod moderation_log;
mod names;
mod on_postgres;
mod openapi;
mod pieces;
mod pins;
mod presence;
mod process;
mod profiles;
mod reading;
mod recovery;
mod refusals;
mod registration;
mod retention;
mod retention_races;
mod room_deletion;
mod saved;
mod search;
mod seed;
mod setup;
#[path = "../storage_support/postgres.rs"]
mod storage_postgres;
mod support;
mod tls;
