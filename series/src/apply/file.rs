//! One file patch applied to one blob, exactly or not at all.

use super::text::{HunkMismatch, apply_hunks};
use crate::model::delta::apply_delta;
use crate::model::object_id::ObjectId;
use crate::model::patch::{BinaryHalf, Change, Content, FilePatch};

/// Reasons why a file patch does not fit a blob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mismatch {
    /// There is no file, but the patch needs one.
    PreImageMissing,
    /// There is a file, but the patch creates a new one.
    PreImageExists,
    /// The blob differs from the one that the patch was made from.
    PreImageDiffers {
        /// The id the patch names.
        expected: ObjectId,
        /// The id of the blob in the tree.
        found: ObjectId,
    },
    /// A hunk does not fit on its own line.
    Hunk(HunkMismatch),
    /// The delta of a binary patch does not fit.
    BinaryDelta,
    /// The result differs from the blob that the patch names.
    PostImageDiffers {
        /// The id the patch names.
        expected: ObjectId,
        /// The id of the result.
        found: ObjectId,
    },
    /// The hunks of a deleted file do not remove all of its lines.
    DeleteLeavesContent,
}

/// Applies `file` to the blob `pre_image` (`None` if there is no file at the old path).
///
/// Returns the new content, or `None` if the patch deletes the file.
///
/// # Errors
///
/// The mismatch. Both blob ids that the patch names are checked.
pub fn apply_file(pre_image: Option<&[u8]>, file: &FilePatch) -> Result<Option<Vec<u8>>, Mismatch> {
    let pre_image = match (pre_image, file.change) {
        (None, Change::Create) => &[],
        (None, _) => return Err(Mismatch::PreImageMissing),
        (Some(_), Change::Create) => return Err(Mismatch::PreImageExists),
        (Some(bytes), _) => bytes,
    };
    if let Some(expected) = file.old.as_ref().and_then(|side| side.id) {
        let found = ObjectId::of_blob(pre_image);
        if found != expected {
            return Err(Mismatch::PreImageDiffers { expected, found });
        }
    }
    Ok(apply_checked(pre_image, file)?.map(|(bytes, _)| bytes))
}

/// Applies `file` to `pre_image`, whose id has been checked; returns the result with its id.
pub(crate) fn apply_checked(
    pre_image: &[u8],
    file: &FilePatch,
) -> Result<Option<(Vec<u8>, ObjectId)>, Mismatch> {
    let result = apply_content(pre_image, file)?;
    if file.change == Change::Delete {
        return match result.is_empty() {
            true => Ok(None),
            false => Err(Mismatch::DeleteLeavesContent),
        };
    }
    let found = ObjectId::of_blob(&result);
    match file.new.as_ref().and_then(|side| side.id) {
        Some(expected) if expected != found => Err(Mismatch::PostImageDiffers { expected, found }),
        _ => Ok(Some((result, found))),
    }
}

fn apply_content(pre_image: &[u8], file: &FilePatch) -> Result<Vec<u8>, Mismatch> {
    match &file.content {
        Content::Unchanged => Ok(pre_image.to_vec()),
        Content::Text(hunks) => apply_hunks(pre_image, hunks).map_err(Mismatch::Hunk),
        Content::Binary(binary) => match &binary.forward {
            BinaryHalf::Literal(bytes) => Ok(bytes.clone()),
            BinaryHalf::Delta(delta) => apply_delta(pre_image, delta).ok_or(Mismatch::BinaryDelta),
        },
    }
}
