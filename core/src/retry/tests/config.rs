//! Policies in TOML and JSON.

use super::*;

fn toml(text: &str) -> Result<RetryPolicy, String> {
    toml::from_str(text).map_err(|error| error.to_string())
}

fn json(text: &str) -> Result<RetryPolicy, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

#[test]
fn a_policy_reads_as_people_write_it() {
    let grown = r#"
        max_attempts = 7
        backoff = { exponential = { base = "2s", factor = 3, max = "1h 30m", jitter = false } }
    "#;
    let policy = RetryPolicy::exponential(7).base(Duration::from_secs(2)).factor(3.0);
    assert_eq!(toml(grown), Ok(policy.max(Duration::from_secs(5_400)).jitter(false)));
    assert_eq!(toml("backoff = { fixed = 250 }"), Ok(RetryPolicy::fixed(5, Duration::from_millis(250))));
    assert_eq!(toml("max_attempts = 1\nbackoff = 'none'"), Ok(RetryPolicy::none()));
    assert_eq!(
        json(r#"{"max_attempts": 3, "backoff": {"exponential": {"max": 60000}}}"#),
        Ok(RetryPolicy::exponential(3).max(Duration::from_secs(60)))
    );
}

#[test]
fn what_is_left_out_has_its_default() {
    assert_eq!(toml(""), Ok(RetryPolicy::default()));
    assert_eq!(json("{}"), Ok(RetryPolicy::exponential(5)));
    for default in ["'exponential'", "{ exponential = {} }"] {
        assert_eq!(toml(&format!("backoff = {default}")), Ok(RetryPolicy::default()));
    }
}

#[test]
fn a_policy_is_written_with_units() {
    let policy =
        RetryPolicy::exponential(7).base(Duration::from_millis(1_500)).max(Duration::from_secs(5_400));
    let text = toml::to_string(&policy).unwrap();
    assert_eq!(
        text,
        "max_attempts = 7\n\n[backoff.exponential]\nbase = \"1s 500ms\"\nfactor = 2.0\nmax = \"1h 30m\"\njitter = true\n"
    );
    let fixed = RetryPolicy::fixed(2, Duration::from_secs(5));
    assert_eq!(serde_json::to_string(&fixed).unwrap(), r#"{"max_attempts":2,"backoff":{"fixed":"5s"}}"#);
    assert_eq!(
        serde_json::to_string(&RetryPolicy::none()).unwrap(),
        r#"{"max_attempts":1,"backoff":"none"}"#
    );
}

#[test]
fn a_mistake_is_answered_with_what_to_write() {
    let cases = [
        ("attempts = 3", "unknown field `attempts`, expected `max_attempts` or `backoff`"),
        ("max_attempts = -1", "a whole number from 1 to 4294967295"),
        ("max_attempts = 4294967296", "a whole number from 1 to 4294967295"),
        ("max_attempts = 'many'", "a whole number from 1 to 4294967295"),
        ("backoff = 'linear'", "{ fixed = \"5s\" }"),
        ("backoff = 5", "{ fixed = \"5s\" }"),
        ("backoff = {}", "{ fixed = \"5s\" }"),
        ("backoff = { linear = 5 }", "unknown variant `linear`, expected `fixed` or `exponential`"),
        ("backoff = { fixed = 5, exponential = {} }", "keep one of the two"),
        ("backoff = { fixed = '5' }", "\"1h 30m\", or a whole number of milliseconds"),
        ("backoff = { fixed = -5 }", "\"1h 30m\", or a whole number of milliseconds"),
        ("backoff = { exponential = { bsae = '1s' } }", "unknown field `bsae`, expected one of `base`"),
        ("backoff = { exponential = { factor = 'two' } }", "f64"),
    ];
    for (text, expected) in cases {
        let error = toml(text).unwrap_err();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn what_is_out_of_range_becomes_the_nearest_that_makes_sense() {
    assert_eq!(toml("max_attempts = 0").unwrap().max_attempts(), NonZeroU32::MIN);
    for (written, read) in
        [("nan", 1.0), ("-inf", 1.0), ("0", 1.0), ("0.9", 1.0), ("inf", f64::MAX), ("1e9", 1e9)]
    {
        let policy = toml(&format!("backoff = {{ exponential = {{ factor = {written} }} }}")).unwrap();
        assert_eq!(policy, RetryPolicy::default().factor(read), "{written}");
    }
    let huge = toml("backoff = { fixed = 9223372036854775807 }").unwrap();
    assert_eq!(huge.longest_delay(), Duration::from_millis(i64::MAX.unsigned_abs()));
}

proptest! {
    #[test]
    fn every_policy_reads_back_as_it_was(attempts in any::<u32>(), backoff in backoffs()) {
        let policy = RetryPolicy::new(attempts, backoff);
        prop_assert_eq!(toml(&toml::to_string(&policy).unwrap()), Ok(policy));
    }

    // `serde_json` reads numbers of up to 15 digits exactly, longer ones nearly.
    #[test]
    fn every_policy_with_a_short_factor_reads_back_from_json(
        attempts in any::<u32>(), backoff in backoffs(), factor in 1_000..1_000_000_u32,
    ) {
        let policy = RetryPolicy::new(attempts, backoff).factor(f64::from(factor) / 1_000.0);
        prop_assert_eq!(json(&serde_json::to_string(&policy).unwrap()), Ok(policy));
    }
}
