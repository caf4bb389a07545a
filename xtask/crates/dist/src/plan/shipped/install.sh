#!/bin/sh
# Installs Espalier @VERSION@ for the one who runs it: into ~/.local/share/espalier, with links in ~/.local/bin.
# Nothing is unpacked before its sha256 is the one of SHA256SUMS, and what is there is whole.
set -eu

version='@VERSION@'
variant='@VARIANT@'
base='@URL@'
flavor=''
to="${XDG_DATA_HOME:-${HOME:-}/.local/share}/espalier"
links="${HOME:-}/.local/bin"
scratch=''

usage() {
    cat <<END
usage: install.sh [--variant NAME] [--flavor NAME] [BASE]

BASE is an https URL or a folder with SHA256SUMS and the archives of the release.
END
}

# What happened, and what to do about it.
fail() {
    printf 'error: %s\n' "$1" >&2
    [ $# -lt 2 ] || printf '  next: %s\n' "$2" >&2
    exit 1
}

has() {
    command -v "$1" >/dev/null 2>&1
}

clean_up() {
    [ -z "$scratch" ] || rm -rf "$scratch"
}

find_platform() {
    case "$(uname -s)-$(uname -m)" in
        Linux-x86_64 | Linux-amd64) platform=linux-x86_64 ;;
        Linux-aarch64 | Linux-arm64) platform=linux-aarch64 ;;
        Darwin-arm64) platform=macos-aarch64 ;;
        *) fail "there is no archive for $(uname -s) on $(uname -m)" "build it from its sources" ;;
    esac
}

# The file $1 of the release, into the scratch folder.
fetch() {
    case "$base" in
        https://* | http://127.0.0.1[:/]* | http://localhost[:/]*)
            if has curl; then
                curl --fail --silent --show-error --location --output "$scratch/$1" "$base/$1" ||
                    fail "could not download $base/$1"
            elif has wget; then
                wget -q -O "$scratch/$1" "$base/$1" || fail "could not download $base/$1"
            else
                fail "neither curl nor wget is here" "install one of them, or download the release and name its folder"
            fi
            ;;
        *://*) fail "$base is refused: sums that come without TLS prove nothing" "use https, or a folder" ;;
        *)
            [ -f "$base/$1" ] || fail "there is no $base/$1"
            cp "$base/$1" "$scratch/$1"
            ;;
    esac
}

sha256_of() {
    if has sha256sum; then
        sum=$(sha256sum <"$1")
    else
        sum=$(shasum -a 256 <"$1")
    fi
    printf '%s' "${sum%% *}"
}

# Sets flavor where none was asked for: the one that runs on any processor, or the only one.
choose_flavor() {
    found=''
    count=0
    while read -r _ name; do
        case "$name" in
            "espalier-$version-$variant-"*"-$platform.tar.gz") ;;
            *) continue ;;
        esac
        one=${name#"espalier-$version-$variant-"}
        one=${one%"-$platform.tar.gz"}
        found="$found $one"
        count=$((count + 1))
        case "$one" in
            cpu | cpu-arm64 | metal) flavor=$one ;;
        esac
    done <"$scratch/SHA256SUMS"
    [ -z "$flavor" ] || return 0
    [ "$count" -gt 0 ] || fail "the release has no archive of $variant for $platform"
    [ "$count" -eq 1 ] || fail "the release has several flavors for $platform" "add --flavor, one of:$found"
    flavor=${found# }
}

# The sum of $1 in SHA256SUMS; nothing when it is not there, or not once.
sum_of() {
    sums=''
    while read -r sum name; do
        [ "$name" = "$1" ] && sums="$sums$sum"
    done <"$scratch/SHA256SUMS"
    printf '%s' "$sums"
}

# Links to the programs; other files and links are left alone.
link_programs() {
    mkdir -p "$links"
    for program in "$1"/bin/*; do
        name=${program##*/}
        case "$name" in *.so | *.so.* | *.dylib) continue ;; esac
        link=$links/$name
        if [ -e "$link" ] || [ -L "$link" ]; then
            case "$(readlink "$link" || true)" in
                "$to"/*) ;;
                *)
                    printf 'warning: %s was not created by this script and stays as it is\n' "$link" >&2
                    continue
                    ;;
            esac
        fi
        ln -s "$program" "$links/.espalier-$$-$name"
        mv -f "$links/.espalier-$$-$name" "$link"
    done
}

main() {
    while [ $# -gt 0 ]; do
        case "$1" in
            --variant | --flavor) [ $# -ge 2 ] || fail "$1 needs a name" ;;
        esac
        case "$1" in
            --help | -h) usage && exit 0 ;;
            --variant) variant=$2 && shift ;;
            --flavor) flavor=$2 && shift ;;
            -*) fail "there is no option $1" "install.sh --help" ;;
            *) base=${1%/} ;;
        esac
        shift
    done
    [ -n "$base" ] || { usage >&2; exit 2; }
    [ -n "${HOME:-}" ] || fail "HOME is not set, and names the folder to install into"
    case "$variant$flavor" in *[!A-Za-z0-9._-]*) fail "that is not the name of a variant or a flavor" ;; esac
    has sha256sum || has shasum || fail "neither sha256sum nor shasum is here: nothing can be verified" "install coreutils"
    has tar || fail "tar is not here" "install tar"
    find_platform

    mkdir -p "$to"
    scratch=$(mktemp -d "$to/.installing.XXXXXX")
    trap clean_up EXIT
    trap 'exit 130' INT TERM HUP
    fetch SHA256SUMS
    [ -n "$flavor" ] || choose_flavor
    name="espalier-$version-$variant-$flavor-$platform"
    expected=$(sum_of "$name.tar.gz")
    [ ${#expected} -eq 64 ] || fail "SHA256SUMS has no single sum of $name.tar.gz"
    fetch "$name.tar.gz"
    found=$(sha256_of "$scratch/$name.tar.gz")
    [ "$found" = "$expected" ] ||
        fail "$name.tar.gz is not what was released: its sha256 is $found, expected $expected" "download it again"

    tar -xzf "$scratch/$name.tar.gz" -C "$scratch"
    folder=$to/$version/$variant-$flavor
    mkdir -p "$to/$version"
    [ ! -e "$folder" ] || mv "$folder" "$scratch/before"
    mv "$scratch/$name" "$folder"
    link_programs "$folder"
    printf 'installed %s\n' "$folder"
    "$folder/bin/llama-server" --version >"$scratch/said" 2>&1 ||
        fail "it is installed and does not start here: $(tail -n 1 "$scratch/said")" \
            "install the library that is named; on Debian or Ubuntu: apt-get install libgomp1 libstdc++6"
    printf 'next: %s/llama-server -m model.gguf\n' "$links"
}

# Last: a script that was cut short does nothing.
main "$@"
