//! Room on the disks: whether there is enough, and whether output and temporary data can share it.

use std::path::Path;

use sortmill_io::Os;

use super::Where;
use crate::error::{Error, ErrorKind, Result};
use crate::job::Job;
use crate::plan::Plan;
use crate::temp::Temp;
use crate::text;

/// The file system that `path` lies on, by its number; `None` if it cannot be looked at.
pub fn device(os: &dyn Os, path: &Path) -> Option<u64> {
    os.meta_at(path).ok().map(|meta| meta.identity.0)
}

/// Whether temporary data can lie in the space of the output: a file on the same file system that holds the records
/// of the input and nothing else.
pub fn can_lie_in_output(job: &Job, os: &dyn Os, output: &Where, temp: &Path) -> bool {
    let unchanged = job.map.is_none() && job.reduce.is_none();
    match output {
        // Where a node's range will lie is known when its temporary data have been written.
        Where::NewFile(new_file) if unchanged && !job.temp_apart && job.on.is_none() => {
            let temp = device(os, temp);
            temp.is_some() && temp == device(os, new_file.folder())
        }
        _ => false,
    }
}

/// Refuses a job that cannot fit on the disks, with the number that is missing.
pub fn check_space(os: &dyn Os, plan: &Plan, temp: &Temp<'_>, output: Option<&Path>) -> Result<()> {
    let (Some(input), Some(temp_bytes)) = (plan.input_bytes, plan.temp_bytes) else {
        return Ok(());
    };
    let temp_bytes = temp_bytes * u64::from(plan.node_count());
    // Files end in the middle of a block, half of one on average.
    let output_bytes = input + plan.part_count.unwrap_or(0) * sortmill_io::ALIGN_BYTES as u64 / 2;
    let free = |path: &Path| {
        os.space_free(path)
            .map_err(|error| Error::io("looking for free space", path, &error))
    };
    let mut wanted = vec![(temp.base().to_owned(), temp_bytes, "temporary files need")];
    if let Some(folder) = output {
        let folder = folder.to_owned();
        // A rename needs old and new output at once, so what is there already does not count as free.
        if device(os, &folder) == device(os, temp.base()) {
            let bytes = plan.shared_bytes.unwrap_or(temp_bytes + output_bytes);
            wanted[0] = (folder, bytes, "temporary data and output need");
        } else {
            wanted.push((folder, output_bytes, "the output needs"));
        }
    }
    for (path, bytes, what) in wanted {
        if bytes == 0 {
            continue;
        }
        let have = free(&path)?;
        if have < bytes {
            let cause = format!(
                "{what} {}, and {} are free",
                text::bytes(bytes),
                text::bytes(have)
            );
            return Err(Error::new(ErrorKind::Space, "looking for free space", cause).at(&path));
        }
    }
    Ok(())
}
