# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
"""Builds the extension for pip, with the libidtree that pkg-config finds."""
import shlex
import subprocess

from setuptools import Extension, setup


def pkg_config(option):
    return shlex.split(subprocess.check_output(["pkg-config", option, "idtree"], text=True))


setup(
    ext_modules=[
        Extension(
            "idtree._idtree",
            sources=["args.c", "extension.c", "connection.c", "document.c", "events.c", "generators.c", "values.c"],
            depends=["connection.h", "extension.h"],
            extra_compile_args=pkg_config("--cflags"),
            extra_link_args=pkg_config("--libs"),
            py_limited_api=True,
        )
    ],
)
