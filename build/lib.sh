# SPDX-License-Identifier: Apache-2.0
# lib.sh: what build/run, build/test and build/nightly share; sourced by bash
# shellcheck shell=bash

# Print the error TEXT and exit.
die() {
    echo "${0##*/}: $*" >&2
    exit 1
}

# Make _build/src a copy of the source folders with symbolic links, and a
# configure script in it. So the sources stay unchanged, and make does not find
# the objects of a build in the source folder through VPATH.
shadow_sources() {
    local src=_build/src
    if [ "$(cat $src/.origin 2>/dev/null)" != "$PWD" ]; then
        rm -rf $src     # a copy of the folder must not build the original
        mkdir -p $src
        echo "$PWD" >$src/.origin
    fi
    build/sources --link "$src"
    if [ ! -f $src/configure ] || [ configure.ac -nt $src/configure ] ||
        [ Makefile.am -nt $src/Makefile.in ] ||
        [ -n "$(find build/m4 -name 'crm_*' -newer $src/configure)" ]; then
        (cd $src && autoreconf --force --install) >_build/autoreconf.log 2>&1 ||
            { tail -n 20 _build/autoreconf.log >&2
              die "autoreconf failed, see _build/autoreconf.log"; }
    fi
}

# Configure the build folder DIR with OPTIONS, unless it is already.
configure_in() {
    local dir=$1
    shift
    mkdir -p "$dir"
    if [ ! -f "$dir/Makefile" ] || [ "$*" != "$(cat "$dir/options")" ] ||
        [ _build/src/configure -nt "$dir/config.status" ]; then
        (cd "$dir" && ../src/configure --quiet "$@" >configure.log 2>&1) ||
            { tail -n 5 "$dir/configure.log" >&2
              die "configure failed, see $dir/configure.log"; }
        echo "$*" >"$dir/options"
    fi
}

# Make TARGETS in the build folder DIR.
make_in() {
    local dir=$1
    shift
    make -C "$dir" -j"$(nproc)" --no-print-directory "$@" \
        >"$dir/make.log" 2>&1 ||
        { grep -E 'error|Error|undefined|\*\*\*' "$dir/make.log" |
              head -n 20 >&2
          die "the build failed, see $dir/make.log"; }
}

# Print the folder of the build NAME.
build_folder() {
    case $1 in
    plain) echo _build/test ;;
    *) echo "_build/$1" ;;
    esac
}

# Options for builds that are not installed. gold links the many unit tests in half
# the time.
linker=()
! command -v ld.gold >/dev/null || linker=(LDFLAGS=-fuse-ld=gold)

# Make the build of build/run. What build/test has built is good for that, too.
build_for_run() {
    local options=(--prefix=/usr/local)
    mkdir -p _build
    exec 8>_build/lock
    flock 8
    [ -e _build/run ] || rm -f _build/run       # a link to what has gone
    [ -e _build/run ] || [ ! -d _build/test ] || ln -s test _build/run
    [ ! -L _build/run ] || options+=(--enable-werror)
    shadow_sources 8>&-
    configure_in _build/run "${options[@]}" "${linker[@]}" 8>&-
    make_in _build/run all 8>&-
    exec 8>&-
}

# Make the build NAME and what TEST... need; without TEST, what all need.
build_for_tests() {
    local folder options targets=(tests)
    folder=$(build_folder "$1")
    case $1 in
    plain) options=(--enable-werror) ;;
    asan) options=(--enable-werror --enable-sanitizers CFLAGS="-O1 -g") ;;
    # char is unsigned on ARM
    clang) options=(--enable-werror CC=clang CFLAGS="-O2 -g -funsigned-char") ;;
    # what gcc warns of where this sanitizer is on is not so
    tsan) options=(--enable-sanitizers=thread CFLAGS="-O1 -g") ;;
    fuzz) options=(--enable-werror --enable-fuzzers CC=clang
                   CFLAGS="-O1 -g") ;;
    esac
    if [ $# -gt 1 ]; then
        mapfile -t targets < <(printf '%s\n' tools "${@:2}" | grep -v '[.]t$')
    fi
    mkdir -p _build
    exec 8>_build/lock
    flock 8
    shadow_sources
    configure_in "$folder" --prefix=/usr/local "${options[@]}" "${linker[@]}"
    make_in "$folder" all "${targets[@]}"
    flock -u 8
    exec 8>&-
}

# Print the unit tests; the fuzz targets; the HTTP tests of the first gear, those
# of them that run with sanitizers there; the HTTP tests of the second gear.
unit_tests() {
    printf '%s\n' t/unit/test_*.c | sed 's/\.c$//'
}
fuzz_targets() {
    printf '%s\n' t/fuzz/fuzz_*.c | sed 's/\.c$//'
}
first_gear() {
    grep -L '^# second gear' t/[0-9][0-9]-*.t
}
first_gear_sanitized() {
    grep -l '^# with sanitizers' t/[0-9][0-9]-*.t
}
second_gear() {
    grep -l '^# second gear' t/[0-9][0-9]-*.t
}

# Of the tests on stdin print those without the line "# MARK".
without() {
    local test
    while read -r test; do
        grep -q "^# $1" "$test" 2>/dev/null || echo "$test"
    done
}

# The same: those that run our C code. Only they can differ in another build.
in_any_build() {
    without "plain build only"
}

# Run TESTS by exec. A test's prefix is its build: asan:t/10-x.t.
run_tests() {
    local build
    for build in plain asan clang tsan; do
        export "CRM_BUILD_$build=$PWD/$(build_folder "$build")"
    done
    export CRM_BUILDDIR=$PWD/_build/test CRM_SRCDIR=$PWD
    # Tests mostly wait: for windows of the limits, for daemons, for each other.
    # $CRM_PASSED: the file of what need not run again.
    exec perl t/run "-j$(($(nproc) * 2))" --timer \
        ${CRM_PASSED:+--passed "$CRM_PASSED"} "$@"
}
