# SPDX-License-Identifier: Apache-2.0
# crm_apxs.m4: asks apxs where httpd lives, and for nothing else
#
# CRM_APXS
# Sets APXS, HTTPD, APACHE_INCLUDEDIR, APACHE_LIBEXECDIR (where the module is
# installed) and APACHE_MODULEDIR (where httpd's own modules are).
AC_DEFUN([CRM_APXS], [
AC_ARG_WITH([apxs],
    [AS_HELP_STRING([--with-apxs=FILE], [httpd's apxs])],
    [], [with_apxs=yes])
AC_ARG_WITH([apache-libexecdir],
    [AS_HELP_STRING([--with-apache-libexecdir=DIR],
        [where the module is installed (default: what apxs says)])],
    [], [with_apache_libexecdir=yes])
AS_CASE([$with_apxs],
    [no], [AC_MSG_ERROR([the module cannot be built without apxs])],
    [yes], [AC_PATH_PROGS([APXS], [apxs apxs2], [],
        [$PATH:/usr/sbin:/usr/local/apache2/bin])],
    [APXS=$with_apxs])
AS_IF([test -z "$APXS" || ! test -x "$APXS"],
    [AC_MSG_ERROR([apxs not found: install httpd's development files dnl
(Debian: apache2-dev) or say --with-apxs=FILE])])
AC_SUBST([APXS])

AC_MSG_CHECKING([for httpd's header files])
APACHE_INCLUDEDIR=`$APXS -q INCLUDEDIR`
AS_IF([test -f "$APACHE_INCLUDEDIR/httpd.h"],
    [AC_MSG_RESULT([$APACHE_INCLUDEDIR])],
    [AC_MSG_ERROR([$APACHE_INCLUDEDIR/httpd.h is missing])])
AC_SUBST([APACHE_INCLUDEDIR])

AC_MSG_CHECKING([for httpd's modules])
APACHE_MODULEDIR=`$APXS -q LIBEXECDIR`
AC_MSG_RESULT([$APACHE_MODULEDIR])
AC_SUBST([APACHE_MODULEDIR])
AS_CASE([$with_apache_libexecdir],
    [yes], [APACHE_LIBEXECDIR=$APACHE_MODULEDIR],
    [no], [AC_MSG_ERROR([--with-apache-libexecdir needs a folder])],
    [APACHE_LIBEXECDIR=$with_apache_libexecdir])
AC_SUBST([APACHE_LIBEXECDIR])

AC_MSG_CHECKING([for httpd])
HTTPD=`$APXS -q SBINDIR`/`$APXS -q PROGNAME`
AS_IF([test -x "$HTTPD"], [AC_MSG_RESULT([$HTTPD])],
    [AC_MSG_RESULT([no, the HTTP tests will not work])])
AC_SUBST([HTTPD])
])
