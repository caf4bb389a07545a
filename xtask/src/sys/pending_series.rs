//! Replacing the files of a series as one change.
//!
//! The new files and a plan are written aside and appear by one rename: from then on the change is
//! decided. Carrying it out can be cut short at any point; whoever takes the run lock next finishes it.

use super::ours;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::series::ObjectId;
use serde::{Deserialize, Serialize};

use super::disk;
use super::edit_repo::{EditRepo, Marks};
use super::inputs::is_patch;
use crate::error::{Error, Kind, Result};
use crate::plan::layout::Layout;
use crate::plan::name::Name;
use crate::plan::next_command::quoted;

/// A series as it shall be.
#[derive(Clone, Debug)]
pub struct NewSeries<'a> {
    /// The variant whose own series it is.
    pub variant: &'a Name,
    /// Its folder, relative to the root.
    pub folder: &'a str,
    /// What was read from there: digests of the files by name. Anything else that is found there when
    /// the change is carried out is a person's, and stops it.
    pub before: BTreeMap<String, String>,
    /// The files by name.
    pub files: BTreeMap<String, Vec<u8>>,
    /// How the edit repository is marked afterwards.
    pub marks: Option<Marks>,
}

/// What `plan.json` holds.
#[derive(Debug, Serialize, Deserialize)]
struct Plan {
    variant: Name,
    folder: String,
    before: BTreeMap<String, String>,
    after: BTreeMap<String, String>,
    marks: Option<[String; 4]>,
}

const PLAN: &str = "plan.json";
const FILES: &str = "files";

/// Makes the folder hold exactly `series.files`. The caller holds the run lock.
pub fn replace(layout: &Layout, series: &NewSeries<'_>) -> Result<()> {
    decide(layout, series)?;
    finish(layout)
}

fn decide(layout: &Layout, series: &NewSeries<'_>) -> Result<()> {
    let aside = disk::scratch_folder(&layout.scratch(), "series")?;
    for (name, bytes) in &series.files {
        disk::write_atomically(&aside.path().join(FILES).join(name), bytes)?;
    }
    let plan = serde_json::to_vec_pretty(&plan_of(series))
        .map_err(|error| Error::surroundings(format!("the plan could not be written: {error}")))?;
    disk::write_atomically(&aside.path().join(PLAN), &plan)?;
    disk::create_folder(&layout.pending_series())?;
    ours::rename(aside.path(), &layout.pending_series().join(series.variant.as_str()))?;
    // It is not there any more: nothing is left to be removed.
    drop(aside.keep());
    Ok(())
}

fn plan_of(series: &NewSeries<'_>) -> Plan {
    let digests = series.files.iter().map(|(name, bytes)| (name.clone(), disk::sha256(bytes)));
    let marks = series.marks.map(|marks| [marks.pin, marks.border, marks.series, marks.made]);
    Plan {
        variant: series.variant.clone(),
        folder: series.folder.to_string(),
        before: series.before.clone(),
        after: digests.collect(),
        marks: marks.map(|marks| marks.map(|id| id.to_string())),
    }
}

/// Carries out every change that was decided: a killed run's too.
pub fn finish(layout: &Layout) -> Result<()> {
    disk::folders_in(&layout.pending_series()).iter().try_for_each(|pending| finish_one(layout, pending))
}

fn finish_one(layout: &Layout, pending: &Path) -> Result<()> {
    let plan = read_plan(pending)?;
    let folder = layout.root().join(&plan.folder);
    disk::create_folder(&folder)?;
    ours::sweep(&folder, |name| name.starts_with(disk::TEMPORARY_PREFIX))?;
    refuse_strangers(layout, pending, &plan, &folder)?;
    for name in plan.after.keys() {
        disk::write_if_changed(&folder.join(name), &disk::read(&pending.join(FILES).join(name))?)?;
    }
    for name in plan.before.keys().filter(|name| !plan.after.contains_key(*name)) {
        disk::remove_file(&folder.join(name))?;
    }
    set_marks(layout, &plan)?;
    // Away by one rename: half of it would be no plan.
    let done = disk::scratch_folder(&layout.scratch(), "done")?;
    ours::rename(pending, &done.path().join("done"))
}

fn read_plan(pending: &Path) -> Result<Plan> {
    let damaged = |why: String| {
        Error::surroundings(format!("`{}` is damaged", pending.display()))
            .detail(why)
            .hint(format!("rm -rf {}", quoted(&pending.display().to_string())))
    };
    let plan: Plan = serde_json::from_slice(&disk::read(&pending.join(PLAN))?)
        .map_err(|error| damaged(error.to_string()))?;
    let names = plan.after.keys().chain(plan.before.keys());
    let is_plain = |name: &String| !name.contains(['/', '\\']) && !name.starts_with('.');
    match names.into_iter().find(|name| !is_plain(name)) {
        Some(name) => Err(damaged(format!("it names `{name}`"))),
        None => Ok(plan),
    }
}

/// Every file there that is, or wants to be, a patch must be as it was read, or as it shall be.
fn refuse_strangers(layout: &Layout, pending: &Path, plan: &Plan, folder: &Path) -> Result<()> {
    let mut strangers = BTreeSet::new();
    for file in disk::files_below(folder)? {
        let name = file.to_string_lossy().into_owned();
        let known = [plan.before.get(&name), plan.after.get(&name)];
        if known == [None, None] && !is_patch(&file) {
            continue;
        }
        let digest = disk::sha256_of_file(&folder.join(&file))?;
        if !known.contains(&Some(&digest)) {
            strangers.insert(format!("{}/{name}", plan.folder));
        }
    }
    if strangers.is_empty() {
        return Ok(());
    }
    let what =
        format!("`{}` was being written anew when a run was cut short, and was changed since", plan.folder);
    let names: Vec<String> = strangers.into_iter().collect();
    Err(Error::new(Kind::Conflict, what)
        .detail(names.join("\n"))
        .hint(format!(
            "put it back, and the next run finishes what was begun: git checkout {}",
            quoted(&plan.folder)
        ))
        .hint(format!("keep it as it is now: rm -rf {}", quoted(&layout.show(pending)))))
}

fn set_marks(layout: &Layout, plan: &Plan) -> Result<()> {
    let Some(marks) = plan.marks.as_ref().and_then(read_marks) else { return Ok(()) };
    match EditRepo::open(&layout.edit(&plan.variant), &plan.variant)? {
        Some(repo) => repo.set_marks(&marks),
        None => Ok(()),
    }
}

fn read_marks(marks: &[String; 4]) -> Option<Marks> {
    let [pin, border, series, made] = marks.each_ref().map(|id| id.parse::<ObjectId>().ok());
    Some(Marks { pin: pin?, border: border?, series: series?, made: made? })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Place {
        _folder: tempfile::TempDir,
        layout: Layout,
    }

    impl Place {
        /// A series of two files, and the decision to replace them by three.
        fn decided() -> Place {
            let folder = tempfile::tempdir().unwrap();
            let place = Place { layout: Layout::new(folder.path()), _folder: folder };
            crate::sys::ours::claim(&place.layout).unwrap();
            place.write("1", "one");
            place.write("2", "two");
            let digest = |text: &str| disk::sha256(text.as_bytes());
            let file = |name: &str, text: &str| (name.to_string(), text.as_bytes().to_vec());
            let series = NewSeries {
                variant: &Name::new("v").unwrap(),
                folder: "patches",
                before: [("1".to_string(), digest("one")), ("2".to_string(), digest("two"))].into(),
                files: [file("1", "new"), file("3", "one"), file("4", "four")].into(),
                marks: None,
            };
            decide(&place.layout, &series).unwrap();
            place
        }

        fn path(&self, name: &str) -> std::path::PathBuf {
            self.layout.root().join("patches").join(name)
        }

        fn write(&self, name: &str, text: &str) {
            disk::write_atomically(&self.path(name), text.as_bytes()).unwrap();
        }

        fn assert_done(&self) {
            finish(&self.layout).unwrap();
            let found = disk::files_below(&self.path("")).unwrap();
            let text = |name: &Path| disk::read_text(&self.path(name.to_str().unwrap())).unwrap();
            let found: Vec<String> =
                found.iter().map(|name| format!("{}={}", name.display(), text(name))).collect();
            assert_eq!(found, ["1=new", "3=one", "4=four"]);
            assert!(disk::folders_in(&self.layout.pending_series()).is_empty());
        }
    }

    #[test]
    fn cut_short_at_any_file_it_is_finished() {
        let steps: [fn(&Place); 5] = [
            |place| place.write("1", "new"),
            |place| place.write("3", "one"),
            |place| place.write(&format!("{}x", disk::TEMPORARY_PREFIX), "fo"),
            |place| place.write("4", "four"),
            |place| disk::remove_file(&place.path("2")).unwrap(),
        ];
        for count in 0..=steps.len() {
            let place = Place::decided();
            steps[..count].iter().for_each(|step| step(&place));
            place.assert_done();
            place.assert_done();
        }
    }

    #[test]
    fn what_a_person_changed_meanwhile_is_not_overwritten() {
        for (name, text) in [("1", "mine"), ("4", "mine"), ("5.patch", "mine")] {
            let place = Place::decided();
            place.write(name, text);
            let error = finish(&place.layout).unwrap_err();
            assert_eq!(error.kind, Kind::Conflict);
            assert!(error.to_string().contains(&format!("patches/{name}")), "{error}");
            assert_eq!(disk::read_text(&place.path(name)).unwrap(), text);
            disk::remove_file(&place.path(name)).unwrap();
            place.assert_done();
        }
    }

    #[test]
    fn a_plan_that_leaves_its_folder_is_refused() {
        let place = Place::decided();
        let plan = place.layout.pending_series().join("v").join(PLAN);
        let text = disk::read_text(&plan).unwrap().replace("\"2\"", "\"../2\"");
        disk::write_atomically(&plan, text.as_bytes()).unwrap();
        assert!(finish(&place.layout).unwrap_err().to_string().contains("it names `../2`"));
    }
}
