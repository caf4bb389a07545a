//! A fake Node.js and npm that build the page immediately, or fail.

use std::ffi::OsString;

use super::{Project, files, program_path};

/// Adds a package.json with its lock to the overlay of `paged`, so that its server has a page.
pub fn give_page(project: &Project) {
    let folder = "overlay/extra/tools/ui";
    project.write(&format!("{folder}/package.json"), "{ \"name\": \"page\" }\n");
    let lock = "{ \"packages\": { \"node_modules/vite\": { \"engines\": { \"node\": \"^20.19.0 || >=22.12.0\" } } } }\n";
    project.write(&format!("{folder}/package-lock.json"), lock);
    project.write(&format!("{folder}/svelte.config.js"), "export default {};\n");
    project.write(&format!("{folder}/vite.config.ts"), "export default {};\n");
    project.write(&format!("{folder}/src/page.html"), "<h1>Hello</h1>\n");
}

/// The commands of `npm ci` and `npm run build` when they succeed.
pub const WELL: &str = "case $1 in
ci) mkdir node_modules ;;
run) mkdir -p dist/app && cp src/page.html dist/index.html && echo code >dist/app/code.js
    echo licences >\"$ESPALIER_PAGE_NOTICES\" ;;
esac";

/// Returns the PATH of a machine whose node has `version` and whose npm runs `commands`. Every call except the one for
/// the registry is logged, with its environment, to the file `npm.log` beside the project.
pub fn path(project: &Project, version: &str, commands: &str) -> OsString {
    let folder = project.beside(&format!("npm-{version}"));
    files::write_script(&folder.join("node"), &format!("echo v{version}"));
    let log = project.beside("npm.log").display().to_string();
    let npm = format!(
        "if [ \"$1\" = config ]; then echo https://registry.invalid/; exit; fi\n\
         (echo \"npm $*\"; env | sort) >>'{log}'\n{commands}"
    );
    files::write_script(&folder.join("npm"), &npm);
    let rest = program_path::with_build_tools();
    std::env::join_paths(std::iter::once(folder).chain(std::env::split_paths(&rest))).unwrap()
}

/// Returns the calls of npm so far, from that log.
pub fn calls(project: &Project) -> Vec<String> {
    let log = std::fs::read_to_string(project.beside("npm.log")).unwrap_or_default();
    log.lines().filter(|line| line.starts_with("npm ")).map(str::to_string).collect()
}
