#!/bin/sh
# Make ./configure from configure.ac.  Needs autoconf, automake, libtool and pkg-config.
cd "$(dirname "$0")" && exec autoreconf --install --force --warnings=all,no-obsolete
