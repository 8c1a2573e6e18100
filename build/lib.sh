# SPDX-License-Identifier: Apache-2.0
# lib.sh: what build/run and build/test share; sourced by bash
# shellcheck shell=bash

# Print TEXT as an error of this program and leave.
die() {
    echo "${0##*/}: $*" >&2
    exit 1
}

# Make _build/src a picture of the source folders, by symbolic links, and
# leave a configure script there. So the sources stay as they are, and it
# does not matter whether somebody configured or built in the source folder:
# make's VPATH would find those objects.
shadow_sources() {
    local src=_build/src file link
    if [ "$(cat $src/.origin 2>/dev/null)" != "$PWD" ]; then
        rm -rf $src     # a copy of the folder must not build the original
        mkdir -p $src
        echo "$PWD" >$src/.origin
    fi
    find "$src" -xtype l -delete
    build/sources --list | while read -r file; do
        link=$src/$file
        if [ ! -L "$link" ]; then
            mkdir -p "${link%/*}"
            ln -sfn "$PWD/$file" "$link"
        fi
    done
    if [ ! -f $src/configure ] || [ configure.ac -nt $src/configure ] ||
        [ Makefile.am -nt $src/Makefile.in ] ||
        [ -n "$(find build/m4 -name 'crm_*' -newer $src/configure)" ]; then
        (cd $src && autoreconf --force --install) >_build/autoreconf.log 2>&1 ||
            { tail -n 20 _build/autoreconf.log >&2
              die "autoreconf failed, see _build/autoreconf.log"; }
    fi
}

# Configure the build folder DIR with OPTIONS, if it is not so already.
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

# Print the HTTP tests that every run has: all but those that take long and
# say so by a line "# second gear".
first_gear() {
    grep -L '^# second gear' t/[0-9][0-9]-*.t
}
