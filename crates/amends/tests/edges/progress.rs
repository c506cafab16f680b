//! Progress: every notification arrives, in its order, whatever carries it.

use serde_json::{Value, json};

use crate::pipe::{Pipe, head};
use crate::servers::{shop, words, wrapped_shop};
use crate::support::client::{Client, Sdk};
use crate::support::{AMENDS, Place};

const STEPS: u64 = 1000;

fn begin(client: &mut Client) -> u64 {
    let args = json!({ "steps": STEPS, "step_ms": 0 });
    client.begin(json!({ "op": "call", "tool": "slow_report", "args": args, "progress": true, "timeout_ms": 90_000 }))
}

fn assert_all_arrived(answer: &Value) {
    let expected: Vec<u64> = (1..=STEPS).collect();
    assert_eq!(answer["progress"], json!(expected), "{}", answer["error"]);
    assert_eq!(answer["result"]["structuredContent"]["steps"], STEPS);
}

#[test]
fn a_thousand_steps_arrive_in_order_at_several_clients_over_http() {
    let place = Place::new();
    let gateway = place.up("");
    let mut clients: Vec<Client> =
        [(Sdk::Python, Some("legacy")), (Sdk::Python, Some("modern")), (Sdk::TypeScript, Some("modern"))]
            .into_iter()
            .map(|(sdk, era)| Client::http(sdk, era, &gateway.mcp()))
            .collect();
    let begun: Vec<[u64; 2]> = clients.iter_mut().map(|client| [begin(client), begin(client)]).collect();
    for (client, numbers) in clients.iter_mut().zip(begun) {
        numbers.into_iter().for_each(|n| assert_all_arrived(&client.finish(n)));
    }
}

#[test]
fn a_thousand_steps_arrive_in_order_through_a_wrap() {
    let place = Place::new();
    let (ledger, config, server) = (place.ledger(), wrapped_shop(&place), shop(&place, &[]));
    let mut command = vec![AMENDS, "wrap", "--ledger", &ledger, "--config", &config, "--"];
    command.extend(words(&server));
    let mut python = Client::stdio(Sdk::Python, None, &command);
    let mut typescript = Client::stdio(Sdk::TypeScript, None, &command);
    let begun = [begin(&mut python), begin(&mut python)];
    let other = begin(&mut typescript);
    begun.into_iter().for_each(|n| assert_all_arrived(&python.finish(n)));
    // This SDK forgets the progress that it reads in one piece with the answer; what it tells is in order.
    let answer = typescript.finish(other);
    let told = answer["progress"].as_array().expect("a list");
    assert!(told.iter().zip(1..=STEPS).all(|(told, step)| *told == step), "{told:?}");
    assert_eq!(answer["result"]["structuredContent"]["steps"], STEPS);
}

#[test]
fn progress_carries_the_agents_own_token_and_stops_before_the_answer() {
    let place = Place::new();
    let (config, server) = (wrapped_shop(&place), shop(&place, &[]));
    let mut pipe = Pipe::wrap(&place, &["--config", &config], &words(&server));
    pipe.greet();
    let tokens = [r#""a-token""#, "12345678901234567890", "1"];
    let ids: Vec<u64> = tokens
        .iter()
        .map(|token| {
            let arguments = format!(r#"{{"steps":{STEPS},"step_ms":0}}"#);
            let params =
                format!(r#"{{"name":"slow_report","arguments":{arguments},"_meta":{{"progressToken":{token}}}}}"#);
            pipe.ask("tools/call", &params)
        })
        .collect();
    let mut seen = vec![0; tokens.len()];
    let mut open = ids.len();
    while open > 0 {
        let line = pipe.next();
        let head = head(&line);
        match head.params {
            Some(params) => {
                let at = tokens
                    .iter()
                    .position(|token| params.get().contains(&format!(r#""progressToken":{token},"#)))
                    .unwrap_or_else(|| panic!("nobody's token: {line}"));
                seen[at] += 1;
                assert!(params.get().contains(&format!(r#""progress":{}"#, seen[at])), "{line}");
            }
            None => {
                let at = ids.iter().position(|id| head.id.is_some_and(|given| given.get() == id.to_string()));
                assert_eq!(seen[at.expect("an answer to one of ours")], STEPS);
                open -= 1;
            }
        }
    }
}
