//! The structure of the workspace, checked: which member may know which, what the core may reach, which names stay
//! where. A rule that no machine checks is soon a wish.
#![expect(clippy::unwrap_used, clippy::panic, reason = "in a test, a panic is the report")]

mod arrows;
mod names;
mod source;

use std::path::Path;

/// The root of the workspace.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// Fails with every finding on a line of its own, `file:line: what is wrong` first, and the rule after them.
fn none(findings: &[String], rule: &str) {
    assert!(findings.is_empty(), "\n{}\n\n{rule}\n", findings.join("\n"));
}
