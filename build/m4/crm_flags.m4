# SPDX-License-Identifier: Apache-2.0
# crm_flags.m4: compiler and linker flags, each tried before it is used

# CRM_C_FLAGS(VARIABLE, FLAGS): add to VARIABLE those of FLAGS the compiler
# takes without a word.
AC_DEFUN([CRM_C_FLAGS], [
for crm_flag in m4_normalize([$2]); do
    AC_MSG_CHECKING([whether $CC takes $crm_flag])
    crm_saved=$CFLAGS
    CFLAGS="$CFLAGS -Werror $crm_flag"
    AC_COMPILE_IFELSE([AC_LANG_SOURCE([[
#include <stdio.h>
int main(void) { return 0; }]])],
        [AC_MSG_RESULT([yes])
         $1="$$1 $crm_flag"],
        [AC_MSG_RESULT([no])])
    CFLAGS=$crm_saved
done
])

# CRM_LD_FLAGS(VARIABLE, FLAGS): the same for linking.
AC_DEFUN([CRM_LD_FLAGS], [
for crm_flag in m4_normalize([$2]); do
    AC_MSG_CHECKING([whether $CC links with $crm_flag])
    crm_saved=$LDFLAGS
    crm_saved_cflags=$CFLAGS
    LDFLAGS="$LDFLAGS $crm_flag"
    CFLAGS="$CFLAGS -Werror -fPIC"
    AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])],
        [AC_MSG_RESULT([yes])
         $1="$$1 $crm_flag"],
        [AC_MSG_RESULT([no])])
    LDFLAGS=$crm_saved
    CFLAGS=$crm_saved_cflags
done
])

# CRM_C_STANDARD: C11 with GNU extensions, where the compiler has the option.
AC_DEFUN([CRM_C_STANDARD], [
CRM_C_FLAGS([STD_CFLAGS], [-std=gnu11])
AC_SUBST([STD_CFLAGS])
])

# CRM_HARDENING: sets HARDEN_CFLAGS, HARDEN_LDFLAGS and, for programs,
# HARDEN_PROG_LDFLAGS. Not used together with sanitizers, which need to see
# the calls that _FORTIFY_SOURCE replaces.
AC_DEFUN([CRM_HARDENING], [
CRM_C_FLAGS([HARDEN_CFLAGS],
    [-fstack-protector-strong -fstack-clash-protection -fcf-protection])
AC_MSG_CHECKING([whether $CC fortifies])
crm_saved=$CFLAGS
CFLAGS="$CFLAGS -Werror -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2"
AC_COMPILE_IFELSE([AC_LANG_SOURCE([[
#include <string.h>
#ifndef __OPTIMIZE__
#error without optimization there is no fortification
#endif
int main(void) { return 0; }]])],
    [AC_MSG_RESULT([yes])
     HARDEN_CFLAGS="$HARDEN_CFLAGS -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2"],
    [AC_MSG_RESULT([no])])
CFLAGS=$crm_saved
CRM_LD_FLAGS([HARDEN_LDFLAGS], [-Wl,-z,relro -Wl,-z,now])
# The objects are position independent already (AM_CFLAGS).
CRM_LD_FLAGS([HARDEN_PROG_LDFLAGS], [-pie])
])

# CRM_SANITIZERS(LIST): the sanitizers of LIST, for all that is built. Not the sizes of
# objects: APR declares that apr_pstrmemdup() returns a byte less than it does.
AC_DEFUN([CRM_SANITIZERS], [
crm_sanitize="-fsanitize=$1"
CRM_LD_FLAGS([INSTR_LDFLAGS], [$crm_sanitize])
AS_IF([test -z "$INSTR_LDFLAGS"],
    [AC_MSG_ERROR([$CC cannot link with $crm_sanitize])])
INSTR_CFLAGS="$crm_sanitize -fno-omit-frame-pointer"
AS_CASE([$1], [*undefined*],
    [INSTR_CFLAGS="$INSTR_CFLAGS -fno-sanitize=object-size dnl
-fno-sanitize-recover=undefined"])
])

# CRM_COVERAGE: gcov's counters.
AC_DEFUN([CRM_COVERAGE], [
CRM_LD_FLAGS([INSTR_LDFLAGS], [--coverage])
INSTR_CFLAGS="$INSTR_CFLAGS --coverage -fprofile-update=atomic"
])

# CRM_FUZZERS: FUZZ_LIBS is clang's libFuzzer as a plain archive, so that its
# main() is taken by the programs that have none of their own, and by no
# others.
AC_DEFUN([CRM_FUZZERS], [
AC_MSG_CHECKING([for libFuzzer])
crm_runtime=`$CC -print-runtime-dir 2>/dev/null`
crm_arch=`$CC -dumpmachine | sed 's/-.*//'`
for crm_file in "$crm_runtime/libclang_rt.fuzzer-$crm_arch.a" \
    "$crm_runtime/libclang_rt.fuzzer.a" \
    "`dirname "$crm_runtime"`/linux/libclang_rt.fuzzer-$crm_arch.a"; do
    AS_IF([test -z "$FUZZ_LIBS" && test -f "$crm_file"],
        [FUZZ_LIBS="$crm_file -lstdc++"])
done
AS_IF([test -z "$FUZZ_LIBS"],
    [AC_MSG_ERROR([not found: --enable-fuzzers needs CC=clang and its dnl
run-time libraries (Debian: libclang-rt-dev)])])
AC_MSG_RESULT([$FUZZ_LIBS])
INSTR_CFLAGS="$INSTR_CFLAGS -fsanitize=fuzzer-no-link"
])
