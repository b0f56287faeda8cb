//! Two kinds of job and what their handlers do.

use std::sync::Arc;
use std::time::Duration;

use leveret_tokio::{Job, JobContext, JobError};
use serde::{Deserialize, Serialize};

use crate::timeline::Timeline;

/// An e-mail to send. How often sending fails is part of the job, so that the example is the same every time.
#[derive(Serialize, Deserialize)]
pub(crate) struct SendEmail {
    pub(crate) to: String,
    fails: u32,
}

impl Job for SendEmail {
    const NAME: &'static str = "send-email";
}

impl SendEmail {
    pub(crate) fn good(to: &str) -> Self {
        Self::failing(to, 0)
    }

    pub(crate) fn failing(to: &str, fails: u32) -> Self {
        Self { to: to.to_owned(), fails }
    }

    pub(crate) async fn send(self, context: JobContext, timeline: Arc<Timeline>) -> Result<(), JobError> {
        timeline.runs(&context, &self.to);
        tokio::time::sleep(Duration::from_millis(50)).await;
        if context.attempt() <= self.fails {
            return Err(JobError::retry("mail server: 451 try again"));
        }
        Ok(())
    }
}

/// A call to an API that limits its callers.
#[derive(Serialize, Deserialize)]
pub(crate) struct CallApi {
    pub(crate) number: usize,
    /// Whether the first call is answered with "429 Too Many Requests, Retry-After: 1".
    pub(crate) limited: bool,
}

impl Job for CallApi {
    const NAME: &'static str = "call-api";
}

impl CallApi {
    pub(crate) async fn call(self, context: JobContext, timeline: Arc<Timeline>) -> Result<(), JobError> {
        let label = format!("call {}", self.number);
        if self.limited {
            timeline.runs(&context, &label);
        } else {
            timeline.label(&context, &label);
        }
        if self.limited && context.deferrals() == 0 {
            return Err(JobError::defer(Duration::from_secs(1)));
        }
        tokio::time::sleep(Duration::from_millis(250)).await;
        Ok(())
    }
}
