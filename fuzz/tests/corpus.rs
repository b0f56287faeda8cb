//! Replays the seeds of every target, and whatever a fuzzer found and somebody kept.
#![expect(clippy::unwrap_used, clippy::panic, reason = "in a test, a panic is the report")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use leveret_fuzz::TARGETS;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// What a folder holds, in the order of the names.
fn entries(folder: &Path) -> BTreeSet<PathBuf> {
    let listing = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    listing.map(|entry| entry.unwrap().path()).collect()
}

fn names(paths: &BTreeSet<PathBuf>) -> BTreeSet<String> {
    paths.iter().map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect()
}

#[test]
fn every_seed_keeps_the_rules_of_its_target() {
    for (name, body) in TARGETS {
        let seeds = entries(&folder("corpus").join(name));
        assert!(!seeds.is_empty(), "{name} has no seeds");
        for seed in seeds {
            // The harness prints this with the panic of a seed that breaks a rule.
            println!("{}", seed.display());
            body(&fs::read(&seed).unwrap());
        }
    }
}

#[test]
fn every_target_has_a_binary_and_a_corpus_and_nothing_else_does() {
    let listed: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(names(&entries(&folder("corpus"))), listed, "fuzz/corpus");
    assert_eq!(names(&entries(&folder("fuzz_targets"))), listed, "fuzz/fuzz_targets");
    let manifest = fs::read_to_string(folder("Cargo.toml")).unwrap();
    for name in &listed {
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name} is missing in fuzz/Cargo.toml");
    }
}
