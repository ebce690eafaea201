# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
"""The recipe of idtree for Spack.

Lay it into a repository of your own, and install from what make dist packs, in the folder of that file:

    spack repo create ~/spack-idtree idtree
    cp etc/packaging/package.py ~/spack-idtree/packages/idtree/     # in Spack 1.0: below spack_repo/idtree/packages
    spack repo add ~/spack-idtree
    spack install --no-checksum idtree
"""

import os

try:
    from spack_repo.builtin.build_systems.autotools import AutotoolsPackage
except ImportError:  # before Spack 1.0 it is in spack.package
    pass

from spack.package import *


class Idtree(AutotoolsPackage):
    """Unique, time-ordered 64-bit ids for clusters, from a tree of brokers."""

    manual_download = True
    url = f"file://{os.getcwd()}/idtree-0.1.0.tar.gz"

    license("Apache-2.0", checked_by="idtree contributors")

    version("0.1.0")

    variant("flux", default=False, description="Build the module for a broker of Flux")
    variant("http", default=True, description="Build idtree-http: ids, figures and a live page over HTTP")
    variant("libpq", default=False, description="Let rank 0 keep its state in PostgreSQL")
    variant("pmix", default=True, description="Let brokers find each other by PMIx")
    variant("python", default=True, description="Build the package idtree of Python")
    variant("systemd", default=False, description="Notify systemd by the libsystemd of the system")

    depends_on("c", type="build")
    depends_on("gmake", type="build")
    depends_on("pkgconfig", type="build")

    depends_on("czmq@4.2:")
    depends_on("jansson@2.13:")
    depends_on("libev")
    depends_on("libsodium@1.0.18:")
    depends_on("libzmq@4.3:+libsodium")
    depends_on("lz4")
    depends_on("ncurses@6:")
    depends_on("sqlite@3.34:")
    depends_on("util-linux@2.36:")

    depends_on("flux-core@0.81:", when="+flux")
    depends_on("libmicrohttpd@0.9.71:+https", when="+http")
    depends_on("gnutls@3.6:", when="+http")
    depends_on("pmix@3.1:", when="+pmix")
    depends_on("postgresql@14:", when="+libpq")
    depends_on("python@3.11:", type=("build", "link", "run"), when="+python")
    depends_on("systemd", when="+systemd")

    conflicts("platform=darwin", msg="idtree needs Linux")
    conflicts("platform=windows", msg="idtree needs Linux")

    def configure_args(self):
        # PostgreSQL looks for extensions in its own prefix, where Spack installs nothing else.
        args = ["--without-postgresql", "--with-systemdsystemunitdir=" + os.path.join(self.prefix.lib, "systemd", "system")]
        for part in ("flux", "http", "libpq", "pmix", "systemd"):
            args += self.with_or_without(part)
        args += self.enable_or_disable("python")
        return args

    # Tests of brokers take long, and need what no list here names: unit tests of the libraries only.
    def check(self):
        with working_dir(self.build_directory):
            make("check", "TESTS=src/common/libfluid/fluid_test.t src/common/libmsg/stream_test.t")
