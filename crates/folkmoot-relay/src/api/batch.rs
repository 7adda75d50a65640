//! `batch`: many commands in one request, one after the other or beside each other.

use std::collections::BTreeMap;

use folkmoot_protocol::ErrorCode;
use folkmoot_protocol::rpc::RpcError;
use serde::Serialize;
use serde_json::value::RawValue;

use super::caller::Caller;
use super::params::BatchCommand;
use super::{Outcome, Refused, in_turn, json, method, params, publish, refused};
use crate::channels::Position;

/// Commands in one request.
pub(super) const COMMANDS_LEN_MAX: usize = 100_000;

/// The method that runs of commands are put together of.
const PUBLISH: &str = "publish";

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

pub(super) async fn run(caller: &Caller, params: &[u8]) -> Outcome {
    caller.rights.may("batch")?;
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
                let caller = caller.clone();
                tokio::spawn(async move { one(&caller, command).await })
            })
            .collect();
        for command in running {
            replies.push(command.await.expect("a command does not panic"));
        }
    } else {
        for run in in_turn::runs(batch.commands, publishes) {
            if publishes(&run[0]) {
                replies.extend(publish(caller, &run).await?);
                continue;
            }
            for command in run {
                replies.push(one(caller, command).await);
            }
        }
    }
    json(&Replies { replies })
}

fn publishes(BatchCommand(methods): &BatchCommand) -> bool {
    matches!(&**methods, [(name, _)] if name == PUBLISH)
}

async fn publish(caller: &Caller, commands: &[BatchCommand]) -> Result<Vec<Reply>, RpcError> {
    let params = commands.iter().flat_map(|BatchCommand(methods)| methods);
    let params = params.map(|(_, params)| params.get().as_bytes());
    let asked = params.map(|params| publish::read_publication(caller, params)).collect();
    let published = in_turn::publish(caller, asked).await;
    let reply = |outcome: Result<Position, RpcError>| {
        Ok(match outcome {
            Ok(position) => {
                let result = json(&publish::Published::from(position))?;
                Reply::Result([(PUBLISH.to_owned(), result)].into())
            }
            Err(error) => Reply::Error { error: refused(error) },
        })
    };
    published.into_iter().map(reply).collect()
}

async fn one(caller: &Caller, command: BatchCommand) -> Reply {
    let mut methods = command.0.into_iter();
    let (Some((name, params)), None) = (methods.next(), methods.next()) else {
        let text = "a command has one method, as its only key";
        let error = RpcError::new(ErrorCode::BadRequest, text);
        return Reply::Error { error: refused(error) };
    };
    match method::run(caller, &name, params.get().as_bytes()).await {
        Ok(result) => Reply::Result([(name, result)].into()),
        Err(error) => Reply::Error { error: refused(error) },
    }
}
