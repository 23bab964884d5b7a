//! stub during bring-up
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::job::Job;
pub fn verify(
    _job: &Job,
    _shared: &crate::run::Shared<'_>,
    _path: &std::path::Path,
    _written: &Fingerprint,
) -> Result<()> {
    Ok(())
}
