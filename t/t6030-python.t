#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t6030-python.t - the Python package idtree
test_description='Python gets single ids, blocks of ids, their text and their fields'
. "$(dirname "$0")/idtree-sharness.sh"
ext=$IDTREE_BUILDDIR/src/bindings/python/.libs/_idtree.so
test -f "$ext" || {
    skip_all='the package of Python is not built'
    test_done
}
nm -D --undefined-only "$ext" "$IDTREE_BUILDDIR/src/common/libidtree/.libs/libidtree.so" | grep -qE '__(asan|tsan|ubsan)_' && {
    skip_all='built with a sanitizer'
    test_done
}
python=$(sed -n 's/^PYTHON = //p' "$IDTREE_BUILDDIR/Makefile")
lib=$IDTREE_BUILDDIR/src/common/libidtree/.libs
mkdir -p path/idtree && ln -s "$IDTREE_SRCDIR"/src/bindings/python/idtree/*.py "$ext" path/idtree
PYTHONPATH=$PWD/path LD_LIBRARY_PATH=$lib PYTHONWARNINGS=error
export PYTHONPATH LD_LIBRARY_PATH PYTHONWARNINGS

test_expect_success 'the examples and promises in the documentation of the Python module hold' '
    idtree start -s 2 -o tbon.timeout=1h -o fluid.max-generators=1 -o broker.modules=fluid,flake,compressor "$python" "$IDTREE_SRCDIR/t/python_client.py" 2>log || { cat log; false; } &&
    tail -n 3 log
'
test_expect_success 'the examples in the guide for Python work' '
    sed -n "/^\`\`\`python/,/^\`\`\`/p" "$IDTREE_SRCDIR/doc/guide/python.md" | sed "/^\`\`\`/d" >guide.py &&
    idtree start "$python" guide.py >out && cat out && grep "^0017.e9fb.8df1.6c2e 15451$" out &&
    grep -x True out && test "$(tail -n 1 out)" = 100
'
test_expect_success 'the examples in the guide for Python can be pasted at the Python prompt' '
    sed -n "/^\`\`\`python/,/^\`\`\`/p" "$IDTREE_SRCDIR/doc/guide/python.md" | sed "s/^\`\`\`.*//" >prompt.py &&
    PYTHONWARNINGS= idtree start sh -c "\"$python\" -i <prompt.py" >out 2>err && ! grep -B3 Error err && test "$(tail -n 1 out)" = 100
'
if command -v stubtest >/dev/null; then test_set_prereq MYPY; fi
test_expect_success MYPY 'the type hints of the Python module are complete and match the extension' '
    ln -s "$IDTREE_SRCDIR"/src/bindings/python/idtree/*.pyi "$IDTREE_SRCDIR/src/bindings/python/idtree/py.typed" path/idtree &&
    MYPYPATH=path mypy --strict --cache-dir cache -p idtree >out && MYPYPATH=path stubtest idtree._idtree >out || { cat out; false; }
'
test_done
