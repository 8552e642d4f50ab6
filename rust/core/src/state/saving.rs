//! A state that is being saved, as its owner sees it.

#[cfg(unix)]
use super::beside::Writer;
use crate::codec::Outcome;
use crate::error::Error;
use std::time::{Duration, Instant};

/// How far the saving of a state is.
pub struct Saving {
    pause: Duration,
    is_beside: bool,
    #[cfg(unix)]
    writer: Option<Writer>,
    /// Of one that is over, until it was told.
    outcome: Outcome<()>,
}

impl Saving {
    pub(super) fn over(outcome: Outcome<()>, begun: Instant) -> Self {
        Self {
            pause: begun.elapsed(),
            is_beside: false,
            #[cfg(unix)]
            writer: None,
            outcome,
        }
    }

    #[cfg(unix)]
    pub(super) fn beside(writer: Writer, begun: Instant) -> Self {
        Self { pause: begun.elapsed(), is_beside: true, writer: Some(writer), outcome: Ok(()) }
    }

    /// How long the caller was held up.
    pub fn pause(&self) -> Duration {
        self.pause
    }

    /// Whether a process beside this one saves, or did.
    pub fn is_beside(&self) -> bool {
        self.is_beside
    }

    /// Whether it is done. If it failed, it says so once; what stood there before still does.
    pub fn is_over(&mut self) -> Result<bool, Error> {
        self.look(false)
    }

    /// Waits until it is over.
    pub fn wait(&mut self) -> Result<(), Error> {
        self.look(true).map(|_| ())
    }

    fn look(&mut self, wait: bool) -> Result<bool, Error> {
        #[cfg(unix)]
        if let Some(writer) = &mut self.writer {
            let Some(outcome) = writer.outcome(wait) else { return Ok(false) };
            self.writer = None;
            self.outcome = outcome;
        }
        let _ = wait;
        std::mem::replace(&mut self.outcome, Ok(()))?;
        Ok(true)
    }
}
