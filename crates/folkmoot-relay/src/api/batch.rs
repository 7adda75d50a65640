//! `batch`: many commands in one request, one after the other or beside each other.

use std::collections::BTreeMap;
use std::sync::Arc;

use folkmoot_protocol::ErrorCode;
use folkmoot_protocol::rpc::RpcError;
use serde::Serialize;
use serde_json::value::RawValue;

use super::{Outcome, Refused, json, method, params, refused};
use crate::server::Server;

/// Commands in one request.
const COMMANDS_LEN_MAX: usize = 100_000;

#[derive(Serialize)]
struct Replies {
    replies: Vec<Reply>,
}

/// Each is an object with the method as its only key, or with an error.
#[derive(Serialize)]
#[serde(untagged)]
enum Reply {
    Result(BTreeMap<String, Box<RawValue>>),
    Error { error: Refused },
}

pub(super) async fn run(server: &Arc<Server>, params: &[u8]) -> Outcome {
    let batch = params::read::<params::Batch>(params)?;
    if batch.commands.len() > COMMANDS_LEN_MAX {
        let text = format!("commands: more than {COMMANDS_LEN_MAX} in one batch");
        return Err(RpcError::new(ErrorCode::BadRequest, text));
    }
    let mut replies = Vec::with_capacity(batch.commands.len());
    if batch.parallel {
        let running: Vec<_> = batch
            .commands
            .into_iter()
            .map(|command| {
                let server = server.clone();
                tokio::spawn(async move { one(&server, command).await })
            })
            .collect();
        for command in running {
            replies.push(command.await.expect("a command does not panic"));
        }
    } else {
        for command in batch.commands {
            replies.push(one(server, command).await);
        }
    }
    json(&Replies { replies })
}

async fn one(server: &Arc<Server>, command: BTreeMap<String, Box<RawValue>>) -> Reply {
    let Some((name, params)) = command.into_iter().next() else {
        let error = RpcError::new(ErrorCode::BadRequest, "a command without a method");
        return Reply::Error { error: refused(error) };
    };
    match method::run(server, &name, params.get().as_bytes()).await {
        Ok(result) => Reply::Result([(name, result)].into()),
        Err(error) => Reply::Error { error: refused(error) },
    }
}
