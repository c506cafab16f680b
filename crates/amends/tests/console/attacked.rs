//! The API under a tool that reads its description and asks for everything that fits it, and for what does not.

use std::process::Command;

use crate::served::{TOKEN, serve_history};
use crate::support::{Place, root};

#[test]
fn what_fits_the_description_is_answered_as_described_and_the_rest_is_refused() {
    let place = Place::new();
    let (gateway, _) = serve_history(&place);
    let tool = root().join("target/clients/schemathesis/bin/schemathesis");
    let output = Command::new(tool)
        .args(["run", &format!("http://{}/api/openapi.json", gateway.address)])
        .args(["--header", &format!("Authorization: Bearer {TOKEN}")])
        // A stream never ends.
        .args(["--exclude-path", "/api/live"])
        .args(["--phases", "examples,coverage,fuzzing", "--max-examples", "20", "--seed", "1", "--no-color"])
        // Whether a name or an expression makes sense is more than a schema can say.
        .args(["--exclude-checks", "positive_data_acceptance"])
        .args(["--request-timeout", "60", "--workers", "1"])
        .current_dir(place.path("."))
        .output()
        .expect("tests/console/setup.sh installs schemathesis");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    place.assert_verified();
}
